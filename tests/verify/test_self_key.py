"""Heads with their own key: what is stated follows, less than the truth is refused, and no rounding exceeds it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from flint import arb, arb_poly, arb_series

from anchorhead.heads.self_keys.self_key import SelfKeyHead
from anchorhead.heads.tables.self_key_table import self_key_frontiers
from anchorhead.language.expressions.parser import parse
from anchorhead.verify.balls import coefficient, precision
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.programs.expressions import read_expression
from anchorhead.verify.rounding import arithmetic_of
from anchorhead.verify.self_keys.cover import cover, taylor_bound
from anchorhead.verify.self_keys.head import ORDER, Cell, SelfKey
from anchorhead.verify.self_keys.rounding import largest_move, moved_weights, powers_rounding, softmax_rounding
from anchorhead.verify.self_keys.self_key import _spans, require_room, verify_self_key
from anchorhead.verify.self_keys.tail import line_of
from tests.proof.self_key_cases import as_attention, fused
from tests.verify.heads_as_stored import function_of, self_key_of

HEADS = [head for frontier in self_key_frontiers() for head in frontier.heads]
NAMED = {(head.function, head.dtype, head.registers): head for head in HEADS}
QUICK = [
    ("gelu", "float32", 5), ("gelu", "float64", 9), ("silu", "float64", 1), ("relu", "float32", 1),
    ("hardswish", "float32", 4), ("elu", "float32", 4), ("leaky_relu", "float64", 1), ("tanh", "float32", 2),
]  # fmt: skip


def verified(head: SelfKeyHead, stated: float) -> int:
    return verify_self_key(*self_key_of(head), function_of(head.function), head.low, head.high, head.dtype, stated)


def label(head: SelfKeyHead) -> str:
    return f"{head.function}-{head.dtype}-{head.registers}"


@pytest.mark.parametrize("which", QUICK, ids=str)
def test_what_the_table_states_follows(which: tuple[str, str, int]) -> None:
    head = NAMED[which]
    assert verified(head, head.bound) > 0


@pytest.mark.slow
@pytest.mark.parametrize("head", HEADS, ids=label)
def test_all_that_the_table_states_follows(head: SelfKeyHead) -> None:
    assert verified(head, head.bound) > 0


@pytest.mark.parametrize("which", [("gelu", "float32", 5), ("mish", "float64", 6), ("softplus", "float64", 3)], ids=str)
def test_less_than_the_largest_error_is_refused(which: tuple[str, str, int]) -> None:
    head = NAMED[which]
    with precision():
        f, r = function_of(head.function), self_key_of(head)[0].mixture()
        points = np.linspace(-12, 12, 3_001).tolist()
        gaps = [abs(f.ball({"x": arb(x)}) - r.enclosure(arb(x))) / max(1.0, abs(x)) for x in points]
        worst = max(float(gap.lower()) for gap in gaps)
    assert worst < head.bound
    with pytest.raises(NotVerified, match="does not follow"):
        verified(head, worst * 0.98)


@pytest.mark.parametrize("column", ["slopes", "offsets", "values"])
def test_a_moved_weight_is_refused(column: str) -> None:
    head = NAMED["gelu", "float32", 7]
    moved = np.array(getattr(head, column), copy=True)
    moved[3] = moved[3] * np.float32(1.002) + np.float32(1e-4)
    key, _ = self_key_of(replace(head, step=0.0, **{column: moved}))
    with pytest.raises(NotVerified):
        verify_self_key(key, None, function_of("gelu"), -8.0, 8.0, "float32", head.bound)


def test_powers_with_a_moved_coefficient_are_refused() -> None:
    head = NAMED["gelu", "float32", 7]
    key, quotient = self_key_of(head)
    assert quotient is not None
    wrong = replace(quotient, denominator=[*quotient.denominator[:-1], quotient.denominator[-1] * 1.01])
    with pytest.raises(NotVerified):
        verify_self_key(key, wrong, function_of("gelu"), -8.0, 8.0, "float32", head.bound)


@pytest.mark.parametrize(
    "which", [("gelu", "float32", 7), ("silu", "float32", 1), ("hardswish", "float32", 7)], ids=str
)
def test_no_evaluation_rounds_by_more(which: tuple[str, str, int]) -> None:
    head, model = NAMED[which], arithmetic_of("float32")
    key, quotient = self_key_of(head)
    rng = np.random.default_rng(1)
    s = np.concatenate([rng.uniform(-6, 6, 150), 3 + rng.uniform(-1e-4, 1e-4, 50), 10 ** rng.uniform(-6, 20, 50)])
    s = s.astype(np.float32)
    found = {"attention": as_attention(head)(s)} | ({} if quotient is None else {"powers": fused(head)(s)})
    with precision(cap=ORDER + 1):
        softmax = key.mixture()
        for i, x in enumerate(s.astype(np.float64).tolist()):
            cell, scale = Cell.of(x, x), max(1.0, abs(x))
            away = abs(softmax.enclosure(arb(x)) - float(found["attention"][i])) / scale
            assert away <= softmax_rounding(key, softmax, cell, model)
            if quotient is not None:
                at = None if quotient.low <= x <= quotient.high else quotient.low if x < 0 else quotient.high
                mixture = quotient.mixture(key.skip, key.bias, at)
                away = abs(mixture.enclosure(arb(x)) - float(found["powers"][i])) / scale
                assert away <= powers_rounding(key, quotient, mixture, cell, at, model)


def test_rounding_on_a_cell_covers_its_points() -> None:
    head, model = NAMED["gelu", "float64", 9], arithmetic_of("float64")
    key, _ = self_key_of(head)
    rng = np.random.default_rng(2)
    with precision(cap=ORDER + 1):
        mixture = key.mixture()
        for low in rng.uniform(-5, 5, 40).tolist():
            if low < 0 < low + 0.01 or abs(low) < 1 < abs(low + 0.01) or abs(low + 0.01) < 1 < abs(low):
                continue
            whole = softmax_rounding(key, mixture, Cell.of(low, low + 0.01), model)
            inside = [softmax_rounding(key, mixture, Cell.of(x, x), model) for x in (low, low + 0.004, low + 0.01)]
            assert max(inside) <= whole


def test_the_lemma_of_moved_weights() -> None:
    rng = np.random.default_rng(3)
    for _ in range(60):
        w = rng.dirichlet(np.ones(5))
        most, values = rng.uniform(0, 1.5, 5), rng.normal(size=5)
        mean = w @ values
        grown, shrunk = w * np.expm1(most), w * -np.expm1(-most)
        found = largest_move(grown.tolist(), shrunk.tolist(), [arb(float(v)) for v in values - mean])
        corners = [np.array(signs) * most for signs in product((-1, 1), repeat=5)]
        moved = [abs((w * np.exp(x)) @ values / (w @ np.exp(x)) - mean) for x in corners]
        assert max(moved) <= found <= max(moved) * (1 + 1e-6)


def test_a_line_far_out() -> None:
    ball = arb(100).union(arb(1e6))
    with precision():
        for name, slope, rest in (("gelu", 1, 0), ("mish", 1, 0), ("softplus", 1, 0), ("elu", 1, 0), ("relu6", 0, 6)):
            a, b = line_of(function_of(name), ball)
            assert abs(a - slope) < 1e-25
            assert abs(b - rest) < 1e-25


def test_taylor_bounds_are_not_below_the_truth() -> None:
    with precision(cap=8):
        found = taylor_bound(lambda s: arb_series([s, 1]).sin().coeffs(), 1.0, 2.0, 7)
    assert 1 <= found < 1.01


@pytest.mark.parametrize("power", [3, 6, 7])
def test_every_term_of_taylors_theorem_counts(power: int) -> None:
    def series(s: arb) -> list[arb]:
        return arb_poly([-1.5, 1])(arb_poly([s, 1])).__pow__(power).coeffs() + [arb(0)] * 8

    assert taylor_bound(series, 1.0, 2.0, 7) >= 0.5**power


@pytest.mark.parametrize("s", [-2.0, -0.7, 0.4, 1.3, 3.0])
def test_the_worst_errors_of_logits_and_exponentials_are_covered(s: float) -> None:
    """All roundings of logits, of their distances from the largest, and of exp at their worst, all against r."""
    head, model = NAMED["gelu", "float32", 7], arithmetic_of("float32")
    key, _ = self_key_of(head)
    with precision(cap=ORDER + 1):
        found = moved_weights(key, key.mixture(), Cell.of(s, s), model).mean_moved
    slopes, offsets, values = (np.array(column, np.longdouble) for column in (key.slopes, key.offsets, key.values))
    z, held = slopes * s + offsets, values.copy()
    held[-1] *= s
    w = np.exp(z - z.max())
    w /= w.sum()
    mean = w @ held
    wrong = 0.999 * (model.unit * (np.abs(slopes * s) + np.abs(z) + z.max() - z) + model.exp_error)
    for sign in (-1, 1):
        moved = w * np.exp(sign * wrong * np.sign(held - mean))
        assert found >= abs(moved @ held / moved.sum() - mean) / max(1.0, abs(s)) >= 0.9 * found


@pytest.mark.parametrize("s", [-2.0, -0.7, 0.4, 1.3, 3.0])
def test_the_worst_errors_of_powers_are_covered(s: float) -> None:
    """y, every coefficient on its way through Horner's rule, and the division, all at their worst."""
    head, model = NAMED["gelu", "float32", 7], arithmetic_of("float32")
    key, quotient = self_key_of(head)
    assert quotient is not None
    with precision(cap=ORDER + 1):
        found = powers_rounding(key, quotient, quotient.mixture(0.0, 0.0), Cell.of(s, s), None, model)
    u, k = model.unit, np.arange(len(quotient.denominator))
    above_line, below_line = (np.array(c, np.longdouble) for c in (quotient.numerator, quotient.denominator))
    above_line[quotient.own_index] += quotient.own * s
    y, rounded = np.exp(np.longdouble(quotient.rate) * s), 0.999 * u * (2 * k + (k < k[-1]))
    exact = (above_line @ y**k) / (below_line @ y**k)
    worst = 0.0
    for up, one in product((-1, 1), repeat=2):
        other = y * np.exp(one * 0.999 * (model.exp_error + u * abs(quotient.rate * s)))
        top = (above_line * (1 + up * rounded * np.sign(above_line))) @ other**k
        under = (below_line * (1 - up * rounded * np.sign(exact))) @ other**k
        worst = max(worst, abs(float(top / under * (1 + up * np.sign(exact) * 0.999 * u) - exact)))
    assert found >= worst / max(1.0, abs(s)) >= 0.85 * found


