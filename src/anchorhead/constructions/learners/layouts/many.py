"""One network of many learners: loss, rate, penalty and start are features of its prompt.

Tokens are the rows of the prompt; two registers that carry w and -w; the anchors of all links as further registers; a
state that reads w at the end. Before the steps, w is copied from the prompt's start row. A step is three attentions:

    score     row i asks the registers of w and -w alone with h x_i and reads tanh(h s_i); two sharpnesses, weighted,
              make s_i = w . x_i, and the skip adds -a_i
    link      row i asks the anchors; those of other links than its flag's are out of reach. The skip adds -b_i
    collect   the register of w asks the rows: logits h g_i, values v_i, as in layouts.direct; that of -w with
              -h

Rows and registers that a layer does not mean are left out by `grid` (only the first registers are seen) or are out of
reach. So a step costs a multiple of the number of rows.

Registers, the state and the start row ask as well. They show x = 0, so they read as much of w as of -w: their scores
are exactly 0, and their links are means of values of anchors, too small beside OUT_OF_REACH for anybody to hear them
when examples are asked. Their own w is seen by nobody, but for the two that carry it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from anchorhead.constructions.learners.layouts.stored import Stored
from anchorhead.heads.atom import Part
from anchorhead.language.targets.many_learners import ManyLearners
from anchorhead.lemmas.learners.links import HeadLink
from anchorhead.lemmas.learners.steps import OUT_OF_REACH, ScoreLinks, many_step
from anchorhead.network import Attention, Embed, Linear, Network, Repeat


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


def read(network: Network, target: ManyLearners) -> ScoreLinks:
    """The step whose numbers a network of this layout holds. Parts of which a link has fewer than others show 0."""
    stored = Stored.of(network, 3, 1)
    _, link, collect = stored.body
    slots = Slots(target, link.heads)
    stored.require_width(slots.width)
    held, anchors = [], stored.registers[2:]
    for gate in range(slots.gates.start, slots.gates.stop, 2):
        rows, places = anchors[anchors[:, gate] == 0], zip(slots.slope, slots.offset, slots.value, strict=True)
        parts = [stored.part(rows, place, OUT_OF_REACH) for place in places]
        held.append(tuple(part for part in parts if part.values.any()))
    return many_step(target, held, float(collect.query[0, 0, slots.sign]), stored.dtype)


def build(target: ManyLearners, step: ScoreLinks) -> Network:
    """The network, which has no certificate: what is proven is proven for a prompt."""
    links = [link.parts for link in step.links if isinstance(link, HeadLink)]
    slots = Slots(target, max(map(len, links)))
    c, w, pick, registers = slots.columns, slots.w, np.eye(slots.width), _registers(slots, links, step.far)
    names = slots.names()

    def attention(
        does: str, query: np.ndarray, key: np.ndarray, value: np.ndarray, output: np.ndarray, skip: np.ndarray,
        grid: tuple[int, ...] | None = None,
    ) -> Attention:  # fmt: skip
        kept = Linear(skip, features=names)
        return Attention(query, key, value, output, skip=kept, grid=grid, features=names, labels=(does,) * len(query))

    start = attention(  # the register of w takes what the start row carries, that of -w its negative
        "takes w from the start row",
        OUT_OF_REACH * pick[None, None, slots.sign], pick[None, None, c.start], pick[None, c.v], pick[None, :, w], pick,
    )  # fmt: skip
    score = attention(  # score <- sum over heads of o tanh(h x . w) - a; the first two registers are seen
        "the score of each example",
        np.stack([h / 2 * pick[c.x] for h in step.scoring.sharpness]),
        pick[None, w],
        pick[None, None, slots.sign],
        np.stack([o * pick[:, [slots.score]] for o in step.scoring.outputs]),
        _less(pick, slots.score, c.a),
        (2,),
    )
    parts = list(zip(slots.slope, slots.offset, slots.value, strict=True))
    query = np.concatenate([pick[[slots.score, slots.one]], pick[c.flags]])
    link = attention(  # link <- sum over parts of their softmaxes of the score - b
        "the link that the prompt names",
        np.stack([query] * len(parts)),
        np.stack([np.concatenate([pick[[slope, offset]], pick[slots.gates]]) for slope, offset, _ in parts]),
        np.stack([pick[[value]] for _, _, value in parts]),
        np.stack([pick[:, [slots.link]]] * len(parts)),
        _less(pick, slots.link, c.b),
        (len(registers),),
    )
    collect = attention(  # w <- w + sum over heads of o (sum v exp(h g)) / (sum exp(h g)) over the rows
        "the gradient",
        np.stack([np.stack([h * pick[slots.sign], pick[slots.register]]) for h in step.collect.sharpness]),
        np.stack([pick[slots.link], -OUT_OF_REACH * pick[c.no_example]])[None],
        pick[None, c.v],
        np.stack([o * pick[:, w] for o in step.collect.outputs]),
        pick,
    )
    one = pick[None, None, slots.register]
    entries = tuple(f"w{j}" for j in range(target.weights))
    read = Attention(  # the state reads w from the first register, which is all it sees
        one, one, pick[None, w], np.eye(target.weights)[None],
        grid=(1,), features=entries, labels=("reads w",),
    )  # fmt: skip
    repeat = Repeat((score, link, collect), target.steps)
    return Network([_embed(slots, registers), start, repeat, read], output="state")


def _less(pick: np.ndarray, slot: int, less: int) -> np.ndarray:
    """The skip that leaves everything as it is but for one slot, which becomes less another one."""
    kept = pick.copy()
    kept[slot] = -pick[less]
    return kept


def _registers(slots: Slots, links: Sequence[tuple[Part, ...]], far: float) -> Float[np.ndarray, "registers width"]:
    """w and -w, then the anchors of each link and of its mirror image -phi(-s); in the order of the flags."""
    first = np.zeros((2, slots.width))
    first[:, slots.sign] = 1, -1
    first[:, slots.offset] = -OUT_OF_REACH
    rows = [first]
    for number, link in enumerate(links):
        for negative, sign in enumerate((1.0, -1.0)):
            block = np.zeros((max(len(part) for part in link), slots.width))
            block[:, slots.gates] = -far
            block[:, slots.gates.start + 2 * number + negative] = 0
            for k, part in enumerate(link):
                slopes, offsets, values = part.astype(np.float64)
                block[len(part) :, slots.offset[k]] = -OUT_OF_REACH
                block[: len(part), slots.slope[k]] = sign * slopes
                block[: len(part), slots.offset[k]] = offsets
                block[: len(part), slots.value[k]] = sign * values[:, 0]
            rows.append(block)
    registers = np.concatenate(rows)
    registers[:, [slots.register, slots.columns.no_example]] = 1
    return registers


def _embed(slots: Slots, registers: np.ndarray) -> Embed:
    c = slots.columns
    bias, state = np.zeros(slots.width), np.zeros((1, slots.width))
    bias[slots.one] = 1
    state[0, c.no_example] = 1
    return Embed(np.eye(slots.width, c.count), bias, registers=registers, states=state, features=slots.names())
