"""What is not in the grammar, or does not fit, is refused when it is built, with the sizes in the message."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from anchorhead.errors import AnchorheadError
from anchorhead.network import Attention, Embed, Linear, Network, Repeat, Softmax

from .certificates import certificate

EMBED = Embed(np.ones((3, 2)), np.zeros(3), registers=np.ones((4, 3)), tokens=5)
NAN = np.array([[1.0, np.nan, 0.0]])
I3 = Linear(np.eye(3))


class SubLinear(Linear):
    pass


class SubEmbed(Embed):
    pass


def attention(heads=2, size=2, width=3, values=2, outputs=3, **more):
    shapes = {
        "query": (heads, size, width),
        "key": (heads, size, width),
        "value": (heads, values, width),
        "output": (heads, outputs, values),
    }
    arrays = {name: more.pop(name, np.ones(shape)) for name, shape in shapes.items()}
    return Attention(**arrays, **more)


def deep(levels):
    layer = I3
    for _ in range(levels):
        layer = Repeat([layer], 1)
    return layer


FOREIGN = {
    "nn.Linear": (lambda: Network([EMBED, torch.nn.Linear(3, 3)]), ["Linear, Attention, Softmax and Repeat"]),
    "subclass": (lambda: Network([EMBED, SubLinear(np.eye(3))]), ["SubLinear"]),
    "subclass of Embed": (lambda: Network([SubEmbed(np.ones((3, 2)), np.zeros(3))]), ["SubEmbed"]),
    "function": (lambda: Network([EMBED, np.tanh]), ["ufunc"]),
    "lambda in a Repeat": (lambda: Repeat([lambda x: x], 2), ["function"]),
    "nn.Module in a Repeat": (lambda: Repeat([torch.nn.ReLU()], 2), ["ReLU"]),
    "Embed in a Repeat": (lambda: Repeat([EMBED], 2), ["Embed"]),
    "skip of another kind": (lambda: attention(skip=np.eye(3)), ["ndarray"]),
    "skip, subclass": (lambda: attention(skip=SubLinear(np.eye(3))), ["SubLinear"]),
    "skip across tokens": (lambda: attention(skip=Linear(np.eye(3), mix=np.eye(5))), ["on each token"]),
    "no layers": (lambda: Network([]), ["starts with an Embed", "nothing"]),
    "no Embed": (lambda: Network([I3]), ["starts with an Embed", "Linear"]),
    "two Embeds": (lambda: Network([EMBED, EMBED]), ["holds a Embed"]),
}
SIZES = {
    "Linear": (lambda: Network([EMBED, Linear(np.ones((2, 4)))]), ["layer 2", "4", "3"]),
    "third layer": (lambda: Network([EMBED, Linear(np.ones((2, 3))), I3]), ["layer 3", "takes 3", "has 2"]),
    "blocks": (lambda: Network([EMBED, Linear(np.ones((2, 1, 2)))]), ["takes 4", "has 3"]),
    "mix": (lambda: Network([EMBED, Linear(np.eye(3), mix=np.ones((2, 5)))]), ["mixes 5", "has 9"]),
    "mix of any number": (
        lambda: Network([Embed(np.ones((3, 2)), np.zeros(3)), Linear(np.eye(3), mix=np.ones((2, 5)))]),
        ["mixes 5", "any number"],
    ),
    "sequence": (lambda: Network([EMBED, Linear(np.ones((2, 2, 8, 3)))]), ["mixes 8", "has 9"]),
    "Attention": (lambda: Network([EMBED, attention(width=4)]), ["takes 4", "has 3"]),
    "Softmax": (lambda: Network([EMBED, Softmax((2, 2))]), ["4 features", "3 enter"]),
    "grid": (lambda: Network([EMBED, attention(grid=(2, 3))]), ["2 x 3", "6 registers", "4"]),
    "Repeat changes the width": (
        lambda: Network([EMBED, Repeat([Linear(np.ones((2, 3)))], 2)]),
        ["3 feat", "2 feat"],
    ),
    "Repeat changes the kinds": (
        lambda: Network([EMBED, Repeat([Linear(np.eye(3), mix=np.eye(9))], 2)]),
        ["5 input + 4 register", "9 input"],
    ),
    "inside a Repeat": (
        lambda: Network([EMBED, Repeat([I3, Softmax((2,))], 2)]),
        ["layer 2", "2 features", "3 enter"],
    ),
    "bias of Linear": (lambda: Linear(np.eye(3), np.ones(4)), ["3", "4"]),
    "token bias of a map on each token": (lambda: Linear(np.eye(3), np.ones((2, 3))), ["(2, 3)"]),
    "token bias of a mix": (
        lambda: Linear(np.eye(3), np.ones((4, 3)), mix=np.ones((2, 5))),
        ["2 tokens", "4"],
    ),
    "mix of a sequence map": (lambda: Linear(np.ones((1, 1, 1, 1)), mix=np.eye(1)), ["no mix"]),
    "keys": (lambda: attention(key=np.ones((2, 3, 3))), ["query (2, 2, 3)", "key (2, 3, 3)"]),
    "heads of keys": (lambda: attention(heads=3, key=np.ones((2, 2, 3))), ["key (2, 2, 3)", "heads or 1"]),
    "values": (lambda: attention(value=np.ones((2, 5, 3))), ["value (2, 5, 3)", "output (2, 3, 2)"]),
    "bias of Attention": (lambda: attention(bias=np.ones(2)), ["3", "2"]),
    "skip": (lambda: attention(skip=Linear(np.ones((4, 3)))), ["3 features to 3", "3 to 4"]),
    "dimension": (lambda: Linear(np.ones(3)), ["(3,)", "dimension 2 or 3 or 4"]),
    "bias of Embed": (lambda: Embed(np.ones((3, 2)), np.ones(4)), ["3", "4"]),
    "registers": (
        lambda: Embed(np.ones((3, 2)), np.ones(3), registers=np.ones((2, 4))),
        ["3", "4", "registers"],
    ),
    "positions": (lambda: Embed(np.ones((4, 3, 2)), np.ones(3), tokens=5), ["5 positions", "4"]),
    "positions without tokens": (lambda: Embed(np.ones((4, 3, 2)), np.ones(3)), ["tokens="]),
    "source without tokens": (lambda: Embed(np.ones((3, 2)), np.ones(3), source=np.array([0])), ["tokens="]),
    "source beyond": (
        lambda: Embed(np.ones((3, 2)), np.ones(3), source=np.array([0, 5]), tokens=5),
        ["5", "0 to 4"],
    ),
    "source below": (lambda: Embed(np.ones((3, 2)), np.ones(3), source=np.array([-1, 9]), tokens=5), ["-1"]),
    "source of floats": (
        lambda: Embed(np.ones((3, 2)), np.ones(3), source=np.ones(2), tokens=5),
        ["float64"],
    ),
    "too few names": (lambda: Linear(np.eye(3), features=("a", "b")), ["2 feature names", "3"]),
    "one text as names": (lambda: Linear(np.eye(3), features="abc"), ["'abc'"]),
    "a number as names": (lambda: Linear(np.eye(3), features=7), ["7"]),
}
VALUES = {
    "NaN": (lambda: Linear(NAN), ["nan", "(0, 1)", "Linear's weight"]),
    "infinity": (lambda: Embed(np.ones((3, 2)), np.array([0, np.inf, 0])), ["inf", "(1,)", "Embed's bias"]),
    "NaN in a register": (lambda: Embed(np.ones((3, 2)), np.zeros(3), registers=NAN), ["Embed's registers"]),
    "NaN in a query": (lambda: attention(query=np.full((2, 2, 3), np.nan)), ["Attention's query"]),
    "float16": (lambda: Linear(np.eye(3, dtype=np.float16)), ["float16", "float32 or float64"]),
    "complex": (lambda: Linear(np.eye(3) * 1j), ["complex128"]),
    "text": (lambda: Linear(np.array([["a"]])), ["<U1"]),
    "ragged": (lambda: Linear([[1.0], [1.0, 2.0]]), ["Linear's weight"]),
    "empty": (lambda: Linear(np.ones((0, 3))), ["(0, 3)", "at least 1"]),
    "no heads": (lambda: attention(heads=0), ["(0, 2, 3)"]),
    "mixed dtypes": (lambda: Network([EMBED, Linear(np.eye(3, dtype=np.float32))]), ["float32, float64"]),
    "mixed dtypes in a skip": (
        lambda: Network([EMBED, attention(skip=Linear(np.eye(3, dtype=np.float32)))]),
        ["float32, float64"],
    ),
    "mixed dtypes in a Repeat": (
        lambda: Network([EMBED, Repeat([Linear(np.eye(3, dtype=np.float32))], 2)]),
        ["float32, float64"],
    ),
    "mask": (lambda: attention(mask="banded"), ["'banded'", "causal", "self+registers"]),
    "mask as an array": (lambda: attention(mask=np.eye(3)), ["causal", "self+registers"]),
    "empty grid": (lambda: attention(grid=()), ["()", "grid"]),
    "grid of zero": (lambda: attention(grid=(4, 0)), ["(4, 0)"]),
    "grid of floats": (lambda: attention(grid=(4.0,)), ["(4.0,)"]),
    "grid as a number": (lambda: attention(grid=4), ["4"]),
    "grid that does not divide the key": (lambda: attention(grid=(1, 2, 2)), ["3 axes", "not 2"]),
    "grid and mask": (lambda: attention(grid=(4,), mask="causal"), ["'causal'"]),
    "groups": (lambda: Softmax((2, 0)), ["(2, 0)"]),
    "no groups": (lambda: Softmax(()), ["()"]),
    "groups as a number": (lambda: Softmax(3), ["3", "list"]),
    "no times": (lambda: Repeat([I3], 0), ["times=0"]),
    "times as a float": (lambda: Repeat([I3], 2.0), ["times=2.0"]),
    "too many times": (lambda: Repeat([I3], 10**7), ["10,000,000", "1,000,000"]),
    "too many times, nested": (lambda: Repeat([Repeat([I3], 10**4)], 10**4), ["100,000,000", "1,000,000"]),
    "too deep": (lambda: deep(9), ["9 deep", "8"]),
    "empty Repeat": (lambda: Repeat([], 2), ["at least one"]),
    "tokens": (lambda: Embed(np.ones((3, 2)), np.zeros(3), tokens=0), ["tokens=0"]),
    "output": (lambda: Network([EMBED], output="state"), ["'state'", "input, register"]),
    "output of no kind": (lambda: Network([EMBED], output="tokens"), ["'tokens'", "input, register"]),
    "outside": (lambda: Network([EMBED], outside="shrug"), ["'shrug'", "'clip'"]),
    "certificate of another dtype": (
        lambda: Network([EMBED], certificate=certificate(dtype="float32")),
        ["float32", "float64"],
    ),
    "certificate for other features": (
        lambda: Network([EMBED], certificate=certificate(on=(np.zeros(3), np.ones(3)))),
        ["(3,)", "(5, 2)"],
    ),
    "certificate for tokens of a network of any number": (
        lambda: Network([Embed(np.ones((3, 2)), np.zeros(3))], certificate=certificate(on=(np.zeros((4, 2)), 1))),
        ["(4, 2)", "(1, 2)"],
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_layers_of_other_kinds_are_refused(name):
    refused(*FOREIGN[name])


@pytest.mark.parametrize("name", SIZES)
def test_sizes_that_do_not_chain_are_refused_by_name(name):
    refused(*SIZES[name])


@pytest.mark.parametrize("name", VALUES)
def test_values_that_mean_nothing_are_refused(name):
    refused(*VALUES[name])


def refused(build, said):
    with pytest.raises(AnchorheadError) as caught:
        build()
    for part in said:
        assert part in str(caught.value)


def test_numpys_whole_numbers_count_as_whole_numbers():
    three = np.int64(3)
    layer = attention(grid=(np.int32(2), np.int64(2)))
    assert Repeat([I3], three).times == 3
    assert Softmax((three,)).groups == (3,)
    assert Softmax(np.array([1, 2])).groups == (1, 2)
    assert layer.grid == (2, 2)
    assert {type(side) for side in layer.grid or ()} == {int}
    assert type(Embed(np.ones((3, 2)), np.zeros(3), tokens=three).tokens) is int


def test_a_network_cannot_be_changed():
    weight = np.eye(3)
    network = Network([EMBED, Linear(weight), attention()])
    before = network(np.ones((5, 2)))
    weight[:] = 7
    assert np.array_equal(network(np.ones((5, 2))), before)
    with pytest.raises(ValueError, match="read-only"):
        network.layers[1].weight[0, 0] = 7
    with pytest.raises(AttributeError):
        network.layers = ()
    with pytest.raises(AttributeError):
        network.layers[1].weight = weight
    assert np.array_equal(copy.deepcopy(network)(np.ones((5, 2))), before)
