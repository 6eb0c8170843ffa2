"""No change makes networks larger, or bounds worse, than those in benchmarks/figures.csv."""

from __future__ import annotations

import pytest

from benchmarks.figures import KEPT, figures, larger, read
from benchmarks.figures_cases import cases

pytestmark = pytest.mark.all_cases

CASES, BEFORE = cases(), read(KEPT)
QUICK = (
    *(f"head {name} within 1e-06, float64" for name in ("gelu", "silu", "tanh", "relu", "abs", "exp", "sin", "erf")),
    *(f"head {name} within 0.001, float32" for name in ("gelu", "hardswish", "relu", "sqrt")),
    *(f"truncated linear, {size}, {dtype}" for size in ("64 anchors", "8 heads") for dtype in ("float64", "float32")),
    "convert 8-16-4, two-layer, transformer, float64",
    "convert 8-16-4, two-layer, sequence, float32",
    "convert 8-16-4, attention-softmax, transformer, float32",
    "convert 8-16-4, attention-softmax, sequence, float64",
    "convert 4-8-8-2, deep, transformer, float64",
    "convert 4-16-2, GELU, float64",
    "convert kernel smoother, float64",
    "approximate x*y within 1e-06, float64",
    "approximate max(x, min(y, z)) + abs(x - z) within 0.0001, float64",
    "approximate exp(x*y) within 0.001, float64",
    "approximate x*y + sin(z), sequence",
    "learner squared, direct, float32",
    "learner squared, transformer, float64",
    "learner logistic, sequence, float64",
)
"""What takes no time, and hangs on no last digit of a machine's linear algebra."""


def test_the_kept_figures_are_of_these_cases():
    assert set(BEFORE) == set(CASES)
    assert all(row["kind"] in ("proven", "measured") for row in BEFORE.values())


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_nothing_is_larger_or_less_certain_than_kept(name):
    assert not larger(figures(name, CASES[name]), BEFORE[name])
