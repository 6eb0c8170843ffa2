"""A softmax over a tensor grid of anchors: what is stored, its values at points, and how smooth it is.

Along one axis the weights are w_k(x) = e^(a_k x + g_k) / sum_i e^(a_i x + g_i). Let a' be the middle of the slopes and
R = max |a_k - a'|. Multiplied by e^(-a' z), every term of the denominator at z = x + iy has a real part of at least
cos(R y) times its size, so w is analytic for R |y| < pi/2 and sum_k |w_k(z)| <= 1 / cos(R y).

Lemma. Let I interpolate along this axis at n Chebyshev points of [c - h, c + h], with s = CIRCLE / (R h) and rho = s +
sqrt(s^2 + 1). A head whose values lie within V of their middle then obeys

    |r - I r| <= 4 V / cos(CIRCLE) rho^(1 - n) / (rho - 1).

Proof. The ellipse of parameter rho reaches |y| <= h (rho - 1/rho) / 2 = h s, and R h s = CIRCLE < pi/2. Weights of the
other axes are convex. So r less the middle is at most M = V / cos(CIRCLE) there, its Chebyshev coefficients at most
2 M rho^(-k), and interpolation takes T_k, k >= n, to 0 or to plus or minus one of lower degree, and keeps all below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from flint import arb, arb_mat

from anchorhead.verify.balls import above, exact
from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.grids.polynomial import as_array, chebyshev_points, product
from anchorhead.verify.rounding import SLACK

CIRCLE = 1.45
MAX_DEGREE = 600
MAX_AXES = 4
MAX_ANCHORS = 200_000


Box = list[tuple[float, float]]


class Unsettled(NotVerified):
    """A bound that may hold, and takes too much work, or another way, to show."""


def halves(box: Box, axis: int) -> list[Box]:
    low, high = box[axis]
    middle = low / 2 + high / 2
    if not low < middle < high:
        raise Unsettled(f"a bound on a grid does not follow near {shown(box)}")
    return [[*box[:axis], half, *box[axis + 1 :]] for half in ((low, middle), (middle, high))]


def shown(box: Box) -> str:
    return ", ".join(f"[{low:.6g}, {high:.6g}]" for low, high in box)


@dataclass(frozen=True, eq=False)
class Grid:
    """What is stored: slopes and offsets of the anchors along each axis, of inputs less the origins; and a value
    at each of the p_1 x … x p_d anchors. All float64 arrays of numbers of the dtype.

    wrong   how far logits along each axis may be off beyond the rounding of one input's; () where they are not
    """

    axes: Sequence[tuple[np.ndarray, np.ndarray]]
    origins: np.ndarray
    values: np.ndarray
    wrong: tuple[np.ndarray, ...] = ()

    def check(self) -> None:
        sides = tuple(len(slopes) for slopes, _ in self.axes)
        shapes = self.values.shape == sides and len(self.origins) == len(sides)
        pairs = all(slopes.shape == offsets.shape == (len(slopes),) for slopes, offsets in self.axes)
        require(shapes and pairs and 1 <= len(sides) <= MAX_AXES, "a grid whose arrays do not fit together")
        require(0 < self.values.size <= MAX_ANCHORS, f"a grid of {self.values.size} values")
        numbers = [self.origins, self.values, *(array for pair in self.axes for array in pair)]
        require(all(np.isfinite(array).all() for array in numbers), "a grid with a weight that is not finite")

    def interpolation_errors(self, axis: int, low: float, high: float, allowed: float, most: int) -> np.ndarray:
        """Bounds on |r - I_n r|, n = 0, …, most, on an interval: (1 + |I_n|) times the lemma's for N points, with which
        it is next to nothing, and 2 sum_(n <= k < N) |c_k|, c_k the coefficients of the interpolant at these.

        Weights of the other axes are convex: c_k is no larger than the largest over their anchors.
        """
        half = above((exact(high) - exact(low)) / 2)
        reach = float(np.ptp(self.axes[axis][0])) / 2 * half * SLACK
        if reach == 0:
            return np.zeros(most + 1)
        s = CIRCLE / reach
        rho = (s + math.sqrt(s * s + 1)) / SLACK
        spread = float(np.ptp(self.values)) / 2
        scale = 4 * spread / math.cos(CIRCLE) / (rho - 1) * SLACK if rho > 1 else math.inf
        n = 2 + math.ceil(max(0.0, math.log(max(scale, 1e-300) / allowed)) / math.log(rho)) if scale < math.inf else 0
        if not 0 < n <= MAX_DEGREE:
            return np.full(most + 1, math.inf)
        rest = scale * rho ** (1 - n) * SLACK
        balls = _transform(n) * arb_mat(self.weights(axis, chebyshev_points(low, high, n)).tolist())
        values = np.moveaxis(self.values, axis, 0)
        along, off = product(values.reshape(len(values), -1), [as_array(balls)], allowed / n)
        tail = np.cumsum((np.abs(along) + off).max(axis=1)[::-1])[::-1] * SLACK
        norms = 2 + 2 / math.pi * np.log(np.maximum(np.arange(most + 1), 1)) + 1e-9
        return norms * rest + 2 * np.append(tail, np.zeros(most + 1))[: most + 1]

    def weights(self, axis: int, points: Sequence[arb]) -> np.ndarray:
        """Along one axis at points: balls (points, p)."""
        (slopes, offsets), origin = self.axes[axis], exact(self.origins[axis])
        rows = []
        for point in points:
            at = point - origin
            logits = [exact(a) * at + exact(g) for a, g in zip(slopes, offsets, strict=True)]
            top = max(logits, key=lambda one: float(one.mid()))
            sizes = [(one - top).exp() for one in logits]
            total = sum(sizes, arb(0))
            rows.append([one / total for one in sizes])
        return np.array(rows, dtype=object).reshape(len(points), len(slopes))


@lru_cache(maxsize=16)
def _transform(n: int) -> arb_mat:
    """From values at the zeros of T_n to coefficients."""
    cosines = [(arb.pi() * k / (2 * n)).cos() for k in range(4 * n)]
    rows = [[cosines[i * (2 * k + 1) % (4 * n)] * (2 if i else 1) / n for k in range(n)] for i in range(n)]
    return arb_mat(rows)
