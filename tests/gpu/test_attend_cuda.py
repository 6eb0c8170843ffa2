"""On a GPU, heads with their own key keep to the rounding that is proven for them. Skipped without one."""

import numpy as np
import pytest
import torch

from anchorhead.constructions.single.self_key_head import self_key_head
from anchorhead.convert.attention_only.attend import GateAttention, SelfKeyAttention
from anchorhead.convert.attention_only.heads import numbers_of
from anchorhead.heads.self_keys.gate import GateHead, GatePart

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]
PATHS = ("triton", "auto", "plain", "direct")


def points(dtype: torch.dtype) -> torch.Tensor:
    torch.manual_seed(0)
    sizes = 10.0 ** (50 * torch.rand(10_000, dtype=torch.float64) - 25)
    s = torch.cat([torch.randn(300_001, dtype=torch.float64) * 5, sizes, -sizes, torch.zeros(1)])
    return s[s.abs() < torch.finfo(dtype).max].to(dtype)


@pytest.mark.parametrize("name", ["silu", "relu", "leaky_relu", "tanh", "gelu"])
@pytest.mark.parametrize("path", PATHS)
def test_a_head_in_float32_is_within_its_rounding(name, path):
    head, s = self_key_head(name, 1e-3, "float32"), points(torch.float32)
    r = SelfKeyAttention(numbers_of(head), path).cuda()(s.cuda()).cpu().double().numpy()
    size = np.maximum(1, np.abs(s.double().numpy()))
    assert (np.abs(r - head(s.numpy())) <= (head.rounding + 1e-15) * size).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("path", PATHS)
def test_half_precision_rounds_the_result_alone(dtype, path):
    head, s = self_key_head("gelu", 1e-3, "float32"), points(dtype)
    r = SelfKeyAttention(numbers_of(head), path).to("cuda", dtype)(s.cuda()).cpu().double().numpy()
    size = np.maximum(1, np.abs(s.double().numpy()))
    assert (np.abs(r - head(s.double().numpy())) <= (0.5001 * torch.finfo(dtype).eps + 1e-5) * size).all()


@pytest.mark.parametrize("path", PATHS)
def test_a_gate_agrees_with_its_formula(path):
    def part(slopes, offsets, factor):
        return GatePart(np.array(slopes, "float32"), np.array(offsets, "float32"), factor)

    parts = (part([-1.0, -3.5], [0.25, -1.5], 2.0), part([1.5], [-0.125], -0.5))
    head = GateHead("made", parts, -50.0, 50.0, "float32", np.inf, np.inf)
    g, u = torch.randn(2, 100_003) * 5
    r = GateAttention(numbers_of(head), path).cuda()(g.cuda(), u.cuda()).cpu().double()
    exact = torch.from_numpy(head(g.numpy())) * u.double()
    assert ((r - exact).abs() <= 2e-5 * u.double().abs()).all()


def test_gradients_through_the_kernel():
    module = SelfKeyAttention(numbers_of(self_key_head("gelu", 1e-3, "float32")), "triton").cuda()
    s = torch.linspace(-6, 6, 10_001, device="cuda", requires_grad=True)
    (slope,) = torch.autograd.grad(module(s).sum(), s)
    t = s.detach().clone().requires_grad_()
    (exact,) = torch.autograd.grad(torch.nn.functional.gelu(t).sum(), t)
    assert float((slope - exact).abs().max()) < 1e-2
