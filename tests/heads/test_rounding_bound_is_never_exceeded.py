"""The rounding bound against heads evaluated in the dtype and in a wider type: zero tolerance."""

import numpy as np
import pytest

from anchorhead.heads.atom import Atom, Part
from anchorhead.heads.rounding_estimate import least_rounding, rounding


def random_atom(rng, dtype):
    outputs = int(rng.integers(1, 3))
    parts = []
    for _ in range(int(rng.integers(1, 4))):
        p = int(rng.integers(1, 14))
        slopes = rng.normal(size=p) * 10 ** rng.uniform(-5, 5)
        offsets = rng.normal(size=p) * 10 ** rng.uniform(-3, 2)
        values = rng.normal(size=(p, outputs)) * 10 ** rng.uniform(-3, 5)
        if rng.random() < 0.3:
            values[rng.random(p) < 0.5] = 0.0
        parts.append(Part.of(slopes, offsets, values, dtype))
    origin = 0.0 if rng.random() < 0.5 else rng.normal() * 10 ** rng.uniform(-1, 3)
    bias = np.zeros(outputs) if rng.random() < 0.5 else rng.normal(size=outputs) * 10 ** rng.uniform(-3, 3)
    return Atom.of(parts, origin, bias, dtype)


def points(rng, atom):
    """Around the origin, near 0, and near the crossings of neighbouring keys, as the dtype holds them."""
    part = atom.parts[0]
    slopes, offsets, _ = part.astype(np.float64)
    steps = np.diff(slopes)
    crossings = -np.diff(offsets) / np.where(steps == 0, 1.0, steps)
    s = [atom.origin + rng.normal(size=40), rng.normal(size=20) * 10 ** rng.uniform(-3, 3, size=20)]
    if len(steps):
        pick = rng.integers(0, len(steps), size=60)
        s.append(atom.origin + crossings[pick] + rng.normal(size=60) * 3 / np.maximum(steps[pick], 1e-9))
    return np.clip(np.concatenate(s), -1e6, 1e6).astype(atom.dtype).astype(np.float64)


@pytest.mark.slow_for("float32")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_head_exceeds_its_bound(dtype):
    rng = np.random.default_rng(7)
    closest = 0.0
    for _ in range(1500):
        atom = random_atom(rng, dtype)
        s = points(rng, atom)
        gap = np.abs(atom(s).astype(np.longdouble) - atom.exact(s))
        bound = rounding(atom, s)
        assert (gap <= bound).all()
        closest = max(closest, float((gap / np.maximum(bound, 1e-300)).max()))
    assert closest > 0.05  # a bound, not a wild guess


def test_logits_that_float32_cannot_tell_apart_are_bounded_by_the_spread_of_the_values():
    """Slopes of 1e12 leave nothing of the weights near a crossing: the bound says so, and holds."""
    part = Part.of([-1e12, 0.0, 1e12], [5.0, 0.0, -3.0], [1.0, -2.0, 4.0], "float32")
    atom = Atom.of((part,), 0.3, 0.0, "float32")
    s = (0.3 + np.linspace(-1e-6, 1e-6, 401)).astype(np.float32).astype(np.float64)
    assert (np.abs(atom(s).astype(np.longdouble) - atom.exact(s)) <= rounding(atom, s)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_bound_is_below_what_rounding_costs_at_least(dtype):
    rng = np.random.default_rng(5)
    for _ in range(200):
        atom = random_atom(rng, dtype)
        s, part = points(rng, atom), atom.parts[0]
        alone = Atom.of((part,), atom.origin, np.zeros(len(atom.bias)), dtype)
        least = least_rounding(len(part), np.abs(alone.exact(s)).astype(np.float64), dtype)
        assert (rounding(alone, s) >= least * (1 - 1e-9)).all()
