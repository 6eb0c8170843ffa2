"""Kinks are found without being told, jumps and singularities are named with their place."""

import math

import pytest
from flint import arb, ctx

from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions.positive import surely_positive
from anchorhead.language.targets import ScalarTarget, analyse, parse

KINKS = [
    ("abs(sin(5*x))", (-2, 2), [k * math.pi / 5 for k in range(-3, 4)]),
    ("+".join(f"{(-1) ** k}*relu(x - {k})" for k in range(20)), (-1, 30), list(range(20))),
    ("abs(x)", (-1e6, 1e6), [0]),
    ("abs(x)", (-1e-6, 1e-6), [0]),
    ("abs(x - 1005.5)", (1000, 1010), [1005.5]),
    ("abs(sin(x))", (1000, 1010), [319 * math.pi, 320 * math.pi, 321 * math.pi]),
    ("sin(x)", (1000, 1010), []),
    ("abs(abs(abs(x) - 1) - 0.5)", (-2, 2), [-1.5, -1, -0.5, 0, 0.5, 1, 1.5]),
    ("clip(x, -1, 1) + relu(clip(x, -1, 1))", (-3, 3), [-1, 0, 1]),
    ("max(x**2, 1 - x, 2*x)", (-4, 4), [-(1 + math.sqrt(5)) / 2, 1 / 3, (math.sqrt(5) - 1) / 2, 2]),
    ("max(sin(x), 0) + abs(sin(2*x))", (-2, 2), [-math.pi / 2, 0, math.pi / 2]),
    ("where(x < 0, x, x**2)", (-1, 1), [0]),
    ("where(x < 0.3, 3*x, 0.9)", (0, 1), [0.3]),
    ("where(x > 1, log(x), 0)", (-1, 2), [1]),
    ("where(3*x < 1, x, 1/3)", (0, 1), [1 / 3]),
    ("max(relu(x), x, 2*x - x)", (-1, 1), [0]),
    ("abs(exp(x) - 2)", (-1, 1), [math.log(2)]),
    ("abs(x**3 - x)", (-2, 2), [-1, 0, 1]),
    ("abs(x - sin(x))", (-1, 1), [0]),
    # touched, not crossed: reported all the same
    ("abs(x**2)", (-1, 1), [0]),
    ("abs((x - 0.3)**2)", (-1, 1), [0.3]),
    ("abs((x**2 - 2)**2)", (0, 2), [math.sqrt(2)]),
    ("abs(cos(x) - 1)", (-1, 7), [0, 2 * math.pi]),
    ("sqrt(x**2)", (-1, 1), [0]),
    # singular ends
    ("sqrt(x)", (0, 1), [0]),
    ("x**0.5", (0, 1), [0]),
    ("sqrt(1 - x**2)", (-1, 1), [-1, 1]),
    ("sqrt(abs(x))", (-1, 1), [0]),
    # a kink at the end, or beyond it, is none
    ("abs(x)", (0, 1), []),
    ("abs(x)", (1e-9, 1), []),
    ("max(x, 1 - x)", (0, 1e-6), []),
    ("1/x", (1e-12, 1), []),
    ("log(x)", (1e-300, 1), []),
    ("1/(1 + exp(-x))", (-1000, 1000), []),
    ("3", (0, 1), []),
    # positive by its form, where balls are too coarse to tell
    ("abs(erfc(exp(2*x)**1.5))", (-2, 2), []),
    ("exp(exp(x**5)**0.5)**-0.3", (-2, 2), []),
    ("log(x**2 + exp(x))/(1 + abs(x))", (-100, 100), [0]),
]


@pytest.mark.parametrize(("text", "on", "kinks"), KINKS)
def test_kinks_are_found(text: str, on: tuple[float, float], kinks: list[float]) -> None:
    found = analyse(parse(text), *on)
    assert [float(kink.at.mid()) for kink in found.kinks] == pytest.approx(kinks, rel=1e-15, abs=1e-15)
    for kink in found.kinks:
        assert float(kink.at.rad()) <= 1e-30 * max(abs(float(kink.at.mid())), on[1] - on[0])
        assert float(kink.jump) < (1e-15 if "0.9" in text else 1e-25)


def test_kinks_are_located_far_below_float64() -> None:
    with ctx.workprec(200):
        (kink,) = analyse(parse("abs(exp(x) - 2)"), -1, 1).kinks
        assert kink.at.contains(arb(2).log()) or kink.at.overlaps(arb(2).log())
        assert float(kink.at.rad()) < 1e-50


def test_a_switch_that_changes_nothing_is_marked() -> None:
    found = analyse(parse("max(x**2, 1 - x, 2*x)"), -4, 4).kinks  # at 0.618 x**2 overtakes 1 - x below 2*x
    assert [kink.smooth for kink in found] == [False, False, True, False]
    assert ScalarTarget((parse("max(x**2, 0) + abs(x - 1)"),), -2, 2).kinks == (1.0,)
    assert ScalarTarget((parse("sqrt(x**2*(x + 3))"),), -1, 1).kinks == (0.0,)


