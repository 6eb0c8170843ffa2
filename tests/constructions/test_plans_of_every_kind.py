"""Plans go by the table of kinds that `ah.compile` goes by: sizes are those of the network that it builds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import anchorhead as ah
from anchorhead import incontext
from anchorhead.constructions import compile as compiling
from anchorhead.constructions.build_request import BuildRequest
from anchorhead.language.targets.kernel_smoother import KernelSmoother
from anchorhead.network import Attention, Repeat

RNG = np.random.default_rng(0)


def smoother():
    return ah.program(KernelSmoother(RNG.normal(size=(12, 2)), RNG.normal(size=(12, 1)), 0.5), on=(-1, 1))


def learner(loss="squared", **words):
    words = {"examples": 3, "rate": 0.05, "steps": 2, "features": 2, "on": (-1, 1), **words}
    return ah.program(incontext.gradient_descent(loss, **words))


def many():
    return ah.program(incontext.many_learners(("squared", "logistic"), steps=2, features=2))


def truncated():
    return ah.program(ah.truncated_linear(RNG.normal(size=(3, 2)), RNG.normal(size=3), -1, 1, on=(-2, 2)))


def model(*sizes):
    torch.manual_seed(0)
    pairs = itertools.pairwise(sizes)
    layers = [one for a, b in pairs for one in (torch.nn.Linear(a, b), torch.nn.ReLU())][:-1]
    return ah.program(torch.nn.Sequential(*layers), on=(0, 1))


def stacked():
    return ah.program("a*b", on={"a": (-9, 9), "b": (-9, 9)}) @ model(2, 16, 16, 2)


def waves(x):
    return np.sin(2 * x[..., 0]) * np.exp(x[..., 1])


WORDS = {"form": "deep", "layout": "transformer"}
CASES = {  # the kind's name, a program, an error, words of both
    "a learner of one attention a step": ("_learner", learner, None, {}),
    "a learner with a threshold": ("_learner", lambda: learner(threshold=0.01), None, {}),
    "a learner of links": ("_learner", lambda: learner("logistic", layout="transformer"), None, {}),
    "a learner in a sequence": (
        "_learner",
        lambda: learner("logistic", layout="sequence"),
        None,
        {"layout": "sequence"},
    ),
    "many learners": ("_many_learners", many, None, {}),
    "a kernel smoother": ("_smoother", smoother, None, {}),
    "a kernel smoother within an error": ("_smoother", smoother, 1e-6, {}),
    "truncated linear functions": ("_truncated", truncated, None, {}),
    "truncated linear functions within an error": ("_small", truncated, 1e-3, WORDS),
    "a head": ("_functions", lambda: ah.program("exp(x) - x**2", on=(-1, 1)), 1e-3, {}),
    "neurons": ("_functions", lambda: ah.program("x*y", on={"x": (0, 1), "y": (0, 1)}), 1e-3, WORDS),
    "a network": ("_chain", lambda: model(2, 8, 2), 1e-3, WORDS),
    "a formula of a network": ("_stack", stacked, 1e-2, WORDS),
}


@pytest.mark.parametrize("name", CASES)
def test_sizes_are_those_of_the_network_that_compile_builds(name):
    kind, make, within, words = CASES[name]
    program = make()
    found = next(k for k in compiling.KINDS if k.read(program, BuildRequest(within, **words)) is not None)
    assert found.read.__name__ == kind
    row = ah.plan(program, within=within, **words).rows[0]
    made = ah.compile(program, within, **words)
    assert row.reachable
    assert row.within == within
    assert (row.layers, row.heads, row.parameters) == (len(made.layers), heads(made), made.parameters)


def test_every_kind_can_be_planned():
    assert all(callable(kind.plan) for kind in compiling.KINDS)


@pytest.mark.parametrize("function", [np.sin, lambda x: np.stack([x, x**2], axis=-1)])
def test_a_callable_of_one_variable_is_planned_as_its_head_is_built(function):
    row = ah.plan(function, on=(-1, 1), within=1e-3).rows[0]
    made = ah.approximate(function, on=(-1, 1), within=1e-3)
    assert (row.layers, row.heads, row.parameters) == (len(made.layers), heads(made), made.parameters)


def test_a_callable_of_two_variables_is_planned_as_the_grid_that_is_built():
    on = {"x": (-1, 1), "y": (-1, 1)}
    plan, made = ah.plan(waves, on=on, within=[1e-2, 1e-3]), ah.approximate(waves, on=on, within=1e-3)
    assert plan.rows[1].parameters == made.parameters
    assert plan.rows[1].bound == pytest.approx(made.certificate.bound, rel=0.01)
    assert plan.found == (("waves", "a grid of x, y"),)


def test_heads_are_planned_with_what_they_approximate():
    for function in ("sin(x)", np.sin):
        head = ah.head(function, on=(-1, 1), within=1e-3)
        assert ah.plan(head, within=1e-3).rows[0].parameters == head.network.parameters


def test_a_program_that_knows_values_is_planned_with_its_function():
    program = ah.head(np.sin, on=(-1, 1), within=1e-3).network.program
    with pytest.raises(ah.AnchorheadError, match="function="):
        ah.plan(program, within=1e-3)
    assert ah.plan(program, within=1e-3, function=np.sin).rows[0].reachable


def test_what_is_fitted_is_refused_with_what_to_do():
    with pytest.raises(ah.AnchorheadError, match="build it"):
        ah.plan(lambda x: x.sum(-1), on=dict.fromkeys("abcde", (0, 1)), within=1e-2)


@pytest.mark.parametrize("name", ["a kernel smoother", "many learners", "truncated linear functions"])
def test_plans_without_an_error_are_written_and_drawn(name, tmp_path):
    plan = ah.plan(CASES[name][1]())
    assert "within" not in str(plan)
    assert max(map(len, str(plan).splitlines())) <= 100
    assert plan.to_csv().count("\n") == 2
    assert r"\midrule" in plan.to_latex()
    assert "sizes before building" in plan._repr_html_()
    ah.plot(plan, tmp_path / "plan.png")


def heads(made) -> int:
    layers = [one for each in made.layers for one in (each.layers if isinstance(each, Repeat) else (each,))]
    return sum(one.heads for one in layers if isinstance(one, Attention))
