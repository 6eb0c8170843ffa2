"""What a learner is said to compute: the path of exact gradient descent.

    w_0 = v_0 = 0,    w_(t+1) = S(w_t + momentum v_t - rate (mean_i a_i g(w_t . a_i, y_i) + decay w_t)),
    v_(t+1) = w_(t+1) - w_t,    S(w) = max(w - threshold, 0) + min(w + threshold, 0), entry by entry

The numbers in it are read where they stand in a program; the program that says this is then written down, and that of
the file must be the same, step by step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.learners.same import Tree, expression, same, tree
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


def is_many(program: Program) -> bool:
    """Whether a program is one of many learners: its path carries w alone."""
    path = program.steps[program.outputs[0]]
    return isinstance(path, Repeat) and len(path.carried) == 1


def read_descent(program: Program) -> Descent:
    """The descent that a program describes, or NotVerified."""
    path = _step(program, -1, Repeat)
    require(1 <= path.times <= MAX_TIMES, f"{path.times:,} steps: up to {MAX_TIMES:,} are followed")
    found, steps, body = _many(program, path) if is_many(program) else _single(program, path)
    require(found.rate > 0 and 0 <= found.momentum < 1, "a rate is not above 0, or a momentum not from 0 to below 1")
    wide = all(one is None or one > 0 for one in found.thresholds) and min(found.decays) >= 0
    require(wide, "a decay below 0, or a threshold that is not above")
    last = len(body) - 1
    outputs, carried, given = ((last,), (1,), (0,)) if found.flags else ((last - 1, last), (3, 3), (1, 2))
    good = same(program.steps[:-1], steps) and same(path.body.steps, body) and path.body.outputs == outputs
    good = good and (path.carried, path.given, path.collect) == (carried, given, True)
    good = good and program.outputs == (len(steps),) and (program.token_axis or bool(found.flags))
    require(good, "the program is not that of a learner")
    return found


Written = tuple[Descent, tuple[Any, ...], tuple[Any, ...]]
"""What is read, the steps before the path, and those of its body, which end with what is put out."""
W, C = ("variable", "w"), ("variable", "c")
"""In functions of an entry of w and of the scale of its column, which is 1."""


def _single(program: Program, path: Repeat) -> Written:
    """Of examples (x, y), which are A and y; w and v begin with 0."""
    body, given = path.body, _step(program, 0, Input)
    d, size = len(given.features) - 1, _step(program, 1, Affine).bias.shape[1]
    if given.most is None or d < 1 or size not in (d, d + 1):
        raise NotVerified("examples are any number of tokens up to a most")
    pick, ones = np.eye(size, d + 1), np.zeros((1, size))
    if size > d:
        pick[d], ones[0, d] = 0.0, 1.0
    shown = Input((*(f"x{j}" for j in range(d)), "y"), None, given.most, given.low, given.high)
    steps = shown, _affine({0: pick}, ones), _affine({0: np.eye(d + 1)[d:]}), _affine({}, np.zeros((1, size)))
    momentum, rate = (_number(_step(body, 10, Affine).weights, k, 0, 0) for k in (0, 1))
    link, shrinks = _step(body, 5, Apply).functions[0], isinstance(body.steps[-2], Apply)
    decay = _number(_function(body, 9), 3, 2, 1)
    pulled = ("mul", None, W, ("mul", None, ("number", decay), ("integer_power", 2, C)))
    threshold = _number(_function(body, 12), 2, 2, 3, 2, 3, 1) if shrinks else 0.0
    by, nothing = ("mul", None, ("number", -rate), ("number", threshold), C), ("number", 0.0)
    up, down = ("add", None, W, ("neg", None, by)), ("add", None, W, by)
    soft = ("add", None, ("max", None, up, nothing), ("min", None, down, nothing))
    eye, which = np.eye(size), np.arange(size) // d  # an intercept, the last entry, is neither pulled nor shrunk
    shrunk = [_apply((soft, W), which, (11, 8), ("w", "c")), _affine({12: eye, 0: -eye})]
    written = (
        *(_input(name, size, tokens) for name, tokens in (("w", 1), ("v", 1), ("a", None))),
        Input(("y",), None, None, None, None),
        Dot(2, 0),
        Apply((link,), np.zeros(1, int), (4, 3), ("s", "y")),
        _apply((("mul", None, ("variable", "a"), ("variable", "g")),), 0 * which, (2, 5), ("a", "g")),
        Attend(6, None, None, None),
        _affine({}, np.ones((1, size))),
        _apply((pulled, ("mul", None, nothing, W)), which, (0, 8), ("w", "c")),
        _affine({1: momentum * eye, 7: rate * eye, 9: rate * eye}),
        _affine({0: eye, 10: eye}),
        *(shrunk if shrinks else [_affine({11: eye, 0: -eye})]),
    )
    decays = tuple(Fraction(decay) * (k == 0) for k in which.tolist())
    tau = Fraction(-rate) * Fraction(threshold)
    thresholds = tuple(tau if shrinks and k == 0 else None for k in which.tolist())
    found = Descent(d, size > d, path.times, -rate, momentum, decays, thresholds, _own(link), int(given.most))
    return found, steps, written


def _many(program: Program, path: Repeat) -> Written:
    """Of rows (x, v, a, b, flags), and where w begins."""
    size, count = (len(_step(program, place, Input).features) for place in (1, 0))
    losses = count - 2 * size - 2
    require(size > 0 and losses > 0, "a row is x, v, a, b and a flag for each link")
    flags = tuple(f"loss{k}" for k in range(losses))
    names = (*(f"{letter}{j}" for letter in "xv" for j in range(size)), "a", "b", *flags)
    rows, eye, last = Input(names, None, None, None, None), np.eye(count), 6 + losses
    columns = [eye[:size], eye[size : 2 * size], *(eye[[k]] for k in range(2 * size, count))]
    link = _step(path.body, last + 1, Apply).functions[0]
    written = (
        _input("w", size, 1),
        rows,
        *(_affine({1: one}) for one in columns),
        Dot(2, 0),
        Apply((link,), np.zeros(1, int), (last, *range(4, last)), ("s", "a", "b", *flags)),
        _apply((("mul", None, ("variable", "v"), ("variable", "g")),), np.zeros(size, int), (3, last + 1), ("v", "g")),
        Attend(last + 2, None, None, None),
        _affine({0: np.eye(size), last + 3: -np.eye(size)}),
    )
    none = (Fraction(0),) * size, (None,) * size
    found = Descent(size, False, path.times, 1.0, 0.0, *none, _own(link), MAX_TIMES, flags)
    return found, (rows, _input("w", size, 1)), written


def _input(name: str, size: int, tokens: int | None) -> Input:
    return Input(tuple(f"{name}{j}" for j in range(size)), tokens, None, None, None)


def _affine(of: Mapping[int, np.ndarray], bias: np.ndarray | None = None) -> Affine:
    weights = tuple(of.values())
    bias = np.zeros((1, len(weights[0]))) if bias is None else bias
    return Affine(tuple(of), weights, (None,) * len(weights), bias, None)


def _apply(functions: tuple[Tree, ...], which: np.ndarray, of: tuple[int, ...], arguments: tuple[str, ...]) -> Apply:
    """Functions, of which all that are used are named."""
    return Apply(tuple(map(expression, functions[: 1 + int(which[-1])])), which, of, arguments)


def _step(program: Program, place: int, kind: type) -> Any:
    if not -len(program.steps) <= place < len(program.steps) or not isinstance(program.steps[place], kind):
        raise NotVerified(f"step {place} of a learner's program is no {kind.__name__}")
    return program.steps[place]


def _function(body: Program, place: int) -> Tree:
    return tree(_own(_step(body, place, Apply).functions[0]))


def _own(function: object) -> Expression:
    if not isinstance(function, Expression):
        raise NotVerified("a learner of a function that the file does not hold")
    return function


def _number(found: Any, *path: int) -> float:
    """A number of a tree, or of arrays; that it stands there is seen when all is compared."""
    try:
        for place in path:
            found = found[place]
    except (IndexError, TypeError):
        found = None
    if not isinstance(found, float) or not np.isfinite(found):
        raise NotVerified("the program is not that of a learner")
    return float(found)
