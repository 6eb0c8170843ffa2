"""Functions as sums of clipped quotients: they err by no more than they say, and are as short as they may be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from flint import arb

from anchorhead.heads.atom import Part
from anchorhead.language.expressions.parser import parse
from anchorhead.language.expressions.precision import precision
from anchorhead.network.direct import Series
from anchorhead.network.direct.heads import SeriesHead
from anchorhead.proof.heads.activation_head import ActivationHead
from anchorhead.proof.heads.followed import followed
from anchorhead.proof.heads.quotients import magnitude

KEYS = np.array([-1.0, 1.0]), np.zeros(2), np.array([-1.0, 1.0])
SCALED = {"in_scale": 0.5, "in_shift": 0.25, "out_scale": 4.0, "out_shift": -3.0}


def shape(text: str, low: float, high: float, **more: float) -> ActivationHead:
    return ActivationHead(parse(text), low, high, (Part.of(*KEYS, "float64"),), 0.0, 0.0, **more)


CASES: dict[str, tuple[ActivationHead, float, str]] = {
    "a bend": (shape("gelu(x)", -3.5, 3.5), 2e-4, "float32"),
    "a bend, to the left of 0": (shape("gelu(x)", -0.5, -0.125), 1e-3, "float32"),
    "a bend, closely": (shape("gelu(x)", -3.5, 3.5), 1e-8, "float64"),
    "a bend, scaled": (shape("silu(x)", -3.5, 3.5, **SCALED), 1e-5, "float32"),
    "a step": (shape("tanh(x)", -2.0, 5.0), 1e-5, "float32"),
    "flat at 0": (shape("x - tanh(x)", -2.0, 2.0), 1e-9, "float64"),
    "a kink": (shape("leaky_relu(x)", -1.0, 1.0), 4e-6, "float32"),
    "a kink, scaled": (shape("leaky_relu(x)", -1.0, 2.0, **SCALED), 1e-6, "float32"),
    "a kink beside the dtype": (shape("max(x - 0.3, 0.1*x)", -1.0, 2.0), 1e-5, "float32"),
    "two kinks": (shape("hardswish(x)", -5.1, 5.5), 1e-12, "float64"),
    "two poles": (shape("softsign(x)", -11.0, 12.0), 1e-12, "float64"),
    "a kink and a bend": (shape("selu(x)", -4.0, 4.0), 1e-9, "float64"),
}


def errors(found: Series, of: ActivationHead, t: np.ndarray, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Upper bounds on |shift + scale q - g| of what runs, and |scale q| + |shift|."""
    q = torch.from_numpy(t.astype(dtype))
    head = SeriesHead(found, dtype)
    given = q.tolist()
    for operation in head.operations(q, q.new_empty(head.scratch(len(q)))):
        operation()
    with precision(300):
        read = [arb(found.scale) * arb(one) + arb(found.shift) for one in q.tolist()]
        asked = [arb(of.in_scale) * arb(at) + arb(of.in_shift) for at in given]
        meant = [(of.activation.ball({"x": one}) - of.out_shift) / of.out_scale for one in asked]
        off = [float(abs(one - other).upper()) for one, other in zip(read, meant, strict=True)]
    return np.array(off), np.abs(found.scale * q.double().numpy()) + abs(found.shift)


@pytest.mark.parametrize("name", CASES)
def test_they_err_by_no_more_than_they_say(name: str) -> None:
    """At random places, near the ends and cuts, and uphill from the worst; nothing is tolerated."""
    of, allowed, dtype = CASES[name]
    found = followed(of, KEYS, allowed, 400, dtype)
    assert found is not None
    assert found.error <= allowed
    assert (found.slopes, found.values) == ((-1.0, 1.0), (-1.0, 1.0))
    low, high = ((end - of.in_shift) / of.in_scale for end in (of.low, of.high))
    rng, width = np.random.default_rng(0), high - low
    near = width * np.geomspace(1e-9, 0.1, 100)
    cuts = {end for one in (found, *found.beside) for end in (one.low, one.high) if np.isfinite(end)}
    beside = [place + sign * near for place in (*cuts, low, high) for sign in (-1, 1)]
    t = np.concatenate([rng.uniform(low, high, 400), *beside, [*cuts]])
    kind = np.dtype(dtype).type
    inside = [float(np.nextafter(kind(end), kind((low + high) / 2))) for end in (low, high)]
    for _ in range(3):
        t = np.clip(t, inside[0], inside[1])
        off, sizes = errors(found, of, t, dtype)
        assert off.max() <= found.error
        assert sizes.max() <= magnitude(found, low, high, dtype)
        t = np.repeat(t[off.argsort()[-10:]], 30) + width * rng.normal(size=300) * 10 ** rng.uniform(-8, -2, 300)


def test_they_are_as_short_as_what_is_allowed_lets_them_be() -> None:
    lengths = []
    for allowed in (1e-1, 1e-3, 1e-5, 1e-7):
        found = followed(CASES["a bend"][0], KEYS, allowed, 400, "float64")
        assert found is not None
        lengths.append(len(found.coefficients) + len(found.below))
    assert lengths == sorted(set(lengths))


@pytest.mark.parametrize(("text", "pieces", "coefficients"), [
    ("relu(x)", 1, 0), ("leaky_relu(x)", 2, 0), ("hardtanh(x)", 1, 0), ("relu6(x)", 1, 0), ("hardsigmoid(x)", 1, 0),
    ("hardswish(x)", 2, 1), ("softsign(x)", 2, 2),
])  # fmt: skip
def test_what_is_made_of_few_pieces_is_these(text: str, pieces: int, coefficients: int) -> None:
    found = followed(shape(text, -8.0, 8.0), KEYS, 1e-12, 400, "float64")
    assert found is not None
    every = (found, *found.beside)
    assert (len(every), sum(len(one.coefficients) + len(one.below) for one in every)) == (pieces, coefficients)


def test_functions_that_fall_or_would_round_too_much_or_cost_too_much_have_none() -> None:
    assert followed(shape("-tanh(x)", -2.0, 2.0), KEYS, 1e-3, 400, "float64") is None
    assert followed(shape("tanh(x)", -2.0, 2.0), KEYS, 1e-9, 400, "float32") is None
    assert followed(shape("gelu(x)", -3.5, 3.5), KEYS, 1e-8, 8, "float64") is None


def test_powers_that_the_dtype_does_not_hold_have_none() -> None:
    found = followed(CASES["a bend, closely"][0], KEYS, 1e-8, 400, "float64")
    assert found is not None
    assert np.isfinite(magnitude(found, -3.5, 3.5, "float32"))
    assert not np.isfinite(magnitude(replace(found, below=()), -1e6, 1e6, "float32"))
    assert np.isfinite(magnitude(replace(found, below=()), -1e6, 1e6, "float64"))


def test_other_heads_are_other_series() -> None:
    of, allowed, dtype = CASES["a kink"]
    one, other = (followed(of, (KEYS[0], KEYS[1], by * KEYS[2]), allowed, 400, dtype) for by in (1.0, 2.0))
    assert one is not None
    assert other is not None
    assert replace(one, values=other.values) == other
