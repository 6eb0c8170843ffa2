"""What a step of a learner in the sequence layout does, read from stored weights (incontext.linked_sequence).

Tokens are the anchors of every example, made by the Embed, and one register for each example. A register carries w and
asks the anchors of its own example; anchors of other examples and of other parts are out of reach, by an address.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NoReturn

import numpy as np
from jaxtyping import Float

from anchorhead.errors import CertificateError
from anchorhead.heads.atom import Dtype, Part
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.network import Attention, Embed, Linear, Network, Repeat
from anchorhead.targets.descent import Descent


@dataclass(frozen=True)
class Slots:
    """Where the features of a token lie. Slots are ranges, or a number for one feature.

    Of anchors: `x` slope times the example, `y` slope times its label, `offset` and, along a grid's axis of labels,
    `offset_y`, `address` of the example, `part` to which softmax they belong, `value` times the example. Of registers:
    `one`, `asks` for an address, `w`, `v`, and `push`, what the example's loss adds to the gradient.
    """

    weights: int
    bits: int
    parts: int
    momentum: bool

    @classmethod
    def of(cls, target: Descent, parts: int) -> Slots:
        return cls(target.weights, (target.examples - 1).bit_length(), parts, target.momentum > 0)

    @property
    def x(self) -> range:
        return range(self.weights)

    @property
    def y(self) -> int:
        return self.weights

    @property
    def offset(self) -> int:
        return self.weights + 1

    @property
    def offset_y(self) -> int:
        return self.weights + 2

    @property
    def address(self) -> range:
        return _after(self.offset_y + 1, 2 * self.bits)

    @property
    def part(self) -> range:
        return _after(self.address.stop, self.parts)

    @property
    def one(self) -> int:
        return self.part.stop

    @property
    def keys(self) -> range:
        """All that a key is made of, in order."""
        return range(self.one + 1)

    @property
    def value(self) -> range:
        return _after(self.one + 1, self.weights)

    @property
    def asks(self) -> range:
        return _after(self.value.stop, 2 * self.bits)

    @property
    def w(self) -> range:
        return _after(self.asks.stop, self.weights)

    @property
    def v(self) -> range:
        return _after(self.w.stop, self.weights if self.momentum else 0)

    @property
    def push(self) -> range:
        return _after(self.v.stop, self.weights)

    @property
    def width(self) -> int:
        return self.push.stop


def _after(start: int, count: int) -> range:
    return range(start, start + count)


def addresses(examples: int, bits: int) -> Float[np.ndarray, "{examples} {2*bits}"]:
    """For every example the bits b of its number and their opposites 1 - b: two of them differ in at least one bit, and
    the product of one with another's, the halves exchanged, counts in how many."""
    b = ((np.arange(examples)[:, None] >> np.arange(bits)) & 1).astype(np.float64)
    return np.concatenate([b, 1 - b], axis=1)


@dataclass(frozen=True, eq=False)
class ReadPart:
    """One softmax: slopes of s and of y, offsets (two that add up) and values, as stored, (p,) each."""

    of_score: Float[np.ndarray, " p"]
    of_label: Float[np.ndarray, " p"]
    offsets: Float[np.ndarray, " p"]
    offsets_y: Float[np.ndarray, " p"]
    values: Float[np.ndarray, " p"]

    def on_argument(self) -> Part:
        """The same as a head on one argument: s, y, or s - y."""
        if self.offsets_y.any():
            _refuse("a head on one argument has offsets along two axes")
        slopes = self.of_score if self.of_score.any() else self.of_label
        order = np.argsort(slopes, kind="stable")
        return Part(slopes[order], self.offsets[order], self.values[order][:, None])

    def on_grid(self, dtype: Dtype) -> GridAtom:
        """The same as a grid over s and y; refuses where it is none."""
        p = len(np.unique(self.of_score))
        if len(self.values) % p:
            _refuse("the anchors of its link are no grid")
        score, label = (
            [array.reshape(p, -1) for array in pair]
            for pair in ((self.of_score, self.offsets), (self.of_label, self.offsets_y))
        )
        if any((a != a[:, :1]).any() for a in score) or any((a != a[:1]).any() for a in label):
            _refuse("the anchors of its link are no grid")
        axes = [(score[0][:, 0], score[1][:, 0]), (label[0][0], label[1][0])]
        return GridAtom.of(axes, np.zeros(2), self.values.reshape(p, -1, 1), np.zeros(1), dtype)


