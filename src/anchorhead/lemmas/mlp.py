"""Networks of neurons: the walk with a claim for each layer of the target, and its readout at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from anchorhead.conditions import NormImage
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.language.targets.mlp import Affine, Mlp
from anchorhead.lemmas.known import Claim
from anchorhead.lemmas.output import OutputBound, compared
from anchorhead.lemmas.record import Record
from anchorhead.lemmas.walk import walk
from anchorhead.network import Network
from anchorhead.proof.arithmetic.affine_forms import Sources
from anchorhead.proof.arithmetic.norm_image import NormSources
from anchorhead.proof.arithmetic.overflow import require_room
from anchorhead.proof.heads.neurons import Layer


def prove_mlp(network: Network, target: Mlp, layers: Sequence[Layer], readout: Affine, on: Box) -> OutputBound:
    """A bound for every input in the box; one of intervals alone where the weights are not those of the target."""
    _require_shapes(network, target)
    return prove_claims(network, layers, readout, on.broadcast_to(target.input_shape))


def prove_claims(network: Network, claims: Sequence[Claim], readout: Affine, box: Box) -> OutputBound:
    """A bound for every input in a box of the network's input shape, against a readout of what the walk ends with."""
    require_room(network, box)
    return _compared(network, claims, readout, Sources.in_box(box))


def prove_on_image(network: Network, claims: Sequence[Claim], readout: Affine, image: NormImage) -> OutputBound:
    """The same for tokens that are what a norm puts out, each on its own."""
    sources = NormSources.of(image)
    require_room(network, Box.of((sources.low, sources.high)))
    return _compared(network, claims, readout, sources)


def _compared(network: Network, claims: Sequence[Claim], readout: Affine, sources: Sources) -> OutputBound:
    record = Record()
    y, exact = walk(network, claims, sources, record=record)
    return replace(compared(y, readout, exact), claims=record.table())


def _require_shapes(network: Network, target: Mlp) -> None:
    """The network takes and gives what the target does, token by token."""
    axis, tokens = target.tokens is not None, target.tokens or 1
    last = network.streams[-1]
    given = network.token_axis, (network.embed.tokens, network.embed.inputs), (last.inputs, last.width)
    wanted = axis, (tokens, target.inputs // tokens), (tokens, target.outputs // tokens)
    if network.output != "input" or given != wanted:
        raise AnchorheadError(
            f"the network does not put out its input tokens, from {target.input_shape} to {target.output_shape}"
        )
