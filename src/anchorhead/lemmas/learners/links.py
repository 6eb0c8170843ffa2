"""What is proven of what stands for a link: a head for phi, or a grid for a link g(s, y) of two variables.

*Rounding.* Logits are sums of products of stored numbers, in any order, so that of anchor k errs by at most

    gamma_q (|slope_k| T + |offset_k|),     T what the terms of an argument add up to, q roundings a term;

a steep anchor's error counts as a move of the argument (proof.heads.head_rounding), so large slopes cost no accuracy.
Of a grid, errors are sums over the axes (proof.grids.grid_rounding). Where a head serves on the whole line, beyond some
T the anchor with the steepest slope has taken over (proof.arithmetic.silence), and its value is what is read.

Everything is found once for many prompts (proof.remembered).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from flint import arb
from jaxtyping import Float

from anchorhead.errors import CertificateError
from anchorhead.heads.atom import Atom, Part
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.language.expressions.parser import parse
from anchorhead.language.expressions.precision import precision
from anchorhead.language.targets import Expression
from anchorhead.proof.arithmetic.arithmetic import FLOAT64, Arithmetic
from anchorhead.proof.arithmetic.silence import takes_over
from anchorhead.proof.enclosures.ranges import PRECISION, CellRanges, Interval, range_on_box
from anchorhead.proof.grids.grid import prove_grid
from anchorhead.proof.grids.grid_rounding import prove_grid_rounding
from anchorhead.proof.grids.grid_work import TooLong
from anchorhead.proof.heads.head_rounding import head_rounding
from anchorhead.proof.heads.link_heads import LinkFacts, link_facts, slopes_of
from anchorhead.proof.remembered import remembered

NARROWEST = 2.0**-20
"""Narrower ranges are widened."""
FARTHEST = 40
"""The largest power of two beyond which a head on the whole line may settle."""
CELLS = (128, 16)
"""Of s and of y, on which slopes of a link of two variables are bounded."""
Anchors = tuple[Part, ...] | GridAtom
"""What stands for a link: the parts of a head, or a grid over scores and labels, without origins and bias."""


@dataclass(frozen=True, eq=False)
class HeadLink:
    """phi by the parts of a head, for arguments between low and high."""

    phi: Expression
    parts: tuple[Part, ...]
    low: float = -math.inf
    high: float = math.inf

    @property
    def facts(self) -> LinkFacts:
        """What is proven on the range that was stated."""
        return self.facts_on(self.low, self.high)

    @remembered(256)
    def facts_on(self, low: float, high: float) -> LinkFacts:
        """What is proven on another range."""
        return link_facts(self.parts, self.phi, low, high)

    @property
    def count(self) -> int:
        """Of how many reads it is the sum."""
        return len(self.parts)

    @property
    def held(self) -> Anchors:
        return self.parts

    def logits(self, argument: float) -> float:
        """What no logit is larger than, in size, up to an |argument|."""
        slopes, offsets = (
            np.concatenate([getattr(part, name) for part in self.parts]) for name in ("slopes", "offsets")
        )
        return float(np.abs(slopes).max()) * argument + float(np.abs(offsets).max())

    @property
    def cells(self) -> CellRanges:
        """Bounds on phi' on cells of the range."""
        return slopes_of(self.phi, self.facts)

    @cached_property
    def straight(self) -> bool:
        """Whether phi is a line that does not fall: the second derivative is then the same along the path, and not
        below 0."""
        line = self.phi.affine()
        return line is not None and bool(line[0].get("x", arb(0)) >= 0)

    @cached_property
    def through_zero(self) -> bool:
        """Whether phi is a positive multiple of its argument."""
        line = self.phi.affine()
        return line is not None and bool(line[0].get("x", arb(0)) > 0) and line[1] == 0

    @property
    def largest(self) -> float:
        """The largest |value|, parts added up."""
        return sum(float(np.abs(part.values).max()) for part in self.parts)

    def rounding(self, low: float, high: float, terms: float, roundings: int, model: Arithmetic) -> float:
        """|computed head - head| for arguments in [low, high], the parts being summed.

        terms       T, what the terms of an argument add up to at most, in size
        roundings   q, how many roundings a term of a logit goes through
        """
        ends, beyond = [], 0.0
        for side, end in ((-1, low), (1, high)):
            if math.isinf(end):
                end = side * max(_taken_over_from(part, side, model) for part in self.parts)
                settled = sum(_last_value(part, side) for part in self.parts)
                beyond = max(beyond, float(model.gamma(len(self.parts) + 4)) * settled)
            ends.append(end)
        if not (math.isfinite(ends[0]) and math.isfinite(ends[1])):
            return math.inf
        return max(beyond, self._rounding(ends[0], ends[1], _up(terms), roundings, model))

    @remembered(256)
    def _rounding(self, low: float, high: float, terms: float, roundings: int, model: Arithmetic) -> float:
        wrong = [_logits_wrong(part.slopes, part.offsets, terms, roundings, model) for part in self.parts]
        return head_rounding(self.parts, 0.0, np.zeros(1), low, max(high, low + NARROWEST), model, wrong)

    def values(self, arguments: np.ndarray, y: np.ndarray) -> np.ndarray:
        """phi in float64, by its head."""
        return Atom(self.parts, 0.0, np.zeros(1), "float64")(arguments)[..., 0]


