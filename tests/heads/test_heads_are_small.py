"""The fewest anchors for an error, rounding included: the table that the library promises."""

import numpy as np
import pytest

from anchorhead.heads.solver.problem import Problem
from anchorhead.heads.solver.search import Search
from anchorhead.heads.solver.solve import SAFETY, smallest
from tests.heads.cases import TARGETS

SMALL = [
    ("relu", 1e-9, "float64", 3),
    ("relu", 1e-11, "float64", 4),
    ("hardtanh", 1e-9, "float64", 4),
    ("abs", 1e-6, "float64", 4),
    ("abs", 1e-9, "float64", 5),
    ("leaky_relu", 1e-9, "float64", 5),
    ("soft_threshold", 1e-6, "float64", 5),
    ("elu", 1e-6, "float64", 4),
    pytest.param("hardswish", 1e-6, "float64", 6, marks=pytest.mark.slow),
    pytest.param("silu", 1e-6, "float64", 3, marks=pytest.mark.slow),
    pytest.param("square", 1e-6, "float64", 3, marks=pytest.mark.slow),
    ("sin", 1e-6, "float64", 6),
    ("sin(3x) exp(x)", 1e-6, "float64", 6),
    pytest.param("exp(-x^2)", 1e-6, "float64", 7, marks=pytest.mark.slow),
    ("sigmoid", 1e-14, "float64", 2),
    ("tanh", 1e-14, "float64", 2),
    ("relu", 1e-4, "float32", 3),
    ("relu", 1e-5, "float32", 4),
    ("hardtanh", 1e-4, "float32", 4),
    pytest.param("gelu", 2e-5, "float32", 9, marks=pytest.mark.slow),
]


@pytest.mark.slow_for(
    "tanh-1e-14-float64-2", "elu-1e-06-float64-4", "sin-1e-06-float64-6", "sin(3x) exp(x)-1e-06-float64-6"
)
@pytest.mark.parametrize(("name", "within", "dtype", "anchors"), SMALL)
def test_the_fewest_anchors_for_an_error(name, within, dtype, anchors):
    f, kinks, low, high = TARGETS[name]
    found = smallest(f, kinks, low, high, within, dtype)
    assert found.atom.anchors <= anchors
    assert found.total <= SAFETY * within

    # as the dtype computes it, at inputs that it holds, many of them next to the kinks
    rng = np.random.default_rng(0)
    near = [k + sign * np.geomspace(1e-14, high - low, 3000) for k in (*kinks, low, high) for sign in (-1, 1)]
    s = np.concatenate([rng.uniform(low, high, 20_000), *near])
    s = s[(s >= low) & (s <= high)].astype(dtype).astype(np.float64)
    s = s[(s >= low) & (s <= high)]
    assert np.abs(found.atom(s)[:, 0].astype(np.float64) - f(s)).max() <= within


@pytest.mark.slow
def test_gelu_climbs_from_seven_anchors_to_eight():
    search = Search(Problem.of(*TARGETS["gelu"]), "float64")
    errors = {found.atom.anchors: found.total for found in search.climb(search.ladder, 8)}
    assert errors[7] <= SAFETY * 2e-5
    assert errors[8] <= SAFETY * 1e-6
