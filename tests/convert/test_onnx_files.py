"""ONNX files are read as what they compute, and become networks whose error is proven."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper
from onnx_builder import mlp, model, node, runtime, saved, weights

import anchorhead as ah
from anchorhead.convert.onnx_files import mlp_from_onnx

W, B, V, C = weights(4, 5), weights(5), weights(5, 3), weights(3)
PLAIN = {"w": W, "b": B, "v": V, "c": C}
SQUARE = {"w": weights(3, 1, 3, 3), "b": weights(3)}
NORM = {"s": weights(3), "t": weights(3), "m": weights(3), "q": np.abs(weights(3))}
HALF, ONE, ROOT = np.float32(0.5), np.float32(1), np.float32(2**0.5)


def activation(op, inputs="z", opset=18, constants=None, **attributes):
    nodes = [node("Gemm", "x w b", "z"), node(op, inputs, "a", **attributes), node("Gemm", "a v c", "y")]
    return model(nodes, {**PLAIN, **(constants or {})}, ["n", 4], opset=opset)


def chain(*nodes, shape=("n", 4), opset=18, **constants):
    return model([node(op, i, o, **a) for op, i, o, a in nodes], {**PLAIN, **constants}, list(shape), opset=opset)


MODELS = {
    **{op: activation(op) for op in ("Relu", "LeakyRelu", "Elu", "Selu", "Celu", "Sigmoid", "Tanh", "Softplus")},
    **{op: activation(op) for op in ("Softsign", "HardSigmoid", "HardSwish", "Mish", "Identity", "Erf", "Abs", "Sin")},
    "LeakyRelu, own slope": activation("LeakyRelu", alpha=0.3),
    "Gelu": activation("Gelu", opset=20),
    "Gelu, tanh": activation("Gelu", opset=20, approximate="tanh"),
    "Clip": activation("Clip", "z low high", constants={"low": np.float32(-0.5), "high": np.float32(0.7)}),
    "Clip, one end": activation("Clip", "z - high", constants={"high": np.float32(0.7)}),
    "Clip, attributes": activation("Clip", opset=8, min=-0.5, max=0.7),
    "PRelu": activation("PRelu", "z s", constants={"s": np.float32([0.2])}),
    "PRelu of each": activation("PRelu", "z s", constants={"s": weights(5)}),
    "Dropout": activation("Dropout", "z r", constants={"r": HALF}),
    "Max": activation("Max", "z s", constants={"s": np.float32(0.1)}),
    "MatMul and Add": chain(
        ("MatMul", "x w", "p", {}), ("Add", "b p", "z", {}), ("Relu", "z", "a", {}), ("MatMul", "a v", "y", {})
    ),
    "Gemm, turned and scaled": chain(
        ("Gemm", "x w2 b", "z", {"transB": 1, "alpha": 0.5, "beta": 3.0}), ("Relu", "z", "y", {}), w2=W.T.copy()
    ),
    "no activation": chain(("Gemm", "x w b", "z", {}), ("Gemm", "z v c", "y", {})),
    "gelu by erf": chain(
        ("Gemm", "x w b", "z", {}), ("Div", "z r", "p", {}), ("Erf", "p", "q", {}), ("Add", "q one", "s", {}),
        ("Mul", "z s", "t", {}), ("Mul", "t h", "a", {}), ("Gemm", "a v c", "y", {}), r=ROOT, one=ONE, h=HALF,
    ),
    "swish": chain(
        ("Gemm", "x w b", "z", {}), ("Sigmoid", "z", "p", {}), ("Mul", "z p", "a", {}), ("Gemm", "a v c", "y", {})
    ),
    "scaled input": chain(
        ("Sub", "x m", "p", {}), ("Div", "p c255", "q", {}), ("Mul", "q g", "r", {}), ("Gemm", "r w b", "z", {}),
        ("Relu", "z", "a", {}), ("Neg", "a", "e", {}), ("Gemm", "e v c", "y", {}),
        m=weights(4), c255=np.float32(255), g=weights(4),
    ),
    "a constant without axes, taken away": chain(("Sub", "x h", "p", {}), ("Relu", "p", "y", {}), h=HALF),
    "residual": chain(
        ("Gemm", "x w b", "z", {}), ("Relu", "z", "a", {}), ("MatMul", "a u", "p", {}), ("Add", "p x", "q", {}),
        ("Tanh", "q", "r", {}), ("Concat", "r x a", "s", {"axis": 1}), ("MatMul", "s o", "y", {}),
        u=weights(5, 4), o=weights(13, 2),
    ),
    "convolution": chain(
        ("Conv", "x w b", "p", {"pads": [1, 0, 1, 2], "strides": [2, 1], "dilations": [1, 2]}),
        ("BatchNormalization", "p s t m q", "z", {}), ("Relu", "z", "a", {}),
        ("AveragePool", "a", "e", {"kernel_shape": [2, 2], "pads": [1, 1, 0, 0]}), ("Flatten", "e", "y", {}),
        shape=("n", 1, 6, 6), **SQUARE, **NORM,
    ),
    "groups, padded alike": chain(
        ("Conv", "x w", "p", {"group": 2, "auto_pad": "SAME_UPPER", "strides": [2, 2]}), ("Relu", "p", "a", {}),
        ("GlobalAveragePool", "a", "e", {}), ("Squeeze", "e ax", "y", {}),
        shape=("n", 2, 5, 7), w=weights(4, 1, 3, 3), ax=np.array([2, 3]),
    ),
    "one axis": chain(
        ("Pad", "x pads", "p", {"mode": "reflect"}), ("Conv", "p w", "q", {}), ("Relu", "q", "a", {}),
        ("ReduceMean", "a ax", "y", {"keepdims": 0}),
        shape=("n", 1, 8), pads=np.array([0, 0, 2, 0, 0, 1]), w=weights(2, 1, 3), ax=np.array([2]),
    ),
    "normalised vectors": chain(
        ("BatchNormalization", "x s t m q", "p", {"epsilon": 0.01}), ("Relu", "p", "y", {}), shape=("n", 3), **NORM
    ),
    "moves": chain(
        ("Reshape", "x to", "p", {}), ("Transpose", "p", "q", {"perm": [0, 2, 1]}), ("Slice", "q s e ax st", "r", {}),
        ("Gather", "r i", "t", {"axis": 2}), ("Split", "t", "u o", {"axis": 2, "num_outputs": 2}),
        ("Expand", "u big", "h", {}), ("Flatten", "h", "y", {}),
        to=np.array([0, 2, -1]), s=np.array([-1]), e=np.array([-9]), ax=np.array([1]), st=np.array([-1]),
        i=np.array([1, 0, 1, -2]), big=np.array([1, 2, 1]),
    ),
    "shapes of the batch": chain(
        ("Gemm", "x w b", "z", {}), ("Shape", "z", "s", {}), ("Gather", "s zero", "n", {"axis": 0}),
        ("Unsqueeze", "n first", "m", {}), ("Concat", "m rest", "to", {"axis": 0}), ("Reshape", "z to", "r", {}),
        ("ReduceSum", "r last", "y", {"keepdims": 0}),
        zero=np.int64(0), first=np.array([0]), rest=np.array([5, 1]), last=np.array([2]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_a_file_is_read_as_what_onnxruntime_computes(name, tmp_path):
    made = MODELS[name]
    sides = [axis.dim_value or 9 for axis in made.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(1).normal(size=sides).astype(np.float32)
    target, dtype = mlp_from_onnx(saved(made, tmp_path))
    theirs = runtime(made, x).reshape(9, -1)
    assert dtype == "float32"
    assert np.abs(target.values(x.reshape(9, -1)).astype(float) - theirs).max() <= 2e-6 * (1 + np.abs(theirs).max())


@pytest.mark.parametrize("name", ["Relu", "residual", "convolution", "scaled input"])
def test_converted_files_stay_within_their_certificate(name, tmp_path):
    path = saved(MODELS[name], tmp_path)
    network = ah.convert(path, on=(-1, 1), within=1e-4, dtype="float64")
    assert network.certificate.kind == "proven"
    assert network.certificate.bound <= 1e-4
    x = np.random.default_rng(2).uniform(-1, 1, size=(50, network.embed.inputs))
    exact = mlp_from_onnx(path)[0].values(x)
    assert np.abs(network(x) - exact).max() <= network.certificate.bound
    ah.check(network)


def test_products_of_maps_carry_what_rounding_did_to_them(tmp_path):
    matrices = [weights(6, 6, dtype="float64") for _ in range(3)]
    nodes = [node("MatMul", f"{a} w{i}", b) for i, (a, b) in enumerate((("x", "p"), ("p", "q"), ("q", "y")))]
    made = model(nodes, {f"w{i}": m for i, m in enumerate(matrices)}, ["n", 6], kind=TensorProto.DOUBLE)
    target, dtype = mlp_from_onnx(saved(made, tmp_path))
    written = _fractions(target.readout.weight)
    distance = [
        [float(abs(a - b)) for a, b in zip(*rows, strict=True)] for rows in zip(_exact(matrices), written, strict=True)
    ]
    assert dtype == "float64"
    assert (np.array(distance) <= target.readout.weight_error).all()
    assert target.readout.weight_error.max() < 1e-12


def _fractions(array):
    return [[Fraction(float(entry)) for entry in row] for row in array]


def _exact(matrices):
    """(w0 w1 w2)^T in rational numbers."""
    total = _fractions(matrices[0])
    for matrix in map(_fractions, matrices[1:]):
        total = [
            [sum(a * b for a, b in zip(row, column, strict=True)) for column in zip(*matrix, strict=True)]
            for row in total
        ]
    return [list(row) for row in zip(*total, strict=True)]


def test_tokens_fill_a_free_second_axis(tmp_path):
    made = chain(
        ("MatMul", "x w", "p", {}), ("Add", "p b", "z", {}), ("Relu", "z", "a", {}), ("MatMul", "a v", "y", {}),
        shape=("n", "tokens", 4),
    )  # fmt: skip
    path = saved(made, tmp_path)
    target, _ = mlp_from_onnx(path, tokens=3)
    x = weights(2, 3, 4)
    assert np.abs(target.values(x).astype(float) - runtime(made, x)).max() <= 1e-5
    with pytest.raises(ah.AnchorheadError, match="may be free"):
        mlp_from_onnx(path)


def test_a_network_may_end_at_a_value_between(tmp_path):
    made = chain(
        ("Gemm", "x w b", "z", {}),
        ("Relu", "z", "a", {}),
        ("Gemm", "a v c", "logits", {}),
        ("Softmax", "logits", "y", {}),
    )
    path = saved(made, tmp_path)
    with pytest.raises(ah.AnchorheadError, match=r"the node 'Softmax of logits' \(Softmax\) cannot be converted.*Gemm"):
        ah.convert(path, on=(0, 1), within=1e-2)
    network = ah.convert(path, on=(0, 1), within=1e-2, output="logits")
    assert network(np.zeros((1, 4), np.float32)).shape == (1, 3)


@pytest.mark.filterwarnings("ignore")
def test_what_torch_exports_is_read(tmp_path):
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(6, 5), torch.nn.SiLU(), torch.nn.BatchNorm1d(5), torch.nn.Linear(5, 2)
    ).eval()
    path = tmp_path / "torch.onnx"
    try:
        torch.onnx.export(module, (torch.zeros(1, 2, 3),), str(path), dynamo=False, input_names=["x"])
    except Exception as error:
        pytest.skip(f"torch has no exporter of its own here: {error}")
    x = torch.rand(8, 2, 3)
    with torch.no_grad():
        theirs = module(x).numpy()
    assert np.abs(mlp_from_onnx(path)[0].values(x.reshape(8, 6).numpy()).astype(float) - theirs).max() <= 1e-5


def test_operations_of_others_are_named(tmp_path):
    own = helper.make_node("Relu", ["x"], ["y"], name="theirs", domain="com.example")
    made = model([own], {}, ["n", 4])
    made.opset_import.append(helper.make_opsetid("com.example", 1))
    with pytest.raises(ah.AnchorheadError, match=r"the node 'theirs' \(com.example.Relu\) cannot be converted"):
        mlp_from_onnx(saved(made, tmp_path))


def test_products_of_two_values_are_refused_by_name(tmp_path):
    made = chain(("Gemm", "x w b", "p", {}), ("Gemm", "x w", "q", {}), ("Mul", "p q", "y", {}))
    with pytest.raises(ah.AnchorheadError, match=r"'Mul of p q' \(Mul\).*product of two values"):
        mlp_from_onnx(saved(made, tmp_path))


@pytest.mark.parametrize("opset", [1, 6, 99])
def test_other_opsets_are_refused(opset, tmp_path):
    with pytest.raises(ah.AnchorheadError, match=f"opset {opset}"):
        mlp_from_onnx(saved(mlp(opset), tmp_path))


def test_words_that_go_with_other_models_are_refused(tmp_path):
    path = saved(mlp(), tmp_path)
    with pytest.raises(ah.AnchorheadError, match="says its own"):
        ah.convert(path, on=(0, 1), within=1e-2, activation="relu")
    with pytest.raises(ah.AnchorheadError, match="goes with an ONNX file"):
        ah.convert(torch.nn.Linear(1, 1), on=(0, 1), within=1e-2, output="y")
    with pytest.raises(ah.AnchorheadError, match="on is missing"):
        ah.convert(path, within=1e-2)


def test_the_reader_sees_what_the_library_of_onnx_sees(tmp_path):
    from anchorhead.convert.onnx_model import read_model

    for made in MODELS.values():
        mine = read_model(saved(made, tmp_path))
        assert [(n.op, list(n.inputs), list(n.outputs)) for n in mine.nodes] == [
            (n.op_type, list(n.input), list(n.output)) for n in made.graph.node
        ]
        for tensor in made.graph.initializer:
            assert np.array_equal(mine.constants[tensor.name].array(), onnx.numpy_helper.to_array(tensor))


@pytest.mark.parametrize(
    "nodes",
    [
        [
            node("MatMul", "x a", "p"),
            node("MatMul", "p a", "q"),
            node("MatMul", "q b", "r"),
            node("MatMul", "r b", "y"),
        ],
        [node("Mul", "x s", "p"), node("Mul", "p s", "q"), node("Mul", "q t", "r"), node("Mul", "r t", "y")],
        [node("Mul", "x s2", "p"), node("Mul", "p s2", "q"), node("Mul", "q t", "r"), node("Mul", "r t", "y")],
        [node("Add", "x s", "p"), node("MatMul", "p a", "q"), node("MatMul", "q b", "r"), node("MatMul", "r b", "y")],
    ],
)
def test_products_that_underflow_are_bounded(nodes, tmp_path):
    """1e-200 1e-200 is 0 in float64, and no later factor brings it back: what was lost must stand in the errors."""
    constants = {"a": [[1e-200]], "b": [[1e200]], "s": [1e-200], "s2": 2.0**-600, "t": [1e200]}
    made = model(nodes, {k: np.array(v) for k, v in constants.items()}, ["n", 1], kind=TensorProto.DOUBLE)
    readout = mlp_from_onnx(saved(made, tmp_path))[0].readout
    true = np.array([[Fraction(1)]])
    for one in nodes:
        true = true * Fraction(float(np.ravel(constants[one.input[1]])[0])) if one.op_type != "Add" else true
    error = readout.weight_error
    assert error is not None
    assert abs(Fraction(float(readout.weight[0, 0])) - true[0, 0]) <= Fraction(float(error[0, 0]))


@pytest.mark.parametrize(
    ("nodes", "constants", "shape"),
    [
        ([node("MatMul", "x w3", "z"), node("ReduceSum", "z one", "y", keepdims=0)], {"one": np.array([1])}, [1, 4]),
        ([node("MatMul", "w3 x", "z"), node("Gather", "z one", "y", axis=1)], {"one": np.array([1])}, [5, 2]),
        ([node("MatMul", "w3 x", "z"), node("Gather", "z one", "y", axis=1)], {"one": np.array([1])}, [5]),
        ([node("ReduceSum", "x none", "y")], {"none": np.zeros(0, np.int64)}, [1, 4]),
        ([node("Div", "i j", "k"), node("Slice", "x k end one", "y")],
         {"i": np.array([-7]), "j": np.array([2]), "end": np.array([9]), "one": np.array([1])}, [1, 6]),
        ([node("Sigmoid", "x", "a"), node("Abs", "a", "y")], {}, [1, 4]),
        ([node("Softplus", "x", "a"), node("Relu", "a", "y")], {}, [1, 4]),
        ([node("Conv", "x d", "y", group=4)], {"d": weights(8, 1, 2)}, [1, 4, 3]),
        ([node("Conv", "x d", "y", group=2)], {"d": weights(6, 2, 2)}, [1, 4, 3]),
    ],
)  # fmt: skip
def test_corners_of_the_operations_are_those_of_onnxruntime(nodes, constants, shape, tmp_path):
    made = model(nodes, {"w3": W[None], **constants}, shape)
    target, _ = mlp_from_onnx(saved(made, tmp_path))
    x = weights(*shape)
    assert np.allclose(target.values(x.astype(np.float64).reshape(-1)), runtime(made, x).reshape(-1), atol=1e-5)