@dataclass(frozen=True, eq=False)
class SequenceStep:
    """What a step does to every register.

    parts      the softmaxes; what they read adds up to the push
    reach      by how much the logits of other examples, other parts and registers are lowered
    output     by which the mean push is multiplied: minus the rate
    kept       by which w is multiplied, entry by entry (1 - rate decay)
    momentum   by which v is multiplied
    pulled     by which w enters v, entry by entry (-rate decay)
    """

    parts: tuple[ReadPart, ...]
    reach: float
    output: float
    kept: Float[np.ndarray, " weights"]
    momentum: float
    pulled: Float[np.ndarray, " weights"]

    @cached_property
    def steepest(self) -> float:
        return max(float(np.abs([part.of_score, part.of_label]).max()) for part in self.parts)

    @cached_property
    def highest(self) -> float:
        """The largest |offset|."""
        return max(float((np.abs(part.offsets) + np.abs(part.offsets_y)).max()) for part in self.parts)

    @cached_property
    def largest(self) -> float:
        """The largest |value|, parts added up."""
        return sum(float(np.abs(part.values).max()) for part in self.parts)

    def wrong(self, target: Descent) -> tuple[float, np.ndarray, np.ndarray, float]:
        """|stored - exact| of what multiplies the push, w in w, w in v, and v."""
        pull = Fraction(target.rate) * Fraction(target.decay)
        exact = [pull * int(p) for p in target.penalised]
        in_w = [float(abs(Fraction(float(one)) - (1 - by))) for one, by in zip(self.kept, exact, strict=True)]
        in_v = [float(abs(Fraction(float(one)) + by)) for one, by in zip(self.pulled, exact, strict=True)]
        of_v = float(abs(Fraction(self.momentum) - Fraction(target.momentum)))
        of_push = float(abs(Fraction(self.output) + Fraction(target.rate)))
        return of_push, np.array(in_w), np.array(in_v) if target.momentum else np.zeros(len(in_v)), of_v


def read_step(network: Network, target: Descent) -> SequenceStep:
    """The step, if the network is one of incontext.linked_sequence for this target; CertificateError otherwise."""
    layers = network.layers
    if len(layers) != 3 or not isinstance(layers[1], Repeat) or not isinstance(layers[2], Linear):
        _refuse("its layers are not Embed, Repeat, Linear")
    repeat, last = layers[1], layers[2]
    attentions = [layer for layer in repeat.layers if isinstance(layer, Attention)]
    if repeat.times != target.steps or len(repeat.layers) != 2 or len(attentions) != 2:
        _refuse(f"it does not repeat two attentions {target.steps} times")
    link, mean = attentions
    slots = Slots.of(target, link.heads)
    if target.threshold or network.output != "register" or link.width != slots.width:
        _refuse("it has a threshold, another output or another width")
    parts = _read_embed(network.embed, target, slots)
    reach = _read_link(link, slots)
    _same(last.weight, np.eye(slots.width)[list(slots.w)], "the last map's weights")
    if last.bias is not None or last.mix is not None:
        _refuse("its last map has a bias or mixes tokens")
    return SequenceStep(parts, reach, *_read_mean(mean, slots))


