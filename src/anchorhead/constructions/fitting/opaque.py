"""Callables of a few variables as one head over a grid: measured by a search for the worst place, or proven."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.fitting.callable_checks import require_continuous
from anchorhead.constructions.fitting.opaque_lipschitz import prove_callable, shown, smooth
from anchorhead.constructions.grids.certified import OPAQUE, measured_network
from anchorhead.constructions.grids.grid import MAX_ANCHORS, TRIES, SolvedGrid
from anchorhead.constructions.theorems.uniform_grid import SampledModulus
from anchorhead.decimals import round_up
from anchorhead.errors import AnchorheadError
from anchorhead.heads.grids.grid import solve_grid, uniform_grid
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.heads.grids.grid_samples import BoxedFunction
from anchorhead.language.targets.lipschitz import Lipschitz
from anchorhead.language.targets.opaque_several import CallableSeveral
from anchorhead.progress import Status
from anchorhead.proof.heads.uniform_activation_head import SHARPNESS
from anchorhead.proof.search.callable_search import largest_error


class MeasuredGrid(NamedTuple):
    """A grid, the largest error that a search finds, and where that is."""

    atom: GridAtom
    error: float
    at: Float[np.ndarray, " d"]


def approximate_callable(
    target: CallableSeveral, request: BuildRequest, lipschitz: Lipschitz | None = None
) -> SolvedGrid:
    """The smallest grid found whose largest error, as a search finds it, is within what is asked for; with a Lipschitz
    constant the error is proven for every x of the box."""
    if lipschitz is not None:
        return prove_callable(target, lipschitz, request)
    return _found(measured_grid(target, request), target, request)


def measured_grid(target: CallableSeveral, request: BuildRequest) -> MeasuredGrid:
    """A solved grid; where the function is not smooth, a uniform one if it will do."""
    within, dtype = request.error, request.dtype
    require_continuous(target, within)
    if not smooth(target, within):
        try:
            return _uniform(target, request)
        except AnchorheadError:
            pass  # the solver says what it would take
    aim, best = within, np.inf
    for _ in range(TRIES):
        try:
            atom = solve_grid(target.values, target.low, target.high, aim, dtype, MAX_ANCHORS, request.progress)
        except AnchorheadError:
            if not np.isfinite(best):
                raise
            break
        error, at = largest_error(atom, target)
        if round_up(error) <= within:
            return MeasuredGrid(atom, error, at)
        best = min(best, error)
        aim *= 0.9 * within / error
    raise _not_reached(target, request, best)


def _uniform(target: CallableSeveral, request: BuildRequest) -> MeasuredGrid:
    """Even anchors: first for a few times the error, because what is found is less than what can be proven."""
    within, dtype = request.error, request.dtype
    modulus = SampledModulus(BoxedFunction.of(target.values, target.low, target.high))
    aim, best = 4 * within, np.inf
    for _ in range(2 * TRIES):
        sides = modulus.sides(aim)
        if prod(sides) > MAX_ANCHORS:
            break
        atom = uniform_grid(target.values, target.low, target.high, sides, SHARPNESS, dtype)
        error, at = largest_error(atom, target)
        if request.progress:
            request.progress(Status("solving for a grid", atom.anchors, error))
        if round_up(error) <= within:
            return MeasuredGrid(atom, error, at)
        best = min(best, error)
        aim *= min(0.95 * within / error, 0.8)
    raise _not_reached(target, request, best)


def _found(grid: MeasuredGrid, target: CallableSeveral, request: BuildRequest) -> SolvedGrid:
    atom, error, at = grid
    method = (
        f"a grid of {' x '.join(map(str, atom.sides))} anchors; {target.evaluations:,} evaluations of the function, "
        f"spread over the box, its faces and corners, and climbs from the worst; the largest error is at ({shown(at)})"
    )
    network = measured_network(atom, target, error, method, request, OPAQUE)
    return SolvedGrid(network, atom, None)


def _not_reached(target: CallableSeveral, request: BuildRequest, best: float) -> AnchorheadError:
    return AnchorheadError(
        f"within={request.error:g} was not reached for {target} in {request.dtype}: the best grid found errs by "
        f"{best:.3g}. What would help: a larger error, a smaller box; a function with kinks needs a network of its "
        "own, see ah.convert"
    )
