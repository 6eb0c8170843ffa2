"""erf in Coq: the integral of e^(-u^2) from 0 to t as a polynomial on each of a few intervals, one after another.

On an interval with middle m the polynomial is the integral of an interpolant of e^(-t^2) at Chebyshev points. The error
at one end is that of the neighbour nearer to 0, where the integral is 0; inside it grows by at most the interval's
length times the largest difference of slopes, e^(-t^2) against the interpolant, which CoqInterval bounds. Far out,
where e^(-t^2) is next to nothing, a constant serves; below 0 the integral is minus that of -t.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from flint import arb
from numpy.polynomial import Chebyshev, Polynomial

from anchorhead.errors import AnchorheadError
from anchorhead.export.coq.terms import FROM_THE_INTEGRAL, decimal, dyadic, term
from anchorhead.language.expressions.expression import postorder
from anchorhead.language.targets import Expression

OVERLAP = Fraction(1, 64)
"""How far the polynomials reach beyond their intervals: arguments end where they do only nearly."""
FARTHEST = 64.0
"""The largest |t|."""
CLOSEST = 1e-13
"""The smallest error of a polynomial: its coefficients are computed in float64."""
SCAN = 2049
"""Points among which crossings are looked for."""
CELLS = 32
"""Into which an interval is divided to enclose an argument."""
SHARE = 1e-3
"""Of the head's error, for what polynomials are off by."""


@dataclass(frozen=True)
class Stretch:
    """An interval of t with its polynomial: [low, high], coefficients in t - middle, and the error."""

    name: str
    low: Fraction
    high: Fraction
    middle: Fraction
    coefficients: tuple[float, ...]
    slope_error: tuple[int, int]
    error: tuple[int, int]
    nearer: Stretch | None

    @property
    def start(self) -> Fraction:
        """The point nearest to 0 that is its own; the neighbour knows it, too."""
        return self.low + OVERLAP

    def holds(self, low: Fraction, high: Fraction) -> bool:
        return self.low <= low and high <= self.high


def integrals(root: Expression) -> tuple[Expression, ...]:
    """The arguments of every erf and erfc, each once."""
    return tuple({node.args[0]: None for node in postorder(root) if node.op in FROM_THE_INTEGRAL})


