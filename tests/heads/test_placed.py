"""Targets that turn round many times have heads, too: anchors placed by how they bend, values solved."""

from __future__ import annotations

import numpy as np
import pytest

import anchorhead as ah

WAVES = {
    "sin(50*x)": (1e-3, 60, lambda x: np.sin(50 * x)),
    "sin(exp(3.6*x))": (1e-2, 48, lambda x: np.sin(np.exp(3.6 * x))),
    "sin(30*x)*abs(x)": (1e-2, 56, lambda x: np.sin(30 * x) * np.abs(x)),
}


@pytest.mark.slow_for("sin(50*x)", "sin(30*x)*abs(x)")
@pytest.mark.parametrize("expression", WAVES)
def test_a_target_of_many_turns_has_a_head(expression):
    within, most, f = WAVES[expression]
    head = ah.head(expression, on=(-1, 1), within=within)
    assert head.certificate.kind == "proven"
    assert head.certificate.bound <= within
    assert head.anchors <= most
    x = np.linspace(-1, 1, 20_001)
    assert np.abs(head(x) - f(x)).max() <= head.certificate.bound
    ah.check(head)
