"""A head on a scalar as a network: one token asks, and it and the registers carry the anchors.

Part h of the head is attention head h. Token k carries anchor k of every part, as features (slope, offset, values); the
input token carries anchor 0. The query of the input token is (s - origin, 1). A part with fewer anchors than there are
tokens repeats its last one with an offset so low that its weight is 0 in floating point.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from anchorhead.constructions.layouts.draft import Draft, Fill
from anchorhead.constructions.layouts.feature_names import outputs_called
from anchorhead.constructions.layouts.laid_out import ABSENT
from anchorhead.heads.atom import Atom, Part
from anchorhead.language.of_targets import program_of
from anchorhead.language.targets import CallableTarget, ScalarTarget
from anchorhead.network import Attention, Embed, Network
from anchorhead.network.derivation import Derivation


def head_drafts(lengths: Sequence[int], outputs: int, filled: tuple[Fill, Fill] = (dict, dict)) -> list[Draft]:
    """The layers of a head whose parts have so many anchors each; filled: what is written into Embed and Attention."""
    heads, tokens, width = len(lengths), max(lengths), 2 + len(lengths) * (2 + outputs)
    embed = {"weight": (width, 1), "bias": (width,), **({"registers": (tokens - 1, width)} if tokens > 1 else {})}
    asked = dict.fromkeys(("query", "key"), (heads, 2, width))
    read = {"value": (heads, outputs, width), "output": (heads, outputs, outputs), "bias": (outputs,)}
    return [Draft(Embed, embed, filled[0]), Draft(Attention, {**asked, **read}, filled[1])]


def head_network(atom: Atom, target: ScalarTarget | CallableTarget) -> Network:
    """The network, with its target and no certificate yet. Inputs (..., 1, 1), outputs (..., 1, functions)."""
    outputs = len(atom.bias)
    lengths = [len(part) for part in atom.parts]
    drafts = head_drafts(lengths, outputs, (partial(_fill_embed, atom, target), partial(_fill_heads, atom, target)))
    known = Derivation("scalar")
    if isinstance(target, CallableTarget):
        known = Derivation("opaque scalar", {"samples": target.samples.tolist()})
    return Network([draft.made(atom.dtype) for draft in drafts], program=program_of(target), derivation=known)


def _fill_embed(
    atom: Atom, target: ScalarTarget | CallableTarget, weight: np.ndarray, bias: np.ndarray, registers: Any = None
) -> dict[str, Any]:
    outputs, tokens = len(atom.bias), max(len(part) for part in atom.parts)
    reach = max(abs(end - atom.origin) for end in (target.low, target.high))
    names, columns = ["query", "one"], [np.zeros(tokens), np.ones(tokens)]
    for number, part in enumerate(atom.parts):
        label = f" of part {number}" if len(atom.parts) > 1 else ""
        names += [f"slope{label}", f"offset{label}", *(f"value {m}{label}" for m in range(outputs))]
        columns += _padded(part, tokens, reach)
    table = np.stack(columns, axis=1)
    table[0, 0] = -atom.origin
    weight[0, 0], bias[:] = 1, table[0]
    if registers is not None:
        registers[:] = table[1:]
    return {"tokens": 1, "features": tuple(names)}


def _fill_heads(
    atom: Atom, target: ScalarTarget | CallableTarget, query: Any, key: Any, value: Any, output: Any, bias: Any
) -> dict[str, Any]:
    outputs, count = len(atom.bias), len(atom.parts)
    query[:, :, :2], output[:], bias[:] = np.eye(2), np.eye(outputs), atom.bias
    for h in range(count):
        first = 2 + h * (2 + outputs)
        key[h, :, first : first + 2], value[h, :, first + 2 : first + 2 + outputs] = np.eye(2), np.eye(outputs)
    labels = tuple(f"{target.name}, part {h} of {count}" if count > 1 else target.name for h in range(count))
    return {"features": outputs_called(outputs), "labels": labels}


def _padded(part: Part, tokens: int, reach: float) -> list[np.ndarray]:
    """Slope, offset and values of each anchor, the last one repeated out of reach."""
    index = np.minimum(np.arange(tokens), len(part) - 1)
    absent = np.arange(tokens) >= len(part)
    largest = np.abs(part.slopes[index]) * reach + np.abs(part.offsets).max()
    far = np.maximum(ABSENT, largest / 8).astype(part.offsets.dtype)
    return [part.slopes[index], part.offsets[index] - np.where(absent, far, 0), *part.values[index].T]
