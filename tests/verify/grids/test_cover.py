"""Grids against functions with a Lipschitz constant, by cells: no difference exceeds what is said, on any cell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from anchorhead.verify.errors import NotVerified
from anchorhead.verify.grids.cells import CELLS, _on_cells, cover
from anchorhead.verify.grids.functions import Known, Lipschitz
from anchorhead.verify.grids.head import Grid
from anchorhead.verify.rounding import arithmetic_of

FLOAT32 = arithmetic_of("float32")


def ripple(x: np.ndarray) -> np.ndarray:
    """With slopes of up to 3 along each axis."""
    return np.sin(3 * x[:, 0]) * np.cos(3 * x[:, 1])


def flat(x: np.ndarray) -> np.ndarray:
    return np.zeros(len(x))


def sine(x: np.ndarray) -> np.ndarray:
    return np.sin(3 * x[:, 0])


def _grid(sides: tuple[int, ...], scale: float = 1.0) -> Grid:
    rng = np.random.default_rng(4)
    slopes = [np.linspace(-6, 6, side).astype(np.float32).astype(float) for side in sides]
    offsets = [(-(one**2) / 12).astype(np.float32).astype(float) for one in slopes]
    values = scale * rng.normal(size=sides).astype(np.float32).astype(float)
    return Grid(list(zip(slopes, offsets, strict=True)), np.zeros(len(sides)), values)


def _worst(grid: Grid, function: Callable[..., Any]) -> float:
    """The largest difference that is found between a grid and a function."""
    x = np.random.default_rng(1).uniform(-1, 1, (4000, len(grid.axes)))
    read = np.broadcast_to(grid.values, (len(x), *grid.values.shape))
    for j, (slopes, offsets) in enumerate(grid.axes):
        w = np.exp(x[:, j : j + 1] * slopes + offsets)
        read = np.einsum("nk...,nk->n...", read, w / w.sum(axis=1, keepdims=True))
    return float(np.abs(read - function(x)).max())


def _known(function: Callable[..., Any], steep: float, d: int) -> Known:
    return Lipschitz((steep,) * d, euclidean=False).known(lambda x: (function(x), 1e-15 * np.ones(len(x))))


CASES: dict[str, tuple[tuple[int, ...], float, Callable[..., Any], float, int, float]] = {
    "coarse": ((5, 4), 1.0, ripple, 3.0, 12, 0.1),
    "fine": ((5, 4), 1.0, ripple, 3.0, 96, 0.5),
    "one cell": ((5, 4), 0.0, ripple, 3.0, 1, 0.1),
    "flat": ((5, 4), 1.0, flat, 0.0, 4, 0.01),
    "interval": ((5,), 1.0, sine, 3.0, 64, 0.3),
}


@pytest.mark.parametrize("case", CASES)
def test_no_difference_exceeds_the_bounds_on_cells(case: str) -> None:
    sides, scale, function, steep, count, least = CASES[case]
    grid, known = _grid(sides, scale), _known(function, steep, len(sides))
    bound, _, _ = _on_cells(grid, known, FLOAT32, [np.linspace(-1, 1, count + 1)] * len(sides))
    assert least < _worst(grid, function) / float(bound.max()) <= 1


@pytest.mark.parametrize("sides", [(5,), (5, 4), (3, 4, 2), (2, 3, 2, 2)], ids=str)
def test_what_is_stated_is_shown_or_refused(sides: tuple[int, ...]) -> None:
    def function(x: np.ndarray) -> np.ndarray:
        return np.abs(x).max(axis=1)

    grid, known = _grid(sides), _known(function, 1.0, len(sides))
    worst, box = _worst(grid, function), [(-1.0, 1.0)] * len(sides)
    assert cover(grid, known, box, FLOAT32, 1.3 * worst) > 0
    for stated in (0.97 * worst, 0.0):
        with pytest.raises(NotVerified, match="does not follow"):
            cover(grid, known, box, FLOAT32, stated)


def test_a_constant_that_values_contradict_is_refused() -> None:
    grid, known = _grid((5, 4)), _known(ripple, 1.0, 2)
    with pytest.raises(NotVerified, match="contradict"):
        cover(grid, known, 2 * [(-1.0, 1.0)], FLOAT32, 9.0)


def test_an_anchor_that_is_heard_within_cells_alone_counts() -> None:
    """At all centres and corners of the first cells its weight is below the smallest number, and elsewhere 1."""
    steep, at = 1e7, 0.3 / CELLS[2]
    axis = np.array([-steep, 0.0, steep]), np.array([steep * at - 100.0, 0.0, -steep * at - 100.0])
    grid = Grid([axis, (np.zeros(1), np.zeros(1))], np.zeros(2), np.array([[0.0], [1.0], [0.0]]))
    with pytest.raises(NotVerified, match="does not follow"):
        cover(grid, _known(flat, 1e-6, 2), 2 * [(-1.0, 1.0)], arithmetic_of("float64"), 0.01)


@pytest.mark.parametrize(("value", "far"), [(-564, 0), (0, 330), (-564, 330), (500, -330)])
def test_so_it_does_in_other_units(value: int, far: int) -> None:
    """Of values and inputs as small, or as large, as powers of two: squares of them, or of slopes, are 0 in float64."""
    steep, at = 1e7, 0.3 / CELLS[2]
    offsets = np.array([steep * at - 100.0, 0.0, -steep * at - 100.0])
    axis, reads = (np.ldexp(np.array([-steep, 0.0, steep]), -far), offsets), np.array([[0.0], [2.0**value], [0.0]])
    grid = Grid([axis, (np.zeros(1), np.zeros(1))], np.zeros(2), reads)
    known = Lipschitz((0.0, 0.0), euclidean=False).known(lambda x: (flat(x), flat(x)))
    with pytest.raises(NotVerified, match="does not follow"):
        cover(grid, known, [(-(2.0**far), 2.0**far), (-1.0, 1.0)], arithmetic_of("float64"), 0.01 * 2.0**value)


def test_what_is_between_the_corners_of_cells_counts() -> None:
    """A function that is 0 at the corners of all the first cells, and rises from there."""
    width = 2 / CELLS[2]

    def function(x: np.ndarray) -> np.ndarray:
        return ((0.5 - np.abs((x + 1) / width % 1 - 0.5)) * width).sum(axis=1)

    grid, known = _grid((5, 4), 0.0), _known(function, 1.0, 2)
    with pytest.raises(NotVerified, match="does not follow"):
        cover(grid, known, 2 * [(-1.0, 1.0)], FLOAT32, 0.6 * width)


def test_heads_bend_by_no_more_than_is_said() -> None:
    """From chords between corners at which it is right, a head moves away by nothing but its curvature."""
    grid, shares = _grid((5,)), []

    def read(x: np.ndarray) -> np.ndarray:
        w = np.exp(x[:, None] * grid.axes[0][0] + grid.axes[0][1])
        return w @ grid.values / w.sum(axis=1)

    def chords(cuts: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        return read(cuts[0]), np.full(len(cuts[0]), 1e-14), [np.zeros((len(cuts[0]) - 1, 1))]

    for count in (1, 2, 5, 20):
        cuts = np.linspace(-1, 1, count + 1)
        bound, _, _ = _on_cells(grid, chords, arithmetic_of("float64"), [cuts])
        for cell in range(count):
            x = np.linspace(cuts[cell], cuts[cell + 1], 200)
            shares.append(np.abs(read(x) - np.interp(x, cuts, read(cuts))).max() / bound[cell])
    assert 0.05 < max(shares) <= 1


def test_rounding_counts() -> None:
    grid = Grid([(np.zeros(1), np.zeros(1))] * 2, np.zeros(2), np.ones((1, 1)))
    bound, _, _ = _on_cells(grid, _known(lambda x: np.ones(len(x)), 1e-9, 2), FLOAT32, [np.array([0.0, 1.0])] * 2)
    assert float(bound.max()) > FLOAT32.unit


@pytest.mark.parametrize("size", [-530, 0, 530])
def test_lengths_of_steps_are_right_in_all_units(size: int) -> None:
    steps = np.ldexp(np.array([[3.0, -4.0], [0.0, 1.0], [0.0, 0.0]]), size)
    found = np.ldexp(Lipschitz((2.0,), euclidean=True).along(steps).sum(axis=1), -size)
    assert np.all(found >= [10.0, 2.0, 0.0])
    np.testing.assert_allclose(found, [10.0, 2.0, 0.0], rtol=1e-8)
