"""Plans for expressions: what was found, and sizes that are those of the network that is built."""

import numpy as np
import pytest

import anchorhead as ah
from anchorhead.network import Attention

X, XY, XYZ = {"x": (-1, 1)}, {"x": (-1, 1), "y": (-1, 1)}, {"x": (-1, 1), "y": (0, 2), "z": (-3, 3)}
BUILT = {  # function, the words of ah.plan and ah.approximate, error
    "one head": ("exp(x) - x**2", {"on": X}, 1e-3),
    "a head of the table": ("gelu", {"on": {"x": (-10, 10)}}, 1e-4),
    "neurons": ("x*y + sin(z)", {"on": XYZ}, 1e-3),
    "a grid": ("sin(3*x)*cos(2*y) + exp(x*y)", {"on": XY}, 1e-4),
    "a grid and neurons": ("exp(x*y) + abs(x - z)", {"on": XYZ}, 1e-2),
    "a sequence": (
        [["x[0,0]*sin(x[1,0])"], ["max(x[0,0], x[1,0])"]],
        {"on": (0, 1), "tokens": 2, "features": 1},
        1e-3,
    ),
    "a linear map of tokens": (
        [["x[0,0] + x[1,0]"], ["x[0,0] - 2*x[1,0]"]],
        {"on": (0, 1), "tokens": 2, "features": 1},
        1e-3,
    ),
}


@pytest.mark.parametrize("name", BUILT)
def test_sizes_are_those_of_the_network_that_is_built(name):
    function, words, within = BUILT[name]
    plan = ah.plan(function, within=within, **words)
    network = ah.approximate(function, within=within, prove=False, **words)
    usual = "two-layer" if name == "neurons" else plan.rows[0].form
    row = next(r for r in plan.rows if (r.form, r.layout, r.placement) == (usual, "transformer", "solved"))
    assert row.reachable
    assert row.layers == len(network.layers)
    assert row.heads == sum(layer.heads for layer in network.layers if isinstance(layer, Attention))
    assert row.parameters == network.parameters
    assert row.bound <= within


@pytest.mark.parametrize("name", BUILT)
def test_no_weights_are_made(name, monkeypatch):
    def never(*_, **__):
        raise AssertionError("a plan has made weights")

    for place in ("constructions.layouts.draft.Draft.filled", "network.network.Network.__init__"):
        monkeypatch.setattr(f"anchorhead.{place}", never)
    function, words, within = BUILT[name]
    assert ah.plan(function, within=within, **words).rows[0].reachable


def test_every_term_is_named_with_what_it_becomes():
    plan = ah.plan("x*exp(x*y) + sin(z) + max(x, y)", on=XYZ, within=1e-2)
    assert plan.found == (
        ("x*exp(x*y)", "a grid of x, y"),
        ("sin(z)", "a function of one variable"),
        ("max(x, y)", "2 functions of one linear combination each"),
    )
    text = str(plan)
    assert text.startswith("x*exp(x*y) + sin(z) + max(x, y) for x in [-1, 1], y in [0, 2], z in [-3, 3], in")
    assert "  sin(z): a function of one variable\n" in text
    assert max(map(len, text.splitlines())) <= 100


def test_the_papers_placement_stands_beside_ours_and_is_larger():
    plan = ah.plan("sin(3*x)*cos(2*y) + exp(x*y)", on=XY)
    assert [row.within for row in plan.rows] == [w for w in (1e-2, 1e-4, 1e-6, 1e-8) for _ in range(2)]
    solved, even = plan.rows[::2], plan.rows[1::2]
    assert {row.placement for row in solved} == {"solved"}
    assert {row.placement for row in even} == {"uniform"}
    assert all(ours.anchors < theirs.anchors / 1000 for ours, theirs in zip(solved, even, strict=True))
    assert all(ours.anchors <= 200 and ours.reachable for ours in solved)
    assert not any(row.reachable for row in even)
    assert list(np.diff([row.parameters for row in solved]) > 0) == [True] * 3


def test_parameters_of_an_even_grid_are_those_of_the_network():
    plan = ah.plan("x*exp(y)", on=XY, within=0.2)
    row = plan.rows[1]
    network = ah.approximate("x*exp(y)", on=XY, within=0.2, placement="uniform")
    grid = network.layers[-1].grid
    ratio = row.parameters / row.anchors
    assert ratio == pytest.approx(network.parameters / np.prod(grid), rel=0.05)


def test_what_is_too_large_is_said_and_not_built(monkeypatch):
    monkeypatch.setattr("anchorhead.constructions.planning.plan_expressions.MAX_ANCHORS", 20)
    row, even = ah.plan("where(x < y, x*exp(y), y*exp(y))", on=XY, within=1e-6).rows
    assert even.note == "not built above 20 anchors"
    assert not row.reachable
    assert row.parameters is None
    assert "would take a grid of about" in row.note


def test_what_grids_do_not_reach_is_planned_in_layers(monkeypatch):
    monkeypatch.setattr("anchorhead.constructions.planning.plan_expressions.MAX_ANCHORS", 20)
    *rows, even = ah.plan("sin(3*x)*exp(x*y)", on=XY, within=1e-6).rows
    assert {(row.layout, row.placement, row.reachable) for row in rows} == {
        ("transformer", "solved", True),
        ("sequence", "solved", True),
    }
    assert even.placement == "uniform"


@pytest.mark.parametrize(
    ("function", "words", "message"),
    [
        ("x*y", {"on": X}, "y is not known"),
        ("x", {"on": XY}, "leave it out"),
        ("x", {"on": X, "activation": "relu"}, "is for files, not for expressions"),
        ("x", {"on": X, "within": 0}, "above 0"),
        ("x", {"on": X, "within": []}, "can be planned for"),
        ("sin(x*y)", {"on": XY, "within": 1e-300}, "are planned for"),
        ("exp(x*y)", {"on": XY, "form": "two-layer"}, "leave it out"),
        ("sin(x) + y", {"on": XY, "form": "deep", "layout": "diagonal"}, "one of 'transformer', 'sequence'"),
        ("1/x", {"on": X}, "not defined at"),
        ("1/(x - y)", {"on": XY}, "not defined at"),
        ("x/(x - y)", {"on": XY}, "is not finite at"),
    ],
)
def test_refusals(function, words, message):
    with pytest.raises(ah.AnchorheadError, match=message):
        ah.plan(function, **words)


def test_forms_and_layouts_can_be_picked():
    plan = ah.plan("x*y + sin(z)", on=XYZ, within=1e-2, form="two-layer", layout="sequence")
    assert {(row.form, row.layout) for row in plan.rows} == {("two-layer", "sequence")}


@pytest.mark.parametrize("function", ["gelu", "exp(x*x)*x"])
def test_a_plan_can_be_drawn_and_written(function, tmp_path):
    plan = ah.plan(function, on={"x": (-10, 10)} if function == "gelu" else X, within=[1e-1, 1e-2])
    ah.plot(plan, tmp_path / "plan.png")
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")
    assert plan.to_csv().count("\n") == 5
    assert plan.to_latex().startswith("\\begin{tabular}")
