"""The paper's universal approximation on a grid: a softmax of values of f is within f's modulus of continuity.

Anchors k = (k_1 … k_d) stand at places a_k of a uniform grid and hold v_k = f(a_k). The weights of a softmax are not
negative and add up to 1, so for every x of the box

    |r(x) - f(x)| <= sum_k w_k(x) |v_k + bias - f(a_k)| + sum_k w_k(x) |f(a_k) - f(x)|.

The second sum is at most what a Lipschitz constant of f makes of the mean distance of the anchors that are picked, if
there is one. Else it is bounded cell by cell, x between neighbouring anchors along every axis, in the better of two
ways. With q_R a bound on the weight of anchors beyond the block of R more cells around it, osc the oscillation of f,

    slopes   sum_j L_j sup E|a_j - x_j| + q_2 osc(box)                  |df/dx_j| <= L_j on the block of R = 2
    ranges   osc(cell) + q_0 (osc(block 1) - osc(cell)) + q_1 (osc(block 2) - osc(block 1)) + q_2 (osc(box) - …)

E|a_j - x_j| is half a spacing and a little for the softmax's tail (uniform_grid_weights). The second way needs no
slope: square roots at 0 and jumps of `where` are covered, the latter by a bound that no grid brings below the jump.

Rounding: grid_rounding, and the first sum, for values are stored rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import numpy as np
from flint import arb
from jaxtyping import Float

from anchorhead.conditions import AssumedLipschitz
from anchorhead.heads.grids.grid import even_places
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.precision import precision
from anchorhead.language.targets.lipschitz import Lipschitz
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic
from anchorhead.proof.enclosures.balls import upper
from anchorhead.proof.grids.grid_cover import VALUE_ERROR, check_neighbours
from anchorhead.proof.grids.grid_rounding import prove_mean_rounding, require_logits
from anchorhead.proof.grids.grid_target import AnalyticTarget
from anchorhead.proof.grids.proven_grid import ProvenGrid
from anchorhead.proof.grids.uniform_grid_modulus import cell_modulus
from anchorhead.proof.grids.uniform_grid_weights import REACH, AxisSpread, axis_spread
from anchorhead.terms import EvenAnchors, Term

LARGEST_LOGIT = 1e8
METHOD = "for every x of the box: the weights add up to 1, so the error is at most the mean of |f(anchor) - f(x)|"
IN_BALLS = "; how much f changes between anchors is bounded in balls, cell by cell; rounding with it"


def prove_uniform_grid(
    atom: GridAtom,
    expressions: Sequence[Expression],
    variables: Sequence[str],
    low: Sequence[float],
    high: Sequence[float],
    arithmetic: Arithmetic,
) -> ProvenGrid:
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
    box, mean = _box(low, high), (modulus, float(bound[worst]))
    if not np.isfinite(mean).all():
        return ProvenGrid(atom, *box, (Term("approximation", inf, "modulus"),), 0.0, METHOD, at=at)
    stored = stored_error(atom, expressions, variables, places)
    return replace(_proven(atom, spreads, box, arithmetic, mean, stored, METHOD + IN_BALLS), at=at)


def prove_uniform_lipschitz(
    atom: GridAtom,
    values: Float[np.ndarray, "..."],
    lipschitz: Lipschitz,
    low: Sequence[float],
    high: Sequence[float],
    arithmetic: Arithmetic,
) -> ProvenGrid:
    """The same given the constant, from f at the even places, (p_1, …, p_d, m), right to 2 ulp of float64."""
    places, spreads = uniform_axes(atom, low, high)
    check_neighbours(np.moveaxis(values, -1, 0), places, lipschitz)
    half, first, second = np.array([(one.spacing / 2, one.first, one.second) for one in spreads]).T
    exact = lipschitz.mean(first, second)
    modulus = min(float(lipschitz.apart(half)), exact)
    held = atom.values.astype(np.float64) + atom.bias.astype(np.float64)
    # once for f's own values, once for what float64 loses in `held`
    stored = float((np.abs(held - values) + 2 * VALUE_ERROR * np.abs(values)).max()) * UP
    found = _proven(atom, spreads, _box(low, high), arithmetic, (modulus, exact), stored, METHOD)
    return replace(found, conditions=(AssumedLipschitz(lipschitz.constants),))


def uniform_axes(
    atom: GridAtom, low: Sequence[float], high: Sequence[float]
) -> tuple[list[Float[np.ndarray, " p"]], list[AxisSpread]]:
    """Even places along every axis, and how far the anchors are that its keys pick there."""
    require_logits(atom, np.asarray(low, np.float64), np.asarray(high, np.float64), LARGEST_LOGIT)
    places = [even_places(float(a), float(b), side) for a, b, side in zip(low, high, atom.sides, strict=True)]
    spreads = [
        axis_spread(*axis, float(origin), where, float(a), float(b))
        for axis, origin, where, a, b in zip(atom.axes, atom.origins, places, low, high, strict=True)
    ]
    return places, spreads


def _proven(
    atom: GridAtom,
    spreads: Sequence[AxisSpread],
    box: tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"]],
    arithmetic: Arithmetic,
    mean: tuple[float, float],
    stored: float,
    method: str,
) -> ProvenGrid:
    """From f over half a spacing, or over a cell, and a bound on sum_k w_k |f(a_k) - f(x)|; with the paper's numbers
    for the grid: p, and beta = c / spacing^2."""
    modulus, exact = mean
    betas = tuple(_beta(slopes, float(b - a)) for (slopes, _), a, b in zip(atom.axes, *box, strict=True))
    even = (EvenAnchors(tuple(atom.sides), betas),)
    terms = (
        Term("approximation", modulus, "modulus", anchors=even),
        Term("approximation", exact - modulus, "tail"),
    )
    rounding = prove_mean_rounding(atom, spreads, *box, arithmetic, exact) + stored * UP
    return ProvenGrid(atom, *box, terms, rounding, method)


def _box(low: Sequence[float], high: Sequence[float]) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"]]:
    return np.array(low, np.float64), np.array(high, np.float64)


def _beta(slopes: Float[np.ndarray, " p"], length: float) -> float:
    """Half a step of slopes in spacings; along an axis of one anchor there is none."""
    if len(slopes) < 2:
        return 0.0
    ends = slopes[[0, -1]].astype(np.float64)
    return float(ends[1] - ends[0]) / (2 * length)


def stored_error(
    atom: GridAtom, expressions: Sequence[Expression], variables: Sequence[str], places: Sequence[np.ndarray]
) -> float:
    """max_k |v_k + bias - f(a_k)| over all anchors and outputs."""
    held, worst = np.moveaxis(atom.values.astype(np.float64), -1, 0), 0.0
    with precision(72):
        nodes = [[arb(float(place)) for place in one] for one in places]
        for balls, part in AnalyticTarget(expressions, variables).on_grid(nodes):
            for ball, value, shift in zip(balls, held[:, part], atom.bias.astype(np.float64), strict=True):
                worst = max(worst, float(np.asarray(_AWAY(ball, value, shift), np.float64).max()))
    return worst


def _times(array: np.ndarray, factor: float) -> np.ndarray:
    """A product in which nothing times infinity is nothing."""
    return array * factor if factor > 0 else np.zeros_like(array)


def _away(ball: arb, value: float, shift: float) -> float:
    return upper(abs(ball - value - shift))


_AWAY = np.frompyfunc(_away, 3, 1)
