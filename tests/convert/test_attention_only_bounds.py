"""Layer bounds hold for everything that the norm in front can put out, without tolerance."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from attention_only_models import small
from torch import nn
from transformers.activations import ACT2FN

import anchorhead as ah
from anchorhead.convert.attention_only.families import Map, feed_forward_sublayers
from anchorhead.convert.attention_only.ranges import norm_of, range_of
from anchorhead.convert.attention_only.samples import layer_error
from anchorhead.heads.arithmetic import FLOAT32, FLOAT64
from anchorhead.proof.arithmetic.norm_image import NormSources, largest_singular_value
from anchorhead.terms import added_up

FAMILIES = ["bert", "gpt2", "opt, norm after", "whisper", "llama", "gemma2"]


def hats(sublayer, kind, count=300):
    """What goes into the norm: random vectors of all sizes, single spikes, neurons' own rows, nearly constant ones."""
    rng = torch.Generator().manual_seed(3)
    width = sublayer.up.weight.shape[1]
    x = torch.randn(count, width, generator=rng, dtype=torch.float64)
    x[: count // 4] *= torch.logspace(-6, 6, count // 4, dtype=torch.float64)[:, None]
    x[count // 4 : count // 2] = 1e-3 * x[count // 4 : count // 2]
    x[torch.arange(count // 4, count // 2), torch.arange(count // 4) % width] += 50.0
    rows = torch.cat([one.weight for one in sublayer.maps[:-1]]).double()
    picked = rows[torch.randint(len(rows), (count // 4,), generator=rng)]
    x[count // 2 : count // 2 + count // 4] = (
        picked * torch.where(torch.arange(count // 4) % 2 == 0, 3.0, -3.0)[:, None]
    )
    x[-20:] = 1.0 + 1e-3 * x[-20:]
    return x.to(kind)


def pre_activations(sublayer, z):
    return [
        (z.double() @ one.weight.double().T + (0 if one.bias is None else one.bias.double()))
        for one in sublayer.maps[:-1]
    ]


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", FAMILIES)
def test_ranges_and_bounds_hold_for_what_the_norm_puts_out(name, kind):
    model = small(name, kind)
    sublayers = feed_forward_sublayers(model)
    gated = sublayers[0].gate is not None
    converted, report = ah.attention_only(model, within=1e-5 if kind == torch.float32 else 1e-6 if gated else 1e-10)
    assert report.kind == "proven"
    arithmetic = FLOAT32 if kind == torch.float32 else FLOAT64
    for sublayer, layer in zip(sublayers, report.layers, strict=True):
        with torch.no_grad():
            z = sublayer.norm(hats(sublayer, kind))
        sources = NormSources.of(norm_of(sublayer.norm, sublayer.gain, z.shape[1], arithmetic))
        pre = pre_activations(sublayer, z)
        for linear, s in zip(sublayer.maps[:-1], pre, strict=True):
            found = range_of(linear, sources, arithmetic)
            assert (np.abs(s.detach().numpy()) <= found.magnitude).all()
            assert found.low <= s.min()
            assert s.max() <= found.high
            assert s.norm(dim=1).max() <= found.length
            computed = nn.functional.linear(z, linear.weight, linear.bias).double()
            assert ((computed - s).abs().detach().numpy() <= found.error).all()
        assert layer.low <= pre[0].min()
        assert pre[0].max() <= layer.high
        module = converted.base_model.get_submodule(sublayer.place)
        error = layer_error(sublayer, getattr(module, "heads", module), z.double())
        assert error <= layer.certificate.bound
        assert layer.measured <= layer.certificate.bound
        assert layer.certificate.bound >= added_up(layer.certificate.terms) * (1 - 1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_what_a_certificate_is_for_is_what_the_norm_puts_out(name):
    model = small(name, torch.float32)
    sublayers = feed_forward_sublayers(model)
    _, report = ah.attention_only(model, within=1e-4)
    for sublayer, layer in zip(sublayers, report.layers, strict=True):
        (image,) = layer.certificate.conditions
        with torch.no_grad():
            z = sublayer.norm(hats(sublayer, torch.float32)).double().numpy()
        assert image.holds(z).all()
        assert layer.certificate.on.contains(z).all()
        assert not image.holds(layer.certificate.on.high)
        assert "image of the" in str(layer.certificate)


@pytest.mark.slow
def test_a_point_of_the_box_that_no_norm_puts_out_is_not_covered_and_a_layer_says_so():
    """Squares of pre-activations beyond the norm's reach: the error there is far beyond what is proven."""
    model = small("bert", torch.float64)
    torch.manual_seed(0)
    for module in model.modules():
        if type(module).__name__ == "BertIntermediate":
            module.intermediate_act_fn = ACT2FN["relu2"]
    converted, report = ah.attention_only(model, within=1e-6)
    certificate, network = report.layers[0].certificate, ah.LayerNetworks(converted, report)[0]
    up = network.program.steps[1].terms[0].weight
    signs = np.sign(up[np.abs(up).sum(axis=1).argmax()])
    corner = np.where(signs > 0, certificate.on.high, certificate.on.low)[None]
    error = np.abs(network(corner, outside="ignore") - network.program(corner)).max()
    assert error > network.certificate.bound
    with pytest.warns(ah.OutsideWarning, match="1 of 1 tokens are none that the LayerNorm in front"):
        network(corner)
    with pytest.raises(ah.AnchorheadError, match="nothing is proven"):
        network(corner, outside="raise")


def test_a_neuron_driven_to_the_end_of_its_range_gets_there():
    """The range is not loose: behind LayerNorm a neuron's own row reaches it, less the slack."""
    sublayer = feed_forward_sublayers(small("bert", torch.float64))[0]
    sources = NormSources.of(norm_of(sublayer.norm, 0.0, 32, FLOAT64))
    found = range_of(sublayer.up, sources, FLOAT64)
    weight, bias = (one.detach().numpy() for one in (sublayer.up.weight, sublayer.up.bias))
    rows = weight * sources.scale
    x = rows - rows.mean(axis=1, keepdims=True)
    away = sources.scale * x / np.sqrt(np.square(x).mean(axis=1, keepdims=True))
    centre = weight @ sources.shift + bias
    s = centre + np.sign(centre) * (away * weight).sum(axis=1)
    assert (np.abs(s) <= found.magnitude).all()
    assert ((np.abs(s) - np.abs(centre)) / (found.magnitude - np.abs(centre)) > 0.997).all()


def test_an_optimiser_finds_no_larger_error():
    """Climbs the error of single outputs over what LayerNorm puts out."""
    model = small("bert", torch.float64)
    sublayer = feed_forward_sublayers(model)[0]
    converted, report = ah.attention_only(model, within=1e-6)
    heads = converted.base_model.get_submodule(sublayer.place)
    x = torch.randn(64, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    climb = torch.optim.Adam([x], lr=0.1)
    worst = 0.0
    for _ in range(60):
        s = sublayer.norm(x) @ sublayer.up.weight.T + sublayer.up.bias
        error = ((heads(s) - sublayer.activation(s)) @ sublayer.down.weight.T).abs().amax(dim=1)
        worst = max(worst, float(error.detach().max()))
        climb.zero_grad()
        (-error.sum()).backward()
        climb.step()
    assert 0 < worst <= report.layers[0].certificate.bound
    assert report.layers[0].certificate.bound <= 1000 * worst


@pytest.mark.parametrize("shape", [(40, 7), (7, 40), (1, 1), (30, 30)])
def test_the_largest_singular_value_is_bounded_closely(shape):
    a = np.random.default_rng(5).normal(size=shape)
    exact = float(np.linalg.svd(a, compute_uv=False)[0])
    assert exact <= largest_singular_value(a.T @ a) <= 1.3 * exact
    assert largest_singular_value(np.zeros((3, 3))) == 0.0


def test_a_map_without_bias_and_a_norm_without_weights_have_a_range():
    sources = NormSources.of(norm_of(nn.LayerNorm(8, elementwise_affine=False), 0.0, 8, FLOAT32))
    found = range_of(Map(torch.eye(8), None), sources, FLOAT32)
    assert np.allclose(found.magnitude, 7**0.5 * np.ones(8), rtol=4e-3)
    assert (found.magnitude >= 7**0.5).all()


def test_the_report_is_a_table_and_plain_json():
    _, report = ah.attention_only(small("llama"), within=1e-5)
    text = str(report)
    assert "LlamaForCausalLM" in text
    assert "48 silu" in text
    assert "layers.1" in text
    data = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert [layer["neurons"] for layer in data["layers"]] == [48, 48]
    assert ah.Certificate.from_json(data["layers"][0]["certificate"]).bound == report.layers[0].certificate.bound
    assert data["changes"][0]["largest"] == report.changes[0].largest
    first = report.layers[0]
    assert first.before == 3 * 32 * 48 + 2 * 48 + 32
    assert first.before < first.after <= first.before + 4 * first.anchors


QUICK = ["gelu_fast", "quick_gelu", "relu", "relu6", "leaky_relu", "tanh", "sigmoid", "silu", "linear", "mish"]
SOLVED = ["hardswish", "laplace", "relu2", "gelu_10"]


@pytest.mark.parametrize("act", [*QUICK, *(pytest.param(one, marks=pytest.mark.slow) for one in SOLVED)])
def test_named_activations_have_heads_and_layers_keep_their_bounds(act):
    model = small("bert", torch.float64)
    for layer in model.encoder.layer:
        layer.intermediate.intermediate_act_fn = ACT2FN[act]
    sublayers = feed_forward_sublayers(model)
    converted, report = ah.attention_only(model, within=1e-6)
    for sublayer, layer in zip(sublayers, report.layers, strict=True):
        assert layer.relative <= 1e-6
        with torch.no_grad():
            z = sublayer.norm(hats(sublayer, torch.float64))
        heads = converted.base_model.get_submodule(sublayer.place)
        assert layer_error(sublayer, heads, z) <= layer.certificate.bound
    assert report.changes[0].largest <= 1e-4


def test_gated_values_that_overflow_once_multiplied_are_refused():
    """factor u of a head may be infinite where phi(g) u is not: such a layer has no bound."""
    model = small("llama", torch.float32)
    with torch.no_grad():
        for module in model.modules():
            if type(module).__name__ == "LlamaMLP":
                module.up_proj.weight.mul_(1e36)
                module.down_proj.weight.mul_(1e-36)
    with pytest.raises(ah.AnchorheadError, match="more than float32 holds"):
        ah.attention_only(model, within=1e-4)
