"""Heads with their own key: what is stated follows, less than the truth is refused, and no rounding exceeds it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from flint import arb, arb_series

from anchorhead.heads.self_keys.self_key import SelfKeyHead
from anchorhead.heads.tables.self_key_table import self_key_frontiers
from anchorhead.verify.balls import coefficient, precision
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.rounding import Arithmetic, arithmetic_of, power_of_two
from anchorhead.verify.scalar.cells import Straight
from anchorhead.verify.scalar.softmax import ORDER, Softmax
from anchorhead.verify.self_keys.powers import Powers, Quotient
from anchorhead.verify.self_keys.self_key import SelfKey, require_room, verify_self_key
from tests.proof.self_key_cases import as_attention, fused
from tests.verify.heads.heads_as_stored import function_of, read_at, rounding_on, self_key_of

HEADS = [head for frontier in self_key_frontiers() for head in frontier.heads]
NAMED = {(head.function, head.dtype, head.registers): head for head in HEADS}
QUICK = [
    ("gelu", "float32", 5), ("gelu", "float64", 9), ("silu", "float64", 1), ("relu", "float32", 1),
    ("hardswish", "float32", 4), ("elu", "float32", 4), ("leaky_relu", "float64", 1), ("tanh", "float32", 2),
]  # fmt: skip


def verified(head: SelfKeyHead, stated: float) -> int:
    return verify_self_key(*self_key_of(head), function_of(head.function), head.low, head.high, head.dtype, stated)


def softmax_of(key: SelfKey, dtype: str) -> Softmax:
    return Softmax(key.part(arithmetic_of(dtype)), arithmetic_of(dtype))


def at_of(quotient: Quotient, x: float) -> float | None:
    return None if quotient.low <= x <= quotient.high else quotient.low if x < 0 else quotient.high


def errors(head: SelfKeyHead, points: list[float]) -> list[float]:
    """|r - f| / max(1, |s|) in exact arithmetic, at points."""
    with precision(cap=ORDER + 1):
        f, key = function_of(head.function), self_key_of(head)[0]
        r = softmax_of(key, head.dtype)
        gaps = [abs(f.ball({"x": arb(x)}) - read_at(r, x) - key.skip * arb(x) - key.bias) for x in points]
        return [float((gap / max(1.0, abs(x))).lower()) for gap, x in zip(gaps, points, strict=True)]


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
    worst = max(errors(head, np.linspace(-12, 12, 3_001).tolist()))
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
    straight = Straight(key.skip, key.bias)
    with precision(cap=ORDER + 1):
        softmax = softmax_of(key, "float32")
        for i, x in enumerate(s.astype(np.float64).tolist()):
            evaluations: dict[str, Softmax] = {"attention": softmax}
            if quotient is not None:
                evaluations["powers"] = Powers(quotient, at_of(quotient, x), abs(x), model)
            for name, one in evaluations.items():
                exactly = read_at(one, x) + key.skip * arb(x) + key.bias
                away = abs(exactly - float(found[name][i])) / max(1.0, abs(x))
                assert away <= rounding_on([one], x, x, straight)


@pytest.mark.parametrize("evaluation", ["softmax", "powers"])
def test_rounding_on_a_cell_covers_its_points(evaluation: str) -> None:
    """Of cells that are wide beside those that proofs end with."""
    key, quotient = self_key_of(NAMED["gelu", "float32", 7])
    assert quotient is not None
    softmax = softmax_of(key, "float32")
    if evaluation == "powers":
        softmax = Powers(quotient, None, 6.0, arithmetic_of("float32"))
    for low in np.random.default_rng(2).uniform(-5, 5, 40).tolist():
        whole, size = rounding_on([softmax], low, low + 1.0), max(abs(low), abs(low + 1.0), 1.0)
        inside = [rounding_on([softmax], x, x) * max(1.0, abs(x)) / size for x in np.linspace(low, low + 1.0, 25)]
        assert max(inside) <= whole


def test_the_own_value_is_rounded() -> None:
    """A key that is alone: its product with s, one with its weight, and a division."""
    model, key = arithmetic_of("float32"), SelfKey([0.0], [0.0], [0.3], own=True)
    found = rounding_on([softmax_of(key, "float32")], 0.7, 0.7)
    assert 3 * model.unit <= found / (0.3 * 0.7) <= 3.01 * model.unit


def test_sums_with_the_straight_part_round() -> None:
    """skip s is a product, and two numbers are added to what is read."""
    model, key = arithmetic_of("float32"), SelfKey([0.0], [0.0], [1.0], own=False)
    alone, added = (
        rounding_on([softmax_of(key, "float32")], 0.7, 0.7, one) for one in (Straight(), Straight(0.3, 2.0))
    )
    least = model.unit * (0.21 + 2 * (0.21 + 2.0 + 1.0))
    assert least <= added - alone <= 1.01 * least


@pytest.mark.parametrize("name", [("gelu", "float32", 7), ("silu", "float32", 1)])
def test_heads_are_verified_far_out(name: tuple[str, str, int]) -> None:
    head = NAMED[name]
    assert verify_self_key(self_key_of(head)[0], None, function_of(name[0]), -1e30, 1e30, name[1], head.bound)


@dataclass(frozen=True)
class OnlyWeights(Arithmetic):
    """An arithmetic whose sums, products and quotients round nothing once there are weights."""

    def gamma(self, n: Any) -> Any:
        return 0 * n


@pytest.mark.parametrize("s", [-2.0, -0.7, 0.4, 1.3, 3.0])
def test_the_worst_errors_of_logits_and_exponentials_are_covered(s: float) -> None:
    """All roundings of logits, of their distances from the largest, and of exp at their worst, all against r."""
    head, model = NAMED["gelu", "float32", 7], arithmetic_of("float32")
    key, _ = self_key_of(head)
    exactly = OnlyWeights(model.dtype, model.unit, model.tiny, model.largest)
    found = rounding_on([Softmax(key.part(exactly), exactly)], s, s)
    slopes, offsets, values = (np.array(column, np.longdouble) for column in (key.slopes, key.offsets, key.values))
    z, held = slopes * s + offsets, values.copy()
    held[-1] *= s
    w = np.exp(z - z.max())
    w /= w.sum()
    mean = w @ held
    products = np.where(power_of_two(np.array(key.slopes)), 0.0, np.abs(slopes * s))
    sums = np.where((slopes != 0) & (offsets != 0), np.abs(z), 0.0)
    wrong = 0.999 * (model.unit * (products + sums + z.max() - z) + model.exp_error)
    for sign in (-1, 1):
        moved = w * np.exp(sign * wrong * np.sign(held - mean))
        assert found >= abs(moved @ held / moved.sum() - mean) / max(1.0, abs(s)) >= 0.9 * found


@pytest.mark.parametrize("s", [-2.0, -0.7, 0.4, 1.3, 3.0])
def test_the_worst_errors_of_powers_are_covered(s: float) -> None:
    """y, every coefficient on its way through Horner's rule, and the division, all at their worst."""
    head, model = NAMED["gelu", "float32", 7], arithmetic_of("float32")
    _, quotient = self_key_of(head)
    assert quotient is not None
    with precision(cap=ORDER + 1):
        found = rounding_on([Powers(quotient, None, abs(s), model)], s, s)
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


