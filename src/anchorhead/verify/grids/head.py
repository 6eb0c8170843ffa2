"""A softmax over a tensor grid of anchors, as polynomials on small boxes.

Along one axis the weights are w_k(x) = e^(a_k x + g_k) / sum_i e^(a_i x + g_i). Let a' be the middle of the slopes and
R = max |a_k - a'|. Multiplied by e^(-a' z), every term of the denominator at z = x + iy has a real part of at least
cos(R y) times its size, so w is analytic for R |y| < pi/2 and sum_k |w_k(z)| <= 1 / cos(R y). Hence, by Cauchy on the
circle of radius rho around a real c (applied to sum_k s_k w_k, |s_k| = 1), the Taylor coefficients b_ik at c obey

    sum_k |b_ik| <= 1 / (cos(R rho) rho^i),

and all beyond N change sum_k s_k w_k on [c - h, c + h] by at most (h/rho)^(N+1) / (1 - h/rho) / cos(R rho). Those up to
N are a quotient of exponential series, in balls, turned into Chebyshev polynomials of (x - c) / h. Weights of the axes
that have not been expanded yet are convex: whatever is dropped counts at most its largest value over their anchors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from flint import arb, arb_mat, fmpz

from anchorhead.verify.balls import above, exact, size
from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.rounding import OWN_UNIT, SLACK

CIRCLE = 1.45
"""R rho: the circle stays within pi/2, where the weights are analytic."""
REACH = 1.1
"""R h of a box is at most this."""
MAX_DEGREE = 400
MAX_PIECES = 20_000
MAX_AXES = 4
MAX_ANCHORS = 200_000


@dataclass(frozen=True, eq=False)
class Grid:
    """What is stored: slopes and offsets of the anchors along each axis, of inputs less the origins; values of m
    entries at each of the p_1 x … x p_d anchors; and a bias. All float64 arrays of numbers of the dtype.

    wrong   along each axis, how far logits may be off beyond the rounding of their own sums; none: nowhere
    """

    axes: Sequence[tuple[np.ndarray, np.ndarray]]
    origins: np.ndarray
    values: np.ndarray
    bias: np.ndarray
    wrong: tuple[np.ndarray, ...] = ()
    _known: dict[tuple[int, float, float], tuple[np.ndarray, np.ndarray, float]] = field(default_factory=dict)

    def check(self) -> None:
        sides = tuple(len(slopes) for slopes, _ in self.axes)
        shapes = self.values.shape == (*sides, len(self.bias)) and len(self.origins) == len(sides)
        pairs = all(slopes.shape == offsets.shape == (len(slopes),) for slopes, offsets in self.axes)
        require(shapes and pairs and 1 <= len(sides) <= MAX_AXES, "a grid whose arrays do not fit together")
        require(0 < self.values.size <= MAX_ANCHORS, f"a grid of {self.values.size} values")
        numbers = [self.origins, self.values, self.bias, *(array for pair in self.axes for array in pair)]
        require(all(np.isfinite(array).all() for array in numbers), "a grid with a weight that is not finite")

    def reach(self, axis: int) -> float:
        """R: half the range of the slopes."""
        return float(np.ptp(self.axes[axis][0])) / 2 * SLACK

    def pieces(self, axis: int, low: float, high: float) -> list[tuple[float, float]]:
        """The interval cut so that R h <= REACH on each piece."""
        count = max(1, math.ceil(min((high - low) / 2 * self.reach(axis) / REACH, 1e18)))
        require(count <= MAX_PIECES, f"a grid so steep that [{low:g}, {high:g}] takes {count:.3g} pieces")
        cuts = np.linspace(low, high, count + 1)
        return list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))

    def coefficients(self, axis: int, low: float, high: float, allowed: float) -> tuple[np.ndarray, np.ndarray, float]:
        """Chebyshev coefficients (n + 1, p) of the weights on [low, high], as balls and rounded, and the rest."""
        place = axis, low, high
        if place not in self._known or self._known[place][2] > allowed:
            found, rest = _coefficients(*self.axes[axis], float(self.origins[axis]), low, high, allowed)
            self._known[place] = (
                found,
                found.astype(np.float64),
                rest + float(np.asarray(_RADII(found), np.float64).sum()),
            )
        return self._known[place]


def _coefficients(
    slopes: np.ndarray, offsets: np.ndarray, origin: float, low: float, high: float, allowed: float
) -> tuple[np.ndarray, float]:
    middle = (exact(slopes.max()) + exact(slopes.min())) / 2
    reach = above((exact(slopes.max()) - exact(slopes.min())) / 2)
    centre = low / 2 + high / 2
    h = max(above(exact(high) - centre), above(exact(centre) - low))
    share = h * reach / CIRCLE * SLACK
    require(share < 1, f"a piece [{low:g}, {high:g}] on which slopes differ by too much")
    scale = 1 / math.cos(CIRCLE) / (1 - share) * SLACK
    degree = 0 if reach == 0 else max(2, math.ceil(math.log(allowed / scale) / math.log(max(share, 1e-30))))
    if degree > MAX_DEGREE:
        raise NotVerified(f"weights on [{low:g}, {high:g}] need degree {degree}")
    at = exact(centre) - exact(origin)
    logs = slopes * float(at) + offsets
    top = int(logs.argmax())
    sizes = [
        ((exact(a) - slopes[top]) * at + (exact(g) - offsets[top])).exp() for a, g in zip(slopes, offsets, strict=True)
    ]
    steps = [(exact(a) - middle) * h for a in slopes]
    rows = [sizes]
    for i in range(1, degree + 1):
        rows.append([e * step / i for e, step in zip(rows[-1], steps, strict=True)])
    total = [sum(row, arb(0)) for row in rows]
    inverse = [1 / total[0]]
    for i in range(1, degree + 1):
        inverse.append(-sum((total[k] * inverse[i - k] for k in range(1, i + 1)), arb(0)) / total[0])
    falling = [*reversed(inverse), *([arb(0)] * degree)]
    toeplitz = arb_mat([falling[degree - i : 2 * degree + 1 - i] for i in range(degree + 1)])
    found = _to_chebyshev(degree) * (toeplitz * arb_mat(rows))
    rest = scale * share ** (degree + 1) if reach > 0 else 0.0
    return np.array(found.entries(), dtype=object).reshape(degree + 1, len(slopes)), rest * SLACK


@lru_cache(maxsize=16)
def _to_chebyshev(degree: int) -> arb_mat:
    """From coefficients of t^i to those of T_j: t^i = 2^(1-i) sum_j binomial(i, (i-j)/2) T_j, halved for j = 0."""
    rows: list[list[Any]] = [[0] * (degree + 1) for _ in range(degree + 1)]
    for i in range(degree + 1):
        for j in range(i % 2, i + 1, 2):
            rows[j][i] = arb(fmpz(math.comb(i, (i - j) // 2))) * arb(2) ** (1 - i - (j == 0))
    return arb_mat(rows)


@dataclass(frozen=True, eq=False)
class Expanded:
    """A tensor (n_1, …, n_j, p_(j+1), …, p_d, m): Chebyshev coefficients along the first j axes, values along others.

    error   how far the function may be from it: what was dropped, and rounding
    """

    tensor: np.ndarray
    axes: int
    error: float

    @property
    def radii(self) -> float:
        """Of all coefficients together, where they are balls."""
        return (
            0.0 if self.tensor.dtype == np.float64 else float(np.asarray(_RADII(self.tensor), np.float64).sum()) * SLACK
        )

    def along_next(self, matrix: np.ndarray, rest: float, largest: float, allowed: float) -> Expanded:
        """With the weights of one axis more expanded: (n, p) coefficients, of which those that matter little are left
        out.

        Sums of |coefficients| over expanded axes and maxima over the others bound the function.
        """
        exactly = matrix.dtype == object and self.tensor.dtype == object
        tensor = np.moveaxis(np.tensordot(matrix, self.tensor, axes=(1, self.axes)), 0, self.axes)
        sizes = np.abs(tensor) if tensor.dtype == np.float64 else np.asarray(_SIZES(tensor), np.float64)
        inner = tuple(range(self.axes))
        outer = tuple(range(self.axes + 1, tensor.ndim))
        weight = sizes.sum(axis=inner).max(axis=tuple(i - self.axes for i in outer)) * SLACK
        beyond = np.cumsum(weight[::-1])[::-1]
        kept = max(1, int((beyond > allowed).sum()))
        dropped = float(beyond[kept]) if kept < len(beyond) else 0.0
        error = self.error + dropped + rest * largest * 1.01
        if not exactly:
            spread = np.tensordot(np.abs(matrix), np.abs(self.tensor), axes=(1, self.axes))
            error += (matrix.shape[1] + 8) * OWN_UNIT * float(spread.sum()) * SLACK
        return Expanded(np.take(tensor, range(kept), axis=self.axes), self.axes + 1, error * SLACK)


_SIZES = np.frompyfunc(size, 1, 1)
_RADII = np.frompyfunc(lambda ball: above(ball.rad()), 1, 1)
