"""Bounds on the second derivatives of a head over a tensor grid, on a whole box.

Map every [low_j, high_j] to [-1, 1]. With the Chebyshev coefficients C^j of the weights along axis j (grid_head),
r = sum_i a_i T_i, a_i = sum_k v_k prod_j C^j_{i_j k_j}, and |T_i'| <= i^2, |T_i''| <= i^2 (i^2 - 1) / 3, so that

    |d^2 r / dx_j dx_l| <= sum_i |a_i| prod_s d(i_s; q_s),      q_s: how often axis s is derived by, d(i; 0) = 1.

Values may be large and of both signs: the a_i see that they cancel, bounds on single weights would not.

Degrees above n_s are left out of the sum. With P_s the part of degree at most n_s along axis s,
r - P_1 … P_d r = sum_s P_1 … P_(s-1) (r - P_s r); axis s adds sum_{i > n_s} d(i; q_s) beta_i, beta_i the largest
|sum_k C^s_ik v_k|, the axes before it at most the sum over i and k of d(i; q) |C_ik|, those after it at most the sum
over k of |w_k|, |w_k'| or |w_k''|: 1, 2R and 2R^2, with R half the range of the slopes.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from anchorhead.errors import AnchorheadError
from anchorhead.heads.grids.grid_atom import GridAtom, contract
from anchorhead.proof.arithmetic.arithmetic import UP
from anchorhead.proof.grids.grid_head import expansion, growth

MAX_TERMS = 4_000_000
_SMALL = 1e-5


def second_derivatives(
    atom: GridAtom, low: Float[np.ndarray, " d"], high: Float[np.ndarray, " d"]
) -> Float[np.ndarray, "d d"]:
    """The largest |d^2 r / dx_j dx_l| on the box, of any output."""
    d, half = atom.variables, (high - low) / 2
    negligible = 1e-4 * min(1.0, max(atom.max_value, 1e-300))
    tables, tails, others = [], [], []
    for j in range(d):
        along = expansion(atom, j, float(low[j]), float(high[j]), negligible, order=2)
        if along is None:
            raise _too_steep()
        tail = np.stack([along.tail(q).max(axis=0) for q in range(3)])
        largest = max(float(along.sizes[:, 1:].max(initial=0.0)), 1e-12 * atom.max_value)
        small = np.flatnonzero(tail[2] - along.far[2] <= _SMALL * largest)
        n = max(2, int(small[0]) if len(small) else len(along.table) - 1)
        tables.append(along.table[: n + 1].astype(np.float64))
        tails.append(tail[:, n] * UP)
        sums = [float(growth(n + 1, q) @ np.abs(tables[-1]).sum(axis=1)) for q in range(3)]
        weights = 1.0, 2 * along.reach, 2 * along.reach**2
        others.append([max(pair) * UP for pair in zip(sums, weights, strict=True)])
    if math.prod(map(len, tables)) * atom.outputs > MAX_TERMS:
        raise _too_steep()
    values = atom.values.astype(np.float64)
    terms = np.abs(contract(values, tables)).max(axis=-1)
    sizes = contract(np.abs(values), [np.abs(table) for table in tables]).max(axis=-1)
    terms = terms + 4 * sum(side + 8 for side in atom.sides) * 2.0**-53 * sizes
    bounds = np.zeros((d, d))
    for j in range(d):
        for m in range(j, d):
            orders = [(s == j) + (s == m) for s in range(d)]
            total = contract(terms, [growth(len(one), q)[None] for one, q in zip(tables, orders, strict=True)])
            rest = sum(
                tails[s][orders[s]] * math.prod(others[t][orders[t]] for t in range(d) if t != s) for s in range(d)
            )
            bounds[j, m] = bounds[m, j] = (float(total.item()) + rest) / (half[j] * half[m]) * UP
    return bounds


def _too_steep() -> AnchorheadError:
    return AnchorheadError("the grid is too steep to bound its second derivatives: use a larger error")
