"""Ranges and rounding, layer by layer, through any network of the grammar.

For every kind of token: an interval that holds each feature in exact arithmetic, and a bound on how far the dtype's
own value may be from it. A softmax average lies between its values; logits that err by at most L move it by at most
tanh(L/2) times their spread, because the weights on any set of keys then move by at most that (the odds by exp(±2L)).
Sound for every network, tight for none with large logits: proofs of heads on a scalar (proof.scalar) do better.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.network import Attention, Embed, Kind, Linear, Network, Repeat, Softmax
from anchorhead.proof.arithmetic import Arithmetic, arithmetic_of
from anchorhead.proof.rounding import affine_error

MOST_STEPS = 10_000
WIDEN = 1e-12
"""Relative allowance for the float64 arithmetic of this file itself."""


@dataclass(frozen=True, eq=False)
class Range:
    """low <= exact <= high and |computed - exact| <= error, entry by entry."""

    low: Float[np.ndarray, "tokens features"]
    high: Float[np.ndarray, "tokens features"]
    error: Float[np.ndarray, "tokens features"]

    @property
    def size(self) -> Float[np.ndarray, "tokens features"]:
        """A bound on |exact|."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    def turned(self) -> Range:
        """Features as tokens, and tokens as features."""
        return Range(self.low.T, self.high.T, self.error.T)

    @classmethod
    def constant(cls, value: np.ndarray) -> Range:
        """A value that is stored, and so exact."""
        return cls(value.astype(np.float64), value.astype(np.float64), np.zeros(value.shape))

    @classmethod
    def joined(cls, parts: list[Range]) -> Range:
        return cls(*(np.concatenate([getattr(p, n) for p in parts]) for n in ("low", "high", "error")))


Ranges = dict[Kind, Range]


def propagate(network: Network, on: Box) -> Ranges:
    """Ranges of what leaves the network, by kind of token, for all inputs in the box.

    A network that takes any number of tokens is followed for one, which stands for all of them.
    """
    arithmetic = arithmetic_of(network.dtype)
    embed = network.embed
    box = on.broadcast_to((embed.tokens or 1, embed.inputs))
    now = _embedded(embed, box, arithmetic)
    for layer in network.layers[1:]:
        now = _after(layer, now, arithmetic, many=embed.tokens is None)
    return now


def rounding_error(network: Network, on: Box) -> float:
    """How far any output of the network, as the dtype computes it, may be from its value in exact arithmetic."""
    return float(propagate(network, on)[network.output].error.max())


def _embedded(embed: Embed, box: Box, arithmetic: Arithmetic) -> Ranges:
    inputs = Range(box.low, box.high, arithmetic.unit * box.magnitude + arithmetic.tiny)
    if embed.source is not None:
        inputs = Range(*(a[embed.source] for a in (inputs.low, inputs.high, inputs.error)))
    weight = np.broadcast_to(embed.weight, (len(inputs.low), *embed.weight.shape[-2:])).astype(np.float64)
    result: Ranges = {"input": _affine(weight, embed.bias.astype(np.float64), inputs, arithmetic)}
    if embed.registers is not None:
        result["register"] = Range.constant(embed.registers)
    if embed.states is not None:
        result["state"] = Range.constant(embed.states)
    return result


def _after(layer: Any, now: Ranges, arithmetic: Arithmetic, many: bool) -> Ranges:
    match layer:
        case Linear():
            return _after_linear(layer, now, arithmetic)
        case Softmax():
            return {kind: _softmax(layer, x, arithmetic) for kind, x in now.items()}
        case Attention():
            return _after_attention(layer, now, arithmetic, many)
        case Repeat() if layer.times <= MOST_STEPS:
            for _ in range(layer.times):
                for step in layer.layers:
                    now = _after(step, now, arithmetic, many)
            return now
    raise AnchorheadError(f"rounding is followed through at most {MOST_STEPS:,} repeated steps, not {layer.times:,}")


def _affine(weight: np.ndarray, bias: np.ndarray | None, x: Range, arithmetic: Arithmetic) -> Range:
    """W x + b on every token; weight (outputs, inputs) or (tokens, outputs, inputs)."""
    middle, radius = (x.low + x.high) / 2, (x.high - x.low) / 2
    centre = np.einsum("...oi,...i->...o", weight, middle)
    reach = np.einsum("...oi,...i->...o", np.abs(weight), radius)
    largest = np.einsum("...oi,...i->...o", np.abs(weight), x.size)
    if bias is not None:
        centre, largest = centre + bias, largest + np.abs(bias)
    slack = WIDEN * largest
    error = np.einsum("...oi,...i->...o", np.abs(weight), x.error)
    error = error + affine_error(weight, bias, x.size + x.error, arithmetic)
    return Range(centre - reach - slack, centre + reach + slack, error * (1 + WIDEN))


