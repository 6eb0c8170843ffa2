"""The lemma that always holds: a softmax mean lies between its values, whatever the weights.

As computed, the weights are positive numbers that add up to 1 up to gamma, so that for p keys

    min v - e <= read <= max v + e,      e = (gamma_(2p+2) + 4 p tiny) max |v| + 4 p tiny.

What no other lemma explains is bounded by it, never ignored.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from anchorhead.network import Attention
from anchorhead.proof.affine_forms import NOTHING, Forms, Sources, mapped
from anchorhead.proof.arithmetic import Arithmetic


def bound(
    least: Float[np.ndarray, "... keys"], most: Float[np.ndarray, "... keys"], arithmetic: Arithmetic
) -> tuple[Float[np.ndarray, "..."], Float[np.ndarray, "..."]]:
    """Between what a mean of values lies, as computed, from what each lies between."""
    keys = least.shape[-1]
    size = np.maximum(np.abs(least), np.abs(most)).max(axis=-1)
    lost = 4 * keys * arithmetic.tiny
    widened = ((arithmetic.gamma(2 * keys + 2) + lost) * size + lost) * (1 + 1e-9)
    return least.min(axis=-1) - widened, most.max(axis=-1) + widened


def of_head(values: Forms, sources: Sources, arithmetic: Arithmetic) -> Forms:
    """What a head reads of tokens whose values are these forms (tokens, entries): one token of entries."""
    low, high = bound(*(end.T for end in values.ends(sources)), arithmetic)
    return Forms.between(low[None], high[None])


def of_registers(
    layer: Attention, inputs: Forms, registers: Forms, sources: Sources, arithmetic: Arithmetic
) -> Forms:
    """What registers hold after an attention: what the skip carries, and means of some of the values."""
    skip = np.zeros((layer.outputs, layer.width)) if layer.skip is None else layer.skip.on_features()
    bias = np.zeros(layer.outputs) if layer.bias is None else layer.bias.astype(np.float64)
    if layer.skip is not None and layer.skip.bias is not None:
        bias = bias + layer.skip.bias
    kept = mapped(skip, bias, registers, NOTHING, arithmetic)
    low, high, size = np.zeros(layer.outputs), np.zeros(layer.outputs), np.zeros(layer.outputs)
    pairs = ((inputs, sources), (registers, NOTHING))
    means = []
    for value in layer.value:
        shown = [mapped(value, None, x, of, arithmetic).ends(of) for x, of in pairs]
        means.append(bound(*(np.concatenate(ends).T for ends in zip(*shown, strict=True)), arithmetic))
    for h, output in enumerate(layer.output.astype(np.float64)):
        ends = [output * end for end in means[min(h, len(means) - 1)]]
        low, high = low + np.minimum(*ends).sum(axis=1), high + np.maximum(*ends).sum(axis=1)
        size = size + np.maximum(*np.abs(ends)).sum(axis=1)
    read = Forms.between(low[None], high[None])
    terms = (layer.output != 0).sum(axis=(0, 2)) + (skip != 0).sum(axis=1) + 3
    summed = (arithmetic.gamma(terms) + 1e-12) * (size + kept.size(NOTHING)) + terms * arithmetic.tiny
    written = (layer.output != 0).any(axis=(0, 2))
    return Forms(
        kept.coefficients,
        kept.constant + np.where(written, read.constant, 0.0),
        kept.approximation + np.where(written, read.approximation, 0.0),
        kept.rounding + np.where(written, summed, 0.0),
    )
