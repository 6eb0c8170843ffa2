"""Prove: what a walk over the stored weights finds, stated as a certificate, with the derivation that it follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
from anchorhead.proof.heads.direct import evaluated_directly, following, narrowed
from anchorhead.proof.heads.evaluated_keys import DirectHeads


@dataclass(frozen=True, eq=False)
class ProvenMlp:
    """A network with its certificate, the drafts of its layers, and the neurons that these are of."""

    network: Network
    drafts: Sequence[Draft]
    laid: Laid


def certified(network: Network, target: Mlp, on: Box, laid: Laid, bound: OutputBound, request: BuildRequest) -> Network:
    layers = laid.layers
    direct, bound = _directly(network, target, on, laid, bound)
    evaluations = ("plain",) if direct is None else ("plain", "direct")
    statement = mlp_statement(bound, target, layers, laid.readout, evaluations)
    data = {} if direct is None else {"series": series_data(direct)}
    program = program_of(target, on)
    return network.with_(
        program=program,
        derivation=Derivation("mlp", data, neuron_entries(network, layers, program, bound.worst), claims=bound.claims),
        certificate=statement.certificate(on, network.dtype, request.within),
        outside=request.outside,
    )


def _directly(
    network: Network, target: Mlp, on: Box, laid: Laid, bound: OutputBound
) -> tuple[DirectModule | None, OutputBound]:
    """The direct evaluation that a bound covers, and that bound: of layers on no more than their neurons need, where
    these have series that follow their functions there."""
    try:
        heads = DirectHeads.of(network, laid.layers)
        narrow = narrowed(laid.layers, on.broadcast_to((network.embed.tokens or 1, network.embed.inputs)))
        series = following(heads, narrow)
        direct = evaluated_directly(heads, narrow, series) if series else None
        if direct is not None:
            as_it_was = all(one is other for one, other in zip(narrow, laid.layers, strict=True))
            again = bound if as_it_was else prove_mlp(network, target, narrow, laid.readout, on)
            if again.total <= bound.total:
                return direct, again
        return evaluated_directly(heads, laid.layers), bound
    except Refused:
        return None, bound
