"""Models that compute something else than their classes say are refused by name, or converted as they compute."""

from __future__ import annotations

import types

import pytest
import torch
import transformers as tr
from attention_only_models import SIZES, small
from torch import nn
from torch.nn.modules.module import register_module_forward_hook
from torch.nn.utils import parametrizations, parametrize, prune

import anchorhead as ah
from anchorhead.convert.attention_only.samples import random_inputs
from anchorhead.errors import AnchorheadError


class Linear(nn.Module):
    """An adapter as peft's lora.Linear is: of that name, the map inside, its weight and bias passed on."""

    def __init__(self, base_layer: nn.Linear) -> None:
        super().__init__()
        self.base_layer = base_layer
        self.lora_A = nn.ModuleDict({"default": nn.Linear(base_layer.in_features, 4, bias=False)})
        self.lora_B = nn.ModuleDict({"default": nn.Linear(4, base_layer.out_features, bias=False)})

    weight = property(lambda self: self.base_layer.weight)
    bias = property(lambda self: self.base_layer.bias)

    def forward(self, x):
        return self.base_layer(x) + self.lora_B["default"](self.lora_A["default"](x))


class Doubled(nn.Linear):
    def forward(self, input):
        return 2 * super().forward(input)


class GELUActivation(nn.Module):
    def forward(self, x):
        return torch.sin(x)


class WiderNorm(nn.LayerNorm):
    def forward(self, input):
        return 9 * super().forward(input)


def refused(model) -> str:
    with pytest.raises(AnchorheadError) as caught:
        ah.attention_only(model, within=1e-3)
    return str(caught.value)


def output_of(model):
    inputs = random_inputs(model)
    with torch.no_grad():
        found = model(**inputs)
    return found.logits if "logits" in found else found.last_hidden_state


@pytest.mark.parametrize("part", ["gate_proj", "up_proj", "down_proj"])
def test_adapters_around_a_map_are_refused_with_the_way_out(part):
    model = small("llama")
    setattr(model.model.layers[1].mlp, part, Linear(getattr(model.model.layers[1].mlp, part)))
    said = refused(model)
    assert f"layers.1.mlp.{part} is an adapter" in said
    assert "merge_and_unload()" in said


def test_adapters_elsewhere_are_refused_since_a_folder_would_lose_them():
    model = small("llama")
    model.model.layers[0].self_attn.q_proj = Linear(model.model.layers[0].self_attn.q_proj)
    assert "self_attn.q_proj is an adapter" in refused(model)
    model = small("llama")
    model._hf_peft_config_loaded, model.peft_config = True, {"mine": None}
    assert "has adapters (mine)" in refused(model)


def test_wrapped_models_are_refused_with_the_way_out():
    class PeftModel(nn.Module):
        def merge_and_unload(self):
            raise NotImplementedError

    assert "merge_and_unload()" in refused(PeftModel())


def test_classes_below_linear_or_of_its_name_are_refused():
    model = small("bert")
    model.encoder.layer[0].intermediate.dense = Doubled(32, 48)
    assert "encoder.layer.0.intermediate.dense is a Doubled, no plain linear map" in refused(model)
    model = small("gpt2")
    model.transformer.h[1].mlp.c_proj = type("Conv1D", (tr.pytorch_utils.Conv1D,), {})(32, 48)
    assert "h.1.mlp.c_proj is a Conv1D, no plain linear map" in refused(model)


def test_quantised_models_are_refused():
    class Packed(nn.Parameter):
        """As in the libraries that keep a Linear and pack its weight."""

    model = small("bert")
    dense = model.encoder.layer[0].output.dense
    dense.weight = Packed(dense.weight.detach())
    assert "output.dense is a Linear, no plain linear map" in refused(model)
    model = small("bert")
    model.hf_quantizer = object()
    assert "dequantize()" in refused(model)


