"""The soft threshold at the end of a step (lemmas.learners.threshold): one more attention layer, a head for each entry.

The skip carries w, and each head subtracts a clip: a softmax on registers that all heads share, with slopes a_k,
offsets g_k and values v_k. Every state asks the registers alone: its own key, like those of registers that serve other
layers, is out of reach by its offset. With momentum, v is the step that w made, so what is subtracted from w is
subtracted from v too. Where columns have scales t_j, their thresholds are tau t_j: those heads ask with w_j / t_j, and
subtract t_j times what they read.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from anchorhead.constructions.learners.layouts.stored import Stored
from anchorhead.errors import CertificateError
from anchorhead.language.targets.descent import Descent
from anchorhead.lemmas.learners.threshold import Clip
from anchorhead.network import Attention, Embed, Linear, Network, Repeat

OUT_OF_REACH = 2.0**20
CLIP_FEATURES = 3
NAMES = ("slope of the clip", "offset of the clip", "value of the clip")


def more_features(target: Descent) -> int:
    """How many features a threshold adds to tokens."""
    return CLIP_FEATURES if target.threshold else 0


def clip_in(stored: Stored, target: Descent) -> Clip | None:
    """The anchors that registers of a network hold: they differ there from states, which hold none."""
    if not target.threshold:
        return None
    held = stored.registers[:, -CLIP_FEATURES:]
    own = (held != stored.states[0, -CLIP_FEATURES:]).any(axis=1)
    if not own.any():
        raise CertificateError("its threshold has no anchors")
    return Clip.of(held[own])


def with_threshold(
    network: Network, target: Descent, clip: Clip | None, w: int, one: int, hidden: Float[np.ndarray, " width"]
) -> Network:
    """A learner's network (Embed, Repeat, Linear) whose steps end with the soft threshold; as it is without a clip.

    w        the slot of the first entry of w; the target's `features` entries from there are shrunk
    one      the slot of a feature that is 1 in every state
    hidden   features of a register that no layer of the network sees
    """
    if clip is None:
        return network
    embed, (repeat, read), more, far = network.embed, network.layers[1:], CLIP_FEATURES, _far(clip)
    if not isinstance(repeat, Repeat) or not isinstance(read, Linear) or embed.states is None:
        raise TypeError("a threshold ends the steps of a network of Embed, Repeat and Linear, with a state")
    names, away = (*(embed.features or ()), *NAMES), np.array([0.0, -far, 0.0])
    registers = np.concatenate([np.tile(hidden, (len(clip.slopes), 1)), clip.anchors], axis=1)
    if embed.registers is not None:
        registers = np.concatenate([_beside(embed.registers, away), registers])
    first = Embed(
        np.pad(embed.weight, ((0, more), (0, 0))),
        np.pad(embed.bias, (0, more)),
        registers=registers.astype(network.dtype),
        states=_beside(embed.states, away).astype(network.dtype),
        features=names,
    )
    steps = tuple(_widened(layer, names) for layer in repeat.layers if isinstance(layer, Attention))
    last = replace(read, weight=np.pad(read.weight, ((0, 0), (0, more))))
    shrink = _shrink(names, target, w, one, network.dtype)
    return Network([first, Repeat((*steps, shrink), repeat.times), last], output=network.output)


def _shrink(names: tuple[str, ...], target: Descent, w: int, one: int, dtype: str) -> Attention:
    """Each head asks with its entry of w, and subtracts what it reads from that entry, and from that of v."""
    pick = np.eye(len(names))
    slope, offset, value = pick[-CLIP_FEATURES:]
    slots = range(w, w + target.features)
    scales = np.array(target.scales or [1.0] * target.features)
    changed = pick[list(slots)]
    if target.momentum:
        changed = changed + pick[[j + target.weights for j in slots]]
    return Attention(
        np.stack([pick[[j, one]] / [[t], [1.0]] for j, t in zip(slots, scales, strict=True)]).astype(dtype),
        np.stack([slope, offset])[None].astype(dtype),
        value[None, None].astype(dtype),
        -(scales[:, None] * changed)[:, :, None].astype(dtype),
        mask="self+registers",
        skip=Linear.identity(names, dtype),
        features=names,
        labels=tuple(f"shrinks {names[j]}" for j in slots),
    )


def _widened(layer: Attention, names: tuple[str, ...]) -> Attention:
    """The layer with further features that it neither reads nor changes."""
    more = CLIP_FEATURES
    wider = (0, 0), (0, 0), (0, more)
    kept = np.eye(len(names), dtype=layer.query.dtype)
    kept[: layer.outputs, : layer.width] = 0.0 if layer.skip is None else layer.skip.weight
    return replace(
        layer,
        query=np.pad(layer.query, wider),
        key=np.pad(layer.key, wider),
        value=np.pad(layer.value, wider),
        output=np.pad(layer.output, ((0, 0), (0, more), (0, 0))),
        skip=Linear(kept, features=names),
        features=names,
    )


def _beside(rows: np.ndarray, extra: np.ndarray) -> np.ndarray:
    return np.concatenate([rows, np.broadcast_to(extra, (len(rows), len(extra)))], axis=1)


def _far(clip: Clip) -> float:
    """By which others are out of reach: beyond all offsets, so that registers that ask with -1 in place of 1 see those
    of other layers alone."""
    return max(OUT_OF_REACH, 2.0 ** np.ceil(np.log2(4 * max(map(abs, clip.offsets)) + 1)))
