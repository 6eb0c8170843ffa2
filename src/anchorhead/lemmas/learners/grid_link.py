"""What is proven of a grid in the place of a link g(s, y) of two variables.

The grid against g in exact arithmetic: proof.grids.grid, on s in [low, high] and |y| up to the largest label. Rounding:
a logit is a sum of products of stored numbers, in any order, and that of anchor (k, l) errs by at most

    gamma_q (|slope_k| T + |offset_k| + |slope_l||y| + |offset_l|),     T >= |w| . |x_i|,

a sum over the axes, as heads.grid_rounding takes it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from flint import arb

from anchorhead.errors import CertificateError
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.lemmas.learners.link_reading import HeadError, outward
from anchorhead.proof.arithmetic.arithmetic import FLOAT64, UP, Arithmetic
from anchorhead.proof.enclosures.balls import lower, upper
from anchorhead.proof.grids.grid import prove_grid
from anchorhead.proof.grids.grid_rounding import prove_grid_rounding
from anchorhead.proof.grids.grid_work import TooLong
from anchorhead.proof.heads.link_heads import PRECISION, Interval, LinkFacts, range_of
from anchorhead.proof.heads.link_slopes import Slopes, _over_more
from anchorhead.targets import Expression
from anchorhead.targets.expressions.precision import precision

NAMES: tuple[str, ...] = ("s", "y")
CELLS = (128, 16)
"""Of s and of y, on which slopes are bounded."""
_Key = tuple[tuple[bytes, ...], str]


@dataclass(frozen=True, eq=False)
class GridLink:
    """g by a grid without origins and bias.

    low, high, labels   the range of scores and the largest |y| that were stated
    """

    link: Expression
    atom: GridAtom
    low: float
    high: float
    labels: float

    def facts(self, y: float) -> LinkFacts:
        (least, slope), (lowest, highest) = _ranges(self.link, (self.low, self.high), self.labels)
        exact = _exact(_frozen(self.atom), self.link, self.low, self.high, self.labels)
        error = exact if y <= self.labels else math.inf
        return LinkFacts(error, least, slope, max(-lowest, highest), self.low, self.high)

    def error(self, low: float, high: float, terms: float, y: float, roundings: int, model: Arithmetic) -> HeadError:
        rounding = _rounding(_frozen(self.atom), low, high, self.labels, outward(0.0, terms)[1], roundings, model)
        return HeadError(self.facts(y).error * UP, (rounding + 1.01 * model.unit * self.atom.max_value) * UP)

    def slopes(self, low: float, high: float, y: float) -> tuple[float, float]:
        least, most = self.slopes_on_cells().between(np.array([low]), np.array([high]))
        return float(least[0]), float(most[0])

    def slopes_on_cells(self) -> Slopes:
        """Bounds on the slope by s on cells of s, for all labels."""
        return _slopes(self.link, self.facts(0.0), self.labels)

    def values(self, arguments: np.ndarray, y: np.ndarray) -> np.ndarray:
        at = np.stack(np.broadcast_arrays(arguments, y), axis=-1)
        wide = GridAtom(self.atom.axes, self.atom.origins, self.atom.values, self.atom.bias, "float64")
        return wide(at)[..., 0]


@lru_cache(maxsize=64)
def _ranges(
    link: Expression, scores: tuple[float, float], labels: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Of the slope by s, and of g itself."""
    box: dict[str, Interval] = {"s": scores, "y": (-labels, labels)}
    return range_of(link.derivative("s"), box), range_of(link, box)


@lru_cache(maxsize=64)
def _exact(key: _Key, link: Expression, low: float, high: float, labels: float) -> float:
    try:
        return prove_grid(_thawed(key), [link], NAMES, (low, -labels), (high, labels), FLOAT64).exact
    except TooLong as error:
        raise CertificateError(f"the proof for the grid of the link {link} takes too long: {error}") from error


@lru_cache(maxsize=256)
def _rounding(
    key: _Key, low: float, high: float, labels: float, terms: float, roundings: int, model: Arithmetic
) -> float:
    factor = float(model.gamma(roundings))
    atom = _thawed(key)
    more = [
        factor * (np.abs(slopes.astype(np.float64)) * size + np.abs(offsets.astype(np.float64)))
        for (slopes, offsets), size in zip(atom.axes, (terms, labels), strict=True)
    ]
    ends = np.array([low, -labels]), np.array([max(high, low + math.ldexp(1.0, -20)), labels])
    return prove_grid_rounding(atom, *ends, model, more)


def _frozen(atom: GridAtom) -> _Key:
    arrays = (*(array for axis in atom.axes for array in axis), atom.values)
    return tuple(array.tobytes() for array in arrays), str(atom.values.dtype)


def _thawed(key: _Key) -> GridAtom:
    arrays, kind = key
    a, b, c, d, values = (np.frombuffer(array, kind) for array in arrays)
    return GridAtom.of(
        [(a, b), (c, d)],
        np.zeros(2),
        values.reshape(len(a), len(c), 1),
        np.zeros(1),
        kind,  # type: ignore[arg-type]
    )


@lru_cache(maxsize=16)
def _slopes(link: Expression, facts: LinkFacts, labels: float) -> Slopes:
    """Bounds on the slope by s on cells of s, for all labels."""
    cells, strips = CELLS
    edges, derivative = np.linspace(facts.low, facts.high, cells + 1), link.derivative("s")
    with precision(PRECISION):
        sides = [arb(a).union(arb(b)) for a, b in pairwise(np.linspace(-labels, labels, strips + 1).tolist())]
        rows = [
            [derivative.ball({"s": arb(a).union(arb(b)), "y": side}) for side in sides]
            for a, b in pairwise(edges.tolist())
        ]
    least = np.maximum([min(lower(ball) for ball in row) for row in rows], facts.least)
    most = np.minimum([max(upper(ball) for ball in row) for row in rows], facts.slope)
    return Slopes(edges, _over_more(least, np.minimum), _over_more(most, np.maximum))
