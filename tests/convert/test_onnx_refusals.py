"""Broken and malicious ONNX files are refused by an AnchorheadError, before memory is taken."""

from __future__ import annotations

import re
import resource
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_builder import mlp, model, node, saved, weights

import anchorhead as ah
from anchorhead.convert import onnx_files
from anchorhead.convert.onnx_files import mlp_from_onnx
from anchorhead.convert.onnx_maps import Work
from anchorhead.convert.onnx_model import MAX_BYTES
from anchorhead.convert.onnx_values import Tape
from tools import fuzz


def refused(made, tmp_path, match):
    """Refused with these words, in little memory and in milliseconds, of which no busy machine makes a minute."""
    path = saved(made, tmp_path) if isinstance(made, onnx.ModelProto) else tmp_path / "raw.onnx"
    if isinstance(made, bytes):
        path.write_bytes(made)
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with pytest.raises(ah.AnchorheadError, match=match):
        mlp_from_onnx(path)
    assert time.process_time() - began < 60
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024


def test_declared_sizes_are_checked_against_what_the_file_holds(tmp_path):
    for dims in ([2**40, 2**40], [10**9], [-1, 4], [4, 6], [2**62, 4], [0, 2**60]):
        made = mlp()
        tensor = made.graph.initializer[0]
        del tensor.dims[:]
        tensor.dims.extend(dims)
        refused(made, tmp_path, "the constant 'w' says that it has")


def test_files_of_their_own_are_never_opened(tmp_path):
    (tmp_path / "inside.bin").write_bytes(weights(4, 5).tobytes())
    for location in ("../../etc/passwd", "/etc/passwd", "inside.bin"):
        made = mlp()
        tensor = made.graph.initializer[0]
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.append(onnx.StringStringEntryProto(key="location", value=location))
        refused(made, tmp_path, "lies in a file of its own, which is not read")


def test_circles_and_loose_ends_are_refused(tmp_path):
    refused(model([node("Add", "x z", "a"), node("Relu", "a", "z"), node("Relu", "z", "y")], {}, ["n", 2]), tmp_path,
            "depends on itself")  # fmt: skip
    refused(model([node("Add", "x y", "y")], {}, ["n", 2]), tmp_path, "depends on itself")
    refused(model([node("Add", "x nowhere", "y")], {}, ["n", 2]), tmp_path, "reads 'nowhere', which nothing makes")
    refused(model([node("Relu", "x", "y"), node("Tanh", "x", "y")], {}, ["n", 2]), tmp_path, "there is already")


def test_a_long_chain_is_no_deep_recursion(tmp_path):
    nodes = [node("Identity", f"v{i}" if i else "x", f"v{i + 1}") for i in range(9_000)]
    target, _ = mlp_from_onnx(saved(model([*nodes, node("Relu", "v9000", "y")], {}, ["n", 2]), tmp_path))
    assert target.inputs == 2
    more = [node("Identity", f"v{i}" if i else "x", f"v{i + 1}") for i in range(10_001)]
    refused(model([*more, node("Relu", "v10001", "y")], {}, ["n", 2]), tmp_path, "more than 10,000 nodes")


def field(number, payload):
    """A field of bytes as protobuf writes it."""
    size, out = len(payload), bytearray([number << 3 | 2])
    while size > 127:
        out.append(size & 127 | 128)
        size >>= 7
    return bytes([*out, size]) + payload


def test_graphs_inside_graphs_are_not_entered(tmp_path):
    """2,000 conditions in conditions: no reader that recurses gets through."""
    inner = b""
    for _ in range(2_000):
        inner = (
            field(2, b"y")
            + field(3, b"deep")
            + field(4, b"If")
            + field(5, field(1, b"then") + field(6, field(1, inner)))
        )
    graph = field(1, inner) + field(12, field(1, b"y"))
    refused(field(8, b"\x10\x12") + field(7, graph), tmp_path, r"'deep' \(If\) cannot be converted")


