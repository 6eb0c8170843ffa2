"""How much functions of several variables change over the cells of a grid, in balls: ranges and slopes, cell by cell.

A slope that is finite bounds every difference quotient along its axis in the cell. For operations that are smooth
where they are defined that is the mean value theorem and the chain rule; abs, min and max are the hull of their sides,
which contains the quotients across a kink. `where` may jump: on a cell that does not decide it no slope is claimed,
and the range of values, which both branches are part of, is all that is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

import numpy as np
from flint import arb
from jaxtyping import Bool, Float
from scipy.ndimage import maximum_filter1d, minimum_filter1d

from anchorhead.language.expressions.build import ZERO, add, div, make, mul, rebuild
from anchorhead.language.expressions.calculus import difference
from anchorhead.language.expressions.expression import Expression, postorder
from anchorhead.language.expressions.named import SELU_ALPHA, SELU_SCALE
from anchorhead.language.expressions.precision import precision
from anchorhead.proof.arithmetic.arithmetic import UP
from anchorhead.proof.enclosures.balls import upper
from anchorhead.proof.grids.grid_target import AnalyticTarget
from anchorhead.proof.grids.uniform_grid_weights import finer

MAX_CELLS = 8_000
"""Anchor cells are cut further, while there are not more parts than this."""
_FINEST = 64


@dataclass(frozen=True, eq=False)
class CellModulus:
    """For every cell between neighbouring anchors, (m, p_1 - 1, …, p_d - 1): f in [low, high], |df/dx_j| <= slopes[j].

    Infinite where nothing is known.
    """

    low: Float[np.ndarray, "..."]
    high: Float[np.ndarray, "..."]
    slopes: tuple[Float[np.ndarray, "..."], ...]

    def block(self, reach: int) -> tuple[Float[np.ndarray, "..."], tuple[Float[np.ndarray, "..."], ...]]:
        """The oscillation of f, and the largest slopes, over the cells up to `reach` away along every axis."""
        spread = _filtered(self.high, reach, maximum_filter1d) - _filtered(self.low, reach, minimum_filter1d)
        return _known(spread), tuple(_filtered(slope, reach, maximum_filter1d) for slope in self.slopes)

    @property
    def range(self) -> Float[np.ndarray, " m"]:
        """The oscillation of f over the whole box."""
        flat_low, flat_high = (array.reshape(len(array), -1) for array in (self.low, self.high))
        return _known(flat_high.max(axis=1) - flat_low.min(axis=1))


def cell_modulus(
    expressions: Sequence[Expression], variables: Sequence[str], cuts: Sequence[Float[np.ndarray, " p"]]
) -> CellModulus:
    """Ranges and slopes on the cells between cuts, which are given along every axis: at least one cell each."""
    expressions = [without_jumps(expression) for expression in expressions]
    m, d = len(expressions), len(variables)
    cells = [len(one) - 1 for one in cuts]
    parts = int(np.clip((MAX_CELLS / prod(cells)) ** (1 / d), 1, _FINEST))
    fine = [finer(one, parts) for one in cuts]
    slopes = [[expression.derivative(name) for expression in expressions] for name in variables]
    switches = [_switches(expression) for expression in expressions]
    every = [*expressions, *(one for row in slopes for one in row), *(one for row in switches for one, _ in row)]
    shape = tuple(len(one) - 1 for one in fine)
    lows, highs = (np.empty((len(every), *shape)) for _ in range(2))
    with precision(53):
        nodes = [[arb(float(a)).union(arb(float(b))) for a, b in pairwise(one)] for one in fine]
        for balls, part in AnalyticTarget(every, variables).on_grid(nodes):
            lows[:, part], highs[:, part] = _ENDS(balls)
    steep = np.maximum(np.abs(lows[m:]), np.abs(highs[m:]))
    start = m + d * m
    for i, row in enumerate(switches):
        for _, relation in row:
            steep[i : d * m : m] = np.where(_decided(relation, lows[start], highs[start]), steep[i : d * m : m], np.inf)
            start += 1
    low, high = _joined(lows[:m], parts, np.min), _joined(highs[:m], parts, np.max)
    return CellModulus(low, high, tuple(_joined(steep[j * m : (j + 1) * m], parts, np.max) for j in range(d)))


def without_jumps(expression: Expression) -> Expression:
    """The same function with its named parts written as sums of min and max, where their definition has a `where`."""

    def written(node: Expression) -> Expression | None:
        if node.op not in ("leaky_relu", "elu", "selu", "celu"):
            return None
        x, *parameters = node.args
        above, below = make("max", (x, ZERO)), make("min", (x, ZERO))
        match node.op:
            case "leaky_relu":
                return add(above, mul(parameters[0], below))
            case "celu":
                return add(above, mul(parameters[0], make("expm1", (div(below, parameters[0]),))))
            case "elu":
                return add(above, mul(parameters[0], make("expm1", (below,))))
        return mul(SELU_SCALE, add(above, mul(SELU_ALPHA, make("expm1", (below,)))))

    return rebuild(expression, written)


def _switches(expression: Expression) -> list[tuple[Expression, str]]:
    """a - b and the relation of every where(a, b, …) in the core."""
    nodes = [node for node in postorder(expression.core) if node.op == "where"]
    return [(difference(*node.args[:2]), str(node.data)) for node in nodes]


def _decided(relation: str, low: np.ndarray, high: np.ndarray) -> Bool[np.ndarray, "..."]:
    """Whether a - b in [low, high] decides a < b, or a <= b; intervals are not narrower than the balls they hold."""
    return (high < 0) | (low >= 0) if relation == "<" else (high <= 0) | (low > 0)


def _ends(ball: arb) -> tuple[float, float]:
    return -upper(-ball), upper(ball)


_ENDS = np.frompyfunc(_ends, 1, 2)


def _joined(array: np.ndarray, parts: int, by: Callable[..., np.ndarray]) -> np.ndarray:
    """The same for the cells that the parts make up."""
    shape = [len(array), *(n for size in array.shape[1:] for n in (size // parts, parts))]
    return by(array.reshape(shape), axis=tuple(range(2, len(shape), 2)))


def _filtered(array: np.ndarray, reach: int, by: Callable[..., np.ndarray]) -> np.ndarray:
    for axis in range(1, array.ndim):
        size = min(2 * reach + 1, 2 * array.shape[axis] + 1)
        array = by(array, size, axis=axis, mode="nearest")
    return array


def _known(spread: np.ndarray) -> np.ndarray:
    """infinity - infinity is not known either; what is left is not rounded down."""
    return np.nan_to_num(spread, nan=np.inf, posinf=np.inf) * UP
