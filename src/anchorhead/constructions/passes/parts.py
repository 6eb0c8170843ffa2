"""Functions of several parts as one network: neurons, and heads over grids, side by side (summands says which)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from anchorhead.certificate import Certificate
from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.derivations import grid_entries
from anchorhead.constructions.grids.grid import SolvedGrid, solved_grid
from anchorhead.constructions.grids.grid_network import GridPlacement, filled_drafts
from anchorhead.constructions.layouts.draft import Draft
from anchorhead.constructions.layouts.side_by_side import Part, side_by_side
from anchorhead.constructions.passes.prove import ProvenMlp
from anchorhead.errors import AnchorheadError
from anchorhead.heads.grids.grid_atom import MAX_VARIABLES, GridAtom
from anchorhead.language.analysis.resolver import short
from anchorhead.language.analysis.summands import GridPart
from anchorhead.language.jump_search import find_jump_of
from anchorhead.language.of_targets import program_of_parts
from anchorhead.language.program import Program
from anchorhead.language.several import SeveralVariables
from anchorhead.language.targets.mlp import Affine
from anchorhead.lemmas.prove import prove_claims
from anchorhead.network import Attention, Network
from anchorhead.network.claim_table import ClaimTable
from anchorhead.network.derivation import Derivation
from anchorhead.proof.arithmetic.arithmetic import require_model
from anchorhead.proof.grids.proven_grid import GridClaim, ProvenGrid
from anchorhead.proof.statement import Statement
from anchorhead.terms import Term, added_up

COARSE = 5
ROOM = 0.999
"""What is left of an error for a part, so that the sums may round."""


@dataclass(frozen=True, eq=False)
class PartGrid:
    """A solved grid, the part that it approximates, and what it is to compute in a sum."""

    part: GridPart
    found: SolvedGrid
    claim: GridClaim

    @property
    def certificate(self) -> Certificate:
        known = self.found.network.certificate
        if known is None:
            raise AnchorheadError(f"{self.part} came without a certificate")
        return known


def require_plain(target: SeveralVariables, request: BuildRequest) -> None:
    """Refuses forms and layouts that a grid cannot have, with the term that needs one."""
    term = next(term for term in target.parts.terms if term.becomes == "grid")
    why = f"{term.expression} goes to a head over a grid, with layers of its own"
    if request.form not in (None, "deep"):
        raise AnchorheadError(
            f"form={request.form!r}: {why}, after those of the neurons: use form='deep', or leave it out"
        )
    if request.layout not in (None, "transformer"):
        raise AnchorheadError(
            f"layout={request.layout!r}: {why}, whose maps act on a token alone: use layout='transformer', or leave it "
            "out"
        )


def require_uniform(target: SeveralVariables, request: BuildRequest) -> None:
    """Refuses what the paper's uniform grid cannot be of."""
    if request.causal:
        raise AnchorheadError("causal=True with placement='uniform' on a grid: use placement='solved'")
    if len(target.variables) > MAX_VARIABLES:
        raise AnchorheadError(
            f"placement='uniform' would take a grid of {len(target.variables)} variables, and at most "
            f"{MAX_VARIABLES} are possible: use placement='solved', which takes the function apart"
        )


def groupings(target: SeveralVariables, causal: bool) -> Iterator[SeveralVariables]:
    """The functions as they are; then, where several grids were joined to one, each for itself."""
    yield target
    if causal or not target.one_grid:
        apart = replace(target, join=False)
        if [part.variables for part in apart.parts.grids] != [part.variables for part in target.parts.grids]:
            yield apart


def solved(target: SeveralVariables, request: BuildRequest, share: float) -> list[PartGrid]:
    """The grids, solved and proven, with a share of the error asked for."""
    result = []
    for part, several, within in grid_requests(target, share * request.error):
        found = solved_grid(several, replace(request, within=within))
        result.append(PartGrid(part, found, _claim(target, part, several, found)))
    return result


def grid_requests(target: SeveralVariables, within: float) -> Iterator[tuple[GridPart, SeveralVariables, float]]:
    """The functions of each grid, those of the outputs that have a share in it, and what it may err by: where several
    add up to one output, they divide it."""
    grids = target.parts.grids
    for part in grids:
        rivals = max(sum(output in other.outputs for other in grids) for output in part.outputs)
        yield part, _grid_target(target, part), ROOM * within / rivals


