"""Bounds hold where numbers below the smallest normal one become 0, at scales at which that is all there is."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from flint import arb, ctx

import anchorhead as ah
from anchorhead.constructions.single.gate_head import gate_head
from anchorhead.convert.attention_only.attend import GateAttention
from anchorhead.convert.attention_only.heads import numbers_of
from anchorhead.incontext import gradient_descent
from anchorhead.language.expressions.parser import parse
from anchorhead.language.targets.kernel_smoother import KernelSmoother
from anchorhead.lemmas.learners.norms import lengths

TINY = {dtype: float(np.finfo(dtype).tiny) for dtype in ("float32", "float64")}


@contextmanager
def flushed(on: bool = True) -> Iterator[None]:
    if on and not torch.set_flush_denormal(True):
        pytest.skip("this processor does not flush to zero")
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def points(low: float, high: float, dtype: str) -> np.ndarray:
    """Numbers of the dtype in [low, high]: evenly, geometrically towards 0, and around the smallest normal one."""
    far = max(abs(low), abs(high))
    near = np.concatenate([far * np.geomspace(1e-9, 1, 60), TINY[dtype] * np.linspace(0, 3, 60)])
    found = np.concatenate([np.linspace(low, high, 101), near, -near]).astype(dtype)
    return np.unique(found[(found.astype(float) >= low) & (found.astype(float) <= high)])


def run(network: Callable[[Any], Any], x: np.ndarray, flush: bool) -> np.ndarray:
    with flushed(flush), warnings.catch_warnings():
        warnings.simplefilter("ignore", ah.OutsideWarning)
        return network(torch.from_numpy(x)).numpy()


@pytest.mark.parametrize(
    ("function", "far", "dtype"),
    [
        ("1e38*x", 1e-39, "float32"),
        ("1e37*x", 1e-37, "float32"),
        ("1e34*x", 1e-34, "float32"),
        ("x", 1e37, "float32"),  # its slopes would be subnormal
        ("1e300*x", 1.2e-308, "float64"),
    ],
)
def test_heads_hold(function: str, far: float, dtype: str):
    head, exact = ah.head(function, on=(-far, far), anchors=3, dtype=dtype), parse(function)
    x = points(-far, far, dtype)
    with ctx.workprec(200):
        for flush in (False, True):
            for at, found in zip(x.tolist(), run(head, x, flush).tolist(), strict=True):
                assert abs(exact.ball({"x": arb(at)}) - found) <= head.certificate.bound


def test_a_head_that_float32_does_not_hold_is_refused():
    with pytest.raises(ah.AnchorheadError, match="beyond what float32 holds"):
        ah.head("relu", on=(-1e-37, 1e-37), anchors=3, dtype="float32")


@pytest.mark.parametrize(
    ("w", "t", "ends", "far", "dtype"),
    [
        ([[1e37, 1e37]], [0.0], (-1.0, 1.0), 1e-37, "float32"),
        ([[1e37]], [0.5], (-1.0, 1.0), 1e-37, "float32"),
        ([[1.0]], [0.0], (-1e37, 1e37), 1e37, "float32"),
        ([[1e307]], [0.0], (-1.0, 1.0), 1e-307, "float64"),
    ],
)
def test_truncated_linear_functions_hold(w: Any, t: Any, ends: Any, far: float, dtype: str):
    network = ah.truncated_linear(np.array(w), np.array(t), *ends, anchors=8, on=(-far, far), dtype=dtype)
    some = points(-far, far, dtype)
    x = np.stack([np.roll(some, 7 * j) for j in range(len(w[0]))], axis=-1)[:, None, :]
    low, high, bound = (Fraction(one) for one in (*ends, network.certificate.bound))
    for flush in (False, True):
        for row, found in zip(x[:, 0].tolist(), run(network, x, flush).ravel().tolist(), strict=True):
            s = sum((Fraction(a) * Fraction(b) for a, b in zip(w[0], row, strict=True)), Fraction(t[0]))
            assert abs(min(max(s, low), high) - Fraction(found)) <= bound


def test_converted_networks_hold():
    relu = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    with torch.no_grad():
        for parameter, scale in zip(relu.parameters(), (1e30, 1e-7, 1e4, 1e-3), strict=True):
            parameter.copy_(scale * torch.linspace(-1, 1, parameter.numel()).reshape(parameter.shape))
    network = ah.convert(relu, on=(-1e-37, 1e-37), within=1e-3, dtype="float32")
    some = points(-1e-37, 1e-37, "float32")
    x = np.stack([some, np.roll(some, 11)], axis=-1)
    exact = relu.double()(torch.from_numpy(x).double()).detach().numpy()  # right to 1e-15, far below the bound
    for flush in (False, True):
        assert np.abs(run(network, x, flush) - exact).max() <= network.certificate.bound - 1e-12


def test_kernel_smoothers_hold_in_both_dtypes():
    for dtype, scale in (("float32", 1e-37), ("float64", 1e-307)):
        centres = scale * np.array([[-1.0], [0.3], [1.0]])
        smoother = KernelSmoother(centres, np.array([[-1.0], [0.5], [1.0]]), scale * 3)
        try:
            network = ah.convert(smoother, on=(-scale, scale), dtype=dtype)
        except ah.AnchorheadError:
            continue  # its keys are beyond the dtype
        x = points(-scale, scale, dtype)[:, None]
        exact = smoother.values(x.astype(np.float64))
        for flush in (False, True):
            assert np.abs(run(network, x, flush).reshape(exact.shape) - exact).max() <= network.certificate.bound


@pytest.mark.parametrize("flush", [False, True])
def test_gated_neurons_hold_for_values_that_become_zero(flush: bool):
    head, silu = gate_head("silu", 1e-4, "float32", 20.0), parse("silu(x)")
    g, u = (one.astype(np.float32) for one in (np.linspace(20, 19, 200), TINY["float32"] * np.linspace(-3, 3, 200)))
    with flushed(flush):
        found = GateAttention(numbers_of(head), path="direct")(torch.from_numpy(g), torch.from_numpy(u))
    for at, by, computed in zip(g.tolist(), u.tolist(), found.tolist(), strict=True):
        most = arb(head.bound) * max(1.0, abs(at)) * abs(by) + head.underflow
        assert abs(silu.ball({"x": arb(at)}) * by - computed) <= most


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-37])
def test_learners_hold_on_prompts_of_tiny_numbers(scale: float):
    dtype = "float32" if scale > 1e-38 else "float64"
    learner = gradient_descent(features=2, steps=3, rate=0.3, examples=6, on=(-1, 1), dtype=dtype)
    rng = np.random.default_rng(0)
    X, y = (scale * rng.uniform(-1, 1, (6, 2))).astype(dtype), (1e-6 * rng.uniform(-1, 1, 6)).astype(dtype)
    prompt = learner.prompt(X, y)
    bound, path = Fraction(learner.certify(prompt).bound), [[Fraction(0)] * 2]
    rows = [([Fraction(float(a)) for a in row], Fraction(float(b))) for row, b in zip(X, y, strict=True)]
    for _ in range(3):
        wrong = [sum((a * w for a, w in zip(row, path[-1], strict=True)), -label) for row, label in rows]
        pull = [sum(r * row[j] for r, (row, _) in zip(wrong, rows, strict=True)) / 6 for j in range(2)]
        path.append([w - Fraction(0.3) * g for w, g in zip(path[-1], pull, strict=True)])
    for flush in (False, True):
        with flushed(flush):
            found = learner(prompt, path=True)
        for exact, computed in zip(path, found.tolist(), strict=True):
            squared = sum((a - Fraction(b)) ** 2 for a, b in zip(exact, computed, strict=True))
            assert squared <= bound**2


def test_lengths_do_not_vanish_with_their_squares():
    for scale in (0.0, 5e-324, 1e-300, 1e-170, 1.0, 1e200):
        found = lengths(scale * np.array([[3.0, 4.0], [0.0, 1.0]]))
        assert (found >= scale * np.array([5.0, 1.0])).all()
        assert (found <= scale * np.array([5.0, 1.0]) * (1 + 1e-8)).all() or scale < 1e-320
    assert np.isinf(lengths(np.array([np.inf, 1.0])))
    assert np.isnan(lengths(np.array([np.nan, 1.0])))
