"""The proof for gradient descent with a link g(s, y) of two variables (incontext.linked_grid): score, grid, collect.

As proof.descent.descent_linked, but the second layer is a grid over the written score and the label. The error of the
grid (proof.descent.grid_link) holds at the score that was written, and g moves by at most |written - s| times its
steepest slope by s in between. The label is exact.

Copies of sign 1 read the grid by one head, copies of sign -1 by another, which asks with -s and -y and whose output is
subtracted. Along s the grid has one anchor more, "off", with values 0. With t = 0 for a copy that a head is meant for,
t = 1 for the other copy and for tokens that are no examples, and M = `far`, anchors add -M t to their logits and "off"
has M t - M for examples and M t for others. Sums of these are exact, so a copy's own logits are as they would be
without, and "off" is out of its reach; in all other cases "off" alone is read, exactly 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from anchorhead.errors import CertificateError
from anchorhead.heads.atom import Part
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.network import Attention, Embed, Linear, Network
from anchorhead.proof.arithmetic.arithmetic import Arithmetic
from anchorhead.proof.arithmetic.silence import SILENT
from anchorhead.proof.descent import descent_linked
from anchorhead.proof.descent.descent import DescentBound
from anchorhead.proof.descent.descent_linked import ScoresOutside
from anchorhead.proof.descent.descent_linked_form import (
    ROOM,
    LinkedStep,
    _layers,
    _refuse,
    _require_hidden,
    _same_attention,
    _same_embed,
)
from anchorhead.proof.descent.descent_linked_layers import (
    Scoring,
    Slots,
    collect_layer,
    embed_layer,
    hidden_register,
    score_layer,
)
from anchorhead.proof.descent.descent_linked_link import Known
from anchorhead.proof.descent.descent_linked_paths import NOTHING
from anchorhead.proof.descent.descent_squared_form import read_skip
from anchorhead.proof.descent.descent_threshold import unshrunk
from anchorhead.proof.descent.grid_link import GridLink
from anchorhead.targets.descent import Descent

METHOD = (
    "series of tanh, sinh and cosh with bounds on the rest; the link's grid interpolated at Chebyshev points, "
    "remainders on Bernstein ellipses; softmax and sums in any order of rounding; errors of the steps add up, "
    "multiplied by no more than the link's slopes allow"
)


def grid_slots(target: Descent) -> Slots:
    """Slots as for a head of two parts, whose six features are those of a point: the first part's are slope, offset and
    gate along s, the second's slope and offset along y, and the value."""
    return Slots.of(target, 2)


def grid_names(slots: Slots, entries: list[str]) -> tuple[str, ...]:
    """What each feature is called, given names of the entries of w (and v)."""
    names = list(slots.names(entries))
    texts = ("slope along s", "offset along s", "gate", "slope along y", "offset along y", "value")
    names[slots.anchor(0)[0] : slots.w] = [f"{text} of the grid" for text in texts]
    return tuple(names)


def grid_far(scoring: Scoring, atom: GridAtom, labels: float) -> float:
    """From here on what is not meant is out of reach at every score that may be written: twice the logits and SILENT
    would do in exact arithmetic, and sums of a few terms round by less than the rest."""
    (along_s, at_s), (along_y, at_y) = ((np.abs(a).max(), np.abs(g).max()) for a, g in atom.axes)
    return 4 * float(along_s * scoring.most + at_s + along_y * labels + at_y + 2 * SILENT)


def grid_layer(slots: Slots, sides: tuple[int, int], names: tuple[str, ...], dtype: str) -> Attention:
    """Every example asks the grid with its score and its label, and again with both negated."""
    pick, nothing = np.eye(slots.width), np.zeros(slots.width)
    query = np.stack(
        [
            np.stack(
                [
                    *(sign * pick[slots.score], pick[slots.example], pick[unmeant] + pick[slots.other]),
                    *(sign * pick[slots.label], pick[slots.example], nothing),
                ]
            )
            for sign, unmeant in ((1.0, slots.minus), (-1.0, slots.plus))
        ]
    )
    along_s, (slope_y, offset_y, value) = slots.anchor(0), slots.anchor(1)
    key = np.stack([*pick[list(along_s)], pick[slope_y], pick[offset_y], nothing])
    skip = np.eye(slots.width)
    skip[slots.link, slots.link] = 0.0
    output = np.array([1.0, -1.0])[:, None, None] * pick[slots.link][:, None]
    return Attention(
        query.astype(dtype),
        key[None].astype(dtype),
        pick[None, [value]].astype(dtype),
        output.astype(dtype),
        skip=Linear(skip.astype(dtype), features=names),
        grid=(sides[0] + 1, sides[1]),
        features=names,
        labels=("the link, for sign 1", "the link, for sign -1"),
    )


def grid_embed(slots: Slots, atom: GridAtom, far: float, names: tuple[str, ...], dtype: str) -> Embed:
    """As embed_layer, the registers being the points of the grid, row by row, and the reference of scores."""
    nothing = Part(np.zeros(0), np.zeros(0), np.zeros((0, 1)))
    base = embed_layer(slots, [nothing], far, names, dtype)
    (p, q), (along_s, along_y) = atom.sides, atom.axes
    points = np.tile(hidden_register(slots, far), (p + 1, q, 1))
    (slope, offset, gate), (slope_y, offset_y, value) = slots.anchor(0), slots.anchor(1)
    for place, array, off in ((slope, along_s[0], 0.0), (offset, along_s[1], -far), (gate, np.full(p, -far), far)):
        points[:, :, place] = np.append(array.astype(np.float64), off)[:, None]
    for place, array in ((slope_y, along_y[0]), (offset_y, along_y[1])):
        points[:, :, place] = array
    points[:p, :, value], points[p, :, value] = atom.values[..., 0], 0.0
    registers = points.reshape(-1, slots.width).astype(dtype)
    reference = base.registers if base.registers is not None else registers[:0]
    return replace(base, registers=np.concatenate([registers, reference]))


