"""What holds for every head that the solver returns."""

from itertools import pairwise

import numpy as np
import pytest

from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Atom, Part
from anchorhead.heads.solver.measure import estimate
from anchorhead.heads.solver.problem import Problem
from anchorhead.heads.solver.search import Search
from anchorhead.heads.solver.single import Solution
from anchorhead.heads.solver.solve import improvements, smallest
from anchorhead.heads.uniform import uniform
from tests.heads.cases import TARGETS


def best(*given) -> Solution:
    return min(improvements(*given), key=lambda solution: solution.total)


def weights(found):
    return [array for part in found.atom.parts for array in (part.slopes, part.offsets, part.values)]


@pytest.mark.parametrize(
    ("name", "dtype", "counts"),
    [
        ("silu", "float64", (2, 3)),
        pytest.param("abs", "float64", (3, 5, 6), marks=pytest.mark.slow),
        ("elu", "float32", (3, 5)),
    ],
)
def test_more_anchors_are_never_worse(name, dtype, counts):
    found = [best(*TARGETS[name], anchors, dtype) for anchors in counts]
    assert all(late.total <= early.total for early, late in pairwise(found))
    assert all(solution.atom.anchors <= anchors for solution, anchors in zip(found, counts, strict=True))


@pytest.mark.parametrize(
    ("name", "dtype"), [("sin", "float32"), pytest.param("elu", "float64", marks=pytest.mark.slow)]
)
def test_the_same_question_has_the_same_answer(name, dtype):
    first, second = (smallest(*TARGETS[name], 5e-4, dtype) for _ in range(2))
    for one, other in zip(weights(first), weights(second), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("name", "size"), [pytest.param("silu", 1e6, marks=pytest.mark.slow), ("relu", 1e6), ("relu", 1e-6)]
)
def test_scaling_domain_or_target_scales_the_answer(name, size):
    f, kinks, low, high = TARGETS[name]
    plain = smallest(f, kinks, low, high, 1e-6)
    wide = smallest(lambda x: f(x * size), [k / size for k in kinks], low / size, high / size, 1e-6)
    tall = smallest(lambda x: size * f(x), kinks, low, high, 1e-6 * size)
    assert wide.atom.anchors == tall.atom.anchors == plain.atom.anchors
    assert wide.total == pytest.approx(plain.total, rel=0.5)
    assert tall.total == pytest.approx(size * plain.total, rel=0.5)


@pytest.mark.slow_for("float32")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_far_from_zero_the_query_starts_in_the_middle(dtype):
    found = smallest(np.sin, (), 1000.0, 1005.0, 1e-3, dtype)
    assert found.atom.anchors <= 4
    assert found.atom.origin == 1002.5


@pytest.mark.slow
def test_a_broken_line_with_many_knots():
    assert smallest(*TARGETS["broken line"], 1e-4).atom.anchors <= 20


@pytest.mark.slow
def test_kinks_between_curves_converge():
    kinks = (-np.pi / 5, 0.0, np.pi / 5)
    found = smallest(lambda x: np.abs(np.sin(5 * x)), kinks, -1.0, 1.0, 1e-4)
    assert found.atom.anchors <= 12


@pytest.mark.slow
def test_several_outputs_share_their_keys():
    found = smallest(lambda x: np.stack([np.sin(x), np.cos(x)], axis=1), (), -1.6, 1.6, 1e-3)
    assert found.atom.parts[0].values.shape == (found.atom.anchors, 2)
    assert found.atom.anchors <= 5


@pytest.mark.slow
def test_an_oscillation_is_resolved():
    assert smallest(lambda x: np.sin(9 * x), (), -1.0, 1.0, 1e-2).atom.anchors <= 9


@pytest.mark.slow_for("max_value-20.0")
@pytest.mark.parametrize(("cap", "size"), [("max_value", 20.0), ("max_slope", 1000.0)])
def test_caps_are_kept(cap, size):
    for name in ("relu", "gelu"):
        found = smallest(*TARGETS[name], 3e-3, **{cap: size})
        assert getattr(found.atom, cap) <= size


