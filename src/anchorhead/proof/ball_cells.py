"""Cells of a region in balls: what proof.ball_ramp needs to know of the heads there."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import flint
from flint import arb

from anchorhead.proof.exact_form import ExactAnchor, ExactHead

UP = 1 + 1e-9
"""Covers the float roundings in sums and products of upper bounds."""


@dataclass
class Window:
    """A head on a region, relative to its heaviest anchor: logits slope x + offset, values, foreign values."""

    slopes: list[Fraction] = field(default_factory=list)
    offsets: list[Fraction] = field(default_factory=list)
    values: list[Fraction] = field(default_factory=list)
    foreign: list[Fraction] = field(default_factory=list)

    def key(self) -> tuple:
        return tuple(self.slopes), tuple(self.offsets), tuple(self.values), tuple(self.foreign)


@dataclass
class Region:
    """Queries start <= q <= start + length: what is needed to bound the error there."""

    start: Fraction
    length: Fraction
    base: Fraction
    slope: Fraction
    windows: list[Window]
    log_error: float
    extra: float
    foreign: float


@dataclass
class Cell:
    """Bounds on a cell: |g|, sum w |v - r|, and what other output features receive."""

    error: float
    spread: float
    foreign: float


def window_of(
    head: ExactHead, seen: list[int], start: Fraction, top: ExactAnchor, own: Fraction, feature: int
) -> Window:
    window = Window()
    for k in sorted(seen):
        anchor = head.anchors[k]
        window.slopes.append(anchor.slope - top.slope)
        window.offsets.append((anchor.slope - top.slope) * (start - head.origin) + anchor.offset - top.offset)
        window.values.append((anchor.value if anchor.output == feature else Fraction(0)) - own)
        window.foreign.append(Fraction(0) if anchor.output in (feature, -1) or anchor is top else abs(anchor.value))
    return window


def mean_at(window: tuple, x: arb) -> arb:
    """sum w v at a point, relative to the heaviest anchor's value."""
    slopes, offsets, values, _ = window
    powers = [(a * x + b).exp() for a, b in zip(slopes, offsets, strict=True)]
    return sum((e * v for e, v in zip(powers, values, strict=True)), arb(0)) / sum(powers, arb(0))


def cell_bound(windows: list, base: arb, slope: arb, centre: arb, half: arb) -> Cell:
    value, derivative, spread, foreign = base - slope * centre, -slope, arb(0), arb(0)
    x = arb(centre.mid(), half.upper())
    for window in windows:
        value += mean_at(window, centre)
        slopes, offsets, values, others = window
        powers = [(a * x + b).exp() for a, b in zip(slopes, offsets, strict=True)]
        total = sum(powers, arb(0))
        weights = [e / total for e in powers]
        mean = sum((w * v for w, v in zip(weights, values, strict=True)), arb(0))
        tilt = sum((w * a for w, a in zip(weights, slopes, strict=True)), arb(0))
        derivative += sum(
            (w * (v - mean) * (a - tilt) for w, v, a in zip(weights, values, slopes, strict=True)), arb(0)
        )
        spread += sum((w * abs(v - mean) for w, v in zip(weights, values, strict=True)), arb(0))
        foreign += sum((w * f for w, f in zip(weights, others, strict=True)), arb(0))
    error = abs(value) + abs(derivative) * half
    return Cell(*(float(bound.upper()) * UP for bound in (error, spread, foreign)))


def ball(x: Fraction) -> arb:
    return arb(flint.fmpq(x.numerator, x.denominator))