@pytest.mark.parametrize(
    ("nodes", "constants", "match"),
    [
        ([node("ConstantOfShape", "s", "c"), node("Add", "x c", "y")], {"s": np.array([10**6, 10**6])}, "entries"),
        ([node("Expand", "x s", "y")], {"s": np.array([10**9, 2])}, "entries"),
        ([node("Pad", "x s", "y")], {"s": np.array([0, 10**6, 10**6, 0])}, "entries"),
        ([node("Gather", "x i", "y", axis=1)], {"i": np.ones(2 * 10**6, int)}, "entries"),
        ([node("Reshape", "x s", "y")], {"s": np.array([-1, -1])}, "does not fit"),
        ([node("Transpose", "x", "y", perm=[7, 0])], {}, "does not fit"),
        ([node("Div", "x z", "y")], {"z": np.float32(0)}, "divides by 0"),
        ([node("Add", "x z", "y")], {"z": np.float32(np.nan)}, "not finite"),
        ([node("MatMul", "c r", "z"), node("ReduceSum", "z", "s"), node("Add", "x s", "y")],
         {"c": np.ones((9_000, 1)), "r": np.ones((1, 9_000))}, "entries"),
        ([*(node("Concat", f"c{i} c{i}", f"c{i + 1}", axis=0) for i in range(26)), node("Add", "x c26", "y")],
         {"c0": np.ones(1)}, "entries"),
        ([node("Reshape", "x s", "y")], {"s": np.array([1, -2])}, "its shape is"),
        ([node("Clip", "x low", "y")], {"low": np.float32(np.nan)}, "not finite"),
        ([node("Dropout", "x", "a mask"), node("Mul", "a mask", "y")], {}, "reads 'mask'"),
        ([node("BatchNormalization", "x s o o q", "y")],
         {"s": np.full(2, 1e-300), "o": np.zeros(2), "q": np.full(2, 1e200)}, "too small"),
    ],
)  # fmt: skip
def test_small_files_cannot_ask_for_much(nodes, constants, match, tmp_path):
    refused(model(nodes, constants, ["n", 2]), tmp_path, match)


def test_what_a_graph_makes_on_the_way_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_files, "Tape", lambda: Tape(work=Work(room=1_000)))
    nodes = [node("Add", f"c{i} c0", f"c{i + 1}") for i in range(99)]
    assert mlp_from_onnx(saved(model([*nodes, node("Add", "x c99", "y")], {"c0": np.ones(9)}, ["n", 9]), tmp_path))
    nodes = [node("Add", f"c{i} c0", f"c{i + 1}") for i in range(120)]
    made = model([*nodes, node("Add", "x c120", "y")], {"c0": np.ones(9)}, ["n", 9])
    refused(made, tmp_path, r"'Add of c111 c0' \(Add\).*holds more than")


def test_a_hundred_large_products_are_not_worked_out(tmp_path):
    nodes = [node("MatMul", f"v{i} w" if i else "x w", f"v{i + 1}") for i in range(100)]
    made = model([*nodes, node("Relu", "v100", "y")], {"w": weights(200, 200)}, ["n", 200])
    refused(made, tmp_path, "multiplications")


def test_a_picture_that_is_too_large_is_refused(tmp_path):
    made = model([node("Conv", "x w", "y")], {"w": weights(64, 3, 7, 7)}, ["n", 3, 512, 512])
    refused(made, tmp_path, r"'Conv of x w' \(Conv\).*weights that are not 0")


def test_files_that_are_too_large_are_not_read(tmp_path):
    path = tmp_path / "large.onnx"
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(ah.AnchorheadError, match="bytes: an ONNX file has at most"):
        mlp_from_onnx(path)


@pytest.mark.slow
def test_many_empty_messages_are_not_read_to_the_end(tmp_path):
    refused(field(7, b"\x0a\x00" * 500_000), tmp_path, "more than 50,000 nodes")
    refused(field(7, field(1, b"\x0a\x00" * 1_000_000)), tmp_path, "more than 1,000,000 fields")


@pytest.mark.parametrize("content", [b"", b"\x00", b"PK\x03\x04", b"\xff" * 40, b"\x3a\xff\xff\xff\xff\x0f", b"{}"])
def test_what_is_no_onnx_file_is_refused(content, tmp_path):
    refused(content, tmp_path, "cannot be read as an ONNX file")


def test_inputs_that_are_no_floats_or_not_one_are_named(tmp_path):
    made = model([node("Cast", "x", "a", to=1), node("Relu", "a", "y")], {}, ["n", 2], kind=TensorProto.INT64)
    refused(made, tmp_path, "the input 'x'.*is of type int64")
    two = mlp()
    two.graph.input.append(helper.make_tensor_value_info("more", TensorProto.FLOAT, ["n", 3]))
    two.graph.node.append(node("Add", "y more", "end"))
    two.graph.output[0].name = "end"
    refused(two, tmp_path, "depends on 2 inputs")
    several = mlp()
    several.graph.output.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, None))
    refused(several, tmp_path, "2 outputs .*say which")


