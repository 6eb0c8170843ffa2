"""Smooth functions of two to four variables as one softmax head over a tensor grid of anchors, proven.

heads.grids.grid picks keys and solves for values, grid_network lays them out, proof.grids.grid bounds the
error. A proof that does not end, because it is interrupted or takes too long, leaves the network with an error that is
measured.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from anchorhead.certificate import Certificate
from anchorhead.constructions.derivations import grid_entries
from anchorhead.constructions.grids.grid_network import grid_network
from anchorhead.decimals import round_up
from anchorhead.domain import Box
from anchorhead.effort import Effort
from anchorhead.errors import AnchorheadError, NotReached, UnprovenWarning
from anchorhead.given import checked_within
from anchorhead.heads.atom import Dtype
from anchorhead.heads.grids.grid import solve_grid
from anchorhead.heads.grids.grid_atom import MAX_VARIABLES, GridAtom
from anchorhead.language.of_targets import program_over_grid
from anchorhead.network import Network, Outside
from anchorhead.network.derivation import Derivation
from anchorhead.network.dtypes import dtype_name
from anchorhead.progress import Progress, Status
from anchorhead.proof.arithmetic.arithmetic import require_model
from anchorhead.proof.grids.grid import OPERATIONS, prove_grid, smooth_on_box
from anchorhead.proof.grids.grid_work import TooLong
from anchorhead.proof.search.callable_search import largest_error
from anchorhead.targets.several import SeveralVariables

__all__ = ["approximate_grid", "certified_grid", "grid_network"]

TRIES = 4
MAX_ANCHORS = 20_000
AIM = {1: 0.95, 2: 0.95, 3: 0.95, 4: 0.8}
"""The part of the error asked for that a grid is first solved for: proofs add to what a solver sees."""
_WAYS = (
    'placement="uniform", which builds continuous functions with kinks; max, min or abs in place of where, if it can '
    "be written so: they become neurons; "
)
"""What else can be done with a kink."""


def approximate_grid(
    target: SeveralVariables,
    within: float,
    dtype: Any = "float64",
    prove: bool = True,
    progress: Progress | None = None,
    outside: Outside = "warn",
    tokens: int | None = None,
    most: int = MAX_ANCHORS,
) -> Network:
    """The smallest grid found within the error, rounding included, as a network with its certificate.

    prove     prove the bound; else it is measured, the largest error that a search found
    progress  told how far the search and the proof are. A proof that is interrupted leaves the network, measured
    tokens    none: inputs (..., d), outputs (..., m); n: inputs (..., n, d/n), outputs (..., n, m/n)
    most      the most anchors; a grid that would be larger is refused before it is built
    """
    kind: Dtype = dtype_name(dtype)  # type: ignore[assignment]
    if not isinstance(target, SeveralVariables):
        raise AnchorheadError(f"{type(target).__name__} is not a target of several variables: give SeveralVariables")
    within = checked_within(within)
    if len(target.variables) > MAX_VARIABLES:
        raise AnchorheadError(
            f"{target} has {len(target.variables)} variables: a grid takes at most {MAX_VARIABLES}, because its size "
            "is a power of them; write the function as a sum of functions of fewer variables"
        )
    if prove:
        smooth_on_box(target.expressions, target.variables, target.low, target.high, _WAYS)
    aim = within * (AIM[len(target.variables)] if prove else 1.0)
    best: Network | None = None
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
        network, why = _certified(atom, target, why, progress, tokens, outside, effort, within)
        bound = _bound(network)
        if bound <= within:
            return network
        best = network if best is None or bound < _bound(best) else best
        aim *= 0.95 * min(within / bound, 1.0)
    reached = np.inf if best is None else _bound(best)
    raise NotReached(
        f"within={within:g} was not reached for {target} in {kind}: the best certificate says {reached:.3g}. What "
        f"would help: a larger error, {'float64, ' if kind == 'float32' else ''}a smaller box",
        best,
        reached,
        within,
    )


def certified_grid(
    atom: GridAtom,
    target: SeveralVariables,
    prove: bool = True,
    tokens: int | None = None,
    outside: Outside = "warn",
    progress: Progress | None = None,
) -> Network:
    """The network of a given grid with the bound that is proven for it, or measured."""
    why = "" if prove else "the proof was left out"
    return _certified(atom, target, why, progress, tokens, outside, Effort(OPERATIONS))[0]


def _known(
    atom: GridAtom,
    target: SeveralVariables,
    on: Box,
    why: str,
    progress: Progress | None,
    effort: Effort,
    within: float | None,
) -> tuple[Certificate, str]:
    """A proof, or, if there is a reason why there is none, a measurement; and that reason."""
    if why:
        return _measured(atom, target, on, why), why
    done = 0.0

    def noted(status: Status) -> None:
        nonlocal done
        done = status.share or done
        if progress:
            progress(status)

    try:
        ends, model = (target.low, target.high), require_model(atom.dtype)
        bound = prove_grid(atom, target.expressions, target.variables, *ends, model, effort, noted)
        return bound.statement(str(target)).certificate(on, atom.dtype, within), ""
    except KeyboardInterrupt:
        why = f"the proof was interrupted at {done:.0%}"
    except TooLong:
        why = f"the proof would take more than {OPERATIONS:,} operations on balls, by which {done:.0%} was done"
    known = _measured(atom, target, on, why)
    warnings.warn(f"{why}: the error is measured, {known.bound:.3g}, not proven", UnprovenWarning, stacklevel=3)
    return known, why


def _measured(atom: GridAtom, target: SeveralVariables, on: Box, why: str) -> Certificate:
    error, at = largest_error(atom, target)
    return Certificate(
        kind="measured",
        bound=round_up(error),
        on=on,
        dtype=atom.dtype,
        arithmetic=str(require_model(atom.dtype)),
        terms={"largest error found, as the dtype computes it": error},
        method=f"{why}; a search for the largest error, by points all over the box and climbs from the worst of them, "
        f"ended at ({', '.join(f'{x:.6g}' for x in at)})",
        target=str(target),
    )


def _certified(
    atom: GridAtom,
    target: SeveralVariables,
    why: str,
    progress: Progress | None,
    tokens: int | None,
    outside: Outside,
    effort: Effort,
    within: float | None = None,
) -> tuple[Network, str]:
    """The network with what is known of it, and the reason if that is measured."""
    network = grid_network(atom, tokens, target.variables)
    shape = (-1,) if tokens is None else (tokens, len(target.variables) // tokens)
    on = Box.of((np.reshape(target.low, shape), np.reshape(target.high, shape)))
    certificate, why = _known(atom, target, on, why, progress, effort, within)
    entries = grid_entries(atom, str(target), certificate.bound, None, len(network.layers) - 1)
    known = network.with_(
        program=program_over_grid(target, tokens),
        derivation=Derivation("grid", entries=entries),
        certificate=certificate,
        outside=outside,
    )
    return known, why


def _bound(network: Network) -> float:
    return np.inf if network.certificate is None else network.certificate.bound
