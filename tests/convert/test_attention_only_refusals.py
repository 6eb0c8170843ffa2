"""What cannot be converted is refused in words: which part, what is allowed, what to do."""

from __future__ import annotations

import sys

import pytest
import torch
import transformers as tr
from attention_only_models import SIZES, small

import anchorhead as ah
from anchorhead.errors import AnchorheadError


def test_families_that_are_not_known_are_named_with_those_that_are():
    model = tr.T5Model(tr.T5Config(d_model=8, d_kv=4, num_layers=1, num_heads=2, d_ff=8, vocab_size=9))
    with pytest.raises(AnchorheadError, match=r"'t5' cannot be converted.*bert.*gpt2.*llama"):
        ah.attention_only(model)


@pytest.mark.parametrize("thing", [torch.nn.Linear(2, 2), "bert", None])
def test_what_is_no_transformers_model_is_refused(thing):
    with pytest.raises(AnchorheadError, match="no model of transformers"):
        ah.attention_only(thing)


@pytest.mark.parametrize("act", [torch.nn.PReLU(), torch.nn.LeakyReLU(0.3), torch.nn.Softplus()])
def test_activations_without_a_head_are_named_with_those_that_have_one(act):
    model = small("bert")
    model.encoder.layer[0].intermediate.intermediate_act_fn = act
    with pytest.raises(AnchorheadError, match=r"encoder\.layer\.0 is .*no head.*gelu.*relu"):
        ah.attention_only(model)


def test_gates_without_a_head_are_named():
    config = tr.LlamaConfig(**SIZES, num_key_value_heads=4, hidden_act="mish")
    with pytest.raises(AnchorheadError, match=r"layers\.0 is MishActivation.*with a gate.*silu"):
        ah.attention_only(tr.LlamaModel(config))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_named(value):
    model = small("bert")
    with torch.no_grad():
        model.encoder.layer[1].output.dense.weight[3, 4] = value
    with pytest.raises(AnchorheadError, match=r"encoder\.layer\.1\.output\.dense\.weight .* \(3, 4\)"):
        ah.attention_only(model)


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_a_bound_that_the_dtype_cannot_reach_says_what_it_can(name):
    with pytest.raises(AnchorheadError, match=r"float32.*float64") as caught:
        ah.attention_only(small(name), within=1e-12)
    assert "1e-12" in str(caught.value)


@pytest.mark.parametrize("within", [0, -1.0, float("nan"), "small", True])
def test_errors_asked_for_are_numbers_above_zero(within):
    with pytest.raises(AnchorheadError, match="within="):
        ah.attention_only(small("bert"), within=within)


def test_dtypes_and_inputs_are_checked():
    with pytest.raises(AnchorheadError, match=r"float8.*float64, float32"):
        ah.attention_only(small("bert"), dtype="float8")
    with pytest.raises(AnchorheadError, match="by name"):
        ah.attention_only(small("bert"), within=1e-3, inputs=[torch.ones(1, 2)])


def test_models_without_numbers_and_with_other_maps_are_refused():
    with torch.device("meta"):
        empty = tr.BertModel(tr.BertConfig(**SIZES))
    with pytest.raises(AnchorheadError, match="meta device"):
        ah.attention_only(empty)
    model = small("bert")
    model.encoder.layer[0].intermediate.dense = torch.nn.Identity()
    with pytest.raises(AnchorheadError, match=r"intermediate\.dense is a Identity, no plain linear map"):
        ah.attention_only(model)


def test_classes_that_transformers_does_not_have_are_refused():
    class Mine(tr.BertModel):
        pass

    with pytest.raises(AnchorheadError, match="Mine is not a class that transformers itself exports"):
        ah.attention_only(Mine(tr.BertConfig(**SIZES)))


def test_a_missing_transformers_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(AnchorheadError, match=r'pip install "anchorhead\[transformers\]"'):
        ah.attention_only(None)
