"""What a network of many learners does, read from stored weights (incontext.many_layers, and its proof descent_many).

The features of a token and the weights of the layers stand here once: the construction stores them, and what is proven
is proven of networks whose weights are exactly these, for sharpnesses, outputs and registers that are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from jaxtyping import Float

from anchorhead.errors import CertificateError
from anchorhead.heads.atom import Part
from anchorhead.network import Attention, Embed, Network, Repeat
from anchorhead.proof.arithmetic.silence import SILENT
from anchorhead.proof.descent.descent_squared_form import SquaredStep
from anchorhead.targets.many_learners import ManyLearners

OUT_OF_REACH = 2.0**20
Heads = tuple[tuple[float, float], ...]
"""Sharpness and output of each head."""


class Slots:
    """The features of a token: those of a prompt's row, and what the network adds."""

    def __init__(self, target: ManyLearners, parts: int) -> None:
        self.columns = target.columns
        count, weights, losses = self.columns.count, target.weights, len(target.losses)
        self.one, self.score, self.link, self.sign, self.register = range(count, count + 5)
        self.w = slice(count + 5, count + 5 + weights)
        self.gates = slice(self.w.stop, self.w.stop + 2 * losses)
        first = self.gates.stop
        self.slope, self.offset, self.value = (range(first + k, first + 3 * parts, 3) for k in range(3))
        self.width = first + 3 * parts

    def names(self) -> tuple[str, ...]:
        added = ["one", "score", "link", "sign of w", "is a register"]
        added += [f"w{j}" for j in range(self.w.stop - self.w.start)]
        added += [f"not for flag {k}" for k in range(self.gates.stop - self.gates.start)]
        for part in range(len(self.slope)):
            added += [f"{what} of an anchor, part {part}" for what in ("slope", "offset", "value")]
        return (*self.columns.names(), *added)


@dataclass(frozen=True, eq=False)
class Weights:
    """Of an attention; skip is None where nothing is kept."""

    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    output: np.ndarray
    skip: np.ndarray | None
    grid: tuple[int, ...] | None = None


def start_weights(slots: Slots) -> Weights:
    """The register of w takes what the start row carries, that of -w its negative."""
    pick, c = np.eye(slots.width), slots.columns
    query, key = OUT_OF_REACH * pick[None, None, slots.sign], pick[None, None, c.start]
    return Weights(query, key, pick[None, c.v], pick[None, :, slots.w], pick)


def score_weights(slots: Slots, heads: Heads) -> Weights:
    """score <- sum over heads of o tanh(h x . w) - a; the first two registers are seen."""
    pick, c = np.eye(slots.width), slots.columns
    query = np.stack([h * pick[c.x] for h, _ in heads])
    output = np.stack([o * pick[:, [slots.score]] for _, o in heads])
    skip = _takes(slots, slots.score, c.a)
    return Weights(query, pick[None, slots.w], pick[None, None, slots.sign], output, skip, (2,))


def link_weights(slots: Slots, registers: int) -> Weights:
    """link <- sum over parts of their softmaxes of the score - b; registers are seen, those for other flags far off."""
    pick, c = np.eye(slots.width), slots.columns
    query = np.concatenate([pick[[slots.score, slots.one]], pick[c.flags]])
    parts = list(zip(slots.slope, slots.offset, slots.value, strict=True))
    key = np.stack([np.concatenate([pick[[slope, offset]], pick[slots.gates]]) for slope, offset, _ in parts])
    value = np.stack([pick[[value]] for _, _, value in parts])
    output = np.stack([pick[:, [slots.link]]] * len(parts))
    skip = _takes(slots, slots.link, c.b)
    return Weights(np.stack([query] * len(parts)), key, value, output, skip, (registers,))


