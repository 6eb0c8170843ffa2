"""What is proven of a whole network: the walk with the claims of its program, and its outputs at the end.

A bound holds for every input in the box; it is one of intervals alone where the weights are not those of the claims.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from anchorhead.conditions import NormImage
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.language.targets.mlp import Affine, Mlp
from anchorhead.lemmas.kernel import Smoothed
from anchorhead.lemmas.known import Claim
from anchorhead.lemmas.one_number import OneNumber
from anchorhead.lemmas.output import OutputBound, compared
from anchorhead.lemmas.record import Record
from anchorhead.lemmas.walk import walk
from anchorhead.network import Network
from anchorhead.proof.arithmetic.affine_forms import Sources
from anchorhead.proof.arithmetic.norm_image import NormSources
from anchorhead.proof.arithmetic.overflow import require_room
from anchorhead.proof.heads.neurons import Layer


def prove_mlp(network: Network, target: Mlp, layers: Sequence[Layer], readout: Affine, on: Box) -> OutputBound:
    """Against a network of neurons, a claim for each of its layers."""
    return prove_claims(network, layers, readout, on.broadcast_to(target.input_shape))


def prove_claims(network: Network, claims: Sequence[Claim], readout: Affine, box: Box) -> OutputBound:
    """In a box of the network's input shape, against a readout of what the walk ends with."""
    return _compared(network, claims, readout, Sources.in_box(box), box)


def prove_on_image(network: Network, claims: Sequence[Claim], readout: Affine, image: NormImage) -> OutputBound:
    """The same for tokens that are what a norm puts out, each on its own."""
    sources = NormSources.of(image)
    return _compared(network, claims, readout, sources, Box.of((sources.low, sources.high)))


def prove_functions(network: Network, claim: OneNumber | Smoothed, on: Box, cast: bool = True) -> OutputBound:
    """Of one layer, against what its one claim makes of each token's own inputs.

    cast   inputs may be of another type than the network's
    """
    box = on.broadcast_to(claim.given)
    sources = Sources(*(end.astype(float)[:, None] for end in (box.low, box.high)))
    return _compared(network, [claim], None, sources, box, cast)


def _compared(
    network: Network, claims: Sequence[Claim], readout: Affine | None, sources: Sources, box: Box, cast: bool = True
) -> OutputBound:
    require_room(network, box)
    record = Record()
    y, exact = walk(network, claims, sources, cast, record)
    wanted = prod(exact.low.shape) if readout is None else readout.outputs
    if network.output != "input" or y.constant.size != wanted:
        raise AnchorheadError(f"the network does not put out {wanted} numbers of its input tokens")
    return replace(compared(y, readout, exact), claims=record.table())
