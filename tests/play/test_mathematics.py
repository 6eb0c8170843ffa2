"""Numbers in the page agree with Python's, in real Chromium."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from flint import arb

from anchorhead.errors import AnchorheadError
from anchorhead.heads.tables.table import frontiers
from anchorhead.heads.uniform import uniform
from anchorhead.language.expressions.precision import precision
from anchorhead.language.targets import NAMED
from anchorhead.language.targets.spec import expression_of
from tests.play.random_expressions import expression, mutated

VALUES = """([texts, points]) => texts.map((text) => {
    const { f } = anchorhead.parse(text);
    return points.map((x) => String(f(x)));
})"""
ACCEPTED = """(texts) => texts.map((text) => {
    try { anchorhead.parse(text); return -1; } catch (error) { return error.column ?? String(error); }
})"""


def assert_agree(given, points, seen):
    """To 1e-12 of max(1, |f|), wherever float64 itself, as Python computes, holds 14 digits."""
    compared = 0
    for text, row in zip(given, seen, strict=True):
        target = expression_of(text)
        ours = target.values({"x": points})
        for x, here, word in zip(points, ours, row, strict=True):
            if math.isfinite(here) and _accurate(target, x, here):
                assert abs(here - float(word)) <= 1e-12 * max(1.0, abs(here)), (text, x)
                compared += 1
    return compared


def _accurate(target, x, value):
    with precision(200):
        ball = target.ball({name: arb(x) for name in target.variables})
        return ball.is_finite() and abs(float(ball.mid()) - value) <= 1e-14 * max(1.0, abs(value))


def test_named_functions_agree(mathematics):
    names = [name for name, one in NAMED.items() if all(default is not None for _, default in one.parameters)]
    points = np.concatenate([np.linspace(-12, 12, 97), [1e-9, -1e-9, 0.84375, 1.25, 2.857, 30.0, -30.0]])
    seen = mathematics.evaluate(VALUES, [names, points.tolist()])
    assert assert_agree(names, points, seen) > 70 * len(names)


def test_parameters_agree(mathematics):
    texts = [
        "leaky_relu(x, 0.2)",
        "hardtanh(x, -2, 3)",
        "clip(x, -pi, e)",
        "elu(x, 2)",
        "celu(x, 1/2)",
        "softplus(x, 3)",
    ]
    points = np.linspace(-9, 9, 41)
    assert assert_agree(texts, points, mathematics.evaluate(VALUES, [texts, points.tolist()])) > 30 * len(texts)


def test_random_expressions_agree(mathematics):
    rng = random.Random(17)
    texts = [expression(rng) for _ in range(250)]
    points = np.array([-2.75, -1.0, -0.3, 0.0, 0.1, 0.77, 1.5, 3.2])
    seen = mathematics.evaluate(VALUES, [texts, points.tolist()])
    assert assert_agree(texts, points, seen) > 1500


def test_erf_and_erfc_have_their_last_digits(mathematics):
    points = np.concatenate([np.linspace(-6.5, 27, 400), np.logspace(-20, 0, 60)])
    seen = mathematics.evaluate(
        "(points) => points.map((x) => [anchorhead.erf(x), anchorhead.erfc(x)])", points.tolist()
    )
    for x, (erf, erfc) in zip(points, seen, strict=True):
        assert abs(erf - math.erf(x)) <= 4e-16 * abs(math.erf(x))
        assert abs(erfc - math.erfc(x)) <= 2e-15 * math.erfc(x)


def test_what_is_refused_agrees(mathematics):
    """Of texts that were damaged a little, the page takes those that Python takes."""
    rng = random.Random(23)
    texts = [mutated(rng, expression(rng, 2)) for _ in range(600)]
    texts += [
        "",
        "x^2",
        "sn(x)",
        "sin x",
        "2x",
        "x[0]",
        "lambda x: x",
        "x.real",
        "(" * 60 + "x" + ")" * 60,
        "x**x",
        "2**x",
    ]
    texts += [
        "x**65",
        "x**-64",
        "1e999",
        "clip(x, 2, 1)",
        "elu(x, x)",
        "where(x, 1, 2)",
        "where(x<1<2, 1, 2)",
        "max()",
        "f(x)(x)",
    ]
    texts += [
        "x < 1",
        "x,",
        "(x,)",
        "max(x,)",
        "gelu",
        "clip",
        "010",
        "00",
        "1_0",
        "True",
        "x" + "+x" * 998,
        "x" + "+x" * 999,
    ]
    texts += ["-" * 51 + "x", "- " * 50 + "x", "x**-x", "where(x >= 0, x, -x)", "+".join(["sin(x)"] * 280)]
    seen = mathematics.evaluate(ACCEPTED, texts)
    agreed = 0
    for text, column in zip(texts, seen, strict=True):
        try:
            expression_of(text)
            taken = True
        except AnchorheadError:
            taken = False
        assert taken == (column == -1), (text, column)
        agreed += taken
    assert 100 < agreed < 500


def test_problems_have_a_place(mathematics):
    texts = ["sin(x) + y", "sin(x", "x ^ 2", "2*(x + )", "x**y", "foo(x)", "1 + clip(x, 2, 1)"]
    assert mathematics.evaluate(ACCEPTED, texts) == [9, 5, 2, 7, 3, 0, 4]


HEADS = """(points) => anchorhead.allProven().map(({ on: [low, high], heads }) => heads.map(({ head }) =>
    Array.from(anchorhead.evaluate(head, points.map((share) => low + share * (high - low))))))"""


def test_shipped_heads_agree(mathematics):
    """All of them, in float64 and float32; errors are relative to the largest value, of which sums are made."""
    shares = np.array([0.0, 0.1234, 0.4, 0.5, 0.51, 0.77, 1.0])
    seen = mathematics.evaluate(HEADS, shares.tolist())
    for rows, known in zip(seen, frontiers(), strict=True):
        points = known.low + shares * (known.high - known.low)
        for row, entry in zip(rows, known.heads, strict=True):
            scale = max(1.0, entry.atom.max_value)
            if known.dtype == "float64":
                steep = 1 + 1e-3 * entry.atom.max_slope  # numpy's exp may be off by an ulp of a large logit's
                assert np.abs(entry.atom(points)[:, 0] - row).max() <= 1e-12 * scale * steep
            assert np.abs(entry.atom.exact(points)[:, 0].astype(float) - row).max() <= entry.rounding * 1.0000001


def test_proven_bounds_hold_in_the_page(mathematics):
    """Of every tenth shipped head, at points of which most are not those of any search."""
    tell = """() => anchorhead.allProven().flatMap(({ function: name, on: [low, high], heads }, number) =>
        heads.filter((_, k) => (k + number) % 10 === 0).map(({ bound, head }) =>
            [name, anchorhead.largestError(head, anchorhead.parse(name).f, low, high, 301).error, bound]))"""
    seen = mathematics.evaluate(tell)
    assert len(seen) > 50
    for name, error, bound in seen:
        assert error <= bound + 1e-14, name  # the function itself is rounded, too


def test_uniform_heads_agree(mathematics):
    tell = """([low, high, anchors, c, dtype, points]) => {
        const head = anchorhead.uniformHead(anchorhead.parse("gelu").f, low, high, anchors, c, dtype);
        return Array.from(anchorhead.evaluate(head, points));
    }"""
    for low, high, anchors, c in [(-4.0, 4.0, 9, 2.0), (1.0, 3.0, 5, 0.7), (-1.0, 10.0, 33, 5.0)]:
        points = np.linspace(low, high, 50)
        ours = uniform(lambda x: expression_of("gelu").values({"x": x})[:, None], low, high, anchors, c=c)
        seen = mathematics.evaluate(tell, [low, high, anchors, c, "float64", points.tolist()])
        assert np.abs(ours.atom(points)[:, 0] - seen).max() <= 1e-12


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_narrow_types_round_every_step(mathematics, dtype):
    unit = {"float32": 2.0**-24, "bfloat16": 2.0**-8}[dtype]
    tell = """([dtype, points]) => {
        const head = anchorhead.uniformHead(anchorhead.parse("tanh").f, -3, 3, 7, 1.5, dtype);
        const exact = { ...head, dtype: "float64" };
        const kept = anchorhead.rounded(head, dtype);
        return [Array.from(anchorhead.evaluate(head, points)), Array.from(anchorhead.evaluate(exact, points)),
                JSON.stringify(kept) === JSON.stringify(head)];
    }"""
    points = np.linspace(-3, 3, 97)
    narrow, exact, held = mathematics.evaluate(tell, [dtype, points.tolist()])
    apart = np.abs(np.array(narrow) - exact).max()
    assert held
    assert unit / 8 < apart < 200 * unit
    if dtype == "float32":
        assert np.array_equal(np.float32(narrow), np.array(narrow))


def test_bfloat16_rounds_as_torch_does(mathematics):
    import torch

    rng = np.random.default_rng(3)
    numbers = np.concatenate(
        [rng.normal(size=500) * 10.0 ** rng.integers(-30, 30, 500), [1.00390625, 1.01171875, 0.0, -2.5]]
    )
    seen = mathematics.evaluate("(numbers) => numbers.map(anchorhead.bfloat16)", numbers.tolist())
    ours = torch.tensor(numbers, dtype=torch.float32).to(torch.bfloat16).double().tolist()
    assert [float(one) for one in seen] == ours


SOLVE = """([text, low, high, anchors, dtype]) => {
    const { f } = anchorhead.parse(text);
    const head = anchorhead.solve(f, low, high, anchors, dtype);
    const even = Math.min(...[0.5, 1, 2, 3, 5].map((c) =>
        anchorhead.largestError(anchorhead.uniformHead(f, low, high, anchors, c, dtype), f, low, high).error));
    return [anchorhead.largestError(head, f, low, high).error, even, head.parts[0].slopes.length];
}"""


@pytest.mark.parametrize(
    ("text", "low", "high", "within"),
    [
        ("gelu", -4, 4, 1e-6),
        ("sin(5*x)*exp(-x**2)", -2, 2, 1e-5),
        ("abs", -1, 1, 0.02),
        ("where(x < 0, 0.2*x, x**2)", -1, 2, 0.02),
        ("exp", -1, 1, 1e-6),
    ],
)
def test_the_solver_is_far_better_than_even_anchors(mathematics, text, low, high, within):
    error, even, anchors = mathematics.evaluate(SOLVE, [text, low, high, 16, "float64"])
    assert anchors == 16
    assert error <= within
    assert error <= even / 4


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_solver_minds_the_type(mathematics, dtype):
    error, even, _ = mathematics.evaluate(SOLVE, ["gelu", -4, 4, 8, dtype])
    assert error <= even


def test_the_same_question_has_the_same_answer(mathematics):
    tell = "() => JSON.stringify(anchorhead.solve(anchorhead.parse('silu').f, -5, 5, 6, 'float64'))"
    assert mathematics.evaluate(tell) == mathematics.evaluate(tell)


def test_values_solved_for_given_keys_are_least_squares(mathematics):
    tell = """() => {
        const { f } = anchorhead.parse("cos");
        const head = anchorhead.uniformHead(f, -3, 3, 8, 0.8, "float64");
        const solved = anchorhead.solveValues(head, f, -3, 3);
        const errors = [head, solved].map((one) => anchorhead.largestError(one, f, -3, 3).error);
        return [errors, JSON.stringify(head.parts[0].slopes) === JSON.stringify(solved.parts[0].slopes)];
    }"""
    (before, after), same = mathematics.evaluate(tell)
    assert same
    assert after < before / 8


def test_no_error_is_drawn_that_is_larger_than_the_largest_found(mathematics):
    tell = """([text, low, high]) => {
        const { f } = anchorhead.parse(text);
        const head = anchorhead.uniformHead(f, low, high, 12, 3, "float64");
        const points = Array.from({ length: 501 }, (_, k) => low + (k * (high - low)) / 500);
        const drawn = Math.max(...anchorhead.evaluate(head, points).map((value, k) => Math.abs(value - f(points[k]))));
        return [drawn, anchorhead.largestError(head, f, low, high).error];
    }"""
    for text, low, high in [("sin(40*x)", -3, 3), ("abs(sin(17*x))", 0, 5), ("x", -1, 1), ("gelu", -10, 10)]:
        drawn, found = mathematics.evaluate(tell, [text, low, high])
        assert drawn <= found * (1 + 1e-12)
