"""Expressions are taken apart into neurons and grids, which add up to the same function."""

import numpy as np
import pytest
from flint import arb, ctx

from anchorhead.errors import AnchorheadError
from anchorhead.language.analysis.summands import parts_of, summands
from anchorhead.language.expressions.normal_form import depends_on
from anchorhead.language.expressions.parser import parse
from anchorhead.language.several import SeveralVariables

NAMES = tuple("xyzuvw")
LAYERS = "layers"
TEXTS = {  # outputs, neurons of one layer (None: none, LAYERS: what the compiler takes apart), variables of the grids
    "ridges": (["x*y + sin(z)"], [3], []),
    "a grid and a neuron": (["exp(x*y) + sin(z)"], [1], ["xy"]),
    "five variables": (["sin(x*y) + exp(z*w) + relu(u - x)"], [1], ["xy", "zw"]),
    "max of three": (["max(x, y, z)"], LAYERS, []),
    "nested switches": (["max(x, min(y, z), abs(x - y)) + x/3 + pi*y"], LAYERS, []),
    "thirds and pi inside": (["tanh(x/3 + y)*exp(-(x/3 + y)**2) + sin(pi*x + y + sqrt(2))"], [2], []),
    "thirds outside": (["x/3 + y/7 + 0.1*z + 0.2*z", "abs(x - y)/3 + 1/3"], [2], []),
    "a product of five": (["x*y*z*u*v"], LAYERS, []),
    "a smooth function of three": (["exp(x*y*z)"], LAYERS, []),
    "a kink in a product": (["abs(x)*y + exp(x*y) + x*y + 3"], LAYERS, ["xy"]),
    "smaller grids by multiplying out": (["sin(x)*(cos(y) + cos(z))"], None, ["xy", "xz"]),
    "terms among others' variables": (["exp(x*y)", "x + y", "y*sin(x*y)", "2"], None, ["xy"]),
    "what cancels": (["sin(x*y) - sin(x*y) + 2*z"], [1], []),
    "a constant": (["3"], [1], []),
    "quotients of many": (["1/(1 + x*x + y*y + z*z + u*u + v*v) + max(x*y, z)"], LAYERS, []),
}


def values(expression, x):
    return expression.values({name: x[:, i] for i, name in enumerate(NAMES)}) * np.ones(len(x))


@pytest.mark.parametrize("name", TEXTS)
def test_the_parts_are_found_and_add_up_to_the_expressions(name):
    texts, neurons, grids = TEXTS[name]
    expressions = [parse(text, NAMES) for text in texts]
    parts = parts_of(expressions, NAMES)
    deep = any(term.becomes == "layers" for term in parts.terms)
    found = None if parts.network is None else [layer.neurons for layer in parts.network.hidden]
    assert (LAYERS if deep and found is None else found) == neurons
    assert ["".join(sorted(grid.variables)) for grid in parts.grids] == ["".join(sorted(grid)) for grid in grids]
    x = np.random.default_rng(0).uniform(0.2, 1.3, (300, len(NAMES)))
    total = np.zeros((len(x), len(texts))) if parts.network is None else parts.network.values(x)
    if deep:
        for term in parts.terms:
            total[:, term.output] += values(term.expression, x) * (term.becomes != "grid")
    for grid in parts.grids:
        total = total + np.stack([values(one, x) for one in grid.expressions], axis=1)
    exact = np.stack([values(one, x) for one in expressions], axis=1)
    assert np.abs(total - exact).max() <= 1e-13


def test_every_term_says_what_it_becomes():
    parts = parts_of([parse("exp(x*y) + sin(z) + x*u + max(x, u, z) + 2*w + 1", NAMES)], NAMES)
    assert dict(parts.found()) == {
        "exp(x*y)": "a grid of x, y",
        "sin(z)": "a function of one variable",
        "x*u": "2 functions of one linear combination each",
        "max(x, u, z)": "neurons in layers",
        "2*w": "a linear combination",
        "1": "a grid of x, y",
    }


def test_switches_that_the_box_decides_are_no_kinks():
    expression = parse("max(x, 0)*exp(y*abs(x - 9))", NAMES)
    assert parts_of([expression], NAMES).grids == ()
    low, high = [1.0] * len(NAMES), [2.0] * len(NAMES)
    (grid,) = parts_of([expression], NAMES, ends=(low, high)).grids
    assert grid.variables == ("x", "y")
    assert not grid.expressions[0].has_switches


def test_weights_that_are_no_floats_have_errors_that_hold_them():
    network = parts_of([parse("sin(x/3 + pi*y) + z/7 + 1/3", NAMES)], NAMES).network
    assert network is not None
    with ctx.workprec(200):
        for affine, row, exact in (
            (network.hidden[0].affine, 0, (arb(1) / 3, arb.pi(), arb(0))),
            (network.readout, 0, (arb(1), arb(1) / 7)),
        ):
            weight, error = affine.weight[row], affine.errors[0][row]
            assert all(abs(number - float(w)) <= float(e) for number, w, e in zip(exact, weight, error, strict=False))
        assert 0 < network.hidden[0].affine.errors[0].max() < 1e-15
        assert abs(arb(1) / 3 - float(network.readout.bias[0])) <= float(network.readout.errors[1][0])


def test_terms_stay_apart_on_request():
    expressions = [parse("exp(x*y) + sin(x*y*z)", NAMES)]
    parts = parts_of(expressions, NAMES, join=False, in_a_grid=3)
    assert [grid.variables for grid in parts.grids] == [("x", "y"), ("x", "y", "z")]


def test_what_nothing_can_be_made_of_is_refused_with_its_variables():
    with pytest.raises(AnchorheadError, match="at most 4 variables"):
        parts_of([parse("where(x < y, z, u*v)", NAMES)], NAMES)


def test_sums_of_floats_that_no_float_is_are_not_rounded():
    assert [str(term) for term in summands(parse("0.1*x + 0.2*x", NAMES))] == ["0.1*x", "0.2*x"]
    assert [str(term) for term in summands(parse("0.5*x + 0.25*x - y + y", NAMES))] == ["0.75*x"]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("x + (y + x)**2 - y**2 - 2*x*y", {"x"}),
        ("sin(x + y - y)*exp(z - z)", {"x"}),
        ("0*log(y) + x", {"x"}),
        ("x/y*y", {"x", "y"}),
        ("sin(y)**2 + cos(y)**2", {"y"}),
        ("(x + y)/3 - y/3", {"x"}),
    ],
)
def test_what_an_expression_depends_on_is_seen_through_sums_and_products(text, left):
    assert depends_on(parse(text, NAMES)) == left


def test_tokens_divide_variables_and_functions():
    with pytest.raises(AnchorheadError, match="divides both"):
        SeveralVariables((parse("x", NAMES),), ("x",), (0.0,), (1.0,), 2)
