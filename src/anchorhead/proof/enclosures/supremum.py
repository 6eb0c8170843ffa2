"""The largest |f| on an interval, f analytic or piecewise so, proven by halving cells.

A cell is done when one enclosure of f on it is small enough (a saturated head; the end of a square root), or
when the theorem of `ellipse.py` bounds |f| within the tolerance of what was evaluated. Halving closes in on
kinks and on steep places by itself: a slope of 1e12 costs forty halvings on either side.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from flint import acb, arb

from anchorhead.effort import Effort
from anchorhead.language.expressions.precision import precision
from anchorhead.proof.enclosures.balls import lower, upper
from anchorhead.proof.enclosures.ellipse import Enclosure, bound_on_cell
from anchorhead.proof.enclosures.operations import OPERATIONS, precise

_HALVINGS = 220
_MAX_BITS = 2048
_SMALLEST = 1e-290  # below this floats run out
_SAMPLED = 0.2  # of the effort, at most, for the points that are looked at first


@dataclass(frozen=True)
class Span:
    """A function and where it counts.

    left, right    exact ends; |f| is proven on [left, right]
    inner          exact ends within them; a value of f at a point of `inner` counts as found
    operations     what one value of f takes
    """

    left: arb
    right: arb
    inner: tuple[arb, arb]
    f: Enclosure
    operations: int = 1

    def counts(self, x: arb) -> bool:
        return bool(self.inner[0] <= x <= self.inner[1])


class Supremum:
    """The largest |f| over the spans that it is shown, one after another.

    bound    |f| <= bound on all of them
    found    a lower bound of |f| at the point `at`: the largest value evaluated (at: NaN if none differs from
             0)
    goal     a cell is done when its bound is at most this: max((1 + rtol) found, floor)
    effort   what may be spent; once it is over, cells are bounded as they are, and the bound is looser
    """

    def __init__(self, rtol: float, floor: float = 0.0, effort: Effort | None = None) -> None:
        self.rtol, self.floor, self.effort = rtol, floor, effort or Effort(OPERATIONS)
        self.bound, self.found, self.at = 0.0, 0.0, math.nan
        # 1/cos(pi / (2K)) is then about 1 + rtol/4
        self.oversampling = max(4, math.ceil(math.pi / (2 * math.sqrt(min(rtol, 1.0) / 2))))

    @property
    def goal(self) -> float:
        return max((1 + self.rtol) * self.found, self.floor)

    def cover(self, spans: Sequence[Span], scale: float, bits: int, hints: Iterable[arb]) -> None:
        """Bound |f| on the spans.

        scale   the size of the numbers of which f is the difference: 2^-80 of it counts as 0
        bits    the bits that an argument needs before f, of size `scale`, is right to 2^-72 of it
        hints   points that are worth a look
        """
        self.floor = max(self.floor, 2.0**-80 * scale, _SMALLEST)
        spans = [replace(span, f=self._counted(span)) for span in spans]
        with precision(bits + 72):
            points, most = list(hints), _SAMPLED * self.effort.left / len(spans)
            for span in spans:
                self._sample(span, points, most / precise(span.operations))
        if scale > self.goal > 0:
            bits += math.frexp(scale / self.goal)[1]
        for span in spans:
            self._halve(span, bits + 72)

    def _sample(self, span: Span, hints: Sequence[arb], most: float) -> None:
        """Evaluate f all over, towards the ends, and at the hints; at fewer points where these are more than `most`."""
        left, right = span.inner
        points = [left, right, *(left + (right - left) * (k / 32) for k in range(1, 32)), *hints]
        for k in range(6, 60, 2):
            points += [left + (right - left) * 2.0**-k, right - (right - left) * 2.0**-k]
        there = [x for x in (point.mid() for point in points) if span.counts(x)]
        for x in there[:: max(1, math.ceil(len(there) / max(most, 1.0)))]:
            self._see(span, x, lower(abs(span.f(acb(x)).real)))

    def _see(self, span: Span, x: arb, size: float) -> None:
        if size > self.found and span.counts(x):
            self.found, self.at = size, float(x)

    def _halve(self, span: Span, bits: int) -> None:
        stack = [(span.left, span.right, 0)]
        while stack and self.bound < math.inf:
            left, right, halvings = stack.pop()
            with precision(bits):
                bound, bits = self._bound_cell(span, left, right, bits)
                middle = ((left + right) / 2).mid()
            if bound <= self.goal or self.effort.over or halvings > _HALVINGS or not left < middle < right:
                self.bound = max(self.bound, bound)
            else:
                stack += [(middle, right, halvings + 1), (left, middle, halvings + 1)]

    def _bound_cell(self, span: Span, left: arb, right: arb, bits: int) -> tuple[float, int]:
        """A bound on a cell, the better of the two ways, and the precision that the next cell should have."""
        coarse = upper(abs(span.f(acb(left.union(right))).real))
        if coarse <= self.goal or self.effort.over:
            return coarse, bits
        allowed = 0.4 * (self.goal - self.found)
        cell = bound_on_cell(span.f, left, right, allowed, self.oversampling)
        if cell is None:
            return coarse, bits
        for x, size in cell.points:
            self._see(span, x, size)
        if cell.bound > self.goal and cell.blur > 0.1 * allowed and 2 * bits <= _MAX_BITS:
            with precision(2 * bits):
                return self._bound_cell(span, left, right, 2 * bits)
        return min(coarse, cell.bound), bits

    def _counted(self, span: Span) -> Enclosure:
        def counted(z: acb) -> acb:
            self.effort.spend(precise(span.operations))
            return span.f(z)

        return counted