def _read_embed(embed: Embed, target: Descent, slots: Slots) -> tuple[ReadPart, ...]:
    n, d, weights = target.examples, target.features, target.weights
    if embed.tokens != 2 * n or embed.source is None or embed.weight.ndim != 3 or embed.bias.ndim != 2:
        _refuse("its Embed does not lay out anchors of every example")
    if len(embed.source) % n or embed.states is not None or embed.registers is None:
        _refuse("its Embed has states, no registers, or anchors of some examples only")
    each = len(embed.source) // n
    _same(embed.source, np.repeat(np.arange(n), each), "the examples that anchors belong to")
    columns, label = [*range(d), *([d] if target.intercept else [])], d + 1
    code = addresses(n, slots.bits)
    registers = np.zeros((n, slots.width))
    registers[:, slots.one] = 1
    registers[:, slots.asks] = np.roll(code, slots.bits, axis=1)
    _same(embed.registers, registers, "the registers")

    first = embed.weight[:each].astype(np.float64)
    scores, labels, values = first[:, 0, columns[0]], first[:, slots.y, label], first[:, slots.value[0], columns[0]]
    offsets, offsets_y = embed.bias[:each, [slots.offset, slots.offset_y]].astype(np.float64).T
    weight, bias = np.zeros_like(first), np.zeros((n, each, slots.width))
    for c in range(weights):
        weight[:, slots.x[c], columns[c]] = scores
        weight[:, slots.value[c], columns[c]] = values
    weight[:, slots.y, label] = labels
    _same(embed.weight, np.tile(weight, (n, 1, 1)), "Embed's weights")
    belongs = embed.bias[:each][:, slots.part].astype(np.float64)
    if not (np.isin(belongs, (0.0, 1.0)).all() and (belongs.sum(axis=1) == 1).all() and belongs.any(axis=0).all()):
        _refuse("an anchor belongs to no part, or a part has no anchor")
    bias[:, :, slots.offset], bias[:, :, slots.offset_y], bias[:, :, slots.part] = offsets, offsets_y, belongs
    bias[:, :, slots.address] = code[:, None]
    _same(embed.bias, bias.reshape(n * each, -1), "Embed's constants")
    chosen = [belongs[:, number] == 1 for number in range(slots.parts)]
    return tuple(ReadPart(scores[own], labels[own], offsets[own], offsets_y[own], values[own]) for own in chosen)


def _read_link(link: Attention, slots: Slots) -> float:
    pick = np.eye(slots.width)
    if link.mask or link.grid or link.bias is not None or link.skip is None or link.skip.bias is not None:
        _refuse("its first attention has a mask, a grid, a bias or no skip")
    reach = float(-link.query[0, -1, slots.one])
    query = np.zeros((slots.parts, len(slots.keys), slots.width))
    query[:, list(slots.x), list(slots.w)] = 1
    query[:, [slots.y, slots.offset, slots.offset_y, slots.one], slots.one] = 1, 1, 1, -reach
    query[:, list(slots.address), list(slots.asks)] = -reach
    for head in range(slots.parts):
        others = [place for number, place in enumerate(slots.part) if number != head]
        query[head, others, slots.one] = -reach
    _same(link.query, query, "the queries")
    _same(link.key, pick[None, list(slots.keys)], "the keys")
    _same(link.value, pick[None, list(slots.value)], "the values")
    output = np.zeros((slots.parts, slots.width, slots.weights))
    output[:, list(slots.push)] = np.eye(slots.weights)
    _same(link.output, output, "the outputs of the link")
    pick[list(slots.push)] = 0
    _same(link.skip.weight, pick, "the skip of the link")
    return reach


def _read_mean(mean: Attention, slots: Slots) -> tuple[float, np.ndarray, float, np.ndarray]:
    if mean.mask != "self+registers" or mean.grid or mean.bias is not None or mean.skip is None or mean.heads != 1:
        _refuse("its second attention is not one head over registers, with a skip")
    if mean.query.any() or mean.key.any() or mean.skip.bias is not None or mean.skip.weight.ndim != 2:
        _refuse("its second attention does not weigh all registers alike")
    _same(mean.value, np.eye(slots.width)[None, list(slots.push)], "the values of the mean")
    rate = float(mean.output[0, slots.w[0], 0])
    output = np.zeros((1, slots.width, slots.weights))
    for block in (slots.w, slots.v):
        output[0, list(block)] = rate * np.eye(slots.weights)[: len(block)]
    _same(mean.output, output, "the outputs of the mean")
    w, v = list(slots.w), list(slots.v)
    skip = mean.skip.weight.astype(np.float64)
    expected = np.eye(slots.width)
    kept, pulled, momentum = skip[w, w], np.zeros(slots.weights), 0.0
    expected[w, w] = kept
    if v:
        momentum, pulled = float(skip[w[0], v[0]]), skip[v, w]
        expected[w, v], expected[v, v], expected[v, w] = momentum, momentum, pulled
    _same(skip, expected, "the skip of the mean")
    return rate, kept, momentum, pulled


def _same(found: np.ndarray, expected: np.ndarray, what: str) -> None:
    if found.shape != expected.shape or not np.array_equal(found.astype(np.float64), expected):
        _refuse(f"{what} are not those of the construction")


def _refuse(why: str) -> NoReturn:
    raise CertificateError(f"the network is no gradient descent in the sequence layout: {why}")
