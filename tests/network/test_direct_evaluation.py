"""Networks without an axis of keys: the same values within what is proven, and the attention itself on request."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from flint import arb
from safetensors import safe_open
from safetensors.numpy import save_file
from torch import nn

import anchorhead as ah
from anchorhead.convert import KernelSmoother
from anchorhead.errors import AnchorheadError, CertificateError, OutsideWarning
from anchorhead.language.expressions.precision import precision
from anchorhead.network.direct import DirectModule, saturated, steps
from anchorhead.network.direct.heads import SeriesHead, SoftmaxHead
from anchorhead.network.direct.plans import AffinePlan, HeadsPlan, in_torch

ACTIVATIONS = {"relu": nn.ReLU(), "leaky": nn.LeakyReLU(), "relu6": nn.ReLU6(), "hardtanh": nn.Hardtanh()}
WITHIN = {"float64": 1e-9, "float32": 1e-2}
_made: dict[tuple, tuple[nn.Module, ah.Network]] = {}


def converted(name: str = "relu", dtype: str = "float64", **options) -> tuple[nn.Module, ah.Network]:
    """A network of 5 inputs, 40 neurons and 2 outputs, and what it becomes."""
    options = {"within": WITHIN[dtype], **options}
    key = name, dtype, *options.items()
    if key not in _made:
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(5, 40), ACTIVATIONS.get(name) or nn.GELU(), nn.Linear(40, 2)).double()
        _made[key] = model, ah.convert(model, on=(-1, 1), dtype=dtype, **options)
    return _made[key]


def heads(network: ah.Network) -> list[tuple]:
    """The anchors of every head that is computed by a clipped series, that series, and some t that it covers."""
    known = network.derivation
    assert known is not None
    found = []
    for row in known.data["series"]:
        keys = tuple(np.array(row[name]) for name in ("slopes", "offsets", "values"))
        series = saturated(*keys, network.dtype)
        if series is not None:
            found.append((keys, series, (series.origin - series.reach, series.origin + series.reach)))
    return found


def mean(keys: tuple, t: float) -> arb:
    """sum v e^(a t + g) / sum e^(a t + g), in balls."""
    logits = [arb(float(a)) * arb(t) + arb(float(g)) for a, g in zip(*keys[:2], strict=True)]
    top = max(logits, key=lambda z: float(z.mid()))
    weights = [(z - top).exp() for z in logits]
    return sum((arb(float(v)) * w for v, w in zip(keys[2], weights, strict=True)), arb(0)) / sum(weights, arb(0))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["relu", "relu6", "hardtanh", "leaky"])
def test_series_err_by_no_more_than_they_say_near_crossings_and_far_from_them(name: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    found = heads(converted(name, dtype)[1])
    assert found or (name, dtype) == ("leaky", "float32")
    for keys, series, (low, high) in found:
        places = [rng.uniform(low, high, 200), [low, high, series.origin, 0.0]]
        for end in (series.low, series.high):
            if np.isfinite(end):
                off = np.concatenate([np.geomspace(1e-9, 50, 150), np.linspace(0.1, 10, 60)]) / np.ptp(keys[0])
                places += [end + off, end - off]
        t = np.concatenate(places).astype(dtype)
        q = torch.from_numpy(t.copy())
        head = SeriesHead(series, dtype)
        for operation in head.operations(q, q.new_empty(head.scratch(len(q)))):
            operation()
        with precision(300):
            for at, one in zip(t.tolist(), q.tolist(), strict=True):
                off = abs(arb(series.scale) * arb(one) + arb(series.shift) - mean(keys, at))
                assert off.upper() <= arb(series.error), (at, off)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_heads_that_turn_too_slowly_have_no_series(dtype: str) -> None:
    """Clipping loses about 0.28 of what the line rises by over one unit of the logit that turns: a fraction of what the
    softmax's rounding is, or there is no series."""
    (slopes, offsets, values), series, _ = heads(converted("relu", dtype)[1])[0]
    unit, lost = np.finfo(dtype).eps / 2, 0.2785 * series.scale / (slopes[1] - slopes[0])
    assert 0.25 < lost / (unit * np.abs(values).max()) < 0.3
    with precision(300):
        t = 1.2785 / float(slopes[1] - slopes[0])  # where x sigmoid(-x) is largest
        clipped = arb(series.scale) * (arb(t) - arb(series.origin)) + arb(series.shift)
        assert abs(clipped - mean((slopes, offsets, values), t)) > 0.2 * unit * np.abs(values).max()
    for steep, has in ((1.0, True), (2.0, True), (0.1, True), (0.03, False), (0.01, False)):
        other = np.array([steep * slopes[0], *slopes[1:]]), offsets, values
        assert (saturated(*other, dtype) is not None) == has


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("layout", ["transformer", "sequence"])
@pytest.mark.parametrize("name", [*ACTIVATIONS, "gelu", "softmax"])
def test_values_are_within_the_bound_at_kinks_too(name: str, layout: str, dtype: str) -> None:
    form = "attention-softmax" if name == "softmax" else "two-layer"
    within = 1e-2 if dtype == "float32" else 1e-6
    model, network = converted("relu" if name == "softmax" else name, dtype, layout=layout, form=form, within=within)
    assert network.certificate is not None
    assert network.certificate.evaluations == ("plain", "direct")
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, (300, 5)).astype(dtype)
    weight, bias = (one.detach().numpy() for one in model[0].parameters())
    for row in range(0, 300, 2):  # moved along a neuron's weights to where it is 0
        w, b = weight[row % 40], bias[row % 40]
        x[row] = np.clip(x[row] - (w @ x[row] + b) / (w @ w) * w, -1, 1).astype(dtype)
    exact = model(torch.from_numpy(x).double()).detach().numpy()
    assert np.abs(network(x, evaluation="direct") - exact).max() <= network.certificate.bound
    assert np.abs(network(x, evaluation="plain") - exact).max() <= network.certificate.bound


