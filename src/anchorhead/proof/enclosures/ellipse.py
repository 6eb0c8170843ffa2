"""The largest |f| on an interval, f analytic, from a few values and a bound on an ellipse around it.

Let f be real on [a, b] and analytic on the closed Bernstein ellipse with parameter rho > 1: foci a and b,
half axes (rho + 1/rho)/2 and (rho - 1/rho)/2 times (b - a)/2. Let |f| <= M there. Map [a, b] to [-1, 1].

1. f = sum_k a_k T_k with |a_k| <= 2 M rho^-k: a_k is the mean of 2 f((u + 1/u)/2) u^-k over |u| = rho.
2. Let q be the polynomial of degree n that agrees with f at x_j = cos(j pi / n), j = 0 … n. At these points
   T_k equals some T_i with i <= n, so q = sum_{k<=n} a_k T_k + sum_{k>n} a_k T_i(k), hence

       |f - q| <= 2 sum_{k>n} |a_k| <= E = 4 M rho^-n / (rho - 1).

3. With values y_j in place of f(x_j), |y_j - f(x_j)| <= e, the polynomial p through the y_j obeys |q - p| <=
   2 n e: the weights of the y_j, B_ij below, add up to at most 2n. (Truly 1 + (2/pi) ln(n + 1), but e is as
   small as we like.)
4. (Ehlich and Zeller.) Let |p| attain its largest value P at cos t0, where p(cos t0) = P without loss. A
   cosine polynomial of degree n with |.| <= P obeys p(cos t) >= P cos(n (t - t0)) for |t - t0| <= pi/n (M.
   Riesz). One of t_i = i pi / (K n), i = 0 … K n, lies within pi/(2 K n) of t0, hence P <= max_i |p(cos t_i)|
   / cos(pi / (2K)).

Together:  sup |f| <= max_i |p(cos t_i)| / cos(pi / (2K)) + 2 n e + E.

f is evaluated in n + 1 points only: the K n + 1 values of p come from a matrix in floating point, whose
rounding is small relative to max |y_j| and is bounded below.

M is found by covering the ellipse with rectangles and enclosing f on each. The whole of the ellipse is
covered and not its boundary alone: enclosures by analytic primitives that are finite prove f analytic there,
and a pole inside cannot hide. The upper half is enough: the rectangles at the real axis reach below it, so f
is analytic around the axis, real on it (it is so on [a, b]), and by reflection f(conj z) = conj f(z) is the
continuation to the lower half.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from flint import acb, arb, fmpq
from jaxtyping import Float

from anchorhead.language.expressions.precision import precision
from anchorhead.proof.enclosures.balls import lower, upper

Enclosure = Callable[[acb], acb]
"""f(z) encloses an analytic function on the ball z, or is not finite where it cannot."""

RHO = 3.0
DEGREES = (8, 12, 16, 24, 32, 48, 64)
# A little more than (rho + 1/rho)/2 and (rho - 1/rho)/2, so that floats can tell what lies outside; dyadic,
# so that halving is exact.
_HALF_AXES = (1.671875, 1.34375)
_BUDGET = 160
_ROUNDED_UP = 1 + 1e-12  # more than ten or so operations on positive floats can lose
_TINY = 1e-300  # more than underflow can lose


@dataclass(frozen=True)
class CellBound:
    """What is known of |f| on a cell.

    bound   |f| <= bound on the cell
    blur    the part of it that is due to the widths of the values, 2 n e
    points  where |f| may be largest, each with a lower bound of |f| there
    """

    bound: float
    blur: float
    points: tuple[tuple[arb, float], ...]


def bound_on_cell(f: Enclosure, a: arb, b: arb, remainder: float, oversampling: int) -> CellBound | None:
    """A bound of |f| on the cell [a, b] with E <= remainder, or None if no degree at hand achieves that.

    `oversampling` is K above: the bound exceeds the largest value by the factor 1/cos(pi / (2K)), and by 2 n
    e + E.
    """
    centre, half = (a + b) / 2, (b - a) / 2
    largest = remainder * (RHO - 1) * RHO ** DEGREES[-1] / 4 / _ROUNDED_UP
    ellipse = bound_on_ellipse(f, centre, half, largest)
    if ellipse is None:
        return None
    degree = next(n for n in DEGREES if _remainder(ellipse, n) <= remainder or n == DEGREES[-1])
    nodes = [centre + half * arb.cos_pi_fmpq(fmpq(j, degree)) for j in range(degree + 1)]
    values = [f(acb(x)).real for x in nodes]
    floats = np.array([float(y.mid()) for y in values])
    error = max(upper(abs(y - arb(float(mid)))) for y, mid in zip(values, floats, strict=True))
    if not math.isfinite(error):
        return None
    fine = np.abs(cardinal(degree, oversampling) @ floats)
    rounding = 5 * (degree + 4) ** 2 * 2.0**-53 * float(np.abs(floats).max())
    blur = 2 * degree * error
    peak = int(fine.argmax())
    at = centre + half * arb.cos_pi_fmpq(fmpq(peak, oversampling * degree))
    best = int(np.abs(floats).argmax())
    points = [(nodes[best], lower(abs(values[best]))), (at, lower(abs(f(acb(at)).real)))]
    bound = (float(fine[peak]) + rounding) / math.cos(math.pi / (2 * oversampling)) + blur + _remainder(ellipse, degree)
    return CellBound(bound * _ROUNDED_UP + _TINY, blur, tuple(points))


def _remainder(largest: float, degree: int) -> float:
    """E = 4 M rho^-n / (rho - 1), not rounded down."""
    return 4 * largest * RHO**-degree / (RHO - 1) * _ROUNDED_UP


def bound_on_ellipse(f: Enclosure, centre: arb, half: arb, largest: float) -> float | None:
    """M with |f| <= M <= largest on the ellipse around centre ± half, or None if no covering shows it."""
    width, height = _HALF_AXES
    stack = [
        (x * width / 2, y * height / 2, width / 4, height / 4, 0) for y in (0.5, 1.5) for x in (-1.5, 1.5, -0.5, 0.5)
    ]
    bound, evaluations = 0.0, 0
    while stack:
        x, y, dx, dy, depth = stack.pop()
        if math.hypot(max(abs(x) - dx, 0) / width, (y - dy) / height) > 1:
            continue
        below = dy / 8 if y == dy else 0.0
        z = acb(centre + half * arb(x, dx), half * arb(y - below, dy + below))
        size = upper(abs(f(z)))
        evaluations += 1
        if size <= largest:
            bound = max(bound, size)
        elif depth == 3 or evaluations > _BUDGET:
            return None
        else:
            dx, dy = dx / 2, dy / 2
            stack += [(x + i * dx, y + j * dy, dx, dy, depth + 1) for i in (-1, 1) for j in (-1, 1)]
    return bound


@lru_cache(maxsize=32)
def cardinal(degree: int, oversampling: int) -> Float[np.ndarray, "fine nodes"]:
    """The matrix B from values y_j at cos(j pi / n) to the values of their polynomial at cos(i pi / (K n)).

        B_ij = (2/n) h_j sum_k h_k cos(k j pi / n) cos(k i pi / (K n)),   h = 1/2 at 0 and n, otherwise 1

    The cosines are rounded from balls, |error| <= u = 2^-53, and |B_ij| <= 2 h_j, because sum_k h_k = n. So
    |B^_ij - B_ij| <= 1.01 (2n + 14) u, for any order of summation, and the rounding of B^ y is at most 1.02
    (n + 1) (4n + 16) u max|y| <= 5 (n + 4)^2 u max|y|.
    """
    return cosines(degree, oversampling) @ transform(degree)


@lru_cache(maxsize=64)
def transform(n: int) -> Float[np.ndarray, "{n+1} {n+1}"]:
    """From values at cos(k pi / n) to Chebyshev coefficients."""
    k = np.arange(n + 1)
    h = np.where((k == 0) | (k == n), 0.5, 1.0)
    return _table(n)[np.outer(k, k) % (2 * n)] * h * (h[:, None] * (2 / n))


@lru_cache(maxsize=64)
def cosines(degree: int, oversampling: int) -> Float[np.ndarray, "_ {degree+1}"]:
    """T_k(cos(i pi / (K n)))."""
    fine = degree * oversampling
    return _table(fine)[np.outer(np.arange(fine + 1), np.arange(degree + 1)) % (2 * fine)]


@lru_cache(maxsize=64)
def _table(half_period: int) -> Float[np.ndarray, " period"]:
    """cos(i pi / half_period) for a whole period, each right to 2^-53."""
    with precision(80):
        return np.array([float(arb.cos_pi_fmpq(fmpq(i, half_period))) for i in range(2 * half_period)])
