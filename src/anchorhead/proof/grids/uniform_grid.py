"""The paper's universal approximation on a grid: a softmax of values of f is within f's modulus of continuity.

Anchors k = (k_1 … k_d) stand at places a_k of a uniform grid and hold v_k = f(a_k). The weights of a softmax are not
negative and add up to 1, so for every x of the box

    |r(x) - f(x)| <= sum_k w_k(x) |v_k + bias - f(a_k)| + sum_k w_k(x) |f(a_k) - f(x)|.

The second sum is bounded cell by cell, x between neighbouring anchors along every axis, in the better of two ways. With
q_R a bound on the weight of anchors beyond the block of R more cells around it, and osc the oscillation of f,

    slopes   sum_j L_j sup E|a_j - x_j| + q_2 osc(box)                  |df/dx_j| <= L_j on the block of R = 2
    ranges   osc(cell) + q_0 (osc(block 1) - osc(cell)) + q_1 (osc(block 2) - osc(block 1)) + q_2 (osc(box) - …)

E|a_j - x_j| is half a spacing and a little for the softmax's tail (uniform_grid_weights). The second way needs no
slope: square roots at 0 and jumps of `where` are covered, the latter by a bound that no grid brings below the jump.

Rounding. The dtype's exponentials are those of other weights, w_k exp(lambda_k) with |lambda_k| <= Lambda, up to a
factor that all share; divided by their exact sum they are a convex combination too, of weights at most G w_k,
G = exp(2 Lambda). So both sums above hold with G times the second. Adding n numbers errs by gamma_(n-1) of their sizes,
whatever the order, and a number by at most itself: so anchors beyond block 2, of weight eps together, cost no more than
8 eps max|v|, and n is the number of anchors in the block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, prod

import numpy as np
from flint import arb
from jaxtyping import Float

from anchorhead.errors import AnchorheadError
from anchorhead.heads.grids.grid import even_places
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.heads.grids.grid_rounding import axis_log_errors
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic
from anchorhead.proof.enclosures.balls import upper
from anchorhead.proof.grids.grid_target import AnalyticTarget
from anchorhead.proof.grids.uniform_grid_modulus import cell_modulus
from anchorhead.proof.grids.uniform_grid_weights import REACH, AxisSpread, axis_spread
from anchorhead.proof.statement import Statement
from anchorhead.targets.expressions.expression import Expression
from anchorhead.targets.expressions.precision import precision
from anchorhead.targets.several import SeveralVariables

LARGEST_LOGIT = 1e8
METHOD = (
    "for every x of the box: the weights add up to 1, so the error is at most the mean of |f(anchor) - f(x)|; how much "
    "f changes between anchors is bounded in balls, cell by cell; rounding with it"
)


@dataclass(frozen=True)
class UniformBound:
    """What the bound adds up, and where it is largest: the middle of a cell between anchors.

    modulus   f over half a spacing, or over a cell          tail      what the softmax adds, farther anchors
    rounding  of the dtype, stored values and keys included
    """

    modulus: float
    tail: float
    rounding: float
    at: tuple[float, ...]

    @property
    def total(self) -> float:
        return (self.modulus + self.tail + self.rounding) * (1 + 1e-15)

    def terms(self, atom: GridAtom, low: Sequence[float], high: Sequence[float]) -> dict[str, float]:
        """What the bound adds up, with the paper's numbers for the grid: p, and beta = c / spacing^2."""
        betas = (_beta(slopes, b - a) for (slopes, _), a, b in zip(atom.axes, low, high, strict=True))
        grid = f"p = {' x '.join(map(str, atom.sides))}, beta = {', '.join(betas)}"
        return {
            f"modulus of continuity between anchors ({grid})": self.modulus,
            "softmax tail, anchors farther away": self.tail,
            "rounding of the softmax and its sums, values as stored": self.rounding,
        }

    def statement(self, atom: GridAtom, target: SeveralVariables) -> Statement:
        return Statement(self.total, self.terms(atom, target.low, target.high), METHOD, str(target))


def _beta(slopes: Float[np.ndarray, " p"], length: float) -> str:
    """Half a step of slopes in spacings; along an axis of one anchor there is none."""
    if len(slopes) < 2:
        return "0"
    ends = slopes[[0, -1]].astype(np.float64)
    return f"{float(ends[1] - ends[0]) / (2 * length):.4g}"


