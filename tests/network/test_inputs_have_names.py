"""Inputs one by one: net(0.5, 0.5) and net(x=0.5, y=0.5) are what net(array) is, and what does not fit is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import anchorhead as ah
from anchorhead.errors import AnchorheadError, OutsideWarning
from anchorhead.language.forms import scalar_of
from anchorhead.network import Embed, Network
from tests import networks as table

BOX = {"x": (-1, 1), "y": (0, 2)}
TWO = ah.approximate("x*y + y", BOX, 1e-2)
PAIR = ah.approximate(["x*y", "x + y"], BOX, 1e-2)
ONE = ah.approximate("sin(t)", {"t": (-1, 1)}, 1e-2)
HEAD = ah.head("gelu", (-1, 1), 1e-2)


def as_array(net, columns):
    """What the network says of one array."""
    x = np.stack(np.broadcast_arrays(*columns), axis=-1)
    y = net(x[..., None, :])[..., 0, :] if net.token_axis else net(x)
    return y[..., 0] if y.shape[-1] == 1 else y


@pytest.mark.parametrize("name", table.names("variables"))
def test_inputs_one_by_one_are_the_columns_of_an_array(name):
    net = table.network(name).with_(outside="ignore")
    rng = np.random.default_rng(0)
    for shape in ((), (5,), (2, 3)):
        columns = [rng.uniform(0, 1, shape) for _ in net.variables]
        expected = as_array(net, columns)
        assert expected.shape[: len(shape)] == shape
        named = net(**dict(zip(net.variables, columns, strict=True)))
        assert type(named) is (np.dtype(net.dtype).type if named.ndim == 0 else np.ndarray)
        assert named.dtype == net.dtype
        assert np.array_equal(named, expected)
        if len(columns) > 1 or not shape:
            assert np.array_equal(net(*columns), expected)


def test_numbers_give_a_number_and_arrays_broadcast():
    assert TWO(0.5, 0.5) == pytest.approx(0.75, abs=1e-2)
    assert isinstance(TWO(1, 1), float)
    assert isinstance(HEAD(0.3), float)
    y = TWO(x=[[0.1], [0.2]], y=np.array([0.0, 1.0, 2.0]))
    assert y.shape == (2, 3)
    assert y[1, 2] == pytest.approx(TWO(0.2, 2.0), rel=1e-9)  # sums of other lengths end in other digits
    assert PAIR(0.5, [0.5, 1.0]).shape == (2, 2)
    assert PAIR(0.5, 0.5).shape == (2,)


def test_tensors_give_tensors_with_gradients():
    x = torch.tensor([0.1, 0.2], dtype=torch.float64, requires_grad=True)
    y = TWO(x, 1.0)
    assert isinstance(y, torch.Tensor)
    assert y.tolist() == TWO([0.1, 0.2], 1.0).tolist()
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == pytest.approx([1.0, 1.0], abs=0.1)
    assert TWO(torch.tensor(1), 1) == TWO(1.0, 1.0)


def test_heads_take_their_variable_by_name():
    s = np.linspace(-1, 1, 6).reshape(2, 3)
    assert np.array_equal(HEAD(x=s), HEAD(s))
    assert HEAD(x=0.3) == HEAD(0.3) == HEAD(np.array([0.3]))[0]
    assert ah.head(["sin", "cos"], (-1, 1), 1e-2)(x=0.3).shape == (2,)


def test_what_lies_outside_is_minded_as_in_an_array():
    net = TWO.with_(outside="warn")
    with pytest.warns(OutsideWarning, match="1 of 2 input entries") as caught:
        net(5.0, 1.0)
    assert caught[0].filename == __file__
    with pytest.raises(AnchorheadError, match="outside the box"):
        TWO(x=5.0, y=1.0, outside="raise")
    assert TWO(5.0, 1.0, outside="clip") == TWO(1.0, 1.0)
    with pytest.raises(AnchorheadError, match="must be finite"):
        TWO(np.nan, 1.0)


REFUSED = {
    "too few": (lambda: TWO(0.5), "1 input for 2 variables: this network takes x and y"),
    "none": (lambda: TWO(), "0 inputs for 2 variables"),
    "too many": (lambda: TWO(1, 2, 3), "3 inputs for 2 variables"),
    "a wrong name": (lambda: TWO(x=1, z=2), r"z is not an input: .* as in net\(x=0.5, y=0.5\)"),
    "a missing name": (lambda: TWO(x=1), "y is missing"),
    "mixed": (lambda: TWO(1, y=2), "give all by name"),
    "shapes": (lambda: TWO(np.ones(2), np.ones(3)), r"x of shape \(2,\), y of shape \(3,\)"),
    "shapes of tensors": (lambda: TWO(torch.ones(2), np.ones(3)), r"x of shape \(2,\), y of shape \(3,\)"),
    "no numbers": (lambda: TWO(object(), 1), "give real numbers"),
    "a word": (lambda: TWO(np.zeros((3, 2)), "clip"), "is said by name, as in outside='clip'"),
    "no names": (lambda: ah.truncated_linear([[1.0, 2.0]], [0.0], -1, 1, anchors=8)(0.5, 0.5), "have no names"),
    "entries of tokens": (
        lambda: ah.approximate([["x[0,0]"], ["x[1,0]"]], (0, 1), 0.1, tokens=2, features=1)(0.5, 0.5),
        r"have no names: give one array of shape \(..., 2, 1\)",
    ),
    "two inputs of a head": (lambda: HEAD(0.3, 0.4), "2 inputs for 1 variable"),
    "a wrong name of a head": (lambda: HEAD(s=0.3), "s is not an input: this network takes x"),
    "layers that are none": (lambda: Network(5), "layers=5: a list of layers"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_in_words(name):
    call, words = REFUSED[name]
    with pytest.raises(AnchorheadError, match=words):
        call()


def test_names_are_saved(tmp_path):
    ONE.save(tmp_path / "one.safetensors")
    assert ah.load(tmp_path / "one.safetensors").variables == ("t",)
    assert scalar_of(ah.program("sin(x)", on=(-1, 1))).variable == "x"


def test_an_array_goes_in_as_ever():
    assert ONE(np.zeros((4, 1))).shape == (4, 1)
    assert TWO(np.zeros((4, 2))).shape == (4, 1)
    with pytest.raises(AnchorheadError, match=r"shape \(4,\): needed is \(..., 1\)"):
        ONE(np.zeros(4))
    assert Network([Embed(np.ones((2, 2)), np.zeros(2))])(np.ones((3, 2))).shape == (3, 2)
