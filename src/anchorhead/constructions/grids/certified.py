"""A proven grid as a network: laid out, and proven anew from the weights that are stored."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.derivations import grid_entries
from anchorhead.constructions.grids.grid_network import grid_network
from anchorhead.language.program import Program
from anchorhead.language.targets.mlp import Affine
from anchorhead.language.targets.opaque_several import CallableSeveral
from anchorhead.language.targets.several import SeveralVariables
from anchorhead.lemmas.prove import prove_claims
from anchorhead.network import Network
from anchorhead.network.derivation import Derivation
from anchorhead.proof.grids.proven_grid import GridClaim, ProvenGrid

GRID = Derivation("grid")


def certified_network(
    grid: ProvenGrid,
    target: SeveralVariables | CallableSeveral,
    program: Program,
    request: BuildRequest,
    known: Derivation = GRID,
) -> Network:
    """The network of a grid with its certificate; known: by which construction, with its hints."""
    atom, tokens, variables, on = grid.atom, target.tokens, target.variables, target.on
    expressions = target.expressions if isinstance(target, SeveralVariables) else ()
    network = grid_network(atom, tokens, variables)
    each = atom.outputs // (tokens or 1)
    readers, (step,) = [n // each for n in range(atom.outputs)], program.applied
    claim = GridClaim.of(grid, range(atom.variables), readers, variables, expressions, step)
    bound = prove_claims(network, [claim], _last(atom.variables, atom.outputs), on)
    rounding = float((bound.approximation + bound.rounding).max()) - grid.exact
    certificate = grid.statement(str(target), rounding).certificate(on, atom.dtype, request.within)
    entries = grid_entries(atom, str(target), certificate.bound, None, len(network.layers) - 1)
    known = replace(known, entries=entries, claims=bound.claims)
    return network.with_(program=program, derivation=known, certificate=certificate, outside=request.outside)


def _last(before: int, count: int) -> Affine:
    """The last so many of all quantities."""
    weight = np.concatenate([np.zeros((count, before)), np.eye(count)], axis=1)
    return Affine(weight, np.zeros(count))
