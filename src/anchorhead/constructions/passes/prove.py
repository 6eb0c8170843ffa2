"""Prove: what a walk over the stored weights finds, stated as a certificate, with the derivation that it follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.derivations import neuron_entries
from anchorhead.constructions.layouts.draft import Draft
from anchorhead.constructions.layouts.neurons import Laid
from anchorhead.domain import Box
from anchorhead.language.of_targets import program_of
from anchorhead.language.targets.mlp import Mlp
from anchorhead.lemmas.mlp_statement import mlp_statement
from anchorhead.lemmas.output import OutputBound
from anchorhead.lemmas.prove import prove_mlp
from anchorhead.network import Network
from anchorhead.network.derivation import Derivation
from anchorhead.network.direct import DirectModule, Refused, series_data
from anchorhead.proof.heads.direct import SHARE, evaluated_directly, smoothed
from anchorhead.proof.heads.ways import Ways


@dataclass(frozen=True, eq=False)
class ProvenMlp:
    """A network with its certificate, the drafts of its layers, and the neurons that these are of."""

    network: Network
    drafts: Sequence[Draft]
    laid: Laid


def certified(network: Network, target: Mlp, on: Box, laid: Laid, bound: OutputBound, request: BuildRequest) -> Network:
    layers = laid.layers
    used = list({id(shape): shape for layer in layers for shape in layer.shapes}.values())
    direct, bound = _directly(network, target, on, laid, bound, request)
    evaluations = ("plain",) if direct is None else ("plain", "direct")
    statement = mlp_statement(bound, target, layers, laid.readout, evaluations)
    data: dict[str, Any] = {"kept": [layer.kept for layer in target.hidden], "shapes": [], "assigned": []}
    if direct is not None:
        data["series"] = series_data(direct)
    arrays: dict[str, np.ndarray] = {}
    for number, shape in enumerate(used):
        one, more = shape.record(number)
        data["shapes"].append(one)
        arrays |= more
    for number, layer in enumerate(layers):
        data["assigned"].append([used.index(shape) for shape in layer.shapes])
        arrays[f"{number}.assigned"] = layer.which
    return network.with_(
        program=program_of(target, on),
        derivation=Derivation("mlp", data, arrays, neuron_entries(network, layers), claims=bound.claims),
        certificate=statement.certificate(on, network.dtype, request.within),
        outside=request.outside,
    )


def _directly(
    network: Network, target: Mlp, on: Box, laid: Laid, bound: OutputBound, request: BuildRequest
) -> tuple[DirectModule | None, OutputBound]:
    """The direct evaluation that a bound covers, and that bound: of layers that allow for series of smooth heads, where
    these raise it by hardly anything."""
    try:
        ways = Ways.of(network, laid.layers)
        found = smoothed(ways, laid.layers, on.broadcast_to((network.embed.tokens or 1, network.embed.inputs)))
    except Refused:
        return None, bound
    if found is not None:
        allowing, series = found
        direct = evaluated_directly(ways, allowing, series)
        again = None if direct is None else prove_mlp(network, target, allowing, laid.readout, on)
        most = (1 + SHARE) * bound.total if request.within is None else request.within
        if again is not None and again.total <= min(most, (1 + SHARE) * bound.total):
            return direct, again
    return evaluated_directly(ways, laid.layers), bound
