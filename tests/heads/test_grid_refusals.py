"""What is out of reach of a grid is refused for the reason that it is, at once."""

import numpy as np
import pytest

from anchorhead.errors import AnchorheadError
from anchorhead.heads.grids.grid import solve_grid


@pytest.mark.parametrize(("dtype", "within"), [("float64", 1e-15), ("float32", 1e-7)])
def test_errors_below_the_rounding_of_the_dtype_are_refused_as_such(dtype, within):
    with pytest.raises(AnchorheadError, match=f"out of reach in {dtype}, whose rounding is the limit.* gets to about"):
        solve_grid(lambda x: np.sin(x[:, 0] * x[:, 1]), [-1, -1], [1, 1], within, dtype)


@pytest.mark.parametrize(("dtype", "within"), [("float64", 1e-9), ("float32", 1e-4)])
def test_what_the_refusal_says_is_reached_is_reached(dtype, within):
    atom = solve_grid(lambda x: np.sin(x[:, 0] * x[:, 1]), [-1, -1], [1, 1], within, dtype)
    x = np.random.default_rng(0).uniform(-1, 1, (1000, 2))
    assert np.abs(atom.exact(x)[:, 0] - np.sin(x[:, 0] * x[:, 1])).max() <= within


def test_a_grid_that_is_too_large_gives_no_advice_that_cannot_be_followed():
    with pytest.raises(AnchorheadError, match="would take a grid of about") as refused:
        solve_grid(lambda x: np.sin(60 * x[:, 0] * x[:, 1]), [-1, -1], [1, 1], 1e-3)
    assert "allow more anchors" not in str(refused.value)
