"""Parts of a function that have no value everywhere: intervals of heads keep to where they do."""

from __future__ import annotations

import numpy as np
import pytest

import anchorhead as ah
from anchorhead.language.expressions.parser import parse
from anchorhead.proof.enclosures.ranges import moves_bounds

BOX = {"x": (-1.0, 1.0), "y": (-1.0, 1.0)}


def largest_error(net: ah.Network, f: object, low: float, high: float) -> float:
    x = np.random.default_rng(0).uniform(low, high, (2000, 2))
    return float(np.abs(np.asarray(net(x))[:, 0] - f(x[:, 0], x[:, 1])).max())  # type: ignore[operator]


def test_a_head_s_interval_is_not_rounded_to_where_its_function_is_not_defined() -> None:
    net = ah.approximate("sqrt(x + y + 2.5)", on=BOX, within=1e-3)
    assert largest_error(net, lambda x, y: np.sqrt(x + y + 2.5), -1, 1) <= net.certificate.bound <= 1e-3


@pytest.mark.parametrize("within", [0.5, 0.1])
def test_a_large_error_does_not_carry_the_next_layer_to_where_it_is_not_defined(within: float) -> None:
    net = ah.approximate("sqrt(abs(x) + abs(y) + 0.05)", on=BOX, within=within)
    exact = lambda x, y: np.sqrt(np.abs(x) + np.abs(y) + 0.05)  # noqa: E731
    assert largest_error(net, exact, -1, 1) <= net.certificate.bound <= within


def test_a_plan_foresees_it_too() -> None:
    rows = ah.plan("sqrt(abs(x) + abs(y) + 0.05)", on=BOX, within=0.2).rows
    assert any(row.placement == "solved" and row.bound <= 0.2 for row in rows)


def test_a_part_that_is_not_defined_on_its_bounds_is_named_with_them() -> None:
    with pytest.raises(ah.AnchorheadError, match=r"a part of the function, sqrt\(x \+ 1.9\), is needed for x in \[-2"):
        ah.approximate("sqrt(x + y + 1.9)", on=BOX, within=1e-2)


EDGES = (
    ("sqrt(x) + y", lambda x, y: np.sqrt(x) + y, "float64"),
    ("sqrt(x) + y", lambda x, y: np.sqrt(x) + y, "float32"),
    ("x**1.5 + y", lambda x, y: x**1.5 + y, "float32"),
    ("sqrt(x + y)", lambda x, y: np.sqrt(x + y), "float64"),
    ("sqrt(1 - x) + (2 - x - y)**0.7", lambda x, y: np.sqrt(1 - x) + (2 - x - y) ** 0.7, "float64"),
    ("sqrt(x)*y", lambda x, y: np.sqrt(x) * y, "float64"),
    ("sqrt(x**2 + y**2)", np.hypot, "float64"),
    ("sqrt(x)*y + max(x, y)*y**1.5", lambda x, y: np.sqrt(x) * y + np.maximum(x, y) * y**1.5, "float64"),
)


@pytest.mark.all_cases
@pytest.mark.slow_for("4", "5", "7")
@pytest.mark.parametrize(("text", "exact", "dtype"), EDGES, ids=range(len(EDGES)))
def test_functions_are_proven_up_to_the_edge_of_where_they_are_defined(text, exact, dtype) -> None:
    net = ah.approximate(text, on={"x": (0, 1), "y": (0, 1)}, within=2e-2, dtype=dtype)
    assert ah.check(net).line.startswith("verified")
    rng = np.random.default_rng(0)
    small = 2.0 ** -rng.uniform(0, 60, (2000, 2))
    x = np.concatenate([rng.uniform(0, 1, (2000, 2)), small, 1 - small, [[0, 0], [1, 1], [0, 1], [1, 0]]])
    x = np.clip(x.astype(dtype), 0, 1)
    found = np.abs(np.asarray(net(x))[:, 0] - exact(*x.astype(np.float64).T)).max()
    assert found <= net.certificate.bound <= 2e-2


def test_what_a_function_without_a_bounded_slope_moves_by_is_bounded() -> None:
    for text, low in (("sqrt(x)", 0.0), ("sqrt(max(x, 0))", -1e-3), ("sqrt(abs(x))", -1.0), ("abs(x)**0.3", -1.0)):
        f = parse(text)
        x = np.sort(
            np.concatenate([np.linspace(low, 1, 300), low + np.geomspace(1e-18, 1, 100), np.geomspace(1e-18, 1)])
        )
        x = x[x <= 1]
        moves, apart = (np.abs(one[:, None] - one) for one in (f.values({"x": x}), x))
        pairs = moves_bounds(f, low, 1.0)
        assert len(pairs) > 3
        assert all((moves <= steep * apart + jump + 1e-15).all() for steep, jump in pairs)
    assert moves_bounds(parse("sin(3*x)"), -1.0, 1.0)[0][1] == 0


def test_uniform_anchors_that_are_far_too_few_are_refused_at_once() -> None:
    calls: list[int] = []
    with pytest.raises(ah.AnchorheadError, match="not reached with up to 256 uniform anchors"):
        ah.head(lambda x: (calls.append(x.size), x * x)[1], on=(-1, 1), within=1e-9, placement="uniform")
    assert sum(calls) < 100_000


def test_a_jump_beyond_the_argument_s_bounds_does_not_matter() -> None:
    net = ah.approximate("where(x + y < 2.3, x + y, 9)", on=BOX, within=1e-3)
    assert largest_error(net, lambda x, y: x + y, -1, 1) <= net.certificate.bound
    with pytest.raises(ah.AnchorheadError, match=r"a part of the function, where.*is not continuous at x = 1.3"):
        ah.approximate("where(x + y < 1.3, x + y, 9)", on=BOX, within=1e-3)