def prove_uniform_grid(
    atom: GridAtom,
    expressions: Sequence[Expression],
    variables: Sequence[str],
    low: Sequence[float],
    high: Sequence[float],
    arithmetic: Arithmetic,
) -> UniformBound:
    """A bound on |computed head - f| for every x of the box, in every output, whatever the weights are; it is small
    where they are those of a uniform grid. Infinite where f may be unbounded."""
    places, spreads = uniform_axes(atom, low, high)
    cuts = [one if len(one) > 1 else np.array([a, b]) for one, a, b in zip(places, low, high, strict=True)]
    cells = cell_modulus(expressions, variables, cuts)
    far = [min(sum(spread.outside[reach] for spread in spreads), 1.0) for reach in range(REACH)]
    whole = cells.range.reshape(-1, *[1] * len(places))
    osc, slopes = zip(*(cells.block(reach) for reach in range(REACH)), strict=True)
    with np.errstate(invalid="ignore"):
        near = sum(_times(slope, spread.spacing / 2) for slope, spread in zip(slopes[-1], spreads, strict=True))
        mean = sum(_times(slope, spread.first) for slope, spread in zip(slopes[-1], spreads, strict=True))
        by_slopes = mean + _times(whole, far[-1])
        inner, outer = (*osc,), (*osc[1:], whole)
        by_ranges = osc[0] + sum(_times(b - a, q) for a, b, q in zip(inner, outer, far, strict=True))
        better = by_slopes <= by_ranges
        bound = np.nan_to_num(np.where(better, by_slopes, by_ranges), nan=inf, posinf=inf) * UP
    worst = np.unravel_index(int(bound.argmax()), bound.shape)
    modulus = float(min(np.where(better, near, osc[0])[worst], bound[worst]))
    at = tuple(float(one[i] / 2 + one[i + 1] / 2) for one, i in zip(cuts, worst[1:], strict=True))
    if not np.isfinite(bound[worst]):
        return UniformBound(inf, 0.0, 0.0, at)
    stored = stored_error(atom, expressions, variables, places)
    tail = float(bound[worst]) - modulus
    return UniformBound(modulus, tail, uniform_rounding(atom, spreads, low, high, arithmetic, bound.max(), stored), at)


def uniform_axes(
    atom: GridAtom, low: Sequence[float], high: Sequence[float]
) -> tuple[list[Float[np.ndarray, " p"]], list[AxisSpread]]:
    """Even places along every axis, and how far the anchors are that its keys pick there."""
    places = [even_places(float(a), float(b), side) for a, b, side in zip(low, high, atom.sides, strict=True)]
    for (slopes, offsets), origin, a, b in zip(atom.axes, atom.origins, low, high, strict=True):
        reach = max(abs(float(a) - float(origin)), abs(float(b) - float(origin)))
        size = float((np.abs(slopes.astype(np.float64)) * reach + np.abs(offsets.astype(np.float64))).max())
        if not size <= LARGEST_LOGIT:
            raise AnchorheadError(
                f"the logits of the grid reach {size:.3g}: nothing is proven beyond {LARGEST_LOGIT:g}; use fewer "
                "anchors along an axis, or a larger error"
            )
    spreads = [
        axis_spread(*axis, float(origin), where, float(a), float(b))
        for axis, origin, where, a, b in zip(atom.axes, atom.origins, places, low, high, strict=True)
    ]
    return places, spreads


def stored_error(
    atom: GridAtom, expressions: Sequence[Expression], variables: Sequence[str], places: Sequence[np.ndarray]
) -> float:
    """max_k |v_k + bias - f(a_k)| over all anchors and outputs."""
    held, worst = np.moveaxis(atom.values.astype(np.float64), -1, 0), 0.0

    def compare(balls: np.ndarray, part: slice) -> None:
        nonlocal worst
        for ball, value, shift in zip(balls, held[:, part], atom.bias.astype(np.float64), strict=True):
            worst = max(worst, float(np.asarray(_AWAY(ball, value, shift), np.float64).max()))

    with precision(72):
        nodes = [[arb(float(place)) for place in one] for one in places]
        AnalyticTarget(expressions, variables).on_grid(nodes, compare)
    return worst


def uniform_rounding(
    atom: GridAtom,
    spreads: Sequence[AxisSpread],
    low: Sequence[float],
    high: Sequence[float],
    arithmetic: Arithmetic,
    exact: float,
    stored: float,
) -> float:
    """What rounding adds to a bound `exact` on sum_k w_k |f(a_k) - f(x)|; `stored`: a bound on |v_k + bias - f(a_k)|.

    Infinite where the logits are too large for the dtype.
    """
    most = arithmetic.exp_error
    for axis, origin, a, b in zip(atom.axes, atom.origins, low, high, strict=True):
        ends = np.array([float(a)]), np.array([float(b)])
        slopes, offsets = axis
        most += float(axis_log_errors(slopes, offsets, float(origin), *ends, atom.variables, arithmetic).max())
    most = most * (1 + 4 * arithmetic.unit) * UP
    if not most <= 20:
        return inf
    grown = exp(2 * most) * UP
    count = prod(min(side, 2 * REACH) for side in atom.sides)
    eps = min(sum(spread.outside[-1] for spread in spreads), 1.0) * grown
    size = atom.max_value
    many, few = float(arithmetic.gamma(count + 1)), float(arithmetic.gamma(count))
    summed = (many + few) / (1 - few) * size + 8 * eps * size
    bias = float(np.abs(atom.bias.astype(np.float64)).max())
    added = arithmetic.unit * (size + summed + bias) if bias else 0.0
    underflow = 8 * atom.anchors * arithmetic.tiny * (size + 1)
    return float(((grown - 1) * exact + stored + summed + added + underflow) * UP)


def _times(array: np.ndarray, factor: float) -> np.ndarray:
    """A product in which nothing times infinity is nothing."""
    return array * factor if factor > 0 else np.zeros_like(array)


def _away(ball: arb, value: float, shift: float) -> float:
    return upper(abs(ball - value - shift))


_AWAY = np.frompyfunc(_away, 3, 1)
