"""Expressions that are sums of functions of one linear combination are found to be, and are the same function."""

import numpy as np
import pytest

from anchorhead.language.analysis.ridges import split_constant, structure
from anchorhead.language.expressions.parser import parse
from anchorhead.language.targets.layered import ridge_network

SUMS = [
    "x*y + sin(z)",
    "max(x, z) - min(y, 2*z)",
    "sin(x + 2*y)*exp(-(x + 2*y)**2) + abs(x - y)/3 + z**2",
    "(x - y)*(x + 2*y)*0.5 + z",
    "gelu(x + y) - clip(x - y, 0, 1) + 2*z + 1",
    "3*(x + y)**3/7 - relu(0.5*z - x)",
    "-(x*z)/4 + 5",
    "2*x + 3*y - z + 1",
    "tanh(x/3 + y) + sin(2*x/3 + 2*y + 1/7) - z/3",
    "exp(-(pi*x + y)**2) + cos(sqrt(2)*y - z)",
]
NO_SUMS = ["sin(x)*cos(y)", "exp(x*y)", "max(x, y, z)", "tanh(x/3 + y)*sin(x)", "x*y*z"]


def values(expression, names, x):
    return expression.values({name: x[:, i] for i, name in enumerate(names) if name in expression.variables})


@pytest.mark.parametrize("text", SUMS)
def test_a_sum_of_ridges_is_the_network_that_is_made_of_it(text):
    names = ("x", "y", "z")
    expression = parse(text, names)
    found = structure(expression, names)
    assert not found.left_over
    network = ridge_network([found], names, None, text)
    x = np.random.default_rng(0).uniform(-2, 2, (400, 3))
    exact = values(expression, names, x)
    assert np.abs(network.values(x)[:, 0] - exact).max() <= 1e-13 * (1 + np.abs(exact).max())


@pytest.mark.parametrize("text", NO_SUMS)
def test_what_is_no_such_sum_is_left_over_whole(text):
    names = ("x", "y", "z")
    found = structure(parse(text, names), names)
    assert found.left_over
    x = np.random.default_rng(0).uniform(0.1, 2, (50, 3))
    parts = [r.function.values({"x": x @ r.weight}) for r in found.ridges]
    parts += [values(term, names, x) for term in found.left_over]
    exact = values(parse(text, names), names, x)
    assert np.abs(sum(parts) - exact).max() <= 1e-13 * np.abs(exact).max()


def test_outputs_share_neurons_and_affine_parts_are_one_neuron():
    names = ("x", "y")
    both = [parse("sin(x + y) + 2*x - y", names), parse("3*sin(x + y)", names)]
    network = ridge_network([structure(one, names) for one in both], names, None, "")
    assert network.hidden[0].neurons == 2
    assert network.readout.weight[:, 0].tolist() == [1.0, 3.0]


def test_constant_factors_are_taken_out_exactly():
    assert split_constant(parse("-(0.5*0.25*x**2)")) == (-0.125, parse("square(x)"))
    assert split_constant(parse("abs(x)/3")) == (1.0, parse("abs(x)/3"))