def _claim(target: SeveralVariables, part: GridPart, several: SeveralVariables, found: SolvedGrid) -> GridClaim:
    """The functions of a grid, by the places of its variables among all; of one that is not proven, what was found."""
    known, ends = found.proven, (np.array(several.low), np.array(several.high))
    if known is None:
        known = ProvenGrid(found.atom, *ends, (Term("found", found.bound),), 0.0, found.why)
    places = [target.variables.index(name) for name in part.variables]
    readers = [output // target.columns if target.tokens else 0 for output in part.outputs]
    return GridClaim.of(known, places, readers, part.variables, several.expressions)


def _grid_target(target: SeveralVariables, part: GridPart) -> SeveralVariables:
    places = [target.variables.index(name) for name in part.variables]
    low, high = (tuple(end[place] for place in places) for end in (target.low, target.high))
    return SeveralVariables(tuple(part.expressions[output] for output in part.outputs), part.variables, low, high)


def require_continuous(target: SeveralVariables) -> None:
    """Refuses functions that are not finite at the corners of the box or at the points of a coarse grid in it, and
    those that jump across a switch (where), with a place."""
    axes = [np.linspace(a, b, COARSE) for a, b in zip(target.low, target.high, strict=True)]
    x = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    with np.errstate(all="ignore"):
        y = target.values(x)
    bad = ~np.isfinite(y).all(axis=1)
    if bad.any():
        at = ", ".join(f"{name} = {value:g}" for name, value in zip(target.variables, x[bad.argmax()], strict=True))
        raise AnchorheadError(
            f"{target}: not defined at {at}, where it is {y[bad.argmax()].tolist()}; choose another box"
        )
    check_continuous(target)


def check_continuous(target: SeveralVariables) -> None:
    """Refuses expressions with switches (where) across which they jump, with a place."""
    jump = find_jump_of(target)
    if jump is None:
        return
    at, near = (
        ", ".join(f"{name} = {value!r}" for name, value in zip(target.variables, point, strict=True))
        for point in jump.points
    )
    raise AnchorheadError(
        f"{short(target.expressions[jump.output])} is not continuous: it jumps from {jump.values[0]:.6g} at {at} to "
        f"{jump.values[1]:.6g} at {near}; heads approximate continuous functions, so choose a box on one side of the "
        "place, or bridge the jump with a steep slope, as tanh does"
    )


def left_for_neurons(target: SeveralVariables, request: BuildRequest, grids: Sequence[PartGrid]) -> float:
    """About what the neurons may err by: the rest, less what the sums round."""
    ends = np.array([target.low, target.high, np.add(target.low, target.high) / 2])
    errors, sizes = np.zeros(target.outputs), np.abs(target.values(ends)).max(axis=0)
    for grid in grids:
        outputs = list(grid.part.outputs)
        errors[outputs] += grid.certificate.bound
        sizes[outputs] += 2 * grid.claim.ranges.size
    sums = require_model(request.dtype).gamma(len(grids) + 2) * sizes
    left = ROOM * (request.error - float((errors + sums).max()))
    if left <= 0:
        raise AnchorheadError(
            "nothing is left for the neurons beside the grids. What would help: a larger error, dtype='float64', a "
            "smaller box"
        )
    return left


def certified(
    target: SeveralVariables, request: BuildRequest, grids: Sequence[PartGrid], neurons: ProvenMlp | None
) -> Network:
    parts = [grid_part(target, grid.part, grid.found.atom, request.causal) for grid in grids]
    known = {str(grid.part): grid.certificate for grid in grids}
    program = program_of_parts(target)
    steps, entries = program.applied[len(program.applied) - len(grids) :], []
    for grid, step in zip(grids, steps, strict=True):
        measured, what = grid.certificate.kind != "proven", ", ".join(grid.part.variables)
        entries += grid_entries(grid.found.atom, what, grid.certificate.bound, step, measured=measured)
    if neurons is not None:
        parts.append(network_part(target, neurons.drafts))
        stored = neurons.network.derivation
        if neurons.network.certificate is not None and stored is not None:
            known["neurons"] = neurons.network.certificate
            entries += [replace(entry, layer=None) for entry in stored.entries]
    drafts = side_by_side(parts, target.input_shape[-1], target.tokens or 1)
    network = Network([draft.made(request.dtype) for draft in drafts], token_axis=target.tokens is not None)
    statement, claims = _statement(target, network, program, grids, neurons, known)
    certificate = statement.certificate(target.on, request.dtype, request.error)
    unproven = "; ".join(dict.fromkeys(one.method for one in known.values() if one.kind != "proven"))
    if unproven:
        certificate = replace(certificate, kind="measured", method=f"{certificate.method}; measured: {unproven}")
    return network.with_(
        program=program,
        derivation=Derivation("expressions", entries=tuple(entries), claims=claims),
        certificate=certificate,
        outside=request.outside,
    )


def _statement(
    target: SeveralVariables,
    network: Network,
    program: Program,
    grids: Sequence[PartGrid],
    neurons: ProvenMlp | None,
    known: Mapping[str, Certificate],
) -> tuple[Statement, ClaimTable]:
    """The whole network's bound, its functions of several variables, its neurons while these pass by, and the sum; and
    which entry of the program each is: its last functions are those of grids."""
    functions = [output for grid in grids for output in grid.part.outputs]
    layers = [] if neurons is None else [layer.beside(len(functions)) for layer in neurons.laid.layers]
    nothing = Affine(np.zeros((target.outputs, len(target.variables))), np.zeros(target.outputs))
    own = nothing if neurons is None else neurons.laid.readout
    weight = np.concatenate([own.weight, np.eye(target.outputs)[:, functions]], axis=1)
    readout = Affine(weight, own.bias, np.pad(own.errors[0], ((0, 0), (0, len(functions)))), own.errors[1])
    steps = program.applied[len(program.applied) - len(grids) :]
    claims = [*(replace(grid.claim, step=step) for grid, step in zip(grids, steps, strict=True)), *layers]
    bound = prove_claims(network, claims, readout, target.on.broadcast_to(target.input_shape))
    worst = int((bound.approximation + bound.rounding).argmax())
    terms = [
        Term("approximation", grid.claim.grid.exact, "grid", variables=grid.part.variables)
        for grid in grids
        if worst in grid.part.outputs
    ]
    if neurons is not None:
        left = max(float(bound.approximation[worst]) - added_up(terms), 0.0)
        terms.append(Term("approximation", left, "neurons"))
    terms.append(Term("rounding", float(bound.rounding[worst]), "network"))
    sides = {str(grid.part): f"{' x '.join(map(str, grid.found.atom.sides))} anchors" for grid in grids}
    methods = [f"{name}, {sides.get(name, one.method)}" for name, one in known.items()]
    method = f"parts side by side, {'; '.join(methods)}; one walk over all of them"
    return Statement(bound.total, tuple(terms), method, str(target)), bound.claims


def grid_part(target: SeveralVariables, part: GridPart, atom: GridAtom, causal: bool) -> Part:
    """The layers of a grid; in a sequence it has as many features as the outputs of a token that it has a share in."""
    places = tuple(target.variables.index(name) for name in part.variables)
    columns = sorted({output % target.columns for output in part.outputs})
    sums = np.eye(target.columns)[:, columns]
    name = f"grid of {', '.join(part.variables)}"
    if target.tokens is None:
        return Part(name, filled_drafts(atom, None, part.variables), places, sums)
    outputs = tuple((o // target.columns, columns.index(o % target.columns)) for o in part.outputs)
    features = target.input_shape[-1]
    place = GridPlacement(target.tokens, features, places, outputs, causal and target.tokens > 1)
    return Part(name, filled_drafts(atom, place, part.variables), tuple(range(features)), sums)


def network_part(target: SeveralVariables, drafts: Sequence[Draft]) -> Part:
    """The neurons; their heads see the registers that hold their anchors, and no others. Where there are several
    tokens, the first attention gathers them."""
    words = {"grid": drafts[0].shapes.get("registers", (0,))[:1], "mask": None}
    gathers = (target.tokens or 1) > 1
    own = [
        replace(draft, fill=partial(_filled, draft, words))
        if draft.kind is Attention and not (gathers and place == 1)
        else draft
        for place, draft in enumerate(drafts)
    ]
    return Part("neurons", own, tuple(range(target.input_shape[-1])), np.eye(target.columns))


def _filled(draft: Draft, words: Mapping[str, Any], **arrays: np.ndarray) -> dict[str, Any]:
    return {**draft.fill(**arrays), **words}
