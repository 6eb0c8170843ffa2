"""Any loss in the sequence layout, as the paper lays it out: anchors for each example, two attentions a step.

The Embed may scale an example by a constant, so token (i, k) carries anchor k of the head for the link phi as it meets
example i: slope_k x_i, offset_k, value_k x_i. A register for each example carries w and asks. Its logits

    slope_k (w . x_i) + offset_k          (for phi(s - y): slope_k (w . x_i - y_i) + offset_k)

are those of the head at the score s_i, so it reads phi(s_i) x_i: no quotient of differences is taken. Registers ask
for an address, and anchors of other examples, of other parts of the head, and registers are out of reach; what the
address adds to the own anchors' logits is exactly 0. The second attention weighs all registers alike, and w takes the
mean, in every register the same. For phi(s) - y one more part stands for -y, a line in y. For a link g(s, y) the
anchors are the points of a grid, with logits slope_k s_i + offset_k + slope_l y_i + offset_l.

Anchors ask as well, and what becomes of their push and w nobody sees: keys and values of the first attention are of
features that stay as they are, and in the second one registers see registers alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain, pairwise

import numpy as np
from jaxtyping import Float

from anchorhead.constructions.learners.layouts.stored import Stored
from anchorhead.errors import CertificateError
from anchorhead.heads.atom import Dtype, Part
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.language.targets.descent import Descent
from anchorhead.lemmas.learners.own_anchors import Piece, SequenceStep
from anchorhead.lemmas.learners.steps import SequenceLinks, sequence_step
from anchorhead.lemmas.learners.update import added_to_w
from anchorhead.network import Attention, Embed, Linear, Network, Repeat


class Slots:
    """Where the features of a token lie, and what they are called. Slots are ranges, or a number for one feature.

    Of anchors: `x` slope times the example, `y` slope times its label, `offset` and, along a grid's axis of labels,
    `offset_y`, `address` of the example, `part` to which softmax they belong, `value` times the example. Of registers:
    `one`, `asks` for an address, `w`, `v`, and `push`, what the example's loss adds to the gradient. `keys` is all that
    a key is made of, in order.
    """

    def __init__(self, target: Descent, parts: int) -> None:
        self.bits, self.parts, self.weights = (target.examples - 1).bit_length(), parts, target.weights
        columns = target.weight_names("x")
        address = [f"{kind}bit {bit} of the example" for kind in ("", "no ") for bit in range(self.bits)]
        named = (
            [f"slope times {name}" for name in columns],
            ["slope times label"],
            ["offset"],
            ["offset along the label"],
            address,
            [f"in part {number}" for number in range(parts)],
            ["asks"],
            [f"value times {name}" for name in columns],
            [f"asks for {name}" for name in address],
            target.weight_names("w"),
            target.weight_names("v") if target.momentum else (),
            target.weight_names("push"),
        )
        places = [range(*ends) for ends in pairwise((0, *accumulate(map(len, named))))]
        self.x, y, offset, offset_y, self.address, self.part, one, self.value, self.asks, self.w, self.v, self.push = (
            places
        )
        self.y, self.offset, self.offset_y, self.one = (place[0] for place in (y, offset, offset_y, one))
        self.keys = range(self.one + 1)
        self.names, self.width = tuple(chain(*named)), self.push.stop


def addresses(examples: int, bits: int) -> Float[np.ndarray, "{examples} {2*bits}"]:
    """For every example the bits b of its number and their opposites 1 - b: two of them differ in at least one bit, and
    the product of one with another's, the halves exchanged, counts in how many."""
    b = ((np.arange(examples)[:, None] >> np.arange(bits)) & 1).astype(np.float64)
    return np.concatenate([b, 1 - b], axis=1)


def read(network: Network, target: Descent) -> SequenceLinks:
    """The step whose numbers a network of this layout holds: its anchors are those of the first example."""
    stored = Stored.of(network, 2, 0)
    link, embed = stored.body[0], stored.embed
    slots = Slots(target, link.heads)
    stored.require_width(slots.width)
    each = len(embed.weight) // target.examples
    fits = embed.weight.shape[2:] == (target.features + 2,) and embed.bias.ndim == 2 and each > 0
    if not fits or link.query.shape[1] != len(slots.keys):
        raise CertificateError("its tokens are no anchors of examples, or are not asked for as such")
    weight, bias = embed.weight[:each], embed.bias[:each]
    x, y, values = weight[:, slots.x[0], 0], weight[:, slots.y, -1], weight[:, slots.value[0], 0]
    offsets, reach = bias[:, slots.offset], -float(link.query[0, slots.one, slots.one])
    if target.loss.form == "g(s, y)":
        held = _grid(x, y, offsets, bias[:, slots.offset_y], values, stored.dtype)
        return sequence_step(target, held, (), reach, stored.dtype)
    own = [bias[:, part] == 1 for part in slots.part]
    parts = tuple(Part.of(x[one], offsets[one], values[one], stored.dtype) for one in own if x[one].any())
    labels = tuple(Part.of(y[one], offsets[one], -values[one], stored.dtype) for one in own if not x[one].any())
    return sequence_step(target, parts, labels, reach, stored.dtype)


def _grid(
    x: np.ndarray, y: np.ndarray, offsets: np.ndarray, offsets_y: np.ndarray, values: np.ndarray, dtype: Dtype
) -> GridAtom:
    """The grid whose points are these anchors, row by row: one row for each slope of the score."""
    rows = len(np.unique(x))
    if len(x) % rows:
        raise CertificateError("the anchors of its link are no grid")
    x, y, offsets, offsets_y, values = (array.reshape(rows, -1) for array in (x, y, offsets, offsets_y, values))
    axes = [(x[:, 0], offsets[:, 0]), (y[0], offsets_y[0])]
    return GridAtom.of(axes, np.zeros(2), values[:, :, None], np.zeros(1), dtype)


def build(target: Descent, step: SequenceLinks) -> Network:
    """The network of a descent on any loss, certificate left out."""
    pieces, collect = step.collect.pieces, step.collect
    slots = Slots(target, len(pieces))
    repeated = _link(slots, collect.reach), _mean(slots, collect)
    read = Linear(np.eye(slots.width)[list(slots.w)], features=target.weight_names("w"))
    return Network([_embed(target, slots, pieces), Repeat(repeated, target.steps), read], output="register")


def _embed(target: Descent, slots: Slots, pieces: Sequence[Piece]) -> Embed:
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
        np.tile(weight, (n, 1, 1)),
        bias.reshape(n * each, -1),
        registers=registers,
        source=np.repeat(np.arange(n), each),
        tokens=2 * n,
        features=slots.names,
    )


def _link(slots: Slots, reach: float) -> Attention:
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
        asked,
        pick[None, slots.keys],
        pick[None, slots.value],
        output,
        skip=Linear(stays, features=slots.names),
        features=slots.names,
        labels=tuple(f"the link of each example, part {part}" for part in range(slots.parts)),
    )


def _mean(slots: Slots, step: SequenceStep) -> Attention:
    """Every register weighs all registers alike, and w takes minus the rate times the mean push."""
    nothing = np.zeros((1, 1, slots.width))
    return Attention(
        nothing,
        nothing,
        np.eye(slots.width)[None, slots.push],
        added_to_w([step.output], slots.width, slots.w, slots.v),
        mask="self+registers",
        skip=Linear(step.update.skip(slots.width, slots.w, slots.v), features=slots.names),
        features=slots.names,
        labels=("the mean of what examples push",),
    )
