"""The layers of a descent on any loss in the transformer layout, as matrices (see incontext.linked).

A step is three attentions, *score*, *link* and *collect*. Inputs are examples, once with either sign; registers are a
reference of key 0 and the anchors of the link's head, once for copies of either sign; the one state carries w. Tokens
that must not be seen get a logit so low that their weight is exactly 0, from a feature that is exactly 0 in those that
are seen: neither adds to what is read, nor to its rounding.

Registers and the state ask as well, because maps are the same for all tokens. In all three layers they see only tokens
whose values are exactly 0, so that their scores, links and (in registers) w stay exactly 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from jaxtyping import Float

from anchorhead.heads.atom import Part
from anchorhead.network import Attention, Embed, Linear
from anchorhead.targets.descent import Descent

OUT_OF_REACH = 2.0**20
FLAGS = {
    "sign": "sign",
    "label": "label",
    "score": "score",
    "link": "link",
    "example": "is an example",
    "plus": "is a copy of sign 1",
    "minus": "is a copy of sign -1",
    "other": "is no example",
    "state": "is the state",
    "zero": "is the reference of scores",
    "hidden": "is hidden from scores",
    "of_plus": "is an anchor for sign 1",
    "of_minus": "is an anchor for sign -1",
    "asks": "1 in the state, -1 in registers",
}
"""The features between those of x and those of anchors."""


@dataclass(frozen=True)
class Slots:
    """Where each feature of a token stands.

    d, parts, weights   features of an example, softmaxes of the link's head, entries of w
    margin              whether the last column of a prompt, and not the one before, tells the copies apart
    """

    d: int
    parts: int
    weights: int
    intercept: bool
    momentum: bool
    margin: bool
    sign: int
    label: int
    score: int
    link: int
    example: int
    plus: int
    minus: int
    other: int
    state: int
    zero: int
    hidden: int
    of_plus: int
    of_minus: int
    asks: int

    @classmethod
    def of(cls, target: Descent, parts: int) -> Slots:
        d, margin = target.features, target.loss.form == "y phi(y s)"
        places = dict(zip(FLAGS, range(d, d + len(FLAGS)), strict=True))
        return cls(d, parts, target.weights, target.intercept, bool(target.momentum), margin, **places)

    def names(self, entries: Sequence[str]) -> tuple[str, ...]:
        """What each feature is called, given names of the entries of w (and v)."""
        flags = (text for text in FLAGS.values())
        which = [f" of part {k}" if self.parts > 1 else "" for k in range(self.parts)]
        anchors = (f"{what} of the link{part}" for part in which for what in ("slope", "offset", "value"))
        return (*(f"x{j}" for j in range(self.d)), *flags, *anchors, *entries)

    @property
    def columns(self) -> list[int]:
        """What w multiplies."""
        return [*range(self.d), *([self.sign] if self.intercept else [])]

    @property
    def mark(self) -> int:
        """1 or -1, the copy's sign."""
        return self.label if self.margin else self.sign

    def anchor(self, part: int) -> tuple[int, int, int]:
        """Slope, offset and value of a part of the head."""
        first = self.d + len(FLAGS) + 3 * part
        return first, first + 1, first + 2

    @property
    def w(self) -> int:
        return self.d + len(FLAGS) + 3 * self.parts

    @property
    def v(self) -> int:
        return self.w + self.weights

    @property
    def width(self) -> int:
        return self.w + self.weights * (2 if self.momentum else 1)

    @property
    def entries(self) -> np.ndarray:
        return np.arange(self.w, self.w + self.weights)


@dataclass(frozen=True, eq=False)
class Scoring:
    """The first layer: with z the argument of the link, it writes sum_a outputs_a tanh(sharpness_a z / 2).

    residual   whether z is w . x - y, and not w . x
    """

    sharpness: tuple[float, ...]
    outputs: tuple[float, ...]
    residual: bool

    @cached_property
    def powers(self) -> tuple[float, float]:
        """|k_0 - 1| and |k_1|, k_m = sum_a outputs_a (sharpness_a / 2)^(2m+1)."""
        pairs = [(Fraction(o), Fraction(h) / 2) for o, h in zip(self.outputs, self.sharpness, strict=True)]
        k0, k1 = (sum((o * h**m for o, h in pairs), Fraction(0)) for m in (1, 3))
        return float(abs(k0 - 1)) * (1 + 1e-15), float(abs(k1)) * (1 + 1e-15)

    @property
    def most(self) -> float:
        """No score that is written is larger, however large z is."""
        return float(np.abs(self.outputs).sum()) * (1 + 1e-5)


def score_layer(slots: Slots, scoring: Scoring, names: tuple[str, ...], dtype: str) -> Attention:
    """An example asks with its x: the state answers with logit h z and value 1, the reference with 0 and -1."""
    pick = np.eye(slots.width)
    about = [*slots.columns, slots.label] if scoring.residual else slots.columns
    signs = np.array([1.0] * len(slots.columns) + [-1.0] * scoring.residual)[:, None]
    query = np.stack([np.concatenate([h * signs * pick[about], pick[[slots.example, slots.other]]]) for h in
                      scoring.sharpness])  # fmt: skip
    key = np.concatenate(
        [
            pick[slots.entries],
            pick[[slots.state] if scoring.residual else []],
            -OUT_OF_REACH * pick[[slots.hidden]],
            -OUT_OF_REACH * (pick[[slots.state]] + pick[[slots.zero]]),
        ]
    )
    output = np.array(scoring.outputs)[:, None, None] * pick[slots.score][:, None]
    return Attention(
        query.astype(dtype),
        key[None].astype(dtype),
        (pick[slots.state] - pick[slots.zero])[None, None].astype(dtype),
        output.astype(dtype),
        mask="registers+states",
        skip=Linear(_without(slots.width, slots.score).astype(dtype), features=names),
        features=names,
        labels=tuple(f"the score, at sharpness {h:g}" for h in scoring.sharpness),
    )


