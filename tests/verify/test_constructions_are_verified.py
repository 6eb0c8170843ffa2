"""What the library proves, the verifier finds again, by its own route and no larger."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

import anchorhead as ah
from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.request import requested
from anchorhead.constructions.theorems.uniform_grid import approximate_uniform_grid
from anchorhead.network import Network
from anchorhead.verify import verify
from tests.convert.onnx_builder import model, node, saved, weights
from tests.networks import names, network

from .files import report

QUICK = (
    "head (float64)",
    "head, summed (float32)",
    "truncated linear, one head (float64)",
    "truncated linear, many heads (float32)",
    "truncated linear, outputs (float32)",
    "two-layer, transformer (float32)",
    "attention-softmax, causal (float32)",
    "deep, sequence (float32)",
    "neurons, smooth (float64)",
    "neurons, uniform (float32)",
    "expressions, causal (float64)",
    "kernel smoother (float64)",
    "grid, tokens (float64)",
    "parts, tokens (float32)",
    "parts, causal (float64)",
)
"""Rows that are verified wherever tests run; the others in `make slow`."""
NAMES = names("proven", without=("opaque scalar", "opaque several", "descent", "many learners"))
"""All but those that are verified given a function, or have a suite of their own."""


def _marked(name: str) -> object:
    return pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow])


@pytest.mark.parametrize("name", [_marked(name) for name in NAMES])
def test_bounds_of_the_table_follow(name: str, tmp_path: Path) -> None:
    found = report(name, tmp_path)
    assert found.verified, found.why
    assert 0 <= found.found <= found.stated
    assert found.steps or not found.found
    assert "exp within 4 ulp" in str(found)


def _neurons(activation: type[torch.nn.Module], *widths: int) -> torch.nn.Module:
    torch.manual_seed(0)
    layers: list[torch.nn.Module] = [torch.nn.Linear(3, 6), activation()]
    for before, after in pairwise((6, *widths)):
        layers += [torch.nn.Linear(before, after), activation()]
    return torch.nn.Sequential(*layers[:-1])


def _residual(folder: Path) -> Path:
    """x + V tanh(W x), as an ONNX file: lines and tanh in one layer."""
    nodes = [node("Gemm", "x w b", "z"), node("Tanh", "z", "a"), node("Gemm", "a v b", "r"), node("Add", "x r", "y")]
    constants = {"w": weights(2, 2), "b": weights(2), "v": weights(2, 2)}
    return saved(model(nodes, constants, ["n", 2]), folder)


def _still() -> torch.nn.Module:
    """The first neuron is 0 on (0, 1e-3), so that no input moves the others."""
    torch.manual_seed(0)
    first, second, last = torch.nn.Linear(1, 1), torch.nn.Linear(1, 2), torch.nn.Linear(2, 1)
    for parameter, value in ((first.weight, 1.0), (first.bias, -1.0), (second.bias, 0.3)):
        torch.nn.init.constant_(parameter, value)
    return torch.nn.Sequential(first, torch.nn.ReLU6(), second, torch.nn.ReLU6(), last).double()


@pytest.mark.parametrize(
    "what",
    ["kinks", "affine", "a large bias", "a root", "a root of what is shifted", "lines", "weights of e^-700",
     "linear layers", "a residual", "neurons that no input moves", "a switch of curves that touch"],
)  # fmt: skip
def test_single_heads_and_maps(what: str, tmp_path: Path) -> None:
    """Some of which were proven, and not verified, once."""
    nets = {
        "a root": lambda: ah.head("sqrt(x)", on=(0, 1), within=1e-2).network,
        "a root of what is shifted": lambda: ah.head("sqrt(1 - x)", on=(0, 1), within=1e-2, dtype="float32").network,
        "lines": lambda: ah.convert(_neurons(torch.nn.Hardsigmoid, 4, 2), (-1, 1), 1e-2, dtype="float32"),
        "weights of e^-700": lambda: ah.convert(
            _neurons(torch.nn.ReLU, 1), (-1, 1), 1e-2, dtype="float32", form="two-layer", layout="sequence",
            placement="uniform",
        ),
        "kinks": lambda: ah.head("abs(x) + relu(x)", on=(-1, 1), within=1e-3).network,
        "a large bias": lambda: ah.head("elu(x, 1)", on=(-3, 3), within=1e-6).network,
        "affine": lambda: ah.convert(torch.nn.Linear(3, 2), (-1, 1), 1e-3),
        "linear layers": lambda: ah.convert(_neurons(torch.nn.Identity, 4, 2).double(), (-1, 1), 1e-3),
        "a residual": lambda: ah.convert(_residual(tmp_path), (-1, 1), 1e-1, layout="sequence"),
        "neurons that no input moves": lambda: ah.convert(
            _still(), (0, 1e-3), 0.1, dtype="float32", layout="transformer"
        ),
        "a switch of curves that touch": lambda: ah.head("min(sin(x), x)", on=(-2, 2), within=1e-2).network,
    }  # fmt: skip
    nets[what]().save(tmp_path / "net.safetensors")
    found = verify(tmp_path / "net.safetensors")
    assert found.verified, found.why


def test_a_bound_that_is_measured_is_not_verified(tmp_path: Path) -> None:
    def measured(header: dict, arrays: dict) -> None:
        header["certificate"]["kind"] = "measured"

    assert not report("head (float32)", tmp_path, measured).verified


def test_reports_name_the_worst(tmp_path: Path) -> None:
    found = report("neurons, uniform (float32)", tmp_path)
    assert found.largest is not None
    assert "relu" in found.largest.what
    assert network("neurons, uniform (float32)").certificate.bound == found.stated


def test_two_softmaxes_of_a_kink_that_ask_with_sums_of_their_own_are_verified() -> None:
    """Each may round its query otherwise: by how much that moves them is told by slopes near the kink, not by steep
    anchors times large values."""
    network = ah.approximate("2*abs(x - y)", on={"x": (-1, 1), "y": (0, 2)}, within=1e-3, dtype="float32")
    assert ah.check(network).verified


def _of_large_values() -> Network:
    torch.manual_seed(0)
    neurons = torch.nn.Sequential(torch.nn.Linear(5, 2), torch.nn.SELU(), torch.nn.Linear(2, 3))
    return ah.convert(neurons, (0, 1), 1e-6, dtype="float64")


def _that_rounds_its_queries() -> Network:
    rng = np.random.default_rng(0)
    return ah.truncated_linear(rng.normal(size=(8, 4)), rng.normal(size=8), -1, 1, anchors=64, dtype="float32")


def _of_one_anchor_along_y() -> Network:
    return ah.approximate("x*log(y)", on={"x": (0.01, 3), "y": (100, 101)}, within=0.1)


def _of_one_even_anchor_along_y() -> Network:
    target = requested("abs(x) + 0*y", {"x": (-1, 1), "y": (-1, 1)}, None, None)
    return approximate_uniform_grid(target, BuildRequest(0.3, "float64", placement="uniform"))


def _of_a_function_that_is_flat_but_for_a_thousandth() -> Network:
    return ah.truncated_linear([[1.0, -0.5, 0.3]], [0.1], 0, 1e-3, anchors=64, dtype="float32")


def _of_an_exponential_that_has_vanished() -> Network:
    torch.manual_seed(0)
    neurons = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ELU(), torch.nn.Linear(2, 3))
    return ah.convert(neurons.double(), (100, 101), 1.0)


def _of_many_even_anchors() -> Network:
    last = torch.nn.Linear(1, 1, dtype=torch.float64)
    torch.nn.init.ones_(last.weight)
    return ah.convert(torch.nn.Sequential(torch.nn.Hardtanh(), last), (-2, 2), 1e-3, placement="uniform")


REFUSED_ONCE = {
    "many even anchors": _of_many_even_anchors,
    "a line that is short": _of_a_function_that_is_flat_but_for_a_thousandth,
    "an exponential that has vanished": _of_an_exponential_that_has_vanished,
    "queries that round more than the bound leaves to the head": _that_rounds_its_queries,
    "sums of few large numbers among many that are 0": _of_large_values,
    "one anchor along y": _of_one_anchor_along_y,
    "one even anchor along y": _of_one_even_anchor_along_y,
}


@pytest.mark.parametrize(
    "what", [pytest.param(what, marks=[pytest.mark.slow] * (what == "many even anchors")) for what in REFUSED_ONCE]
)
@pytest.mark.all_cases
def test_what_was_proven_and_refused(what: str) -> None:
    found = ah.check(REFUSED_ONCE[what]())
    assert found.found <= found.stated
