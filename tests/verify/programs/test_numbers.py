"""Ranges and slopes hold what functions are at points, and nothing is known where a function may be undefined."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any

import pytest
from flint import arb

import anchorhead as ah
from anchorhead.network import Network
from anchorhead.network.files import content_of
from anchorhead.verify import verify
from anchorhead.verify.balls import precision
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.programs.expressions import Expression, read_expression
from anchorhead.verify.programs.numbers import Range
from anchorhead.verify.programs.slopes import slopes_of

from ..tampering.file import File, header_of

X, Y = ["variable", "x"], ["variable", "y"]
Nodes = list[list[Any]]
OF_ONE = (
    "exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid", "softplus", "abs", "neg", "square", "reciprocal", "expm1",
    "log1p", "erf", "erfc", "relu", "tan", "gelu", "mish", "selu", "softsign", "hardswish",
)  # fmt: skip
WHOLE, EXPONENTS, NUMBERS = (-3, -2, -1, 0, 1, 2, 3, 8), (0.5, 1.5, 2.0, 1 / 3, -0.5, 100.0), (0.0, 1.0, -1.0, 0.5, 3.0)
LOW, WIDTHS = (0.0, -1.0, 1.0, 0.1, 1e-6, -2.0, -0.5), (0.0, 0.5, 1.0, 2.0, 1e-3, 10.0)


def grown(rng: random.Random, nodes: Nodes, depth: int) -> int:
    """The place of a random expression of x and y that was added to the nodes."""
    choice = rng.random() if depth else 0.0
    if choice < 0.15:
        nodes.append(rng.choice([X, Y, X, Y, ["number", rng.choice(NUMBERS)]]))
    elif choice < 0.55:
        nodes.append([rng.choice(OF_ONE), grown(rng, nodes, depth - 1)])
    elif choice < 0.85:
        both = [grown(rng, nodes, depth - 1) for _ in range(2)]
        nodes.append([rng.choice(["add", "mul", "div", "max", "min"]), *both])
    elif choice < 0.9:
        nodes.append(["integer_power", rng.choice(WHOLE), grown(rng, nodes, depth - 1)])
    elif choice < 0.95:
        base = grown(rng, nodes, depth - 1)
        nodes += [["number", rng.choice(EXPONENTS)], ["power", base, len(nodes)]]
    else:
        nodes.append(["where", rng.choice(["<", "<="]), *(grown(rng, nodes, depth - 1) for _ in range(4))])
    return len(nodes) - 1


def between(rng: random.Random, low: float, high: float) -> float:
    return rng.choice([low, high, rng.uniform(low, high), max(low, min(high, 0.0))])


def at(function: Expression, point: list[float]) -> arb:
    return function.point(dict(zip("xy", map(arb, point), strict=True)))


@pytest.mark.parametrize("seed", range(4))
def test_random_functions_stay_in_their_ranges(seed: int) -> None:
    rng, known = random.Random(seed), 0
    for _ in range(250):
        nodes: Nodes = []
        grown(rng, nodes, rng.choice([1, 2, 3]))
        function, low = read_expression({"nodes": nodes}), [rng.choice(LOW) for _ in range(2)]
        high = [end + rng.choice(WIDTHS) for end in low]
        with precision():
            values, slopes = slopes_of(function, "xy", [Range(arb(a), arb(b)) for a, b in zip(low, high, strict=True)])
            known += values.known
            for _ in range(6 * values.known):
                p = [between(rng, a, b) for a, b in zip(low, high, strict=True)]
                j, q = rng.randrange(2), list(p)
                q[j] = between(rng, low[j], high[j])
                ends = [at(function, one) for one in (p, q)]
                assert ends[0].is_finite(), nodes
                assert values.low <= ends[0].upper(), nodes
                assert values.high >= ends[0].lower(), nodes
                if p[j] != q[j] and slopes[j].is_finite():
                    assert slopes[j].overlaps((ends[1] - ends[0]) / (arb(q[j]) - arb(p[j]))), nodes
    assert known > 60


UNDEFINED: dict[str, tuple[Nodes, tuple[float, float]]] = {
    "a root": ([X, ["sqrt", 0]], (-1.0, 1.0)),
    "nearly nowhere": ([X, ["sqrt", 0]], (-1e-300, 1.0)),
    "a power": ([X, ["number", 0.5], ["power", 0, 1]], (-1.0, 1.0)),
    "nothing of a root": ([X, ["sqrt", 0], ["number", 0.0], ["mul", 1, 2]], (-1.0, 1.0)),
    "tanh of a logarithm": ([X, ["log", 0], ["tanh", 1]], (-1.0, 1.0)),
    "a logarithm, clipped": ([X, ["log", 0], ["number", 1.0], ["max", 1, 2], ["min", 3, 2]], (-1.0, 1.0)),
    "a quotient, clipped": ([X, ["reciprocal", 0], ["number", 1.0], ["max", 1, 2], ["min", 3, 2]], (-1.0, 1.0)),
    "a switch": ([X, ["log", 0], ["number", 1.0], ["where", "<", 1, 2, 2, 2]], (-1.0, 1.0)),
}


@pytest.mark.parametrize("name", UNDEFINED)
def test_nothing_is_known_where_a_function_may_be_undefined(name: str) -> None:
    nodes, (low, high) = UNDEFINED[name]
    with precision():
        assert not read_expression({"nodes": nodes}).range({"x": Range(arb(low), arb(high))}).known


def test_ends_at_0_are_defined() -> None:
    for nodes in ([X, Y, ["mul", 0, 1], ["sqrt", 2]], [X, Y, ["mul", 0, 1], ["number", 0.3], ["power", 2, 3]]):
        side = Range(arb(0), arb(0.3))
        with precision():
            found = read_expression({"nodes": nodes}).range({"x": side, "y": side})
        assert found.known
        assert found.low == 0


def test_a_parameter_that_varies_is_refused() -> None:
    for op, more in (("leaky_relu", [0]), ("elu", [0]), ("celu", [0]), ("clip", [0, 0]), ("soft_threshold", [0])):
        with pytest.raises(NotVerified, match="no constant"):
            read_expression({"nodes": [X, [op, 0, *more]]})


MORE: dict[str, Nodes] = {
    "a power of what is negative": [["mul", 0, 1], ["square", -1], ["number", -0.7], ["mul", -2, -1],
                                    ["number", 100.0], ["power", -2, -1], ["number", 1e30], ["mul", -2, -1]],
    "a power that is undefined": [["mul", 0, 1], ["square", -1], ["number", -0.7], ["mul", -2, -1],
                                  ["number", 0.5], ["power", -2, -1], ["number", 1e-3], ["mul", -2, -1]],
    "nothing of a root": [["mul", 0, 1], ["sqrt", -1], ["number", 0.0], ["mul", -2, -1]],
}  # fmt: skip


@cache
def _built() -> Network:
    return ah.approximate("exp(sin(x*y) + x)", on={"x": (-1, 1), "y": (-1, 1)}, within=1e-2, dtype="float32")


@pytest.mark.parametrize("name", MORE)
def test_a_program_with_more_in_it_is_refused(name: str) -> None:
    """Terms of x and y (0 and 1) and of nodes before them (-1, -2) that are no more than nothing, or undefined."""
    text, arrays = header_of(content_of(_built()))
    file = File(json.loads(text), arrays)
    function = file.header["program"]["steps"][-1]["functions"][0]
    nodes = function["nodes"]
    last, inputs = len(nodes) - 1, [nodes.index(one) for one in (X, Y)]
    assert verify(file.content()).verified
    for op, *rest in MORE[name]:
        data = rest[:1] if op == "number" else []
        places = [] if data else [inputs[one] if one >= 0 else len(nodes) + one for one in rest]
        nodes.append([op, *data, *places])
    nodes.append(["add", last, len(nodes) - 1])
    assert not verify(file.content()).verified
