"""One interval where there is one variable, sympy's expressions, and functions of several arguments."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

import anchorhead as ah
from anchorhead.errors import AnchorheadError
from anchorhead.lab import frontier
from anchorhead.language.expressions.sympy_expressions import without_sympy
from anchorhead.language.targets import parse

X, Y, T = sympy.symbols("x y t")
BOTH = {"a": (-1, 1), "b": (-1, 1)}


@pytest.mark.slow_for("function5-u", "sin(3*x)-x", "sin(3*t)*exp(t)-t")
@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("sin(3*x)", "x"),
        ("sin(3*t)*exp(t)", "t"),
        (["sin(phi)", "phi"], "phi"),
        ("gelu", "x"),
        ("2", "x"),
        (parse("cos(u)", "u"), "u"),
        (sympy.sin(T), "t"),
        (np.sin, "x"),
    ],
)
def test_an_interval_is_for_the_only_variable(function, name):
    made = ah.approximate(function, on=(-1, 1), within=0.1)
    assert made.variables == (name,)
    told = ah.approximate(function, on={name: (-1, 1)}, within=0.1)
    s = np.linspace(-1, 1, 9)
    assert np.array_equal(made(**{name: s}), told(**{name: s}))
    assert made.certificate == told.certificate


def test_plans_and_boxes_take_one_interval_too():
    assert ah.plan("sin(t)", on=(-1, 1), within=1e-2).rows == ah.plan("sin(t)", on={"t": (-1, 1)}, within=1e-2).rows
    assert ah.approximate("sin(t)", on=ah.Box.of((-1, 1)), within=1e-2).variables == ("t",)


@pytest.mark.slow
def test_heads_take_a_variable_of_another_name():
    head = ah.head("sin(t)", on={"t": (-1, 1)}, within=1e-2)
    assert head(t=0.5) == ah.head("sin", on=(-1, 1), within=1e-2)(0.5)
    assert ah.head("gelu", on={"t": (-1, 1)}, within=1e-2).target.variable == "t"
    assert frontier("cos(t)", {"t": (-1, 1)}, most=2).name == "cos"
    with pytest.raises(AnchorheadError, match="a head is for one variable"):
        ah.head("sin(t)", on={"t": (-1, 1), "x": (0, 1)}, within=1e-2)


@pytest.mark.parametrize("make", [ah.approximate, ah.plan])
def test_one_interval_for_several_variables_is_refused_with_what_to_write(make):
    with pytest.raises(AnchorheadError, match=r"2 variables, x, y: .* on=\{'x': \(-1, 1\), 'y': \(-1, 1\)\}"):
        make("x*y", on=(-1, 1), within=1e-2)
    for on in (3, None, ([-1, 1], [2, 2]), ("0", "1"), {}):
        with pytest.raises(AnchorheadError, match="an interval for each variable"):
            make("x*y", on=on, within=1e-2)


def test_a_word_that_is_mistyped_does_not_become_a_variable():
    with pytest.raises(AnchorheadError, match="did you mean gelu"):
        ah.approximate("gellu", on=(-1, 1), within=1e-2)
    assert ah.approximate("theta", on={"theta": (-1, 1)}, within=1e-2).variables == ("theta",)


def test_sympy_is_read_as_what_it_means():
    assert without_sympy(sympy.sin(3 * X) * sympy.Max(Y, 0) / 3) is parse("sin(3*x)*max(0, y)/3", ("x", "y"))
    assert without_sympy([X + 1, "x"]) == [parse("x + 1"), "x"]
    assert without_sympy([[X], [Y]]) == [[parse("x", ("x", "y"))], [parse("y", ("x", "y"))]]
    assert without_sympy(abs(X) * 0.1) is parse("0.1*abs(x)")
    untouched = ["x", 3]
    assert without_sympy(untouched) is untouched
    net = ah.approximate(sympy.exp(X * Y), on={"x": (-1, 1), "y": (-1, 1)}, within=1e-1)
    assert abs(net(0.5, 0.5) - np.exp(0.25)) <= net.certificate.bound
    assert ah.plan(sympy.sin(X), on=(-1, 1), within=1e-1).rows
    assert ah.head(sympy.cos(X), on=(-1, 1), within=1e-1).target.name == "cos"


def test_sympy_that_is_not_ours_is_refused_with_what_to_write():
    for odd in (sympy.Piecewise((0, X < 0), (X, True)), sympy.gamma(X), sympy.Matrix([X, X]), sympy.Symbol("a b")):
        with pytest.raises(AnchorheadError, match=r"a sympy expression is read as its text.*Write it as a text"):
            ah.approximate(odd, on=(-1, 1), within=1e-1)
    with pytest.raises(AnchorheadError, match=r"means as 0.3333333333333333: write the expression as a text"):
        ah.approximate(X * sympy.Float(1 / 3), on=(-1, 1), within=1e-1)


def test_functions_of_several_arguments_are_told_to_take_an_array():
    for f in (lambda a, b: a * b, np.hypot):
        with pytest.raises(AnchorheadError, match=r"takes 2 arguments.* write lambda x: f\(x\[:, 0\], x\[:, 1\]\)"):
            ah.approximate(f, on=BOTH, within=1e-1)
        with pytest.raises(AnchorheadError, match=r"a head is for a function of one: use ah.approximate"):
            ah.head(f, on=(-1, 1), within=1e-1)
    with pytest.raises(AnchorheadError, match="on= has 2 inputs, a, b"):
        ah.approximate(lambda a, b, c: a, on=BOTH, within=1e-1)
    assert ah.approximate(lambda x, scale=2.0: scale * x[:, 0] * x[:, 1], on=BOTH, within=1e-1).variables == ("a", "b")
