"""Smooth functions of two to four variables as one softmax head over a tensor grid of anchors, proven.

heads.grids.grid picks keys and solves for values, proof.grids.grid bounds the error, certified lays the grid out. A
proof that does not end, because it is interrupted or takes too long, leaves the network with an error that is
measured.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorhead.certificate import Certificate
from anchorhead.constructions.derivations import grid_entries
from anchorhead.constructions.grids.certified import certified_network
from anchorhead.constructions.grids.grid_network import grid_network
from anchorhead.domain import Box
from anchorhead.effort import Effort
from anchorhead.errors import AnchorheadError, NotReached, UnprovenWarning
from anchorhead.given import checked_within
from anchorhead.heads.atom import Dtype
from anchorhead.heads.grids.grid import solve_grid
from anchorhead.heads.grids.grid_atom import MAX_VARIABLES, GridAtom
from anchorhead.language.of_targets import program_of
from anchorhead.language.targets.several import SeveralVariables
from anchorhead.network import Network, Outside
from anchorhead.network.derivation import Derivation
from anchorhead.network.dtypes import dtype_name
from anchorhead.progress import Progress, Status
from anchorhead.proof.arithmetic.arithmetic import require_model
from anchorhead.proof.grids.grid import OPERATIONS, prove_grid, smooth_on_box
from anchorhead.proof.grids.grid_work import TooLong
from anchorhead.proof.grids.proven_grid import ProvenGrid
from anchorhead.proof.search.callable_search import largest_error
from anchorhead.proof.statement import Statement
from anchorhead.terms import Term

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


def solved_grid(
    target: SeveralVariables,
    within: float,
    dtype: Any = "float64",
    prove: bool = True,
    progress: Progress | None = None,
    outside: Outside = "warn",
    most: int = MAX_ANCHORS,
) -> SolvedGrid:
    """The smallest grid found within the error, rounding included, as a network with its certificate.

    prove     prove the bound; else it is measured, the largest error that a search found
    progress  told how far the search and the proof are. A proof that is interrupted leaves the network, measured
    most      the most anchors; a grid that would be larger is refused before it is built
    """
    kind: Dtype = dtype_name(dtype)  # type: ignore[assignment]
    within = checked_request(target, within)
    if prove:
        smooth_on_box(target.expressions, target.variables, target.low, target.high, _WAYS)
    aim = within * (AIM[len(target.variables)] if prove else 1.0)
    best: SolvedGrid | None = None
    why, effort = "" if prove else "the proof was left out", Effort(OPERATIONS)
    for _ in range(TRIES):
        try:
            atom = solve_grid(target.values, target.low, target.high, aim, kind, most, progress)
        except AnchorheadError:
            if best is not None:
                break  # what is asked for was nearly reached, but no closer
            if aim == within:
                raise
            atom = solve_grid(target.values, target.low, target.high, within, kind, most, progress)
        found = certified_grid(atom, target, why, progress, outside, effort, within)
        why = found.why
        if found.bound <= within:
            return found
        best = found if best is None or found.bound < best.bound else best
        aim *= 0.95 * min(within / found.bound, 1.0)
    reached = np.inf if best is None else best.bound
    raise NotReached(
        f"within={within:g} was not reached for {target} in {kind}: the best certificate says {reached:.3g}. What "
        f"would help: a larger error, {'float64, ' if kind == 'float32' else ''}a smaller box",
        None if best is None else best.network,
        reached,
        within,
    )


def checked_request(target: Any, within: Any) -> float:
    """The error asked for; refuses functions of more variables than a grid can have."""
    if not isinstance(target, SeveralVariables):
        raise AnchorheadError(f"{type(target).__name__} is not a target of several variables: give SeveralVariables")
    within = checked_within(within)
    if len(target.variables) > MAX_VARIABLES:
        raise AnchorheadError(
            f"{target} has {len(target.variables)} variables: a grid takes at most {MAX_VARIABLES}, because its size "
            "is a power of them; write the function as a sum of functions of fewer variables"
        )
    return within


def certified_grid(
    atom: GridAtom,
    target: SeveralVariables,
    why: str,
    progress: Progress | None,
    outside: Outside,
    effort: Effort,
    within: float | None = None,
) -> SolvedGrid:
    """Proven, or, if there is a reason why there is no proof, measured."""
    done = 0.0

    def noted(status: Status) -> None:
        nonlocal done
        done = status.share or done
        if progress:
            progress(status)

    interrupted = not why
    try:
        if not why:
            ends, model = (target.low, target.high), require_model(atom.dtype)
            proven = prove_grid(atom, target.expressions, target.variables, *ends, model, effort, noted)
            functions = target.variables, target.expressions
            network = certified_network(
                proven,
                str(target),
                program_of(target),
                Derivation("grid"),
                *functions,
                target.tokens,
                outside,
                within,
            )
            return SolvedGrid(network, atom, proven)
    except KeyboardInterrupt:
        why = f"the proof was interrupted at {done:.0%}"
    except TooLong:
        why = f"the proof would take more than {OPERATIONS:,} operations on balls, by which {done:.0%} was done"
    known = _measured(atom, target, target.on, why)
    if interrupted:
        warnings.warn(f"{why}: the error is measured, {known.bound:.3g}, not proven", UnprovenWarning, stacklevel=3)
    network = grid_network(atom, target.tokens, target.variables)
    entries = grid_entries(atom, str(target), known.bound, None, len(network.layers) - 1)
    network = network.with_(
        program=program_of(target),
        derivation=Derivation("grid", entries=entries),
        certificate=known,
        outside=outside,
    )
    return SolvedGrid(network, atom, None, why)


def _measured(atom: GridAtom, target: SeveralVariables, on: Box, why: str) -> Certificate:
    error, at = largest_error(atom, target)
    method = (
        f"{why}; a search for the largest error, by points all over the box and climbs from the worst of them, ended "
        f"at ({', '.join(f'{x:.6g}' for x in at)})"
    )
    return Statement(error, (Term("found", error),), method, str(target)).measured(on, atom.dtype)
