"""Linear maps of ONNX: products with constants, convolutions, averages, and what is normalised by constants."""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse

from anchorhead.convert.onnx_arithmetic import floats, plus, times
from anchorhead.convert.onnx_functions import real, whole
from anchorhead.convert.onnx_maps import UNIT, Matrix
from anchorhead.convert.onnx_model import Node
from anchorhead.convert.onnx_shapes import Given, Inputs, Operation, axes_of, moved, value
from anchorhead.convert.onnx_values import Tape, Value, checked_size
from anchorhead.convert.onnx_windows import convolution, pooling
from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions.underflow import NORMAL, least


def matmul(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
    return [_matmul(tape, value(inputs, 0), value(inputs, 1))]


def _matmul(tape: Tape, left: Given, right: Given) -> Given:
    """As numpy multiplies; one of the two is a constant, of one or two axes where the other depends on the input."""
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        return _constants(tape, left, right)
    if isinstance(left, Value) and isinstance(right, Value):
        raise AnchorheadError("both of its factors depend on the input: only products with a constant are linear")
    if isinstance(right, Value):
        if not isinstance(left, np.ndarray):
            raise AnchorheadError("it has no constant factor")
        column = len(right.shape) == 1
        turned = right if column else moved(tape, right, lambda a: a.swapaxes(-1, -2))
        made = _matmul(tape, turned, _plain(left).T)
        made = made if column or left.ndim == 1 else moved(tape, made, lambda a: a.swapaxes(-1, -2))
        return _with_axes(tape, made, left.ndim - (1 if column else 0))
    if not isinstance(left, Value) or not isinstance(right, np.ndarray):
        raise AnchorheadError("it has no constant factor")
    weight = floats(_plain(right))
    dense = weight if weight.ndim == 2 else weight.reshape(-1, 1)
    if not left.shape or weight.ndim == 0 or left.shape[-1] != dense.shape[0]:
        raise AnchorheadError(f"arrays of shapes {left.shape} and {right.shape} cannot be multiplied")
    copies = left.affine.size // left.shape[-1]
    tape.work.spend(copies * dense.size, copies * int(np.count_nonzero(dense)))
    across = Matrix(sparse.kron(sparse.eye_array(copies, format="csr"), Matrix(dense.T), format="csr"))
    last = (dense.shape[1],) if weight.ndim == 2 else ()
    made = tape.times(left, across, (*left.shape[:-1], *last))
    return _with_axes(tape, made, right.ndim - (1 if len(left.shape) == 1 else 0))


def _constants(tape: Tape, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    rows, columns = (1, *left.shape)[-max(2, left.ndim) :], (*right.shape, 1)[: max(2, right.ndim)]
    try:
        if not left.ndim or not right.ndim or rows[-1] != columns[-2]:
            raise ValueError
        shape = (*np.broadcast_shapes(rows[:-2], columns[:-2]), rows[-2], columns[-1])
    except ValueError as error:
        raise AnchorheadError(f"arrays of shapes {left.shape} and {right.shape} cannot be multiplied") from error
    tape.work.spend(checked_size(shape) * rows[-1])
    return floats(left) @ floats(right)


def _with_axes(tape: Tape, made: Given, axes: int) -> Given:
    """With axes of size 1 in front, where a constant factor has more axes than what it multiplies."""
    more = axes - len(made.shape)
    return made if more <= 0 else moved(tape, made, lambda a: a.reshape(*[1] * more, *a.shape))


def _plain(array: np.ndarray) -> np.ndarray:
    """A constant factor without axes of size 1 in front."""
    while array.ndim > 2 and array.shape[0] == 1:
        array = array[0]
    if array.ndim > 2:
        raise AnchorheadError(f"its constant factor has shape {array.shape}: only matrices are supported")
    return array


def gemm(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
    factors = []
    for place, name in enumerate(("transA", "transB")):
        x = value(inputs, place)
        if len(x.shape) != 2:
            raise AnchorheadError(f"its input {place} has shape {x.shape}: a matrix is needed")
        factors.append(moved(tape, x, np.transpose) if whole(node, name, 0) else x)
    made = times(tape, _matmul(tape, *factors), np.array(real(node, "alpha", 1.0)))
    if len(inputs) > 2 and inputs[2] is not None:
        shift = tape.constant(floats(inputs[2])) if isinstance(inputs[2], np.ndarray) else inputs[2]
        made = plus(tape, made, times(tape, shift, np.array(real(node, "beta", 1.0))))
    return [made]


def conv(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
    x, weight = value(inputs, 0), value(inputs, 1)
    if not isinstance(x, Value) or not isinstance(weight, np.ndarray) or len(x.shape) < 3:
        raise AnchorheadError("only pictures that depend on the input, and constant weights, are supported")
    matrix, made = convolution(node, x.shape[1:], floats(weight), tape.work)
    result = tape.times(x, _each(tape, matrix, x.shape[0]), (x.shape[0], *made))
    if len(inputs) < 3 or inputs[2] is None:
        return [result]
    bias = value(inputs, 2)
    if not isinstance(bias, np.ndarray) or bias.shape != (made[0],):
        raise AnchorheadError(f"its bias has shape {bias.shape}: a constant for each of {made[0]} channels is needed")
    return [plus(tape, result, bias.reshape(-1, *[1] * (len(made) - 1)))]


def average_pool(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
    x = value(inputs, 0)
    if not isinstance(x, Value) or len(x.shape) < 3:
        raise AnchorheadError("only pictures that depend on the input are supported")
    matrix, made, inside = pooling(node, x.shape[1:], tape.work)
    total = tape.times(x, _each(tape, matrix, x.shape[0]), (x.shape[0], *made))
    return [_divided(tape, total, np.tile(inside, x.shape[0]))]


def global_average_pool(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
    x = value(inputs, 0)
    return [_reduced(tape, x, tuple(range(2, len(x.shape))), True, mean=True)]


def reduce(mean: bool) -> Operation:
    def operation(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
        x, axes = value(inputs, 0), axes_of(node, inputs, 1)
        if not axes and whole(node, "noop_with_empty_axes", 0):
            return [x]
        if axes and any(not -len(x.shape) <= axis < len(x.shape) for axis in axes):
            raise AnchorheadError(f"its axes are {axes}, of an array of shape {x.shape}")
        chosen = range(len(x.shape)) if not axes else [axis % len(x.shape) for axis in axes]
        return [_reduced(tape, x, tuple(sorted(set(chosen))), bool(whole(node, "keepdims", 1)), mean)]

    return operation


def _reduced(tape: Tape, x: Given, axes: tuple[int, ...], keep: bool, mean: bool) -> Given:
    if isinstance(x, np.ndarray):
        if not x.size:
            raise AnchorheadError("it has a constant without entries")
        return (floats(x).mean if mean else floats(x).sum)(axis=axes, keepdims=keep)
    count = math.prod(x.shape[axis] for axis in axes)
    rest = [axis for axis in range(len(x.shape)) if axis not in axes]
    places = np.arange(x.affine.size).reshape(x.shape).transpose(*rest, *axes).reshape(-1, count)
    rows = np.repeat(np.arange(len(places)), count)
    matrix = Matrix((np.ones(places.size), (rows, places.ravel())), shape=(len(places), x.affine.size))
    kept = tuple(1 if axis in axes else side for axis, side in enumerate(x.shape) if keep or axis not in axes)
    total = tape.times(x, matrix, kept)
    return _divided(tape, total, np.full(len(places), count)) if mean else total


def _divided(tape: Tape, total: Value, counts: np.ndarray) -> Value:
    factor = 1.0 / counts
    error = np.where(np.frexp(factor)[0] == 0.5, 0.0, 2 * UNIT * factor)
    none = np.zeros(factor.shape)
    return tape.rows(total, factor, none, (error, none))


def _each(tape: Tape, matrix: Matrix, copies: int) -> Matrix:
    if copies == 1:
        return matrix
    tape.work.spend(copies * matrix.nnz, copies * matrix.nnz)
    return Matrix(sparse.kron(sparse.eye_array(copies, format="csr"), matrix, format="csr"))


def batch_normalization(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
    """(x - mean) scale / sqrt(variance + epsilon) + shift along axis 1, as float64 rounds its numbers."""
    if whole(node, "training_mode", 0) or any(node.outputs[1:]):
        raise AnchorheadError("it is in training mode: it normalises by the batch")
    if not whole(node, "spatial", 1):
        raise AnchorheadError("its spatial is 0: only one mean for a channel is supported")
    x = value(inputs, 0)
    constants = [value(inputs, place) for place in (1, 2, 3, 4)]
    channels = x.shape[1] if len(x.shape) > 1 else 0
    if not isinstance(x, Value) or any(
        not isinstance(one, np.ndarray) or one.shape != (channels,) for one in constants
    ):
        raise AnchorheadError(f"its scale, shift, mean and variance must be constants for {channels} channels")
    scale, shift, mean, variance = (floats(one) for one in constants if isinstance(one, np.ndarray))
    spread = variance + real(node, "epsilon", 1e-5)
    if not (spread > 0).all():
        raise AnchorheadError(f"its variance + epsilon is {spread.min():g}: it must be positive")
    factor = scale / np.sqrt(spread)
    less = mean * factor
    small = (np.abs(factor) < NORMAL) | ((np.abs(less) < NORMAL) & (mean != 0))
    if (small & (scale != 0)).any():
        raise AnchorheadError(f"its scale, down to {least(scale):g}, and variance make numbers too small for float64")
    across = [1, -1, *[1] * (len(x.shape) - 2)]
    spread_out = [
        np.broadcast_to(one.reshape(across), x.shape)
        for one in (
            factor,
            shift - less,
            np.abs(factor) * 8 * UNIT,
            (np.abs(shift) + 2 * np.abs(less)) * 8 * UNIT,
        )
    ]
    return [tape.rows(x, spread_out[0], spread_out[1], (spread_out[2], spread_out[3]))]