def test_plain_is_the_attention_itself() -> None:
    network = converted()[1]
    x = torch.rand(50, 5, dtype=torch.float64)
    assert network.certificate is not None
    off = (network(x, evaluation="plain") - network.module()(x).detach()).abs().max()
    assert off <= network.certificate.bound
    assert len(network.attention(x)) == 2
    assert torch.equal(network(x), network(x, evaluation="direct"))


def test_rows_do_not_depend_on_each_other() -> None:
    network = converted()[1]
    x = torch.rand(700, 5, dtype=torch.float64) * 2 - 1
    together = network(x)
    for row in (0, 350, 699):
        assert torch.allclose(network(x[row : row + 1]), together[row], rtol=0, atol=1e-14)
    assert network(x.reshape(7, 100, 5)).shape == (7, 100, 2)
    assert network(np.zeros((0, 5))).shape == (0, 2)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_networks_that_share_arrays_do_not_disturb_each_other(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one thread and of several at once; arrays grow, and many rows are worked through in blocks."""
    networks = [converted(name, dtype)[1] for name in ("relu", "leaky", "relu6", "gelu")]
    inputs = [torch.rand(rows, 5, dtype=getattr(torch, dtype)) * 2 - 1 for rows in (3, 2000, 1, 700, 3, 0)]
    plain = [[network(x, evaluation="plain") for x in inputs] for network in networks]
    monkeypatch.setattr(steps, "BLOCK", 40 * 500)
    monkeypatch.setattr(steps, "MAX_KNOWN", 3)

    def run(_: int) -> None:
        for _ in range(3):
            found = [[network(x) for x in inputs] for network in networks]
            for network, ours, theirs in zip(networks, found, plain, strict=True):
                assert network.certificate is not None
                for one, other in zip(ours, theirs, strict=True):
                    assert torch.allclose(one, other, rtol=0, atol=2 * network.certificate.bound)

    run(0)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(run, range(8)))


def test_gradients_are_those_of_the_attention() -> None:
    network = converted()[1]
    x = torch.rand(20, 5, dtype=torch.float64, requires_grad=True)
    y = network(x)
    assert torch.equal(y.detach(), network(x.detach()))
    (ours,) = torch.autograd.grad(y.pow(2).sum(), x, create_graph=True)
    (plain,) = torch.autograd.grad(network(x, evaluation="plain").pow(2).sum(), x)
    assert torch.allclose(ours, plain, rtol=1e-7)
    torch.autograd.grad(ours.sum(), x)  # a second derivative


def test_what_is_not_covered_is_computed_as_it_is_written() -> None:
    network = converted()[1]
    far = np.full((3, 5), 1.5)
    with pytest.warns(OutsideWarning):
        assert np.array_equal(network(far), network(far, evaluation="plain", outside="ignore"))
    head = ah.head("relu", on=(-1, 1), within=1e-3).network
    assert head.certificate is not None
    assert head.certificate.evaluations == ("plain",)
    with pytest.raises(AnchorheadError, match="covers plain"):
        head(np.zeros((1, 1, 1)), evaluation="direct")
    with pytest.raises(AnchorheadError, match="'plain', 'direct'"):
        network(np.zeros((1, 5)), evaluation="fast")


def test_a_certificate_that_covers_more_than_follows_is_refused() -> None:
    network = ah.convert(KernelSmoother(np.eye(2), np.array([0.0, 1.0]), 0.7), on=(-1, 1))
    assert network.certificate is not None
    claimed = network.with_(certificate=replace(network.certificate, evaluations=("plain", "direct")))
    with pytest.raises(CertificateError, match="no other evaluation"):
        ah.check(claimed, progress=False)


def test_files_of_before_are_read_and_run_as_they_are_written(tmp_path) -> None:
    network = converted()[1]
    network.save(tmp_path / "now.safetensors")
    assert ah.load(tmp_path / "now.safetensors").certificate == network.certificate
    with safe_open(tmp_path / "now.safetensors", "np") as file:
        words, arrays = dict(file.metadata()), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    (name,) = (key for key, text in words.items() if '"evaluations"' in text)
    data = json.loads(words[name])
    del data["certificate"]["evaluations"]
    save_file(arrays, tmp_path / "before.safetensors", {**words, name: json.dumps(data)})
    before = ah.load(tmp_path / "before.safetensors")
    assert before.certificate is not None
    assert before.certificate.evaluations == ("plain",)
    x = np.random.default_rng(0).uniform(-1, 1, (9, 5))
    assert np.array_equal(before(x), network(x, evaluation="plain"))
    ah.check(before, progress=False)


@pytest.mark.slow_for("float32-sequence", "float64-transformer", "float64-sequence")
@pytest.mark.parametrize("layout", ["transformer", "sequence"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_layers_upon_layers_are_within_the_bound(dtype: str, layout: str) -> None:
    torch.manual_seed(3)
    sizes = [
        nn.Linear(4, 30),
        nn.ReLU(),
        nn.Linear(30, 20),
        nn.LeakyReLU(),
        nn.Linear(20, 10),
        nn.Tanh(),
        nn.Linear(10, 3),
    ]
    model = nn.Sequential(*sizes).double()
    network = ah.convert(model, on=(-1, 1), within={"float64": 1e-6, "float32": 0.1}[dtype], dtype=dtype, layout=layout)
    assert network.certificate is not None
    assert network.certificate.evaluations == ("plain", "direct")
    x = np.random.default_rng(0).uniform(-1, 1, (2000, 4)).astype(dtype)
    exact = model(torch.from_numpy(x).double()).detach().numpy()
    assert np.abs(network(x) - exact).max() <= network.certificate.bound
    assert ah.check(network, progress=False).stated == network.certificate.bound


@pytest.mark.parametrize("form", ["two-layer", "attention-softmax"])
@pytest.mark.parametrize("layout", ["transformer", "sequence"])
def test_what_two_heads_of_a_neuron_ask_with_is_summed_once(layout: str, form: str) -> None:
    """Summed for each, in an order of its own, it would be two numbers, and proofs know one."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 12), nn.Hardswish(), nn.Linear(12, 2)).double()
    network = ah.convert(model, on=(-1, 1), within=1e-6, layout=layout, form=form)
    direct = network._calls.direct(torch.device("cpu"))
    assert direct is not None
    sums, neurons = direct.steps[:2]
    assert isinstance(sums, steps.Affine)
    assert isinstance(neurons, steps.Neurons)
    assert sums.width == 12
    assert [type(group.before) for group in neurons.groups] == [steps.Picked, steps.Picked]
    assert all(isinstance(group.head, SoftmaxHead) for group in neurons.groups)


@pytest.mark.parametrize("form", ["two-layer", "attention-softmax", "deep"])
def test_sums_that_are_multiples_of_one_another_do_not_underflow(form: str) -> None:
    """Two neurons, one 2^-126 times the other: as multiples of the first, whose products are no normal numbers, the
    sum of the second would be wrong in its first digits."""
    inputs, most = 256, 2.0**-44
    w = torch.tensor(np.random.default_rng(0).uniform(1, 1.9, inputs), dtype=torch.float32)
    first, second = nn.Linear(inputs, 2), nn.Linear(2, 1)
    with torch.no_grad():
        first.weight[:], second.weight[:] = torch.stack([w * 2.0**-126, w]), torch.tensor([[1.0, 1 / (most * inputs)]])
        first.bias.zero_()
        second.bias.zero_()
    within = {"two-layer": 0.18, "attention-softmax": 0.5, "deep": 0.18}[form]
    network = ah.convert(nn.Sequential(first, nn.ReLU(), second), on=(-most, most), within=within, form=form)
    assert network.certificate is not None
    assert "direct" in network.certificate.evaluations
    found = float(network(torch.full((1, inputs), most)))
    assert abs(found - float(w.double().sum()) / inputs) <= network.certificate.bound


@pytest.mark.parametrize("times", [1.0, -1.0, 2.0, -0.25, 3.0])
def test_sums_that_differ_by_powers_of_two_are_one(times: float) -> None:
    """Heads of other keys ask with so many times a sum; three times as much is another sum."""
    slopes, offsets, values, cpu = np.array([-1.0, 1.0]), np.zeros(2), np.array([-1.0, 1.0]), torch.device("cpu")
    row, bias = np.array([[0.3, -0.7, 0.1]]), np.array([0.2])
    asks = AffinePlan(row, bias), AffinePlan(times * row, times * bias)
    plan = HeadsPlan(((asks[0], (slopes, offsets, values)), (asks[1], (2 * slopes, offsets, values))))
    first, *rest = in_torch([plan], "float64", cpu, lambda *_: None)
    module = DirectModule((first, *rest), steps.Outputs(np.array([[0, 1]]), np.ones((1, 2)), 2, "float64", cpu))
    assert isinstance(first, steps.Neurons if times == 3 else steps.Affine)
    x = torch.tensor([[0.5, -0.2, 0.9]], dtype=torch.float64)
    t = x.numpy() @ row.T + bias
    assert np.allclose(module(x).numpy(), np.tanh(np.concatenate([t, 2 * times * t], 1)), atol=1e-14)


def dead(form: str, layout: str, dtype: str, neurons: tuple[int, ...], least: float) -> tuple[nn.Module, ah.Network]:
    """A network of which no input moves some neurons, and what it becomes."""
    torch.manual_seed(2)
    model = nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 2)).double()
    first: Any = model[0]
    with torch.no_grad():
        first.weight[list(neurons)] = 0.0
        first.bias[list(neurons)] = torch.linspace(least, 0.7, len(neurons)).double()
    return model, ah.convert(model, on=(-1, 1), within=WITHIN[dtype], form=form, layout=layout, dtype=dtype)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("layout", ["transformer", "sequence"])