def link_layer(slots: Slots, far: float, labelled: bool, names: tuple[str, ...], dtype: str) -> Attention:
    """An example asks the anchors for its sign with its score; the rest of the link is the label."""
    pick = np.eye(slots.width)
    query = pick[[slots.score, slots.example, slots.plus, slots.minus, slots.other]]
    gates = -far * pick[[slots.of_minus, slots.of_plus, slots.hidden]]
    anchors = [slots.anchor(part) for part in range(slots.parts)]
    skip = _without(slots.width, slots.link)
    if labelled:
        skip[slots.link, slots.label] = -1.0
    return Attention(
        np.stack([query] * slots.parts).astype(dtype),
        np.stack([np.concatenate([pick[[slope, offset]], gates]) for slope, offset, _ in anchors]).astype(dtype),
        np.stack([pick[[value]] for *_, value in anchors]).astype(dtype),
        np.stack([pick[slots.link][:, None]] * slots.parts).astype(dtype),
        mask="registers+states",
        skip=Linear(skip.astype(dtype), features=names),
        features=names,
        labels=tuple(f"the link, part {part}" if slots.parts > 1 else "the link" for part in range(slots.parts)),
    )


def collect_layer(
    slots: Slots,
    sharpness: Sequence[float],
    outputs: Sequence[float],
    kept: Float[np.ndarray, "width width"],
    names: tuple[str, ...],
    dtype: str,
) -> Attention:
    """The state asks the examples: logits h times the signed link, values the signed x; kept is the skip."""
    pick = np.eye(slots.width)
    rest = np.stack([pick[slots.state], pick[slots.other] - pick[slots.state]])
    query = np.stack([np.concatenate([h * pick[[slots.state]], rest]) for h in sharpness])
    key = np.stack([pick[slots.link], -OUT_OF_REACH * pick[slots.other], -OUT_OF_REACH * pick[slots.example]])
    output = np.zeros((len(sharpness), slots.width, slots.weights))
    for head, o in enumerate(outputs):
        for start in (slots.w, slots.v) if slots.momentum else (slots.w,):
            output[head, start : start + slots.weights] = o * np.eye(slots.weights)
    return Attention(
        query.astype(dtype),
        key[None].astype(dtype),
        pick[None, slots.columns].astype(dtype),
        output.astype(dtype),
        skip=Linear(kept.astype(dtype), features=names),
        features=names,
        labels=tuple(f"the gradient, at sharpness {h:g}" for h in sharpness),
    )


def embed_layer(slots: Slots, parts: Sequence[Part], far: float, names: tuple[str, ...], dtype: str) -> Embed:
    """Examples with their flags; registers: the reference, the anchors for sign 1, those for sign -1; the state."""
    weight, bias = np.eye(slots.width, slots.d + 2), np.zeros(slots.width)
    weight[slots.plus, slots.mark], weight[slots.minus, slots.mark] = 0.5, -0.5
    bias[[slots.example, slots.plus, slots.minus]] = 1.0, 0.5, 0.5
    zero = _no_anchor(slots, far)
    zero[[slots.zero, slots.other, slots.asks]] = 1.0, 1.0, -1.0
    state = _no_anchor(slots, far)
    state[[slots.state, slots.other, slots.asks]] = 1.0
    registers = [zero]
    for sign, mine in ((1.0, slots.of_plus), (-1.0, slots.of_minus)):
        for k in range(max(len(part.slopes) for part in parts)):
            anchor = hidden_register(slots, far)
            anchor[mine] = 1.0
            for number, part in enumerate(parts):
                if k < len(part.slopes):
                    anchor[list(slots.anchor(number))] = (
                        sign * part.slopes[k],
                        part.offsets[k],
                        sign * np.ravel(part.values)[k],
                    )
            registers.append(anchor)
    return Embed(
        weight.astype(dtype),
        bias.astype(dtype),
        registers=np.array(registers).astype(dtype),
        states=state[None].astype(dtype),
        features=names,
    )


def hidden_register(slots: Slots, far: float) -> Float[np.ndarray, " width"]:
    """A register that no example and no state sees."""
    row = _no_anchor(slots, far)
    row[[slots.other, slots.hidden, slots.asks]] = 1.0, 1.0, -1.0
    return row


def _no_anchor(slots: Slots, far: float) -> Float[np.ndarray, " width"]:
    row = np.zeros(slots.width)
    row[[slots.anchor(part)[1] for part in range(slots.parts)]] = -far
    return row


def _without(width: int, feature: int) -> Float[np.ndarray, "width width"]:
    """All features handed on but one."""
    kept = np.eye(width)
    kept[feature, feature] = 0.0
    return kept
