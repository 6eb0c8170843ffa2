"""The theorem about what is computed: a head's value in floating point is within the certificate's bound of the target.

The lemma in computed.v holds for every head and every number of anchors. It weighs every anchor where it counts, as
the certificate does: with weights w_k, a computed logit off by about u (|a_k x| + |z_k|), and 8 u for the exponential,

    |computed - head| <= sum w_k off_k |v_k - f| / sum w_k (1 - off_k) + (p - 1) u |f| + (p + 1) u sum w_k |v_k| + …

so that the right side is a function of x, which CoqInterval bounds on pieces between the places where the largest logit
passes from one anchor to the next. What is left of the certificate's bound goes to the error in exact arithmetic.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from anchorhead.export.coq.pieces import Lines, Piece, pieces_of
from anchorhead.export.coq.proof import joined, small_weights
from anchorhead.export.coq.terms import decimal, dyadic
from anchorhead.heads.atom import Atom, Part
from anchorhead.language.targets import ScalarTarget

FLOATS = {"float64": (-1074, 53), "float32": (-149, 24)}
"""The smallest exponent of a bit, and the bits, of each dtype."""
SAMPLES = 120
"""Points of a piece at which the bound on rounding is looked at, evenly and towards both ends."""
MAX_MOVED = Fraction(1, 4)
"""How far a logit may be off."""
WIDER = Fraction(33, 32)
ROOM = 4e-3
"""Of the rounding, the least that CoqInterval needs beside it."""
TO_ROUNDING, EASY = 0.7, 15
"""Of what is left, how much goes to the proof about rounding: no more than so many times what it takes."""
SPARE_BITS = 30
DEEPEST = 40


@dataclass(frozen=True)
class Shares:
    """Of the result, of the sizes of its terms, and of nothing, what sums, divisions and underflow lose."""

    of_result: Fraction
    of_terms: Fraction
    underflow: Fraction

    @classmethod
    def of(cls, values: np.ndarray, u: Fraction, eta: Fraction) -> Shares:
        p, sizes = len(values), sum(abs(Fraction(float(v))) for v in values)

        def growth(n: int) -> Fraction:
            return (1 + u) ** n - 1

        def lost(n: int) -> Fraction:
            return (2 * p - 1) * (1 + u) ** n * eta

        mass = growth(p - 1) + 8 * (growth(p - 1) * 2 * p * 8 * eta + lost(p - 1))
        little = (1 + growth(p)) * eta * sizes + lost(p)
        return cls(*(above(one) for one in (mass / (1 - mass), growth(p + 1) / (1 - mass), little)))

    @property
    def words(self) -> str:
        return " ".join(map(dyadic, (self.of_result, self.of_terms, self.underflow)))


@dataclass(frozen=True)
class Place:
    """A piece, on which computed logits are at most `beyond` above the line of the gauge.

    mosts    for each anchor how far its logit, relative to the largest, may be off
    scales   for each anchor what u becomes by that: its exponential is off by
             scale (|a x| + |z| + beyond - relative + 8)
    """

    piece: Piece
    beyond: Fraction
    mosts: tuple[Fraction, ...]
    scales: tuple[Fraction, ...]

    @classmethod
    def of(cls, piece: Piece, lines: Lines, u: Fraction, eta: Fraction) -> Place | None:
        """None if logits are off by too much. All is linear in x, so that the ends are the worst places, each term for
        itself, as intervals see them."""
        ends, anchors = (piece.low, piece.high), range(len(lines.slopes))
        relative = [[lines.relative(k, piece.gauges[0], x) for x in ends] for k in anchors]
        wrong = [
            u * ((1 + u) * max(abs(lines.slopes[k] * x) for x in ends) + max(abs(lines.at(k, x)) for x in ends))
            + 3 * eta
            for k in anchors
        ]
        beyond = above(max(max(there) + off for there, off in zip(relative, wrong, strict=True)) * WIDER, 6)
        mosts = tuple(
            above((off * (1 + u) + u * (beyond - min(there)) + eta) * WIDER, 6)
            for there, off in zip(relative, wrong, strict=True)
        )
        if max(beyond, *mosts) > MAX_MOVED:
            return None
        return cls(piece, beyond, mosts, tuple(above((1 + 2 * m) * (1 + 8 * u) * (1 + u) ** 2 * u) for m in mosts))


@dataclass(frozen=True)
class Names:
    """Of what the theorem is about, for one output; goal: what the softmax is near; inside: that x is."""

    suffix: str
    goal: str
    inside: str

    @property
    def part(self) -> str:
        return f"head{self.suffix}_part_1"

    @property
    def f(self) -> str:
        return f"f{self.suffix}"


@dataclass(frozen=True)
class Rounding(ABC):
    """How the rounding of one softmax is bounded, in a dtype, with a bias and with what sums lose."""

    dtype: str
    part: Part
    bias: Fraction
    shares: Shares

    @abstractmethod
    def left(self, bound: float, exact: float) -> float | None:
        """What of the bound is kept for rounding: more than it takes, for CoqInterval. None if that is too much."""

    @abstractmethod
    def proof(self, names: Names, eps: tuple[int, int], prepare: Callable[[Piece], str]) -> list[str]:
        """The lemmas up to computed_everywhere, which holds on all of the interval."""


@dataclass(frozen=True)
class Computed(Rounding):
    """By pieces: the softmax with its line of logits on each, and how large the bound is."""

    places: tuple[Place, ...]
    rounding: float

    @classmethod
    def of(
        cls, form: Atom, output: int, target: ScalarTarget, dtype: str, error: float, cuts: Iterable[float]
    ) -> Computed | None:
        """None for sums of heads and heads with an origin, which the lemma does not know, and for logits that are off
        by too much."""
        if len(form.parts) != 1 or form.origin != 0 or dtype not in FLOATS:
            return None
        emin, bits = FLOATS[dtype]
        u, eta = Fraction(1, 2**bits), Fraction(2) ** (emin - 1)
        whole, bias = form.parts[0], Fraction(float(form.bias[output]))
        part = Part(whole.slopes, whole.offsets, whole.values[:, [output]])
        lines = Lines.of(part, 0.0, error)
        places: list[Place] = []
        for piece in pieces_of(form, output, target.low, target.high, cuts, error, steep=0):
            place = Place.of(piece, lines, u, eta)
            if place is None:
                return None
            places.append(place)
        one = cls(dtype, part, bias, Shares.of(part.values[:, 0], u, eta), tuple(places), 0.0)
        return replace(one, rounding=max(one._rounding(lines, place, target, output, error) for place in places))

    def _rounding(self, lines: Lines, place: Place, target: ScalarTarget, output: int, error: float) -> float:
        """The bound at the worst of some points of a piece, in float64."""
        u, piece = 2.0 ** -FLOATS[self.dtype][1], place.piece
        steps = np.concatenate([np.linspace(0, 1, SAMPLES), np.geomspace(1e-9, 0.5, SAMPLES)])
        steps = np.concatenate([steps, 1 - steps[SAMPLES:]])
        gauge, anchors = piece.gauges[0], range(len(lines.slopes))

        def between(line: Callable[[int, Fraction], Fraction]) -> np.ndarray:
            """What is linear in x, at the points, for each anchor."""
            left, right = (np.array([float(line(k, end)) for k in anchors]) for end in (piece.low, piece.high))
            return left + steps[:, None] * (right - left)

        relative = between(lambda k, x: lines.relative(k, gauge, x))
        tilted, logits = abs(between(lambda k, x: lines.slopes[k] * x)), abs(between(lines.at))
        x = np.clip(float(piece.low) + steps * float(piece.high - piece.low), target.low, target.high)
        goal = target.values(x)[:, output] - float(self.bias)
        values = np.asarray(self.part.values[:, 0], np.float64)
        scales = np.array([float(scale) for scale in place.scales])
        off = scales * (tilted + logits + float(place.beyond) - relative + 8)
        portion = np.exp(np.minimum(relative, 1.0))
        present = (portion * (1 - off)).sum(axis=1)
        shifted = (portion * off * (abs(values - goal[:, None]) + error)).sum(axis=1) / present
        large = (portion * (1 + off) * abs(values)).sum(axis=1) / present
        shares = self.shares
        sums = float(shares.of_result) * (abs(goal) + error + shifted) + float(shares.of_terms) * large
        biased = u * (abs(goal + float(self.bias)) + error) if self.bias else 0.0
        return float(((shifted + sums) * (1 + u) + biased).max()) + float(shares.underflow)

    def left(self, bound: float, exact: float) -> float | None:
        spare = bound - exact - self.rounding
        return None if spare < ROOM * self.rounding else self.rounding + min(EASY * self.rounding, spare * TO_ROUNDING)

    def proof(self, names: Names, eps: tuple[int, int], prepare: Callable[[Piece], str]) -> list[str]:
        places = [(f"computed{names.suffix}_{number}", place) for number, place in enumerate(self.places, start=1)]
        return [
            *(_lemma(self, name, place, names, eps, prepare(place.piece)) for name, place in places),
            f"Lemma computed_everywhere{names.suffix} : forall x, {names.inside} -> computed_at{names.suffix} x.",
            joined([(name, place.piece) for name, place in places]),
        ]


def above(value: Fraction, bits: int = 20) -> Fraction:
    """A number of few bits that is not below value."""
    if value <= 0:
        return Fraction(0)
    step = Fraction(2) ** (value.numerator.bit_length() - value.denominator.bit_length() - bits)
    return math.ceil(value / step) * step


def theorem(
    computed: Rounding,
    suffix: str,
    ends: tuple[float, float],
    eps: tuple[int, int],
    bound: float,
    prepare: Callable[[Piece], str],
) -> str:
    """The statement and its proof, from the one about exact arithmetic; prepare: what is done to the function first."""
    emin, bits = FLOATS[computed.dtype]
    floats, bias = f"({emin}) {bits}", dyadic(computed.bias)
    inside = f"{dyadic(ends[0])} <= x <= {dyadic(ends[1])}"
    names = Names(suffix, f"(f{suffix} x - {bias})" if computed.bias else f"(f{suffix} x)", inside)
    part, f = names.part, names.f
    answer = f"(fl {floats} choice (result + {bias}))" if computed.bias else "result"
    evaluated = (
        f"evaluated (fl {floats} choice) (keys_of {part}) (slope_of {part}) (offset_of {part}) (value_of {part}) x\n"
        f"    (four_ulp {floats}) z e q top mass result"
    )
    claim, anchors = f"Rabs ({answer} - {f} x) <= {dyadic(bound)}", len(computed.part.slopes)
    return "\n".join(
        [
            f"(* As {computed.dtype} computes it, with exp within 4 units in the last place. *)",
            f"Definition computed_at{suffix} (x : R) : Prop := forall choice z e q top mass result, {inside} ->",
            f"  {evaluated} ->\n  {claim}.\n",
            f"Lemma near{suffix} : forall x, {inside} -> Rabs (mean {part} x - {names.goal}) <= {decimal(*eps)}.",
            f"Proof. intros x inside. replace (mean {part} x - {names.goal}) with (head{suffix} x - {f} x)",
            f"    by (unfold head{suffix}; ring). exact (within{suffix} x inside).\nQed.\n",
            f"Lemma shares{suffix} : shares_hold {floats} {part} {computed.shares.words}.",
            f"Proof. shares_of {part} {anchors}%nat {anchors}%Z. Qed.\n",
            *computed.proof(names, eps, prepare),
            f"Theorem computed_within{suffix} : forall choice x z e q top mass result, {inside} ->",
            f"  {evaluated} ->\n  {claim}.",
            "Proof. intros choice x z e q top mass result inside.",
            f"  exact (computed_everywhere{suffix} x inside choice z e q top mass result inside).\nQed.\n",
        ]
    )


def _lemma(computed: Computed, name: str, place: Place, names: Names, eps: tuple[int, int], prepare: str) -> str:
    """The lemma about one piece."""
    emin, bits = FLOATS[computed.dtype]
    part, piece = computed.part, place.piece
    gauge, reach = piece.gauges[0], max(abs(piece.low), abs(piece.high))
    line = f"{dyadic(float(part.slopes[gauge]))} {dyadic(float(part.offsets[gauge]))} {dyadic(place.beyond)}"
    farthest = max(abs(float(a)) * float(reach) + abs(float(b)) for a, b in zip(part.slopes, part.offsets, strict=True))
    digits = SPARE_BITS + math.ceil(math.log2(1 + farthest))
    scales, mosts = (f"[{'; '.join(map(dyadic, numbers))}]" for numbers in (place.scales, place.mosts))
    small = small_weights([part], piece, "x")
    close = "apply biased_close; [reflexivity|]. " if computed.bias else ""
    return f"""Lemma {name} : forall x, {dyadic(piece.low)} <= x <= {dyadic(piece.high)} -> computed_at{names.suffix} x.
Proof.
  intros x on_the_piece choice z e q top mass result inside computed.
  eapply Rle_trans.
  {{ {close}apply (computed_close ({emin}) {bits} choice eq_refl {names.part} {scales} x z e q top mass result
      {line} {names.goal} {decimal(*eps)} {computed.shares.words} computed (near{names.suffix} x inside)).
    - unfold unit_of; split; interval with (i_prec 60).
    - exact shares{names.suffix}.
    - interval with (i_prec 60).
    - clear computed. unfold {names.part}. each_anchor ({mosts}) {digits + bits}%positive.
    - clear computed. write_out {names.part}. {small}
      interval with (i_prec {digits}). }}
  clear computed. write_out {names.part}. {small}
  unfold {names.f}. {prepare}
  all: first [impossible | interval with (i_bisect x, i_prec {digits}, i_depth {DEEPEST})].
Qed.
"""
