"""Short inputs do not mean long work: it is counted, and what there is by then is the answer."""

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import anchorhead as ah
from anchorhead.cli.app import app
from anchorhead.constructions.layouts import neurons as neuron_layers
from anchorhead.constructions.single import head as heads
from anchorhead.effort import Effort
from anchorhead.heads.solver.solve import smallest

XY = {"x": (-1, 1), "y": (-1, 1)}


def nested(text, count, of="max"):
    for number in range(count):
        text = f"{of}({text}, {number / count}*x)"
    return text


def test_a_difference_of_the_same_is_nothing():
    found = ah.head("x - x", on=(-1, 1), within=1e-3)
    assert found.anchors == 1
    assert found.certificate.bound < 1e-300
    assert not np.any(found(np.linspace(-1, 1, 9)))
    ah.check(found)
    assert ah.approximate("x*y - y*x", on=XY, within=1e-3).certificate.bound < 1e-300


def test_maxima_in_maxima_are_one():
    assert ah.head(nested("x", 40), on=(-1, 1), within=1e-3).anchors == 3


def test_a_search_that_takes_too_much_work_leaves_the_best_head(monkeypatch):
    monkeypatch.setattr(heads, "SEARCH", 800_000)
    with pytest.raises(ah.NotReached, match="with the work that a search may take") as caught:
        ah.head("sin(9*x)", on=(-1, 1), within=1e-9)
    assert caught.value.network.certificate.kind == "proven"
    assert caught.value.network.certificate.bound == caught.value.bound > caught.value.within == 1e-9
    ah.check(caught.value.network)


def test_proofs_that_take_too_much_work_leave_the_best_head(monkeypatch):
    monkeypatch.setattr(heads, "PROOFS", 1_000)
    with pytest.raises(ah.NotReached, match="with the work that proofs may take") as caught:
        ah.head("sin(3*x)", on=(-1, 1), within=1e-3)
    network = caught.value.network
    x = np.linspace(-1, 1, 1001)
    assert np.abs(network(x[:, None, None])[:, 0, 0] - np.sin(3 * x)).max() <= network.certificate.bound


def test_no_rung_is_begun_that_the_work_does_not_suffice_for():
    """What a rung takes, 150,000 at the least, is known before it is begun."""
    effort, rungs = Effort(800_000), []
    with pytest.raises(ah.AnchorheadError, match="work that a search may take"):
        smallest(lambda x: 1 / (1e-4 + x**2), (), -1.0, 1.0, 1e-3, effort=effort, progress=rungs.append)
    assert 2 <= len(rungs) <= 1 + 800_000 // 150_000
    assert effort.over


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_errors_below_the_rounding_of_the_function_are_refused_at_once(dtype, monkeypatch):
    def searched(*given, **words):
        raise AssertionError("a search was begun")

    for place in (
        "constructions.single.head.smallest",
        "constructions.planning.plan_expressions.smallest",
        "constructions.passes.run.ActivationHeads",
    ):
        monkeypatch.setattr(f"anchorhead.{place}", searched)
    model = torch.nn.Sequential(torch.nn.Linear(1, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    model = model.double() if dtype == "float64" else model
    for ask in (
        lambda: ah.head("sin(x)", on=(-1, 1), within=1e-20, dtype=dtype),
        lambda: ah.head(np.sin, on=(-1, 1), within=1e-20, dtype=dtype),
        lambda: ah.approximate("x*y + sin(x)", on=XY, within=1e-20, dtype=dtype),
        lambda: ah.approximate("exp(x*y)", on=XY, within=1e-20, dtype=dtype),
        lambda: ah.convert(model, on=(-1, 1), within=1e-20),
        lambda: ah.plan(model, on=(-1, 1), within=1e-20),
        lambda: ah.plan("sin(x)", on={"x": (-1, 1)}, within=1e-20, dtype=dtype),
    ):
        with pytest.raises(ah.AnchorheadError, match=rf"within=1e-20 is less than {dtype} can tell apart"):
            ask()
    told = CliRunner().invoke(app, ["head", "sin(x)", "--on", "-1:1", "--within", "1e-20", "--dtype", dtype])
    assert told.exit_code != 0
    assert "can tell apart" in " ".join(told.output.split())


def test_small_functions_have_small_errors():
    assert ah.head("1e-30*sin(x)", on=(-1, 1), within=1e-33).certificate.bound <= 1e-33
    assert ah.approximate("x + 2*y", on=XY, within=1e-13).certificate.bound <= 1e-13


def test_the_names_of_neurons_take_a_look_at_all_of_them_once(monkeypatch):
    """Of 4 times the neurons, as many looks at all of them."""
    looks, unique = [], np.unique

    class Counting:
        def __getattr__(self, name):
            return self.unique if name == "unique" else getattr(np, name)

        @staticmethod
        def unique(*given, **words):
            looks.append(1)
            return unique(*given, **words)

    monkeypatch.setattr(neuron_layers, "np", Counting())
    counts = []
    for neurons in (50, 200):
        looks.clear()
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(2, neurons), torch.nn.ReLU(), torch.nn.Linear(neurons, 1)).double()
        ah.convert(model, on=(-1, 1), within=1e-3)
        counts.append(len(looks))
    assert counts[0] == counts[1]
