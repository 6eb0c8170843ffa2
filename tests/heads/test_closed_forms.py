"""Lines, gates and splits: the closed forms that the solver builds on."""

import numpy as np
import pytest

from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Atom, Part
from anchorhead.heads.solver.pieces import split, whole_pieces
from anchorhead.heads.solver.problem import Problem
from anchorhead.heads.solver.straight import best_straight, straight
from tests.heads.cases import TARGETS


@pytest.mark.parametrize("q", [2, 3, 4])
def test_q_anchors_make_a_line_to_order_2q_minus_2(q):
    x = np.linspace(-1, 1, 101)

    def error(h):
        part = Part.of(*straight(q, h), "float64")
        return float(np.abs(Atom.of((part,), 0.0, 0.0, "float64").exact(x)[:, 0] - x).max())

    order = np.log(error(0.8) / error(0.4)) / np.log(2)
    assert order == pytest.approx(2 * q - 2, abs=0.25)


def test_more_anchors_make_a_better_line_in_both_dtypes():
    for dtype in ("float32", "float64"):
        errors = [best_straight(q, dtype, gates=1)[1] for q in (2, 3, 4, 5)]
        assert errors == sorted(errors, reverse=True)


@pytest.mark.parametrize(
    ("name", "parts"), [("relu", [3]), ("hardtanh", [4]), ("abs", [2, 3]), ("leaky_relu", [2, 3]), ("elu", [2, 3])]
)
def test_targets_split_into_the_cheapest_terms(name, parts):
    found = split(Problem.of(*TARGETS[name]))
    assert sorted(2 + term.gates for term in found.terms) == parts


@pytest.mark.parametrize("extend", [True, False])
@pytest.mark.parametrize("name", ["relu", "hardtanh", "abs", "soft_threshold", "elu", "hardswish", "broken line"])
def test_terms_add_up_to_the_target(name, extend):
    problem = Problem.of(*TARGETS[name])
    found = split(problem, extend)
    s = np.linspace(problem.low, problem.high, 4001)
    total = np.tile(found.constant, (len(s), 1))
    for term in found.terms:
        inside = np.clip(s, term.low if term.left else -np.inf, term.high if term.right else np.inf)
        total += term.g(inside)
    np.testing.assert_allclose(total, problem.at(s), atol=1e-12 * problem.scale)


def test_pieces_know_which_of_them_are_straight():
    pieces = whole_pieces(Problem.of(*TARGETS["hardswish"]))
    assert [piece.slope is None for piece in pieces] == [False, True, False]


def test_parts_of_unequal_lengths_are_refused():
    with pytest.raises(AnchorheadError, match="give"):
        Part.of([0.0, 1.0], [0.0], [1.0, 2.0], "float32")


def test_an_atom_computes_its_formula_in_its_dtype():
    one = Part.of([1.0, -2.0], [0.5, 0.0], [3.0, 1.0], "float32")
    two = Part.of([0.0], [0.0], [2.0], "float32")
    atom = Atom.of((one, two), 0.25, 10.0, "float32")
    assert atom.anchors == 3
    assert one.slopes.tolist() == [-2.0, 1.0]
    s = np.linspace(-1, 1, 7).reshape(7, 1)
    e = np.exp(np.stack([1.0 * (s - 0.25) + 0.5, -2.0 * (s - 0.25)]))
    expected = 10 + 2 + (3 * e[0] + 1 * e[1]) / (e[0] + e[1])
    assert atom(s).shape == (7, 1, 1)
    assert atom(s).dtype == np.float32
    np.testing.assert_allclose(atom(s)[..., 0], expected, rtol=1e-6)
    np.testing.assert_allclose(atom.exact(s)[..., 0].astype(float), expected, rtol=1e-14)
