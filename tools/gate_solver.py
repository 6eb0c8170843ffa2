"""Finds the heads of a gate: phi as a sum and difference of reciprocals of sums of exponentials.

    phi(g) ~ sum_j sign_j f_j(g),   1 / f_j(g) = sum_k e^(b_jk + a_jk g),   a_j0 = 0

Key 0 is the token's own, so f_j = F_j / (1 + sum_(k >= 1) e^(a_jk g + b_jk - b_j0)) with F_j = e^(-b_j0).

Where it starts. With 1 / f_plus the integral of e^(-g t) over t in [0, c], f_plus = g / (1 - e^(-c g)): a line to the
right, nothing to the left. If phi(g) - phi(-g) = g, then f_minus = f_plus - phi is even,

    f_minus(g) = |g| / (e^(c |g|) - 1) - phi(-|g|).

For silu with c = 2 it is g / (2 sinh g), so that 1 / f_minus is the integral over [-1, 1] of e^(g t) dt: silu is a
difference of two such functions exactly, and the heads are quadratures with positive weights. For gelu 1 / f_minus is
not such an integral, but close to one. relu is (g + s) - s on the right, where 1 / (g + s) is the integral of
e^(-s t) e^(-g t); on the left a steep register takes the weight of both heads (`switched`).

How it goes on. Least squares in all a_jk and b_jk together (slopes of f_plus through their logarithms, since they span
scales), errors divided by max(1, |g|); then Lawson's reweighting towards the largest error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.optimize import least_squares, nnls

from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Dtype
from anchorhead.heads.self_keys.gate import GatePart
from anchorhead.language.targets import ScalarTarget, target_of

_FAR = 12.0  # beyond this |g| the bumps of all functions are negligible
_STEEPEST = 64.0  # a slope beyond this would serve a single point
_REWEIGHTINGS = 5


@dataclass(frozen=True, eq=False)
class Terms:
    """1 / f(g) = sum_k e^(b_k + a_k g), a_0 = 0, and the sign with which f counts."""

    a: Float[np.ndarray, " k"]
    b: Float[np.ndarray, " k"]
    sign: float

    @classmethod
    def of(cls, a: Float[np.ndarray, " k"], b: Float[np.ndarray, " k"], sign: float) -> Terms:
        """With the flattest term first, its slope set to 0: that of the own key."""
        own = int(np.abs(a).argmin())
        order = [own, *(k for k in range(len(a)) if k != own)]
        a, b = a[order], b[order]
        a[0] = 0.0
        return cls(a, b, sign)

    @property
    def one_sided(self) -> bool:
        return bool((self.a[1:] < 0).all())

    def reciprocal(
        self, g: Float[np.ndarray, " points"]
    ) -> tuple[Float[np.ndarray, " points"], Float[np.ndarray, "points k"]]:
        """f at some points, and the share of each term in 1 / f."""
        z = g[:, None] * self.a + self.b
        top = z.max(axis=1, keepdims=True)
        e = np.exp(z - top)
        total = e.sum(axis=1)
        return np.exp(-top[:, 0]) / total, e / total[:, None]

    def numbers(self) -> Float[np.ndarray, " unknowns"]:
        """Slopes of the registers (their logarithms, if all are negative) and all b."""
        return np.concatenate([np.log(-self.a[1:]) if self.one_sided else self.a[1:], self.b])

    def changed(self, numbers: Float[np.ndarray, " unknowns"]) -> Terms:
        p = len(self.a) - 1
        slopes = -np.exp(np.minimum(numbers[:p], np.log(_STEEPEST))) if self.one_sided else numbers[:p]
        return Terms(np.concatenate([[0.0], slopes]), numbers[p:], self.sign)

    def part(self, dtype: Dtype) -> GatePart:
        """The head, registers by slope, weights rounded to the dtype."""
        order = np.argsort(self.a[1:]) + 1
        return GatePart.of(self.a[order], self.b[order] - self.b[0], self.sign * float(np.exp(-self.b[0])), dtype)


@dataclass(frozen=True, eq=False)
class GateFit:
    """Terms that make up a gate, and what they achieve at the points.

    error   the largest |phi - sum sign f| / max(1, |g|)
    size    the largest sum |f| / max(1, |g|): a dtype's rounding is this, times some tens of units
    """

    terms: tuple[Terms, ...]
    error: float
    size: float = np.inf

    @property
    def registers(self) -> int:
        return sum(len(one.a) - 1 for one in self.terms)


class GateProblem:
    """phi on [-reach, reach] at points that are close where it bends and even in log |g| far out.

    For relu [0, reach] is enough: heads are `switched` afterwards.
    """

    def __init__(self, function: str, reach: float) -> None:
        target = target_of(function, (-reach, reach))
        if not isinstance(target, ScalarTarget):
            raise AnchorheadError(f"{function!r} is not a named function: a gate needs one")
        if function == "relu":
            points = np.append(np.geomspace(1e-3, reach, 400), 0.0)
        else:
            near, far = min(_FAR, reach), np.geomspace(0.05, reach, 180)
            points = np.concatenate([np.linspace(-near, near, 220), far, -far[::3]])
        self.function, self.reach = function, reach
        self.g = np.unique(points)
        self.values = target.values(self.g)[:, 0]
        self.weights = 1 / np.maximum(1.0, np.abs(self.g))

    def residual(self, terms: Sequence[Terms]) -> Float[np.ndarray, " points"]:
        """(sum sign f - phi) / max(1, |g|)."""
        total = sum((one.sign * one.reciprocal(self.g)[0] for one in terms), -self.values)
        return total * self.weights

    def jacobian(self, terms: Sequence[Terms]) -> Float[np.ndarray, "points unknowns"]:
        """Its derivatives by the numbers of all terms: d f = -f sum_k share_k (g d a_k + d b_k)."""
        columns = []
        for one in terms:
            f, shares = one.reciprocal(self.g)
            by_b = -(one.sign * f * self.weights)[:, None] * shares
            by_a = by_b[:, 1:] * self.g[:, None]
            columns += [by_a * one.a[1:] if one.one_sided else by_a, by_b]
        return np.concatenate(columns, axis=1)

    @np.errstate(all="ignore")
    def fit(self, terms: Sequence[Terms], steps: int = 250) -> GateFit:
        """The best that least squares and reweighting find from a start."""
        best, importance = GateFit(tuple(terms), np.inf), np.ones(len(self.g))
        for round_ in range(_REWEIGHTINGS + 1):
            root = np.sqrt(importance)
            scale = 1e3 if round_ == 0 else 1 / max(best.error, 1e-14)
            terms = self._least_squares(terms, root * scale, steps if round_ == 0 else steps // 8)
            error = np.abs(self.residual(terms))
            worst = float(error.max())
            if not np.isfinite(worst):
                break
            if worst < best.error:
                best = GateFit(tuple(terms), worst)
            importance = importance * (error / worst + 0.01)
            importance /= importance.mean()
        needed = tuple(self._needed(one) for one in best.terms)
        return GateFit(needed, best.error, self.size(needed))

    def size(self, terms: Sequence[Terms]) -> float:
        """The largest sum |f| / max(1, |g|)."""
        return float((sum(one.reciprocal(self.g)[0] for one in terms) * self.weights).max())

    def _least_squares(
        self, terms: Sequence[Terms], factor: Float[np.ndarray, " points"], steps: int
    ) -> tuple[Terms, ...]:
        sizes = [2 * len(one.a) - 1 for one in terms]
        cuts = np.cumsum(sizes)[:-1]

        def unpacked(x: Float[np.ndarray, " unknowns"]) -> tuple[Terms, ...]:
            return tuple(one.changed(numbers) for one, numbers in zip(terms, np.split(x, cuts), strict=True))

        def residual(x: Float[np.ndarray, " unknowns"]) -> Float[np.ndarray, " points"]:
            return np.nan_to_num(self.residual(unpacked(x)) * factor, nan=1e9, posinf=1e9, neginf=-1e9)

        def jacobian(x: Float[np.ndarray, " unknowns"]) -> Float[np.ndarray, "points unknowns"]:
            return np.nan_to_num(self.jacobian(unpacked(x)) * factor[:, None])

        start = np.concatenate([one.numbers() for one in terms])
        options: dict[str, Any] = {"jac": jacobian, "x_scale": "jac", "max_nfev": steps}
        tolerances = dict.fromkeys(("ftol", "xtol", "gtol"), 1e-15)
        return unpacked(least_squares(residual, start, **options, **tolerances).x)

    def _needed(self, one: Terms) -> Terms:
        """Without terms that weigh nothing anywhere: least squares pushes them out of the way."""
        f, shares = one.reciprocal(self.g)
        heavy = (shares * (f * self.weights)[:, None]).max(axis=0) > 1e-18
        heavy[0] = True
        return Terms(one.a[heavy], one.b[heavy], one.sign)


def rising(registers: int, reach: float, steep: float, shift: float = 0.0) -> Terms:
    """g / (1 - e^(-steep g)), or g + shift, as a sum over slopes that are even in their logarithm."""
    slopes = np.geomspace(0.15 / reach, 0.97 * steep, registers)
    edges = np.concatenate([[0.0, slopes[0] / 2], np.sqrt(slopes[1:] * slopes[:-1]), [steep]])
    a = np.concatenate([[0.0], -slopes])
    return Terms(a, np.log(np.diff(edges)) + shift * a, 1.0)


def level(height: float) -> Terms:
    """A constant, to be taken off."""
    return Terms(np.zeros(1), np.array([-np.log(height)]), -1.0)


def switched(terms: Sequence[Terms], steep: float) -> tuple[Terms, ...]:
    """The same for g > 0, and 0 for g < 0: one steep register more in each head.

    With f - h = g for g > 0, both of them about h at 0, and y = c e^(-steep g), the new difference
    f / (1 + y f / h) - h / (1 + y) is about g / (1 + y)^2. The largest distance from max(g, 0) is least for c = 0.4:
    0.24 / steep.
    """
    height = np.exp(-terms[1].b[0])
    return tuple(Terms(np.append(one.a, -steep), np.append(one.b, np.log(0.4 / height)), one.sign) for one in terms)


def line(problem: GateProblem, slopes: Float[np.ndarray, " k"], shift: float) -> Terms:
    """g + shift for g >= 0, by some of the terms with these slopes: the first is 0, the others are negative."""
    f = problem.g + shift
    found = _coefficients(problem.g, f, slopes, problem.weights)
    needed = found > 0
    needed[0] = True
    return Terms(slopes[needed], np.log(np.maximum(found[needed], 1e-9 / f.max())), 1.0)


def bump(problem: GateProblem, slopes: Float[np.ndarray, " k"], steep: float) -> Terms:
    """g / (1 - e^(-steep g)) - phi, an even bump, by terms with these slopes."""
    g = np.linspace(1e-6, 9.0, 400)
    left = target_of(problem.function, (-9.0, 0.0)).values(-g)[:, 0]
    f = np.concatenate([g / np.expm1(steep * g) - left] * 2)
    found = _coefficients(np.concatenate([g, -g]), f, slopes, np.ones(len(f)))
    return Terms.of(slopes, np.log(np.maximum(found, 1e-6 * found.max())), -1.0)


def _coefficients(
    g: Float[np.ndarray, " points"],
    f: Float[np.ndarray, " points"],
    slopes: Float[np.ndarray, " k"],
    weights: Float[np.ndarray, " points"],
) -> Float[np.ndarray, " k"]:
    """c >= 0 with f^2 sum_k c_k e^(slopes_k g) near f, so that the reciprocal of the sum is near f."""
    columns = np.exp(slopes * g[:, None] + 2 * np.log(f)[:, None]) * weights[:, None]
    size = columns.max(axis=0)
    return nnls(columns / size, f * weights, maxiter=100 * len(slopes))[0] / size


def shorter(terms: Sequence[Terms]) -> Iterator[tuple[Terms, ...]]:
    """The same with one register less: two neighbours made one, in every way."""
    for j, one in enumerate(terms):
        for k, other in pairwise(np.argsort(one.a)):
            keep = [i for i in range(len(one.a)) if i not in (k, other)]
            b = np.logaddexp(one.b[k], one.b[other])
            shares = np.exp(one.b[[k, other]] - b)
            a = 0.0 if 0 in (k, other) else float(shares @ one.a[[k, other]])
            merged = Terms(np.append(one.a[keep], a), np.append(one.b[keep], b), one.sign)
            first = len(keep) if 0 in (k, other) else keep.index(0)
            order = [first, *(i for i in range(len(keep) + 1) if i != first)]
            yield (*terms[:j], Terms(merged.a[order], merged.b[order], one.sign), *terms[j + 1 :])


def longer(terms: Sequence[Terms]) -> tuple[Terms, ...]:
    """The rising part reaches further: a register flatter than all others takes half of the own key's share."""
    one = terms[0]
    flattest = np.sort(-one.a[1:])[:2]
    slope = flattest[0] ** 2 / flattest[1] if len(flattest) == 2 else flattest[0] / 3
    b = np.append(one.b, one.b[0] + np.log(0.5))
    b[0] += np.log(0.5)
    return (Terms(np.append(one.a, -slope), b, one.sign), *terms[1:])
