"""Saved weights are read as the network that they were saved from, or refused with what to do."""

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_torch
from torch import nn

from anchorhead import AnchorheadError
from anchorhead.convert.weight_files import mlp_from_safetensors


def arrays(*shapes, names="{}", dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    tensors = {}
    for number, (outputs, inputs) in enumerate(shapes):
        name = names.format(number)
        tensors[f"{name}.weight"] = rng.normal(size=(outputs, inputs)).astype(dtype)
        tensors[f"{name}.bias"] = rng.normal(size=outputs).astype(dtype)
    return tensors


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


@pytest.mark.parametrize(("text", "activation"), [("relu", nn.ReLU()), ("leaky_relu(x, 0.1)", nn.LeakyReLU(0.1))])
def test_a_saved_state_dict_is_the_network_that_was_saved(path, text, activation):
    torch.manual_seed(0)
    layers = [nn.Linear(3, 4)]
    for _ in range(11):  # so many that 2 and 10 are sorted differently as words
        layers += [activation, nn.Linear(4, 4)]
    module = nn.Sequential(*layers).double()
    save_torch(module.state_dict(), path)
    target, dtype = mlp_from_safetensors(path, text)
    x = np.random.default_rng(1).normal(size=(50, 3))
    assert dtype == "float64"
    assert np.abs(target.values(x) - module(torch.from_numpy(x)).detach().numpy()).max() <= 1e-12


def test_numbers_in_names_are_sorted_by_their_size(path):
    save_file(arrays(*[(k + 1, k + 2) for k in range(12)], names="net.fc{}"), path)
    with pytest.raises(AnchorheadError, match=r"fc0\.weight makes 1 outputs, net\.fc1\.weight takes 3"):
        mlp_from_safetensors(path, "relu")
    save_file(arrays(*[(k + 2, k + 1) for k in range(12)], names="net.fc{}"), path)
    target, dtype = mlp_from_safetensors(path, "relu")
    assert dtype == "float32"
    assert [layer.affine.inputs for layer in target.hidden] == list(range(1, 12))


def test_a_bias_may_be_missing_and_one_linear_map_is_enough(path):
    weight = np.arange(6.0).reshape(2, 3)
    save_file({"weight": weight}, path)
    target, _ = mlp_from_safetensors(path, "relu")
    assert np.array_equal(target.values(np.eye(3)), weight.T)


def test_tokens_are_passed_on(path):
    save_file(arrays((5, 4), (2, 5)), path)
    assert mlp_from_safetensors(path, "gelu", tokens=2)[0].input_shape == (2, 2)


def test_an_order_that_names_do_not_tell_must_be_given(path):
    save_file(
        arrays((4, 4), names="input") | arrays((4, 4), names="hidden", seed=1) | arrays((2, 4), names="out"), path
    )
    with pytest.raises(AnchorheadError, match=r"which of hidden and input.*order="):
        mlp_from_safetensors(path, "relu")
    target, _ = mlp_from_safetensors(path, "relu", order=["input", "hidden", "out"])
    assert np.array_equal(target.hidden[0].affine.weight, arrays((4, 4), names="x")["x.weight"])
    for wrong in (["input", "hidden"], ["input", "hidden", "hidden"], "input"):
        with pytest.raises(AnchorheadError, match="order="):
            mlp_from_safetensors(path, "relu", order=wrong)


BAD_FILES = {
    "chain": (arrays((4, 3), (2, 5)), r"0\.weight makes 4 outputs, 1\.weight takes 5"),
    "extra": (arrays((4, 3), (2, 4)) | {"1.running_mean": np.zeros(4)}, r"holds 1\.running_mean"),
    "convolution": ({"0.weight": np.zeros((2, 2, 3))}, r"holds 0\.weight of shape \(2, 2, 3\)"),
    "norm": (arrays((4, 3), (2, 4)) | {"norm.weight": np.zeros(4)}, r"norm\.weight"),
    "bias of another size": (arrays((4, 3)) | {"0.bias": np.zeros(3)}, r"0\.bias of shape \(3,\).*\(4,\)"),
    "bias without weight": (arrays((4, 3)) | {"7.bias": np.zeros(4)}, r"7\.bias"),
    "NaN": (arrays((4, 3)) | {"0.bias": np.array([0, 0, np.nan, 0])}, r"0\.bias .*nan at \(2,\)"),
    "half": (arrays((4, 3), dtype=np.float16), r"F16.*float\(\)"),
    "whole numbers": ({"0.weight": np.ones((2, 2), int)}, "I64"),
    "nothing": ({}, "no tensor"),
    "empty": ({"0.weight": np.zeros((0, 2))}, r"\(0, 2\)"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_files_that_are_no_plain_network_are_refused(path, name):
    tensors, message = BAD_FILES[name]
    save_file(tensors, path)
    with pytest.raises(AnchorheadError, match=message):
        mlp_from_safetensors(path, "relu")


def test_bfloat16_is_refused(path):
    save_torch({"0.weight": torch.zeros(2, 2, dtype=torch.bfloat16)}, path)
    with pytest.raises(AnchorheadError, match="BF16"):
        mlp_from_safetensors(path, "relu")


@pytest.mark.parametrize("name", ["model.pt", "model.pth", "model.bin", "MODEL.PT"])
def test_pickles_are_not_read(tmp_path, name):
    torch.save(nn.Linear(2, 2).state_dict(), tmp_path / name)
    with pytest.raises(AnchorheadError, match="save_file"):
        mlp_from_safetensors(tmp_path / name, "relu")


def test_files_that_are_missing_or_damaged_are_refused(tmp_path, path):
    with pytest.raises(AnchorheadError, match="not a file"):
        mlp_from_safetensors(path, "relu")
    with pytest.raises(AnchorheadError, match="not a file"):
        mlp_from_safetensors(tmp_path, "relu")
    save_file(arrays((4, 3)), path)
    content = path.read_bytes()
    for damaged in (b"", b"hello", content[:-3], b"\xff" * 100):
        path.write_bytes(damaged)
        with pytest.raises(AnchorheadError, match="not a safetensors file"):
            mlp_from_safetensors(path, "relu")


@pytest.mark.parametrize(
    ("activation", "message"),
    [("gelo", "gelo"), ("3", "does not depend on x"), ("x + y", "y is not known"), ("__import__('os')", "column")],
)
def test_activations_that_are_no_function_of_x_are_refused(path, activation, message):
    save_file(arrays((4, 3)), path)
    with pytest.raises(AnchorheadError, match=message):
        mlp_from_safetensors(path, activation)
    with pytest.raises(AnchorheadError, match="give its name"):
        mlp_from_safetensors(path, np.tanh)
