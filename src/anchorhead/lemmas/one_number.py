"""Functions of one number a token, and heads that are all there is of a layer: f_g(s_i) for output g of token i.

    build   heads.atom, theorems: anchors in tokens and registers
    read    proof.heads.whole_head: softmaxes in one number v of the token, as they are stored
    bound   what is proven of those softmaxes for s = scale v + shift, and what f makes of the error of v

The sums of heads and their bias are part of what is proven of a whole head: nothing is rounded but once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from anchorhead.lemmas.known import Known
from anchorhead.lemmas.record import Notes
from anchorhead.network import Attention
from anchorhead.proof.arithmetic.affine_forms import Forms, Sources, along, distance
from anchorhead.proof.arithmetic.arithmetic import UP
from anchorhead.proof.arithmetic.readings import Refusal
from anchorhead.proof.arithmetic.rounding import exact_factor
from anchorhead.proof.heads.whole_head import WholeHead, read


@dataclass(frozen=True, eq=False)
class OneNumber:
    """The claim f_g(s_i), s_i = weight_i . x_i + bias_i, for every output g of token i.

    low, high      between what each f_g lies
    prove          bounds for heads that were read, and for an error of s: on |heads - f| in exact arithmetic, and on
                   what rounding and the error add to it
    scale, shift   s = scale v + shift for the number v that heads ask with
    step           which step of the program applies the functions, f_g to feature g of token i
    """

    weight: Float[np.ndarray, "tokens inputs"]
    bias: Float[np.ndarray, " tokens"]
    low: Float[np.ndarray, " outputs"]
    high: Float[np.ndarray, " outputs"]
    prove: Callable[[WholeHead, float], tuple[float, float]]
    scale: float = 1.0
    shift: float = 0.0
    step: int | None = None

    @property
    def given(self) -> tuple[int, ...]:
        """Tokens and inputs."""
        return self.weight.shape

    @property
    def outputs(self) -> int:
        return len(self.low)

    def after(self, sources: Sources) -> Sources:
        shape = (len(self.bias), 1, len(self.low))
        return Sources(np.broadcast_to(self.low, shape), np.broadcast_to(self.high, shape))


def after_whole_head(known: Known, layer: Attention) -> Known:
    """What is known after the last layer of a network."""
    claim = known.claim(OneNumber)
    embed = None if known.cast else known.embed
    whole = read(layer, known.inputs, known.others, known.sources, known.arithmetic, embed)
    if len(whole.bias) != claim.outputs:
        raise Refusal(f"{len(whole.bias)} outputs for {claim.outputs} functions")
    exact, rest = claim.prove(whole, query_error(claim, whole.number, known.sources))
    _note(known, claim, whole, layer, exact + rest)
    shape = (len(claim.bias), claim.outputs)
    eye = np.broadcast_to(np.eye(claim.outputs), (*shape, claim.outputs))
    return known.ended(Forms(eye, np.zeros(shape), np.full(shape, exact), np.full(shape, rest)))


def _note(known: Known, claim: OneNumber, whole: WholeHead, layer: Attention, error: float) -> None:
    """For each output the heads that it adds up, of whose numbers t = head.scale (v - head.origin) the steepest comes
    first: y_g = bias_g + sum_h w_h read_h is f_g(s), s = claim.scale v + claim.shift."""
    steepest = sorted(range(len(whole.heads)), key=lambda h: -float(np.abs(whole.heads[h].slopes).max()))
    for g in range(claim.outputs):
        entries = {h: np.flatnonzero(layer.output[h, g]) for h in steepest}
        softmaxes = [(h, int(own[0])) for h, own in entries.items() if whole.heads[h].values[:, g].any()]
        if softmaxes and claim.step is not None:
            (h, c), bias = softmaxes[0], float(whole.bias[g])
            head, weight = whole.heads[h], float(layer.output[h, g, c])
            scale, shift = claim.scale / head.scale, claim.scale * head.origin + claim.shift
            numbers = scale, shift, 1 / weight, -bias / weight, error
            known.record.add(-1, Notes.of_unit((claim.step, -1, g), numbers, softmaxes))


def query_error(claim: OneNumber, number: Forms, sources: Sources) -> float:
    """How far scale v + shift may be from s, over all tokens and inputs."""
    weight, bias, constant = claim.weight[:, None], claim.bias[:, None], number.constant
    difference = claim.scale * number.coefficients - weight
    off = claim.scale * constant + claim.shift - bias
    size = along(np.abs(weight), sources.size) + np.abs(bias) + abs(claim.shift) + np.abs(claim.scale * constant)
    units = np.where((constant == 0) & exact_factor(np.float64(claim.scale)), 0.0, 4.0)
    error = claim.scale * number.error + distance(difference, off, size, sources, units)
    return float(error.max()) * UP
