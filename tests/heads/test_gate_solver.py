"""The solver of gates: what its starts are, what its steps change, and that it finds small heads."""

import json

import numpy as np
import pytest

from anchorhead.errors import AnchorheadError
from anchorhead.heads.tables.gate_table import PATH, GateFrontier, all_gates, gate_frontiers
from anchorhead.heads.tables.table import read
from tools.gate_solver import GateProblem, Terms, bump, level, longer, rising, shorter, switched


def start(problem, registers):
    nodes = np.polynomial.legendre.leggauss(registers[1] + 1)[0]
    return rising(registers[0], problem.reach, 2.0), bump(problem, nodes, 2.0)


def test_silu_is_a_difference_of_two_reciprocals_of_integrals_of_exponentials():
    g = np.linspace(-20, 20, 400)
    t, w = np.polynomial.legendre.leggauss(60)
    plus = 1 / (np.exp(-g[:, None] * (t + 1)) @ w)  # over [0, 2]
    minus = 1 / (np.exp(g[:, None] * t) @ w)  # over [-1, 1]
    np.testing.assert_allclose(plus - minus, g / (1 + np.exp(-g)), atol=1e-12)


def test_eight_registers_make_a_silu_gate_within_1e_5():
    problem = GateProblem("silu", 16.0)
    fit = problem.fit(start(problem, (6, 3)))
    assert fit.registers <= 9
    assert fit.error < 1e-5
    between = np.linspace(-15.9, 15.9, 1777)
    found = sum(one.sign * one.reciprocal(between)[0] for one in fit.terms)
    error = np.abs(found - between / (1 + np.exp(-between))) / np.maximum(1, np.abs(between))
    assert error.max() < 1.5 * fit.error


def test_derivatives_are_those_of_the_residual():
    problem = GateProblem("gelu", 8.0)
    terms = rising(3, 8.0, 3.0), bump(problem, np.linspace(-3, 3, 5), 3.0)
    numbers = [one.numbers() for one in terms]
    exact = problem.jacobian(terms)
    column = 0
    for j, own in enumerate(numbers):
        for k in range(len(own)):
            step = np.where(np.arange(len(own)) == k, 1e-6, 0.0)
            moved = [[*terms[:j], terms[j].changed(own + sign * step), *terms[j + 1 :]] for sign in (1, -1)]
            slope = (problem.residual(moved[0]) - problem.residual(moved[1])) / 2e-6
            np.testing.assert_allclose(slope, exact[:, column], atol=1e-8)
            column += 1
    assert column == exact.shape[1]


def test_merging_takes_one_register_and_keeps_the_sum_where_the_merged_agree():
    problem = GateProblem("silu", 8.0)
    terms = start(problem, (4, 2))
    options = list(shorter(terms))
    assert len(options) == 4 + 2
    for option in options:
        assert sum(len(one.a) for one in option) == sum(len(one.a) for one in terms) - 1
        assert all(one.a[0] == 0 for one in option)
        for old, new in zip(terms, option, strict=True):
            np.testing.assert_allclose(new.reciprocal(np.zeros(1))[0], old.reciprocal(np.zeros(1))[0])


def test_a_longer_head_is_the_same_at_zero_and_rises_further():
    (one,) = longer((rising(4, 8.0, 2.0),))
    before = rising(4, 8.0, 2.0)
    assert len(one.a) == 6
    np.testing.assert_allclose(one.reciprocal(np.zeros(1))[0], before.reciprocal(np.zeros(1))[0])
    assert one.reciprocal(np.array([1e4]))[0] > 1.5 * before.reciprocal(np.array([1e4]))[0]


@pytest.mark.parametrize("steep", [50.0, 500.0])
def test_a_switch_costs_a_quarter_over_its_steepness(steep):
    t, w = np.polynomial.legendre.leggauss(40)
    slopes = -15 * (t + 1)
    line = Terms(np.append(0.0, slopes), np.append(-60.0, np.log(15 * w) + slopes), 1.0)  # 1 / (g + 1) as an integral
    g = np.concatenate([np.linspace(-2, 2, 1001), np.linspace(-0.2, 0.2, 1001)])
    made = sum(one.sign * one.reciprocal(g)[0] for one in switched((line, level(1.0)), steep))
    assert 0.2 / steep < np.abs(made - np.maximum(g, 0)).max() < 0.27 / steep


def test_the_table_is_read_as_it_was_written():
    for frontier in all_gates():
        again = GateFrontier.from_json(json.loads(json.dumps(frontier.to_json())))
        assert again.key == frontier.key
        for one, other in zip(frontier.heads, again.heads, strict=True):
            assert one.bound == other.bound
            for part, same in zip(one.parts, other.parts, strict=True):
                assert part.slopes.dtype == np.dtype(frontier.dtype)
                np.testing.assert_array_equal(part.slopes, same.slopes)
                np.testing.assert_array_equal(part.offsets, same.offsets)
                assert part.factor == same.factor


def test_heads_proven_for_another_arithmetic_are_not_offered():
    assert gate_frontiers("silu", "float32", "some other arithmetic") == []


def test_a_damaged_table_is_refused(tmp_path):
    content = PATH.read_bytes()
    damaged = tmp_path / "gate_table.jsonl"
    damaged.write_bytes(content[:-50] + bytes([content[-50] ^ 1]) + content[-49:])
    with pytest.raises(AnchorheadError, match="damaged"):
        read(damaged)