def test_coefficients_that_were_cut_off_are_no_zeros() -> None:
    with precision(cap=4), pytest.raises(NotVerified, match="cut off"):
        coefficient(arb_series([0.5, 1]).exp(), 5)


def test_cells_end_at_numbers_of_the_dtype() -> None:
    seen: list[float] = []

    def bound(low: float, high: float) -> float:
        if low == high:
            seen.append(low)
            return 0.0
        return 1.0

    cover(bound, [(1.0, 1.0 + 2.0**-22)], 0.5, "float32")
    assert sorted(set(seen)) == [1.0, 1.0 + 2.0**-23, 1.0 + 2.0**-22]


def test_rests_of_lines_add_up() -> None:
    function = read_expression(parse("max(2*x + 5, x) + max(x + 3, 1)").to_json())
    with precision():
        slope, rest = line_of(function, arb(100).union(arb(200)))
    assert slope == 3
    assert rest == 8


def test_powers_are_covered_beyond_the_clipped_range_too() -> None:
    _, quotient = self_key_of(NAMED["gelu", "float32", 7])
    assert quotient is not None
    model = arithmetic_of("float32")
    low, high = 2 * quotient.low, 3 * quotient.high
    spans = _spans(quotient, low, high, model)
    assert spans == [
        (low, quotient.low, quotient.low),
        (quotient.low, quotient.high, None),
        (quotient.high, high, quotient.high),
    ]
    still = replace(quotient, own=0.0).mixture(0.0, 0.0, quotient.high)
    with precision():
        assert still.enclosure(arb(50)).overlaps(still.enclosure(arb(5)))