@dataclass(frozen=True, eq=False)
class NoHead:
    """The link of the squared loss where the argument itself is collected: exact, on the whole line."""

    straight: bool = True
    through_zero: bool = True

    @property
    def facts(self) -> LinkFacts:
        return LinkFacts(0.0, 1.0, 1.0, math.inf, -math.inf, math.inf)

    def values(self, arguments: np.ndarray, y: np.ndarray) -> np.ndarray:
        return arguments


@dataclass(frozen=True, eq=False)
class GridLink:
    """g by a grid without origins and bias, for scores between low and high and |y| up to `labels`."""

    phi: Expression
    atom: GridAtom
    low: float
    high: float
    labels: float
    straight: bool = False
    through_zero: bool = False
    count: int = 1

    @property
    @remembered(64)
    def facts(self) -> LinkFacts:
        box: dict[str, Interval] = {"s": (self.low, self.high), "y": (-self.labels, self.labels)}
        ends = (self.low, -self.labels), (self.high, self.labels)
        try:
            exact = prove_grid(self.atom, [self.phi], ("s", "y"), *ends, FLOAT64).exact
        except TooLong as error:
            raise CertificateError(f"the proof for the grid of the link {self.phi} takes too long: {error}") from error
        least, slope = range_on_box(self.phi.derivative("s"), box)
        lowest, highest = range_on_box(self.phi, box)
        return LinkFacts(exact, least, slope, max(-lowest, highest), self.low, self.high)

    @property
    @remembered(16)
    def cells(self) -> CellRanges:
        """Bounds on the slope by s on cells of s, for all labels."""
        (cells, strips), facts = CELLS, self.facts
        edges, sides = np.linspace(self.low, self.high, cells + 1), np.linspace(-self.labels, self.labels, strips + 1)
        with precision(PRECISION):
            strip = [arb(a).union(arb(b)) for a, b in pairwise(sides.tolist())]
            return CellRanges.of(self.phi.derivative("s"), "s", edges, (facts.least, facts.slope), {"y": strip})

    @property
    def largest(self) -> float:
        return self.atom.max_value

    @property
    def held(self) -> Anchors:
        return self.atom

    def logits(self, argument: float) -> float:
        """What no logit is larger than, in size, up to a |score| and for all labels."""
        ends = zip(self.atom.axes, (argument, self.labels), strict=True)
        return sum(float(np.abs(slopes).max()) * end + float(np.abs(offsets).max()) for (slopes, offsets), end in ends)

    def rounding(self, low: float, high: float, terms: float, roundings: int, model: Arithmetic) -> float:
        return self._rounding(low, high, _up(terms), roundings, model)

    @remembered(256)
    def _rounding(self, low: float, high: float, terms: float, roundings: int, model: Arithmetic) -> float:
        sizes = zip(self.atom.axes, (terms, self.labels), strict=True)
        more = [_logits_wrong(slopes, offsets, size, roundings, model) for (slopes, offsets), size in sizes]
        ends = np.array([low, -self.labels]), np.array([max(high, low + NARROWEST), self.labels])
        return prove_grid_rounding(self.atom, *ends, model, more)

    def values(self, arguments: np.ndarray, y: np.ndarray) -> np.ndarray:
        at = np.stack(np.broadcast_arrays(arguments, y), axis=-1)
        wide = GridAtom(self.atom.axes, self.atom.origins, self.atom.values, self.atom.bias, "float64")
        return wide(at)[..., 0]


Link = HeadLink | GridLink | NoHead


def label_link(parts: Sequence[Part], y: float) -> HeadLink:
    """The head whose parts stand for y, up to this size."""
    most = outward(0.0, max(y, NARROWEST))[1]
    return HeadLink(parse("x"), tuple(parts), -most, most)


def outward(low: float, high: float) -> tuple[float, float]:
    """A slightly larger interval whose ends have few bits, so that what is found for it is found again."""
    return -_up(-low), _up(high)


def _up(number: float) -> float:
    if number == 0:
        return 0.0
    step = 2.0 ** (math.frexp(number)[1] - 4)
    return math.ceil(number / step) * step


def _logits_wrong(
    slopes: np.ndarray, offsets: np.ndarray, terms: float, roundings: int, model: Arithmetic
) -> Float[np.ndarray, " p"]:
    """gamma_q (|slope_k| T + |offset_k|)."""
    sizes = np.abs(slopes.astype(np.float64)) * terms + np.abs(offsets.astype(np.float64))
    return float(model.gamma(roundings)) * sizes


def _taken_over_from(part: Part, side: int, model: Arithmetic) -> float:
    """T, a power of two; infinite if no anchor takes over."""
    powers = (2.0**k for k in range(FARTHEST + 1))
    return next((T for T in powers if takes_over(part.slopes, part.offsets, side, T, model)), math.inf)


def _last_value(part: Part, side: int) -> float:
    return float(abs(np.ravel(part.values)[int(np.argmax(side * part.slopes.astype(np.float64)))]))
