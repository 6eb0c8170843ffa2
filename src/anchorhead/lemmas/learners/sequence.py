"""Any loss in the sequence layout, as the paper lays it out: anchors for each example, two attentions a step.

The Embed may scale an example by a constant, so token (i, k) carries anchor k of the head for the link phi as it meets
example i: slope_k x_i, offset_k, value_k x_i. A register for each example carries w and asks. Its logits

    slope_k (w . x_i) + offset_k          (for phi(s - y): slope_k (w . x_i - y_i) + offset_k)

are those of the head at the score s_i, so it reads phi(s_i) x_i: no quotient of differences is taken. Registers ask
for an address, and anchors of other examples, of other parts of the head, and registers are out of reach; what the
address adds to the own anchors' logits is exactly 0. The second attention weighs all registers alike, and w takes the
mean, in every register the same. For phi(s) - y one more part stands for -y, a line in y. For a link g(s, y) the
anchors are the points of a grid, with logits slope_k s_i + offset_k + slope_l y_i + offset_l.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise

import numpy as np
from jaxtyping import Float

from anchorhead.heads.atom import Dtype, Part
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.language.targets.descent import Descent
from anchorhead.lemmas.learners.average import Moments
from anchorhead.lemmas.learners.loop import StepError
from anchorhead.lemmas.learners.norms import length_of
from anchorhead.lemmas.learners.reading import body_of, refuse, require_same, require_width, skip_of
from anchorhead.lemmas.learners.update import Update, added_to_w
from anchorhead.network import Attention, Embed, Linear, Network, Repeat
from anchorhead.proof.arithmetic.arithmetic import Arithmetic


class Slots:
    """Where the features of a token lie. Slots are ranges, or a number for one feature.

    Of anchors: `x` slope times the example, `y` slope times its label, `offset` and, along a grid's axis of labels,
    `offset_y`, `address` of the example, `part` to which softmax they belong, `value` times the example. Of registers:
    `one`, `asks` for an address, `w`, `v`, and `push`, what the example's loss adds to the gradient. `keys` is all that
    a key is made of, in order.
    """

    def __init__(self, target: Descent, parts: int) -> None:
        weights, bits = target.weights, (target.examples - 1).bit_length()
        speeds = weights if target.momentum else 0
        counts = (weights, 1, 1, 1, 2 * bits, parts, 1, weights, 2 * bits, weights, speeds, weights)
        places = [range(*ends) for ends in pairwise((0, *accumulate(counts)))]
        self.x, y, offset, offset_y, self.address, self.part, one, self.value, self.asks, self.w, _, self.push = places
        self.y, self.offset, self.offset_y, self.one = (place[0] for place in (y, offset, offset_y, one))
        self.keys = range(self.one + 1)
        self.width, self.weights, self.bits, self.parts = self.push.stop, weights, bits, parts
        self.momentum = bool(target.momentum)


def addresses(examples: int, bits: int) -> Float[np.ndarray, "{examples} {2*bits}"]:
    """For every example the bits b of its number and their opposites 1 - b: two of them differ in at least one bit, and
    the product of one with another's, the halves exchanged, counts in how many."""
    b = ((np.arange(examples)[:, None] >> np.arange(bits)) & 1).astype(np.float64)
    return np.concatenate([b, 1 - b], axis=1)


@dataclass(frozen=True, eq=False)
class Piece:
    """One softmax: slopes of the score and of the label, offsets, two that add up, and values, (p,) each."""

    of_score: np.ndarray
    of_label: np.ndarray
    offsets: np.ndarray
    offsets_y: np.ndarray
    values: np.ndarray

    @classmethod
    def of_head(cls, part: Part, score: float, label: float, sign: float = 1.0) -> Piece:
        """A head on one argument, score times s + label times y, with its values multiplied by a sign."""
        slopes, offsets, values = part.astype(np.float64)
        return cls(score * slopes, label * slopes, offsets, np.zeros(len(slopes)), sign * values[:, 0])

    @classmethod
    def of_grid(cls, atom: GridAtom) -> Piece:
        """A grid over s and y."""
        (along_s, at_s), (along_y, at_y) = atom.axes
        pairs = [np.meshgrid(one, two, indexing="ij") for one, two in ((along_s, along_y), (at_s, at_y))]
        (of_score, of_label), (offsets, offsets_y) = ([np.ravel(array) for array in pair] for pair in pairs)
        return cls(of_score, of_label, offsets, offsets_y, atom.values.reshape(-1))

    def __len__(self) -> int:
        return len(self.values)

    def on_argument(self) -> Part:
        """The same as a head on one argument: s, y, or s - y."""
        if self.offsets_y.any():
            refuse("a head on one argument has offsets along two axes")
        slopes = self.of_score if self.of_score.any() else self.of_label
        order = np.argsort(slopes, kind="stable")
        return Part(slopes[order], self.offsets[order], self.values[order][:, None])

    def on_grid(self, dtype: Dtype) -> GridAtom:
        """The same as a grid over s and y; refuses where it is none."""
        p = len(np.unique(self.of_score))
        if len(self.values) % p:
            refuse("the anchors of its link are no grid")
        score, label = (
            [array.reshape(p, -1) for array in pair]
            for pair in ((self.of_score, self.offsets), (self.of_label, self.offsets_y))
        )
        if any((a != a[:, :1]).any() for a in score) or any((a != a[:1]).any() for a in label):
            refuse("the anchors of its link are no grid")
        axes = [(score[0][:, 0], score[1][:, 0]), (label[0][0], label[1][0])]
        return GridAtom.of(axes, np.zeros(2), self.values.reshape(p, -1, 1), np.zeros(1), dtype)


