"""Neurons as heads in which the token is a key itself, laid out as one attention.

    sequence   tokens z, any number of them; then register tokens
    mask       a token sees itself and the registers
    head       query [s, 1] of a token, s = w.z + b; keys [slope, offset]; the token's own value is s, or, gated, u

A head's own factor, and what passes a neuron by (skip s + bias), are in the value maps: heads of the kind "carry" see
the token alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anchorhead.constructions.layouts.laid_out import ABSENT
from anchorhead.language.targets.mlp import Affine
from anchorhead.lemmas.self_key import OwnPart
from anchorhead.network import Attention, Embed, Network


def self_key_network(
    asks: Affine, carries: Affine | None, down: Affine, parts: Sequence[OwnPart], dtype: str, reach: float
) -> Network:
    """down phi(asks z), or, gated, down (phi(asks z) * carries z); reach: a bound on |s|."""
    tell = asks if carries is None else carries
    neurons, width, several = asks.outputs, asks.inputs, len(parts)
    columns = ["one"] + [f"{what}, {part.name}" for part in parts for what in ("slope", "offset", "value")]
    one, size = width, width + len(columns)
    tokens, registers = np.zeros(size), np.zeros((max(len(part.slopes) for part in parts), size))
    tokens[one] = 1.0
    query = np.zeros((neurons, 2, size))
    query[:, 0, :width], query[:, 0, one], query[:, 1, one] = asks.weight, asks.bias, 1.0
    keys, values = [], []
    for at, part in zip(range(one + 1, size, 3), parts, strict=True):
        here = len(part.slopes)
        logits = [abs(a) * reach + abs(b) for a, b in zip(part.slopes, part.offsets, strict=True)]
        away = -ABSENT - max(logits, default=0.0)
        tokens[at : at + 2] = (0.0, away) if part.own is None else part.own[:2]
        if here:
            registers[:here, at : at + 3] = np.stack([part.slopes, part.offsets, part.values], axis=1)
        registers[here:, at + 1] = away if part.own is None else away - abs(part.own[0]) * reach - abs(part.own[1])
        keys.append(np.eye(size)[at : at + 2])
        value = np.zeros((neurons, 1, size))
        value[:, 0, :width], value[:, 0, at + 2] = part.factor * tell.weight, 1.0
        value[:, 0, one] = part.factor * tell.bias + part.constant
        values.append(value)
    key = np.stack(keys[:1]) if several == 1 else np.concatenate([np.broadcast_to(k, (neurons, 2, size)) for k in keys])
    attention = Attention(
        np.concatenate([query] * several).astype(dtype),
        key.astype(dtype),
        np.concatenate(values).astype(dtype),
        np.concatenate([down.weight.T[..., None]] * several).astype(dtype),
        bias=down.bias.astype(dtype) if down.bias.any() else None,
        mask="self+registers",
        labels=tuple(f"neuron {r}, {part.name}" for part in parts for r in range(neurons)),
    )
    names = (*(f"z{j}" for j in range(width)), *columns)
    embed = Embed(
        np.eye(size, width, dtype=dtype), tokens.astype(dtype), registers=registers.astype(dtype), features=names
    )
    return Network([embed, attention])
