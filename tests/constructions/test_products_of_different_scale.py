"""Products are as good where one factor is large and the other small, or far from 0, as where both are of size 1."""

from __future__ import annotations

import numpy as np
import pytest

import anchorhead as ah
from anchorhead.language.analysis.ridges import box_of, structure
from anchorhead.language.expressions.parser import parse

pytestmark = pytest.mark.all_cases
CASES = (
    ("x*y", {"x": (0, 1e8), "y": (0, 1e-8)}, 1e-7, "float64"),
    ("x*y", {"x": (-100, 100), "y": (-0.01, 0.01)}, 2e-8, "float64"),
    ("x*y", {"x": (-1e150, 1e150), "y": (-1e150, 1e150)}, 1e293, "float64"),
    ("P*V", {"P": (1e5, 2e5), "V": (0.001, 0.01)}, 0.2, "float32"),
    ("x*y", {"x": (0, 3e18), "y": (0, 1e-18)}, 1e-3, "float32"),
    ("(pi*x + 3)*(y - 1)/3 + x*y", {"x": (0, 1e4), "y": (-1e-4, 1e-4)}, 1e-2, "float64"),
    ("x*y", {"x": (14999.5, 15000.5), "y": (14999.5, 15000.5)}, 1e-4, "float64"),
)


@pytest.mark.parametrize(("text", "on", "within", "dtype"), CASES)
def test_products_are_proven_and_verified_at_any_scale(text, on, within, dtype):
    net = ah.approximate(text, on=on, within=within, dtype=dtype)
    assert ah.check(net).line.startswith("verified")
    low, high = np.array(list(on.values())).T
    x = np.random.default_rng(0).uniform(low, high, (2000, 2)).astype(dtype)
    x = np.clip(x, low, high).astype(dtype)
    a, b = x.astype(np.longdouble).T
    exact = a * b if "pi" not in text else (np.longdouble(np.pi) * a + 3) * (b - 1) / 3 + a * b
    assert np.abs(np.asarray(net(x))[:, 0] - exact).max() <= net.certificate.bound <= within


def test_factors_of_one_size_are_left_as_they_are():
    names = ("x", "y")
    for ends, slopes in ((((-1, -1), (1, 1.9)), [1, 1]), (((0, 0), (1024, 1)), [2.0**-10, 1])):
        found = structure(parse("x*y", names), names, box_of(names, *ends))
        assert [np.abs(ridge.weight).tolist() for ridge in found.ridges] == [
            [slope / 2 ** (ends[1][0] > 2) for slope in slopes]
        ] * 2
