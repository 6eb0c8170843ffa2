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

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Part
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.incontext.link_heads import line_head, link_grid, link_head
from anchorhead.incontext.squared import entry_names, kept, weight_names
from anchorhead.network import Attention, Embed, Linear, Network, Repeat
from anchorhead.proof.descent.descent_sequence_form import Slots, addresses
from anchorhead.targets.descent import Descent

LEAST_REACH = 2.0**20
FAR_SCORES = 2.0**24
"""How large scores may be before the logits of others come within reach."""
MAX_NUMBERS = 2**26
"""The most numbers that the Embed may hold."""


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


def linked_sequence_network(
    target: Descent, dtype: str, scores: tuple[float, float] | None = None, labels: float = 4.0
) -> Network:
    """The network of a descent on any loss, certificate left out.

    scores   the range of phi's argument that the head serves, in place of the target's own; see Descent
    labels   the largest |y|: for the residuals of a straight link, for the part for -y of the form phi(s) - y, and for
             the grid of the form g(s, y)
    """
    target = replace(target, scores=scores or target.scores or _scores(target, labels))
    if target.loss.form == "g(s, y)":
        target = replace(target, labels=target.labels or labels)
    if target.threshold:
        raise AnchorheadError('layout="sequence" has no threshold: use layout="transformer", or decay in its place')
    pieces = _pieces(target, labels, dtype)
    slots = Slots.of(target, len(pieces))
    names = _names(target, slots)
    repeated = (_link(slots, names, _reach(pieces, dtype), dtype), _mean(target, slots, names, dtype))
    read = Linear(np.eye(slots.width, dtype=dtype)[list(slots.w)], features=tuple(weight_names(target, "w")))
    return Network(
        [_embed(target, slots, pieces, names, dtype), Repeat(repeated, target.steps), read],
        output="register",
    ).approximating(target.record())


def _scores(target: Descent, labels: float) -> tuple[float, float]:
    """What residuals of a straight link reach with a safe rate (see proof.descent.descent_squared), with some room; for
    others a range that serves standardised examples."""
    if target.loss.link.affine() is None:
        return -8.0, 8.0
    grown = (1 + target.momentum) / (1 - target.momentum)
    reach = 1.125 * grown * np.sqrt(target.examples) * max(labels, 1.0)
    return -reach, reach


def _pieces(target: Descent, labels: float, dtype: str) -> list[Piece]:
    """The parts of the head for the link; their sum is what is read."""
    loss, scores = target.loss, target.scores or (-8.0, 8.0)
    if loss.form == "g(s, y)":
        return [Piece.of_grid(link_grid(loss, scores, target.labels or labels, dtype))]
    head = link_head(loss, scores, dtype)
    pieces = [Piece.of_head(part, 1.0, -1.0 if loss.form == "phi(s - y)" else 0.0) for part in head.parts]
    if loss.form == "phi(s) - y":
        pieces += [Piece.of_head(part, 0.0, 1.0, -1.0) for part in line_head(labels or 1.0, dtype).parts]
    return pieces


def _reach(pieces: Sequence[Piece], dtype: str) -> float:
    """A power of two, far above all logits for scores up to FAR_SCORES."""
    steepest = max(float(np.abs([piece.of_score, piece.of_label]).max()) for piece in pieces)
    highest = max(float((np.abs(piece.offsets) + np.abs(piece.offsets_y)).max()) for piece in pieces)
    needed = max(LEAST_REACH, 4 * (FAR_SCORES * steepest + highest))
    if not needed <= float(np.finfo(dtype).max) / 2**20:
        raise AnchorheadError(f"the link's head is too steep for {dtype}: a slope of {steepest:.3g}; use float64")
    return float(2.0 ** np.ceil(np.log2(needed)))


def _names(target: Descent, slots: Slots) -> tuple[str, ...]:
    columns = weight_names(target, "x")
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
        *entry_names(target),
        *weight_names(target, "push"),
    )


def _embed(target: Descent, slots: Slots, pieces: Sequence[Piece], names: tuple[str, ...], dtype: str) -> Embed:
    n, d = target.examples, target.features
    each = sum(len(piece) for piece in pieces)
    numbers = n * each * slots.width * (d + 2)
    if numbers > MAX_NUMBERS:
        raise AnchorheadError(
            f"{n:,} examples with {each} anchors each and {d} features make {n * each:,} tokens of {slots.width} "
            f"features, {numbers:,} weights: at most {MAX_NUMBERS:,}. Use fewer examples, or another layout"
        )
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


def _mean(target: Descent, slots: Slots, names: tuple[str, ...], dtype: str) -> Attention:
    """Every register weighs all registers alike, and w takes minus the rate times the mean push."""
    nothing = np.zeros((1, 1, slots.width), dtype)
    output = np.zeros((1, slots.width, slots.weights))
    output[0, slots.w] = -target.rate * np.eye(slots.weights)
    if target.momentum:
        output[0, slots.v] = output[0, slots.w]
    return Attention(
        nothing,
        nothing,
        np.eye(slots.width, dtype=dtype)[None, slots.push],
        output.astype(dtype),
        mask="self+registers",
        skip=Linear(kept(target, slots.width, slots.w[0]).astype(dtype), features=names),
        features=names,
        labels=("the mean of what examples push",),
    )
