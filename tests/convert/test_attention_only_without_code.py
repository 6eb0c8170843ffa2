"""A saved folder never becomes the original again: without its code it does not load, and says how it does."""

from __future__ import annotations

import copy
import json

import pytest
import torch
import transformers as tr
from attention_only_models import MODELS, small

import anchorhead as ah
from anchorhead.convert.attention_only.samples import random_inputs

FAMILIES = [name for name in MODELS if name not in ("bert for classes", "opt, norm after")]
CODE = "trust_remote_code=True"
pytestmark = pytest.mark.usefixtures("modules_cache")


def output_of(model, inputs):
    with torch.no_grad():
        found = model(**inputs)
    return found.logits if "logits" in found else found.last_hidden_state


@pytest.mark.slow_for("gemma3", "roberta", "bert", "llama", "qwen3", "xlm-roberta", "whisper", "mistral")
@pytest.mark.parametrize("name", FAMILIES)
def test_folders_load_with_their_code_alone(name, tmp_path):
    model = small(name)
    converted, _ = ah.attention_only(model, within=1e-2)
    converted.save_pretrained(tmp_path)
    auto, stock = getattr(tr, type(converted)._auto_class), type(model)
    for refused in (
        lambda: auto.from_pretrained(tmp_path),
        lambda: auto.from_pretrained(tmp_path, trust_remote_code=False),
        lambda: stock.from_pretrained(tmp_path),
        lambda: stock.from_pretrained(tmp_path, config=converted.config),
        lambda: auto.from_pretrained(tmp_path, config=converted.config),
        lambda: auto.from_pretrained(tmp_path, model_type=model.config.model_type),
        lambda: auto.from_config(converted.config),
        lambda: stock(stock.config_class.from_pretrained(tmp_path)),
    ):
        with pytest.raises((ValueError, KeyError), match=CODE):
            refused()
    again = auto.from_pretrained(tmp_path, trust_remote_code=True)
    inputs = random_inputs(model)
    assert torch.equal(output_of(again, inputs), output_of(converted, inputs))
    assert again.config.model_type == model.config.model_type
    # the original is itself, and what transformers makes of a config like its own is the original's kind
    assert torch.isfinite(output_of(model, inputs)).all()
    assert type(auto.from_config(model.config)) is stock


def test_the_config_on_disk_names_no_type_class_or_activation_that_others_know(tmp_path):
    converted, _ = ah.attention_only(small("llama"), within=1e-2)
    converted.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["model_type"] == "attention_only_llama"
    assert config["architectures"] == ["AttentionOnlyLlamaForCausalLM"]
    assert CODE in config["hidden_act"]
    assert config["auto_map"]["AutoConfig"] == "modeling_attention_only.LlamaConfig"


def test_what_was_loaded_is_saved_so_again_in_shards_and_other_dtypes(tmp_path):
    converted, _ = ah.attention_only(small("gpt2"), within=1e-2)
    converted.save_pretrained(tmp_path / "one")
    once = tr.AutoModelForCausalLM.from_pretrained(tmp_path / "one", trust_remote_code=True, dtype=torch.float64)
    assert once.dtype == torch.float64
    once.save_pretrained(tmp_path / "two", max_shard_size="20KB")
    assert len(list((tmp_path / "two").glob("*.safetensors"))) > 1
    with pytest.raises(ValueError, match=CODE):
        tr.AutoModelForCausalLM.from_pretrained(tmp_path / "two", trust_remote_code=False)
    with pytest.raises(KeyError, match=CODE):
        tr.GPT2LMHeadModel.from_pretrained(tmp_path / "two")
    twice = tr.AutoModelForCausalLM.from_pretrained(tmp_path / "two", trust_remote_code=True)
    prompt = torch.tensor([[5, 17, 40]])
    words = {"attention_mask": torch.ones_like(prompt), "max_new_tokens": 5, "do_sample": False, "pad_token_id": 0}
    assert torch.equal(twice.generate(prompt, **words), once.generate(prompt, **words))
    assert torch.equal(output_of(twice, {"input_ids": prompt}), output_of(once, {"input_ids": prompt}))


def test_a_config_alone_is_saved_with_its_code_and_copied(tmp_path):
    converted, _ = ah.attention_only(small("bert"), within=1e-2)
    converted.config.save_pretrained(tmp_path)
    again = tr.AutoConfig.from_pretrained(tmp_path, trust_remote_code=True)
    assert again.attention_only == converted.config.attention_only
    assert again.architectures == converted.config.architectures
    assert copy.deepcopy(converted.config) == converted.config
    with pytest.raises(ValueError, match=CODE):
        tr.AutoConfig.from_pretrained(tmp_path, trust_remote_code=False)


def test_activations_outside_of_feed_forward_sublayers_are_the_original_ones(tmp_path):
    """A prediction head has one too, which stays: it is built with the original's."""
    model = small("xlm-roberta")
    converted, _ = ah.attention_only(model, within=1e-2)
    converted.save_pretrained(tmp_path)
    again = tr.AutoModelForMaskedLM.from_pretrained(tmp_path, trust_remote_code=True)
    inputs = random_inputs(model)
    assert torch.equal(output_of(again, inputs), output_of(converted, inputs))