def test_an_output_that_no_operation_makes_is_refused(tmp_path):
    made = model([node("Dropout", "x", "y mask")], {}, ["n", 2])
    with pytest.raises(ah.AnchorheadError, match="'mask' does not depend"):
        mlp_from_onnx(saved(made, tmp_path), output="mask")
    whole = model([node("Cast", "x", "y", to=1)], {}, ["n", 2], kind=TensorProto.INT64)
    with pytest.raises(ah.AnchorheadError, match="'x' is of type int64"):
        mlp_from_onnx(saved(whole, tmp_path), output="x")


def test_constants_of_many_axes_and_networks_of_many_layers_are_refused(tmp_path):
    made = mlp()
    made.graph.initializer[0].dims[:] = [1] * 70
    refused(made, tmp_path, "'w' has 70 axes")
    nodes = [node("MatMul" if i % 2 else "Tanh", f"v{i} w" if i % 2 else f"v{i}", f"v{i + 1}") for i in range(402)]
    nodes[0].input[0], nodes[-1].output[0] = "x", "y"
    refused(model(nodes, {"w": np.float32([[0.5]])}, ["n", 1]), tmp_path, "201 layers of activations")


def hinted(made, tmp_path):
    """The values that the message offers as ends of the network."""
    with pytest.raises(ah.AnchorheadError) as caught:
        mlp_from_onnx(saved(made, tmp_path))
    return re.findall(r"output='(\w+)'", str(caught.value))


BROKEN_OFF = {
    "unknown": ([node("Relu", "x", "logits"), node("Softmax", "logits", "y")], ["logits"]),
    "a product": ([node("Relu", "x", "a"), node("Gemm", "a w", "p"), node("Mul", "p a", "y")], ["p"]),
    "a shape before it": ([node("Relu", "x", "a"), node("Shape", "a", "s"), node("Resize", "s a", "y")], ["a"]),
    "nothing before it": ([node("Softmax", "x", "y")], []),
    "only a map before it": ([node("Gemm", "x w", "z"), node("Softmax", "z", "y")], []),
    "nothing that converts": ([node("Softmax", "x", "p"), node("Relu", "p", "r"), node("LSTM", "r", "y")], []),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN_OFF)
def test_a_node_that_is_refused_comes_with_a_value_before_it_that_converts(name, tmp_path):
    nodes, wanted = BROKEN_OFF[name]
    made = model(nodes, {"w": weights(2, 2)}, ["n", 2])
    assert hinted(made, tmp_path) == wanted
    for end in wanted:
        assert ah.convert(saved(made, tmp_path), on=(-1, 1), within=1e-2, output=end).certificate.bound <= 1e-2


def test_of_several_outputs_those_are_offered_that_convert(tmp_path):
    nodes = [node("Gemm", "x w", "z"), node("Relu", "z", "a"), node("Softmax", "a", "b"), node("Tanh", "z", "c")]
    made = model(nodes, {"w": weights(2, 2)}, ["n", 2], outputs="b a c")
    assert hinted(made, tmp_path) == ["a", "c"]
    made = model([node("Softmax", "x", "a"), node("Elu", "a", "b")], {}, ["n", 2], outputs="a b")
    refused(made, tmp_path, r"\(Softmax\) cannot be converted")


def test_normalising_by_the_batch_is_refused_in_old_files_too(tmp_path):
    made = model([node("BatchNormalization", "x s s s s", "y m v")], {"s": np.ones(2, np.float32)}, ["n", 2], opset=9)
    refused(made, tmp_path, "training mode")


def test_a_plan_takes_onnx_files_and_names_missing_ones(tmp_path):
    with pytest.raises(ah.AnchorheadError, match=r"none\.onnx is not a file"):
        ah.plan(str(tmp_path / "none.onnx"), on=(0, 1), within=1e-2)
    path = saved(mlp(), tmp_path)
    assert ah.plan(str(path), on=(0, 1), within=1e-1, output="z").rows
    with pytest.raises(ah.AnchorheadError, match="output='z' is for files"):
        ah.plan("x + 1", on={"x": (0, 1)}, output="z")


def test_missing_files_and_folders_are_named(tmp_path):
    for path in (tmp_path / "none.onnx", tmp_path):
        with pytest.raises(ah.AnchorheadError, match="is not a file"):
            ah.convert(path / "none.onnx", on=(0, 1), within=1e-2)


@pytest.mark.parametrize("target", ["onnx", "safetensors", "csv", "expressions"])
def test_mutated_inputs_are_read_or_refused_and_nothing_else(target, tmp_path):
    """A small run of `make fuzz`, which does a hundred thousand."""
    found = fuzz.run(target, 2026, 0, 300, tmp_path / f"input.{target}")
    assert not found.found
    assert found.refused > 100
    assert found.accepted > 3
    if target == "csv":
        assert found.accepted > 30, "most tables must get beyond the reader of lines"
