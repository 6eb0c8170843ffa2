"""What is proven of what stands for a link: a head for phi, or a grid for a link g(s, y) of two variables.

*Rounding.* Logits are sums of products of stored numbers, in any order, so that of anchor k errs by at most

    gamma_q (|slope_k| T + |offset_k|),     T what the terms of an argument add up to, q roundings a term;

a steep anchor's error counts as a move of the argument (proof.heads.head_rounding), so large slopes cost no accuracy.
Of a grid, errors are sums over the axes (proof.grids.grid_rounding). Where a head serves on the whole line, beyond some
T the anchor with the steepest slope e has taken over: for s >= T the gap

    (a_e - a_k) s + g_e - g_k,    less what rounding may take off it, 8 u ((|a_e| + |a_k|) s + |g_e| + |g_k|),

is so large that weights of others are exactly 0, and grows with s. What is read is then v_e; likewise below -T.

Everything is found once for many prompts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from flint import arb

from anchorhead.errors import CertificateError
from anchorhead.heads.atom import Part
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.language.expressions.parser import parse
from anchorhead.language.expressions.precision import precision
from anchorhead.language.targets import Expression
from anchorhead.proof.arithmetic.arithmetic import FLOAT64, Arithmetic
from anchorhead.proof.arithmetic.silence import SILENT
from anchorhead.proof.enclosures.ranges import PRECISION, CellRanges, Interval, range_on_box
from anchorhead.proof.grids.grid import prove_grid
from anchorhead.proof.grids.grid_rounding import prove_grid_rounding
from anchorhead.proof.grids.grid_work import TooLong
from anchorhead.proof.heads.head_rounding import head_rounding
from anchorhead.proof.heads.link_heads import LinkFacts, link_facts, slopes_of
from anchorhead.proof.remembered import remembered

FARTHEST = 2.0**40
CELLS = (128, 16)
"""Of s and of y, on which slopes of a link of two variables are bounded."""


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
        return facts_of(self.parts, self.phi, self.low, self.high)

    def facts_on(self, low: float, high: float) -> LinkFacts:
        """What is proven on another range."""
        return facts_of(self.parts, self.phi, low, high)

    @property
    def cells(self) -> CellRanges:
        """Bounds on phi' on cells of the range."""
        return slopes_of(self.phi, self.facts)

    def slopes_on(self, low: float, high: float) -> tuple[float, float]:
        """Between what phi' lies on [low, high], a part of the range."""
        least, most = _slopes_on(self.phi, low, high)
        return max(least, self.facts.least), min(most, self.facts.slope)

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
        return max(beyond, _reading_error(self.parts, *ends, _up(terms), roundings, model))

    def values(self, arguments: np.ndarray, y: np.ndarray) -> np.ndarray:
        """phi in float64, by its head."""
        return head_values(self.parts, arguments)


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

    @property
    def facts(self) -> LinkFacts:
        (least, slope), (lowest, highest) = _ranges(self.phi, (self.low, self.high), self.labels)
        exact = _grid_error(self.atom, self.phi, self.low, self.high, self.labels)
        return LinkFacts(exact, least, slope, max(-lowest, highest), self.low, self.high)

    @property
    def cells(self) -> CellRanges:
        """Bounds on the slope by s on cells of s, for all labels."""
        return _grid_slopes(self.phi, self.facts, self.labels)

    def slopes_on(self, low: float, high: float) -> tuple[float, float]:
        least, most = self.cells.between(np.array([low]), np.array([high]))
        return float(least[0]), float(most[0])

    @property
    def largest(self) -> float:
        return self.atom.max_value

    def rounding(self, low: float, high: float, terms: float, roundings: int, model: Arithmetic) -> float:
        return _grid_rounding(self.atom, low, high, self.labels, outward(0.0, terms)[1], roundings, model)

    def values(self, arguments: np.ndarray, y: np.ndarray) -> np.ndarray:
        at = np.stack(np.broadcast_arrays(arguments, y), axis=-1)
        wide = GridAtom(self.atom.axes, self.atom.origins, self.atom.values, self.atom.bias, "float64")
        return wide(at)[..., 0]


Link = HeadLink | GridLink | NoHead


def label_link(parts: Sequence[Part], y: float) -> HeadLink:
    """Parts that stand for -y, as a head for the label itself."""
    most = outward(0.0, max(y, 2.0**-20))[1]
    return HeadLink(parse("x"), tuple(Part(part.slopes, part.offsets, -part.values) for part in parts), -most, most)


