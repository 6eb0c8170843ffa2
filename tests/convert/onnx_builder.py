"""Small ONNX models to read, written with onnx's own helpers, and what onnxruntime makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(9)


def weights(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RNG.normal(size=shape).astype(dtype)


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    """A node from names in a row; - leaves an input out."""
    names = ["" if name == "-" else name for name in inputs.split()]
    return helper.make_node(op, names, outputs.split(), name=f"{op} of {inputs}", **attributes)


def model(
    nodes: list[onnx.NodeProto],
    constants: dict[str, Any],
    shape: list[Any],
    *,
    opset: int = 18,
    kind: int = TensorProto.FLOAT,
    outputs: str = "y",
) -> onnx.ModelProto:
    """A model from x of a shape to its outputs."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info(name, kind, None) for name in outputs.split()],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def mlp(opset: int = 18, activation: str = "Relu", **attributes: Any) -> onnx.ModelProto:
    """4 -> 5 -> 3."""
    nodes = [
        node("Gemm", "x w b", "z"),
        node(activation, "z", "a", **attributes),
        node("Gemm", "a v c", "y"),
    ]
    return model(
        nodes, {"w": weights(4, 5), "b": weights(5), "v": weights(5, 3), "c": weights(3)}, ["n", 4], opset=opset
    )


def saved(made: onnx.ModelProto, folder: Path, name: str = "model.onnx") -> Path:
    path = folder / name
    path.write_bytes(made.SerializeToString())
    return path


def runtime(made: onnx.ModelProto, x: np.ndarray, name: str = "x") -> np.ndarray:
    """What onnxruntime computes, on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {name: x})[0]
