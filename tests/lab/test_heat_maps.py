"""The heat maps show attention weights, and that they gather on the nearest anchors as ranges widen."""

from __future__ import annotations

import numpy as np
import pytest

from anchorhead.lab import heat_maps


@pytest.fixture(scope="module")
def maps():
    return heat_maps(tokens=12, heads=2)


def test_every_panel_holds_the_weights_of_all_tokens(maps):
    assert (np.diff(maps.s) > 0).all()
    shapes = {name: {panel.weights.shape for panel in row} for name, row in maps.rows.items()}
    assert shapes == {"single head": {(1, 12, 12)}, "2 heads": {(2, 12, 12)}}
    for row in maps.rows.values():
        for panel in row:
            np.testing.assert_allclose(panel.weights.sum(axis=-1), 1, rtol=1e-12)


def test_the_heaviest_anchor_of_a_single_head_is_the_nearest(maps):
    for panel in maps.rows["single head"]:
        anchors = np.linspace(panel.low, panel.high, 12)
        distance = np.abs(maps.s[:, None] - anchors)
        heaviest = panel.weights[0].argmax(axis=1)
        np.testing.assert_allclose(distance[np.arange(12), heaviest], distance.min(axis=1))


def test_weights_gather_as_the_range_widens(maps):
    for row in maps.rows.values():
        inside = [np.abs(maps.s) < panel.high for panel in row]
        peaks = [panel.weights.max(axis=(0, 2))[own].mean() for panel, own in zip(row, inside, strict=True)]
        peaks_alone = [panel.weights[0].max(axis=1)[own].mean() for panel, own in zip(row, inside, strict=True)]
        assert sorted(peaks_alone) == peaks_alone
        assert sorted(panel.c for panel in row) == [panel.c for panel in row]
        assert peaks[-1] > 0.8