def _after_linear(layer: Linear, now: Ranges, arithmetic: Arithmetic) -> Ranges:
    bias = None if layer.bias is None else layer.bias.astype(np.float64)
    if not layer.across:
        weight = layer.on_features().astype(np.float64)
        return {kind: _affine(weight, bias, x, arithmetic) for kind, x in now.items()}
    everyone = Range.joined([now[kind] for kind in ("input", "register", "state") if kind in now])
    if layer.weight.ndim == 4:
        flat = Range(*(a.reshape(1, -1) for a in (everyone.low, everyone.high, everyone.error)))
        offset = None if bias is None else np.broadcast_to(bias, layer.weight.shape[:2]).reshape(-1)
        mapped = _affine(layer.dense().astype(np.float64), offset, flat, arithmetic)
        return {"input": Range(*(a.reshape(layer.weight.shape[:2]) for a in (mapped.low, mapped.high, mapped.error)))}
    mapped = _affine(layer.on_features().astype(np.float64), None, everyone, arithmetic)
    mix = np.zeros((0, 0)) if layer.mix is None else layer.mix.astype(np.float64)
    mixed = _affine(mix, None, mapped.turned(), arithmetic).turned()
    if bias is None:
        return {"input": mixed}
    return {"input": _added(mixed, Range.constant(np.broadcast_to(bias, mixed.low.shape)), arithmetic)}


def _added(a: Range, b: Range, arithmetic: Arithmetic) -> Range:
    error = a.error + b.error + arithmetic.unit * (a.size + b.size + a.error + b.error) * (1 + WIDEN)
    error = error + arithmetic.tiny
    slack = WIDEN * (a.size + b.size)
    return Range(a.low + b.low - slack, a.high + b.high + slack, error)


def _softmax(layer: Softmax, x: Range, arithmetic: Arithmetic) -> Range:
    parts = np.split(np.arange(sum(layer.groups)), np.cumsum(layer.groups)[:-1])
    results = [_softmax_group(Range(x.low[:, g], x.high[:, g], x.error[:, g]), arithmetic) for g in parts]
    return Range(*(np.concatenate([getattr(r, n) for r in results], axis=1) for n in ("low", "high", "error")))


def _softmax_group(z: Range, arithmetic: Arithmetic) -> Range:
    low, high = z.low[:, :, None], z.high[:, :, None]
    others = ~np.eye(z.low.shape[1], dtype=bool)
    most = np.exp(np.minimum(z.low[:, None, :] - high, 700.0)) * others
    least = np.exp(np.minimum(z.high[:, None, :] - low, 700.0)) * others
    least_weight, most_weight = 1 / (1 + least.sum(axis=2)), 1 / (1 + most.sum(axis=2))
    moved = np.tanh(
        _log_error(
            z.error.max(axis=1, keepdims=True),
            np.ptp(np.concatenate([z.low, z.high], 1), axis=1)[:, None],
            arithmetic,
        )
        / 2
    )
    terms = z.low.shape[1]
    error = (
        moved
        + (arithmetic.gamma(terms + 1) + arithmetic.gamma(terms)) * (most_weight + moved)
        + 4 * terms * arithmetic.tiny
    )
    return Range(least_weight * (1 - WIDEN), np.minimum(most_weight * (1 + WIDEN), 1.0), error * (1 + WIDEN))


def _log_error(logit_error: Any, gap: Any, arithmetic: Arithmetic) -> Any:
    """A bound on |log(computed / exact)| of an exponential, from that on its logit and the spread of the logits."""
    return logit_error + arithmetic.unit * (gap + 2 * logit_error) + arithmetic.exp_error


def _after_attention(layer: Attention, now: Ranges, arithmetic: Arithmetic, many: bool) -> Ranges:
    """Every token may see every other: masks only take keys away, which moves no average out of the range of values."""
    everyone = Range.joined([now[kind] for kind in ("input", "register", "state") if kind in now])
    if many:
        raise AnchorheadError("rounding in an attention layer depends on the number of tokens: give Embed tokens=")
    seen = everyone if layer.grid is None else now["register"]
    terms = len(seen.low)
    total = Range(*(np.zeros((1, layer.outputs)) for _ in range(3)))
    for h in range(layer.heads):
        query, key, value = (
            _affine(matrix[min(h, len(matrix) - 1)].astype(np.float64), None, x, arithmetic)
            for matrix, x in ((layer.query, everyone), (layer.key, seen), (layer.value, seen))
        )
        q, k = (r.size.max(axis=0) for r in (query, key))
        dq, dk = (r.error.max(axis=0) for r in (query, key))
        axes = 1 if layer.grid is None else len(layer.grid)
        product = float(((q + dq) * (k + dk)).sum())
        logit_error = float((dq * (k + dk) + q * dk).sum()) + float(arithmetic.gamma(len(q) + axes)) * product
        logit_error += 2 * (len(q) + axes) * arithmetic.tiny
        moved = np.tanh(_log_error(np.array(logit_error), np.array(2 * product), arithmetic) / 2)
        low, high = value.low.min(axis=0), value.high.max(axis=0)
        size, wrong = value.size.max(axis=0), value.error.max(axis=0)
        sums = float(arithmetic.gamma(terms + 1) + arithmetic.gamma(terms)) / (1 - float(arithmetic.gamma(terms)))
        error = (high - low) * moved + wrong + sums * (size + wrong) + 4 * terms * arithmetic.tiny * (size + wrong + 1)
        read = Range(low[None], high[None], error[None])
        total = _added(total, _affine(layer.output[h].astype(np.float64), None, read, arithmetic), arithmetic)
    if layer.bias is not None:
        total = _added(total, Range.constant(layer.bias[None]), arithmetic)
    result: Ranges = {}
    for kind, x in now.items():
        spread = Range(*(np.broadcast_to(a, (len(x.low), layer.outputs)) for a in (total.low, total.high, total.error)))
        result[kind] = (
            spread
            if layer.skip is None
            else _added(spread, _after_linear(layer.skip, {kind: x}, arithmetic)[kind], arithmetic)
        )
    return result
