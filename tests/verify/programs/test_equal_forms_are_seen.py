"""Every form that the compiler writes of a function is seen to be that function; no bound between two is too small."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx

import anchorhead as ah
from anchorhead.constructions.passes.simplify import lowered
from anchorhead.language.analysis.summands import parts_of
from anchorhead.language.canonical import to_data
from anchorhead.language.entries import Entries
from anchorhead.language.expressions.parser import parse
from anchorhead.language.of_targets import program_of
from anchorhead.language.program import Program
from anchorhead.verify.equality.algebra import Algebra
from anchorhead.verify.equality.compare import difference
from anchorhead.verify.equality.polynomials import Monomial, Value
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.files import Stored
from anchorhead.verify.programs.numbers import Range
from anchorhead.verify.programs.program import Affine, Input, read_program
from anchorhead.verify.programs.program import Program as Read
from benchmarks.figures_cases import DEEP
from tests.constructions.passes.test_equal_forms import NAMES, grown

BOX = dict.fromkeys("xyzwu", (0.5, 2.0))
SIGNED = dict.fromkeys("xyzw", (-1.0, 1.0))
FUNCTIONS: dict[str, dict[str, tuple[float, float]]] = {
    "exp(x*y)*abs(z) + w": SIGNED,
    "x*y*z*w": SIGNED,
    "x*y*z*w*u": BOX,
    "x*y/(z*w*u)": BOX,
    "(x + y)/(z + w) - u": BOX,
    "1/(2 + x**2*y**2 + abs(z)*w)": SIGNED,
    "max(x, y*z, w)": SIGNED,
    "max(x*y, min(z, w)) + abs(x - z*w)": SIGNED,
    "min(x*y, y*z, z*w)**2": SIGNED,
    "abs(x*y - z) - abs(w)/3": SIGNED,
    "sqrt(x*y + z*w)*abs(u - 1)": BOX,
    "sqrt(x**2 + y*z*w*u) - x": BOX,
    "log(sqrt(x**2 + y*z*w) + x) + u": BOX,
    "(x*y)**1.7/(z + w*u)": BOX,
    "(x*y)**(1/3)*z*w*u": BOX,
    "log(x*y*z + w)*u": BOX,
    "softplus(x*y)*relu(z) - w": SIGNED,
    "elu(x*y + z)*w": SIGNED,
    "clip(x*y*z, -0.3, 0.4)*w": SIGNED,
    "tanh(x*y)*sigmoid(z*w)*abs(x)": SIGNED,
    "pi*x*y*abs(z)/3 + sin(pi*w*x)": SIGNED,
    "exp(-(x**2 + y**2)/2)*abs(z*w)": SIGNED,
    "where(x < 0, x*y, y*z)*w": {**SIGNED, "x": (0.5, 1.0)},
    **{expression: on for expression, on, _ in DEEP.values()},
}


def read(program: Program) -> Read:
    """The program as the verifier knows it."""
    data, arrays = to_data(program)
    return read_program(Stored({}, data, None, None, {f"program.{name}": array for name, array in arrays.items()}))


def forms(text: str, on: dict[str, tuple[float, float]]) -> tuple[Read, list[Read], np.ndarray, np.ndarray]:
    """What is written, all forms that the compiler makes of it, and the box."""
    expression = parse(text, tuple(on))
    on = {name: ends for name, ends in on.items() if name in expression.variables}
    names, ends = tuple(on), ([a for a, _ in on.values()], [b for _, b in on.values()])
    low, high = (np.array([end], float) for end in ends)
    terms = [term.expression for term in parts_of((expression,), names, None, ends).terms]
    built = [read(program_of(one, (low, high))) for one in lowered([terms], names, ends)]
    return read(ah.program(text, on=on)), built, low, high


def value(program: Read, x: list[float]) -> arb:
    """A program of one token at a point."""
    found: list[list[arb]] = []
    for step in program.steps:
        if isinstance(step, Input):
            found.append([arb(one) for one in x])
        elif isinstance(step, Affine):
            sums = [
                sum((arb(w) * q for w, q in zip(row.tolist(), found[of], strict=True) if w), arb(0))
                for of, weight in zip(step.of, step.weights, strict=True)
                for row in weight
            ]
            rows = [sums[place :: len(step.bias[0])] for place in range(len(step.bias[0]))]
            found.append([sum(row, arb(float(b))) for row, b in zip(rows, step.bias[0], strict=True)])
        else:
            given = [found[of] for of in step.of]
            at = [
                {n: q[f % len(q)] for n, q in zip(step.arguments, given, strict=True)} for f in range(len(step.which))
            ]
            found.append([step.functions[k].ball(one) for k, one in zip(step.which, at, strict=True)])
    return found[program.outputs[0]][0]


def apart(one: Read, other: Read, low: np.ndarray, high: np.ndarray, rng: random.Random, points: int = 20) -> arb:
    """The largest difference of two programs that is found at corners and in between."""
    worst, before = arb(0), ctx.prec
    ctx.prec = 400
    try:
        for _ in range(points):
            box = zip(low[0].tolist(), high[0].tolist(), strict=True)
            x = [rng.choice([a, b, rng.uniform(a, b)]) for a, b in box]
            off = abs(value(one, x) - value(other, x))
            worst = worst.max(off.lower()) if off.is_finite() else worst
    finally:
        ctx.prec = before
    return worst


@pytest.mark.parametrize("text", FUNCTIONS)
def test_every_form_is_seen_to_be_the_function_that_was_written(text: str) -> None:
    written, built, low, high = forms(text, FUNCTIONS[text])
    size = apart(written, _zero(written), low, high, random.Random(1))
    for one in built:
        assert difference(written, one, low, high).max() <= 1e-8 * size


def _zero(program: Read) -> Read:
    """A program that is 0."""
    weight = np.zeros((1, len(program.steps[0].features)))
    return dataclasses.replace(
        program,
        steps=(program.steps[0], Affine((0,), (weight,), (None,), np.zeros((1, 1)), None)),
        names=("", ""),
        outputs=(1,),
    )


CHANGED = {
    "exp(x*y)*abs(z) + w": (
        "exp(x*y)*abs(z) - w",
        "exp(x*y)*abs(z) + 1.0001*w",
        "exp(x*z)*abs(y) + w",
        "x + y",
        "exp(x*y)*z + w",
    ),
    "max(x, y*z, w)": ("max(x, y*z)", "max(x, y*z, -w)", "min(x, y*z, w)", "max(x, y*w, z)"),
    "sqrt(x**2 + y*z*w*u) - x": ("sqrt(x**2 + y*z*w*u) + x", "sqrt(x**2 + y*z*w + u) - x", "sqrt(x**2 + y*z*w*u)"),
    "x*y/(z*w*u)": ("x*y*z/(w*u)", "x*y/(z*w + u)", "x/y/(z*w*u)", "x*y/(z*w*u)**1.001"),
    "tanh(x*y)*sigmoid(z*w)*abs(x)": (
        "tanh(x*y)*sigmoid(z*w)*abs(y)",
        "sin(x*y)*sigmoid(z*w)*abs(x)",
        "tanh(x*y)*sigmoid(z*w)*x",
    ),
    "log(x*y*z + w)*u": ("log(x*y*z + w + 1e-3)*u", "log(x*y*z)*w*u", "log(x*y*z + w)/u"),
}


@pytest.mark.parametrize("text", CHANGED)
def test_another_function_is_never_taken_for_it(text: str) -> None:
    names = tuple(name for name in FUNCTIONS[text] if name in parse(text, tuple(FUNCTIONS[text])).variables)
    on, rng = {name: FUNCTIONS[text][name] for name in names}, random.Random(2)
    _, built, low, high = forms(text, on)
    for other in CHANGED[text]:
        expression = parse(other, names)
        program = Entries((expression,), names, *zip(*on.values(), strict=True)).program()
        for one in built:
            bound = difference(read(program), one, low, high).max()
            assert arb(float(bound)) >= apart(read(program), one, low, high, rng) > 1e-6, other


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_no_bound_is_smaller_than_a_difference_that_is_found(seed: int) -> None:
    """Random functions, of whose forms one number is changed, by a little or by much."""
    rng, compared, close = random.Random(seed), 0, 0
    while compared < (40 if seed == 1 else 600):
        low = [rng.choice([0.1, 1, -1, 50, 1e-3, 0.5]) for _ in NAMES]
        on = {name: (a, a + abs(a) * rng.choice([0.1, 1, 3, 100])) for name, a in zip(NAMES, low, strict=True)}
        text = grown(rng, rng.choice([2, 3]))
        try:
            written, built, least, most = forms(text, on)
        except (ah.AnchorheadError, ValueError):
            continue
        for one in built:
            other = changed(one, rng)
            try:
                bound = float(difference(written, other, least, most).max())
            except NotVerified:
                continue
            found = apart(written, other, least, most, rng)
            assert found <= arb(bound), text
            compared += 1
            close += float(found) > 0 and bound < 10 * float(found)
    assert close > compared / 3


def _without_cancelled(self: Algebra, terms: Iterable[tuple[Monomial, arb]]) -> Value:
    found = MADE(self, terms)
    return dataclasses.replace(found, terms={m: c.mid() for m, c in found.terms.items() if not c.mid().is_zero()})


def _nearest(self: Algebra, a: Value, b: Value) -> arb | None:
    return arb(0) if DISTANCE(self, a, b) is not None else None


def _always_positive(self: Algebra, a: Value) -> Value:
    return dataclasses.replace(a, range=Range.hull(arb(2) ** -99, a.range.most))


MADE, DISTANCE = Algebra.made, Algebra.distance
BROKEN: dict[str, tuple[str, Any]] = {
    "errors are forgotten": ("off_by", lambda self, a, error: a),
    "what cancels is forgotten": ("made", _without_cancelled),
    "nearly the same is the same": ("distance", _nearest),
    "every sign is known": ("_with_sign", _always_positive),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    method, broken = BROKEN[name]
    monkeypatch.setattr(Algebra, method, broken)
    with pytest.raises(AssertionError):
        test_no_bound_is_smaller_than_a_difference_that_is_found(2)


def changed(program: Read, rng: random.Random) -> Read:
    places = [place for place, step in enumerate(program.steps) if isinstance(step, Affine) and step.weights[0].any()]
    if not places:
        return program
    place = rng.choice(places)
    weight = program.steps[place].weights[0].copy()
    at = tuple(rng.choice(np.argwhere(weight).tolist()))
    weight[at] *= rng.choice([1.0, 1 + 1e-12, 1 + 1e-6, -1.0, 2.0])
    steps = list(program.steps)
    steps[place] = dataclasses.replace(steps[place], weights=(weight, *steps[place].weights[1:]))
    return dataclasses.replace(program, steps=tuple(steps))


# networks and files
