"""What cancels is left out, and nothing else changes: the same values, and defined at the same places."""

import random

import numpy as np
import pytest
from flint import arb, ctx

import anchorhead as ah
from anchorhead.language.expressions import build
from anchorhead.language.expressions.named import NAMED, call, expand
from anchorhead.language.expressions.normal_form import MAX_BITS, polynomial
from anchorhead.language.expressions.parser import parse
from anchorhead.language.expressions.simplify import simplified

XYZ = ("x", "y", "z")


@pytest.mark.parametrize(
    ("text", "simpler"),
    [
        ("x - x", "0"),
        ("x*y - y*x + z", "z"),
        ("x - (x - y)", "y"),
        ("0*sin(x)", "0"),
        ("exp(x)*0 + 1", "1"),
        ("x + x", "2*x"),
        ("x*2 - x - x", "0"),
        ("x*x - x**2", "0"),
        ("relu(x) - relu(x)", "0"),
        ("(x + 1)**2 - x**2 - 2*x", "1"),
        ("(x + y)*(x - y) - x**2 + y**2", "0"),
        ("1*x/1 + 0", "x"),
        ("max(max(x, y), max(x, z), x)", "max(x, y, z)"),
        ("min(x, max(x, y))", "min(x, max(x, y))"),
        ("abs(abs(x))", "abs(x)"),
        ("sqrt(x) + sqrt(x)", "2*sqrt(x)"),
    ],
)
def test_what_cancels_is_left_out(text, simpler):
    core = parse(text, XYZ).core
    assert core is parse(simpler, XYZ).core
    assert core.core is core


@pytest.mark.parametrize("text", ["log(x) - log(x)", "0/x", "0*sqrt(x)", "x**(-1)*0", "1/x - 1/x + y", "x/x"])
def test_nothing_becomes_defined_where_it_was_not(text):
    assert parse(text, XYZ).core is expand(parse(text, XYZ))


def test_a_difference_that_is_not_defined_is_refused_as_ever():
    with pytest.raises(ah.AnchorheadError, match="log"):
        ah.head("log(x) - log(x)", on=(-1, 1), within=0.1)


def drawn(rng, depth):
    """A random expression in which terms are likely to meet again."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice([*map(build.variable, XYZ), build.number(rng.choice([0, 1, -1, 2, 0.1])), build.PI])
    args = [drawn(rng, depth - 1) for _ in range(rng.choice([2, 2, 3]))]
    match rng.choice(["add", "add", "sub", "mul", "neg", "power", "max", "min", "abs", "sin", "where"]):
        case "sub":
            return build.sub(*args[:2])
        case "neg" | "abs" | "sin" as op:
            return build.make(op, (args[0],))
        case "power":
            return build.integer_power(args[0], rng.choice([0, 1, 2, 3]))
        case "where":
            return build.where("<", args[0], args[1], args[1], args[0])
        case op:
            return build.make(op, tuple(args))


def test_values_stay_the_same():
    rng, fewer = random.Random(0), 0
    for _ in range(300):
        whole = drawn(rng, 4)
        simpler = simplified(whole)
        fewer += simpler is not whole
        at = {name: arb(rng.uniform(-2, 2)) for name in XYZ}
        with ctx.workprec(200):
            left, right = whole.ball(at), simpler.ball(at)
            assert left.overlaps(right), f"{whole} and {simpler}"
    assert fewer > 50


def test_named_functions_are_what_they_were():
    """At most a factor of 1 is left out: what the tables of heads were proven of."""
    x = np.linspace(-3, 3, 101)
    for name, named in NAMED.items():
        more = [build.number(k + 1.0) for k, (_, default) in enumerate(named.parameters) if default is None]
        one = call(name, (build.variable("x"), *more))
        whole = expand(one)
        if name not in ("elu", "celu"):
            assert one.core is whole
        assert np.array_equal(one.values({"x": x}), whole.values({"x": x}), equal_nan=True)


def test_powers_of_powers_stay_short():
    deep = build.variable("x")
    for _ in range(12):
        deep = build.integer_power(build.mul(build.number(0.1), deep), 8)
    assert max(c.height_bits() for c in polynomial(deep, {}).values()) <= MAX_BITS
