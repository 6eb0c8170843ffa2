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

import numpy as np

from anchorhead.verify.errors import require
from anchorhead.verify.grammar import Network
from anchorhead.verify.learners.layers import read_step
from anchorhead.verify.learners.link import Link
from anchorhead.verify.learners.prompt import Rows, bound_for_prompt
from anchorhead.verify.learners.sums import Sums, constant, plus, put
from anchorhead.verify.learners.target import MAX_TIMES, Descent, combination, expression_of, kind_of, picked
from anchorhead.verify.learners.tokens import Rows as Shown
from anchorhead.verify.learners.tokens import require_finite
from anchorhead.verify.programs.expressions import Expression
from anchorhead.verify.programs.program import Apply, Attend, Dot, Input, Program, Repeat
from anchorhead.verify.rounding import arithmetic_of


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
    size = target.size
    none: tuple[Fraction, ...] = (Fraction(0),) * size
    descent = Descent(size, False, target.times, 1.0, 0.0, none, (None,) * size, target.links[0].phi, len(prompt))
    require_finite(network, np.abs(prompt).max(axis=0), len(prompt), model)
    step = read_step(network, descent, target.links, _kinds(target, float(np.abs(rows.a).max())), bound, model)
    return bound_for_prompt(step, descent, target.links, rows, bound, model)


def _kinds(target: Many, off: float) -> Shown:
    """Rows of each flag, and the start with its negative."""
    size, flags = target.size, 2 * len(target.links)
    first, x = 2 * size + 2, tuple(range(size))
    last = {first + flags: 0.0, first + flags + 1: 0.0}
    kinds = tuple({**{first + k: float(k == flag) for k in range(flags)}, **last} for flag in range(flags))
    nothing = dict.fromkeys((*x, 2 * size, 2 * size + 1, *range(first, first + flags)), 0.0)
    start = tuple({**nothing, first + flags: sign, first + flags + 1: 1.0} for sign in (1.0, -1.0))
    columns = first + flags + 2
    return Shown(columns, x, tuple(range(size, 2 * size)), first - 1, kinds, False, (first - 2, first - 1), off, start)


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
