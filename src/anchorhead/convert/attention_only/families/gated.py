"""Llama, Mistral, Qwen and Gemma: three matrices, down(phi(gate z) * up z), RMSNorm in front."""

from __future__ import annotations

from anchorhead.convert.attention_only.families.sublayers import Layer


def _gated(kind: str, norm: str = "post_attention_layernorm", gain: float = 0.0) -> tuple[Layer, ...]:
    maps = {"gate": "mlp.gate_proj", "up": "mlp.up_proj", "activation": "mlp.act_fn", "down": "mlp.down_proj"}
    return (Layer(kind, norm, place="mlp", gain=gain, **maps),)


FAMILIES = {
    "llama": _gated("LlamaDecoderLayer"),
    "mistral": _gated("MistralDecoderLayer"),
    "qwen2": _gated("Qwen2DecoderLayer"),
    "qwen3": _gated("Qwen3DecoderLayer"),
    "gemma": _gated("GemmaDecoderLayer", gain=1.0),
    "gemma2": _gated("Gemma2DecoderLayer", "pre_feedforward_layernorm", 1.0),
    "gemma3_text": _gated("Gemma3DecoderLayer", "pre_feedforward_layernorm", 1.0),
}
