"""Smooth heads as quotients of polynomials: they err by no more than they say, and are only where they are worth it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from flint import arb

from anchorhead.language.expressions.precision import precision
from anchorhead.network.direct import Series
from anchorhead.network.direct.heads import SeriesHead
from anchorhead.proof.heads.smooth import Keys, magnitude, smooth

GELU = (-1.7782721519470215, 0.0, 0.0033370263408869505), (1.549125075340271, 0.0, 1.3346437215805054)
BEND = tuple(np.array(one) for one in (*GELU, (0.003653537016361952, -1453.126220703125, 382.5165100097656)))
STEP = tuple(np.array(one) for one in ((-0.5, 0.5), (0.125, -0.125), (-1.0, 1.0)))
CASES: dict[str, tuple[Keys, float, float, float, str]] = {
    "a bend": (BEND, -3.5, 3.5, 2e-4, "float32"),
    "a bend, to the left of 0": (BEND, -1.5, -0.25, 1e-3, "float32"),
    "a bend, closely": (BEND, -3.5, 3.5, 1e-8, "float64"),
    "a step": (STEP, -2.0, 5.0, 1e-5, "float32"),
    "a step, closely": (STEP, -2.0, 2.0, 1e-11, "float64"),
}  # type: ignore[assignment]


def exactly(keys: Keys, t: float) -> arb:
    logits = [arb(float(a)) * arb(t) + arb(float(g)) for a, g in zip(*keys[:2], strict=True)]
    weights = [one.exp() for one in logits]
    return sum((arb(float(v)) * w for v, w in zip(keys[2], weights, strict=True)), arb(0)) / sum(weights, arb(0))


def errors(found: Series, keys: Keys, t: np.ndarray, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Upper bounds on |shift + scale q - r| of what runs, and |scale q| + |shift|."""
    q = torch.from_numpy(t.astype(dtype))
    head = SeriesHead(found, dtype)
    given = q.tolist()
    for operation in head.operations(q, q.new_empty(head.scratch(len(q)))):
        operation()
    with precision(300):
        read = [arb(found.scale) * arb(one) + arb(found.shift) for one in q.tolist()]
        off = [float(abs(one - exactly(keys, at)).upper()) for one, at in zip(read, given, strict=True)]
    return np.array(off), np.abs(found.scale * q.double().numpy()) + abs(found.shift)


@pytest.mark.parametrize("name", CASES)
def test_they_err_by_no_more_than_they_say(name: str) -> None:
    """At random places, near the ends, and uphill from the worst; nothing is tolerated."""
    keys, low, high, allowed, dtype = CASES[name]
    found = smooth(keys, low, high, allowed, dtype)
    assert found is not None
    assert found.below
    assert found.error <= allowed
    rng, width = np.random.default_rng(0), high - low
    near = width * np.geomspace(1e-9, 0.1, 100)
    t = np.concatenate([rng.uniform(low, high, 400), low + near, high - near])
    worst, kind = 0.0, np.dtype(dtype).type
    inside = [float(np.nextafter(kind(end), kind((low + high) / 2))) for end in (low, high)]
    for _ in range(3):
        t = np.clip(t, inside[0], inside[1])
        off, sizes = errors(found, keys, t, dtype)
        worst = max(worst, float(off.max()))
        assert sizes.max() <= magnitude(found, low, high, dtype)
        t = np.repeat(t[off.argsort()[-10:]], 30) + width * rng.normal(size=300) * 10 ** rng.uniform(-8, -2, 300)
    assert 0.1 * found.error < worst <= found.error


def test_they_are_as_short_as_what_is_allowed_lets_them_be() -> None:
    lengths = []
    for allowed in (1e-2, 1e-4, 1e-6, 1e-8):
        found = smooth(BEND, -3.5, 3.5, allowed, "float64")  # type: ignore[arg-type]
        assert found is not None
        lengths.append(len(found.coefficients) + len(found.below))
    assert lengths == sorted(set(lengths))


def test_heads_that_are_steep_or_fall_or_would_round_too_much_have_none() -> None:
    slopes, offsets, values = STEP
    assert smooth((1000 * slopes, offsets, values), -2.0, 2.0, 1e-3, "float64") is None
    assert smooth((slopes, offsets, -values), -2.0, 2.0, 1e-3, "float64") is None
    assert smooth(STEP, -2.0, 2.0, 1e-9, "float32") is None  # type: ignore[arg-type]
