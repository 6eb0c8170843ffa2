"""Reads an Embed followed by an Attention as a sum of heads on one scalar, from nothing but its weights.

The scalar is the feature called "query": the only one that depends on the input. All other features that queries, keys
and values read are constants of a token, so slopes, offsets and values of every head are numbers; how far the dtype's
own products may be from them is kept with them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from anchorhead.errors import AnchorheadError
from anchorhead.network import Attention, Network
from anchorhead.proof.arithmetic.affine_forms import NOTHING, Forms
from anchorhead.proof.arithmetic.arithmetic import Arithmetic, arithmetic_of
from anchorhead.proof.arithmetic.layers import only_attention
from anchorhead.proof.arithmetic.readings import Keys, Refusal, constant_part, constants, of_attention
from anchorhead.proof.arithmetic.rounding import exact_factor
from anchorhead.proof.heads.scalar_head import Readout, ScalarHead

QUERY = "query"


@dataclass(frozen=True, eq=False)
class ScalarForm:
    """query_i = weight_i . x_i + bias_i for token i; the output is the sum of the heads there, and the read-out."""

    weight: Float[np.ndarray, "tokens inputs"]
    bias: Float[np.ndarray, " tokens"]
    heads: tuple[ScalarHead, ...]
    readout: Readout

    def queries(self, low: np.ndarray, high: np.ndarray) -> tuple[float, float]:
        """An interval that holds every token's query, for inputs in the box."""
        ends = (
            np.where(self.weight > 0, self.weight * low, self.weight * high),
            np.where(self.weight > 0, self.weight * high, self.weight * low),
        )
        least, most = ((end.sum(axis=1) + self.bias) for end in ends)
        slack = 1e-6 * (np.abs(ends).sum(axis=(0, 2)) + np.abs(self.bias) + 1e-300)
        return float((least - slack).min()), float((most + slack).max())


def scalar_form(network: Network) -> ScalarForm:
    """The scalar form of a network, refused with a reason where it has none."""
    embed, attention = network.embed, only_attention(network)
    if attention is None:
        raise _unreadable("it is not an Embed of so many tokens and one plain Attention")
    if embed.features is None or embed.features.count(QUERY) != 1:
        raise _unreadable(f"it has no feature called {QUERY!r}")
    query, arithmetic = embed.features.index(QUERY), arithmetic_of(network.dtype)
    inputs, registers = constant_part(embed, also=query)
    try:
        readings = of_attention(attention, inputs, (inputs, registers), NOTHING, arithmetic)
        origins = [_origin(attention, head, query, inputs, arithmetic) for head in range(attention.heads)]
    except Refusal as refusal:
        raise _unreadable(str(refusal)) from refusal
    kinds = readings.kinds.reshape(-1, attention.heads)
    if (kinds != kinds[0]).any():
        raise _unreadable("its tokens ask in different ways")
    heads = tuple(
        _head(readings.keys[kind], *origin, output.astype(np.float64))
        for kind, origin, output in zip(kinds[0], origins, attention.output, strict=True)
    )
    weight = np.broadcast_to(embed.weight, (len(inputs.constant), *embed.weight.shape[-2:]))
    return ScalarForm(weight[:, query].astype(np.float64), inputs.constant[:, query], heads, _readout(attention))


def _unreadable(why: str) -> AnchorheadError:
    return AnchorheadError(f"the network cannot be read as heads on one scalar: {why}")


def _origin(attention: Attention, head: int, query: int, inputs: Forms, arithmetic: Arithmetic) -> tuple[float, float]:
    """The scale and the origin of a head that asks with scale (q - origin), both of which round nothing."""
    moving = np.flatnonzero(attention.query[head, :, query])
    if len(moving) != 1:
        raise Refusal("not exactly one entry of the query follows the scalar")
    row = attention.query[head, moving].astype(np.float64)
    scale = float(row[0, query])
    row[0, query] = 0.0
    fixed = constants(row, inputs, arithmetic)
    if not fixed.exact or not exact_factor(np.float64(scale)) or (fixed.values != fixed.values[0]).any():
        raise Refusal("its queries are scaled by something other than a power of two, or their constants round")
    return scale, float(-fixed.values[0, 0] / scale)


def _head(keys: Keys, scale: float, origin: float, output: Float[np.ndarray, "outputs entries"]) -> ScalarHead:
    """One head, over the output features that its anchors write to."""
    values = keys.values
    if values is None:
        raise _unreadable("its values depend on the input")
    if ((output != 0).sum(axis=1) > 1).any():
        raise _unreadable("an output adds up several entries of a value")
    # what softmax and sums lose below the smallest normal number is multiplied, too
    loud = np.where(np.abs(output) > 1, np.abs(output), 0.0).sum(axis=1)
    lost = 4 * len(keys.slopes) * keys.arithmetic.tiny * loud
    written, error = values.values @ output.T, values.error @ np.abs(output).T + lost
    if ((written != 0).sum(axis=1) > 1).any():
        raise _unreadable("an anchor writes to several outputs")
    groups = np.where((written != 0).any(axis=1), np.abs(written).argmax(axis=1), -1)
    return _sorted_head(
        slopes=scale * keys.slopes,
        offsets=keys.offsets,
        values=written.sum(axis=1),
        groups=groups if written.shape[1] > 1 else np.zeros_like(groups),
        origin=origin,
        slope_error=abs(scale) * keys.slope_error,
        offset_error=keys.offset_error,
        value_error=error.max(axis=1),
    )


def _readout(attention: Attention) -> Readout:
    bias = 0.0 if attention.bias is None else float(attention.bias[0])
    if attention.bias is not None and attention.outputs > 1 and (attention.bias != 0).any():
        raise _unreadable("it has several outputs and a bias")
    return Readout(bias, int(not exact_factor(attention.output.astype(np.float64)).all()))


def _sorted_head(origin: float, **columns: np.ndarray) -> ScalarHead:
    """A head with its anchors in order, and those that several tokens carry taken together."""
    table = np.stack(list(columns.values()), axis=1)
    rows, counts = np.unique(table, axis=0, return_counts=True)
    if len(rows) < 2 or len(set(counts)) != 1:
        raise _unreadable("its anchors are fewer than two, or carried by different numbers of tokens")
    if len(np.unique(rows[:, 0])) != len(rows):
        raise _unreadable("two anchors have the same slope")
    parts = dict(zip(columns, rows.T, strict=True))
    parts["groups"] = parts["groups"].astype(int)
    return ScalarHead(**parts, origin=origin, copies=int(counts[0]))
