"""Every family of transformers models becomes attention only: the same outputs, the same generated tokens."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest
import torch
from attention_only_models import GENERATING, MODELS, RMS, small

import anchorhead as ah
from anchorhead.convert.attention_only.activations import is_activation
from anchorhead.convert.attention_only.samples import random_inputs
from anchorhead.errors import AnchorheadError


def logits(model, inputs):
    with torch.no_grad():
        found = model(**inputs)
    return found.logits if "logits" in found else found.last_hidden_state


@pytest.mark.parametrize("name", MODELS)
def test_outputs_are_those_of_the_original_and_the_original_stays_as_it_is(name):
    model = small(name, torch.float64)
    before = copy.deepcopy(model.state_dict())
    inputs = {key: x.double() if x.is_floating_point() else x for key, x in random_inputs(model).items()}
    expected = logits(model, inputs)
    asked = 1e-6 if name in RMS else 1e-11
    converted, report = ah.attention_only(model, within=asked)
    # RMSNorm computes in float32 whatever the dtype: what moves by 1e-12 may be rounded the other way there
    near = 100 * asked
    assert (logits(converted, inputs) - expected).abs().max() <= near
    assert report.changes[0].largest <= near
    assert torch.equal(logits(model, inputs), expected)
    assert all(torch.equal(weight, before[key]) for key, weight in model.state_dict().items())
    assert type(converted).__name__ == type(model).__name__
    assert isinstance(converted, type(model))


@pytest.mark.parametrize("name", MODELS)
def test_no_activation_is_left_in_any_layer(name):
    converted, report = ah.attention_only(small(name), within=1e-4)
    layers = [
        module for label, module in converted.base_model.named_modules() if label in {r.name for r in report.layers}
    ]
    assert len(layers) == len(report.layers) == (4 if name == "whisper" else 2)
    assert not [module for layer in layers for module in layer.modules() if is_activation(module)]
    for label in report.left_alone:
        assert label.startswith(("pooler", "bert.pooler", "lm_head", "classifier"))


@pytest.mark.parametrize("name", ["bert for classes", "opt", "llama", "gemma"])
def test_layers_are_networks_of_the_grammar(name):
    """Written out with queries, keys, values and a mask, each gives the same numbers, within its certificate."""
    converted, report = ah.attention_only(small(name, torch.float64), within=1e-6)
    seen: dict[str, list] = {}
    for label, module in converted.base_model.named_modules():
        if label.endswith(("intermediate.dense", "fc1", "mlp")):
            module.register_forward_hook(lambda m, args, out, key=label: seen.setdefault(key, [args[0]]).append(out))
        if label.endswith(("output.dense", "fc2")) and "attention" not in label:
            module.register_forward_hook(lambda m, args, out, key=label: seen.setdefault(key, []).append(out))
    logits(converted, random_inputs(converted))
    inputs = [values[0] for key, values in seen.items() if key.endswith(("intermediate.dense", "fc1", "mlp"))]
    outputs = [values[-1] for key, values in seen.items() if key.endswith(("output.dense", "fc2", "mlp"))]
    networks = ah.LayerNetworks(converted, report)
    assert len(networks) == len(inputs) == len(outputs) == 2
    for network, layer, z, y in zip(networks, report.layers, inputs, outputs, strict=True):
        z, y = z.reshape(-1, z.shape[-1]).detach(), y.reshape(-1, y.shape[-1])
        found = network(z)
        assert (found - y).abs().max() <= 1e-12 * (1 + y.abs().max())
        exact = network.program(z.numpy())
        error = np.abs(found.numpy() - exact).max()
        assert error <= layer.certificate.bound <= 1.02 * network.certificate.bound <= 8 * layer.certificate.bound
        assert [type(one).__name__ for one in network.layers] == ["Embed", "Attention"]
        assert network.layers[1].mask == "self+registers"
        assert network.certificate.conditions == layer.certificate.conditions
        assert network.certificate.evaluations == ("plain",)
        assert ah.check(network, progress=False).verified


def test_layer_networks_are_kept_in_files_and_need_the_report_of_their_model(tmp_path):
    converted, report = ah.attention_only(small("bert", torch.float64), within=1e-6)
    network = ah.LayerNetworks(converted, report)[0]
    network.save(tmp_path / "layer.safetensors")
    again = ah.load(tmp_path / "layer.safetensors")
    for thing in (network, tmp_path / "layer.safetensors", again):
        assert ah.check(thing, progress=False).stated == network.certificate.bound
    z = torch.randn(3, network.embed.inputs, dtype=torch.float64)
    assert torch.equal(again(z, outside="ignore"), network(z, outside="ignore"))
    with pytest.raises(AnchorheadError, match="was not made by attention_only"):
        ah.LayerNetworks(small("bert"), report)
    with pytest.raises(AnchorheadError, match="report is of another model"):
        ah.LayerNetworks(converted, dataclasses.replace(report, layers=report.layers[:1]))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if place % 3 else []) for place, name in enumerate(GENERATING)]
)
def test_greedy_generation_with_a_cache_gives_the_same_hundred_tokens(name):
    model = small(name, seed=1)
    converted, _ = ah.attention_only(model, within=1e-5)
    prompt = torch.tensor([[5, 17, 40, 8], [61, 3, 77, 23]])
    words = {"max_new_tokens": 100, "min_new_tokens": 100, "do_sample": False, "pad_token_id": 0, "use_cache": True}
    expected = model.generate(prompt, attention_mask=torch.ones_like(prompt), **words)
    found = converted.generate(prompt, attention_mask=torch.ones_like(prompt), **words)
    assert expected.shape == (2, 104)
    assert torch.equal(found, expected)


def test_whisper_hears_and_writes_the_same_tokens():
    model = small("whisper", seed=1)
    converted, _ = ah.attention_only(model, within=1e-5)
    sound = torch.randn(1, 8, 20, generator=torch.Generator().manual_seed(0))
    words = {"max_new_tokens": 100, "min_new_tokens": 100, "do_sample": False}
    expected = model.generate(sound, **words)
    assert expected.shape[1] >= 100
    assert torch.equal(converted.generate(sound, **words), expected)


def test_in_place_the_model_itself_changes():
    model = small("bert")
    converted, _ = ah.attention_only(model, within=1e-4, inplace=True)
    assert converted is model
    with pytest.raises(AnchorheadError, match="attention only already"):
        ah.attention_only(model)


def test_half_precision_is_converted_and_measured():
    model = small("gpt2").to(torch.bfloat16)
    converted, report = ah.attention_only(model, within=1e-5)
    assert report.kind == "measured"
    assert {layer.certificate.kind for layer in report.layers} == {"measured"}
    assert converted.dtype == torch.bfloat16
    inputs = random_inputs(model)
    assert (logits(converted, inputs) - logits(model, inputs)).abs().max() <= 0.1
    # the heads' own numbers stay in float32
    kinds = {buffer.dtype for name, buffer in converted.named_buffers() if ".act." in name}
    assert kinds == {torch.float32}


def test_the_dtype_asked_for_is_the_converted_models():
    model = small("distilbert")
    converted, report = ah.attention_only(model, within=1e-10, dtype="float64")
    assert converted.dtype == torch.float64
    assert model.dtype == torch.float32
    assert report.dtype == "float64"


def test_inputs_that_are_given_are_those_measured_on():
    model = small("roberta")
    inputs = {"input_ids": torch.tensor([[4, 5, 6]]), "attention_mask": torch.ones(1, 3, dtype=torch.long)}
    _, report = ah.attention_only(model, within=1e-4, inputs=[inputs, inputs])
    assert report.changes[0].inputs == "2 batches of inputs"
    assert 0 < report.changes[0].largest <= 1e-3
    assert report.changes[0].cosine > 0.999999


def test_a_wrapped_models_parts_are_found_in_all_their_classes():
    """A folder of one class loads as another: what config says holds from the base model on."""
    for name in ("bert", "bert for classes", "gpt2", "whisper"):
        converted, _ = ah.attention_only(small(name), within=1e-3)
        assert all(
            not place.startswith(("bert.", "transformer.", "model."))
            for place in converted.config.attention_only["layers"]
        )
