"""How far a converted network is from its target: what the walk knows of its output, against the target's readout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.lemmas.known import Claim
from anchorhead.lemmas.walk import walk
from anchorhead.network import Network
from anchorhead.proof.arithmetic.affine_forms import Forms, Sources, own_error
from anchorhead.proof.arithmetic.overflow import require_room
from anchorhead.proof.heads.neurons import Layer
from anchorhead.targets.mlp import Affine, Mlp

TERMS = ("anchors: heads in place of activations, in exact arithmetic", "rounding, weights as stored included")


@dataclass(frozen=True, eq=False)
class MlpBound:
    """|network - target| <= approximation + rounding, entry by entry of the output."""

    approximation: Float[np.ndarray, " outputs"]
    rounding: Float[np.ndarray, " outputs"]

    @property
    def total(self) -> float:
        return float((self.approximation + self.rounding).max()) * (1 + 1e-12)

    def terms(self) -> dict[str, float]:
        worst = int((self.approximation + self.rounding).argmax())
        return dict(zip(TERMS, (float(self.approximation[worst]), float(self.rounding[worst])), strict=True))


def prove_mlp(network: Network, target: Mlp, layers: Sequence[Layer], readout: Affine, on: Box) -> MlpBound:
    """A bound for every input in the box; one of intervals alone where the weights are not those of the target."""
    _require_shapes(network, target)
    return prove_claims(network, layers, readout, on.broadcast_to(target.input_shape))


def prove_claims(network: Network, claims: Sequence[Claim], readout: Affine, box: Box) -> MlpBound:
    """A bound for every input in a box of the network's input shape, against a readout of what the walk ends with."""
    require_room(network, box)
    y, exact = walk(network, claims, Sources(*(end.reshape(-1).astype(float) for end in (box.low, box.high))))
    return compared(y, readout, exact)


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


def compared(y: Forms, readout: Affine, sources: Sources) -> MlpBound:
    """The forms of the output against the target's readout."""
    weight, bias = readout.weight, readout.bias
    coefficients, constant, approximation, rounding = y.flat().arrays
    difference = coefficients[0] - weight
    left = np.abs(difference @ sources.middle + constant[0] - bias) + np.abs(difference) @ sources.radius
    weight_error, bias_error = readout.errors
    left += weight_error @ sources.size + bias_error
    noise = own_error(8) * (np.abs(weight) @ sources.size + np.abs(bias))
    noise += own_error(weight.shape[1]) * (np.abs(difference) @ sources.size)
    rounding = rounding[0] + left + noise
    # infinities that cancel, of logits whose rounding has no bound, leave no number: nothing is known then
    approximation, rounding = (np.where(np.isnan(one), np.inf, one) for one in (approximation[0], rounding))
    return MlpBound(approximation, rounding)
