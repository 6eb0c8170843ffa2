"""Reads a head on a scalar back from its network: softmaxes that add up, from nothing but the stored weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from anchorhead.errors import CertificateError
from anchorhead.network import Attention, Network
from anchorhead.proof.arithmetic.affine_forms import NOTHING
from anchorhead.proof.arithmetic.arithmetic import Arithmetic, arithmetic_of
from anchorhead.proof.arithmetic.layers import only_attention
from anchorhead.proof.arithmetic.readings import Keys, Refusal, constant_part, of_attention
from anchorhead.proof.arithmetic.silence import out_of_reach, rounding_of


@dataclass(frozen=True, eq=False)
class ReadPart:
    """One softmax, as stored: slopes (p,), offsets (p,), values (p, m)."""

    slopes: Float[np.ndarray, " p"]
    offsets: Float[np.ndarray, " p"]
    values: Float[np.ndarray, "p m"]


@dataclass(frozen=True, eq=False)
class HeadForm:
    """r(s) = bias + sum over parts of sum_k values_k softmax_k(slopes_k (s - origin) + offsets_k)."""

    parts: tuple[ReadPart, ...]
    origin: float
    bias: Float[np.ndarray, " m"]


def head_form(network: Network, low: float, high: float) -> HeadForm:
    """The head of a network, for inputs from low to high.

    Raises CertificateError where the weights are not those of a head, copied entry by entry.
    """
    embed, attention = network.embed, only_attention(network)
    if attention is None or (embed.tokens, embed.inputs) != (1, 1):
        raise CertificateError("the layers are not those of a head on a scalar")
    weight = np.broadcast_to(embed.weight, (1, *embed.weight.shape[-2:]))[0, :, 0]
    moving = np.flatnonzero(weight)
    if len(moving) != 1 or weight[moving[0]] != 1:
        raise CertificateError("not exactly one feature is the input")
    query, model = int(moving[0]), arithmetic_of(network.dtype)
    inputs, registers = constant_part(embed)
    try:
        readings = of_attention(attention, inputs, (inputs, registers), NOTHING, model)
    except Refusal as refusal:
        raise CertificateError(str(refusal)) from refusal
    origin = float(-inputs.constant[0, query])
    reach = max(abs(low - origin), abs(high - origin))
    parts = tuple(
        _present(_part(attention, head, query, readings.keys[kind], network.dtype), reach, model)
        for head, kind in enumerate(readings.kinds)
    )
    bias = np.zeros(attention.outputs) if attention.bias is None else np.asarray(attention.bias, np.float64)
    return HeadForm(parts, origin, bias)


def _part(attention: Attention, head: int, query: int, keys: Keys, dtype: str) -> ReadPart:
    """One softmax whose query is the input's feature, and whose values are read as they are."""
    asks, values = attention.query[head], keys.values
    moving = np.flatnonzero(asks[:, query])
    if len(moving) != 1 or not np.array_equal(asks[moving[0]], np.eye(len(asks[0]))[query]):
        raise CertificateError("a query is not (s - origin, 1)")
    if values is None or not np.array_equal(attention.output[head], np.eye(values.values.shape[1])):
        raise CertificateError("values depend on the input, or are not handed on as they are")
    if not values.exact or keys.slope_error.any() or keys.offset_error.any() or (keys.terms > 2).any():
        raise CertificateError("keys and values are not copies of features")
    order = np.argsort(keys.slopes, kind="stable")
    return ReadPart(*(array[order].astype(dtype) for array in (keys.slopes, keys.offsets, values.values)))


def _present(part: ReadPart, reach: float, arithmetic: Arithmetic) -> ReadPart:
    """The part without anchors that have another's slope and so low an offset that their weight is 0 in the dtype."""
    slopes, offsets = part.slopes.astype(np.float64), part.offsets.astype(np.float64)
    rounded = rounding_of(np.abs(slopes) * reach * (1 + 1e-12) + np.abs(offsets), 2, arithmetic)
    higher = np.array([(offsets - rounded)[slopes == slope].max() for slope in slopes])
    keep = ~out_of_reach(offsets + rounded, higher)
    return ReadPart(part.slopes[keep], part.offsets[keep], part.values[keep])
