"""Which features of which kinds of tokens later layers read. It saves work, and no bound rests on it: what is not
needed is bounded coarsely, so that a mistake here makes bounds larger, never smaller."""

from __future__ import annotations

from typing import Any

import numpy as np

from anchorhead.verify.grammar import KINDS, Attention, Linear, Repeat, Softmax, Stream

Needed = dict[str, np.ndarray]


def needs(layers: list[Any], stream: Stream, output: str) -> list[Needed]:
    """What is needed of what enters each layer, and of what leaves the last."""
    counts = zip(KINDS, (stream.inputs, stream.registers, stream.states), strict=True)
    widths, kinds = [stream.width], [[kind for kind, count in counts if count]]
    for layer in layers:
        across = isinstance(layer, Linear) and layer.across
        outputs = layer.outputs if isinstance(layer, Linear | Attention) else widths[-1]
        widths.append(outputs)
        kinds.append(["input"] if across else kinds[-1])
    found: list[Needed] = [{output: np.ones(widths[-1], bool)}]
    for layer, width, here in zip(reversed(layers), reversed(widths[:-1]), reversed(kinds[:-1]), strict=True):
        found.append(_before(layer, found[-1], width, here))
    return found[::-1]


def _before(layer: Any, needed: Needed, width: int, kinds: list[str]) -> Needed:
    match layer:
        case Linear():
            if layer.across and layer.mix is None:
                used = (layer.weight[:, needed["input"]] != 0).any(axis=(0, 1, 2))
                return {kind: used.copy() for kind in kinds}
            used = layer.on_features() != 0
            if layer.across:
                return {kind: used[needed["input"]].any(axis=0) for kind in kinds}
            return {kind: used[mask].any(axis=0) for kind, mask in needed.items()}
        case Attention():
            written = (layer.output != 0).any(axis=(0, 2))
            asking = [kind for kind, mask in needed.items() if (mask & written).any()]
            visible = [kind for kind in kinds if _is_seen(layer, kind, asking)]
            asked = (layer.query != 0).any(axis=(0, 1))
            shown = (layer.key != 0).any(axis=(0, 1)) | (layer.value != 0).any(axis=(0, 1))
            result: Needed = {}
            for kind in kinds:
                mask = np.zeros(width, bool)
                if kind in needed and layer.skip is not None:
                    mask |= (layer.skip.on_features()[needed[kind]] != 0).any(axis=0)
                mask |= asked & (kind in asking)
                mask |= shown & (kind in visible)
                if kind in needed or kind in visible:
                    result[kind] = mask
            return result
        case Softmax():
            groups = np.repeat(np.arange(len(layer.groups)), layer.groups)
            return {kind: np.isin(groups, groups[mask]) for kind, mask in needed.items()}
        case Repeat():
            return {kind: np.ones(width, bool) for kind in kinds}
    return {}


def _is_seen(layer: Attention, kind: str, asking: list[str]) -> bool:
    """Whether a token of a kind that asks may see one of this kind."""
    if layer.grid is not None:
        return bool(asking) and kind == "register"
    match layer.mask:
        case None:
            return bool(asking)
        case "self+registers":
            return kind in asking or (bool(asking) and kind == "register")
        case "registers+states":
            return bool(asking) and (kind == "register" or (kind == "state" and asking != ["register"]))
    if "state" in asking:
        return True
    return bool(asking) and (kind == "register" or (kind == "input" and "input" in asking))
