"""What a step of score, link and collect does, read from stored weights (proof.descent.descent_linked_layers)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np

from anchorhead.errors import CertificateError
from anchorhead.heads.atom import Part
from anchorhead.network import Attention, Embed, Linear, Network, Repeat
from anchorhead.proof.arithmetic.silence import SILENT
from anchorhead.proof.descent.descent_linked_layers import (
    Scoring,
    Slots,
    collect_layer,
    embed_layer,
    hidden_register,
    link_layer,
    score_layer,
)
from anchorhead.proof.descent.descent_squared_form import SquaredStep, read_skip
from anchorhead.proof.descent.descent_threshold import unshrunk
from anchorhead.targets.descent import Descent

ROOM = 2.0**20
"""How far logits stay from overflow."""


@dataclass(frozen=True, eq=False)
class LinkedStep:
    """What a step does, as stored weights say.

    parts      of the head for the link, for copies of sign 1; those of sign -1 have negative slopes and values
    far        by how much anchors for the other sign are out of reach
    labelled   whether the label is taken from the link, for phi(s) - y
    collect    how what the state reads becomes a step
    """

    scoring: Scoring
    parts: tuple[Part, ...]
    far: float
    labelled: bool
    collect: SquaredStep


def least_far(scoring: Scoring, parts: Sequence[Part]) -> float:
    """From here on anchors for the other sign, and tokens that are no anchors, are out of reach at every score: twice
    the logits and SILENT would do in exact arithmetic, and sums of a few terms round by less than the rest."""
    slope, offset = (max(float(np.abs(getattr(part, name)).max()) for part in parts) for name in ("slopes", "offsets"))
    return 4 * (slope * scoring.most + offset + 2 * SILENT)


def read(network: Network, target: Descent) -> LinkedStep:
    """The step, if the network is one of incontext.linked for this target; CertificateError otherwise."""
    parts = _count_parts(network)
    slots = Slots.of(target, parts)
    if target.loss.form == "g(s, y)":
        _refuse("its link is of two variables")
    states = network.embed.states
    away = -float(states[0, -2]) if target.threshold and states is not None else 0.0
    network, clip, registers = unshrunk(network, target, slots.w, slots.asks)
    score, link, collect, last = _layers(network, target)
    embed = network.embed
    if embed.registers is None or embed.registers.shape[1] != slots.width or len(embed.registers) % 2 != 1:
        _refuse("its registers are not a reference and two sets of anchors")
    far = -float(embed.registers[0, slots.anchor(0)[1]])
    found = _read_parts(slots, embed.registers, far)
    residual, labelled = target.loss.form == "phi(s - y)", target.loss.form == "phi(s) - y"
    scoring = Scoring(
        tuple(float(h) for h in score.query[:, 0, 0]),
        tuple(float(o) for o in score.output[:, slots.score, 0]),
        residual,
    )
    sharpness = tuple(float(h) for h in collect.query[:, 0, slots.state])
    outputs = tuple(float(o) for o in collect.output[:, slots.w, 0])
    if not all(h > 0 and np.frexp(h)[0] == 0.5 for h in (*scoring.sharpness, *sharpness)):
        _refuse("a sharpness is no power of two")
    names, dtype = embed.features or (), network.dtype
    if not (collect.skip is not None and collect.skip.weight.ndim == 2):
        _refuse("its last attention has no skip")
    kept = collect.skip.weight
    _same_attention(score, score_layer(slots, scoring, names, dtype), "score")
    _same_attention(link, link_layer(slots, far, labelled, names, dtype), "link")
    _same_attention(collect, collect_layer(slots, sharpness, outputs, kept, names, dtype), "collect")
    _same_embed(embed, embed_layer(slots, found, far, names, dtype))
    if last.bias is not None or not np.array_equal(last.weight, np.eye(slots.width)[slots.entries]):
        _refuse("its last map does not pick w")
    top = float(np.finfo(dtype).max) / ROOM
    if not least_far(scoring, found) <= far <= top or np.frexp(far)[0] != 0.5:
        _refuse("anchors for the other sign are not out of reach, or logits may overflow")
    if clip is not None:
        _require_hidden(registers, slots, far, away - max(map(abs, clip.offsets)))
    step = replace(read_skip(kept, slots.entries, target, sharpness, outputs), clip=clip)
    return LinkedStep(scoring, found, far, labelled, step)


def _require_hidden(registers: np.ndarray, slots: Slots, far: float, room: float) -> None:
    """The clip's registers are seen by no other layer; and no register sees the clip: it asks with -1, so that the
    others' offsets, lower than those of the clip by `room`, make the largest logits by far."""
    if not (registers == hidden_register(slots, far)).all():
        _refuse("registers of the threshold are not hidden")
    if not room >= 2 * SILENT:
        _refuse("registers may see those of the threshold")


def _count_parts(network: Network) -> int:
    layers = network.layers
    if len(layers) != 3 or not isinstance(layers[1], Repeat) or len(layers[1].layers) < 3:
        _refuse("its layers are not Embed, Repeat of three attentions, Linear")
    link = layers[1].layers[1]
    return link.heads if isinstance(link, Attention) else _refuse("a step's second layer is no attention")


def _layers(network: Network, target: Descent) -> tuple[Attention, Attention, Attention, Linear]:
    _, repeat, last = network.layers
    if not isinstance(repeat, Repeat) or not isinstance(last, Linear) or network.output != "state":
        _refuse("its layers are not Embed, Repeat, Linear to the state")
    if repeat.times != target.steps or len(repeat.layers) != 3:
        _refuse(f"it does not repeat three attentions {target.steps} times")
    score, link, collect = repeat.layers
    if not (isinstance(score, Attention) and isinstance(link, Attention) and isinstance(collect, Attention)):
        _refuse("a step is not of attentions")
    return score, link, collect, last


def _read_parts(slots: Slots, registers: np.ndarray, far: float) -> tuple[Part, ...]:
    """The anchors for sign 1: those with an offset other than that of tokens that are none."""
    count = (len(registers) - 1) // 2
    parts = []
    for number in range(slots.parts):
        rows = registers[1 : 1 + count][:, list(slots.anchor(number))]
        rows = rows[rows[:, 1] != -far]
        if not len(rows):
            _refuse("a part of its link has no anchors")
        parts.append(Part(rows[:, 0], rows[:, 1], rows[:, 2:]))
    return tuple(parts)


def _same_attention(found: Attention, expected: Attention, what: str) -> None:
    same = all(np.array_equal(getattr(found, name), getattr(expected, name)) for name in ("query", "key", "value"))
    same = same and np.array_equal(found.output, expected.output) and found.skip is not None and found.bias is None
    same = same and (found.mask, found.grid) == (expected.mask, expected.grid)
    if not same or found.skip is None or expected.skip is None or found.skip.bias is not None:
        _refuse(f"the layer {what} is not that of the construction")
    if not np.array_equal(found.skip.weight, expected.skip.weight):
        _refuse(f"the skip of the layer {what} is not that of the construction")


def _same_embed(found: Embed, expected: Embed) -> None:
    arrays = ("weight", "bias", "registers", "states")
    same = all(np.array_equal(getattr(found, name), getattr(expected, name)) for name in arrays)
    if not same or found.tokens is not None:
        _refuse("its Embed is not that of the construction")


def _refuse(why: str) -> NoReturn:
    raise CertificateError(f"the network is no gradient descent by links: {why}")