@dataclass(frozen=True, eq=False)
class SequenceStep:
    """What a step does to every register.

    pieces     the softmaxes; what they read adds up to the push
    reach      by how much the logits of other examples, other parts and registers are lowered
    output     by which the mean push is multiplied: minus the rate
    update     what is kept of w and v
    """

    pieces: tuple[Piece, ...]
    reach: float
    output: float
    update: Update

    @cached_property
    def steepest(self) -> float:
        return max(float(np.abs([piece.of_score, piece.of_label]).max()) for piece in self.pieces)

    @cached_property
    def highest(self) -> float:
        """The largest |offset|."""
        return max(float((np.abs(piece.offsets) + np.abs(piece.offsets_y)).max()) for piece in self.pieces)

    @cached_property
    def largest(self) -> float:
        """The largest |value|, parts added up."""
        return sum(float(np.abs(piece.values).max()) for piece in self.pieces)

    def error(self, target: Descent, at: Moments, model: Arithmetic) -> StepError:
        """How far a step is from the exact one from the same w and v, links being known up to what `at` says.

        Registers add the same exact number to what each of them carries, so they stray by what rounding adds alone.
        """
        rate, off = abs(self.output), _off(self.output, target.rate)
        tiny = 1e3 * at.examples * model.tiny * (1 + self.largest) * (1 + at.x.max())
        tiny = tiny * (1 + self.steepest) * (1 + at.w.sum())
        read = at.xe + tiny
        push = at.xr + read
        uneven = math.expm1(2 * model.exp_error + float(model.gamma(2 * at.examples + 2))) * push
        sums_w, sums_v, _ = self.update.summed(rate * (push + uneven), at.w, at.v, model)
        wrong_w, wrong_v = self.update.wrong(target, at.w, at.v)
        once, shared = rate * uneven + tiny, rate * read + off * push
        of_w = length_of(shared + once + sums_w + wrong_w)
        apart_w, of_v, apart_v = 2 * length_of(once + sums_w), 0.0, 0.0
        if target.momentum:
            of_v, apart_v = length_of(shared + once + sums_v + wrong_v), 2 * length_of(once + sums_v)
        return StepError(of_w, of_v, of_w, (apart_w, apart_v))


@lru_cache(maxsize=64)
def _off(output: float, rate: float) -> float:
    """|stored - exact| of what multiplies the mean push."""
    return float(abs(Fraction(output) + Fraction(rate)))


def build(target: Descent, step: SequenceStep, dtype: str) -> Network:
    """The network of a descent on any loss, certificate left out."""
    slots = Slots(target, len(step.pieces))
    names = _names(target, slots)
    repeated = _link(slots, names, step.reach, dtype), _mean(slots, names, step, dtype)
    read = Linear(np.eye(slots.width, dtype=dtype)[list(slots.w)], features=target.weight_names("w"))
    embed = _embed(target, slots, step.pieces, names, dtype)
    return Network([embed, Repeat(repeated, target.steps), read], output="register")


