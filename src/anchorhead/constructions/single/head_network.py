"""A head on a scalar as a network: one token asks, and it and the registers carry the anchors.

Part h of the head is attention head h. Token k carries anchor k of every part, as features (slope, offset, values); the
input token carries anchor 0. The query of the input token is (s - origin, 1). A part with fewer anchors than there are
tokens repeats its last one with an offset so low that its weight is 0 in floating point.
"""

from __future__ import annotations

import numpy as np

from anchorhead.heads.atom import Atom, Part
from anchorhead.language.of_targets import program_of
from anchorhead.language.targets import CallableTarget, ScalarTarget
from anchorhead.network import Attention, Embed, Network
from anchorhead.network.derivation import Derivation

ABSENT = 10_000.0


def head_network(atom: Atom, target: ScalarTarget | CallableTarget) -> Network:
    """The network, with its target and no certificate yet. Inputs (..., 1, 1), outputs (..., 1, functions)."""
    outputs = len(atom.bias)
    tokens = max(len(part) for part in atom.parts)
    reach = max(abs(end - atom.origin) for end in (target.low, target.high))
    names = ["query", "one"]
    columns = [np.zeros(tokens), np.ones(tokens)]
    for number, part in enumerate(atom.parts):
        label = f" of part {number}" if len(atom.parts) > 1 else ""
        names += [f"slope{label}", f"offset{label}", *(f"value {m}{label}" for m in range(outputs))]
        columns += _padded(part, tokens, reach)
    table = np.stack(columns, axis=1).astype(atom.dtype)
    table[0, 0] = -atom.origin
    width, heads = len(names), len(atom.parts)
    pick = np.eye(width, dtype=atom.dtype)
    block = 2 + outputs
    query = np.broadcast_to(pick[:2], (heads, 2, width))
    key = np.stack([pick[2 + h * block : 4 + h * block] for h in range(heads)])
    value = np.stack([pick[4 + h * block : 2 + (h + 1) * block] for h in range(heads)])
    output = np.broadcast_to(np.eye(outputs, dtype=atom.dtype), (heads, outputs, outputs))
    weight = np.zeros((width, 1), atom.dtype)
    weight[0, 0] = 1
    features = tuple(f"output {m}" for m in range(outputs)) if outputs > 1 else ("output",)
    count = len(atom.parts)
    labels = tuple(f"{target.name}, part {h} of {count}" if count > 1 else target.name for h in range(count))
    known = Derivation("scalar")
    if isinstance(target, CallableTarget):
        known = Derivation("opaque scalar", {"samples": target.samples.tolist()})
    return Network(
        [
            Embed(weight, table[0], registers=table[1:] if tokens > 1 else None, tokens=1, features=tuple(names)),
            Attention(query, key, value, output, bias=np.array(atom.bias), features=features, labels=labels),
        ],
        program=program_of(target),
        derivation=known,
    )


def _padded(part: Part, tokens: int, reach: float) -> list[np.ndarray]:
    """Slope, offset and values of each anchor, the last one repeated out of reach."""
    index = np.minimum(np.arange(tokens), len(part) - 1)
    absent = np.arange(tokens) >= len(part)
    largest = np.abs(part.slopes[index]) * reach + np.abs(part.offsets).max()
    far = np.maximum(ABSENT, largest / 8).astype(part.offsets.dtype)
    return [part.slopes[index], part.offsets[index] - np.where(absent, far, 0), *part.values[index].T]
