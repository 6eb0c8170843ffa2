"""What is proven of a head in the place of a link phi, from its stored weights: its error and phi's slopes.

A sigmoid or tanh of an affine argument is two anchors, c + d sigmoid(a x + b), on the whole line: stored slopes and
offsets make a' x + b' of a x + b, and with q = (a' - a)/a the two differ by at most

    |d| (0.23 |q| + |b' - b - q b| / 4)        because |z| sigmoid'(z) <= 0.224 and sigmoid' <= 1/4.

All other heads are proven on [low, high] (proof.heads.head). Beyond high, the anchor with the largest slope takes over:
what the others still add falls with x. Where phi is all but constant there too, the bound holds up to the largest
float.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from flint import arb

from anchorhead.errors import CertificateError
from anchorhead.heads.atom import Part
from anchorhead.language.expressions.build import rebuild, variable
from anchorhead.language.expressions.expression import postorder
from anchorhead.language.expressions.precision import precision
from anchorhead.language.targets import Expression, ScalarTarget
from anchorhead.proof.enclosures.balls import lower, upper
from anchorhead.proof.enclosures.ranges import PRECISION, CellRanges, range_on_box, slopes_on_pieces
from anchorhead.proof.heads.head import prove_exact

CELLS, WIDEST = 1024, 14.0
"""Of slopes: cells reach to sinh(14), 600,000, times the width on which the link changes."""


@dataclass(frozen=True)
class LinkFacts:
    """For every x in [low, high], infinite ends included: |head(x) - phi(x)| <= error in exact arithmetic,
    least <= phi' <= slope wherever phi has a slope, |phi| <= size, and |phi'| <= max(slope, -least)."""

    error: float
    least: float
    slope: float
    size: float
    low: float
    high: float

    @property
    def steepest(self) -> float:
        return max(self.slope, -self.least)


def link_facts(parts: Sequence[Part], phi: Expression, low: float, high: float) -> LinkFacts:
    """What holds of a head whose parts add up, for a phi in the variable x, given where it is meant to serve."""
    logistic = logistic_form(phi)
    if logistic is not None and len(parts) == 1 and len(parts[0].slopes) == 2:
        return logistic.facts(parts[0])
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise CertificateError(f"the link {phi} needs a range of arguments, not [{low}, {high}]")
    target = ScalarTarget((phi,), low, high)
    scale = max(float(np.abs(part.values).max()) for part in parts)
    proof = prove_exact(parts, 0.0, np.zeros(1), target, floor=1e-15 * scale)
    if not math.isfinite(proof.bound):
        raise CertificateError(f"no bound was found for the head of the link {phi} on [{low:g}, {high:g}]")
    lowest, highest = range_on_box(phi, {target.variable: (low, high)})
    facts = LinkFacts(proof.bound, *slopes_on_pieces(target.pieces), max(-lowest, highest), low, high)
    if not (math.isfinite(facts.steepest) and math.isfinite(facts.size)):
        raise CertificateError(f"the link {phi} has no bounded slope on [{low:g}, {high:g}]: choose another range")
    return _with_tail(_with_tail(facts, parts, phi, 1), parts, phi, -1)


@dataclass(frozen=True)
class Logistic:
    """phi(x) = constant + jump sigmoid(rise x + start), all as balls."""

    constant: arb
    jump: arb
    rise: arb
    start: arb

    def weights(self) -> tuple[list[float], list[float], list[float]]:
        """Slopes, offsets and values of its two anchors, to the nearest float64."""
        half, shift = self.rise / 2, self.start / 2
        rows = [(-half, -shift, self.constant), (half, shift, self.constant + self.jump)]
        rows = rows if self.rise > 0 else rows[::-1]
        slopes, offsets, values = zip(*([float(ball.mid()) for ball in row] for row in rows), strict=True)
        return list(slopes), list(offsets), list(values)

    def facts(self, part: Part) -> LinkFacts:
        """For a part of two anchors, in whichever order."""
        with precision(PRECISION):
            slopes, offsets, values = _balls(part)
            if (slopes[1] - slopes[0] > 0) != (self.rise > 0):
                slopes, offsets, values = slopes[::-1], offsets[::-1], values[::-1]
            rise, start = slopes[1] - slopes[0], offsets[1] - offsets[0]
            wrong = (rise - self.rise) / self.rise
            if not upper(abs(wrong)) < 1e-3:
                raise CertificateError("the two anchors have slopes other than the link's")
            moved = arb("0.23") * abs(wrong) + abs(start - self.start - wrong * self.start) / 4
            ends = abs(values[0] - self.constant), abs(values[1] - self.constant - self.jump)
            error = abs(self.jump) * moved + ends[0].max(ends[1])
            steep = self.jump * self.rise / 4
            size = abs(self.constant).max(abs(self.constant + self.jump))
            least, most = min(lower(steep), 0.0), max(upper(steep), 0.0)
            return LinkFacts(upper(error), least, most, upper(size), -math.inf, math.inf)


def logistic_form(phi: Expression) -> Logistic | None:
    """phi as a constant and a multiple of one sigmoid or tanh of an affine argument, if it is that."""
    with precision(PRECISION):
        for node in postorder(phi.core):
            if node.op not in ("sigmoid", "tanh") or not node.variables:
                continue
            inner = node.args[0].affine()
            outer = rebuild(phi.core, lambda one, node=node: variable("u") if one is node else None).affine()
            if inner is None or outer is None or set(outer[0]) != {"u"}:
                continue
            (rise,), start = inner[0].values(), inner[1]
            jump, constant = outer[0]["u"], outer[1]
            if node.op == "tanh":
                rise, start, jump, constant = 2 * rise, 2 * start, 2 * jump, constant - jump
            if rise != 0 and jump != 0:
                return Logistic(constant, jump, rise, start)
    return None


@lru_cache(maxsize=64)
def slopes_of(phi: Expression, facts: LinkFacts) -> CellRanges:
    """Bounds on phi' on all of the range for which the facts are known, on cells that are narrow where phi changes."""
    width = facts.size / facts.steepest if facts.steepest > 0 and facts.size > 0 else 1.0
    biggest = sys.float_info.max
    inner = width * np.sinh(np.linspace(-WIDEST, WIDEST, CELLS + 1))
    outer = inner[-1] * 16.0 ** np.arange(1, 230)
    edges = np.concatenate([-outer[outer < biggest], inner, outer[outer < biggest]])
    low, high = max(facts.low, -biggest), min(facts.high, biggest)
    edges = np.unique(np.concatenate([[low], edges[(edges > low) & (edges < high)], [high]]))
    with precision(PRECISION):
        return CellRanges.of(phi.derivative("x"), "x", edges, (facts.least, facts.slope))