@dataclass(frozen=True, eq=False)
class KnownGrid(Known):
    """A step as it is stored, and what is proven of its grid."""

    link: GridLink

    def head_rounding(self, model: Arithmetic) -> float:
        return self.link.error(self.facts.low, self.facts.high, 0.0, self.link.labels, 0, model).rounding

    def values(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self.link.values(z, y)


def read(network: Network, target: Descent) -> KnownGrid:
    """The step, if the network is one of incontext.linked_grid for this target; CertificateError otherwise."""
    if target.scores is None or target.labels is None or target.loss.form != "g(s, y)":
        raise CertificateError("the network is no gradient descent with a grid for scores and labels that are stated")
    slots, states = grid_slots(target), network.embed.states
    away = -float(states[0, -2]) if target.threshold and states is not None else 0.0
    network, clip, registers = unshrunk(network, target, slots.w, slots.asks)
    score, link, collect, last = _layers(network, target)
    embed, names, dtype = network.embed, network.embed.features or (), network.dtype
    if link.grid is None or len(link.grid) != 2 or collect.skip is None or collect.skip.weight.ndim != 2:
        _refuse("its second attention is no grid of two axes, or its last has no skip")
    p, q = link.grid[0] - 1, link.grid[1]
    if p < 1 or embed.registers is None or embed.registers.shape != ((p + 1) * q + 1, slots.width):
        _refuse("its registers are not the points of a grid and a reference")
    far = -float(embed.registers[-1, slots.anchor(0)[1]])
    atom = _read_atom(slots, embed.registers[:-1].reshape(p + 1, q, -1)[:p], dtype)
    scoring = Scoring(
        tuple(float(h) for h in score.query[:, 0, 0]), tuple(float(o) for o in score.output[:, slots.score, 0]), False
    )
    sharpness = tuple(float(h) for h in collect.query[:, 0, slots.state])
    outputs = tuple(float(o) for o in collect.output[:, slots.w, 0])
    if not all(h > 0 and np.frexp(h)[0] == 0.5 for h in (*scoring.sharpness, *sharpness)):
        _refuse("a sharpness is no power of two")
    _same_attention(score, score_layer(slots, scoring, names, dtype), "score")
    _same_attention(link, grid_layer(slots, (p, q), names, dtype), "grid")
    _same_attention(collect, collect_layer(slots, sharpness, outputs, collect.skip.weight, names, dtype), "collect")
    _same_embed(embed, grid_embed(slots, atom, far, names, dtype))
    if last.bias is not None or not np.array_equal(last.weight, np.eye(slots.width)[slots.entries]):
        _refuse("its last map does not pick w")
    top = float(np.finfo(dtype).max) / ROOM
    if not grid_far(scoring, atom, target.labels) <= far <= top or np.frexp(far)[0] != 0.5:
        _refuse("the point of the grid that is not meant is not out of reach, or logits may overflow")
    if clip is not None:
        _require_hidden(registers, slots, far, away - max(map(abs, clip.offsets)))
    taken = replace(read_skip(collect.skip.weight, slots.entries, target, sharpness, outputs), clip=clip)
    held = GridLink(target.loss.link, atom, *target.scores, target.labels)
    facts = held.facts(0.0)
    return KnownGrid(LinkedStep(scoring, (), far, False, taken), facts, held.slopes_on_cells(), False, held)


def _read_atom(slots: Slots, points: Float[np.ndarray, "p q width"], dtype: str) -> GridAtom:
    (slope, offset, _), (slope_y, offset_y, value) = slots.anchor(0), slots.anchor(1)
    axes = [(points[:, 0, slope], points[:, 0, offset]), (points[0, :, slope_y], points[0, :, offset_y])]
    return GridAtom.of(axes, np.zeros(2), points[:, :, value, None], np.zeros(1), dtype)  # type: ignore[arg-type]


def bound_for_prompt(
    step: KnownGrid, target: Descent, A: Float[np.ndarray, "n weights"], y: Float[np.ndarray, " n"], model: Arithmetic
) -> DescentBound:
    """For one prompt; raises ScoresOutside where the grid does not serve."""
    most = float(np.abs(y).max())
    if not most <= step.link.labels:
        raise ScoresOutside(
            f"labels of this prompt reach {most:.4g}, but the grid for the link {target.loss.link} serves up to "
            f"{step.link.labels:g}: build with labels=({-math.ceil(most)}, {math.ceil(most)})"
        )
    return descent_linked.bound_for_prompt(step, target, A, y, model)


def bound_for_box(
    step: KnownGrid, target: Descent, x: Float[np.ndarray, " weights"], y: float, model: Arithmetic
) -> DescentBound:
    """For every prompt of at most target.examples with |x_ij| <= x_j and |y_i| <= y; see
    proof.descent.descent_linked."""
    if not y <= step.link.labels:
        return NOTHING
    return descent_linked.bound_for_box(step, target, x, y, model)


def error_of_a_step(
    known: KnownGrid, target: Descent, x: Float[np.ndarray, " weights"], y: float, model: Arithmetic
) -> float:
    """See proof.descent.descent_linked."""
    return descent_linked.error_of_a_step(known, target, x, y, model) if y <= known.link.labels else math.inf