def collect_weights(slots: Slots, heads: Heads) -> Weights:
    """w <- w + sum over heads of o (sum v exp(h g)) / (sum exp(h g)) over the rows, g being their links."""
    pick, c = np.eye(slots.width), slots.columns
    query = np.stack([np.stack([h * pick[slots.sign], pick[slots.register]]) for h, _ in heads])
    key = np.stack([pick[slots.link], -OUT_OF_REACH * pick[c.no_example]])[None]
    output = np.stack([o * pick[:, slots.w] for _, o in heads])
    return Weights(query, key, pick[None, c.v], output, pick)


def last_weights(slots: Slots) -> Weights:
    """The state reads w from the first register, which is all it sees."""
    pick = np.eye(slots.width)
    one = pick[None, None, slots.register]
    return Weights(one, one, pick[None, slots.w], np.eye(slots.w.stop - slots.w.start)[None], None, (1,))


def _takes(slots: Slots, slot: int, less: int) -> np.ndarray:
    """The skip that leaves everything as it is but for one slot, which becomes less another one."""
    kept = np.eye(slots.width)
    kept[slot] = -kept[less]
    return kept


@dataclass(frozen=True, eq=False)
class ManyStep:
    """score and collect: sharpness and output of their heads. links: the parts of each loss's link.

    most   |score| up to which anchors of other links are out of reach
    """

    score: Heads
    collect: SquaredStep
    links: tuple[tuple[Part, ...], ...]
    most: float


def read(network: Network, target: ManyLearners) -> ManyStep:
    """What the stored weights do, if the network is one of incontext.many_layers; CertificateError otherwise."""
    if len(network.layers) != 4 or network.output != "state":
        _refuse("its layers are not Embed, Attention, Repeat, Attention")
    first, repeat, last = network.layers[1:]
    if not (isinstance(first, Attention) and isinstance(repeat, Repeat) and isinstance(last, Attention)):
        _refuse("its layers are not Embed, Attention, Repeat, Attention")
    steps = [layer for layer in repeat.layers if isinstance(layer, Attention)]
    if repeat.times != target.steps or len(repeat.layers) != 3 or len(steps) != 3:
        _refuse(f"it does not repeat three attentions {target.steps} times")
    slots = Slots(target, steps[1].heads)
    registers = network.embed.registers
    if any(layer.width != slots.width for layer in (first, *steps, last)) or registers is None:
        _refuse("its layers have another width, or it has no registers")
    c = slots.columns
    score = tuple(
        zip(_floats(steps[0].query[:, 0, c.x.start]), _floats(steps[0].output[:, slots.score, 0]), strict=True)
    )
    sharpness, outputs = _floats(steps[2].query[:, 0, slots.sign]), _floats(steps[2].output[:, slots.w.start, 0])
    if not all(h > 0 and np.frexp(h)[0] == 0.5 for h in (*sharpness, *(h for h, _ in score))):
        _refuse("a sharpness is no power of two")
    _same(first, start_weights(slots))
    _same(steps[0], score_weights(slots, score))
    _same(steps[1], link_weights(slots, len(registers)))
    _same(steps[2], collect_weights(slots, tuple(zip(sharpness, outputs, strict=True))))
    _same(last, last_weights(slots))
    _check_embed(network.embed, slots)
    links, most = _links(registers.astype(np.float64), slots, len(target.losses), network.dtype)
    loudest = float(np.abs(registers[:, slots.value]).max())
    if not max(sharpness) * steps[1].heads * loudest <= OUT_OF_REACH / 4:
        _refuse("links of tokens that are no examples are so large that they come within reach")
    ones, nothing = (1.0,) * target.weights, (0.0,) * target.weights
    return ManyStep(score, SquaredStep(sharpness, outputs, ones, 0.0, nothing), links, most)


def _floats(array: np.ndarray) -> tuple[float, ...]:
    return tuple(float(one) for one in array)