def _with_tail(facts: LinkFacts, parts: Sequence[Part], phi: Expression, side: int) -> LinkFacts:
    """The facts beyond the upper end (side 1) or the lower one (-1) too, where they are no worse than within."""
    end = facts.high if side > 0 else facts.low
    slope_of, allowed = phi.derivative("x"), 2 * facts.error + 1e-14 * facts.size
    error, least, most, size = facts.error, facts.least, facts.slope, facts.size
    with precision(PRECISION):
        last, rest = _taken_over(parts, end, side)
        for beyond in _doubling(end, side):
            value, slope = phi.ball({"x": beyond}), slope_of.ball({"x": beyond})
            error = max(error, upper(abs(value - last) + rest))
            least, most, size = min(least, lower(slope)), max(most, upper(slope)), max(size, upper(abs(value)))
            if not (error <= allowed and max(most, -least) <= facts.steepest):
                return facts
    low, high = (-math.inf, facts.high) if side < 0 else (facts.low, math.inf)
    return LinkFacts(error, least, most, size, low, high)


def _taken_over(parts: Sequence[Part], end: float, side: int) -> tuple[arb, arb]:
    """The values of the anchors that take over beyond an end, added up, and what the others add at most."""
    last, rest = arb(0), arb(0)
    for part in parts:
        slopes, offsets, values = _balls(part)
        top = int(np.argmax(side * np.asarray(part.slopes)))
        gaps = [(a - slopes[top]) * arb(end) + g - offsets[top] for a, g in zip(slopes, offsets, strict=True)]
        last += values[top]
        rest += sum((abs(v - values[top]) * gap.exp() for v, gap in zip(values, gaps, strict=True)), arb(0))
    return last, rest


def _balls(part: Part) -> tuple[list[arb], ...]:
    return tuple([arb(one) for one in column.ravel().tolist()] for column in part.astype(np.float64))


def _doubling(end: float, side: int) -> Iterator[arb]:
    """Balls that cover everything from an end to the largest float64."""
    near, width = arb(end), arb(max(abs(end), 1.0))
    while side * near <= arb(sys.float_info.max):
        far = near + side * width
        yield near.union(far)
        near, width = far, 2 * width
