"""Where a proof in Coq cuts the interval, and what it may leave out on each piece.

On a piece the logits of every softmax are taken relative to one anchor, its *gauge*, whose weight becomes 1:

    sum v_k e^(z_k) / sum e^(z_k) = (v_g + sum v_k e^(z_k - z_g)) / (1 + sum e^(z_k - z_g)),      k != g

Cuts are where the largest logit passes steeply from one anchor to the next, so that all relative logits are about 0 or
less, and where a steep relative logit passes below -REACH. Beyond it that weight is a variable between 0 and 2^-bits:
Coq's numbers have no smallest exponent, and adding 1 and e^(-1e10) writes out ten billion zeros. So slopes of any size
cost a few pieces more, each as smooth as any. Nothing here is trusted: what is wrong is not accepted by Coq.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from anchorhead.heads.atom import Atom, Part
from anchorhead.language.analysis.pieces import Pieces

STEEP = 60
"""A change of slope, times the interval's length, from which on a crossing is a cut, unless told otherwise."""
SHARE = 1e-3
"""How much of the error asked for may go to all negligible weights together."""
BESIDE = 2.0**-40
"""How far beside a kink that is not known exactly, relatively."""
FINE = 1 << 10
"""Cuts are on a grid of this fraction of the length on which weights change by a factor e, or of the interval."""


@dataclass(frozen=True)
class Piece:
    """Part of the interval.

    gauges      of each softmax the anchor that logits are relative to
    negligible  of each softmax the anchors that may be left out, and for how small a weight: {anchor: bits}
    """

    low: Fraction
    high: Fraction
    gauges: tuple[int, ...]
    negligible: tuple[dict[int, int], ...]


@dataclass(frozen=True)
class Lines:
    """The logits of a softmax as exact lines slope x + offset, and how far below the gauge weights are negligible."""

    slopes: tuple[Fraction, ...]
    offsets: tuple[Fraction, ...]
    reach: float

    @classmethod
    def of(cls, part: Part, origin: float, allowed: float) -> Lines:
        slopes = tuple(Fraction(float(slope)) for slope in part.slopes)
        offsets = (Fraction(float(b)) - a * Fraction(origin) for a, b in zip(slopes, part.offsets, strict=True))
        largest = float(abs(part.values).max())
        far = (
            4 * largest * len(slopes) / allowed if allowed else 0.0
        )  # without an error it is a constant: nothing is far
        return cls(slopes, tuple(offsets), max(20.0, math.log(far)) if far else 20.0)

    def at(self, anchor: int, x: Fraction) -> Fraction:
        return self.slopes[anchor] * x + self.offsets[anchor]

    def gauge(self, x: Fraction) -> int:
        return max(range(len(self.slopes)), key=lambda anchor: self.at(anchor, x))

    def relative(self, anchor: int, gauge: int, x: Fraction) -> Fraction:
        return self.at(anchor, x) - self.at(gauge, x)

    def crossings(self, low: Fraction, high: Fraction, steep: float) -> Iterable[Fraction]:
        """Where the largest logit passes to another anchor, and the slope changes by more than steep / (high - low)."""
        x, gauge = low, self.gauge(low)
        while True:
            later = [
                ((self.offsets[gauge] - self.offsets[k]) / (slope - self.slopes[gauge]), slope, k)
                for k, slope in enumerate(self.slopes)
                if slope > self.slopes[gauge]
            ]
            later = [(max(at, x), -slope, k) for at, slope, k in later if at < high]
            if not later:
                return
            x, _, following = min(later)
            steepness = self.slopes[following] - self.slopes[gauge]
            if x > low and steepness * (high - low) > steep:
                yield rounded(x, 1 / steepness)
            gauge = following

    def ends_of_reach(self, low: Fraction, high: Fraction) -> Iterable[Fraction]:
        """Where steep relative logits pass below -reach, between two cuts."""
        gauge, reach = self.gauge((low + high) / 2), Fraction(self.reach)
        for anchor, slope in enumerate(self.slopes):
            ends = self.relative(anchor, gauge, low), self.relative(anchor, gauge, high)
            if min(ends) < -3 * reach and max(ends) > -reach:
                steepness = slope - self.slopes[gauge]
                at = (self.offsets[gauge] - self.offsets[anchor] - reach) / steepness
                yield rounded(at, 1 / abs(steepness))

    def negligible(self, gauge: int, low: Fraction, high: Fraction) -> dict[int, int]:
        found = {}
        for anchor in range(len(self.slopes)):
            most = max(self.relative(anchor, gauge, low), self.relative(anchor, gauge, high))
            if anchor != gauge and most <= -self.reach + 1:
                found[anchor] = int((self.reach - 1) / math.log(2)) - 1
        return found


def kink_cuts(pieces: Pieces) -> list[float]:
    """Where the function may change its formula: at a kink that is known exactly, else closely on both sides of it."""
    cuts: list[float] = []
    for kink in pieces.kinks:
        low, high = float(kink.at.lower()), float(kink.at.upper())
        if kink.smooth or low == high:
            cuts.append(low)
        else:
            beside = BESIDE * max(abs(low), abs(high))
            cuts += [low - beside, high + beside]
    return cuts


def rounded(x: Fraction, scale: Fraction) -> Fraction:
    """x on the dyadic grid of about scale / FINE."""
    step = Fraction(2) ** (math.floor(math.log2(scale)) - FINE.bit_length())
    return round(x / step) * step


def pieces_of(
    form: Atom,
    output: int,
    low: float,
    high: float,
    kinks: Iterable[float],
    error: float,
    steep: float = STEEP,
    parts: int = 1,
) -> list[Piece]:
    """The pieces from left to right, for one output of a head and what its error may be; each in so many parts."""
    allowed = SHARE * error / len(form.parts)
    lines = [
        Lines.of(Part(part.slopes, part.offsets, part.values[:, [output]]), form.origin, allowed) for part in form.parts
    ]
    start, end = Fraction(low), Fraction(high)
    cuts = {start, end, *(Fraction(kink) for kink in kinks)}
    for line in lines:
        cuts.update(line.crossings(start, end, steep))
    inside = sorted(cut for cut in cuts if start <= cut <= end)
    for line in lines:
        for left, right in pairwise(inside):
            cuts.update(line.ends_of_reach(left, right))
    inside = sorted(cut for cut in cuts if start <= cut <= end)
    cuts.update(left + (right - left) * Fraction(k, parts) for left, right in pairwise(inside) for k in range(parts))
    inside = sorted(cut for cut in cuts if start <= cut <= end)
    return [_piece(lines, left, right) for left, right in pairwise(inside)]


def _piece(lines: list[Lines], left: Fraction, right: Fraction) -> Piece:
    gauges = tuple(line.gauge((left + right) / 2) for line in lines)
    negligible = (line.negligible(gauge, left, right) for line, gauge in zip(lines, gauges, strict=True))
    return Piece(left, right, gauges, tuple(negligible))
