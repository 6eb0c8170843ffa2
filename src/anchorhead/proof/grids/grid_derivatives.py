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
from anchorhead.proof.grids.grid_head import LARGEST_RHO, MAX_COEFFICIENTS, STEEP
from anchorhead.proof.grids.grid_head import coefficients as chebyshev_coefficients

MAX_TERMS = 4_000_000
_SMALL = 1e-5
_UNIT = 2.0**-53


def second_derivatives(
    atom: GridAtom, low: Float[np.ndarray, " d"], high: Float[np.ndarray, " d"]
) -> Float[np.ndarray, "d d"]:
    """The largest |d^2 r / dx_j dx_l| on the box, of any output."""
    d = atom.variables
    axes = [_Axis(atom, j, float(low[j]), float(high[j])) for j in range(d)]
    if math.prod(len(axis.kept) for axis in axes) * atom.outputs > MAX_TERMS:
        raise AnchorheadError("the grid is too steep to bound its second derivatives: use a larger error")
    values = atom.values.astype(np.float64)
    terms = np.abs(contract(values, [axis.kept for axis in axes])).max(axis=-1)
    sizes = contract(np.abs(values), [np.abs(axis.kept) for axis in axes]).max(axis=-1)
    terms = terms + 4 * sum(side + 8 for side in atom.sides) * _UNIT * sizes
    bounds = np.zeros((d, d))
    for j in range(d):
        for m in range(j, d):
            orders = [(s == j) + (s == m) for s in range(d)]
            total = contract(
                terms, [axis.growth(q)[None, : len(axis.kept)] for axis, q in zip(axes, orders, strict=True)]
            )
            rest = sum(
                axis.tail(orders[s])
                * math.prod(max(axes[t].sums(orders[t]), axes[t].weights(orders[t])) for t in range(d) if t != s)
                for s, axis in enumerate(axes)
            )
            half = axes[j].half * axes[m].half
            bounds[j, m] = bounds[m, j] = (float(total.item()) + rest) / half * UP
    return bounds


class _Axis:
    """The weights along one axis, expanded: kept (n + 1, p) are the coefficients that are summed."""

    def __init__(self, atom: GridAtom, axis: int, low: float, high: float) -> None:
        slopes, offsets = (array.astype(np.float64) for array in atom.axes[axis])
        self.half = (high - low) / 2
        self.reach = float(np.ptp(slopes)) / 2 * self.half * UP
        largest = atom.max_value
        if self.reach == 0:
            table, self.far = np.full((3, len(slopes)), 0.0), np.zeros(3)
            table[0] = np.exp(offsets - offsets.max()) / np.exp(offsets - offsets.max()).sum()
        else:
            sine = STEEP / self.reach / UP
            rho = min(sine + math.hypot(sine, 1.0), LARGEST_RHO) / UP
            count = self._count(rho, largest)
            table = chebyshev_coefficients(
                slopes.tobytes(), offsets.tobytes(), float(atom.origins[axis]), low, high, count
            )
            self.far = np.array([_beyond(rho, count, q) for q in range(3)]) * largest
        values = np.moveaxis(atom.values.astype(np.float64), axis, 0).reshape(len(slopes), -1)
        beta = np.abs(table @ values).max(axis=1)
        beta = beta + 4 * (len(slopes) + 8) * _UNIT * (np.abs(table) @ np.abs(values)).max(axis=1)
        self.degrees = np.arange(len(table))
        beyond = np.stack([np.append(np.cumsum((self.growth(q) * beta)[::-1])[::-1][1:], 0.0) for q in range(3)])
        small = np.flatnonzero(beyond[2] <= _SMALL * max(beta[1:].max(initial=0.0), 1e-12 * largest))
        n = max(2, int(small[0]) if len(small) else len(table) - 1)
        self.kept, self._tails = table[: n + 1], beyond[:, n] + self.far
        self._sums = [float((self.growth(q)[: n + 1] * np.abs(self.kept).sum(axis=1)).sum()) * UP for q in range(3)]

    def _count(self, rho: float, largest: float) -> int:
        for count in range(32, MAX_COEFFICIENTS + 1, 16):
            if _beyond(rho, count, 2) * max(largest, 1e-300) <= 1e-4 * min(1.0, largest):
                return count
        raise AnchorheadError("the grid is too steep to bound its second derivatives: use a larger error")

    def growth(self, order: int) -> Float[np.ndarray, " degrees"]:
        """d(i; q): the largest |T_i|, |T_i'|, |T_i''| on [-1, 1]."""
        i = self.degrees.astype(np.float64)
        return (np.ones_like(i), i**2, i**2 * (i**2 - 1) / 3)[order]

    def tail(self, order: int) -> float:
        return float(self._tails[order]) * UP

    def sums(self, order: int) -> float:
        return self._sums[order]

    def weights(self, order: int) -> float:
        return (1.0, 2 * self.reach, 2 * self.reach**2)[order] * UP


def _beyond(rho: float, count: int, order: int) -> float:
    """sum_{i > N} of d(i; q) 2 S rho^-i, twice: what lies beyond N, and what aliasing moves below."""
    power = 2 * order
    ratio = (1 + 1 / count) ** power / rho
    if ratio >= 1:
        return math.inf
    first = (count + 1.0) ** power * rho ** -(count + 1.0)
    return 4 / math.cos(STEEP * UP) * first / (1 - ratio) * UP
