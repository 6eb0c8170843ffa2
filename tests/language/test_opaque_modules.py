"""Torch modules as targets: they are fed the dtype of their own parameters."""

import pytest
import torch

import anchorhead as ah
from anchorhead.language.targets.opaque import CallableTarget


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_module_of_two_inputs_is_approximated_in_its_own_dtype(dtype):
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).to(dtype)
    net = ah.approximate(module, on={"x": (-1, 1), "y": (-1, 1)}, within=1e-3)
    x = torch.rand(500, 2, dtype=dtype) * 2 - 1
    with torch.no_grad():
        truth = module(x).double().numpy()
    assert abs(net(x.double().numpy()) - truth).max() <= 1e-3


class _Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.factor = torch.nn.Parameter(torch.tensor(1.5))

    def forward(self, x):
        return torch.tanh(self.factor * x)


def test_the_steps_of_float32_are_not_taken_for_jumps_of_a_module_of_one_input():
    assert CallableTarget(_Scaled(), -1.0, 1.0).kinks == ()


@pytest.mark.parametrize("on", [{"x": (-1, 1)}, {"x": (-1, 1), "y": (-1, 1)}])
def test_nothing_is_proven_from_values_that_float32_has_rounded(on):
    with pytest.raises(ah.AnchorheadError, match=r"computes in torch\.float32.*module\.double\(\)"):
        ah.approximate(_Scaled(), on=on, within=1e-2, lipschitz=2.0)
