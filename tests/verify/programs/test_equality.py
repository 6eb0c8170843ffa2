"""Programs that are nearly the same are never taken for the same, and small ones never for a long time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx

from anchorhead.constructions.passes.forms.roots import ASINH as AS_WRITTEN
from anchorhead.language.expressions.canonical import to_json
from anchorhead.verify.equality import polynomials
from anchorhead.verify.equality.compare import difference
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.programs.expressions import read_expression
from anchorhead.verify.programs.program import Affine, Apply, Attend, Input, Normalise, Program

Nodes = list[list[Any]]
X, Y = ["variable", "x"], ["variable", "y"]
SLIGHT = 1e-13
NEAR: Nodes = [X, Y, ["number", SLIGHT - 1], ["mul", 2, 1], ["add", 0, 1, 3]]
"""x + y + (1e-13 - 1) y: what is nearly x."""
ROOT: Nodes = [X, ["number", 1.0], ["integer_power", 2, 0], ["add", 1, 2], ["sqrt", 3]]
"""sqrt(1 + x^2) is node 4."""
ASINH: Nodes = to_json(AS_WRITTEN)["nodes"]


def program(nodes: Nodes) -> Program:
    """A function of x and y."""
    each = [Affine((0,), (row[None],), (None,), np.zeros((1, 1)), None) for row in np.eye(2)]
    which = np.array([0])
    steps = (
        Input(("x", "y"), 1, None, None, None),
        *each,
        Apply((read_expression({"nodes": nodes}),), which, (1, 2), ("x", "y")),
    )
    return Program(steps, ("",) * 4, (3,), (), False)


def bound(one: Nodes, other: Nodes, x: tuple[float, float], y: tuple[float, float] = (0.0, 1.0)) -> float:
    ends = (np.array([end]) for end in zip(x, y, strict=True))
    return float(difference(program(one), program(other), *ends).max())


def apart(one: Nodes, other: Nodes, x: float, y: float = 1.0) -> arb:
    """How far they are apart at a point, at least."""
    before, ctx.prec = ctx.prec, 400
    try:
        values = [read_expression({"nodes": nodes}).ball({"x": arb(x), "y": arb(y)}) for nodes in (one, other)]
        return abs(values[0] - values[1]).lower()
    finally:
        ctx.prec = before


def of_near(*nodes: list[Any]) -> tuple[Nodes, Nodes]:
    """Functions of what is nearly x and of x, which is node 4 in both."""
    return [*NEAR, *nodes], [X, Y, X, X, ["add", 0], *nodes]


def of_stretched(*nodes: list[Any]) -> tuple[Nodes, Nodes]:
    """Functions of (1 + 1e-13) x + y and of x + y, which is node 4 in both."""
    return [X, Y, ["number", 1 + SLIGHT], ["mul", 2, 0], ["add", 3, 1], *nodes], [X, Y, X, X, ["add", 0, 1], *nodes]


def twice(half: bool) -> Nodes:
    """log(a + a + x) - log(a - x) with a = 1 + sqrt(1 + x^2), or half of it."""
    a = [["number", 0.5 if half else 1.0], ["mul", 7, 6]]
    return [
        *ROOT, ["neg", 0], ["add", 1, 4], *a, ["add", 8, 8, 0], ["add", 8, 5], ["log", 9], ["log", 10], ["neg", 12],
        ["add", 11, 13],
    ]  # fmt: skip


PAIRS: dict[str, tuple[Nodes, Nodes, tuple[float, float], float]] = {
    "a sum": (*of_near(), (1.0, 2.0), 1.0),
    "a product": (*of_near(["mul", 4, 4]), (1.0, 2.0), 2.0),
    "a reciprocal": (*of_near(["reciprocal", 4]), (1.0, 2.0), 1.0),
    "a logarithm": (*of_near(["log", 4]), (1.0, 2.0), 1.0),
    "an exponential": (*of_near(["exp", 4]), (1.0, 2.0), 2.0),
    "a sine": (*of_near(["sin", 4]), (-1.0, 1.0), 0.0),
    "a maximum": (*of_near(["max", 4, 1]), (0.0, 2.0), 2.0),
    "a maximum with a number": (*of_near(["number", 1.5], ["max", 4, 5]), (0.0, 2.0), 2.0),
    "an absolute value": (*of_near(["abs", 4]), (-1.0, 1.0), 1.0),
    "a root": (*of_near(["sqrt", 4]), (0.0, 1.0), 1.0),
    "an exponential, stretched": (*of_stretched(["exp", 4]), (1.0, 2.0), 2.0),
    "a sine, stretched": (*of_stretched(["sin", 4]), (-1.0, 1.0), 1.0),
    "a root of a sum": (*of_stretched(["sqrt", 4]), (0.0, 0.1), 0.1),
    "a root and what cancels with it": (*of_stretched(
        ["integer_power", 2, 4], ["number", 1.0], ["add", 5, 6], ["sqrt", 7], ["neg", 4], ["add", 8, 9],
    ), (1.0, 3.0), 3.0),
    "an exponential that is a sum": (*of_near(
        ["add", 0, 1], ["log", 5], ["neg", 0], ["add", 6, 4, 7], ["exp", 8],
    ), (1.0, 2.0), 2.0),
    "the reciprocal of a negative sum": (
        [X, Y, ["add", 0, 1], ["integer_power", -1, 2]], [X, Y, ["add", 0, 1], ["abs", 2], ["integer_power", -1, 3]],
        (-3.0, -2.0), -2.0,
    ),
    "a positive exponent that no float64 is": (
        [X, ["number", 2.0**53], ["number", 1.0], ["add", 1, 2], ["power", 0, 3]],
        [X, ["number", 2.0**53], ["power", 0, 1]], (1 - 1e-16, 1 + 1e-15), 1 - 1e-16,
    ),
    "a root of another square": (
        [X, Y, ["integer_power", 2, 0], ["add", 2, 1], ["sqrt", 3], ["neg", 0], ["add", 4, 5]],
        [X, Y, ["integer_power", 2, 0], ["add", 2, 1], ["sqrt", 3], ["add", 4, 0]], (0.5, 2.0), 2.0,
    ),
    "a maximum of a negative root": (
        [*ROOT, ["neg", 4], ["add", 5, 0], ["number", -0.7], ["max", 6, 7]], [["number", -0.7]], (0.5, 2.0), 2.0,
    ),
    "a large power of a sum": (*of_stretched(["integer_power", 9, 4]), (-2.0, 1.0), 1.0),
    "nearly asinh": ([[op, 1.0 + SLIGHT, *rest[1:]] if op == "number" else [op, *rest] for op, *rest in ASINH], ASINH,
                     (-1.0, 0.4), 0.4),
    "the sign of an absolute value": ([X, ["abs", 0]], [X], (-1.0, 1.0), -1.0),
    "the root of a square": ([X, ["integer_power", 2, 0], ["sqrt", 1]], [X], (-1.0, 1.0), -1.0),
    "the root of a negative square": ([X, ["integer_power", 2, 0], ["sqrt", 1]], [X], (-2.0, -1.0), -1.5),
    "one side of a maximum": ([X, Y, ["max", 0, 1]], [X], (0.0, 2.0), 0.0),
    "an odd power of a negative number": (
        [X, ["integer_power", 9, 0]], [X, ["abs", 0], ["integer_power", 9, 1]], (-2.0, -1.0), -2.0,
    ),
    "an exponent that moves": (
        [X, Y, ["number", SLIGHT - 1], ["mul", 2, 1], ["number", 0.5], ["add", 4, 1, 3], ["power", 0, 5]],
        [X, ["sqrt", 0]], (0.0, 1e20), 1e20,
    ),
    "an exponent that no float64 is": (
        [X, ["number", -(2.0**53)], ["number", -1.0], ["add", 1, 2], ["power", 0, 3]],
        [X, ["number", -(2.0**53)], ["power", 0, 1]], (1 - 1e-16, 1 + 1e-15), 1 - 1e-16,
    ),
    "a switch that moves": (
        [X, ["number", SLIGHT], ["number", 0.0], ["where", "<", 0, 1, 0, 1]],
        [X, ["number", SLIGHT], ["number", 0.0], ["where", "<", 0, 2, 0, 1]], (-1.0, 1.0), 0.0,
    ),
    "half of asinh, added twice": (twice(True), ASINH, (-1.0, 0.4), 0.4),
    "asinh, added twice": (twice(False), ASINH, (-1.0, 0.4), 0.4),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_what_differs_is_said_to_differ(name: str) -> None:
    one, other, x, where = PAIRS[name]
    for pair in ((one, other), (other, one)):
        found = apart(*pair, where)
        assert found > 0
        try:
            assert arb(bound(*pair, x)) >= found
        except NotVerified:
            continue


@pytest.mark.parametrize("name", ["log", "sqrt", "reciprocal"])
@pytest.mark.parametrize("x", [(-1.0, 1.0), (-1.0, -0.5)])
def test_what_is_not_defined_everywhere_is_refused(name: str, x: tuple[float, float]) -> None:
    if name == "reciprocal" and x[1] < 0:
        assert bound([X, [name, 0]], [X, ["integer_power", -1, 0]], x) < 1e-90
        return
    with pytest.raises(NotVerified):
        bound([X, [name, 0]], [X, [name, 0]], x)


def test_a_logarithm_of_what_is_negative_inside_is_refused() -> None:
    """x^2 - x + c on [-1, 1]: its least is c - 1/4."""
    for c in (0.2, 0.3):
        nodes: Nodes = [X, ["integer_power", 2, 0], ["neg", 0], ["number", c], ["add", 1, 2, 3], ["log", 4]]
        if c > 0.25:
            assert bound(nodes, nodes, (-1.0, 1.0)) < 1e-90
        else:
            with pytest.raises(NotVerified):
                bound(nodes, nodes, (-1.0, 1.0))


def test_the_reciprocal_of_a_square_that_may_be_0_is_refused() -> None:
    for nodes in ([X, ["integer_power", -2, 0]], [X, ["integer_power", 2, 0], ["reciprocal", 1]]):
        with pytest.raises(NotVerified):
            bound(nodes, nodes, (-1.0, 1.0))


def test_two_logarithms_are_seen_to_be_asinh() -> None:
    log: Nodes = [*ROOT, ["add", 4, 0], ["log", 5]]
    assert bound(ASINH, log, (-1.0, 0.4)) < 1e-50


def test_asinh_of_what_is_nearly_the_same_differs() -> None:
    def stretched(by: float) -> Program:
        sums = Affine((0,), (np.array([[by, 1.0]]),), (None,), np.zeros((1, 1)), None)
        asinh = Apply((read_expression({"nodes": ASINH}),), np.array([0]), (1,), ("x",))
        return Program((Input(("x", "y"), 1, None, None, None), sums, asinh), ("",) * 3, (2,), (), False)

    low, high = np.array([[-1.0, 0.0]]), np.array([[3.0, 1.0]])
    found = difference(stretched(1 + SLIGHT), stretched(1.0), low, high).max()
    assert 1 / math.sqrt(2) * SLIGHT <= found < 10 * SLIGHT  # what it is at x = 1, y = 0


def layered(tail: Nodes, **other: Any) -> Program:
    """tanh of two maps of x and y, a map of these to v, and a function of v; what is `other` than usual."""
    weight, radius = other.get("weight", np.array([[1.0, 2.0], [0.5, -1.0]])), other.get("radius")
    before = other.get("before", 3)
    functions = tuple(read_expression({"nodes": [X, [name, 0]]}) for name in ("tanh", "sin"))
    steps = (
        Input(("x", "y"), 1, None, None, None),
        Affine((0,), (weight,), (radius,), np.full((1, 2), other.get("bias", 0.0)), None),
        Apply(functions, other.get("which", np.array([0, 1])), (other.get("of", 1),), ("x",)),
        Affine((2,), (np.array([[1.0, 2.0]]),), (None,), np.zeros((1, 1)), None),
        Affine((before,), (np.ones((1, 1 if before == 3 else 2)),), (None,), np.zeros((1, 1)), None),
        Apply((read_expression({"nodes": tail}),), np.array([0]), (4,), ("x",)),
    )  # fmt: skip
    return Program(steps, ("",) * 6, (5,), (), False)


SQUARE: Nodes = [X, ["integer_power", 2, 0]]
OTHERWISE: dict[str, Program] = {
    "a weight": layered(SQUARE, weight=np.array([[1.0, 2.0], [0.5, -0.9]])),
    "a bias": layered(SQUARE, bias=0.1),
    "a function": layered(SQUARE, which=np.array([0, 0])),
    "a number within a radius": layered(SQUARE, radius=np.full((2, 2), 0.1)),
    "another quantity": layered(SQUARE, of=0),
    "what comes before": layered(SQUARE, before=2),
    "one end": layered([X, ["number", 2.0], ["min", 0, 1], ["integer_power", 2, 2]]),
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_programs_that_begin_alike_are_compared_from_where_they_part(name: str) -> None:
    """v is 2.9 somewhere; tampered with, the programs are 0.1 apart and more."""
    low, high, usual = np.full((1, 2), -1.0), np.ones((1, 2)), layered(SQUARE)
    assert difference(usual, layered([X, ["mul", 0, 0]]), low, high).max() < 1e-60
    for pair in ((usual, OTHERWISE[name]), (OTHERWISE[name], usual)):
        assert difference(*pair, low, high).max() > 0.1


def test_what_comes_before_may_be_large() -> None:
    """Written out, tanh of 300 sums of 300 inputs, squared in two ways, has more terms than are looked at."""
    size, rng = 300, np.random.default_rng(0)

    def large(tail: Nodes) -> Program:
        maps = [Affine((n,), (rng.normal(size=shape),), (None,), np.zeros((1, shape[0])), None)
                for n, shape in ((0, (size, size)), (2, (1, size)))]  # fmt: skip
        tanh = Apply((read_expression({"nodes": [X, ["tanh", 0]]}),), np.zeros(size, int), (1,), ("x",))
        last = Apply((read_expression({"nodes": tail}),), np.array([0]), (3,), ("x",))
        given = Input(tuple(f"x{n}" for n in range(size)), 1, None, None, None)
        return Program((given, maps[0], tanh, maps[1], last), ("",) * 5, (4,), (), False)

    one, rng = large(SQUARE), np.random.default_rng(0)
    low, high = np.full((1, size), -1.0), np.ones((1, size))
    assert difference(one, large([X, ["mul", 0, 0]]), low, high).max() < 1e-60


@pytest.mark.parametrize("where", ["weight", "bias"])
def test_numbers_that_may_be_elsewhere_in_a_radius_are_not_taken_as_they_are_written(where: str) -> None:
    given = Input(("x",), 1, None, None, None)
    one, half, zero = np.ones((1, 1)), np.full((1, 1), 0.5), np.zeros((1, 1))
    radii = (half, None) if where == "weight" else (None, half)
    plain, meant = (
        Program((given, Affine((0,), (one,), (a,), zero, b)), ("", ""), (1,), (), False)
        for a, b in ((None, None), radii)
    )
    assert difference(meant, plain, -one, one).max() >= 0.5


@pytest.mark.parametrize(
    "step", [Attend(0, 0, None, None), Attend(0, None, None, "causal"), Normalise(0, "batch", 0.1)], ids=str
)
def test_steps_without_a_meaning_are_refused(step: object) -> None:
    one = Program((Input(("x", "y"), 1, None, None, None), step), ("", ""), (1,), (), False)
    with pytest.raises(NotVerified):
        difference(one, one, np.zeros((1, 2)), np.ones((1, 2)))


def folded(depth: int) -> Nodes:
    nodes: Nodes = [X, Y]
    for _ in range(depth):
        last = len(nodes) - 1
        nodes += [["add", last, 0], ["neg", 1], ["max", last + 1, last + 2]]
    return nodes


def nested(depth: int) -> Nodes:
    nodes: Nodes = [X, Y]
    for _ in range(depth):
        last = len(nodes) - 1
        nodes += [["sin", last], ["cos", last], ["add", last + 1, last + 2, 0], ["mul", last + 3, last + 3]]
    return nodes


LONG = {
    "maxima": folded(600),
    "sines": nested(400),
    "a power": [X, Y, ["add", 0, 1], *([["integer_power", 8, place] for place in range(2, 60)])],
}


@pytest.mark.parametrize("name", LONG)
def test_small_files_are_refused_before_they_take_long(name: str) -> None:
    last = len(LONG[name]) - 1
    otherwise: Nodes = [*LONG[name], ["neg", last], ["neg", last + 1]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(polynomials, "MAX_WORK", 5_000)
        with pytest.raises(NotVerified, match="too long to compare in 5,000 steps"):
            bound(LONG[name], otherwise, (-1.0, 1.0))


def test_a_large_exponent_takes_no_time() -> None:
    nodes: Nodes = [X, ["number", 1e15], ["power", 0, 1]]
    assert bound(nodes, nodes, (-1.0, 1.0)) == 5e-324
