"""The tokens of a learner in the transformer layout (layouts.transformer): what each of their features says.

Inputs are examples, once with either sign; registers are a reference of key 0 and what holds the link: the anchors of
its head, once for copies of either sign, or for a link of two variables the points of a grid; the one state carries w.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from anchorhead.constructions.learners.layouts.threshold import beside_clip, clip_names
from anchorhead.heads.atom import Part
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.language.targets.descent import Descent
from anchorhead.lemmas.learners.links import Anchors
from anchorhead.network import Embed

OF_A_GRID = ("slope along s", "offset along s", "gate", "slope along y", "offset along y", "value")
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


class Slots:
    """Where each feature of a token stands, and what it is called.

    parts    softmaxes of the link's head; 2 for a grid, whose points have the six features of OF_A_GRID
    mark     the feature that is a copy's sign, 1 or -1: for a loss of the margin the label
    columns  what w multiplies
    entries  those of w; speeds: those of v, none without momentum
    """

    def __init__(self, target: Descent, parts: int) -> None:
        d, self.parts = target.features, parts
        (self.sign, self.label, self.score, self.link, self.example, self.plus, self.minus, self.other, self.state,
         self.zero, self.hidden, self.of_plus, self.of_minus, self.asks) = range(d, d + len(FLAGS))  # fmt: skip
        self.mark = self.label if target.loss.form == "y phi(y s)" else self.sign
        self.columns = [*range(d), *([self.sign] if target.intercept else [])]
        self.first_anchor = d + len(FLAGS)
        self.w, carried = self.first_anchor + 3 * parts, target.entry_names()
        self.entries = list(range(self.w, self.w + target.weights))
        self.speeds = list(range(self.w + target.weights, self.w + len(carried)))
        which = [f" of part {k}" if parts > 1 else "" for k in range(parts)]
        anchors = [f"{what} of the link{part}" for part in which for what in ("slope", "offset", "value")]
        if target.loss.form == "g(s, y)":
            anchors = [f"{text} of the grid" for text in OF_A_GRID]
        self.names = (*(f"x{j}" for j in range(d)), *FLAGS.values(), *anchors, *carried, *clip_names(target))
        self.width, self.inputs = len(self.names), d + 2

    def anchor(self, part: int) -> tuple[int, int, int]:
        """Slope, offset and value of a part of the head."""
        first = self.first_anchor + 3 * part
        return first, first + 1, first + 2


def embed_layer(slots: Slots, held: Anchors, far: float, clip: Part | None) -> Embed:
    """Examples with their flags; registers: the reference, and what holds the link; the state."""
    weight, bias = np.eye(slots.width, slots.inputs), np.zeros(slots.width)
    weight[slots.plus, slots.mark], weight[slots.minus, slots.mark] = 0.5, -0.5
    bias[[slots.example, slots.plus, slots.minus]] = 1.0, 0.5, 0.5
    reference, state = _no_anchor(slots, far)[None], _no_anchor(slots, far)
    reference[0, [slots.zero, slots.other, slots.asks]] = 1.0, 1.0, -1.0
    state[[slots.state, slots.other, slots.asks]] = 1.0
    of_grid = isinstance(held, GridAtom)
    rows = [_points(slots, held, far), reference] if of_grid else [reference, _anchors(slots, held, far)]
    registers, states = beside_clip(clip, np.concatenate(rows), state[None], hidden_register(slots, far))
    return Embed(weight, bias, registers=registers, states=states, features=slots.names)


def hidden_register(slots: Slots, far: float) -> Float[np.ndarray, " width"]:
    """A register that no example and no state sees."""
    row = _no_anchor(slots, far)
    row[[slots.other, slots.hidden, slots.asks]] = 1.0, 1.0, -1.0
    return row


def _no_anchor(slots: Slots, far: float) -> Float[np.ndarray, " width"]:
    row = np.zeros(slots.width)
    row[[slots.anchor(part)[1] for part in range(slots.parts)]] = -far
    return row


def _anchors(slots: Slots, parts: Sequence[Part], far: float) -> Float[np.ndarray, "anchors width"]:
    """Those for sign 1, then those for sign -1."""
    rows = np.tile(hidden_register(slots, far), (2, max(len(part) for part in parts), 1))
    for block, sign, mine in zip(rows, (1.0, -1.0), (slots.of_plus, slots.of_minus), strict=True):
        block[:, mine] = 1.0
        for number, part in enumerate(parts):
            slopes, offsets, values = part.astype(np.float64)
            block[: len(part), slots.anchor(number)] = np.stack([sign * slopes, offsets, sign * values[:, 0]], axis=1)
    return rows.reshape(-1, slots.width)


def _points(slots: Slots, atom: GridAtom, far: float) -> Float[np.ndarray, "points width"]:
    """The points of the grid, row by row; along s one more, "off", with values 0."""
    (p, q), (along_s, along_y) = atom.sides, atom.axes
    points = np.tile(hidden_register(slots, far), (p + 1, q, 1))
    (slope, offset, gate), (slope_y, offset_y, value) = slots.anchor(0), slots.anchor(1)
    for place, array, off in ((slope, along_s[0], 0.0), (offset, along_s[1], -far), (gate, np.full(p, -far), far)):
        points[:, :, place] = np.append(array.astype(np.float64), off)[:, None]
    for place, array in ((slope_y, along_y[0]), (offset_y, along_y[1])):
        points[:, :, place] = array
    points[:p, :, value], points[p, :, value] = atom.values[..., 0], 0.0
    return points.reshape(-1, slots.width)