def read(network: Network, target: Descent) -> SequenceStep:
    """The step, if the network is one of these for this target; CertificateError otherwise."""
    if target.threshold:
        refuse("a network in the sequence layout has no threshold")
    link, mean = body_of(network, target.steps, 2)
    slots, embed, n = Slots(target, link.heads), network.embed, target.examples
    require_width(network, slots.width)
    if embed.weight.ndim != 3 or embed.bias.ndim != 2 or embed.inputs != target.features + 2 or len(embed.weight) % n:
        refuse("its Embed does not lay out anchors of every example")
    each = len(embed.weight) // n
    weight, bias = (array[:each].astype(np.float64) for array in (embed.weight, embed.bias))
    label = target.features + 1
    anchors = np.stack(
        [
            weight[:, slots.x[0], 0],
            weight[:, slots.y, label],
            bias[:, slots.offset],
            bias[:, slots.offset_y],
            weight[:, slots.value[0], 0],
        ]
    )
    chosen = [bias[:, place] == 1 for place in slots.part]
    if not all(own.any() for own in chosen):
        refuse("a part of its link has no anchors")
    step = SequenceStep(
        tuple(Piece(*anchors[:, own]) for own in chosen),
        -float(link.query[0, -1, slots.one]),
        float(mean.output[0, slots.w[0], 0]),
        Update.read(skip_of(mean), target, slots.w[0]),
    )
    require_same(network, build(target, step, network.dtype))
    return step


def _names(target: Descent, slots: Slots) -> tuple[str, ...]:
    columns = target.weight_names("x")
    address = [f"{kind} bit {bit} of the example" for kind in ("", "no") for bit in range(slots.bits)]
    return (
        *(f"slope times {name}" for name in columns),
        "slope times label",
        "offset",
        "offset along the label",
        *(name.strip() for name in address),
        *(f"in part {number}" for number in range(slots.parts)),
        "asks",
        *(f"value times {name}" for name in columns),
        *(f"asks for {name.strip()}" for name in address),
        *target.entry_names(),
        *target.weight_names("push"),
    )


def _embed(target: Descent, slots: Slots, pieces: Sequence[Piece], names: tuple[str, ...], dtype: str) -> Embed:
    n, d = target.examples, target.features
    each = sum(len(piece) for piece in pieces)
    columns = [*range(d), *([d] if target.intercept else [])]
    weight, bias = np.zeros((each, slots.width, d + 2)), np.zeros((n, each, slots.width))
    start = 0
    for number, piece in enumerate(pieces):
        own = slice(start, start := start + len(piece))
        for c, column in enumerate(columns):
            weight[own, slots.x[c], column] = piece.of_score
            weight[own, slots.value[c], column] = piece.values
        weight[own, slots.y, d + 1] = piece.of_label
        bias[:, own, slots.offset], bias[:, own, slots.offset_y] = piece.offsets, piece.offsets_y
        bias[:, own, slots.part[number]] = 1
    code = addresses(n, slots.bits)
    bias[:, :, slots.address] = code[:, None]
    registers = np.zeros((n, slots.width))
    registers[:, slots.one] = 1
    registers[:, slots.asks] = np.roll(code, slots.bits, axis=1)
    return Embed(
        np.tile(weight.astype(dtype), (n, 1, 1)),
        bias.reshape(n * each, -1).astype(dtype),
        registers=registers.astype(dtype),
        source=np.repeat(np.arange(n), each),
        tokens=2 * n,
        features=names,
    )


def _link(slots: Slots, names: tuple[str, ...], reach: float, dtype: str) -> Attention:
    """Every register asks its own example's anchors, part by part, and takes what it reads as its push."""
    pick, asked = np.eye(slots.width), np.zeros((slots.parts, len(slots.keys), slots.width))
    asked[:, slots.x, slots.w] = 1
    asked[:, [slots.y, slots.offset, slots.offset_y], slots.one] = 1
    asked[:, slots.address, slots.asks] = asked[:, slots.one, slots.one] = -reach
    for head in range(slots.parts):
        others = [place for number, place in enumerate(slots.part) if number != head]
        asked[head, others, slots.one] = -reach
    output = np.zeros((slots.parts, slots.width, slots.weights))
    output[:, slots.push] = np.eye(slots.weights)
    stays = np.eye(slots.width)
    stays[slots.push] = 0
    return Attention(
        asked.astype(dtype),
        pick[None, slots.keys].astype(dtype),
        pick[None, slots.value].astype(dtype),
        output.astype(dtype),
        skip=Linear(stays.astype(dtype), features=names),
        features=names,
        labels=tuple(f"the link of each example, part {part}" for part in range(slots.parts)),
    )


def _mean(slots: Slots, names: tuple[str, ...], step: SequenceStep, dtype: str) -> Attention:
    """Every register weighs all registers alike, and w takes minus the rate times the mean push."""
    nothing, w = np.zeros((1, 1, slots.width), dtype), slots.w[0]
    return Attention(
        nothing,
        nothing,
        np.eye(slots.width, dtype=dtype)[None, slots.push],
        added_to_w([step.output], slots.width, w, slots.weights, slots.momentum).astype(dtype),
        mask="self+registers",
        skip=Linear(step.update.skip(slots.width, w, slots.momentum).astype(dtype), features=names),
        features=names,
        labels=("the mean of what examples push",),
    )