def outward(low: float, high: float) -> tuple[float, float]:
    """A slightly larger interval whose ends have few bits, so that what is found for it is found again."""
    return -_up(-low), _up(high)


def _up(number: float) -> float:
    if number == 0:
        return 0.0
    step = 2.0 ** (math.frexp(number)[1] - 4)
    return math.ceil(number / step) * step


@remembered(256)
def _reading_error(
    parts: Sequence[Part], low: float, high: float, terms: float, roundings: int, model: Arithmetic
) -> float:
    factor = float(model.gamma(roundings))
    wrong = [
        factor * (np.abs(part.slopes.astype(np.float64)) * terms + np.abs(part.offsets.astype(np.float64)))
        for part in parts
    ]
    wide = max(high - low, 2.0**-20)
    return head_rounding(parts, 0.0, np.zeros(1), low, low + wide, model, wrong)


facts_of = remembered(256)(link_facts)


@remembered(256)
def _slopes_on(phi: Expression, low: float, high: float) -> tuple[float, float]:
    """least <= phi' <= slope on [low, high], wherever phi has a slope."""
    with precision(PRECISION):
        return range_on_box(phi.derivative("x"), {"x": (low, high)})


def head_values(parts: Sequence[Part], x: np.ndarray) -> np.ndarray:
    """The sum of the parts in float64."""
    total = np.zeros(x.shape)
    for part in parts:
        slopes, offsets, values = part.astype(np.float64)
        z = x[..., None] * slopes + offsets
        weights = np.exp(z - z.max(axis=-1, keepdims=True))
        total += (weights / weights.sum(axis=-1, keepdims=True)) @ values[:, 0]
    return total


def _taken_over_from(part: Part, side: int, model: Arithmetic) -> float:
    """T, a power of two; infinite if no anchor takes over."""
    slopes, offsets = part.slopes.astype(np.float64), part.offsets.astype(np.float64)
    last = int(np.argmax(side * slopes))
    others = np.arange(len(slopes)) != last
    rise = side * (slopes[last] - slopes)[others]
    start = (offsets[last] - offsets)[others]
    lost = 8 * model.unit * (np.abs(slopes[last]) + np.abs(slopes))[others]
    lost_start = 8 * model.unit * (np.abs(offsets[last]) + np.abs(offsets))[others]
    if not (rise > 2 * lost).all():
        return math.inf
    T = 1.0
    while T <= FARTHEST:
        if ((rise - lost) * T + start - lost_start >= 2 * SILENT).all():
            return T
        T *= 2
    return math.inf


def _last_value(part: Part, side: int) -> float:
    return float(abs(np.ravel(part.values)[int(np.argmax(side * part.slopes.astype(np.float64)))]))


@remembered(64)
def _ranges(
    link: Expression, scores: tuple[float, float], labels: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Of the slope by s, and of g itself."""
    box: dict[str, Interval] = {"s": scores, "y": (-labels, labels)}
    return range_on_box(link.derivative("s"), box), range_on_box(link, box)


@remembered(64)
def _grid_error(atom: GridAtom, link: Expression, low: float, high: float, labels: float) -> float:
    try:
        return prove_grid(atom, [link], ("s", "y"), (low, -labels), (high, labels), FLOAT64).exact
    except TooLong as error:
        raise CertificateError(f"the proof for the grid of the link {link} takes too long: {error}") from error


@remembered(256)
def _grid_rounding(
    atom: GridAtom, low: float, high: float, labels: float, terms: float, roundings: int, model: Arithmetic
) -> float:
    factor = float(model.gamma(roundings))
    more = [
        factor * (np.abs(slopes.astype(np.float64)) * size + np.abs(offsets.astype(np.float64)))
        for (slopes, offsets), size in zip(atom.axes, (terms, labels), strict=True)
    ]
    ends = np.array([low, -labels]), np.array([max(high, low + math.ldexp(1.0, -20)), labels])
    return prove_grid_rounding(atom, *ends, model, more)


@remembered(16)
def _grid_slopes(link: Expression, facts: LinkFacts, labels: float) -> CellRanges:
    """Bounds on the slope by s on cells of s, for all labels."""
    cells, strips = CELLS
    edges = np.linspace(facts.low, facts.high, cells + 1)
    with precision(PRECISION):
        sides = [arb(a).union(arb(b)) for a, b in pairwise(np.linspace(-labels, labels, strips + 1).tolist())]
        return CellRanges.of(link.derivative("s"), "s", edges, (facts.least, facts.slope), {"y": sides})
