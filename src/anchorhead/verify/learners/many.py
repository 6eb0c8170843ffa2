"""Many learners: a network whose prompt says which loss, rate, penalty and start; certificates are for one prompt.

A row (x, v, a, b, a flag for each link and sign, start, no example) takes part in w <- w - mean_i v_i (phi_i(w . x_i -
a_i) - b_i); its negative has the other flag of its link. One row more, which is no example, carries the start as v.
The network is, weight by weight,

    start     registers 0 and 1 ask for the row of the start, and its negative, out of reach of all others: w and -w
    score     a row sees these two: Score with twice the sharpness, of (w+ - w-)/2; the skip takes off a
    link      a row sees registers; anchors of other flags are lowered by `far`, and the skip takes off b
    collect   register 0 asks rows that are examples for the signed average of links, with values v; register 1 with the
              other sign. What is no example is out of reach
    last      the state sees register 0 alone, and copies w

so all that other tokens write is never read. Registers add the same number to w and take it from -w, up to rounding: w+
= (w+ - w-)/2 + (w+ + w-)/2, of which the first follows the descent, and the second stays 0 but for rounding (Apart).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from anchorhead.verify.errors import require
from anchorhead.verify.grammar import Attention, Network
from anchorhead.verify.grammar import Repeat as Repeated
from anchorhead.verify.learners.average import Average
from anchorhead.verify.learners.heads import Heads, mirrored
from anchorhead.verify.learners.link import Link
from anchorhead.verify.learners.prompt import Rows, bound_for_prompt
from anchorhead.verify.learners.score import Score
from anchorhead.verify.learners.step import Step
from anchorhead.verify.learners.sums import Sums, constant, plus, put
from anchorhead.verify.learners.target import MAX_TIMES, Descent, combination, expression_of, kind_of, picked
from anchorhead.verify.learners.tokens import require_finite
from anchorhead.verify.learners.update import Update
from anchorhead.verify.programs.expressions import Expression
from anchorhead.verify.programs.program import Apply, Attend, Dot, Input, Program, Repeat
from anchorhead.verify.rounding import Arithmetic, arithmetic_of, power_of_two
from anchorhead.verify.scalar import Part, silent

FAR = 2.0**20
"""What is out of reach is lowered by this."""


@dataclass(frozen=True, eq=False)
class Many:
    """The program: entries of w, steps, and the links."""

    size: int
    times: int
    links: tuple[Link, ...]


def is_many(program: Program) -> bool:
    path = program.steps[program.outputs[0]]
    return isinstance(path, Repeat) and len(path.carried) == 1


def read_many(program: Program) -> Many:
    """The descent that rows spell out: every step of the program is followed back from its output."""
    path = kind_of(program, program.outputs[0], Repeat)
    rows, start = (kind_of(program, place, Input) for place in (*path.given, *path.carried))
    outer = len(program.steps) == 3 and len(program.outputs) == len(path.given) == 1 and path.collect
    require(outer and 1 <= path.times <= MAX_TIMES, "many learners carry w, given rows")
    body, size = path.body, len(start.features)
    losses = len(rows.features) - 2 * size - 2
    w, given = (place for place, step in enumerate(body.steps) if isinstance(step, Input))
    ((mean, by),) = [(place, by) for place, by in combination(body, body.outputs[0], size).items() if place != w]
    whole = combination(body, body.outputs[0], size) == {w: 1.0, mean: -1.0} and by == -1.0 and len(body.outputs) == 1
    asked = kind_of(body, mean, Attend)
    each = kind_of(body, asked.values, Apply)
    plain = (asked.queries, asked.keys, asked.mask) == (None, None, None) and len(each.functions) == 1
    (v, link_place), product = each.of, put(expression_of(each.functions[0]), {})
    names = [node[1] for node in product.nodes[:2]]
    plain = plain and product.nodes[-1] == ("mul", None, (0, 1)) and names == list(each.arguments)
    link = kind_of(body, link_place, Apply)
    scores, *columns = link.of
    dot = kind_of(body, scores, Dot)
    fits = len(columns) == losses + 2 and dot.b == w and list(link.which) == [0]
    fits = fits and picked(body, dot.a, given, range(size)) and picked(body, v, given, range(size, 2 * size))
    fits = fits and all(picked(body, place, given, [2 * size + k]) for k, place in enumerate(columns))
    require(whole and plain and fits, "the program is none of many learners")
    s, a, b, *flags = link.arguments
    g = expression_of(link.functions[0])
    return Many(size, int(path.times), tuple(_link(g, s, a, b, flags, flag) for flag in flags))


def _link(g: Expression, s: str, a: str, b: str, flags: list[str], flag: str) -> Link:
    """phi of the rows with a flag: g(x + a, a, b) + b does not depend on a and b."""
    sums = Sums()
    x, chosen = sums.variable("x"), {one: float(one == flag) for one in flags}
    at = {one: constant(number) for one, number in chosen.items()}
    found = plus(sums.of(g, {s: plus(x, sums.variable(a)), **at}), sums.variable(b))
    require(not sums.depends(found, a) and not sums.depends(found, b), "a link is not phi(s - a) - b")
    numbers = {one: ("number", number, ()) for one, number in {**chosen, a: 0.0, b: 0.0}.items()}
    line = sums.line(found, "x")
    return Link("residual", put(g, {s: ("variable", "x", ()), **numbers}), line if line and line[0] > 0 else None)


def bound_for_many(network: Network, program: Program, prompt: np.ndarray, bound: float) -> float:
    """What follows for one prompt, (2 (rows + 1), columns)."""
    target, model = read_many(program), arithmetic_of(network.dtype)
    rows = _read_rows(np.asarray(prompt, np.float64), target)
    require(bool((prompt.astype(network.dtype) == prompt).all()), f"the prompt is not in {network.dtype}")
    reader = _Reader(network, target)
    step = reader.step(float(np.abs(rows.a).max()), model)
    size = target.size
    none: tuple[Fraction, ...] = (Fraction(0),) * size
    descent = Descent(size, False, target.times, 1.0, 0.0, none, (None,) * size, target.links[0].phi, len(prompt))
    groups = (reader.layers[:1], 1), (reader.layers[1:4], target.times), (reader.layers[4:], 1)
    require_finite(network.embed, groups, np.abs(prompt).max(axis=0), len(prompt) + len(reader.registers) + 1, model)
    return bound_for_prompt(step, descent, target.links, rows, bound, model)


def _read_rows(prompt: np.ndarray, target: Many) -> Rows:
    size, losses = target.size, len(target.links)
    first, half = 2 * size + 2, len(prompt) // 2
    fits = prompt.ndim == 2 and prompt.shape == (2 * half, first + 2 * losses + 2) and half > 1
    require(fits and bool(np.isfinite(prompt).all()), "the prompt does not fit the program")
    up, down = prompt[:half], prompt[half:]
    flags, start, other = up[:, first : first + 2 * losses], up[:, -2], up[:, -1]
    which = flags.argmax(axis=1)
    example = other == 0
    own = np.eye(2 * losses)[which] * example[:, None]
    good = (up[:, :first] == -down[:, :first]).all() and (start == -down[:, -2]).all() and (other == down[:, -1]).all()
    good = good and (flags == own).all() and (which % 2 == 0).all() and (start == other).all() and start.sum() == 1
    good = good and (down[:, first : first + 2 * losses] == np.roll(own, 1, axis=1)).all() and set(other) <= {0.0, 1.0}
    require(bool(good), "the prompt is none of many learners")
    x, v, (a, b) = up[example, :size], up[example, size : 2 * size], up[example, 2 * size : first].T
    begin = up[~example][0]
    require(not begin[:size].any() and not begin[2 * size : first].any(), "the row of the start is more than a start")
    return Rows(x, v, a, b, b, which[example] // 2, begin[size : 2 * size])


class _Reader:
    """The stored weights, compared with those of the construction; features of a token in their order."""

    def __init__(self, network: Network, target: Many) -> None:
        require(network.output == "state" and len(network.layers) == 3, "many learners are start, Repeat and last")
        start, repeat, last = network.layers
        require(
            isinstance(repeat, Repeated) and len(repeat.layers) == 3, "many learners repeat score, link and collect"
        )
        require(repeat.times == target.times, f"it takes {repeat.times} steps, not {target.times}")
        self.layers: list[Attention] = [start, *repeat.layers, last]
        plain = all(isinstance(one, Attention) and one.bias is None and one.mask is None for one in self.layers)
        require(plain, "a layer of many learners with a bias or a mask")
        self.size, self.losses, self.registers = target.size, len(target.links), network.embed.registers
        count, self.parts = 2 * self.size + 4 + 2 * self.losses, self.layers[2].heads
        self.flags = np.arange(2 * self.size + 2, count - 2)
        self.one, self.score, self.link, self.sign, self.register = range(count, count + 5)
        self.w = np.arange(count + 5, count + 5 + self.size)
        self.gates = self.w[-1] + 1 + np.arange(2 * self.losses)
        self.anchor = self.gates[-1] + 1 + np.arange(3 * self.parts).reshape(self.parts, 3)
        self.pick = np.eye(int(self.anchor[-1, -1]) + 1)
        self._embed(network, count)

    def _embed(self, network: Network, count: int) -> None:
        embed, pick = network.embed, self.pick
        registers = self.registers.copy()
        registers[2:, [*self.gates, *self.anchor.ravel()]] = 0.0
        expected = np.zeros((len(registers), len(pick)))
        expected[:, [self.register, count - 1]] = 1.0
        expected[:2, self.sign] = 1.0, -1.0
        expected[:2, self.anchor[:, 1]] = -FAR
        pairs = (
            (embed.weight, np.eye(len(pick), count)[None]), (embed.bias, pick[[self.one]]),
            (embed.states, pick[[count - 1]]), (registers, expected),
        )  # fmt: skip
        self._same(pairs, "its Embed")
        require(embed.tokens is None and embed.source is None, "many learners take any number of rows")

    def _same(self, pairs: Any, what: str) -> None:
        same = all(found.shape == expected.shape and (found == expected).all() for found, expected in pairs)
        require(same, f"{what} is not that of many learners")

    def _layer(
        self, number: int, query: Any, key: Any, value: Any, outputs: Any, skip: np.ndarray | None, grid: Any
    ) -> None:
        layer = self.layers[number]
        pairs = [(layer.query, query), (layer.key, key), (layer.value, value), (layer.output, outputs)]
        if skip is not None and layer.skip is not None:
            require(layer.skip.bias is None, "a skip with a bias")
            pairs.append((layer.skip.on_features(), skip))
        require(
            (layer.skip is None) == (skip is None) and layer.grid == grid, f"layer {number} has another skip or grid"
        )
        self._same(pairs, f"layer {number}")

    def step(self, off: float, model: Arithmetic) -> Step:
        """The step, where at most `off` is taken off scores."""
        pick, size, flags, w = self.pick, self.size, self.flags, self.w
        x, v, (a, b) = pick[:size], pick[size : 2 * size], pick[2 * size : 2 * size + 2]
        start, other = pick[flags[-1] + 1 : flags[-1] + 3]
        into, nothing = pick[:, w], pick.copy()
        self._layer(0, FAR * pick[None, None, self.sign], start[None, None], v[None], into[None], nothing, None)
        score, _, collect = self.layers[1:4]
        sharpness, outputs = score.query[:, 0, 0], score.output[:, self.score, 0]
        query = sharpness[:, None, None] * x
        written = outputs[:, None, None] * pick[:, [self.score]]
        self._layer(1, query, pick[None, w], pick[None, None, self.sign], written, self._less(self.score, a), (2,))
        query = np.concatenate([pick[[self.score, self.one]], pick[flags]])
        keys = np.stack([np.concatenate([pick[one[:2]], pick[self.gates]]) for one in self.anchor])
        reads, writes = np.stack([pick[[one[2]]] for one in self.anchor]), np.stack([pick[:, [self.link]]] * self.parts)
        every = (len(self.registers),)
        self._layer(2, np.stack([query] * self.parts), keys, reads, writes, self._less(self.link, b), every)
        h, o = collect.query[:, 0, self.sign], collect.output[:, w[0], 0]
        query = np.stack([np.stack([one * pick[self.sign], pick[self.register]]) for one in h])
        key = np.stack([pick[self.link], -FAR * other])[None]
        self._layer(3, query, key, v[None], o[:, None, None] * into, nothing, None)
        one = pick[None, None, self.register]
        self._layer(4, one, one, pick[None, w], np.eye(size)[None], None, (1,))
        sharp = np.concatenate([sharpness, h])
        require(bool((sharp > 0).all() and power_of_two(sharp).all()), "a sharpness is no power of two")
        loudest = self.parts * float(np.abs(self.registers[:, self.anchor[:, 2]]).max())
        require(float(h.max()) * loudest <= FAR / 4, "links of what is no example come within reach")
        taken = Score(tuple(2 * sharpness), tuple(outputs), size, True)
        heads = tuple(self._heads(k, taken.most + off, model) for k in range(self.losses))
        update = Update(1.0, 0.0, 0.0, 0.0, 0.0, 0.0, (1, 0, len(o) + 1))
        return Step(Average(tuple(h), tuple(o), 1), update, None, taken, heads, "pair")

    def _less(self, slot: int, taken: np.ndarray) -> np.ndarray:
        """The skip that hands all on but one feature, which becomes minus another."""
        kept = self.pick.copy()
        kept[slot] = -taken
        return kept

    def _heads(self, k: int, most: float, model: Arithmetic) -> Heads:
        """The anchors of a link, which serve its flag alone; those of its negative are their mirror image."""
        anchors, gates = self.registers[2:], self.registers[2:, self.gates]
        require(
            bool(((gates == 0).sum(axis=1) == 1).all() and (gates <= 0).all()), "anchors do not serve one flag each"
        )
        sides = []
        for flag in (2 * k, 2 * k + 1):
            mine = anchors[gates[:, flag] == 0]
            side = []
            for slope, offset, value in self.anchor:
                if not mine[:, value].any():
                    continue
                slopes, offsets, values = (np.append(mine[:, one], 0.0) for one in (slope, offset, value))
                offsets[-1] = -FAR  # registers 0 and 1, which have no anchor
                none, sizes = np.zeros_like(slopes), np.abs(offsets)
                part = Part(slopes, offsets, values, sizes, sizes, (sizes != 0) + 0.0, none, none, none, model)
                side.append(part.only(np.flatnonzero(~silent(part, [(-most, most)], model))))
            sides.append(side)
        up, down = ([mirrored(one, by) for one in side] for by, side in zip((1.0, -1.0), sides, strict=True))
        require(up == down and bool(up), "a link for negative rows is not the mirror image of that for others")
        steepest = float(np.abs(anchors[:, self.anchor[:, 0]]).max())
        highest = float(np.abs(anchors[:, self.anchor[:, 1]]).max())
        others = gates[gates != 0]
        far = float("inf") if not len(others) else -float(others.max()) - 2 * (steepest * most + highest)
        return Heads(tuple(sides[0]), taken=True, far=far)
