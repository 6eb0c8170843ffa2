"""Gated neurons: what the table states follows, less than the largest error and moved weights are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from flint import arb

from anchorhead.heads.self_keys.gate import GateHead
from anchorhead.heads.tables.gate_table import all_gates
from anchorhead.verify.balls import precision
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.rounding import arithmetic_of
from anchorhead.verify.scalar.softmax import ORDER
from anchorhead.verify.self_keys.gate import GatePart, underflow, verify_gate
from tests.verify.heads.heads_as_stored import function_of, gate_of, read_at, rounding_on
from tests.verify.heads.test_self_key import OnlyWeights

HEADS = [head for frontier in all_gates() for head in frontier.heads]
QUICK = [head for head in HEADS if head.high == 64 and head.registers in (7, 13)][:5]


def label(head: GateHead) -> str:
    return f"{head.function}-{head.high:g}-{head.dtype}-{head.registers}"


def verified(head: GateHead, stated: float) -> int:
    return verify_gate(gate_of(head), function_of(head.function), head.low, head.high, head.dtype, stated)


def largest_error(head: GateHead, points: list[float]) -> float:
    """|sum of heads - f| / max(1, |g|) in exact arithmetic, at points."""
    f = function_of(head.function)
    with precision(cap=ORDER + 1):
        parts = [part.softmax(head.low, head.high, arithmetic_of(head.dtype)) for part in gate_of(head)]
        sums = [sum((read_at(one, x) for one in parts), arb(0)) for x in points]
        gaps = [abs(f.ball({"x": arb(x)}) - y) / max(1.0, abs(x)) for x, y in zip(points, sums, strict=True)]
        return max(float(gap.lower()) for gap in gaps)


@pytest.mark.parametrize("head", QUICK, ids=label)
def test_what_the_table_states_follows(head: GateHead) -> None:
    assert verified(head, head.bound) > 0
    assert underflow(gate_of(head), head.dtype) <= head.underflow


@pytest.mark.slow
@pytest.mark.parametrize("head", HEADS, ids=label)
def test_all_that_the_table_states_follows(head: GateHead) -> None:
    assert verified(head, head.bound) > 0


def test_less_than_the_largest_error_is_refused() -> None:
    head = next(one for one in HEADS if one.function == "silu" and one.registers == 9 and one.dtype == "float64")
    worst = largest_error(head, np.linspace(-20, 20, 2001).tolist())
    with pytest.raises(NotVerified):
        verified(head, worst * 0.98)


@pytest.mark.parametrize("g", [-3.0, 0.5, 20.0])
def test_every_rounding_after_the_weights_counts(g: float) -> None:
    """A sum of p + 1 exponentials, a division, two products and a sum of two heads: p + 4 in a row."""
    model, part = arithmetic_of("float32"), gate_of(QUICK[0])[0]
    exactly = OnlyWeights(model.dtype, model.unit, model.tiny, model.largest)
    softmax, weights = (part.softmax(-64.0, 64.0, one) for one in (model, exactly))
    with precision(cap=ORDER + 1):
        read = abs(float(read_at(softmax, g).mid()))
    (keys, _), = softmax.windows(np.array([g]), np.zeros(1))  # fmt: skip
    in_a_row = (len(keys) - 1) + 1 + 1 + 1  # of these the last two heads' sum; F u is among the weights' errors
    least = rounding_on([weights, weights], g, g) / 2 * max(1.0, abs(g)) + in_a_row * model.unit * read
    assert rounding_on([softmax, softmax], g, g) / 2 * max(1.0, abs(g)) >= least * (1 - 1e-6)


def test_the_product_of_factor_and_neuron_counts() -> None:
    """F u is rounded, also where nothing else is: the register weighs nothing."""
    model, part = arithmetic_of("float32"), GatePart([0.0], [-60.0], 0.3)
    exactly = OnlyWeights(model.dtype, model.unit, model.tiny, model.largest)
    assert rounding_on([part.softmax(-1.0, 1.0, exactly)], 0.5, 0.5) >= 0.3 * model.unit


@pytest.mark.parametrize("name", ["slopes", "offsets", "factor"])
def test_a_moved_weight_is_refused(name: str) -> None:
    head = QUICK[1]
    parts = gate_of(head)
    was = getattr(parts[0], name)
    now = was * 1.001 if name == "factor" else [was[0] * 1.01 + 1e-3, *was[1:]]
    changed = [replace(parts[0], **{name: now}), *parts[1:]]
    with pytest.raises(NotVerified):
        verify_gate(changed, function_of(head.function), -64.0, 64.0, head.dtype, head.bound)


def test_rounding_counts() -> None:
    """Many times the exact error is refused where the dtype adds more."""
    head = max((one for one in HEADS if one.function == "silu" and one.dtype == "float32"), key=lambda h: h.registers)
    worst = largest_error(head, (np.geomspace(1e-2, head.high, 400)[:, None] * [-1, 1]).ravel().tolist())
    assert 5 * worst < head.bound / 2
    with pytest.raises(NotVerified):
        verified(head, head.bound / 2)


def test_what_underflows_is_counted() -> None:
    """u, F u and its product with a weight may each become 0."""
    parts, tiny = gate_of(QUICK[0]), arithmetic_of("float32").tiny
    assert underflow(parts, "float32") >= sum(tiny * (abs(part.factor) + 1 + 1) for part in parts)