def enclosed(u: Expression, variable: str, low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
    """An enclosure of u on an interval, from its cells."""
    half = (high - low) / (2 * CELLS)
    found = [
        u.ball({variable: arb(float(low + (2 * k + 1) * half), float(half) * (1 + 1e-9) + 1e-300)})
        for k in range(CELLS)
    ]
    if not all(one.is_finite() and float(one.abs_upper()) <= FARTHEST for one in found):
        raise AnchorheadError(
            f"the argument of erf({u}) reaches beyond {FARTHEST:g}, or is not enclosed: it cannot be exported to Coq; "
            "give a smaller interval"
        )
    return min(Fraction(float(one.lower())) for one in found), max(Fraction(float(one.upper())) for one in found)


def grid(farthest: Fraction, error: float) -> list[Fraction]:
    """Where stretches end, from 0 on: at integers as long as e^(-t^2) counts."""
    flat = math.ceil(math.sqrt(max(1.0, math.log(8 * (float(farthest) + 1) / error))))
    return [Fraction(t) for t in range(flat + 1) if t == 0 or t < farthest] + [farthest]


def cuts(u: Expression, variable: str, low: float, high: float, ends: Sequence[Fraction]) -> list[float]:
    """Where u passes an end of a stretch, nearly."""
    x = np.linspace(low, high, SCAN)
    found = []
    for end in ends:
        above = u.values({variable: x}) > float(end)
        for k in np.flatnonzero(above[1:] != above[:-1]):
            left, right = float(x[k]), float(x[k + 1])
            for _ in range(30):
                middle = (left + right) / 2
                if bool(u.values({variable: np.array(middle)}) > float(end)) == bool(above[k]):
                    left = middle
                else:
                    right = middle
            found.append(float(np.float32(left)))
    return found


def stretches(ends: Sequence[Fraction], error: float, suffix: str) -> list[Stretch]:
    """Stretches between ends, from 0 outwards, each within the error."""
    share = max(error / (len(ends) + 1), CLOSEST)
    found: list[Stretch] = []
    for number, (start, end) in enumerate(pairwise(ends), start=1):
        a, b = start - OVERLAP, end + OVERLAP
        middle = Fraction(round((a + b) / 2 * 64), 64)
        slope, allowed = (_rounded_up(float(Fraction(share) * part)) for part in (1 / (2 * (b - a)), number))
        coefficients = _coefficients(a, b, middle, slope)
        nearer = found[-1] if found else None
        found.append(Stretch(f"gauss{suffix}_{number}", a, b, middle, coefficients, slope, allowed, nearer))
    return found


def _coefficients(low: Fraction, high: Fraction, middle: Fraction, slope: tuple[int, int]) -> tuple[float, ...]:
    """The integral of the interpolant of least degree that is within half the error of the slope; at the middle it has
    the value of the integral of e^(-t^2) itself."""
    a, b, m = float(low), float(high), float(middle)
    t = np.linspace(a, b, 401)
    degree = 0
    fit = Chebyshev.interpolate(lambda s: np.exp(-(s**2)), degree, domain=[a, b])
    while np.abs(fit(t) - np.exp(-(t**2))).max() > 0.4 * slope[0] * 10.0 ** slope[1] and degree < 40:
        degree += 1
        fit = Chebyshev.interpolate(lambda s: np.exp(-(s**2)), degree, domain=[a, b])
    local = fit.convert(kind=Polynomial, domain=[m - 1, m + 1], window=[-1, 1])
    return tuple(float(c) for c in local.integ(k=[0.0]).coef + np.eye(1, degree + 2)[0] * _gauss(m))


def _gauss(t: float) -> float:
    return math.sqrt(math.pi) / 2 * math.erf(t)


def _rounded_up(value: float) -> tuple[int, int]:
    """Four digits, not below value: (digits, exponent)."""
    exponent = math.floor(math.log10(value)) - 3
    return math.ceil(value / 10.0**exponent * (1 - 1e-12)), exponent


def lemmas(stretch: Stretch) -> str:
    """The definition of a stretch's polynomial, and the lemma that the integral is near it."""
    polynomial = "; ".join(dyadic(c) for c in stretch.coefficients)
    name, at = stretch.name, dyadic(stretch.start)
    low, high = dyadic(stretch.low), dyadic(stretch.high)
    slope, error = decimal(*stretch.slope_error), decimal(*stretch.error)
    bits = max(50, 20 - math.floor(math.log2(stretch.slope_error[0] * 10.0 ** stretch.slope_error[1])))
    here = f"({error} - {slope} * ({high} - {low}))"
    known = (
        "rewrite gauss_0. unfold horner. interval with (i_prec 80)."
        if stretch.nearer is None
        else f"pose proof ({stretch.nearer.name}_near {at} ltac:(split; interval with (i_prec 60))) as known. "
        f"split_off known. unfold {stretch.nearer.name}, horner. interval with (i_prec 80)."
    )
    return f"""Definition {name} : list R := [{polynomial}].

Lemma {name}_near : forall t, {low} <= t <= {high} ->
  Rabs (gauss t - horner {name} (t - {dyadic(stretch.middle)})) <= {error}.
Proof.
  intros t range. replace {error} with ({here} + {slope} * ({high} - {low})) by ring.
  revert t range. apply (gauss_near {name} {dyadic(stretch.middle)} {low} {high} {at}).
  - split; interval with (i_prec 60).
  - unfold {name}. {known}
  - intros t range. unfold {name}, horner_slope, horner.
    interval with (i_bisect t, i_taylor t, i_prec {bits}, i_degree {len(stretch.coefficients) + 2}, i_depth 30).
Qed.
"""


@dataclass(frozen=True)
class Integrals:
    """All that a function's proof needs of erf.

    arguments  of erf and erfc in it
    cuts       of the function's interval: between them every argument stays on one stretch
    stretches  with their polynomials
    """

    variable: str
    arguments: tuple[Expression, ...]
    cuts: tuple[float, ...]
    stretches: tuple[Stretch, ...]

    @classmethod
    def of(cls, root: Expression, variable: str, low: float, high: float, error: float, suffix: str) -> Integrals:
        arguments = integrals(root)
        if not arguments:
            return cls(variable, (), (), ())
        ranges = [enclosed(u, variable, Fraction(low), Fraction(high)) for u in arguments]
        allowed = SHARE * error / (1 + max(abs(low), abs(high)))
        ends = grid(max(max(-a, b) for a, b in ranges), allowed)
        inner = sorted({*ends[:-1], *(-end for end in ends[:-1])})
        places = [x for u in arguments for x in cuts(u, variable, low, high, inner)]
        return cls(variable, arguments, tuple(places), tuple(stretches(ends, allowed, suffix)))

    def lemmas(self) -> list[str]:
        return [lemmas(stretch) for stretch in self.stretches]

    def tactic(self, low: Fraction, high: Fraction) -> str:
        """What the proof of a piece does first: every integral becomes its polynomial there."""
        if not self.arguments:
            return ""
        lines = ["unfold erfc, erf."]
        for u in self.arguments:
            least, most = enclosed(u, self.variable, low, high)
            below = least + most < 0
            sides = (-most, -least) if below else (least, most)
            stretch = next((one for one in self.stretches if one.holds(*sides)), None)
            if stretch is None:
                raise AnchorheadError(
                    f"the argument of erf({u}) goes from {float(least):.3g} to {float(most):.3g} on "
                    f"[{float(low):.3g}, {float(high):.3g}], too far for one polynomial: it cannot be exported to Coq"
                )
            at = f"(- {term(u)})" if below else term(u)
            lines += [f"rewrite (gauss_odd {term(u)})."] if below else []
            lines.append(f"by_polynomial {stretch.name}_near {at} x. unfold {stretch.name}, horner.")
        return " ".join(lines)
