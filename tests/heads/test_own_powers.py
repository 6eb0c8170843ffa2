"""A head with its own key as a quotient of polynomials: the same function, no overflow, clear refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from anchorhead.errors import AnchorheadError
from anchorhead.heads.self_keys.self_key import Own, SelfKeyHead
from anchorhead.heads.self_keys.self_key_powers import MAX_POWERS, powers
from anchorhead.heads.tables.self_key_table import self_key_frontiers

STEPPED = [head for one in self_key_frontiers() for head in one.heads if head.step > 0]


def head_of(slopes: list[float], own: Own | None, step: float, dtype: str = "float64") -> SelfKeyHead:
    columns = [
        np.array(slopes, dtype),
        np.linspace(0, 1, len(slopes)).astype(dtype),
        np.arange(len(slopes)).astype(dtype),
    ]
    return SelfKeyHead("test", *columns, own, 0.25, -0.5, step, -1e30, 1e30, dtype, np.inf, np.inf)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("slopes", "own"),
    [
        ([0.0, 0.5, 1.5], Own(2.0, 0.5, 1.0)),
        ([0.5, 1.0], Own(0.0, 0.5, 0.75)),
        ([-1.0, 1.0, 1.5], Own(0.5, -1.0, -2.0)),
        ([-1.0, 1.0], Own(1.0, -1.0, 3.0)),
        ([-1.0, 0.0, 2.0], None),
    ],
)
def test_the_quotient_is_the_softmax(slopes: list[float], own: Own | None) -> None:
    """The own key first, last, between registers, beside one of the same slope, or absent."""
    head = head_of(slopes, own, 0.5)
    s = np.linspace(-40, 40, 1001)
    assert np.abs((powers(head)(s) - head(s)) / np.maximum(1, np.abs(s))).max() < 1e-14


@pytest.mark.parametrize("head", STEPPED, ids=lambda head: f"{head.function}-{head.dtype}-{head.registers}")
def test_shipped_quotients_have_positive_denominators_and_stay_finite(head: SelfKeyHead) -> None:
    numbers = powers(head)
    assert (numbers.denominator >= 0).all()
    assert numbers.denominator[0] > 0
    s = np.array([head.low, -1e3, numbers.low, -1, 0, 1, numbers.high, 1e3, head.high], head.dtype)
    with np.errstate(over="raise", invalid="raise"):
        assert np.isfinite(numbers(s)).all()


def test_for_large_queries_the_own_value_comes_out_exactly() -> None:
    head = next(one for one in STEPPED if one.function == "gelu" and one.dtype == "float32")
    s = np.array([200.0, 1e6, 3e38], "float32")
    assert (powers(head)(s) == s).all()


def test_slopes_without_a_step_are_refused() -> None:
    with pytest.raises(AnchorheadError, match="no common step"):
        powers(head_of([0.0, 1.0], Own(2.0, 0.0, 1.0), 0.0))
    with pytest.raises(AnchorheadError, match="does not divide"):
        powers(head_of([0.0, 0.3], Own(2.0, 0.0, 1.0), 0.5))
    with pytest.raises(AnchorheadError, match="at most"):
        powers(head_of([0.0, 1.0], Own(MAX_POWERS + 1.0, 0.0, 1.0), 1.0))


def test_powers_that_leave_the_range_are_refused() -> None:
    head = head_of([0.0, 1.0], Own(2.0, 0.0, 1.0), 1.0, "float32")
    far = replace(head, offsets=np.array([0.0, 500.0], "float32"))
    with pytest.raises(AnchorheadError, match="range of float32"):
        powers(far)
