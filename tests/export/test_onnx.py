"""ONNX files compute what the networks compute, for any batch, by the grammar's own operations, with their papers."""

from __future__ import annotations

import json

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from hypothesis import given, settings
from onnx.reference import ReferenceEvaluator

import anchorhead as ah
from anchorhead.export import onnx_file
from anchorhead.export.onnx_file import IR_VERSION, OPSET
from anchorhead.network import Embed, Network, Repeat
from tests.networks import inputs, names, network
from tests.networks.accuracy import RELATIVE, last_digits
from tests.networks.random_networks import networks

OPERATIONS = {
    "MatMul", "Add", "Softmax",
    "Reshape", "Transpose", "Unsqueeze", "Squeeze", "Slice", "Concat", "Expand", "Gather", "Identity", "Shape", "Loop",
    "ConstantOfShape", "Trilu",
}  # fmt: skip
"""Linear maps and softmax; then changes of shape, loops, and the -inf of a causal mask."""


def session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def nodes(graph: onnx.GraphProto):
    for one in graph.node:
        yield one
        for attribute in one.attribute:
            yield from nodes(attribute.g)


@pytest.mark.parametrize("name", names())
def test_onnxruntime_computes_what_torch_computes_for_any_batch(name):
    net = network(name)
    model = ah.export(net, to="onnx")
    onnx.checker.check_model(model, full_check=True)
    runs, module, allowed = session(model), net.module(), last_digits(net)
    assert {one.op_type for one in nodes(model.graph)} <= OPERATIONS
    for batch in (1, 7, 200):
        x = inputs(net, batch, seed=batch)
        tensor = torch.from_numpy(x)
        with torch.no_grad():
            theirs = module(tensor).numpy()
        ours = runs.run(None, {"x": x})[0]
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        assert np.abs(ours - theirs).max() <= allowed


@pytest.mark.parametrize("name", ["deep, transformer", "attention-softmax, transformer", "learner, momentum"])
def test_where_float32_itself_is_coarse_onnx_is_as_near_to_the_exact_value_as_torch(name):
    """The worst of the table: torch alone is further than 1e-6 from its own weights' exact value."""
    net = network(f"{name} (float32)")
    x = inputs(net, 1000)
    with torch.no_grad():
        exact = net.module().double()(torch.from_numpy(x).double()).numpy()
        theirs = np.abs(net.module()(torch.from_numpy(x)).numpy() - exact).max()
    ours = np.abs(session(ah.export(net, to="onnx")).run(None, {"x": x})[0] - exact).max()
    assert theirs > RELATIVE["float32"] * np.abs(exact).max()
    assert ours <= 2 * theirs


@pytest.mark.parametrize("name", ["grid", "attention, causal", "repeat", "repeat, nested", "learner, direct"])
def test_the_reference_runtime_of_onnx_computes_the_same(name):
    net = network(f"{name} (float64)")
    x = inputs(net, 3)
    with torch.no_grad():
        theirs = net.module()(torch.from_numpy(x)).numpy()
    ours = ReferenceEvaluator(ah.export(net, to="onnx")).run(None, {"x": x})[0]
    assert np.abs(ours - theirs).max() <= 1e-11 * np.abs(theirs).max()


@pytest.mark.parametrize(("name", "operation", "place"), [("attention, causal", "Trilu", 1), ("repeat", "Loop", 0)])
def test_single_numbers_have_no_axis_as_onnx_says(name, operation, place):
    model = ah.export(network(f"{name} (float64)"), to="onnx")
    axes = {one.name: len(one.dims) for one in model.graph.initializer}
    assert {axes[one.input[place]] for one in nodes(model.graph) if one.op_type == operation} == {0}


@settings(max_examples=40, deadline=None)
@given(drawn=networks())
def test_random_networks_survive_the_journey(drawn):
    net, tokens = drawn
    x = np.random.default_rng(0).normal(size=(3, tokens, net.embed.inputs))
    with torch.no_grad():
        theirs = net.module()(torch.from_numpy(x)).numpy()
    ours = session(ah.export(net, to="onnx")).run(None, {"x": x})[0]
    assert np.abs(ours - theirs).max() <= 1e-12 * (1 + np.abs(theirs).max())