LLAMA_PARTS = ["", "mlp", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", "mlp.act_fn", "post_attention_layernorm"]
BERT_PARTS = ["attention", "attention.output", "attention.output.LayerNorm", "intermediate", "output", "output.dense"]


@pytest.mark.parametrize(
    ("name", "layer", "part"),
    [("llama", "model.layers.1", part) for part in LLAMA_PARTS] + [("bert", "encoder.layer.1", p) for p in BERT_PARTS],
)
def test_hooks_and_own_forwards_on_the_way_of_a_token_are_refused(name, layer, part):
    model = small(name)
    module = model.get_submodule(f"{layer}.{part}".rstrip("."))
    label = f"{layer}.{part}".removeprefix("model.").rstrip(".")
    for register in (module.register_forward_hook, module.register_forward_pre_hook):
        handle = register(lambda module, *args: None)
        assert f"{label} has the forward hook" in refused(model)
        handle.remove()
    plain = type(module).forward
    module.forward = types.MethodType(lambda self, *args, **options: plain(self, *args, **options), module)
    assert f"{label} has a forward of its own" in refused(model)


def test_hooks_of_all_modules_are_refused():
    handle = register_module_forward_hook(lambda module, args, output: None)
    try:
        assert "hooks for all modules" in refused(small("bert"))
    finally:
        handle.remove()


def test_other_methods_of_an_instance_are_refused():
    model = small("bert")
    model.encoder.layer[0].feed_forward_chunk = lambda z: z
    assert "encoder.layer.0 has a feed_forward_chunk of its own" in refused(model)


def test_hooks_that_transformers_leaves_are_no_obstacle():
    model = small("llama")
    model(**random_inputs(model), output_hidden_states=True)
    assert model.model.layers[0]._forward_hooks
    _, report = ah.attention_only(model, within=1e-3)
    assert report.kind == "proven"


def test_hooks_of_accelerate_that_move_tensors_stay():
    hooks = pytest.importorskip("accelerate.hooks")
    model = small("llama")
    expected = output_of(model)
    for module in model.modules():
        hooks.add_hook_to_module(module, hooks.AlignDevicesHook(execution_device="cpu"))
    converted, _ = ah.attention_only(model, within=1e-4)
    assert (output_of(converted) - expected).abs().max() <= 1e-2
    assert converted.model.layers[0].mlp.gate_proj._old_forward.__self__ is converted.model.layers[0].mlp.gate_proj
    hooks.remove_hook_from_module(model, recurse=True)
    ah.attention_only(model, within=1e-3)


def test_other_hooks_of_accelerate_are_refused():
    hooks = pytest.importorskip("accelerate.hooks")
    model = small("llama")
    up = model.model.layers[0].mlp.up_proj
    hooks.add_hook_to_module(up, hooks.LayerwiseCastingHook(torch.bfloat16, torch.float32, False))
    assert "layers.0.mlp.up_proj has a forward of its own" in refused(model)
    model = small("llama")
    up = model.model.layers[0].mlp.up_proj
    up.forward = types.MethodType(lambda self, x: 2 * x, up)
    hooks.add_hook_to_module(up, hooks.AlignDevicesHook(execution_device="cpu"))
    assert "layers.0.mlp.up_proj has a forward of its own" in refused(model)


def test_offloaded_models_are_refused():
    model = pytest.importorskip("accelerate").cpu_offload(small("bert"), execution_device="cpu")
    said = refused(model)
    assert "meta device" in said
    assert "device_map" in said


@pytest.mark.parametrize(
    ("path", "other"),
    [
        ("encoder.layer.0.attention.output.LayerNorm", WiderNorm(32)),
        ("encoder.layer.1", nn.Identity()),
        ("encoder.layer.0.intermediate", nn.Sequential()),
        ("pooler.dense", nn.Linear(32, 16)),
    ],
)
def test_what_transformers_would_not_build_of_the_config_is_refused(path, other):
    model = small("bert")
    parent, _, name = path.rpartition(".")
    if name == "intermediate":
        other.dense = model.encoder.layer[0].intermediate.dense
        other.intermediate_act_fn = model.encoder.layer[0].intermediate.intermediate_act_fn
    setattr(model.get_submodule(parent), name, other)
    assert path in refused(model)


def test_layers_that_are_shared_or_left_out_need_a_config_that_says_so():
    model = small("bert")
    model.encoder.layer[1] = model.encoder.layer[0]
    assert "encoder.layer.1 is a transformers" in refused(model)
    model = small("llama")
    model.model.layers[1].mlp = model.model.layers[0].mlp
    assert "that of model.layers.0.mlp" in refused(model)
    model = small("bert")
    del model.encoder.layer[1]
    assert "encoder.layer.1 is nothing" in refused(model)
    model.config.num_hidden_layers = 1
    _, report = ah.attention_only(model, within=1e-3)
    assert len(report.layers) == 1


def test_activations_are_known_by_their_class_and_not_by_its_name():
    model = small("bert")
    model.encoder.layer[0].intermediate.intermediate_act_fn = GELUActivation()
    assert "GELUActivation" in refused(model)
    model = small("bert")
    model.encoder.layer[0].intermediate.intermediate_act_fn = type("Mine", (nn.GELU,), {})()
    assert "Mine" in refused(model)


def test_an_activation_that_computes_something_else_is_found_on_samples():
    model = small("bert")
    model.encoder.layer[0].intermediate.intermediate_act_fn.act = torch.sin
    assert "encoder.layer.0 errs by" in refused(model)
    assert torch.isfinite(output_of(model)).all()


def test_norms_whose_outputs_have_no_largest_length_are_refused():
    model = tr.BertModel(tr.BertConfig(**SIZES, layer_norm_eps=-0.5)).eval()
    assert "eps=-0.5" in refused(model)


@pytest.mark.usefixtures("modules_cache")
@pytest.mark.parametrize("name", ["bert", "llama"])
def test_parametrized_weights_are_taken_as_they_compute_and_saved_so(name, tmp_path):
    model = small(name)
    with torch.no_grad():
        for label, module in model.named_modules():
            if label.endswith(("1.intermediate.dense", "1.mlp.gate_proj", "0.attention.self.query")):
                parametrizations.weight_norm(module)
                module.parametrizations.weight.original0.mul_(3)
    expected = output_of(model)
    converted, report = ah.attention_only(model, within=1e-4)
    assert report.changes[0].largest <= 1e-2
    assert (output_of(converted) - expected).abs().max() <= 1e-2
    assert not [one for one in converted.modules() if parametrize.is_parametrized(one)]
    assert [one for one in model.modules() if parametrize.is_parametrized(one)]
    converted.save_pretrained(tmp_path / "out")
    again = tr.AutoModel.from_pretrained(tmp_path / "out", trust_remote_code=True)
    base = converted.base_model
    assert all(torch.equal(weight, base.state_dict()[key]) for key, weight in again.state_dict().items())


def test_parametrizations_that_differ_each_time_are_refused():
    class Noise(nn.Module):
        def forward(self, weight):
            return weight + torch.rand_like(weight)

    model = small("bert")
    parametrize.register_parametrization(model.encoder.layer[0].output.dense, "weight", Noise())
    assert "another weight each time" in refused(model)


def test_pruned_maps_are_refused_until_the_weights_are_there():
    model = small("bert")
    dense = model.encoder.layer[0].output.dense
    prune.l1_unstructured(dense, "weight", amount=0.5)
    assert "prune" in refused(model)
    prune.remove(dense, "weight")
    ah.attention_only(model, within=1e-3)
