"""Kernel smoothers as attention: nothing but rounding, and stored numbers that are no others than the program's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from flint import arb

import anchorhead as ah
from anchorhead.language.targets.kernel_smoother import KernelSmoother
from anchorhead.network import Network
from anchorhead.verify.balls import precision
from anchorhead.verify.kernel import Kernel, rounding_error

LOW, HIGH = np.array([-1.0, 0.5]), np.array([2.0, 1.5])


def smoother(p: int, amplitudes: bool) -> KernelSmoother:
    rng = np.random.default_rng(p)
    weights = rng.uniform(0.5, 2, p) if amplitudes else None
    return KernelSmoother(rng.normal(size=(p, 2)), rng.normal(size=(p, 2)), np.array([0.3, 0.7]), weights)


def keys_of(target: KernelSmoother) -> list[list[arb]]:
    with precision():
        squares = [arb(b) ** 2 for b in target.bandwidth.tolist()]
        amplitudes = np.ones(target.anchors) if target.amplitudes is None else target.amplitudes
        keys = []
        for centre, a in zip(target.centres.tolist(), amplitudes.tolist(), strict=True):
            terms = [arb(c) ** 2 / b for c, b in zip(centre, squares, strict=True)]
            slopes = [arb(c) / b for c, b in zip(centre, squares, strict=True)]
            keys.append([*slopes, arb(a).log() - sum(terms, arb(0)) / 2])
        return keys


def stored(network: Network) -> Kernel:
    embed, bias = network.embed, network.layers[-1].bias
    tokens = np.concatenate([one for one in (embed.bias[None], embed.registers) if one is not None]).astype(np.float64)
    middle = np.zeros(tokens.shape[1] - 6) if bias is None else bias.astype(np.float64)
    return Kernel(tokens[:, 3:5], tokens[:, 5], tokens[:, 6:], -tokens[0, :2], middle)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("p", "amplitudes"), [(1, False), (20, True), (300, False)])
def test_what_is_stated_follows(p: int, amplitudes: bool, dtype: str) -> None:
    target = smoother(p, amplitudes)
    network = ah.convert(target, on=(LOW, HIGH), dtype=dtype)
    assert network.certificate is not None
    kernel, keys = stored(network), keys_of(target)
    found = rounding_error(kernel, keys, target.responses, LOW, HIGH, dtype)
    assert found <= network.certificate.bound
    x = np.random.default_rng(1).uniform(LOW, HIGH, (2_000, 2)).astype(dtype)
    away = np.abs(np.asarray(network(x), np.longdouble) - target.values(x))
    assert float(away.max()) <= found


@pytest.mark.parametrize("what", ["slopes", "offsets", "values", "origin", "middle"])
def test_a_moved_weight_is_refused(what: str) -> None:
    target = smoother(20, False)
    network = ah.convert(target, on=(LOW, HIGH), dtype="float64")
    assert network.certificate is not None
    kernel = stored(network)
    moved = getattr(kernel, what).copy()
    moved.flat[0] += 1e-9
    wrong = replace(kernel, **{what: moved})
    found = rounding_error(wrong, keys_of(target), target.responses, LOW, HIGH, "float64")
    assert found > network.certificate.bound


def test_what_all_keys_share_changes_nothing() -> None:
    target = smoother(20, False)
    network = ah.convert(target, on=(LOW, HIGH), dtype="float64")
    assert network.certificate is not None
    with precision():
        shifted = [[key[0] + 3, key[1] - 1, key[2] + 5] for key in keys_of(target)]
    found = rounding_error(stored(network), shifted, target.responses, LOW, HIGH, "float64")
    assert found <= network.certificate.bound


def test_every_rounding_of_the_logits_counts() -> None:
    """Inputs less the origin, a product and two sums round against one another, in keys along different axes."""
    steep, tiny, origin = 1e4, 1e-9, np.array([0.5, 0.5])
    slopes, offsets, values = np.array([[steep, tiny], [tiny, steep]]), np.full(2, tiny), np.array([[1.0], [-1.0]])
    kernel = Kernel(slopes, offsets, values, origin, np.zeros(1))
    with precision():
        keys = [[*map(arb, row), arb(tiny) - sum((arb(a) / 2 for a in row), arb(0))] for row in slopes.tolist()]
    there = np.full(2, 1.5)
    found = rounding_error(kernel, keys, values, there, there, "float32")
    worst = np.tanh(4 * 2.0**-24 * steep)
    assert 0.99 * worst <= found <= 1.3 * worst
