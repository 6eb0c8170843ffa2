"""Jumps are told from steep slopes, kinks and roots, in expressions and in callables of several variables."""

import numpy as np
import pytest

import anchorhead as ah
from anchorhead.language.expressions.parser import parse
from anchorhead.language.jump_search import find_jump, find_jump_of
from anchorhead.language.several import SeveralVariables

ON = {"x": (-1.0, 1.0), "y": (-1.0, 1.0)}
LOW, HIGH = np.array([-1.0, -1.0]), np.array([1.0, 1.0])


def _target(text):
    return SeveralVariables((parse(text, ("x", "y")),), ("x", "y"), (-1, -1), (1, 1))


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("where(x > y, 1, 0)", 1.0),
        ("where(x > y, 0.01, 0) + sin(5*x*y)", 0.01),
        ("where(x > 0, where(y > 0.9, 1, 0), 0)", 1.0),
    ],
)
def test_a_jump_of_an_expression_is_found_with_its_size_at_points_next_to_each_other(text, size):
    target = _target(text)
    jump = find_jump_of(target)
    assert jump is not None
    a, b = (np.array([point]) for point in jump.points)
    assert np.abs(a - b).max() < 1e-11
    assert abs(target.values(a) - target.values(b)).item() == pytest.approx(size, abs=1e-9)


@pytest.mark.parametrize(
    "text",
    [
        "where(x > y, x, y)",
        "where(x*y > 0, x*y, 0)",
        "where(x*y > 0, sqrt(abs(x*y)), 0)",
        "where(x > y, 1, 0) + where(x > y, 0, 1)",
        "tanh(1000000*x*y)",
    ],
)
def test_continuous_expressions_have_no_jump(text):
    assert find_jump_of(_target(text)) is None


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.tanh(1e6 * x[:, :1]),
        lambda x: np.tanh(1e9 * (x[:, :1] - x[:, 1:])),
        lambda x: np.abs(x[:, :1]) ** 0.01,
        lambda x: np.tanh(100 * x.astype(np.float32)).astype(np.float64),
    ],
)
def test_steep_functions_that_are_continuous_have_no_jump(f):
    assert find_jump(f, LOW, HIGH, 1e-3, 1e-3) is None


@pytest.mark.parametrize("placement", ["solved", "uniform"])
@pytest.mark.parametrize("text", ["where(x > y, 1, 0)", "where(x > 0, y, 0)"])
def test_an_expression_that_jumps_is_refused_as_not_continuous(text, placement):
    with pytest.raises(ah.AnchorheadError, match=r"not continuous: it jumps from .* at x = .*, y = "):
        ah.approximate(text, on=ON, within=1e-2, placement=placement)


def test_a_kink_names_the_ways_out_and_they_lead_out():
    with pytest.raises(ah.AnchorheadError, match=r'kink inside the box.*placement="uniform".*max, min or abs'):
        ah.approximate("where(x > y, x, y)", on=ON, within=0.1)
    for net in (
        ah.approximate("where(x > y, x, y)", on=ON, within=0.1, placement="uniform"),
        ah.approximate("max(x*y, 0)", on=ON, within=0.1),
    ):
        assert net.certificate is not None
        assert net.certificate.kind == "proven"


@pytest.mark.parametrize("form", [None, "deep"])
def test_a_callable_that_jumps_is_refused_with_both_values_before_any_fit(form):
    calls = []

    def sign(x):
        calls.append(len(x))
        return np.sign(x[:, 0] - 0.3)

    with pytest.raises(ah.AnchorheadError, match=r"sign is not continuous: it is -?1 at \[0\.[23].* and -?1 at"):
        ah.approximate(sign, on=ON, within=1e-2, form=form)
    assert sum(calls) < 40_000
