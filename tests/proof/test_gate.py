"""Proofs about gates: rounding bounds against 200 bits, exact bounds against search, disturbed heads."""

from dataclasses import replace

import numpy as np
import pytest

from anchorhead.constructions.single.gate_head import gate_head
from anchorhead.heads.self_keys.gate import GatePart
from anchorhead.proof.arithmetic.arithmetic import arithmetic_of
from anchorhead.proof.heads.gate import gate_rounding, prove_gate
from tests.heads.gate_cases import TINY, computed, exact_parts, excess, gates_inputs


def random_parts(rng, dtype):
    parts = []
    for _ in range(int(rng.integers(1, 4))):
        p = int(rng.integers(1, 14))
        slopes = rng.normal(size=p) * 10 ** rng.uniform(-3, 4)
        slopes[rng.random(p) < 0.2] *= 1e3
        parts.append(GatePart.of(slopes, rng.normal(size=p) * 10 ** rng.uniform(-1, 1.5), rng.normal() * 30, dtype))
    return parts


def turns(parts):
    """Where a register's logit equals another's or the own one's."""
    found = [0.0]
    for part in parts:
        slopes = np.append(part.slopes.astype(np.float64), 0.0)
        offsets = np.append(part.offsets.astype(np.float64), 0.0)
        rise = slopes[:, None] - slopes
        apart = rise != 0
        found += ((offsets[None, :] - offsets[:, None])[apart] / rise[apart]).tolist()
    return np.array(found)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_gate_rounds_by_more_than_its_bound(dtype):
    rng = np.random.default_rng(11)
    closest = 0.0
    for _ in range(60):
        parts = random_parts(rng, dtype)
        reach = 10 ** rng.uniform(-1, 3)
        near = rng.choice(turns(parts), 10) * (1 + 1e-4 * rng.normal(size=10))
        g, u = gates_inputs(rng, reach, dtype, 8, near)
        wanted = [exact_parts(parts, point) for point in g.tolist()]
        bound = gate_rounding(parts, -reach, reach, arithmetic_of(dtype))
        allowed = bound * np.maximum(1.0, np.abs(g)) * np.abs(u) + 4 * len(parts) * TINY[dtype]
        for subtract in (True, False):
            gap = excess(computed(parts, g, u, dtype, rng, subtract), wanted, u)
            assert (gap <= allowed).all()
            closest = max(closest, float((gap / allowed).max()))
    assert closest > 0.05  # a bound, not a wild guess


def test_the_rounding_bound_holds_at_every_scale_of_g():
    """Bounds on small intervals, at single points of which the error is compared: nothing hides behind the largest."""
    rng = np.random.default_rng(2)
    head = gate_head("silu", 1e-5, "float32", 64.0)
    for centre in (-60.0, -7.0, -1.0, -0.1, 0.3, 1.0, 5.0, 63.0):
        g = (centre + np.linspace(-0.05, 0.05, 41)).astype(np.float32).astype(np.float64)
        bound = gate_rounding(head.parts, g.min(), g.max(), arithmetic_of("float32"))
        wanted = [exact_parts(head.parts, point) for point in g.tolist()]
        gap = excess(computed(head.parts, g, np.ones_like(g), "float32", rng), wanted, np.ones_like(g))
        assert (gap <= bound * np.maximum(1.0, np.abs(g)) + head.underflow).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", ["silu", "gelu", "gelu_tanh", "relu", "sigmoid"])
def test_heads_of_the_table_are_proven_again(function, dtype):
    head = gate_head(function, 1e-4, dtype, 64.0)
    bound = prove_gate(function, head.parts, head.low, head.high, arithmetic_of(dtype))
    # proofs are made in float64, whose exp may differ in its last digit from machine to machine
    assert bound.exact <= head.exact * (1 + 1e-9)
    assert bound.rounding <= head.rounding * (1 + 1e-9)
    assert bound.found <= bound.exact


@pytest.mark.parametrize("function", ["silu", "gelu", "gelu_tanh", "relu"])
def test_a_disturbed_head_does_not_pass_its_proof(function):
    head = gate_head(function, 1e-4, "float64", 64.0)
    first, *others = head.parts
    disturbed = [
        replace(first, factor=first.factor * (1 + 1e-3)),
        replace(first, offsets=first.offsets + 1e-3 * (np.arange(len(first.offsets)) == 0)),
        replace(first, slopes=first.slopes * (1 + 1e-2 * (np.arange(len(first.slopes)) == len(first.slopes) // 2))),
        replace(first, slopes=first.slopes[1:], offsets=first.offsets[1:]),
    ]
    for part in disturbed:
        bound = prove_gate(function, (part, *others), head.low, head.high, arithmetic_of("float64"))
        assert bound.found > head.bound


def test_a_head_for_another_function_does_not_pass():
    head = gate_head("gelu", 1e-4, "float64", 8.0)
    assert prove_gate("gelu_tanh", head.parts, -8.0, 8.0, arithmetic_of("float64")).found > head.bound


def test_a_proof_over_a_wider_range_is_worse():
    head = gate_head("silu", 1e-4, "float64", 8.0)
    wider = prove_gate("silu", head.parts, -4 * head.high, 4 * head.high, arithmetic_of("float64"))
    assert wider.exact > head.bound
