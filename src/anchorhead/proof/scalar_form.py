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
from anchorhead.network import Attention, Embed, Network
from anchorhead.proof.arithmetic import Arithmetic, arithmetic_of
from anchorhead.proof.layers import only_attention
from anchorhead.proof.rounding import dot_error, exact_factor
from anchorhead.proof.scalar_head import Readout, ScalarHead

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
    reader = _Reader(embed, attention, embed.features.index(QUERY), arithmetic_of(network.dtype))
    weight = np.broadcast_to(embed.weight, (len(reader.inputs), *embed.weight.shape[-2:]))
    weight = weight[:, reader.query].astype(np.float64)
    bias = reader.inputs[:, reader.query]
    return ScalarForm(weight, bias, tuple(reader.head(h) for h in range(attention.heads)), reader.readout())


def _unreadable(why: str) -> AnchorheadError:
    return AnchorheadError(f"the network cannot be read as heads on one scalar: {why}")


class _Reader:
    def __init__(self, embed: Embed, attention: Attention, query: int, arithmetic: Arithmetic) -> None:
        self.attention, self.query, self.arithmetic = attention, query, arithmetic
        self.q, self.k, self.v, self.o = (
            getattr(attention, name).astype(np.float64) for name in ("query", "key", "value", "output")
        )
        width = embed.weight.shape[-2]
        self.inputs = np.broadcast_to(embed.bias, (embed.tokens or 0, width)).astype(np.float64)
        registers = np.zeros((0, width)) if embed.registers is None else embed.registers.astype(np.float64)
        self.tokens = np.concatenate([self.inputs, registers])
        varying = (embed.weight != 0).any(axis=tuple(a for a in range(embed.weight.ndim) if a != embed.weight.ndim - 2))
        varying[query] = True
        if (self.k[..., varying] != 0).any() or (self.v[..., varying] != 0).any():
            raise _unreadable("its keys or values depend on the input")
        asked = (self.q != 0).any(axis=(0, 1))
        asked[query] = False
        if (asked & varying).any() or (np.ptp(self.inputs[:, asked], axis=0) != 0).any():
            raise _unreadable(f"its queries depend on more than the feature {QUERY!r}")
        self.constants = np.where(asked, self.inputs[0], 0.0)

    def head(self, number: int) -> ScalarHead:
        """One head: the query is (a (q - origin), b), its slopes a key_0, its offsets b key_1."""
        q, k = self.q[number], self.k[min(number, len(self.k) - 1)]
        if q.shape[0] != 2:
            raise _unreadable(f"its queries have size {q.shape[0]}, not 2")
        moving = np.flatnonzero(q[:, self.query])
        if len(moving) != 1:
            raise _unreadable("not exactly one entry of the query follows the scalar")
        turn, still = int(moving[0]), 1 - int(moving[0])
        scale, fixed = q[turn, self.query], q @ self.constants
        terms = q * self.constants
        if not (exact_factor(q) | exact_factor(self.constants)).all() or ((terms != 0).sum(axis=1) > 1).any():
            raise _unreadable("the constants of its queries are sums or products that round")
        if not exact_factor(scale) or not exact_factor(fixed[still]):
            raise _unreadable("its queries are scaled by something other than a power of two")
        keys, key_error = self._constants(k)
        values, value_error, groups = self._values(number)
        return _sorted_head(
            slopes=scale * keys[:, turn],
            offsets=fixed[still] * keys[:, still],
            values=values,
            groups=groups,
            origin=float(-fixed[turn] / scale),
            slope_error=np.abs(scale) * key_error[:, turn],
            offset_error=np.abs(fixed[still]) * key_error[:, still],
            value_error=value_error,
        )

    def readout(self) -> Readout:
        bias = 0.0 if self.attention.bias is None else float(self.attention.bias[0])
        if self.attention.bias is not None and self.attention.outputs > 1 and (self.attention.bias != 0).any():
            raise _unreadable("it has several outputs and a bias")
        return Readout(bias, int(not exact_factor(self.o).all()))

    def _constants(self, matrix: Float[np.ndarray, "size features"]) -> tuple[np.ndarray, np.ndarray]:
        """What a linear map makes of the constant tokens, and how far the dtype may be from it: (tokens, size) each."""
        terms = self.tokens[:, None, :] * matrix
        exact = exact_factor(self.tokens)[:, None, :] | exact_factor(matrix)
        if self.arithmetic.dtype == "float32":
            exact |= terms.astype(np.float32) == terms
        result = terms.sum(axis=-1)
        return result, dot_error(np.abs(terms), exact, result, self.arithmetic)

    def _values(self, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The value that each anchor writes, its error, and the output feature that it writes to."""
        values, error = self._constants(self.v[min(number, len(self.v) - 1)])
        output = self.o[number]
        if ((output != 0).sum(axis=1) > 1).any():
            raise _unreadable("an output adds up several entries of a value")
        # what softmax and sums lose below the smallest normal number is multiplied, too
        lost = (
            4 * len(self.tokens) * self.arithmetic.tiny * np.where(np.abs(output) > 1, np.abs(output), 0.0).sum(axis=1)
        )
        written, error = values @ output.T, error @ np.abs(output).T + lost
        if ((written != 0).sum(axis=1) > 1).any():
            raise _unreadable("an anchor writes to several outputs")
        groups = np.where((written != 0).any(axis=1), np.abs(written).argmax(axis=1), -1)
        return (
            written.sum(axis=1),
            error.max(axis=1),
            groups if written.shape[1] > 1 else np.zeros_like(groups),
        )


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
