"""A first axis that is fixed to a batch does not multiply the network."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_builder import model, node, runtime, saved, weights

import anchorhead as ah
from anchorhead.convert.onnx_files import mlp_from_onnx


def two_layers(samples, **more):
    """6 -> 12 -> 3 for so many samples."""
    constants = {"w": weights(6, 12), "b": weights(12), "v": weights(12, 3), "c": weights(3), **more}
    nodes = [node("Gemm", "x w b", "z"), node("Relu", "z", "a"), node("Gemm", "a v c", "y")]
    return model(nodes, constants, [samples, 6])


def sides(target):
    return target.inputs, [layer.affine.outputs for layer in target.hidden], target.outputs


def picture(samples):
    """A convolution, and a reshape with the batch written into it."""
    nodes = [
        node("Conv", "x k", "c", pads=[1, 1]),
        node("Tanh", "c", "t"),
        node("Reshape", "t flat", "f"),
        node("Gemm", "f v", "y"),
    ]
    constants = {"k": weights(3, 2, 3), "flat": np.array([samples, 15]), "v": weights(15, 2)}
    return model(nodes, constants, [samples, 2, 5])


def swapped(samples):
    """The batch is the second axis in between, and a residual reads the input again."""
    nodes = [
        node("Transpose", "x", "s", perm=[1, 0]),
        node("MatMul", "w s", "p"),
        node("Softplus", "p", "q"),
        node("Transpose", "q", "r", perm=[1, 0]),
        node("Add", "r x", "y"),
    ]
    return model(nodes, {"w": weights(4, 4)}, [samples, 4])


def empty_rows(samples):
    """Neurons that read nothing belong to a sample, too."""
    w = weights(6, 12)
    w[:, ::3] = 0
    made = two_layers(samples)
    del made.graph.initializer[0]
    made.graph.initializer.insert(0, model([], {"w": w}, [1]).graph.initializer[0])
    return made


BATCHES = {
    "dense": (two_layers, (6, [12], 3)),
    "picture": (picture, (10, [15], 2)),
    "swapped": (swapped, (4, [8], 4)),
    "empty rows": (empty_rows, (6, [12], 3)),
}


@pytest.mark.parametrize("samples", [2, 5])
@pytest.mark.parametrize("name", BATCHES)
def test_samples_that_are_treated_alike_become_one(name, samples, tmp_path):
    make, wanted = BATCHES[name]
    made = make(samples)
    target, _ = mlp_from_onnx(saved(made, tmp_path))
    assert sides(target) == wanted
    x = np.random.default_rng(0).uniform(-1, 1, (samples, target.inputs)).astype(np.float32)
    shape = [axis.dim_value for axis in made.graph.input[0].type.tensor_type.shape.dim]
    theirs = runtime(made, x.reshape(shape)).reshape(samples, -1)
    assert np.abs(target.values(x).astype(float) - theirs).max() <= 1e-5


def test_the_converted_network_is_that_of_one_sample(tmp_path):
    made = two_layers(2)
    network = ah.convert(saved(made, tmp_path), on=(-1, 1), within=1e-3)
    x = np.random.default_rng(1).uniform(-1, 1, (2, 6)).astype(np.float32)
    assert np.abs(network(x) - runtime(made, x)).max() <= 1e-3 + 1e-5


def mixed(*nodes, **constants):
    return model([node("Gemm", "x w", "z"), *nodes], {"w": weights(6, 4), **constants}, [2, 6])


ONE_VECTOR = {
    "a bias for each row": (mixed(node("Add", "z b", "a"), node("Relu", "a", "y"), b=weights(2, 4)), 8),
    "a factor for each row": (
        mixed(node("Mul", "z b", "a"), node("Relu", "a", "y"), b=np.float32([[1.0], [2.0]])),
        8,
    ),
    "a mean over the rows": (
        mixed(node("Relu", "z", "a"), node("ReduceMean", "a axes", "m", keepdims=1), node("Add", "a m", "y"),
              axes=np.array([0])),
        8,
    ),
    "a function for each row": (
        mixed(node("Split", "z", "p q", axis=0, num_outputs=2), node("Relu", "p", "r"), node("Tanh", "q", "t"),
              node("Concat", "r t", "y", axis=0)),
        8,
    ),
    "rows that change places": (
        mixed(node("Relu", "z", "a"), node("Gather", "a order", "y", axis=0), order=np.array([1, 0])),
        8,
    ),
    "a flat output": (mixed(node("Relu", "z", "a"), node("Reshape", "a all", "y"), all=np.array([-1])), 8),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE_VECTOR)
def test_rows_that_mix_or_differ_are_one_vector(name, tmp_path):
    made, outputs = ONE_VECTOR[name]
    target, _ = mlp_from_onnx(saved(made, tmp_path))
    assert (target.inputs, target.outputs) == (12, outputs)
    x = np.random.default_rng(0).uniform(-1, 1, (2, 6)).astype(np.float32)
    assert np.abs(target.values(x.reshape(1, 12)).astype(float) - runtime(made, x).reshape(1, -1)).max() <= 1e-5


def test_rows_that_are_said_to_be_tokens_stay_tokens(tmp_path):
    target, _ = mlp_from_onnx(saved(two_layers(2), tmp_path), tokens=2)
    assert sides(target) == (12, [24], 6)
    assert sides(mlp_from_onnx(saved(two_layers(4), tmp_path), tokens=3)[0]) == (6, [12], 3)
