"""Reads a head on a scalar back from its network: softmaxes that add up, from nothing but the stored weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from anchorhead.errors import CertificateError
from anchorhead.network import Attention, Network
from anchorhead.proof.arithmetic import Arithmetic, arithmetic_of
from anchorhead.proof.layers import only_attention
from anchorhead.proof.silence import out_of_reach, rounding_of


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
    row = np.broadcast_to(embed.bias, (1, len(weight)))
    tokens = row if embed.registers is None else np.concatenate([row, embed.registers])
    moving = np.flatnonzero(weight)
    if len(moving) != 1 or weight[moving[0]] != 1:
        raise CertificateError("not exactly one feature is the input")
    query = int(moving[0])
    origin = float(-row[0, query])
    reach = max(abs(low - origin), abs(high - origin))
    model = arithmetic_of(network.dtype)
    parts = tuple(_present(_part(attention, h, query, tokens), reach, model) for h in range(attention.heads))
    bias = np.zeros(attention.outputs) if attention.bias is None else np.asarray(attention.bias, np.float64)
    return HeadForm(parts, origin, bias)


def _part(attention: Attention, h: int, query: int, tokens: np.ndarray) -> ReadPart:
    asks, key, value = (
        attention.query[h],
        attention.key[min(h, len(attention.key) - 1)],
        attention.value[min(h, len(attention.value) - 1)],
    )
    one = int(np.flatnonzero(asks[1])[0]) if len(asks) == 2 and (asks[1] != 0).sum() == 1 else -1
    asked = one >= 0 and np.array_equal(np.flatnonzero(asks[0]), [query]) and asks[0, query] == asks[1, one] == 1
    if not asked or tokens[0, one] != 1 or one == query:
        raise CertificateError("a query is not (s - origin, 1)")
    if not (_copies(key) and _copies(value) and np.array_equal(attention.output[h], np.eye(len(value)))):
        raise CertificateError("keys and values are not copies of features")
    if (key[:, query] != 0).any() or (value[:, query] != 0).any():
        raise CertificateError("keys or values depend on the input")
    keys = tokens[:, key.argmax(axis=1)]
    order = np.argsort(keys[:, 0], kind="stable")
    return ReadPart(keys[order, 0], keys[order, 1], tokens[order][:, value.argmax(axis=1)])


def _present(part: ReadPart, reach: float, arithmetic: Arithmetic) -> ReadPart:
    """The part without anchors that have another's slope and so low an offset that their weight is 0 in the dtype."""
    slopes, offsets = part.slopes.astype(np.float64), part.offsets.astype(np.float64)
    rounded = rounding_of(np.abs(slopes) * reach * (1 + 1e-12) + np.abs(offsets), 2, arithmetic)
    higher = np.array([(offsets - rounded)[slopes == slope].max() for slope in slopes])
    keep = ~out_of_reach(offsets + rounded, higher)
    return ReadPart(part.slopes[keep], part.offsets[keep], part.values[keep])


def _copies(matrix: np.ndarray) -> bool:
    """Whether every row picks one feature."""
    return bool(((matrix != 0).sum(axis=1) == 1).all() and (matrix.max(axis=1) == 1).all())