@pytest.mark.parametrize("form", ["two-layer", "attention-softmax", "deep"])
def test_a_neuron_that_no_input_moves_is_no_head(form: str, layout: str, dtype: str) -> None:
    """It is a constant of the map behind it: nothing errs by it, and all else is computed directly."""
    model, network = dead(form, layout, dtype, (2, 4), -0.3)
    certificate = network.certificate
    assert certificate is not None
    assert certificate.evaluations == ("plain", "direct")
    x = np.random.default_rng(0).uniform(-1, 1, (50, 3)).astype(dtype)
    exact = model(torch.tensor(x).double()).detach().numpy()
    for evaluation in certificate.evaluations:
        assert np.abs(network(x, evaluation=evaluation) - exact).max() <= certificate.bound
    assert ah.check(network, progress=False).stated == certificate.bound
    known = network.derivation
    assert known is not None
    assert sum(entry.heads for entry in known.entries if entry.lemma == "scalar head") == 4


@pytest.mark.parametrize("form", ["two-layer", "deep"])
def test_a_layer_that_no_input_moves_is_computed_as_it_is_written(form: str) -> None:
    """A certificate's "direct" speaks of heads on numbers that inputs move: of others no series is counted."""
    model, network = dead(form, "transformer", "float64", tuple(range(6)), 0.3)
    assert network.certificate is not None
    assert network.certificate.evaluations == ("plain",)
    x = np.random.default_rng(0).uniform(-1, 1, (50, 3))
    exact = model(torch.tensor(x)).detach().numpy()
    assert np.abs(network(x) - exact).max() <= network.certificate.bound
    assert ah.check(network, progress=False).stated == network.certificate.bound