def test_a_constant_is_one_anchor():
    assert smallest(lambda x: np.full_like(x, 3.0), (), -1.0, 1.0, 1e-9).atom.anchors == 1


@pytest.mark.slow
def test_what_is_out_of_reach_is_refused_with_what_would_help():
    with pytest.raises(AnchorheadError, match=r"best head found errs by .*float64"):
        smallest(*TARGETS["relu"], 1e-9, "float32")
    with pytest.raises(AnchorheadError, match=r"higher max_slope than 100"):
        smallest(*TARGETS["relu"], 1e-6, max_slope=100.0)
    with pytest.raises(AnchorheadError, match=r"within=0"):
        smallest(*TARGETS["relu"], 0.0)
    with pytest.raises(AnchorheadError, match=r"anchors=0"):
        improvements(*TARGETS["relu"], 0)
    with pytest.raises(AnchorheadError, match=r"not finite at 0"), np.errstate(divide="ignore"):
        smallest(lambda x: 1 / x, (), 0.0, 1.0, 1e-3)


def test_progress_is_told():
    told = []
    smallest(*TARGETS["tanh"], 1e-9, progress=told.append)
    assert [status.anchors for status in told] == [1, 2]
    assert told[-1].error < 1e-9


@pytest.mark.parametrize("name", ["relu", "abs", "gelu", "elu"])
def test_the_estimate_finds_the_largest_error_that_a_long_search_finds(name):
    f, kinks, low, high = TARGETS[name]
    found = best(f, kinks, low, high, 4)
    problem = Problem.of(f, kinks, low, high)
    fine = np.concatenate(
        [k + sign * np.geomspace(1e-16, high - low, 40_000) for k in (*kinks, 0.0) for sign in (-1, 1)]
        + [np.linspace(low, high, 40_001)]
    )
    fine = fine[(fine >= low) & (fine <= high)]
    gap = np.abs(problem.at(fine) - found.atom.exact(fine)).max()
    assert gap <= 1.01 * found.estimate.exact + 1e-15
    assert found.estimate == estimate(found.atom, problem)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("sin", "float32"),
        pytest.param("gelu", "float64", marks=pytest.mark.slow),
        pytest.param("elu", "float64", marks=pytest.mark.slow),
    ],
)
def test_sketches_tell_the_error_of_solutions(name, dtype):
    search = Search(Problem.of(*TARGETS[name]), dtype)
    for way in search.ways:
        for anchors in range(way.fewest, way.fewest + 3):
            gain = way.solution(anchors).total / way.estimate(anchors).total
            assert 0.08 < gain < 2


@pytest.mark.slow
def test_an_aim_that_rounding_rules_out_is_given_up_early():
    told = []
    with pytest.raises(AnchorheadError, match=r"out of reach .* by rounding.* with \d+ anchors"):
        smallest(*TARGETS["sin"], 3e-7, "float32", progress=told.append)
    assert max(status.anchors for status in told) <= 9


def test_even_anchors_follow_the_papers_rate():
    errors = [uniform(np.sin, -3.0, 3.0, p).total for p in (16, 64)]
    assert errors[1] < errors[0] / 3
    assert uniform(lambda x: x, 0.0, 1.0, 33, c=2.7).total == pytest.approx(0.063 / 32, rel=0.05)
    with pytest.raises(AnchorheadError, match="at least 2"):
        uniform(np.sin, 0.0, 1.0, 1)


def test_weights_that_overflow_are_estimated_to_err_without_end():
    huge = Part(*(np.array(array, dtype=np.float32) for array in ([-1, 1], [0, 0], [[0], [np.inf]])))
    atom = Atom.of([huge], 0.0, [0.0], "float32")
    assert estimate(atom, Problem.of(np.abs, (0.0,), -1.0, 1.0)).total == np.inf
