"""Every term of the error of an attention-only layer counts: where one is all there is, the bound is at least that."""

from __future__ import annotations

import numpy as np
import pytest

from anchorhead.verify.folders.layer import Map, Norm, Range, gated_bound, largest_singular, plain_bound, range_of
from anchorhead.verify.forms import EXACT
from anchorhead.verify.rounding import Arithmetic, arithmetic_of

MODEL = arithmetic_of("float32")
SIZES, ROUNDED = np.array([0.5, 2.0, 3.0]), np.array([1e-3, 2e-3, 3e-3])
DOWN = Map(np.array([[1.0, -2.0, 0.5], [0.1, 0.2, 0.3]]), np.array([4.0, 0.0]))
MOST = np.maximum(SIZES, 1.0)


def known(rounding: np.ndarray) -> Range:
    return Range(-3.0, 3.0, SIZES, rounding, 1e6)


@pytest.mark.parametrize("what", ["heads", "pre-activations", "sums"])
def test_every_term_of_a_plain_layer_counts(what: str) -> None:
    nothing = 0 * ROUNDED
    rounding = ROUNDED if what == "pre-activations" else nothing
    relative = 0.01 if what == "heads" else 0.0
    model: Arithmetic = MODEL if what == "sums" else EXACT
    found = plain_bound(known(rounding), DOWN, relative, 1.5, 2.0, model)
    sizes = np.abs(DOWN.weight[0])
    worst = {
        "heads": 0.01 * sizes @ MOST,
        "pre-activations": 1.5 * sizes @ ROUNDED,
        "sums": 4 * MODEL.unit * (2.0 * sizes @ MOST + 4.0),
    }[what]
    assert worst <= found <= 1.001 * worst


@pytest.mark.parametrize("what", ["heads", "gates", "values", "sums", "underflow"])
def test_every_term_of_a_gated_layer_counts(what: str) -> None:
    nothing = 0 * ROUNDED
    gates, values = (known(ROUNDED if what == one else nothing) for one in ("gates", "values"))
    relative, lost = 0.01 * (what == "heads"), 1e-3 * (what == "underflow")
    found = gated_bound(gates, values, DOWN, relative, 1.5, 2.0, lost, MODEL if what == "sums" else EXACT)
    sizes = np.abs(DOWN.weight[0])
    worst = {
        "heads": 0.01 * sizes @ (MOST * SIZES),
        "gates": 1.5 * sizes @ (ROUNDED * SIZES),
        "values": 2.0 * sizes @ (MOST * ROUNDED),
        "sums": 4 * MODEL.unit * (2.0 * sizes @ (MOST * SIZES) + 4.0),
        "underflow": 1e-3 * sizes.sum(),
    }[what]
    assert worst <= found <= 1.001 * worst


@pytest.mark.parametrize("centred", [True, False])
def test_every_term_of_a_range_counts(centred: bool) -> None:
    """The norm's slack and rounding, and the rounding of the dot product, at their worst."""
    rng = np.random.default_rng(0)
    scale, shift, weight, bias = rng.normal(size=6), rng.normal(size=6), rng.normal(size=(1, 6)), rng.normal(size=1)
    norm = Norm(scale, shift, centred, 0.1, 0.01)
    found = range_of(Map(weight, bias), norm, MODEL)
    a = weight[0] * scale
    seen = a - a.mean() if centred else a
    radius = np.sqrt(6)
    p, e = radius * seen / np.linalg.norm(seen), 0.1 * radius * a / np.linalg.norm(a)
    r = 0.01 * (np.abs(scale) * radius + np.abs(shift)) * np.sign(weight[0])
    z = scale * (p + e) + shift + r
    s = float(weight[0] @ z + bias[0])
    centre = float(weight[0] @ shift + bias[0])
    assert s <= found.high <= centre + 1.001 * (s - centre) + 1e-3
    assert found.low <= 2 * centre - s
    assert found.magnitude[0] >= abs(s)
    assert found.length >= max(abs(s), abs(2 * centre - s))
    assert found.rounding[0] >= 6 * MODEL.unit * float(np.abs(weight[0] * z).sum() + np.abs(bias[0]))


def test_ranges_hold_for_what_a_norm_puts_out() -> None:
    rng = np.random.default_rng(0)
    norm = Norm(rng.normal(size=24), rng.normal(size=24), True, 1e-3, 2.0**-22)
    weight, bias = rng.normal(size=(40, 24)), rng.normal(size=40)
    found = range_of(Map(weight, bias), norm, arithmetic_of("float32"))
    p = rng.normal(size=(4_000, 24))
    p[:24] = weight[:24] * norm.scale  # what drives a neuron farthest
    p -= p.mean(axis=1, keepdims=True)
    p *= np.sqrt(24) / np.linalg.norm(p, axis=1, keepdims=True)
    s = (p * norm.scale + norm.shift) @ weight.T + bias
    assert (np.abs(s) <= found.magnitude).all()
    assert np.abs(s[:24]).max() > 0.9 * found.magnitude[:24].min()
    assert np.linalg.norm(s, axis=1).max() <= found.length
    assert found.low <= s.min()
    assert s.max() <= found.high


def test_the_largest_singular_value_is_not_below_the_truth() -> None:
    rng = np.random.default_rng(1)
    for shape in ((5, 9), (30, 10), (12, 12)):
        matrix = rng.normal(size=shape)
        truth = np.linalg.svd(matrix, compute_uv=False)[0]
        assert truth <= largest_singular(matrix) <= truth * 1.01
    assert largest_singular(np.zeros((3, 4))) == 0


@pytest.mark.parametrize("small", [-300, -560])
def test_small_weights_count_as_others_do(small: int) -> None:
    """What is multiplied by a power of two before, and divided by it behind, is off by as much."""
    rng, model = np.random.default_rng(0), arithmetic_of("float64")
    norm = Norm(np.ones(8), np.zeros(8), False, 1e-3, 4 * model.unit)
    gate, up, down = (rng.normal(size=shape) for shape in ((12, 8), (12, 8), (8, 12)))
    found = []
    for power in (0, small):
        g, u = (range_of(Map(one, None), norm, model) for one in (gate, np.ldexp(up, power)))
        gated = gated_bound(g, u, Map(np.ldexp(down, -power), None), 1e-7, 1.1, 1.0, 0.0, model)
        plain = plain_bound(g, Map(np.ldexp(down, power), None), 1e-7, 1.1, 1.0, model)
        found.append((np.ldexp(u.length, -power), *np.ldexp(u.magnitude, -power), gated, np.ldexp(plain, -power)))
    np.testing.assert_allclose(*found, rtol=1e-9)
