"""Programs of learners, the paths of exact gradient descent that networks take in context; and back."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from inspect import signature
from itertools import product
from typing import Any

import numpy as np

from anchorhead.errors import AnchorheadError
from anchorhead.language.entries import same
from anchorhead.language.expressions.build import add, mul, neg, sub, variable
from anchorhead.language.expressions.expression import Expression, postorder
from anchorhead.language.expressions.parser import parse
from anchorhead.language.of_targets import program_of
from anchorhead.language.program import Program, Writer
from anchorhead.language.steps import Apply, Attend, Dot, Input, Repeat
from anchorhead.language.targets.descent import Descent, LearnerLayout
from anchorhead.language.targets.losses import LOSSES, Loss, link, named_loss
from anchorhead.language.targets.many_learners import ManyLearners


@program_of.register
def _descent(target: Descent, on: Any = None) -> Program:
    """Examples (x_i, y_i), any number of them up to the most that are served; what is put out is the path of w."""
    writer = Writer()
    d, size = target.features, target.weights
    low, high = (None, None) if on is None else on
    title = "" if target.loss.name in LOSSES else target.loss.name
    names = (*(f"x{j}" for j in range(d)), "y")
    given = writer.input(names, low, high, tokens=None, most=target.examples)
    pick = np.eye(size, d + 1)
    pick[d:] = 0.0
    examples = writer.affine({given: pick}, np.eye(size)[-1] * target.intercept, "A")
    y = writer.affine({given: np.eye(d + 1)[d:]}, [0.0], "y")
    start = writer.constant(np.zeros((1, size)), "w0")
    body = _descent_step(target)
    path = Repeat(body, (start, start), target.steps, (examples, y), collect=True)
    return writer.program(writer.add(path, "path"), title=title)


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


def descent_of(program: Program, layout: LearnerLayout | None = None, scores: Any = None) -> Descent:
    """The descent that a program is; "direct" is the layout where it serves.

    Numbers are read where `_descent_step` writes them; what is read is written again and compared.
    """
    with suppress(IndexError, KeyError, TypeError, ValueError, AttributeError):
        found = _read_descent(program, layout, scores)
        for ulps in range(-2, 3) if found.threshold else (0,):  # what is read of it is rounded twice
            one = replace(found, threshold=found.threshold + ulps * float(np.spacing(found.threshold)))
            if same(program, program_of(one)):
                return one
    raise AnchorheadError("the program is not one of gradient descent")


def _read_descent(program: Program, layout: LearnerLayout | None, scores: Any) -> Descent:
    path: Any = program.steps[program.output]
    features, steps = len(program.input.features) - 1, path.body.steps
    link, scale, decayed, moved, shrunk = (steps[place] for place in (5, 8, 9, 10, 12))
    loss = loss_of(link.functions[0], program.title)
    weights = {term.step: float(term.weight[0, 0]) for term in moved.terms}
    rate, scales = -weights[7], scale.bias[0]
    threshold = 0.0
    if isinstance(shrunk, Apply):  # max(w - rate threshold c, 0) + min(w + rate threshold c, 0)
        soft: Any = shrunk.functions[shrunk.which[0]]
        threshold = -float(soft.args[0].args[0].values({"w": 0.0, "c": 1.0})) / rate
    return Descent(
        loss,
        path.times,
        rate,
        features,
        len(scales) > features,
        float(decayed.functions[decayed.which[0]].values({"w": 1.0, "c": 1.0})),
        threshold,
        weights[1],
        program.input.most or 0,
        layout or ("direct" if loss.name == "squared" and scores is None else "transformer"),
        scales=None if (scales == 1).all() else tuple(scales[:features]),
    )


def many_of(program: Program, reach: float) -> ManyLearners:
    """The learners that a program is, of which it does not say whether one of the weights is an intercept."""
    path: Any = program.steps[program.output]
    with suppress(IndexError, StopIteration, TypeError, AttributeError):
        total: Any = next(step for step in path.body.steps if isinstance(step, Apply)).functions[0]
        links = [_in_place_of(term.args[1], sub(variable("s"), variable("a"))) for term in total.args[:-1]]
        losses = tuple(_named(one) or link(one, name=f"own {k}") for k, one in enumerate(links))
        found = ManyLearners(losses, path.times, program.shapes[path.carried[0]].width, False, reach)
        if same(program, program_of(found)):
            return found
    raise AnchorheadError("the program is not one of learners")


def loss_of(g: Expression, name: str = "") -> Loss:
    """The loss whose dl/ds at s and y is this expression: one that has a name, or one's own, in the first of the forms
    that fits."""
    s, y = variable("s"), variable("y")
    phis = {"phi(s - y)": _in_place_of(g, sub(s, y))}
    if g.op == "add" and g.args[-1] is neg(y):
        phis["phi(s) - y"] = _in_place_of(add(*g.args[:-1]), s)
    if g.op == "mul" and g.args[0] is y:
        phis["y phi(y s)"] = _in_place_of(mul(*g.args[1:]), mul(y, s))
    own = [link(phi, form, name or "own") for form, phi in phis.items() if set(phi.variables) <= {"x"}]  # type: ignore[arg-type]
    fits = [one for one in own if _link(one) is g]
    for one in fits:
        known = None if name else _named(one.link)
        if known is not None and _link(known) is g:
            return known
    return fits[0] if fits else link(g, "g(s, y)", name or "own")


def _named(phi: Expression) -> Loss | None:
    """The loss with a name that has this link: its parameters are among the numbers that the link holds."""
    numbers = sorted({abs(float(node.data or 0.0)) for node in postorder(phi) if node.op == "number"} - {0.0})
    for name, made in LOSSES.items():
        words = tuple(signature(made).parameters)
        for values in product(numbers, repeat=len(words)):
            if "q" in words and not values[words.index("q")] < 1:
                continue
            found = named_loss(name, **dict(zip(words, values, strict=True)))
            if found.link is phi:
                return found
    return None


def _in_place_of(expression: Expression, part: Expression) -> Expression:
    """The expression with x where a part of it stands; a sum may go on after the part."""
    x = variable("x")
    known: dict[Expression, Expression] = {part: x}
    for node in postorder(expression):
        if node in known:
            continue
        args, size = node.args, len(part.args)
        begins = node.op == part.op and size and args[:size] == part.args
        kept = (x, *args[size:]) if begins else args
        known[node] = Expression(node.op, tuple(known.get(arg, arg) for arg in kept), node.data)
    return known[expression]
