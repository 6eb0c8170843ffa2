"""Expressions of several parts as one network: neurons, and heads over grids, side by side (summands says which).

Grids are solved first, with a share of the error asked for; the neurons get what is left of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from anchorhead.certificate import Certificate
from anchorhead.constructions.build_options import BuildOptions
from anchorhead.constructions.derivations import grid_entries
from anchorhead.constructions.grids.grid import solved_grid
from anchorhead.constructions.grids.grid_network import GridPlacement, grid_network, place_grid
from anchorhead.constructions.layouts.side_by_side import Part, side_by_side
from anchorhead.constructions.mlp import mlp_network
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.network import Attention, Network, Outside
from anchorhead.progress import Progress
from anchorhead.proof.arithmetic.arithmetic import Arithmetic, require_model
from anchorhead.proof.heads.sum_of_parts import Share, Stated, grid_share, network_share, parts_statement, total_error
from anchorhead.targets.analysis.jump_search import find_jump_of
from anchorhead.targets.analysis.resolver import short
from anchorhead.targets.analysis.summands import GridPart
from anchorhead.targets.record import TargetRecord
from anchorhead.targets.several import SeveralVariables
from anchorhead.targets.several_expressions import Expressions

SHARES = (0.5, 0.9, 0.1)
"""Of the error asked for, what grids get, in the order tried, where there are neurons as well: more if the grids cannot
do, less if the neurons cannot."""
COARSE = 5
ROOM = 0.999
"""What is left of an error for a part, so that the sums may round."""


@dataclass(frozen=True, eq=False)
class _Grid:
    """A solved grid, the function that it approximates, and what is known of its error."""

    part: GridPart
    atom: GridAtom
    certificate: Certificate


@dataclass(frozen=True, eq=False)
class BuildRequest:
    """How the network is to be built, and what is asked for."""

    within: float
    options: BuildOptions
    prove: bool = True
    outside: Outside = "warn"
    progress: Progress | None = None


def approximate_parts(target: Expressions, build: BuildRequest) -> Network:
    """The network of all parts, with its certificate."""
    model = require_model(build.options.dtype)
    for part in target.parts.grids:
        several = grid_target(target, part)
        check_defined(several)
        check_continuous(several)
    refused: AnchorheadError | None = None
    least, most = 0.0, np.inf
    for share in SHARES if target.parts.network is not None else (1.0,):
        if not least < share < most:
            continue
        try:
            grids = _solved(target, build, share)
        except AnchorheadError as error:
            refused, least = refused or error, share
            continue
        shares = [_grid_share(target, grid) for grid in grids]
        try:
            neurons = _neurons(target, build, _left(target, build, shares, model))
        except AnchorheadError as error:
            refused, most = refused or error, share
            continue
        if neurons is not None and neurons.certificate is not None:
            shares.append(_network_share(target, neurons.certificate.bound))
        total, sums = total_error(shares, model)
        if total <= build.within:
            return _certified(target, build, grids, neurons, total, sums)
        refused = refused or AnchorheadError(
            f"the parts add up to {total:.3g}, of which {sums:.2g} is rounding of sums"
        )
    raise AnchorheadError(
        f"within={build.within:g} is not reached for {target} in {build.options.dtype}, by parts that share it: "
        f"{refused}"
    )


def _solved(target: Expressions, build: BuildRequest, share: float) -> list[_Grid]:
    """The grids, each with its part of the share: where several add up to one output, they divide it."""
    grids = target.parts.grids
    result = []
    for part in grids:
        rivals = max(sum(output in other.outputs for other in grids) for output in part.outputs)
        several = grid_target(target, part)
        found = solved_grid(
            several, ROOM * share * build.within / rivals, build.options.dtype, build.prove, build.progress,
        )  # fmt: skip
        if found.network.certificate is None:
            raise AnchorheadError(f"{part} came without a certificate")
        result.append(_Grid(part, found.atom, found.network.certificate))
    return result


def grid_target(target: Expressions, part: GridPart) -> SeveralVariables:
    """The functions of a grid, those of the outputs that have a share in it."""
    places = [target.variables.index(name) for name in part.variables]
    low, high = (tuple(end[place] for place in places) for end in (target.low, target.high))
    return SeveralVariables(tuple(part.expressions[output] for output in part.outputs), part.variables, low, high)


def check_defined(target: SeveralVariables) -> None:
    """Refuses functions that are not finite at the corners of the box or at the points of a coarse grid in it."""
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


def _grid_share(target: Expressions, grid: _Grid) -> Share:
    own = grid_target(target, grid.part)
    return grid_share(grid.part, grid.atom, own.low, own.high, grid.certificate.bound, target.outputs)


def _network_share(target: Expressions, error: float) -> Share:
    if target.parts.network is None:
        raise AnchorheadError(f"{target} has no neurons")
    return network_share(target.parts.network, np.array(target.low), np.array(target.high), error)


def _left(target: Expressions, build: BuildRequest, grids: Sequence[Share], model: Arithmetic) -> float:
    """What the neurons may err by: the rest, less what the sums round."""
    if target.parts.network is None:
        return 0.0
    total, _ = total_error([*grids, _network_share(target, 0.0)], model)
    return ROOM * (build.within - total)


def _neurons(target: Expressions, build: BuildRequest, within: float) -> Network | None:
    if target.parts.network is None:
        return None
    if within <= 0:
        raise AnchorheadError(
            "nothing is left for the neurons beside the grids. What would help: a larger error, dtype='float64', a "
            "smaller box"
        )
    return mlp_network(target.parts.network, _box(target), within, build.options, build.outside, build.progress)


def _box(target: Expressions) -> Box:
    return Box.of(tuple(np.reshape(end, target.input_shape) for end in (target.low, target.high)))


def _certified(
    target: Expressions,
    build: BuildRequest,
    grids: Sequence[_Grid],
    neurons: Network | None,
    total: float,
    sums: float,
) -> Network:
    parts = [grid_part(target, grid.part, grid.atom, build.options.causal) for grid in grids]
    stated = [Stated(one.part, one.atom.sides, one.certificate.terms, one.certificate.method) for one in grids]
    certificates = [grid.certificate for grid in grids]
    data, arrays = dict(target.record().data), {}
    if neurons is not None and neurons.certificate is not None and neurons.target is not None:
        parts.append(network_part(target, neurons))
        stated.append(Stated(None, (), neurons.certificate.terms, neurons.certificate.method))
        certificates.append(neurons.certificate)
        data["neurons"] = {name: neurons.target.data[name] for name in ("shapes", "assigned")}
        arrays = {f"neurons.{name}": array for name, array in neurons.target.arrays.items()}
    network, data["widths"] = side_by_side(parts, target.input_shape[-1])
    certificate = parts_statement(stated, total, sums, str(target)).certificate(
        _box(target), build.options.dtype, build.within
    )
    unproven = "; ".join(dict.fromkeys(one.method for one in certificates if one.kind != "proven"))
    if unproven:
        certificate = replace(certificate, kind="measured", method=f"{certificate.method}; measured: {unproven}")
    record = TargetRecord(target.record().kind, data, arrays)
    entries = [
        entry
        for grid in grids
        for entry in grid_entries(grid.atom, ", ".join(grid.part.variables), grid.certificate.bound, None)
    ]
    if neurons is not None and neurons.derivation is not None:
        entries += [replace(entry, layer=None) for entry in neurons.derivation.entries]
    known = network.approximating(record, certificate.on, entries)
    return known.with_(certificate=certificate, outside=build.outside)


def grid_part(target: Expressions, part: GridPart, atom: GridAtom, causal: bool) -> Part:
    """The grid as a network; in a sequence it has as many features as the outputs of a token that it has a share in."""
    places = [target.variables.index(name) for name in part.variables]
    columns = sorted({output % target.columns for output in part.outputs})
    sums = np.eye(target.columns)[:, columns]
    name = f"grid of {', '.join(part.variables)}"
    if target.tokens is None:
        return Part(name, grid_network(atom, variables=part.variables), tuple(places), sums)
    outputs = tuple((o // target.columns, columns.index(o % target.columns)) for o in part.outputs)
    features = target.input_shape[-1]
    place = GridPlacement(target.tokens, features, tuple(places), outputs, causal and target.tokens > 1)
    return Part(name, place_grid(atom, place, part.variables), tuple(range(features)), sums)


def network_part(target: Expressions, neurons: Network) -> Part:
    """The neurons; their heads see the registers that hold their anchors, and no others."""
    count = 0 if neurons.embed.registers is None else len(neurons.embed.registers)
    layers = [
        replace(layer, grid=(count,), mask=None)
        if isinstance(layer, Attention) and not _gathers(neurons, place)
        else layer
        for place, layer in enumerate(neurons.layers)
    ]
    network = Network(layers, neurons.output, token_axis=neurons.token_axis)
    return Part("neurons", network, tuple(range(target.input_shape[-1])), np.eye(target.columns))


def _gathers(neurons: Network, place: int) -> bool:
    """Where there are several tokens, the first attention gathers them."""
    return place == 1 and (neurons.embed.tokens or 1) > 1