def test_the_certificate_the_target_and_the_names_travel_along(tmp_path):
    net = network("two-layer, transformer (float64)")
    path = ah.export(net, tmp_path / "f.onnx")
    model = onnx.load(path)
    held = {one.key: one.value for one in model.metadata_props}
    assert ah.Certificate.from_json(json.loads(held["anchorhead.certificate"])) == net.certificate
    program = json.loads(held["anchorhead.program"])
    assert program["words"] == net.certificate.target
    assert [step["step"] for step in program["steps"]] == [type(step).__name__ for step in net.program.steps]
    features = json.loads(held["anchorhead.layers"])
    assert [tuple(one["features"]) for one in features] == [stream.features for stream in net.streams]
    assert (model.producer_name, model.ir_version) == ("anchorhead", IR_VERSION)
    assert {one.domain: one.version for one in model.opset_import} == {"": OPSET}


def test_batch_and_tokens_are_free_where_the_network_takes_any_number():
    net = network("learner, direct (float64)")
    model = ah.export(net, to="onnx")
    axes = [axis.dim_param or axis.dim_value for axis in model.graph.input[0].type.tensor_type.shape.dim]
    assert axes == ["batch", "tokens", net.embed.inputs]
    runs = session(model)
    for examples in (1, 5, 30):
        x = prompt(net, examples)
        with torch.no_grad():
            theirs = net.module()(torch.from_numpy(x)).numpy()
        assert np.abs(runs.run(None, {"x": x})[0] - theirs).max() <= 1e-10


def prompt(net, examples):
    rng = np.random.default_rng(examples)
    return net.prompt(rng.uniform(-1, 1, size=(2, examples, 2)), rng.normal(size=(2, examples)))


def test_repeated_layers_are_one_loop_however_often_they_run():
    net = network("learner, direct (float64)")
    few, many = (ah.export(net.with_steps(steps), to="onnx") for steps in (2, 500))
    assert len(few.SerializeToString()) + 200 > len(many.SerializeToString()) - len("500")
    assert sum(isinstance(layer, Repeat) for layer in net.layers) == sum(n.op_type == "Loop" for n in many.graph.node)


def test_files_are_whole_or_not_there(tmp_path, monkeypatch):
    path = tmp_path / "f.onnx"
    path.write_bytes(b"before")
    with pytest.raises(ah.AnchorheadError, match="no folder"):
        ah.export(network("head (float64)"), tmp_path / "nowhere" / "f.onnx")
    monkeypatch.setattr("anchorhead.disk.writing.os.replace", _fail)
    with pytest.raises(ah.AnchorheadError, match="cannot be written"):
        ah.export(network("head (float64)"), path)
    assert [one.name for one in tmp_path.iterdir()] == ["f.onnx"]
    assert path.read_bytes() == b"before"


def test_a_network_is_not_written_over_by_what_becomes_of_it(tmp_path):
    path = tmp_path / "n.safetensors"
    network("head (float64)").save(path)
    before = path.read_bytes()
    (tmp_path / "link").symlink_to(path)
    for target in (path, tmp_path / "link"):
        with pytest.raises(ah.AnchorheadError, match="give the result another name"):
            ah.export(path, target, to="onnx")
    assert path.read_bytes() == before


def test_heads_are_exported_as_their_networks():
    head = ah.head("tanh", on=(-3, 3), within=1e-3)
    assert ah.export(head, to="onnx") == ah.export(head.network, to="onnx")


def _fail(*_):
    raise OSError(28, "No space left on device")


def test_saved_networks_are_exported_from_their_files(tmp_path):
    net = network("head (float64)")
    net.save(tmp_path / "n.safetensors")
    assert ah.export(tmp_path / "n.safetensors", tmp_path / "n.onnx") == tmp_path / "n.onnx"
    assert (tmp_path / "n.onnx").read_bytes() == ah.export(net, to="onnx").SerializeToString()


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ({}, "neither a path nor to="),
        ({"to": "keras"}, "can be exported to \"onnx\""),
        ({"path": "f.keras"}, "does not end in .onnx or .pt2"),
        ({"path": "f.pt2", "to": "onnx"}, "f.pt2 has the ending of a program of torch.export, but would be an ONNX"),
    ],
)  # fmt: skip
def test_unknown_formats_are_refused(words, match):
    with pytest.raises(ah.AnchorheadError, match=match):
        ah.export(network("head (float64)"), **words)


def test_other_things_than_networks_are_refused():
    with pytest.raises(ah.AnchorheadError, match="a list cannot be exported"):
        ah.export([1, 2], to="onnx")


def test_networks_beyond_what_a_file_can_hold_are_refused(monkeypatch):
    monkeypatch.setattr(onnx_file, "MAX_BYTES", 10)
    with pytest.raises(ah.AnchorheadError, match="ends at 2 GiB"):
        ah.export(Network([Embed(np.ones((2, 2)), np.zeros(2))]), to="onnx")
