"""Small models of every family, at random but with spread: biases and norms that are not what a fresh model has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers as tr

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, "vocab_size": 99}
TOKENS = {"vocab_size": 99, "bos_token_id": 1, "eos_token_id": 2}
GATED = {**SIZES, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 160}
OPT = {
    "hidden_size": 32,
    "word_embed_proj_dim": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "ffn_dim": 48,
    "vocab_size": 99,
    "max_position_embeddings": 160,
}
WHISPER = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "num_mel_bins": 8,
    "max_source_positions": 10,
    "max_target_positions": 140,
    "vocab_size": 99,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
    "suppress_tokens": None,
    "begin_suppress_tokens": None,
}

MODELS: dict[str, Callable[[], Any]] = {
    "bert": lambda: tr.BertModel(tr.BertConfig(**SIZES)),
    "bert for classes": lambda: tr.BertForSequenceClassification(tr.BertConfig(**SIZES, hidden_act="gelu_new")),
    "roberta": lambda: tr.RobertaModel(tr.RobertaConfig(**SIZES)),
    "xlm-roberta": lambda: tr.XLMRobertaForMaskedLM(tr.XLMRobertaConfig(**SIZES)),
    "distilbert": lambda: tr.DistilBertModel(
        tr.DistilBertConfig(dim=32, n_layers=2, n_heads=4, hidden_dim=48, vocab_size=99)
    ),
    "gpt2": lambda: tr.GPT2LMHeadModel(
        tr.GPT2Config(n_embd=32, n_layer=2, n_head=4, n_inner=48, n_positions=160, **TOKENS)
    ),
    "opt": lambda: tr.OPTForCausalLM(tr.OPTConfig(**OPT)),
    "opt, norm after": lambda: tr.OPTForCausalLM(tr.OPTConfig(**OPT, do_layer_norm_before=False)),
    "vit": lambda: tr.ViTForImageClassification(
        tr.ViTConfig(**{k: v for k, v in SIZES.items() if k != "vocab_size"}, image_size=16, patch_size=4)
    ),
    "whisper": lambda: tr.WhisperForConditionalGeneration(tr.WhisperConfig(**WHISPER)),
    "llama": lambda: tr.LlamaForCausalLM(tr.LlamaConfig(**GATED, mlp_bias=True)),
    "mistral": lambda: tr.MistralForCausalLM(tr.MistralConfig(**GATED)),
    "qwen2": lambda: tr.Qwen2ForCausalLM(tr.Qwen2Config(**GATED)),
    "qwen3": lambda: tr.Qwen3ForCausalLM(tr.Qwen3Config(**GATED)),
    "gemma": lambda: tr.GemmaForCausalLM(tr.GemmaConfig(**GATED)),
    "gemma2": lambda: tr.Gemma2ForCausalLM(tr.Gemma2Config(**GATED)),
    "gemma3": lambda: tr.Gemma3ForCausalLM(tr.Gemma3TextConfig(**GATED)),
}
GENERATING = ["gpt2", "opt", "opt, norm after", "llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3"]
RMS = ["llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3"]
"""These normalise in float32 whatever the model's dtype: their float64 outputs move by float32's rounding."""


def small(name: str, dtype: torch.dtype = torch.float32, seed: int = 0) -> Any:
    """A model in eval mode whose weights, biases and norms are random, large enough for neurons to curve."""
    torch.manual_seed(seed)
    model = MODELS[name]()
    with torch.no_grad():
        for weight in model.parameters():
            spread = 0.7 / weight.shape[-1] ** 0.5 if weight.ndim > 1 else 0.3
            weight.add_(spread * torch.randn_like(weight))
    return model.to(dtype).eval()
