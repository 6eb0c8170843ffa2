"""What the library proves, the verifier finds again, by its own route and no larger."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import anchorhead as ah
from anchorhead.verify import verify
from export.table import CONSTRUCTIONS, DTYPES, network

from .files import report

OTHERS = ("grid", "grid and neuron", "kernel smoother")
"""By lemmas of their own."""
QUICK = ("head", "function of one variable", "deep, uniform", "causal", "truncated linear, one head")
NAMES = [f"{name} ({dtype})" for dtype in DTYPES for name in CONSTRUCTIONS if name not in OTHERS]


def _marked(name: str) -> object:
    what, _, dtype = name.removesuffix(")").rpartition(" (")
    quick = what in QUICK or (dtype == "float32" and "softmax," not in what)
    return pytest.param(name, marks=[] if quick else [pytest.mark.slow])


@pytest.mark.parametrize("name", [_marked(name) for name in NAMES])
def test_bounds_of_the_table_follow(name: str, tmp_path: Path) -> None:
    found = report(name, tmp_path)
    assert found.verified, found.why
    assert 0 < found.found <= found.stated
    assert found.steps
    assert "exp within 4 ulp" in str(found)


@pytest.mark.parametrize("dtype", DTYPES)
def test_conditions_restrict_what_is_verified(dtype: str, tmp_path: Path) -> None:
    w = np.array([[1.0, -0.5], [0.3, 0.8]])
    net = ah.truncated_linear(w, [0.1, -0.2], -1, 1, anchors=6, on=(-2, 2), outputs=lambda k: k // 3, dtype=dtype)
    net.save(tmp_path / "net.safetensors")
    found = verify(tmp_path / "net.safetensors")
    assert found.verified, found.why


@pytest.mark.parametrize("what", ["far from 0", "several functions", "kinks", "affine"])
def test_single_heads_and_maps(what: str, tmp_path: Path) -> None:
    nets = {
        "far from 0": lambda: ah.head("exp(-x/100)", on=(100, 104), within=1e-3, dtype="float32").network,
        "several functions": lambda: ah.approximate(["sin(x)", "cos(x)"], {"x": (-1, 1)}, 1e-2),
        "kinks": lambda: ah.head("abs(x) + relu(x)", on=(-1, 1), within=1e-3).network,
        "affine": lambda: ah.convert(torch.nn.Linear(3, 2), (-1, 1), 1e-3),
    }
    nets[what]().save(tmp_path / "net.safetensors")
    found = verify(tmp_path / "net.safetensors")
    assert found.verified, found.why


def test_a_bound_that_is_measured_is_not_verified(tmp_path: Path) -> None:
    def measured(header: dict, arrays: dict) -> None:
        header["certificate"]["kind"] = "measured"

    assert not report("head (float32)", tmp_path, measured).verified


def test_reports_name_the_worst(tmp_path: Path) -> None:
    found = report("deep, uniform (float32)", tmp_path)
    assert found.largest is not None
    assert "relu" in found.largest.what
    assert network("deep, uniform (float32)").certificate.bound == found.stated