class Stray(Arithmetic):
    """float64 with exponentials that are off by a hundredth."""

    @property
    def exp_error(self) -> float:
        return 0.01


@pytest.mark.parametrize("s", [-2.0, -0.7, 0.4, 1.3])
def test_powers_of_another_y_are_covered(s: float) -> None:
    """To second order: how a mean moves changes on the way."""
    _, quotient = self_key_of(NAMED["gelu", "float32", 7])
    assert quotient is not None
    model = Stray("float64", 2.0**-53, 2.0**-1022, 1e308)
    with precision(cap=ORDER + 1):
        found = rounding_on([Powers(quotient, None, abs(s), model)], s, s)
    above_line, below_line = (np.array(c, np.longdouble) for c in (quotient.numerator, quotient.denominator))
    above_line[quotient.own_index] += quotient.own * s
    y, k = np.exp(np.longdouble(quotient.rate) * s) * np.exp([-0.01, 0.0, 0.01]), np.arange(len(below_line))
    read = (above_line @ y ** k[:, None]) / (below_line @ y ** k[:, None])
    worst = float(np.abs(read - read[1]).max()) / max(1.0, abs(s))
    assert worst <= found <= 1.2 * worst


def test_coefficients_that_were_cut_off_are_no_zeros() -> None:
    with precision(cap=4), pytest.raises(NotVerified, match="cut off"):
        coefficient(arb_series([0.5, 1]).exp(), 5)


def test_powers_are_covered_beyond_the_clipped_range_too() -> None:
    _, quotient = self_key_of(NAMED["gelu", "float32", 7])
    assert quotient is not None
    model = arithmetic_of("float32")
    low, high = 2 * quotient.low, 3 * quotient.high
    spans = quotient.spans(low, high, model)
    assert spans == [
        (low, quotient.low, quotient.low),
        (quotient.low, quotient.high, None),
        (quotient.high, high, quotient.high),
    ]
    with precision(cap=ORDER + 1):
        still = Powers(replace(quotient, own=0.0), quotient.high, 60.0, model)
        assert read_at(still, 50.0).overlaps(read_at(still, 5.0))


def test_rounding_counts() -> None:
    """The exact error alone, with a little room, is refused where the dtype adds more."""
    head = NAMED["gelu", "float32", 7]
    worst = max(errors(head, np.linspace(-8, 8, 801).tolist()))
    assert 1.2 * worst < head.bound
    key, _ = self_key_of(head)
    with pytest.raises(NotVerified, match="does not follow"):
        verify_self_key(key, None, function_of("gelu"), -8.0, 8.0, "float32", 1.1 * worst)


def test_sums_of_many_keys_count() -> None:
    """Keys that weigh and hold the same: p - 1 sums of weights, p of products, and a division."""
    p, model = 200, arithmetic_of("float32")
    key = SelfKey([0.0] * p, [0.0] * p, [1.0] * p, own=False)
    found = rounding_on([softmax_of(key, "float32")], 0.5, 0.5)
    assert 2 * p * model.unit <= found <= 2.2 * p * model.unit


def test_heads_that_overflow_are_refused() -> None:
    steep = SelfKey([1e38, 0.0], [0.0, 0.0], [1.0, 1.0], own=False)
    with pytest.raises(NotVerified, match="overflow"):
        require_room(steep, -10.0, 10.0, arithmetic_of("float32"))
    require_room(steep, -10.0, 10.0, arithmetic_of("float64"))