def test_several_functions_have_joint_pieces() -> None:
    found = analyse([parse("abs(x)"), parse("relu(x - 1)"), parse("sin(x)")], -2, 2)
    assert [float(kink.at) for kink in found.kinks] == [0, 1]
    assert [str(one) for one in found.pieces[0].expressions] == ["-x", "0", "sin(x)"]


ERRORS = [
    ("1/x", (-1, 1), r"not defined at x = 0, where its divisor is 0"),
    ("x/(x**2 - 2)", (0, 3), r"not defined at x = 1\.41421356237, where its divisor is 0"),
    ("x**-2", (-1, 1), r"not defined at x = 0"),
    ("reciprocal(x)", (0, 1), r"not defined at x = 0"),
    ("tan(x)", (0, 3), r"not defined at x = 1\.57079632679"),
    ("exp(-1/x**2)", (-1, 1), r"not defined at x = 0"),
    ("sin(x)/x", (-1, 1), r"not defined at x = 0"),
    ("1/(x - x)", (0, 1), r"divisor is 0"),
    ("1/0*x", (0, 1), r"divisor is 0"),
    ("log(x)", (0, 1), r"not defined at x = 0, where its argument is 0"),
    ("log(x)", (-2, -1), r"not defined from x = -2 to -1, where its argument is negative"),
    ("log1p(x)", (-3, 0), r"not defined at x = -1"),
    ("sqrt(x)", (-1, 1), r"not defined from x = -1 to 0, where its argument is negative"),
    ("x**0.5", (-1, 1), r"not defined from x = -1 to 0"),
    ("x**-0.5", (0, 1), r"not defined at x = 0"),
    ("where(x < 0, 0, 1)", (-1, 1), r"not continuous at x = 0: it jumps by 1, between 0 and 1"),
    ("where(x**3 < 0.1, 0, 1)", (-1, 1), r"not continuous at x = 0\.464158883361"),
    ("where(x <= 0, 5, x)", (0, 1), r"not continuous at x = 0: it jumps by 5"),
    ("where(x**2 > 0, x, 5)", (-1, 1), r"not continuous at x = 0: it jumps by 5"),
    (
        "where(x < 1/3, x, 0.3333333333)",
        (0, 1),
        r"not continuous at x = 0\.333333333333: it jumps by 3\.33e-11",
    ),
    ("abs(x)/x", (-1, 1), r"not defined at x = 0"),
    ("exp(x)", (0, 1000), r"larger than float64 can hold at x = 1000"),
    ("exp(1000*(1 - x**2))", (-2, 2), r"larger than float64 can hold at x = 0"),
    ("abs(sin(1/x))", (-1, 1), r"not defined at x = 0"),
    ("abs(sin(1/x))", (1e-6, 1), r"too many to find.*near x = 1\.\d+e-06"),
    ("abs(sin(x))", (0, 5000), r"more than 1,000 kinks"),
    ("abs(sin(x)**2 + cos(x)**2 - 1)", (-1, 1), r"sign of .* cannot be decided"),
    ("x", (1, 1), "not a domain"),
    ("x", (0, math.inf), "not a domain"),
]


@pytest.mark.parametrize(("text", "on", "message"), ERRORS)
def test_errors_name_the_place(text: str, on: tuple[float, float], message: str) -> None:
    with pytest.raises(AnchorheadError, match=message):
        analyse(parse(text), *on)


def test_a_branch_that_is_not_taken_may_be_undefined() -> None:
    found = analyse(parse("where(x < 1, 0, log(x)) + where(x < -1, sqrt(-x) - 1, 0)"), -2, 2)
    assert [str(piece.expression) for piece in found.pieces] == ["sqrt(-x) - 1", "0", "log(x)"]


def test_two_variables_are_refused() -> None:
    with pytest.raises(AnchorheadError, match="depends on x, y"):
        analyse(parse("x*y", ("x", "y")), 0, 1)


@pytest.mark.parametrize(
    ("text", "positive"),
    [
        *((text, True) for text in (
            "exp(x)", "1 + exp(x)", "x**2 + 1", "1 + abs(x)", "2*softplus(x)/3", "max(x, 0.1)",
            "sqrt(exp(x))", "exp(x)**0.5", "erfc(x)**-3",
        )),
        *((text, False) for text in (
            "x", "x**2", "abs(x)", "sqrt(x)", "x**0.5", "exp(x) - 1", "x + exp(x)", "tanh(x)",
            "min(exp(x), x)", "exp(x)*x", "-exp(x)",
        )),
    ],
)  # fmt: skip
def test_positivity_read_off_the_tree(text: str, positive: bool) -> None:
    assert surely_positive(parse(text)) is positive
