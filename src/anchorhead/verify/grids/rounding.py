"""Rounding of a softmax over a tensor grid, on cells of the box, without an axis of all anchors.

Computed, in any order: t_j = fl(x_j - origin_j), z_k = sum_j (a^j t_j + g^j), a softmax over P anchors, sums with the
values. The dot product of 2 d terms errs by gamma_2d sum_j (|a^j t_j| + |g^j|). The rounding of t_j moves
every logit by a^j e, |e| <= u |t_j|; what all anchors share changes nothing, so |a^j - a'| e remains, a' the middle of
the slopes. Taking the largest logit off rounds by u (max z - z_k), a sum over axes too, and by u times twice the
largest error of a logit; exp adds its own. So the computed weights are those of z_k + lambda_k, |lambda_k| <= Lambda_k
= E + sum_j lambda^j_k. By sum_k w_k (v_k - r) = 0 and Jensen (as for one axis),

    |r~ - r| <= e^(2 max Lambda) sum_k w_k Lambda_k |v_k - r|,

and the sum is at most sum_k w_k Lambda_k |v_k| + |r| sum_k w_k Lambda_k; and, by Cauchy and Schwarz, in the norm
|g|^2 = sum_k w_k g_k^2, at most |Lambda| |v - r| <= (E + sum_j |lambda^j|) |v - v'| for any number v', which is less
where anchors that are heard together have nearly the same value.

Sums, division and products add (gamma_(n+1) sum w~ |v| + gamma_n |r~|) / (1 - gamma_n), n being the number of anchors
that are heard on a cell: adding n numbers errs by gamma_(n-1) of their sizes, and a number by at most itself, so that
all others, of the weight eps, cost at most 8 eps max|v|. On a cell around c of half width h, w^j_k <= w^j_k(c)
e^(|a_k - A| h), A = sum w a at c, since log w_k is concave. All sums over anchors are then products of sums over axes;
but |r|, which may be much less than sum w |v|, is bounded by `reach`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np

from anchorhead.verify.errors import require
from anchorhead.verify.grids.head import Grid
from anchorhead.verify.grids.polynomial import contract
from anchorhead.verify.rounding import OWN_UNIT, SLACK, Arithmetic

FIRST, MAX_CELLS = 8, 300_000
HEARD = 1e-18
"""Anchors of an axis that may weigh more than this are counted."""
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
    _, centres, weights, _ = zip(*(upper_weights(grid, j, cuts[j]) for j in range(d)), strict=True)
    errors = [axis_errors(grid, j, cuts[j], d, model) for j in range(d)]
    most = sum(float(error.max()) for error in errors)
    shared = model.exp_error + 2 * u * most + 8 * d * model.tiny
    require(most + shared < 20, f"logits of a grid that {model.dtype} cannot hold")
    grown = math.exp(2 * (most + shared))
    size, sides = np.abs(grid.values), [[-1 if i == j else 1 for i in range(d)] for j in range(d)]
    read = contract(size, weights)
    result = np.minimum(read, reach(grid, [np.exp(one) for one in centres], weights))
    wrong, mean, norm = shared * read, np.full((1,) * d, shared), np.full((1,) * d, shared)
    heard, beyond = np.ones((1,) * d), np.zeros((1,) * d)
    for j, error in enumerate(errors):
        leaning, loud = weights[j] * error, weights[j] > HEARD
        wrong = wrong + contract(size, [leaning if i == j else one for i, one in enumerate(weights)])
        mean = mean + leaning.sum(axis=1).reshape(sides[j])
        norm = norm + np.sqrt((leaning * error).sum(axis=1)).reshape(sides[j])
        heard = heard * loud.sum(axis=1).reshape(sides[j])
        beyond = beyond + np.where(loud, 0.0, weights[j]).sum(axis=1).reshape(sides[j])
    moved = grown * np.minimum(wrong + mean * result, norm * spread(grid, weights))
    few, many = model.gamma(heard), model.gamma(heard + 1)
    summed = (many * grown * read + few * (result + moved)) / (1 - few) + 8 * grown * beyond * size.max()
    lost = 8 * anchors * model.tiny * (size.max() + 1)
    return (moved + summed + lost) * UP


def reach(grid: Grid, centres: Sequence[np.ndarray], upper: Sequence[np.ndarray]) -> np.ndarray:
    """Bounds on |r| on each cell, from weights c at its centre, as float64 has them, and U >= c, w anywhere on it:
    |sum w v - sum c v| <= max|v| sum |w - c|, where |w - c| <= 2 U - w - c, and the w add up to 1."""
    every, near = (reduce(np.multiply.outer, [w.sum(axis=1) for w in one]) for one in (upper, centres))
    moved = (2 * every - 1 - near + UP - 1) * np.abs(grid.values).max()
    return np.abs(contract(grid.values, centres)) + moved


def spread(grid: Grid, weights: Sequence[np.ndarray]) -> np.ndarray:
    """At least the root of sum_k w_k (v_k - v')^2 on each cell, v' being about what is read: from sum w (1, v, v^2), in
    which float64 errs by at most some units of sum w (v^2 + v'^2). Values are counted in units of about the largest, so
    that squares neither under- nor overflow."""
    own = 8 * (sum(grid.values.shape) + 8) * OWN_UNIT
    _, unit = np.frexp(np.abs(grid.values).max())
    values = np.ldexp(grid.values, -unit)
    total, first, second = (contract(values**n, weights) for n in range(3))
    near = first / total
    square = second - 2 * near * first + near**2 * total
    return np.ldexp(np.sqrt(np.maximum(square, 0.0) + own * (second + near**2 * total)), unit)


def bends(grid: Grid, cuts: list[np.ndarray]) -> np.ndarray:
    """w_j^2 / 8 sup |d_j^2 r| on each cell of widths w_j, (cells_1, …, cells_d, d).

    Along one axis w_k' = w_k (a_k - A), A = sum w a, A' the variance V of the slopes, so w_k'' = w_k ((a_k - A)^2 - V).
    With U_k >= w_k on the cell, |a_k - A| <= |a_k - A(c)| + h V and V <= sum U (a - A(c))^2,

        |d_j^2 r| <= sum_k U_k ((a_k - A)^2 + V) |v_k - v'| <= |(a - A)^2 + V| |v - v'|

    in the norm |g|^2 = sum_k U_k g_k^2, for any constant v', which derivatives do not see. Slopes are multiplied by h
    first, so that their powers do not underflow.
    """
    half, _, upper, lean = zip(*(upper_weights(grid, j, one) for j, one in enumerate(cuts)), strict=True)
    sums, apart = [one.sum(axis=1) for one in upper], spread(grid, upper) * UP
    found = np.empty((*apart.shape, len(cuts)))
    for j, (one, h, u) in enumerate(zip(lean, half, upper, strict=True)):
        across = one * h
        variance = (u * across**2).sum(axis=1, keepdims=True) * UP
        bent = (u * ((across + variance) ** 2 + variance) ** 2).sum(axis=1)
        norm = reduce(np.multiply.outer, [bent if i == j else total for i, total in enumerate(sums)])
        found[..., j] = apart * np.sqrt(norm) / 2 * UP
    return found


def log_weights(grid: Grid, j: int, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Along one axis, at points: logarithms of the weights, and how far off they may be; (points, p) both."""
    (slopes, offsets), t = grid.axes[j], points[:, None] - float(grid.origins[j])
    # logits less that of the largest, which changes no weight: what anchors share is not rounded
    top = (t * slopes + offsets).argmax(axis=1)[:, None]
    steep, rest = slopes - slopes[top], offsets - offsets[top]
    noise = 8 * OWN_UNIT * (np.abs(steep * t) + np.abs(rest) + 1)
    z = t * steep + rest
    z = z - z.max(axis=1, keepdims=True)
    log_w = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    off = 4 * (noise + (np.exp(log_w) * noise).sum(axis=1, keepdims=True)) + 1e-14
    require(bool((off < 1).all()), "keys of a grid that float64 cannot hold")
    return log_w, off


def upper_weights(grid: Grid, j: int, cuts: np.ndarray) -> tuple[np.ndarray, ...]:
    """Along one axis, for each cell: half its width, (cells, 1), the logarithms of the weights at its centre, upper
    bounds on the weights on the cell, and on |a - A| at the centre, (cells, p) all."""
    half = np.diff(cuts)[:, None] / 2 * UP + 4 * OWN_UNIT * np.abs(cuts).max()
    log_w, off = log_weights(grid, j, cuts[:-1] / 2 + cuts[1:] / 2)
    w, slopes = np.exp(log_w), grid.axes[j][0]
    steep = slopes - slopes[w.argmax(axis=1)][:, None]  # what all slopes share is no error of a - A
    lean = np.abs(steep - (w * steep).sum(axis=1, keepdims=True))
    lost = (w * (off + (len(slopes) + 8) * OWN_UNIT) * np.abs(steep)).sum(axis=1, keepdims=True)
    lean = (lean + 2 * lost + 4 * OWN_UNIT * np.abs(steep)) * UP
    return half, log_w, np.exp(np.minimum(log_w + lean * half + off, 0.0)) + 1e-300, lean


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