def test_rounding_counts() -> None:
    """The exact error alone, with a little room, is refused where the dtype adds more."""
    head = NAMED["gelu", "float32", 7]
    with precision():
        f, r = function_of(head.function), self_key_of(head)[0].mixture()
        gaps = [abs(f.ball({"x": arb(x)}) - r.enclosure(arb(x))) / max(1.0, abs(x)) for x in np.linspace(-8, 8, 801)]
        worst = max(float(gap.lower()) for gap in gaps)
    assert 1.2 * worst < head.bound
    key, _ = self_key_of(head)
    with pytest.raises(NotVerified, match="does not follow"):
        verify_self_key(key, None, function_of("gelu"), -8.0, 8.0, "float32", 1.1 * worst)


def test_sums_of_many_keys_count() -> None:
    """Keys that weigh and hold the same: p - 1 sums of weights, p of products, and a division."""
    p, model = 200, arithmetic_of("float32")
    key = SelfKey([0.0] * p, [0.0] * p, [1.0] * p, own=False)
    with precision(cap=ORDER + 1):
        found = softmax_rounding(key, key.mixture(), Cell.of(0.5, 0.5), model)
    assert 2 * p * model.unit <= found <= 2.2 * p * model.unit


def test_heads_that_overflow_are_refused() -> None:
    steep = SelfKey([1e38, 0.0], [0.0, 0.0], [1.0, 1.0], own=False)
    with pytest.raises(NotVerified, match="overflow"):
        require_room(steep, -10.0, 10.0, arithmetic_of("float32"))
    require_room(steep, -10.0, 10.0, arithmetic_of("float64"))
