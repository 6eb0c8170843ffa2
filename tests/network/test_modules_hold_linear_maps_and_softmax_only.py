"""The exported graph of every network has linear maps, softmax and shapes only; and it differentiates."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from anchorhead.network import Network
from tests import networks as table

LINEAR = {"linear", "matmul", "bmm", "einsum", "add"}
SOFTMAX = {"softmax", "scaled_dot_product_attention"}
SHAPE = {
    "reshape", "view", "flatten", "unflatten", "expand", "squeeze", "unsqueeze", "transpose", "permute", "mT",
    "matrix_transpose", "contiguous", "clone", "alias",
    "cat", "slice", "select", "split", "split_with_sizes", "index_select", "sym_size",
}  # fmt: skip
CONSTANT = {"new_zeros", "zeros", "new_full", "full", "triu"}
"""What makes the zeros of a token that reads nothing, and the -inf of a causal mask."""
ARITHMETIC_ON_SIZES = {"mul", "floordiv", "add", "getitem"}


def exported(network: Network):
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(4, 3, 2)))
    module = network.module()
    return module, torch.export.export(module, (x,), dynamic_shapes=({0: torch.export.Dim("batch", min=1)},))


@pytest.mark.parametrize("name", table.names("layer", "float64"))
def test_the_graph_is_in_the_grammar_and_gives_the_same_numbers(name):
    module, program = exported(table.network(name))
    for node in program.graph.nodes:
        if node.op != "call_function":
            assert node.op in ("placeholder", "output", "get_attr")
        elif isinstance(node.target, torch._ops.OpOverload):
            operation = node.target._schema.name.removeprefix("aten::").rstrip("_")
            assert operation in LINEAR | SOFTMAX | SHAPE | CONSTANT | {
                "_assert_scalar",
                "sym_constrain_range",
            }, node
        else:
            assert node.target.__name__ in ARITHMETIC_ON_SIZES, node
            assert not isinstance(node.meta.get("val"), torch.Tensor) or node.target.__name__ == "getitem"
    runs = program.module()
    for batch in (1, 7, 100):
        x = torch.from_numpy(np.random.default_rng(batch).normal(size=(batch, 3, 2)))
        with torch.no_grad():
            assert torch.allclose(runs(x), module(x), rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", table.names("layer", "float64"))
def test_every_weight_is_in_the_state_dict(name):
    network = table.network(name)
    state = network.module().state_dict()
    weights = sum(tensor.numel() for tensor in state.values() if tensor.is_floating_point())
    assert weights == network.parameters
    assert {str(t.dtype) for t in state.values() if t.is_floating_point()} == {"torch.float64"}


@pytest.mark.parametrize("name", table.names("layer", "float64"))
def test_two_modules_share_nothing(name):
    network = table.network(name)
    first, second = network.module(), network.module()
    x = torch.zeros(1, 3, 2, dtype=torch.float64)
    y = network(x)
    with torch.no_grad():
        for parameter in first.parameters():
            parameter.zero_()
    assert torch.equal(second(x), network.module()(x))
    assert torch.equal(network(x), y)


@pytest.mark.parametrize("name", table.names("layer", "float64", without=("constant",)))
def test_gradients_reach_the_input_and_the_weights_and_are_right(name):
    module = table.network(name).module()
    x = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(2, 3, 2).requires_grad_()
    live = [p for p, g in zip(module.parameters(), grads(module, x), strict=True) if g is not None]
    assert len(live) >= 2
    assert torch.autograd.gradcheck(lambda x, *_: module(x), (x, *live), fast_mode=True)


def grads(module, x):
    return torch.autograd.grad(module(x).square().sum(), list(module.parameters()), allow_unused=True)


def test_weights_that_are_read_have_gradients():
    module = table.network("repeat (float64)").module()
    x = torch.ones(2, 3, 2, dtype=torch.float64)
    assert all(g is not None and torch.isfinite(g).all() for g in grads(module, x))
