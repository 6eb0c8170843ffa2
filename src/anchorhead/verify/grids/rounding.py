"""Rounding of a softmax over a tensor grid, on cells of the box, without an axis of all anchors.

Computed, in any order: t_j = fl(x_j - origin_j), z_k = sum_j (a^j t_j + g^j), a softmax over P anchors, sums with the
values. The dot product of 2 d terms errs by gamma_2d sum_j (|a^j t_j| + |g^j|). The rounding of t_j moves
every logit by a^j e, |e| <= u |t_j|; what all anchors share changes nothing, so |a^j - a'| e remains, a' the middle of
the slopes. Taking the largest logit off rounds by u (max z - z_k), a sum over axes too, and by u times twice the
largest error of a logit; exp adds its own. So the computed weights are those of z_k + lambda_k, |lambda_k| <= Lambda_k
= E + sum_j lambda^j_k. By sum_k w_k (v_k - r) = 0 and Jensen (as for one axis),

    |r~ - r| <= e^(2 max Lambda) (sum_k w_k Lambda_k |v_k| + |r| sum_k w_k Lambda_k);

sums, division and products add (gamma_(P+1) sum w~ |v| + gamma_(P-1) |r~|) / (1 - gamma_(P-1)). On a cell around c of
half width h, w^j_k <= w^j_k(c) e^(|a_k - A| h), A = sum w a at c, since log w_k is concave. All sums over anchors are
then products of sums over axes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from anchorhead.verify.errors import require
from anchorhead.verify.grids.head import Grid
from anchorhead.verify.grids.polynomial import contract
from anchorhead.verify.rounding import OWN_UNIT, SLACK, Arithmetic

FIRST, MAX_CELLS = 8, 300_000
UP = 1 + 1e-6
"""Products of roundings that are left out, and the float64 arithmetic of this file."""


def grid_rounding(
    grid: Grid, low: Sequence[float], high: Sequence[float], model: Arithmetic, enough: float
) -> tuple[list[np.ndarray], np.ndarray]:
    """Cuts along each axis, and a bound on |computed r - r| for each cell between them.

    Cells are halved until the largest bound is at most `enough`, or no longer falls.
    """
    count, best = FIRST, math.inf
    while True:
        cuts = [np.linspace(a, b, count + 1) for a, b in zip(low, high, strict=True)]
        found = on_cells(grid, cuts, model)
        worst = float(found.max())
        more = (2 * count) ** len(cuts)
        if worst <= enough or worst > 0.98 * best or more > MAX_CELLS:
            return cuts, found
        best, count = worst, 2 * count


def on_cells(grid: Grid, cuts: list[np.ndarray], model: Arithmetic) -> np.ndarray:
    """(cells_1, …, cells_d)."""
    d, anchors, u = len(cuts), grid.values.size, model.unit
    weights, errors = zip(*(_axis(grid, j, cuts[j], d, model) for j in range(d)), strict=True)
    most = sum(float(error.max()) for error in errors)
    shared = model.exp_error + 2 * u * most + 8 * d * model.tiny
    require(most + shared < 0.1, f"logits of a grid that {model.dtype} cannot hold")
    grown = math.exp(2 * (most + shared))
    size = np.abs(grid.values)
    read = contract(size, list(weights))
    wrong, mean = shared * read, np.full((1,) * d, shared)
    for j, error in enumerate(errors):
        leaning = weights[j] * error
        wrong = wrong + contract(size, [leaning if i == j else one for i, one in enumerate(weights)])
        mean = mean + leaning.sum(axis=1).reshape([-1 if i == j else 1 for i in range(d)])
    moved = grown * (wrong + mean * read)
    few, many = float(model.gamma(anchors - 1)), float(model.gamma(anchors + 1))
    summed = (many * grown * read + few * (read + moved)) / (1 - few)
    lost = 8 * anchors * model.tiny * (size.max() + 1)
    return (moved + summed + lost) * UP


def _axis(grid: Grid, j: int, cuts: np.ndarray, d: int, model: Arithmetic) -> tuple[np.ndarray, np.ndarray]:
    """Upper bounds on the weights of one axis on each cell, and lambda^j: (cells, p)."""
    return upper_weights(grid, j, cuts)[3], axis_errors(grid, j, cuts, d, model)


def upper_weights(grid: Grid, j: int, cuts: np.ndarray) -> tuple[np.ndarray, ...]:
    """Along one axis, for each cell: centre and half width (cells, 1), the weights there and upper bounds on them on
    the cell (cells, p), the mean of the slopes (cells, 1), and how far off the weights may be, relatively (cells,
    p)."""
    (slopes, offsets), origin = grid.axes[j], float(grid.origins[j])
    centre, half = (cuts[:-1] + cuts[1:])[:, None] / 2, np.diff(cuts)[:, None] / 2 * UP
    half = half + 4 * OWN_UNIT * np.abs(cuts).max()
    # logits less that of the largest, which changes no weight: what anchors share is not rounded
    top = ((centre - origin) * slopes + offsets).argmax(axis=1)[:, None]
    steep, rest = slopes - slopes[top], offsets - offsets[top]
    z = (centre - origin) * steep + rest
    noise = 8 * OWN_UNIT * (np.abs(steep) * (np.abs(centre - origin) + half) + np.abs(rest) + 1)
    z = z - z.max(axis=1, keepdims=True)
    log_w = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    w = np.exp(log_w)
    off = 4 * (noise + (w * noise).sum(axis=1, keepdims=True)) + 1e-14
    mean = (w * slopes).sum(axis=1, keepdims=True)
    tilt = np.abs(slopes - mean)
    tilt = tilt + (w * off * tilt).sum(axis=1, keepdims=True) + 1e-14 * np.abs(slopes).max()
    upper = np.exp(np.minimum(log_w + tilt * half + off, 0.0)) + 1e-300  # not from w, which may have vanished
    return centre, half, w, upper, mean, off


def axis_errors(grid: Grid, j: int, cuts: np.ndarray, d: int, model: Arithmetic) -> np.ndarray:
    """lambda^j on each cell, (cells, p)."""
    (slopes, offsets), origin, u = grid.axes[j], float(grid.origins[j]), model.unit
    ends = np.stack([cuts[:-1], cuts[1:]])[..., None] - origin
    far = np.abs(ends).max(axis=0) * UP
    gaps = ends * slopes + offsets
    noise = 16 * OWN_UNIT * (np.abs(slopes) * far + np.abs(offsets) + 1)
    gap = (gaps.max(axis=2, keepdims=True) - gaps).max(axis=0) + noise  # convex in x: largest at an end
    lean = np.abs(slopes - (slopes.max() + slopes.min()) / 2) * (u * far if origin else 0.0)
    lost = 4 * model.tiny * (1 + np.abs(slopes))
    size = float(model.gamma(2 * d)) * (np.abs(slopes) * far + np.abs(offsets))
    wrong = grid.wrong[j] if grid.wrong else 0.0
    return (size + lean + u * gap + wrong) * SLACK * UP + lost
