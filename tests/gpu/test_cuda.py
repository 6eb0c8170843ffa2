"""On a GPU, networks keep to the bounds that are proven for their dtype. Skipped without one."""

import numpy as np
import pytest
import torch

import anchorhead as ah
from anchorhead.language.forms import ramp_of

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [{"anchors": 1000}, {"heads": 8}])
def test_a_network_on_the_gpu_is_within_its_bound(size, dtype):
    rng = np.random.default_rng(0)
    network = ah.truncated_linear(
        rng.normal(size=(50, 10)), rng.normal(size=50), -1, 1, on=(-1, 1), dtype=dtype, **size
    )
    target = ramp_of(network.program)
    x = rng.uniform(-1, 1, (2000, 50, 10)).astype(dtype)
    y = network.module().to("cuda")(torch.from_numpy(x).cuda())
    assert np.abs(y.detach().cpu().numpy() - target.values(x)).max() <= network.certificate.bound
    assert torch.equal(network(torch.from_numpy(x).cuda()).cpu(), network(torch.from_numpy(x).cuda()).cpu())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_head_on_the_gpu_is_within_its_bound(dtype):
    head = ah.head("relu", on=(-1, 1), within=1e-4, dtype=dtype)
    s = torch.cat([torch.linspace(-1, 1, 100_001), torch.logspace(-12, 0, 10_000), -torch.logspace(-12, 0, 10_000)])
    s = s.to(getattr(torch, dtype))
    error = head(s.cuda()).cpu().double() - torch.relu(s.double())
    assert float(error.abs().max()) <= head.certificate.bound


@pytest.mark.parametrize("activation", [torch.nn.ReLU, torch.nn.GELU, torch.nn.Tanh])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_converted_network_on_the_gpu_is_within_its_bound_directly(activation, dtype):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(10, 256), activation(), torch.nn.Linear(256, 1)).double()
    network = ah.convert(model, on=(-1, 1), within=1e-2 if dtype == "float32" else 1e-6, dtype=dtype)
    assert "direct" in network.certificate.evaluations
    x = torch.rand(20_000, 10, dtype=torch.float64).mul(2).sub(1).to(getattr(torch, dtype))
    with torch.no_grad():
        error = network(x.cuda()).cpu().double() - model(x.double())
    assert float(error.abs().max()) <= network.certificate.bound


@pytest.mark.parametrize("activation", [torch.nn.ReLU, torch.nn.GELU, torch.nn.Sigmoid])
def test_calls_of_as_many_rows_are_recorded_and_stay_within_the_bound(activation):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 256), activation(), torch.nn.Linear(256, 2)).double()
    network = ah.convert(model, on=(-1, 1), within=1e-6)
    model.cuda()
    streams = [torch.cuda.current_stream(), torch.cuda.Stream()]
    for _ in range(6):
        for stream in streams:
            with torch.cuda.stream(stream), torch.no_grad():
                x = torch.rand(1_000, 4, dtype=torch.float64, device="cuda").mul(2).sub(1)
                error = network(x) - model(x)
                assert float(error.abs().max()) <= network.certificate.bound
    direct = network._calls.direct(x.device)
    assert direct is not None
    assert [work.run.graph is not None for work in direct.known.work.values()] == [True, True]


def test_inputs_outside_of_the_box_are_noticed_on_the_gpu():
    network = ah.approximate("sin(3*x)", on=(-1, 1), within=1e-6)
    with pytest.warns(ah.OutsideWarning):
        network(torch.tensor([[0.5], [1.5]], dtype=torch.float64, device="cuda"))
