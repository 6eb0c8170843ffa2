"""What a learner is said to compute, read from its program: the path of exact gradient descent.

    w_0 = v_0 = 0,    w_(t+1) = S(w_t + momentum v_t - rate (mean_i a_i g(w_t . a_i, y_i) + decay w_t)),
    v_(t+1) = w_(t+1) - w_t,    S(w) = max(w - threshold, 0) + min(w + threshold, 0), entry by entry

Every step of the program is followed back from its output; a program of another shape is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.learners.sums import Sums, constant
from anchorhead.verify.programs.expressions import Expression
from anchorhead.verify.programs.program import Affine, Apply, Attend, Dot, Input, Program, Repeat

MAX_TIMES = 200_000
"""Steps of a descent that is followed one by one."""


@dataclass(frozen=True, eq=False)
class Descent:
    """features of an example, entries `size` of w (one more with an intercept, the last), steps, and the numbers above.

    decays, thresholds   of each entry of w; thresholds are those of a step, rate times the penalty
    link                 g in the variables s and y
    most                 the most examples that the program takes
    flags                of many learners: rows (x, v, a, b, flags) take part in w <- w - mean_i v_i g(w . x_i, a_i,
                         b_i, flags_i), and w begins where the prompt says; link is g in s, a, b and these names
    """

    features: int
    intercept: bool
    times: int
    rate: float
    momentum: float
    decays: tuple[Fraction, ...]
    thresholds: tuple[Fraction | None, ...]
    link: Expression
    most: int
    flags: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return self.features + self.intercept

    @property
    def shrinks(self) -> bool:
        return any(one is not None for one in self.thresholds)


def is_many(program: Program) -> bool:
    """Whether a program is one of many learners: its path carries w alone."""
    path = program.steps[program.outputs[0]]
    return isinstance(path, Repeat) and len(path.carried) == 1


def read_descent(program: Program) -> Descent:
    """The descent that a program describes, or NotVerified."""
    path = kind_of(program, program.outputs[0], Repeat)
    require(len(program.outputs) == 1 and path.collect, "a learner's program has one output, the path")
    require(1 <= path.times <= MAX_TIMES, f"{path.times:,} steps: up to {MAX_TIMES:,} are followed")
    body, many = path.body, is_many(program)
    inputs = [place for place, step in enumerate(body.steps) if isinstance(step, Input)]
    shapes = [(len(body.steps[place].features), body.steps[place].tokens) for place in inputs]
    if many:
        rows, start = (kind_of(program, place, Input) for place in (*path.given, *path.carried))
        d, most, size = len(start.features), MAX_TIMES, len(start.features)
        require(len(program.steps) == 3 and len(path.given) == 1, "many learners carry w, given rows")
        expected = [(size, 1), (len(rows.features), None)]
    else:
        d, size, most = _examples(program, path)
        expected = [(size, 1), (size, 1), (size, None), (1, None)]
    require(
        shapes == expected and len(body.outputs) == len(path.carried), "a step takes w, v, A and y and gives w and v"
    )
    w, *given = inputs
    v = None if many else given.pop(0)
    after = body.outputs[0]
    require(many or _combination(body, body.outputs[1], size) == {after: 1, w: -1}, "v is not the change of w")
    thresholds: tuple[Fraction | None, ...] = (None,) * size
    if isinstance(body.steps[after], Apply):
        shrunk = _of_scale(body, after, size)
        thresholds = tuple(_threshold(shrunk.functions[n], shrunk.arguments) for n in shrunk.which)
        after = shrunk.of[0]
    move = _combination(body, after, size, deep=True)
    momentum = move.pop(v, Fraction(0))  # type: ignore[call-overload]
    means = [place for place in move if isinstance(body.steps[place], Attend)]
    require(move.pop(w, None) == 1 and len(means) == 1 and 0 <= momentum < 1, "a step does not add a gradient to w")
    rate = -move.pop(means[0])
    decays: tuple[Fraction, ...] = (Fraction(0),) * size
    for place, factor in move.items():
        require(len(move) == 1 and factor == -rate, "gradient and decay do not have one rate")
        shrink = _of_scale(body, place, size)
        require(shrink.of[0] == w, "a decay is no function of w")
        decays = tuple(_decay(shrink.functions[n], shrink.arguments) for n in shrink.which)
    require(rate == Fraction(float(rate)) > 0 and Fraction(float(momentum)) == momentum, "a rate is no float above 0")
    numbers = path.times, float(rate), float(momentum), decays, thresholds
    values, link, flags = _gradient(body, means[0], w, size, given, many)
    require(many or values == given[0], "the gradient is no mean of examples")
    return Descent(d, size > d, *numbers, link, most, flags)


def _examples(program: Program, path: Repeat) -> tuple[int, int, int]:
    """Features of an example, entries of w, and the most examples; A and y are made of one input, w and v start at
    0."""
    fits = len(path.carried) == len(path.given) == 2 and program.token_axis
    require(fits, "a learner carries w and v, given A and y")
    examples, labels = (kind_of(program, place, Affine) for place in path.given)
    require(examples.of == labels.of and len(examples.of) == 1, "A and y are not made of one input")
    given = kind_of(program, examples.of[0], Input)
    d, size = len(given.features) - 1, examples.bias.shape[1]
    if given.tokens is not None or given.most is None or d < 1:
        raise NotVerified("examples are any number of tokens up to a most")
    sure = not any(radius is not None for one in (examples, labels) for radius in (one.radii[0], one.bias_radius))
    require(size in (d, d + 1) and sure, "A is no example")
    pick, ones = np.eye(size, d + 1), np.zeros((1, size))
    if size > d:
        pick[d], ones[0, d] = 0.0, 1.0
    pairs = [(examples.weights[0], pick), (examples.bias, ones)]
    pairs += [(labels.weights[0], np.eye(d + 1)[d:]), (labels.bias, np.zeros((1, 1)))]
    for place in path.carried:
        start = kind_of(program, place, Affine)
        require(not start.of and start.bias_radius is None, "w does not start from a constant")
        pairs.append((start.bias, np.zeros((1, size))))
    require(all(np.array_equal(*pair) for pair in pairs), "A, y, or where w and v start, is not that of a descent")
    further = not all(isinstance(step, Input | Affine | Repeat) for step in program.steps)
    require(not further, "a learner's program has further steps")
    return d, size, int(given.most)


def _gradient(
    body: Program, mean: int, w: int, size: int, given: Sequence[int], many: bool
) -> tuple[int, Expression, tuple[str, ...]]:
    """The values v_i and the link g of mean_i v_i g(w . x_i, ...), and the names of its flags."""
    asked = kind_of(body, mean, Attend)
    require((asked.queries, asked.keys, asked.mask) == (None, None, None), "the gradient is no plain mean")
    each = kind_of(body, asked.values, Apply)
    require(len(each.of) == 2 and len(each.functions) == 1, "the gradient is no mean of products")
    a, g = each.arguments
    product = (("variable", a, ()), ("variable", g, ()), ("mul", None, (0, 1)))
    require(expression_of(each.functions[0]).nodes == product, "the gradient is no mean of products a g")
    link = kind_of(body, each.of[1], Apply)
    score = kind_of(body, link.of[0], Dot)
    s, *names = link.arguments
    (x,) = {score.a, score.b} - {w} or {w}
    fits = list(link.which) == [0] and {score.a, score.b} == {x, w} and s == "s"
    if many:
        rows, columns = given[0], link.of[1:]
        fits = fits and len(columns) == len(body.steps[rows].features) - 2 * size > 2 and names[:2] == ["a", "b"]
        fits = fits and picked(body, x, rows, range(size)) and picked(body, each.of[0], rows, range(size, 2 * size))
        fits = fits and all(picked(body, place, rows, [2 * size + k]) for k, place in enumerate(columns))
    else:
        fits = fits and (x, link.of[1:], names) == (given[0], (given[1],), ["y"])
    require(fits, "a link is not a function of w . a and of what a row says")
    return each.of[0], expression_of(link.functions[0]), tuple(names[2:])


def _of_scale(body: Program, place: int, size: int) -> Apply:
    """A function of w and of a scale, a constant of ones."""
    step = kind_of(body, place, Apply)
    require(len(step.of) == 2 and len(step.which) == size, "a penalty is a function of w and of a scale")
    scale = kind_of(body, step.of[1], Affine)
    require(not scale.of and scale.bias_radius is None, "scales of columns are no constant")
    require(bool((scale.bias == 1).all()), "penalties that differ from entry to entry are not verified")
    return step


def _decay(function: object, arguments: tuple[str, ...]) -> Fraction:
    (w, c), sums = arguments, Sums()
    found = sums.line(sums.of(expression_of(function), {c: constant(1.0)}), w)
    if found is None or found[1] or not found[0] >= 0:
        raise NotVerified("the decay of an entry of w is no multiple of it")
    return found[0]


def _threshold(function: object, arguments: tuple[str, ...]) -> Fraction | None:
    """tau of max(w - tau, 0) + min(w + tau, 0); None where w stays as it is."""
    (w, c), sums = arguments, Sums()
    found = sums.of(expression_of(function), {c: constant(1.0)})
    if found == sums.variable(w):
        return None
    parts = sorted(sums.key({atom: factor}) for atom, factor in found.items())
    shape = [(part[0], part[3:]) for part in parts if part]
    require(shape == [("max", ((),)), ("min", ((),))], "a threshold is not max(w - t, 0) + min(w + t, 0)")
    ends = [sums.line(dict(part[2]), w) for part in parts]
    tau = ends[1][1] if ends[1] is not None else Fraction(0)
    require(ends == [(1, -tau), (1, tau)] and tau > 0, "a threshold is not above 0, or not symmetric")
    return tau


def _combination(body: Program, place: int, size: int, deep: bool = False) -> dict[int, Fraction]:
    """An affine step as {place: factor}, a sum of multiples of quantities; deep: of those that are no such sums."""
    step = kind_of(body, place, Affine)
    require(not step.bias.any() and step.bias_radius is None and step.bias.shape[1] == size, "a step adds a constant")
    found: dict[int, Fraction] = {}
    for of, weight, radius in zip(step.of, step.weights, step.radii, strict=True):
        factor = float(weight.flat[0])
        require(radius is None and np.array_equal(weight, factor * np.eye(size)), "a step is no sum of multiples")
        inner = deep and isinstance(body.steps[of], Affine)
        for one, by in _combination(body, of, size, deep).items() if inner else ((of, Fraction(1)),):
            require(one not in found, "a step is no sum of multiples of different quantities")
            found[one] = Fraction(factor) * by
    return {one: factor for one, factor in found.items() if factor or not deep}


def expression_of(function: object) -> Expression:
    if not isinstance(function, Expression):
        raise NotVerified("a learner of a function that the file does not hold")
    return function


def kind_of(program: Program, place: int, kind: type) -> Any:
    step = program.steps[place]
    if not isinstance(step, kind):
        raise NotVerified(f"step {place} of a learner's program is a {type(step).__name__}, not {kind.__name__}")
    return step


def picked(program: Program, place: int, of: int, columns: Sequence[int]) -> bool:
    """Whether a quantity is these columns of another."""
    step = kind_of(program, place, Affine)
    fits = step.of == (of,) and step.radii[0] is None and step.bias_radius is None and not step.bias.any()
    weight = step.weights[0] if fits else np.zeros((0, 0))
    fits = weight.ndim == 2 and weight.shape[1] > max(columns)
    return fits and bool(np.array_equal(weight, np.eye(weight.shape[1])[list(columns)]))
