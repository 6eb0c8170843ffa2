"""Programs of learners: the paths of exact gradient descent that networks take in context."""

from __future__ import annotations

from typing import Any

import numpy as np

from anchorhead.language.expressions.build import add, mul, sub, variable
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.parser import parse
from anchorhead.language.of_targets import program_of
from anchorhead.language.program import Program, Writer
from anchorhead.language.steps import Attend, Dot, Input, Repeat
from anchorhead.language.targets.descent import Descent
from anchorhead.language.targets.losses import Loss
from anchorhead.language.targets.many_learners import ManyLearners


@program_of.register
def _descent(target: Descent, on: Any = None) -> Program:
    """Examples (x_i, y_i), any number of them up to the most that are served; what is put out is the path of w."""
    writer = Writer()
    d, size = target.features, target.weights
    low, high = (None, None) if on is None else on
    names = (*(f"x{j}" for j in range(d)), "y")
    given = writer.input(names, low, high, tokens=None, most=target.examples)
    pick = np.eye(size, d + 1)
    pick[d:] = 0.0
    examples = writer.affine({given: pick}, np.eye(size)[-1] * target.intercept, "A")
    y = writer.affine({given: np.eye(d + 1)[d:]}, [0.0], "y")
    start = writer.constant(np.zeros((1, size)), "w0")
    body = _descent_step(target)
    return writer.program(writer.add(Repeat(body, (start, start), target.steps, (examples, y), collect=True), "path"))


def _descent_step(target: Descent) -> Program:
    """w, v, A, y to the next w and v."""
    writer = Writer()
    size = target.weights
    names = [f"w{j}" for j in range(size)]
    w = writer.add(_state(names), "w")
    v = writer.add(_state([f"v{j}" for j in range(size)]), "v")
    examples = writer.add(_state([f"a{j}" for j in range(size)], any_number=True), "A")
    y = writer.add(_state(["y"], any_number=True), "y")
    s = writer.add(Dot(examples, w), "s")
    link = writer.apply(_link(target.loss), (s, y), ("s", "y"), 1, "link")
    each = writer.apply(parse("a*g", ("a", "g")), (examples, link), ("a", "g"), size)
    gradient = writer.add(Attend(each), "gradient")
    scale = writer.constant([[*(target.scales or [1.0] * target.features), *([1.0] * target.intercept)]], "scales")
    decayed = writer.apply(
        [parse(f"w*({target.decay!r}*c**2)" if on else "0*w", ("w", "c")) for on in target.penalised],
        (w, scale), ("w", "c"), size,
    )  # fmt: skip
    rate, momentum = np.eye(size) * -target.rate, np.eye(size) * target.momentum
    moved = writer.affine({v: momentum, gradient: rate, decayed: rate}, np.zeros(size), "move")
    after = writer.affine({w: np.eye(size), moved: np.eye(size)}, np.zeros(size))
    if target.threshold:
        by = f"({target.rate!r}*{target.threshold!r}*c)"
        soft = parse(f"max(w - {by}, 0) + min(w + {by}, 0)", ("w", "c"))
        functions = [soft if on else variable("w") for on in target.penalised]
        after = writer.apply(functions, (after, scale), ("w", "c"), size, "shrunk")
    change = writer.affine({after: np.eye(size), w: -np.eye(size)}, np.zeros(size))
    return writer.program(after, change)


def _state(names: list[str], any_number: bool = False) -> Input:
    """What a body is given: one token, or any number of them."""
    return Input(tuple(names), tokens=None if any_number else 1)


def _link(loss: Loss) -> Expression:
    """dl/ds at s = w . x + b and y, as one expression of both."""
    s, y = variable("s"), variable("y")
    match loss.form:
        case "phi(s - y)":
            return loss.link.substitute({"x": sub(s, y)})
        case "phi(s) - y":
            return sub(loss.link.substitute({"x": s}), y)
        case "y phi(y s)":
            return mul(y, loss.link.substitute({"x": mul(y, s)}))
        case _:
            return loss.link


@program_of.register
def _many(target: ManyLearners, on: Any = None) -> Program:
    """Rows (x, v, a, b, a flag for each loss) and where the descent starts; what is put out is the path of w."""
    writer = Writer()
    size, losses = target.weights, len(target.losses)
    names = [f"{letter}{j}" for letter in "xv" for j in range(size)] + ["a", "b", *(f"loss{k}" for k in range(losses))]
    rows = writer.add(_state(names, any_number=True), "rows")
    start = writer.add(_state([f"w{j}" for j in range(size)]), "start")
    body = Writer()
    w = body.add(_state([f"w{j}" for j in range(size)]), "w")
    given = body.add(_state(names, any_number=True), "rows")
    pick = np.eye(len(names))
    x, v = (body.affine({given: pick[k * size : (k + 1) * size]}, np.zeros(size), name) for k, name in enumerate("xv"))
    a, b, *flags = (body.affine({given: pick[k : k + 1]}, [0.0], names[k]) for k in range(2 * size, len(names)))
    s = body.add(Dot(x, w), "s")
    called = ("s", "a", "b", *names[2 * size + 2 :])
    chosen = [mul(variable(f"loss{k}"), _at_residual(loss)) for k, loss in enumerate(target.losses)]
    total = sub(add(*chosen), variable("b"))
    link = body.apply(total, (s, a, b, *flags), called, 1, "link")
    each = body.apply(parse("v*g", ("v", "g")), (v, link), ("v", "g"), size)
    mean = body.add(Attend(each), "gradient")
    after = body.affine({w: np.eye(size), mean: -np.eye(size)}, np.zeros(size))
    path = Repeat(body.program(after), (start,), target.steps, (rows,), collect=True)
    return writer.program(writer.add(path, "path"))


def _at_residual(loss: Loss) -> Expression:
    return loss.link.substitute({"x": sub(variable("s"), variable("a"))})
