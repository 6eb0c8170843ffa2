"""Which operations of ONNX are supported; and those that only hand on, or hold a constant."""

from __future__ import annotations

import numpy as np

from anchorhead.convert import onnx_arithmetic as arithmetic
from anchorhead.convert import onnx_products as products
from anchorhead.convert.onnx_functions import FUNCTIONS, whole, wholes
from anchorhead.convert.onnx_model import DTYPES, Node, Tensor
from anchorhead.convert.onnx_shapes import SHAPES, Given, Inputs, Operation, numbers, value
from anchorhead.convert.onnx_values import Tape, checked_size
from anchorhead.errors import AnchorheadError


def identity(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
    return [value(inputs, 0)]


def dropout(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
    training = inputs[2] if len(inputs) > 2 else None
    if training is not None and (not isinstance(training, np.ndarray) or training.any()):
        raise AnchorheadError("its training_mode is on: it drops entries at random")
    return [value(inputs, 0)]


def cast(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
    x, kind = value(inputs, 0), DTYPES.get(whole(node, "to", 0), "")
    if isinstance(x, np.ndarray):
        if kind not in ("float32", "float64", "int64", "int32", "bool"):
            raise AnchorheadError(f"a constant becomes {kind or 'an unknown type'}: floats, int32, int64 and bool only")
        with np.errstate(all="ignore"):
            return [x.astype(kind)]
    if kind not in ("float32", "float64"):
        raise AnchorheadError(f"what depends on the input becomes {kind or 'an unknown type'}: float32 or float64 only")
    return [x]


def constant(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
    held = node.attributes
    if isinstance(held.get("value"), Tensor):
        return [held["value"].array()]
    if isinstance(held.get("value_float"), float):
        return [np.array(held["value_float"], dtype=np.float32)]
    if isinstance(held.get("value_int"), int):
        return [np.array(held["value_int"], dtype=np.int64)]
    if wholes(node, "value_ints"):
        return [np.array(wholes(node, "value_ints"), dtype=np.int64)]
    several = held.get("value_floats")
    if isinstance(several, tuple) and several and all(isinstance(one, float) for one in several):
        return [np.array(several, dtype=np.float32)]
    raise AnchorheadError(f"it holds {', '.join(held) or 'nothing'}: a tensor of numbers is needed")


def constant_of_shape(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
    shape, held = numbers(inputs, 0), node.attributes.get("value")
    if shape is None:
        raise AnchorheadError("its shape is missing")
    checked_size(tuple(shape))
    one = held.array() if isinstance(held, Tensor) else np.zeros(1, np.float32)
    if one.size != 1:
        raise AnchorheadError(f"its value has {one.size} entries: one is needed")
    return [np.full(shape, one.ravel()[0])]


OPERATIONS: dict[str, Operation] = {
    **SHAPES,
    **{op: arithmetic.function(op) for op in FUNCTIONS},
    "MatMul": products.matmul,
    "Gemm": products.gemm,
    "Conv": products.conv,
    "AveragePool": products.average_pool,
    "GlobalAveragePool": products.global_average_pool,
    "ReduceMean": products.reduce(mean=True),
    "ReduceSum": products.reduce(mean=False),
    "BatchNormalization": products.batch_normalization,
    "Add": arithmetic.add,
    "Sub": arithmetic.sub,
    "Mul": arithmetic.mul,
    "Div": arithmetic.div,
    "Neg": arithmetic.neg,
    "Pow": arithmetic.power,
    "Clip": arithmetic.clip,
    "Max": arithmetic.extreme("max"),
    "Min": arithmetic.extreme("min"),
    "PRelu": arithmetic.prelus,
    "Identity": identity,
    "Dropout": dropout,
    "Cast": cast,
    "Constant": constant,
    "ConstantOfShape": constant_of_shape,
}
"""What is supported; everything else is refused by its name."""
