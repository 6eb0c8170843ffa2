"""The paper's placement for a function of which values and a Lipschitz constant are known.

As in uniform_grid, the softmax is a convex combination of f at the anchors, so that in exact arithmetic
|r(x) - f(x)| <= E|f(a) - f(x)|, which the constant bounds by the mean distance of the anchors that are picked: no
value of f but those at the anchors is needed, for any x.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from anchorhead.conditions import AssumedLipschitz
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.proof.arithmetic.arithmetic import Arithmetic
from anchorhead.proof.grids.grid_cover import VALUE_ERROR, check_neighbours
from anchorhead.proof.grids.uniform_grid import UniformBound, uniform_axes, uniform_rounding
from anchorhead.proof.statement import Statement
from anchorhead.targets.lipschitz import Lipschitz

METHOD = "for every x of the box: the weights add up to 1, so the error is at most the mean of |f(anchor) - f(x)|"


def uniform_lipschitz_statement(
    bound: UniformBound, atom: GridAtom, low: Sequence[float], high: Sequence[float], lipschitz: Lipschitz, target: str
) -> Statement:
    """What is proven of a uniform grid, given the constant."""
    conditions = (AssumedLipschitz(lipschitz.constants),)
    return Statement(bound.total, bound.terms(atom, low, high), METHOD, target, conditions)


def prove_uniform_lipschitz(
    atom: GridAtom,
    values: Float[np.ndarray, "..."],
    lipschitz: Lipschitz,
    low: Sequence[float],
    high: Sequence[float],
    arithmetic: Arithmetic,
) -> UniformBound:
    """A bound for every x of the box; values: f at the even places, (p_1, …, p_d, m), right to 2 ulp of float64."""
    places, spreads = uniform_axes(atom, low, high)
    check_neighbours(np.moveaxis(values, -1, 0), places, lipschitz)
    half = np.array([spread.spacing / 2 for spread in spreads])
    first, second = (np.array([getattr(spread, name) for spread in spreads]) for name in ("first", "second"))
    exact = lipschitz.mean(first, second)
    modulus = min(float(lipschitz.apart(half)), exact)
    held = atom.values.astype(np.float64) + atom.bias.astype(np.float64)
    # once for f's own values, once for what float64 loses in `held`
    stored = float((np.abs(held - values) + 2 * VALUE_ERROR * np.abs(values)).max()) * (1 + 1e-12)
    rounding = uniform_rounding(atom, spreads, low, high, arithmetic, exact, stored)
    return UniformBound(modulus, exact - modulus, rounding, tuple((np.array(low) / 2 + np.array(high) / 2).tolist()))
