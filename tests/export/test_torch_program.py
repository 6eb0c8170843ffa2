"""Programs of torch.export compute what the networks compute, and load without running code."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import anchorhead as ah
from anchorhead.export.torch_program import MAX_STEPS
from tests.networks import inputs, names, network

FEW = names("sample", "float64")
"""The others take minutes."""
RELATIVE = {"float32": 1e-6, "float64": 1e-9}
"""A program may sum in another order than the module that it was traced from."""


def same(name: str) -> None:
    net = network(name)
    runs, module = ah.export(net, to="torch").module(), net.module()
    for batch in (1, 7, 1000):
        x = torch.from_numpy(inputs(net, batch, seed=batch))
        with torch.no_grad():
            theirs, ours = module(x), runs(x)
        away, size = (float(one.detach().abs().max()) for one in (ours - theirs, theirs))
        assert away <= RELATIVE[net.dtype] * size


@pytest.mark.slow_for("two-layer, sequence (float64)", "attention, causal (float64)", "learner, direct (float64)")
@pytest.mark.parametrize("name", FEW)
def test_programs_compute_what_modules_compute_for_any_batch(name):
    same(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in names() if name not in FEW])
def test_every_network_of_the_table_becomes_a_program(name):
    same(name)


def test_a_file_is_read_back_without_running_what_is_in_it(tmp_path, monkeypatch):
    """Weights are plain bytes, the program is JSON; the one part that torch pickles, the example input, is read by
    torch's restricted reader of tensors."""
    net = network("head (float64)")
    path = ah.export(net, tmp_path / "f.pt2")
    loads, loaded = [], torch.load
    monkeypatch.setattr(torch, "load", lambda *a, **k: (loads.append(k.get("weights_only")), loaded(*a, **k))[1])
    texts = {"anchorhead.certificate": ""}
    program = torch.export.load(path, extra_files=texts)
    assert set(loads) <= {True}
    assert ah.Certificate.from_json(json.loads(texts["anchorhead.certificate"])) == net.certificate
    x = torch.from_numpy(inputs(net, 9))
    assert torch.equal(program.module()(x), net.module()(x))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_modules_compile():
    net = network("head (float64)")
    module = net.module()
    compiled = torch.compile(module, backend="aot_eager", dynamic=True)
    for batch in (2, 5):
        x = torch.from_numpy(inputs(net, batch))
        with torch.no_grad():
            assert torch.allclose(compiled(x), module(x), rtol=0, atol=1e-14)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["two-layer, transformer (float64)", "learner, direct (float64)"])
def test_modules_compile_to_machine_code(name):
    net = network(name)
    module = net.module()
    x = torch.from_numpy(inputs(net, 5))
    with torch.no_grad():
        ours, theirs = torch.compile(module)(x), module(x)
    assert np.abs((ours - theirs).numpy()).max() <= 1e-9


def test_a_learner_of_many_steps_is_refused_with_the_way_out():
    net = network("learner, direct (float64)").with_steps(MAX_STEPS + 1)
    with pytest.raises(ah.AnchorheadError, match='export it to="onnx"'):
        ah.export(net, to="torch")
