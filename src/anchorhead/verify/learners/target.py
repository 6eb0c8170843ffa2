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

    @property
    def size(self) -> int:
        return self.features + self.intercept

    @property
    def shrinks(self) -> bool:
        return any(one is not None for one in self.thresholds)


def read_descent(program: Program) -> Descent:
    """The descent that a program describes, or NotVerified."""
    steps = program.steps
    require(len(program.outputs) == 1 and program.token_axis, "a learner's program has one output, the path")
    path = kind_of(program, program.outputs[0], Repeat)
    require(
        len(path.carried) == 2 and len(path.given) == 2 and path.collect, "a learner carries w and v, given A and y"
    )
    require(1 <= path.times <= MAX_TIMES, f"{path.times:,} steps: up to {MAX_TIMES:,} are followed")
    examples, labels = (kind_of(program, place, Affine) for place in path.given)
    require(examples.of == labels.of and len(examples.of) == 1, "A and y are not made of one input")
    given = kind_of(program, examples.of[0], Input)
    d, size = len(given.features) - 1, examples.bias.shape[1]
    if given.tokens is not None or given.most is None or d < 1:
        raise NotVerified("examples are any number of tokens up to a most")
    require(size in (d, d + 1) and not any(one.radii[0] is not None for one in (examples, labels)), "A is no example")
    pick, ones = np.eye(size, d + 1), np.zeros((1, size))
    if size > d:
        pick[d], ones[0, d] = 0.0, 1.0
    _equal(examples.weights[0], pick, "A")
    _equal(examples.bias, ones, "A")
    _equal(labels.weights[0], np.eye(d + 1)[d:], "y")
    _equal(labels.bias, np.zeros((1, 1)), "y")
    for place in path.carried:
        start = kind_of(program, place, Affine)
        require(not start.of and start.bias_radius is None, "w does not start from a constant")
        _equal(start.bias, np.zeros((1, size)), "the start of w and v")
    require(all(isinstance(step, Input | Affine | Repeat) for step in steps), "a learner's program has further steps")
    return _body(path.body, d, size, path.times, int(given.most))


def _body(body: Program, d: int, size: int, times: int, most: int) -> Descent:
    inputs = [place for place, step in enumerate(body.steps) if isinstance(step, Input)]
    require(len(inputs) == 4 and len(body.outputs) == 2, "a step takes w, v, A and y and gives w and v")
    w, v, examples, y = inputs
    shapes = [(len(body.steps[place].features), body.steps[place].tokens) for place in inputs]
    require(shapes == [(size, 1), (size, 1), (size, None), (1, None)], "a step takes w, v, A and y")
    after, change = body.outputs
    require(combination(body, change, size) == {after: 1.0, w: -1.0}, "v is not the change of w")
    thresholds: tuple[Fraction | None, ...] = (None,) * size
    if isinstance(body.steps[after], Apply):
        shrunk = body.steps[after]
        scale = _ones(body, shrunk, size)
        thresholds = tuple(_threshold(shrunk.functions[n], shrunk.arguments) for n in shrunk.which)
        after = shrunk.of[0]
        require(scale is not None, "a threshold is a function of w and a constant")
    move = combination(body, after, size)
    require(len(move) == 2 and move.pop(w, None) == 1.0, "a step does not add to w")
    ((moved, factor),) = move.items()
    parts = combination(body, moved, size)
    momentum = parts.pop(v, 0.0)
    require(factor == 1.0 and len(parts) == 2 and 0 <= momentum < 1, "a step is not momentum, gradient and decay")
    rates = {-one for one in parts.values()}
    rate = rates.pop()
    require(not rates and rate > 0, "gradient and decay do not have one rate")
    means = [place for place in parts if isinstance(body.steps[place], Attend)]
    require(len(means) == 1, "a step has no gradient")
    (decayed,) = set(parts) - set(means)
    link = _gradient(body, means[0], w, examples, y)
    shrink = kind_of(body, decayed, Apply)
    require(shrink.of[0] == w and _ones(body, shrink, size) is not None, "a decay is a function of w and a constant")
    decays = tuple(_decay(shrink.functions[n], shrink.arguments) for n in shrink.which)
    return Descent(d, size > d, times, rate, momentum, decays, thresholds, link, most)


def _gradient(body: Program, mean: int, w: int, examples: int, y: int) -> Expression:
    """The link g of mean_i a_i g(w . a_i, y_i)."""
    asked = kind_of(body, mean, Attend)
    require((asked.queries, asked.keys, asked.mask) == (None, None, None), "the gradient is no plain mean")
    each = kind_of(body, asked.values, Apply)
    require(len(each.of) == 2 and each.of[0] == examples and len(each.functions) == 1, "the gradient is no mean of a g")
    factors = expression_of(each.functions[0])
    a, g = each.arguments
    product = (("variable", a, ()), ("variable", g, ()), ("mul", None, (0, 1)))
    require(factors.nodes == product, "the gradient is no mean of products a g")
    link = kind_of(body, each.of[1], Apply)
    require(len(link.of) == 2 and link.of[1] == y and list(link.which) == [0], "a link is a function of s and y")
    score = kind_of(body, link.of[0], Dot)
    require({score.a, score.b} == {examples, w} and link.arguments == ("s", "y"), "s is not w . a")
    return expression_of(link.functions[0])


def _ones(body: Program, step: Apply, size: int) -> int | None:
    """The place of the second argument, a constant of ones."""
    require(len(step.of) == 2 and len(step.which) == size, "a penalty is a function of w and of a scale")
    scale = kind_of(body, step.of[1], Affine)
    require(not scale.of and scale.bias_radius is None, "scales of columns are no constant")
    require(bool((scale.bias == 1).all()), "penalties that differ from entry to entry are not verified")
    return step.of[1]


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


def combination(body: Program, place: int, size: int) -> dict[int, float]:
    """An affine step as {place: factor}, a sum of multiples of quantities."""
    step = kind_of(body, place, Affine)
    require(not step.bias.any() and step.bias_radius is None and step.bias.shape[1] == size, "a step adds a constant")
    found: dict[int, float] = {}
    for of, weight, radius in zip(step.of, step.weights, step.radii, strict=True):
        factor = float(weight.flat[0])
        require(radius is None and of not in found, "a step is no sum of multiples")
        _equal(weight, factor * np.eye(size), "a map of a step")
        found[of] = factor
    return found


def expression_of(function: object) -> Expression:
    if not isinstance(function, Expression):
        raise NotVerified("a learner of a function that the file does not hold")
    return function


def kind_of(program: Program, place: int, kind: type) -> Any:
    step = program.steps[place]
    if not isinstance(step, kind):
        raise NotVerified(f"step {place} of a learner's program is a {type(step).__name__}, not {kind.__name__}")
    return step


def _equal(found: np.ndarray, expected: np.ndarray, what: str) -> None:
    require(found.shape == expected.shape and bool((found == expected).all()), f"{what} is not that of a descent")


def picked(program: Program, place: int, of: int, columns: Sequence[int]) -> bool:
    """Whether a quantity is these columns of another."""
    step = kind_of(program, place, Affine)
    fits = step.of == (of,) and step.radii[0] is None and step.bias_radius is None and not step.bias.any()
    weight = step.weights[0] if fits else np.zeros((0, 0))
    fits = weight.ndim == 2 and weight.shape[1] > max(columns)
    return fits and bool(np.array_equal(weight, np.eye(weight.shape[1])[list(columns)]))
