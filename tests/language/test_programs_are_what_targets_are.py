"""A program has the values of the target that it was written for, over floats, fractions and balls."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from anchorhead.errors import AnchorheadError
from anchorhead.language.canonical import from_data, to_data
from anchorhead.language.entries import Entries
from anchorhead.language.expressions.parser import parse
from anchorhead.language.expressions.precision import precision
from anchorhead.language.interpret import run, values
from anchorhead.language.numbers import Balls, ComplexBalls, Fractions
from anchorhead.language.of_learners import program_of
from anchorhead.language.program import Program, Writer
from anchorhead.language.ranges import ranges
from anchorhead.language.several import SeveralVariables
from anchorhead.language.steps import Affine, Apply, Attend, Input, Normalise, Repeat, Term
from anchorhead.language.targets.descent import Descent
from anchorhead.language.targets.kernel_smoother import KernelSmoother
from anchorhead.language.targets.losses import named_loss
from anchorhead.language.targets.many_learners import ManyLearners, Rows
from anchorhead.language.targets.mlp import Affine as AffineMap
from anchorhead.language.targets.mlp import Hidden, Mlp
from anchorhead.language.targets.opaque_several import CallableSeveral
from anchorhead.language.targets.ramp import TruncatedLinear
from anchorhead.language.targets.scalar import ScalarTarget

RNG = np.random.default_rng(0)
ENTRIES = ("x[0,0]", "x[0,1]", "x[1,0]", "x[1,1]")


SEQUENCE = tuple(parse(text, ENTRIES) for text in ("x[0,0]*x[1,1]", "x[1,0]"))


def mlp(tokens=None):
    first = Hidden.of(RNG.normal(size=(5, 4)), RNG.normal(size=5), parse("relu(x)"))
    mixed = Hidden(
        AffineMap(RNG.normal(size=(3, 5)), RNG.normal(size=3)), (parse("tanh(x)"), parse("x")), np.array([0, 1, 0])
    )
    return Mlp((first, mixed), AffineMap(RNG.normal(size=(2, 3)), RNG.normal(size=2)), tokens)


def smoother():
    return KernelSmoother(RNG.normal(size=(6, 2)), RNG.normal(size=(6, 2)), np.array([0.5, 0.7]), RNG.uniform(1, 2, 6))


XY = ("x", "y")
CASES = {
    "one variable": (ScalarTarget((parse("gelu(x)"), parse("sin(x)")), -2.0, 2.0), (1, 1)),
    "several": (SeveralVariables((parse("exp(x*y)", XY), parse("x", XY)), XY, (-1, 0), (1, 1)), (2,)),
    "tokens": (SeveralVariables(SEQUENCE, ENTRIES, (-1,) * 4, (1,) * 4, 2), (2, 2)),
    "network": (mlp(), (4,)),
    "network of tokens": (mlp(2), (2, 2)),
    "ramps": (TruncatedLinear(RNG.normal(size=(3, 2)), RNG.normal(size=3), -1.0, 1.0, np.array([-0.3, 0.4]),
                              np.array([0, 1, 0])), (3, 2)),
    "kernel smoother": (smoother(), (2,)),
}  # fmt: skip


def of(target, x):
    if isinstance(target, ScalarTarget):
        return target.values(x[..., 0, 0])[..., None, :]
    if isinstance(target, SeveralVariables):
        y = target.values(x.reshape(len(x), -1))
        return y if target.tokens is None else y.reshape(len(x), target.tokens, -1)
    if isinstance(target, Mlp):
        first, mixed = target.hidden
        a = np.maximum(x.reshape(len(x), -1) @ first.affine.weight.T + first.affine.bias, 0)
        z = a @ mixed.affine.weight.T + mixed.affine.bias
        y = np.where(mixed.which == 0, np.tanh(z), z) @ target.readout.weight.T + target.readout.bias
        return y.reshape(len(x), *target.output_shape)
    return target.values(x)


@pytest.mark.parametrize("name", CASES)
def test_values_are_the_targets_and_files_keep_them(name):
    target, shape = CASES[name]
    program = program_of(target)
    x = RNG.uniform(0.01, 0.99, (9, *shape))
    exact = np.asarray(of(target, x), np.longdouble)
    assert np.abs(program(x) - exact).max() <= 1e-15 * (1 + np.abs(exact).max())
    data, arrays = to_data(program)
    again = from_data(json.loads(json.dumps(data)), {name: np.array(array) for name, array in arrays.items()})
    assert np.array_equal(again(x), program(x))
    assert to_data(again)[0] == data


@pytest.mark.parametrize("name", ["several", "network", "kernel smoother", "tokens"])
def test_balls_hold_the_values_and_ranges_hold_the_balls(name):
    target, shape = CASES[name]
    on = None if isinstance(target, SeveralVariables) else (np.zeros(shape), np.ones(shape))
    program = program_of(target, on)
    known = ranges(program)
    x = RNG.uniform(0, 1, (1, *shape))
    inputs = x.reshape(program.input.tokens or 1, -1)
    with precision(128):
        balls = run(program, [np.array([[arb(float(v)) for v in row] for row in inputs], dtype=object)], Balls())
    plain = np.asarray(program(x)).reshape(-1)
    for ball, value in zip(balls[program.output].ravel(), plain, strict=True):
        assert abs(float(ball.mid()) - float(value)) <= 1e-14 * (1 + abs(float(value)))
    for found, range_ in zip(balls, known, strict=True):
        for ball, low, high in zip(found.ravel(), range_.low.ravel(), range_.high.ravel(), strict=True):
            assert low <= float(ball.lower())
            assert float(ball.upper()) <= high


def test_fractions_are_exact_and_complex_balls_go_around_reals():
    program = program_of(mlp_of_halves())
    x = [[Fraction(1, 3), Fraction(-2, 7)]]
    (found,) = run(program, [np.array(x, dtype=object)], Fractions())[program.output].ravel()
    plain = values(program, np.array([1 / 3, -2 / 7]))
    assert isinstance(found, Fraction)
    assert abs(float(found) - float(plain[0])) <= 1e-15
    smooth = program_of(ScalarTarget((parse("exp(x)/(1 + x**2)"),), 0.0, 1.0))
    with precision(128):
        from flint import acb

        ball = run(smooth, [np.array([[acb(0.5, 0.1)]], dtype=object)], ComplexBalls())[smooth.output][0, 0]
    z = 0.5 + 0.1j
    assert abs(complex(ball.mid()) - np.exp(z) / (1 + z**2)) < 1e-14


def mlp_of_halves():
    hidden = Hidden.of([[0.5, -1.0], [0.25, 2.0]], [0.5, -0.125], parse("relu(x)"))
    return Mlp((hidden,), AffineMap([[1.0, -0.5]], [0.75]))


@pytest.mark.parametrize("extra", [{}, {"intercept": True, "decay": 0.1, "momentum": 0.5},
                                   {"threshold": 0.05, "intercept": True, "scales": (1.0, 2.0, 0.5)}])  # fmt: skip
@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
def test_learners_are_the_paths_of_their_descent(loss, extra):
    target = Descent(named_loss(loss), 5, 0.3, 3, layout="transformer", **extra)
    X = RNG.normal(size=(9, 3))
    y = (RNG.random((9, 1)) < 0.5) * (1.0 if loss == "logistic" else 2.0) - (0.0 if loss == "logistic" else 1.0)
    A = np.hstack([X, np.ones((9, 1))]) if extra.get("intercept") else X
    path = target.path(A * y if loss == "hinge" else A, y[:, 0])
    assert np.abs(program_of(target)(np.hstack([X, y])) - path).max() < 1e-14


def test_many_learners_are_what_their_rows_say():
    target = ManyLearners((named_loss("squared"), named_loss("logistic")), 4, 2, False, 5.0)
    rows = Rows(RNG.normal(size=(6, 2)), 0.1 * RNG.normal(size=(6, 2)), RNG.normal(size=6), RNG.normal(size=6),
                RNG.integers(0, 2, 6), RNG.normal(size=2))  # fmt: skip
    table = np.hstack([rows.x, rows.v, rows.a[:, None], rows.b[:, None], np.eye(2)[rows.loss]])
    assert np.abs(program_of(target)(table, rows.start[None]) - target.path(rows)).max() < 1e-14


def test_callables_are_given_when_they_are_run():
    def f(x):
        return np.stack([x[..., 0] * x[..., 1], x[..., 0]], -1)

    target = CallableSeveral(f, -np.ones(2), np.ones(2), None, ("x", "y"))
    program = program_of(target)
    x = RNG.uniform(-1, 1, (4, 2))
    apply = next(step for step in program.steps if isinstance(step, Apply))
    digest = apply.functions[0].digest
    y = values(program, x, functions={digest: lambda a, b: f(np.stack([a, b], -1))})
    assert np.array_equal(y, f(x))
    with pytest.raises(AnchorheadError, match="holds no code"):
        program(x)


def test_norms_and_attention_are_those_of_numpy():
    writer = Writer()
    x = writer.input(("a", "b", "c"), -np.ones(3), np.ones(3), tokens=4)
    normed = writer.add(Normalise(x, "layer", 1e-5))
    program = writer.program(writer.add(Attend(x, normed, normed, "causal")))
    given = RNG.normal(size=(4, 3))
    centred = given - given.mean(axis=1, keepdims=True)
    z = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
    logits = np.where(np.tri(4, dtype=bool), z @ z.T, -np.inf)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    assert np.abs(program(given) - weights / weights.sum(axis=1, keepdims=True) @ given).max() < 1e-14


WRONG = {
    "an earlier step": (lambda: Program((Input(("x",)), Affine((Term(1, [[1.0]]),), [[0.0]])), (1,)), "before it"),
    "shapes": (lambda: Program((Input(("x", "y")), Affine((Term(0, [[1.0]]),), [[0.0]])), (1,)), "1 x 2"),
    "box": (lambda: Input(("x",), [[1.0]], [[0.0]]), "lower one first"),
    "functions": (lambda: Apply((parse("x*y", ("x", "y")),), [0], (0,), ("x",)), "depends on y"),
    "outputs": (lambda: Program((Input(("x",)),), (3,)), "outputs"),
    "a body": (lambda: Repeat(Program((Input(("x",)),), (0,)), (), 3), "carried"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_program_is_refused(name):
    made, words = WRONG[name]
    with pytest.raises(AnchorheadError, match=words):
        made()


@pytest.mark.parametrize("change", [
    {"steps": [{"step": "Exec"}]}, {"steps": "all"}, {"outputs": [9]}, {"outputs": ["0"]}, {"names": None},
    {"steps": []},
    {"steps": [{"step": "Affine", "of": [10**30]}]}, {"conditions": [{"kind": "none"}]},
])  # fmt: skip
def test_damaged_programs_are_refused_with_a_sentence(change):
    data, arrays = to_data(program_of(mlp()))
    with pytest.raises(AnchorheadError):
        from_data({**data, **change}, arrays)


def test_functions_of_one_token_are_read_back_from_their_program():
    names = ("x[0,0]", "x[0,1]")
    target = SeveralVariables((parse("exp(x[0,0]*x[0,1])", names),), names, (-1, -1), (1, 1), 1)
    program = program_of(target)
    assert program.token_axis
    assert Entries.of(program).expressions == target.expressions
