"""Heads with their own key: no input exceeds their bounds, however evaluated, and false bounds are not proven."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import flint
import numpy as np
import pytest

from anchorhead.errors import AnchorheadError
from anchorhead.heads.self_keys.self_key import Own, SelfKeyHead
from anchorhead.heads.self_keys.self_key_closed import closed
from anchorhead.heads.tables.self_key_table import self_key_frontiers
from anchorhead.language.analysis.asymptotes import asymptotes
from anchorhead.language.expressions.activation_names import activation_of
from anchorhead.proof.arithmetic.arithmetic import FLOAT32, FLOAT64, arithmetic_of
from anchorhead.proof.self_key.self_key import prove_self_key, proven
from anchorhead.proof.self_key.self_key_exact import prove_exact_self_key
from anchorhead.proof.self_key.self_key_powers_rounding import powers_rounding
from anchorhead.proof.self_key.self_key_rounding import softmax_rounding

from .self_key_cases import climb, errors, of_function, of_head, paths, points, worst_attention, worst_powers

TABLE = {(one.function, one.dtype): one.heads for one in self_key_frontiers()}
DTYPES = ("float32", "float64")
CLOSED = ("leaky_relu(x, 0.2)", "hardtanh(x, -2, 0.3)", "elu(x, 0.5)", "celu(x, 2)", "x*sigmoid(0.7*x)")
pytestmark = pytest.mark.filterwarnings("ignore:overflow", "ignore:underflow")


@cache
def made(text: str, dtype: str) -> SelfKeyHead:
    name, function = activation_of(text)
    head = closed(function, name, dtype)  # type: ignore[arg-type]
    assert head is not None
    return proven(head, function)


def heads_of(function: str, dtype: str) -> list[SelfKeyHead]:
    """The smallest and the best from the table, or the closed form."""
    name, _ = activation_of(function)
    known = TABLE.get((name, dtype))
    if known is None:
        return [made(function, dtype)]
    return [known[k] for k in sorted({0, len(known) - 1})]


def cases() -> list[tuple[str, str]]:
    return sorted({(name, dtype) for name in (*(key[0] for key in TABLE), *CLOSED) for dtype in DTYPES})


@pytest.mark.parametrize(("function", "dtype"), cases())
def test_no_input_found_exceeds_the_bound(function: str, dtype: str) -> None:
    _, expression = activation_of(function)
    for head in heads_of(function, dtype):
        for compute in paths(head).values():
            start = points(head, 32, seed=head.registers)
            assert max(climb(compute, of_function(expression), start, head, rounds=3, seed=1)) <= head.bound


@pytest.mark.parametrize(("function", "dtype"), cases())
def test_rounding_alone_stays_within_its_bound(function: str, dtype: str) -> None:
    for head in heads_of(function, dtype)[-1:]:
        for compute in paths(head).values():
            start = points(head, 32, seed=7)
            assert max(climb(compute, of_head(head), start, head, rounds=3, seed=2)) <= head.rounding


@pytest.mark.parametrize("function", sorted({name for name, _ in cases()}))
def test_errors_that_all_pull_one_way_stay_within_the_bound(function: str) -> None:
    for head in heads_of(function, "float32"):
        s = np.concatenate([np.linspace(-25, 25, 1201), points(head, 400, seed=3)])
        with np.errstate(all="ignore"):
            assert np.nanmax(worst_attention(head, s, FLOAT32.unit, FLOAT32.exp_error)) <= head.rounding
            if head.step > 0:
                assert np.nanmax(worst_powers(head, s, FLOAT32.unit, FLOAT32.exp_error)) <= head.rounding


def test_errors_that_pull_one_way_come_close_to_the_bound() -> None:
    """The bounds are not so loose that the tests above say nothing."""
    for name in ("silu", "quick_gelu", "gelu"):
        head = TABLE[name, "float32"][-1]
        s = np.linspace(-5, 5, 4001)
        assert worst_powers(head, s, FLOAT32.unit, FLOAT32.exp_error).max() > 0.6 * powers_rounding(head, FLOAT32)
        assert worst_attention(head, s, FLOAT32.unit, FLOAT32.exp_error).max() > 0.5 * softmax_rounding(head, FLOAT32)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gelu_is_as_good_as_the_dtype_allows(dtype: str) -> None:
    least = {"float32": 3e-6, "float64": 1e-12}[dtype]
    for name in ("gelu", "gelu_tanh"):
        assert TABLE[name, dtype][-1].bound <= least
        assert TABLE[name, dtype][0].bound <= 0.1


@pytest.mark.parametrize(
    ("function", "dtype", "at"), [("gelu", "float32", -1), ("gelu", "float64", 3), ("silu", "float64", 0)]
)
def test_a_proof_finds_the_bounds_of_the_table_again(function: str, dtype: str, at: int) -> None:
    head = TABLE[function, dtype][at]
    exact, rounding = prove_self_key(head, activation_of(function)[1])
    assert exact <= head.exact * (1 + 1e-9)
    assert rounding <= head.rounding * (1 + 1e-9)


@pytest.mark.parametrize("column", ["offsets", "values"])
def test_a_disturbed_head_fails_its_proof(column: str) -> None:
    head = TABLE["gelu", "float64"][3]
    changed = getattr(head, column).copy()
    changed[len(changed) // 2] += 0.01
    disturbed = replace(head, **{column: changed})
    _, function = activation_of("gelu")
    bound = prove_exact_self_key(disturbed, function, floor=1e-12)
    assert bound > 2 * head.exact
    s = np.linspace(-6, 6, 1001)
    assert errors(np.asarray(disturbed(s)), of_function(function), s).max() <= bound


@pytest.mark.parametrize("wrong", [{"skip": 1e-4}, {"bias": 1e-4}, {"own": Own(4.0, 0.0, 1 - 1e-4)}])
def test_a_head_whose_lines_are_off_fails_its_proof(wrong: dict) -> None:
    head = replace(made("silu", "float64"), **wrong)
    assert prove_exact_self_key(head, activation_of("silu")[1], floor=1e-12) >= 1e-5


def test_the_bound_without_rounding_is_nearly_reached() -> None:
    for head in TABLE["gelu", "float64"][1:4:2]:
        s = np.linspace(-8, 8, 801)
        found = errors(np.asarray(head(s)), of_function(activation_of("gelu")[1]), s).max()
        assert 0.9 * head.exact <= found <= head.exact + head.rounding


@pytest.mark.parametrize("dtype", DTYPES)
def test_huge_and_tiny_queries_give_finite_results(dtype: str) -> None:
    for function in ("gelu", "relu", "hardtanh", "elu"):
        for head in heads_of(function, dtype):
            ends = np.array([head.low, head.high, np.finfo(dtype).smallest_subnormal, -0.0], dtype)
            for compute in paths(head).values():
                assert np.isfinite(compute(ends)).all()


def test_powers_hold_for_the_largest_numbers_of_the_dtype() -> None:
    for function in ("gelu", "silu", "relu"):
        head = TABLE[function, "float32"][-1]
        largest = np.array([np.finfo("float32").max, -np.finfo("float32").max], "float32")
        assert (
            errors(paths(head)["powers"](largest), of_function(activation_of(function)[1]), largest).max() <= head.bound
        )


def test_weights_that_the_dtype_does_not_hold_are_refused() -> None:
    head = replace(made("silu", "float32"), bias=0.1)
    with pytest.raises(AnchorheadError, match="round them first"):
        prove_self_key(head, activation_of("silu")[1])
    with pytest.raises(AnchorheadError, match="overflows"):
        prove_self_key(replace(made("relu", "float32"), own=Own(2.0**40, 0.0, 1.0)), activation_of("relu")[1])
    with pytest.raises(AnchorheadError, match="low < high"):
        prove_self_key(replace(made("relu", "float32"), low=2.0, high=1.0), activation_of("relu")[1])


def test_two_keys_that_share_the_largest_slope_prove_nothing_on_the_line() -> None:
    silu = made("silu", "float64")
    twice = [
        np.concatenate([column, [number]])
        for column, number in ((silu.slopes, 1.0), (silu.offsets, 0.0), (silu.values, 0.0))
    ]
    head = replace(silu, slopes=twice[0], offsets=twice[1], values=twice[2])
    assert softmax_rounding(head, FLOAT64) == math.inf


@pytest.mark.parametrize(
    "function",
    [
        "gelu",
        "gelu_tanh",
        "mish",
        "softplus",
        "elu",
        "selu",
        "celu(x, 2)",
        "tanh",
        "erf",
        "hardswish",
        "leaky_relu",
        "quick_gelu",
    ],
)
def test_the_distance_from_the_lines_is_bounded_beyond_any_point(function: str) -> None:
    _, expression = activation_of(function)
    lines = asymptotes(expression)
    assert lines is not None
    with flint.ctx.workprec(300):
        for side, line in ((-1, lines.left), (1, lines.right)):
            for start in (0.25, 1.0, 3.5, 10.0):
                bound = line.remainder(start)
                for factor in (1.0, 1.01, 1.5, 4.0):
                    s = flint.arb(side * start * factor)
                    off = abs(expression.ball({"x": s}) - line.slope * s - line.constant) / abs(s).max(flint.arb(1))
                    assert not off > bound


def test_an_interval_in_a_tail_alone_has_a_bound_too() -> None:
    _, function = activation_of("relu")
    for low, high in ((2.0, 3.0), (-3.0, -2.0), (-1.0, 2.0)):
        exact, rounding = prove_self_key(replace(made("relu", "float32"), low=low, high=high), function)
        assert 0 < exact + rounding <= made("relu", "float32").bound * (1 + 1e-6)


def test_functions_without_lines_need_an_interval() -> None:
    _, function = activation_of("sin")
    assert asymptotes(function) is None
    assert arithmetic_of("float64") is FLOAT64
    with pytest.raises(AnchorheadError, match="interval"):
        prove_exact_self_key(replace(made("silu", "float64"), low=-math.inf, high=math.inf), function, 1e-9)
