"""The lemma that always holds: a softmax mean lies between its values, whatever the weights.

As computed, the weights are positive numbers that add up to 1 up to gamma, so that for p keys

    min v - e <= read <= max v + e,      e = (gamma_(2p+2) + 4 p tiny) max |v| + 4 p tiny.

What no other lemma explains is bounded by it, never ignored.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from anchorhead.network import Attention
from anchorhead.network.alike import first_alike
from anchorhead.proof.arithmetic.affine_forms import NOTHING, Forms, Sources, mapped
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic
from anchorhead.proof.arithmetic.rounding import sum_error

BLOCK = 2**24
"""How many coefficients of values are held at a time."""


def bound(
    least: Float[np.ndarray, "... keys"], most: Float[np.ndarray, "... keys"], arithmetic: Arithmetic
) -> tuple[Float[np.ndarray, "..."], Float[np.ndarray, "..."]]:
    """Between what a mean of values lies, as computed, from what each lies between."""
    keys = least.shape[-1]
    size = np.maximum(np.abs(least), np.abs(most)).max(axis=-1)
    lost = 4 * keys * arithmetic.tiny
    widened = ((arithmetic.gamma(2 * keys + 2) + lost) * size + lost) * UP
    return least.min(axis=-1) - widened, most.max(axis=-1) + widened


def of_head(values: Forms, sources: Sources, arithmetic: Arithmetic) -> Forms:
    """What a head reads of tokens whose values are these forms (tokens, entries): one token of entries."""
    least, most = values.ends(sources)
    low, high = bound(least.T, most.T, arithmetic)
    return Forms.between(low[None], high[None])


def skipped(
    layer: Attention, x: Forms, sources: Sources, arithmetic: Arithmetic
) -> tuple[Float[np.ndarray, "outputs features"], Forms]:
    """What passes an attention by: a matrix, and the features that it adds to the outputs with.

    A skip with a bias is a map of its own, which rounds, and what it gives is added as it is.
    """
    if layer.skip is None:
        return np.zeros((layer.outputs, layer.width)), x
    weight = layer.skip.on_features().astype(np.float64)
    if layer.skip.bias is None:
        return weight, x
    return np.eye(layer.outputs), mapped(weight, layer.skip.bias, x, sources, arithmetic)


def of_others(layer: Attention, inputs: Forms, others: Forms, sources: Sources, arithmetic: Arithmetic) -> Forms:
    """What registers and states hold after an attention: what the skip carries, and means of some of the values."""
    skip, passing = skipped(layer, others, NOTHING, arithmetic)
    kept = mapped(skip, layer.bias, passing, NOTHING, arithmetic)
    if not len(others.constant):
        return kept
    first, kinds = np.unique(first_alike(layer.value, layer.heads), return_inverse=True)
    _, entries, width = layer.value.shape
    many, means = max(1, BLOCK // (entries * max(1, inputs.coefficients[:, 0].size))), []
    for start in range(0, len(first), many):
        weight = layer.value[first[start : start + many]].reshape(-1, width)
        pairs = ((inputs, sources), (others, NOTHING))
        shown = [mapped(weight, None, x, of, arithmetic).ends(of) for x, of in pairs]
        least, most = (np.concatenate([ends[way] for ends in shown]).T for way in (0, 1))
        means.append(Forms.between(*(end[None] for end in bound(least, most, arithmetic))))
    read = Forms.joined(means, axis=1).reshaped(len(first), entries).tokens(kinds.reshape(-1)).flat()
    output = np.concatenate(layer.output, axis=1, dtype=np.float64)
    approximation, size = (np.abs(output) @ one[0] for one in (read.approximation, read.size(NOTHING)))
    terms = (layer.output != 0).sum(axis=(0, 2)) + (skip != 0).sum(axis=1) + 3
    size = size + kept.size(NOTHING)
    summed = sum_error(terms, size, arithmetic) + 1e-12 * size
    written = (layer.output != 0).any(axis=(0, 2))
    return Forms(
        kept.coefficients,
        kept.constant + np.where(written, output @ read.constant[0], 0.0),
        kept.approximation + np.where(written, approximation, 0.0),
        kept.rounding + np.where(written, summed, 0.0),
    )
