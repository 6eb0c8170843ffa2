"""The rounding of a softmax over a tensor grid, and of what it reads; at points for a solver, on cells for a proof.

Computed is, in any order, z_k = sum_j (slopes^j_{k_j} t_j + offsets^j_{k_j}), t_j = fl(fl(x_j) - origin_j), then the
softmax over all P anchors, and the sum of weights times values; the bias is added later.

Proof. The sum of 2 d terms errs by gamma_2d sum_j (|a^j t_j| + |g^j|), underflow aside. The roundings of x_j and of
x_j - origin_j move the logits along axis j by a^j_k e with |e| <= u (|x_j| + |t_j|) (1 + u); what all anchors share
changes no softmax, so |a^j_k - A^j| e remains, A^j the middle of the slopes. Subtracting the largest logit rounds
once, by u (gap_k + 2 max Delta), gap_k = sum_j (max z^j - z^j_k), and exp errs by its own error. All of these are sums
over axes: |log error of anchor k| <= Lambda_k = sum_j lambda^j_{k_j} + E. From there as in `softmax_rounding`: with
r~ the sum for weights that are divided exactly, and s = sum_k w_k |v_k| >= |r|,

    |r~ - r| <= exp(2 max Lambda) (sum_k w_k Lambda_k |v_k| + |r| sum_k w_k Lambda_k)

and sums, division and products add (gamma_(P+1) exp(2 max Lambda) s + gamma_(P-1) |r~|) / (1 - gamma_P). With upper
bounds on the w^j_k of a cell, each of these sums over anchors is a product of sums over axes: no grid is multiplied
out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from anchorhead.heads.arithmetic import Arithmetic
from anchorhead.heads.grids.grid_atom import GridAtom, contract
from anchorhead.heads.softmax_rounding import ABOVE_UP


def asked_error(low: Any, high: Any, origin: float, arithmetic: Arithmetic) -> Any:
    """By how much fl(fl(x) - origin) may err for x in [low, high]."""
    size = np.maximum(np.abs(low), np.abs(high)) + np.maximum(np.abs(low - origin), np.abs(high - origin))
    return arithmetic.unit * size * ABOVE_UP + 4 * arithmetic.tiny


def axis_log_errors(
    slopes: Float[np.ndarray, " p"],
    offsets: Float[np.ndarray, " p"],
    origin: float,
    low: Float[np.ndarray, " cells"],
    high: Float[np.ndarray, " cells"],
    moved: Float[np.ndarray, " cells"],
    variables: int,
    arithmetic: Arithmetic,
) -> Float[np.ndarray, "cells p"]:
    """lambda^j_k for x_j in [low, high], cell by cell. max z - z_k is convex in x_j, so it is largest at an end.

    moved   how far the computed t_j may be from x_j - origin_j
    """
    u = arithmetic.unit
    slopes, offsets = slopes.astype(np.float64), offsets.astype(np.float64)
    ends = np.stack([low, high]) - origin
    t = np.abs(ends).max(axis=0)[:, None] * ABOVE_UP
    size = np.abs(slopes) * t + np.abs(offsets)
    z = ends[:, :, None] * slopes + offsets
    gap = (z.max(axis=2, keepdims=True) - z).max(axis=0) + 1e-14 * size.max(axis=1, keepdims=True)
    lean = np.abs(slopes - (slopes.max() + slopes.min()) / 2) * moved[:, None]
    underflow = 8 * arithmetic.tiny
    return (arithmetic.gamma(2 * variables) * size + lean + u * gap) * ABOVE_UP + underflow


def grid_read_error(
    atom: GridAtom,
    weights: Sequence[Float[np.ndarray, "cells p"]],
    log_errors: Sequence[Float[np.ndarray, "cells p"]],
    arithmetic: Arithmetic,
) -> Float[np.ndarray, "..."]:
    """A bound on |computed r - r|, bias aside, (cells_1, …, cells_d, m), from upper bounds on the weights."""
    anchors, d, u = atom.anchors, len(weights), arithmetic.unit
    most = sum(float(error.max()) for error in log_errors) * ABOVE_UP
    shared = arithmetic.exp_error + 2 * u * most
    grown = np.exp(min(2 * (most + shared), 700.0))
    size = np.abs(atom.values).astype(np.float64)
    read = contract(size, weights)
    wrong, mean = shared * read, np.full((1,) * (d + 1), shared)
    for j, error in enumerate(log_errors):
        leaning = weights[j] * error
        wrong = wrong + contract(size, [leaning if i == j else weight for i, weight in enumerate(weights)])
        mean = mean + leaning.sum(axis=1).reshape([-1 if i == j else 1 for i in range(d + 1)])
    moved = grown * (wrong + mean * read)
    many, few = float(arithmetic.gamma(anchors + 1)), float(arithmetic.gamma(anchors - 1))
    summed = (many * grown * read + few * (read + moved)) / (1 - float(arithmetic.gamma(anchors)))
    underflow = 8 * anchors * arithmetic.tiny * (size.max() + 1)
    return (moved + summed + underflow) * ABOVE_UP
