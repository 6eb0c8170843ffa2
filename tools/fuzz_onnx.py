"""ONNX files to be changed: small models of every operation, and their fields changed one by one."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np

from tools.fuzz_mutations import LARGE

OPERATIONS = [
    "Relu",
    "Gemm",
    "MatMul",
    "Add",
    "Mul",
    "Div",
    "Sub",
    "Pow",
    "Conv",
    "AveragePool",
    "BatchNormalization",
    "Reshape",
    "Transpose",
    "Slice",
    "Gather",
    "Split",
    "Concat",
    "Pad",
    "Expand",
    "Squeeze",
    "Unsqueeze",
    "Flatten",
    "Shape",
    "ReduceMean",
    "ReduceSum",
    "Clip",
    "PRelu",
    "Cast",
    "Constant",
    "ConstantOfShape",
    "Max",
    "Dropout",
    "Erf",
    "Log",
    "GlobalAveragePool",
    "Neg",
    "Identity",
    "Reciprocal",
    "Sqrt",
    "Gelu",
]
ATTRIBUTES = [
    "axis",
    "axes",
    "perm",
    "pads",
    "strides",
    "dilations",
    "group",
    "kernel_shape",
    "to",
    "alpha",
    "keepdims",
    "value",
]


def inside_onnx(data: bytes, rng: random.Random) -> bytes:
    """A model with a few fields changed."""
    import onnx

    model = onnx.ModelProto.FromString(data)
    graph = model.graph
    for _ in range(rng.choice((1, 1, 2, 4))):
        node, tensor = rng.choice(graph.node), rng.choice(graph.initializer)
        number = rng.choice((*LARGE[:10], -1, -2, 2, 3, 5, 10**6, 10**9)) % 2**63 * rng.choice((1, 1, 1, -1))
        match rng.randrange(14):
            case 0:
                node.op_type = rng.choice((*OPERATIONS, "If", "LSTM", ""))
            case 1 if node.input:
                node.input[rng.randrange(len(node.input))] = rng.choice(
                    [*node.output, *rng.choice(graph.node).output, "x", ""]
                )
            case 2 if node.input:
                del node.input[rng.randrange(len(node.input))]
            case 3:
                node.input.append(rng.choice([*rng.choice(graph.node).output, tensor.name, "x", ""]))
            case 4 if node.attribute:
                attribute = rng.choice(node.attribute)
                if attribute.ints:
                    attribute.ints[rng.randrange(len(attribute.ints))] = number
                else:
                    attribute.i, attribute.f = number, rng.choice((0.0, float("nan"), float("inf"), -1.0, 1e38, 1e-45))
            case 5:
                node.attribute.append(
                    onnx.helper.make_attribute(rng.choice(ATTRIBUTES), rng.choice((number, [number] * 2, 0.5, "x")))
                )
            case 6:
                tensor.dims[:] = [*tensor.dims, number] if rng.random() < 0.5 else [number] * len(tensor.dims)
            case 7:
                tensor.data_type = rng.randrange(24)
            case 12:
                node.output.append(f"more {rng.randrange(9)}")
            case 13:
                tensor.dims[:] = [*[1] * rng.choice((1, 2, 40, 70)), *tensor.dims]
            case 8:
                if tensor.raw_data:
                    tensor.raw_data = rng.randbytes(len(tensor.raw_data))
                elif tensor.float_data:
                    tensor.float_data[0] = rng.choice((float("nan"), float("inf"), 1e38, 1e-45))
                elif tensor.int64_data:
                    tensor.int64_data[0] = number
            case 9:
                axis = rng.choice(graph.input[0].type.tensor_type.shape.dim)
                axis.dim_value = number
            case 10:
                model.opset_import[0].version = rng.choice((7, 9, 11, 13, 18, 22, number))
            case _:
                tensor.data_location, tensor.name = rng.choice((0, 1)), rng.choice((tensor.name, "x", "y", "z"))
    return model.SerializeToString()


def onnx_seeds() -> list[bytes]:
    """Small models with each kind of operation, in each way to store a constant."""
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)

    def weights(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32)

    def model(nodes: list[Any], constants: dict[str, np.ndarray], shape: list[Any], stored: bool = False) -> bytes:
        held = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
        if stored:
            kinds = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64}
            held = [
                helper.make_tensor(name, kinds[str(np.asarray(a).dtype)], np.shape(a), np.ravel(a).tolist())
                for name, a in constants.items()
            ]
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape if name == "x" else None) for name in "xy"]
        graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], held)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString()

    def node(op: str, inputs: str, output: str, **attributes: Any) -> Any:
        return helper.make_node(op, inputs.split(), [output], name=op, **attributes)

    plain = [node("Gemm", "x w b", "z"), node("Relu", "z", "a"), node("Gemm", "a v", "y", alpha=0.5, transB=1)]
    arrays = {"w": weights(3, 4), "b": weights(4), "v": weights(2, 4)}
    picture = [
        node("Conv", "x w b", "p", pads=[1, 0, 1, 0], strides=[2, 1]),
        node("BatchNormalization", "p b b b q", "n", epsilon=0.1),
        node("LeakyRelu", "n", "a", alpha=0.1),
        node("AveragePool", "a", "e", kernel_shape=[2, 1]),
        node("Reshape", "e to", "r"),
        node("Slice", "r s e1 ax", "t"),
        node("Transpose", "t", "y", perm=[1, 0]),
    ]
    more = {"w": weights(2, 1, 2, 2), "b": weights(2), "q": np.abs(weights(2)), "to": np.array([2, -1])}
    more |= {"s": np.array([0]), "e1": np.array([3]), "ax": np.array([1])}
    branched = [
        node("Constant", "", "h", value=numpy_helper.from_array(np.float32(0.5))),
        node("MatMul", "x w", "z"),
        node("Mul", "z h", "p"),
        node("Erf", "p", "q"),
        node("Mul", "z q", "r"),
        node("Concat", "r x", "s", axis=1),
        node("Shape", "s", "n"),
        node("Expand", "s n", "t"),
        node("ReduceMean", "t", "u", keepdims=1),
        node("Clip", "u", "y"),
    ]
    return [
        model(plain, arrays, ["n", 3]),
        model(plain, arrays, ["n", 3], stored=True),
        model(picture, more, ["n", 1, 4, 3]),
        model(branched, {"w": weights(3, 2)}, ["n", 3], stored=True),
    ]


def read_onnx(data: bytes, path: Path) -> None:
    from anchorhead.convert.onnx_files import mlp_from_onnx

    path.write_bytes(data)
    mlp_from_onnx(path)
