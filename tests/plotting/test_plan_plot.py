"""Pictures of plans."""

from __future__ import annotations

import matplotlib as mpl
import matplotlib.image
import numpy as np
import pytest

from anchorhead.constructions.plan import Plan, Row
from anchorhead.domain import Box
from anchorhead.plotting import plot


def row(within: float, form: str, layout: str, placement: str, known: bool = True) -> Row:
    count = round(3 / within) if placement == "uniform" else 4
    sizes = (5, 30, count, 20 * count, 8.0, 100 * count, 1e4) if known else (None,) * 7
    built = known and count < 1000
    return Row(within, form, layout, placement, *sizes, within, 100, built, "")  # type: ignore[arg-type]


def plan(known: bool, withins: tuple[float, ...]) -> Plan:
    rows = [
        row(within, form, layout, placement, known)
        for within in withins
        for form in ("two-layer", "attention-softmax", "deep")
        for layout in ("transformer", "sequence")
        for placement in ("solved", "uniform")
    ]
    return Plan("network 100 -> 10 -> 100 (relu, 20 tokens)", Box.of((0, 1)), "float64", tuple(rows))


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("withins", [(1e-1, 1e-2, 1e-4), (1e-3,)])
def test_a_plan_is_drawn(known, withins, tmp_path):
    plot(plan(known, withins), tmp_path / "plan.png")
    pixels = mpl.image.imread(tmp_path / "plan.png")
    assert min(pixels.shape[:2]) > 500
    assert pixels[..., :3].std() > 0.05
    assert len(np.unique(pixels[::4, ::4].reshape(-1, pixels.shape[-1]), axis=0)) > 20
