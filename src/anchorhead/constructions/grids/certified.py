"""A grid as a network: laid out, and proven anew from the weights that are stored; or of which an error was found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.derivations import grid_entries
from anchorhead.constructions.grids.grid_network import grid_network
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.language.of_targets import program_of
from anchorhead.language.program import Program
from anchorhead.language.several import SeveralVariables
from anchorhead.language.targets.mlp import Affine
from anchorhead.language.targets.opaque_several import CallableSeveral
from anchorhead.lemmas.prove import prove_claims
from anchorhead.network import Network
from anchorhead.network.derivation import Derivation
from anchorhead.proof.grids.proven_grid import GridClaim, ProvenGrid
from anchorhead.proof.statement import Statement
from anchorhead.terms import Term

GRID, OPAQUE = Derivation("grid"), Derivation("opaque several")


def certified_network(
    grid: ProvenGrid,
    target: SeveralVariables | CallableSeveral,
    program: Program,
    request: BuildRequest,
    known: Derivation = GRID,
) -> Network:
    """The network of a grid with its certificate; known: by which construction."""
    atom, tokens, variables, on = grid.atom, target.tokens, target.variables, target.on
    expressions = target.expressions if isinstance(target, SeveralVariables) else ()
    network = grid_network(atom, tokens, variables)
    each = atom.outputs // (tokens or 1)
    readers, (step,) = [n // each for n in range(atom.outputs)], program.applied
    claim = GridClaim.of(grid, range(atom.variables), readers, variables, expressions, step)
    bound = prove_claims(network, [claim], _last(atom.variables, atom.outputs), on)
    rounding = float((bound.approximation + bound.rounding).max()) - grid.exact
    certificate = grid.statement(str(target), rounding).certificate(on, atom.dtype, request.within)
    entries = grid_entries(atom, str(target), certificate.bound, step, len(network.layers) - 1)
    known = replace(known, entries=entries, claims=bound.claims)
    return network.with_(program=program, derivation=known, certificate=certificate, outside=request.outside)


def measured_network(
    atom: GridAtom,
    target: SeveralVariables | CallableSeveral,
    error: float,
    method: str,
    request: BuildRequest,
    known: Derivation = GRID,
) -> Network:
    """The same where nothing is proven, and this is the largest error that a search found."""
    certificate = Statement(error, (Term("found", error),), method, str(target)).measured(target.on, atom.dtype)
    network = grid_network(atom, target.tokens, target.variables)
    program, last = program_of(target), len(network.layers) - 1
    (step,) = program.applied
    known = replace(known, entries=grid_entries(atom, str(target), certificate.bound, step, last, measured=True))
    return network.with_(program=program, derivation=known, certificate=certificate, outside=request.outside)


def _last(before: int, count: int) -> Affine:
    """The last so many of all quantities."""
    weight = np.concatenate([np.zeros((count, before)), np.eye(count)], axis=1)
    return Affine(weight, np.zeros(count))
