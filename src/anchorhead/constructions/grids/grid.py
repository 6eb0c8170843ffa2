"""Smooth functions of two to four variables as one softmax head over a tensor grid of anchors, proven.

heads.grids.grid picks keys and solves for values, proof.grids.grid bounds the error, certified lays the grid out. A
proof that does not end, because it is interrupted or takes too long, leaves the network with an error that is
measured.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.grids.certified import certified_network, measured_network
from anchorhead.effort import Effort
from anchorhead.errors import AnchorheadError, NotReached, UnprovenWarning
from anchorhead.heads.grids.grid import solve_grid
from anchorhead.heads.grids.grid_atom import MAX_VARIABLES, GridAtom
from anchorhead.language.of_targets import program_of
from anchorhead.language.several import SeveralVariables
from anchorhead.network import Network
from anchorhead.progress import Status
from anchorhead.proof.arithmetic.arithmetic import require_model
from anchorhead.proof.grids.grid import OPERATIONS, prove_grid, smooth_on_box
from anchorhead.proof.grids.grid_work import TooLong
from anchorhead.proof.grids.proven_grid import ProvenGrid
from anchorhead.proof.search.callable_search import largest_error

TRIES = 4
MAX_ANCHORS = 20_000
AIM = {1: 0.95, 2: 0.95, 3: 0.95, 4: 0.8}
"""The part of the error asked for that a grid is first solved for: proofs add to what a solver sees."""
_WAYS = (
    'placement="uniform", which builds continuous functions with kinks; max, min or abs in place of where, if it can '
    "be written so: they become neurons; "
)
"""What else can be done with a kink."""


@dataclass(frozen=True, eq=False)
class SolvedGrid:
    """A grid as a network, and what is proven of it; if nothing is, why, and the error of the network is measured."""

    network: Network
    atom: GridAtom
    proven: ProvenGrid | None
    why: str = ""

    @property
    def bound(self) -> float:
        return np.inf if self.network.certificate is None else self.network.certificate.bound


def solved_grid(target: SeveralVariables, request: BuildRequest) -> SolvedGrid:
    """The smallest grid found within the error, rounding included, as a network with its certificate.

    A bound that is not to be proven is measured, the largest error that a search found; so is that of a network whose
    proof is interrupted. A grid of too many anchors is refused before it is built.
    """
    within, dtype, prove = request.error, request.dtype, request.prove
    require_few_variables(target)
    if prove:
        smooth_on_box(target.expressions, target.variables, target.low, target.high, _WAYS)
    aim = within * (AIM[len(target.variables)] if prove else 1.0)
    best: SolvedGrid | None = None
    why, effort = "" if prove else "the proof was left out", Effort(OPERATIONS)
    for _ in range(TRIES):
        try:
            atom = solve_grid(target.values, target.low, target.high, aim, dtype, MAX_ANCHORS, request.progress)
        except AnchorheadError:
            if best is not None:
                break  # what is asked for was nearly reached, but no closer
            if aim == within:
                raise
            atom = solve_grid(target.values, target.low, target.high, within, dtype, MAX_ANCHORS, request.progress)
        found = certified_grid(atom, target, request, why, effort)
        why = found.why
        if found.bound <= within:
            return found
        best = found if best is None or found.bound < best.bound else best
        aim *= 0.95 * min(within / found.bound, 1.0)
    reached = np.inf if best is None else best.bound
    raise NotReached(
        f"within={within:g} was not reached for {target} in {dtype}: the best certificate says {reached:.3g}. What "
        f"would help: a larger error, {'float64, ' if dtype == 'float32' else ''}a smaller box",
        None if best is None else best.network,
        reached,
        within,
    )


def require_few_variables(target: SeveralVariables) -> None:
    """Refuses functions of more variables than a grid can have."""
    if len(target.variables) > MAX_VARIABLES:
        raise AnchorheadError(
            f"{target} has {len(target.variables)} variables: a grid takes at most {MAX_VARIABLES}, because its size "
            "is a power of them; write the function as a sum of functions of fewer variables"
        )


def certified_grid(
    atom: GridAtom, target: SeveralVariables, request: BuildRequest, why: str, effort: Effort
) -> SolvedGrid:
    """Proven, or, if there is a reason why there is no proof, measured."""
    done = 0.0

    def noted(status: Status) -> None:
        nonlocal done
        done = status.share or done
        if request.progress:
            request.progress(status)

    interrupted = not why
    try:
        if not why:
            ends, model = (target.low, target.high), require_model(atom.dtype)
            proven = prove_grid(atom, target.expressions, target.variables, *ends, model, effort, noted)
            return SolvedGrid(certified_network(proven, target, program_of(target), request), atom, proven)
    except KeyboardInterrupt:
        why = f"the proof was interrupted at {done:.0%}"
    except TooLong:
        why = f"the proof would take more than {OPERATIONS:,} operations on balls, by which {done:.0%} was done"
    error, at = largest_error(atom, target)
    method = (
        f"{why}; a search for the largest error, by points all over the box and climbs from the worst of them, ended "
        f"at ({', '.join(f'{x:.6g}' for x in at)})"
    )
    found = SolvedGrid(measured_network(atom, target, error, method, request), atom, None, why)
    if interrupted:
        warnings.warn(f"{why}: the error is measured, {found.bound:.3g}, not proven", UnprovenWarning, stacklevel=3)
    return found
