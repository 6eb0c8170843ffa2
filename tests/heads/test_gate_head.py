"""Gates that ship with the package: their bounds hold, the smallest is chosen, and wrong requests are refused."""

import numpy as np
import pytest

from anchorhead.constructions.single.gate_head import gate_head
from anchorhead.errors import AnchorheadError
from anchorhead.heads.arithmetic import arithmetic_of
from anchorhead.heads.tables.gate_table import NAMES, gate_frontiers
from tests.heads.gate_cases import computed, excess, function_values, gates_inputs

FUNCTIONS = sorted(set(NAMES.values()))


def frontiers(function, dtype):
    return gate_frontiers(function, dtype, str(arithmetic_of(dtype)))


def worst_points(head, count):
    """Where the head, evaluated in its dtype, is farthest from the function: found on a fine grid, then around it."""
    rng = np.random.default_rng(1)
    grid = np.concatenate([np.linspace(-12, 12, 4001), np.geomspace(1e-9, head.high, 3000)])
    grid = np.clip(np.concatenate([grid, -grid]), head.low, head.high)
    for spread in (0.0, 1e-3, 1e-5):
        g = np.concatenate([grid, *(grid * (1 + spread * rng.normal(size=grid.shape)) for _ in range(3) if spread)])
        g = np.clip(g, head.low, head.high).astype(head.dtype).astype(np.float64)
        error = np.abs(computed(head.parts, g, np.ones_like(g), head.dtype, rng) - _float_values(head.function, g))
        grid = g[np.argsort(-error / np.maximum(1.0, np.abs(g)))[:count]]
    return grid


def _float_values(function, g):
    from anchorhead.language.targets import target_of

    return target_of(function, (-2048.0, 2048.0)).values(g)[:, 0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_a_dtype_computes_stays_within_the_bound(function, dtype):
    rng = np.random.default_rng(5)
    for frontier in frontiers(function, dtype):
        for head in {frontier.heads[0], frontier.heads[len(frontier.heads) // 2], frontier.heads[-1]}:
            g, u = gates_inputs(rng, frontier.reach, dtype, 40, worst_points(head, 30))
            wanted = function_values(function, g)
            allowed = head.bound * np.maximum(1.0, np.abs(g)) * np.abs(u) + head.underflow
            for subtract in (True, False):
                gap = excess(computed(head.parts, g, u, dtype, rng, subtract), wanted, u)
                assert (gap <= allowed).all(), (frontier.key, head.registers, g[gap > allowed])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_bounds_are_not_far_from_what_is_found(function, dtype):
    """The largest error found is at least a tenth of the bound where approximation counts for most of it."""
    for frontier in frontiers(function, dtype):
        head = frontier.heads[0]
        if head.exact > 10 * head.rounding:
            g = worst_points(head, 5)
            rng = np.random.default_rng(0)
            gap = np.abs(computed(head.parts, g, np.ones_like(g), dtype, rng) - _float_values(function, g))
            assert (gap / np.maximum(1.0, np.abs(g))).max() > 0.5 * head.bound


@pytest.mark.parametrize("function", FUNCTIONS)
def test_more_registers_come_with_smaller_bounds(function):
    for dtype in ("float32", "float64"):
        for frontier in frontiers(function, dtype):
            sizes = [head.registers for head in frontier.heads]
            bounds = [head.bound for head in frontier.heads]
            assert sizes == sorted(set(sizes))
            assert bounds == sorted(set(bounds), reverse=True)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_smallest_head_that_is_good_enough_is_chosen(function):
    for within in (1e-2, 1e-4, 1e-5):
        head = gate_head(function, within, "float32", 50.0)
        assert head.bound <= within
        assert head.high >= 50
        smaller = [
            other for one in frontiers(function, "float32") if one.reach >= 50 for other in one.heads
            if other.registers < head.registers
        ]  # fmt: skip
        assert all(other.bound > within for other in smaller)


def test_every_gate_reaches_1e_5_in_float32_for_256():
    for function in FUNCTIONS:
        assert gate_head(function, 1e-5, "float32", 256.0).bound <= 1e-5


@pytest.mark.parametrize(
    ("function", "within"), [("silu", 1e-11), ("relu", 1e-11), ("sigmoid", 1e-15), ("gelu", 2e-7), ("gelu_tanh", 4e-7)]
)
def test_float64_reaches_what_is_promised_for_256(function, within):
    assert gate_head(function, within, "float64", 256.0).bound <= within


@pytest.mark.parametrize(("name", "function"), NAMES.items())
def test_other_names_mean_the_same_function(name, function):
    head = gate_head(name, 1e-3, "float32", 8.0)
    assert head.function == function
    np.testing.assert_array_equal(head.parts[0].slopes, gate_head(function, 1e-3, "float32", 8.0).parts[0].slopes)


def test_a_sigmoid_gate_is_one_head_with_one_register():
    (part,) = gate_head("sigmoid", 1e-6, "float32", 1024.0).parts
    assert part.slopes.tolist() == [-1.0]
    assert part.offsets.tolist() == [0.0]
    assert part.factor == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tanh", 1e-3, "float32", 8.0), "silu, swish"),
        ((None, 1e-3, "float32", 8.0), "silu, swish"),
        (("silu", 1e-9, "float32", 8.0), "the best is proven within"),
        (("silu", 1e-30, "float64", 8.0), "the best is proven within"),
        (("silu", 1e-3, "float32", 1e9), "reach=1e\\+09 is beyond"),
        (("silu", 0.0, "float32", 8.0), "within=0.0"),
        (("silu", float("nan"), "float32", 8.0), "within=nan"),
        (("silu", "1e-3", "float32", 8.0), "within='1e-3'"),
        (("silu", 1e-3, "float32", float("inf")), "reach=inf"),
        (("silu", 1e-3, "float32", -1.0), "reach=-1.0"),
        (("silu", 1e-3, "bfloat16", 8.0), "bfloat16 is not certified"),
    ],
)
def test_requests_that_cannot_be_met_are_refused_with_what_can(arguments, message):
    with pytest.raises(AnchorheadError, match=message):
        gate_head(*arguments)