def _same(layer: Attention, weights: Weights) -> None:
    plain = layer.bias is None and layer.mask is None and layer.grid == weights.grid
    if not plain or (layer.skip is None) != (weights.skip is None):
        _refuse("an attention has a bias, a mask, another grid or another skip")
    pairs = [(getattr(layer, name), getattr(weights, name)) for name in ("query", "key", "value", "output")]
    if layer.skip is not None and weights.skip is not None:
        pairs.append((layer.skip.weight, weights.skip))
    if layer.skip is not None and layer.skip.bias is not None:
        _refuse("a skip has a bias")
    dtype = layer.query.dtype
    if not all(np.array_equal(found, expected.astype(dtype)) for found, expected in pairs):
        _refuse("the weights of an attention are not those of the construction")


def _check_embed(embed: Embed, slots: Slots) -> None:
    pick, c = np.eye(slots.width), slots.columns
    good = (
        embed.tokens is None
        and np.array_equal(embed.weight, np.eye(slots.width, c.count))
        and np.array_equal(embed.bias, pick[slots.one])
        and embed.states is not None
        and np.array_equal(embed.states, pick[None, c.no_example])
    )
    if not good:
        _refuse("its Embed is not that of the construction")


def _links(
    registers: Float[np.ndarray, "registers width"], slots: Slots, losses: int, dtype: str
) -> tuple[tuple[tuple[Part, ...], ...], float]:
    """The parts of each link, and the score up to which links do not see each other's anchors."""
    blank = np.zeros_like(registers)
    blank[:, [slots.register, slots.columns.no_example]] = 1
    blank[:2, slots.sign] = 1, -1
    blank[:2, slots.offset] = -OUT_OF_REACH
    own = [*slots.slope, *slots.offset, *slots.value, *range(slots.gates.start, slots.gates.stop)]
    free = blank.copy()
    free[2:, own] = registers[2:, own]
    gates = registers[2:, slots.gates]
    if not np.array_equal(registers, free) or not ((gates == 0).sum(axis=1) == 1).all():
        _refuse("registers are not w, -w and anchors that serve one flag each")
    anchors, flag = registers[2:], (gates == 0).argmax(axis=1)
    signed = [_parts(anchors[flag == k], slots, dtype) for k in range(2 * losses)]
    for up, down in zip(signed[::2], signed[1::2], strict=True):
        if not _mirrored(up, down):
            _refuse("a link for negative rows is not the mirror image of that for positive ones")
    away = float(np.abs(gates[gates != 0]).min(initial=np.inf)) if (gates <= 0).all() else 0.0
    offsets = float(np.abs(anchors[:, slots.offset]).max())
    steepest = float(np.abs(anchors[:, slots.slope]).max())
    return tuple(signed[::2]), max(away / 2 - 2 * offsets - 4 * OUT_OF_REACH, 0.0) / (2 * max(steepest, 1e-300))


def _parts(anchors: Float[np.ndarray, "anchors width"], slots: Slots, dtype: str) -> tuple[Part, ...]:
    """The softmaxes of one flag. A part whose values are all 0 reads nothing; a silent anchor has no weight."""
    found = []
    for slope, offset, value in zip(slots.slope, slots.offset, slots.value, strict=True):
        if not anchors[:, value].any():
            continue
        silent = (anchors[:, offset] == -OUT_OF_REACH) & (anchors[:, slope] == 0)
        seen = anchors[~silent]
        sides = [seen[sign * seen[:, slope] >= 0, offset].max(initial=-np.inf) for sign in (-1, 1)]
        if not min(sides) + OUT_OF_REACH >= 2 * SILENT:
            _refuse("registers that are no anchors of a link are not out of its reach")
        found.append(Part.of(seen[:, slope], seen[:, offset], seen[:, value], dtype))  # type: ignore[arg-type]
    return tuple(found)


def _mirrored(up: tuple[Part, ...], down: tuple[Part, ...]) -> bool:
    return len(up) == len(down) and all(
        np.array_equal(one.slopes, -other.slopes[::-1])
        and np.array_equal(one.offsets, other.offsets[::-1])
        and np.array_equal(one.values, -other.values[::-1])
        for one, other in zip(up, down, strict=True)
    )


def _refuse(why: str) -> NoReturn:
    raise CertificateError(f"the network is none of many learners: {why}")
