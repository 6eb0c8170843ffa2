"""Where the feed-forward sublayers of each family are, by the model_type of its config."""

from __future__ import annotations

from torch import nn

from anchorhead.convert.attention_only.families.sublayers import Layer


def _last_norm_before(layer: nn.Module) -> str:
    """Post-norm: z is what the last attention of the layer puts out."""
    crossed = getattr(layer, "is_decoder", False) and hasattr(layer, "crossattention")
    return ("crossattention" if crossed else "attention") + ".output.LayerNorm"


def _bert_like(kind: str) -> Layer:
    return Layer(kind, _last_norm_before, "intermediate.dense", "intermediate.intermediate_act_fn", "output.dense")


def _whisper(kind: str) -> Layer:
    return Layer(kind, "final_layer_norm", "fc1", "activation_fn", "fc2")


def _opt_norm(layer: nn.Module) -> str:
    """Most sizes normalise before each sublayer; OPT-350m after it, so that z is the attention's normalised output."""
    return "final_layer_norm" if getattr(layer, "do_layer_norm_before", True) else "self_attn_layer_norm"


def _gated(kind: str, norm: str = "post_attention_layernorm", gain: float = 0.0) -> Layer:
    """Three matrices, down(phi(gate z) * up z), RMSNorm in front."""
    maps = {"gate": "mlp.gate_proj", "up": "mlp.up_proj", "activation": "mlp.act_fn", "down": "mlp.down_proj"}
    return Layer(kind, norm, place="mlp", gain=gain, **maps)


FAMILIES = {
    "bert": (_bert_like("BertLayer"),),
    "roberta": (_bert_like("RobertaLayer"),),
    "xlm-roberta": (_bert_like("XLMRobertaLayer"),),
    "distilbert": (Layer("TransformerBlock", "sa_layer_norm", "ffn.lin1", "ffn.activation", "ffn.lin2"),),
    "vit": (Layer("ViTLayer", "layernorm_after", "mlp.fc1", "mlp.activation_fn", "mlp.fc2"),),
    "whisper": (_whisper("WhisperEncoderLayer"), _whisper("WhisperDecoderLayer")),
    "gpt2": (Layer("GPT2Block", "ln_2", "mlp.c_fc", "mlp.act", "mlp.c_proj"),),
    "opt": (Layer("OPTDecoderLayer", _opt_norm, "fc1", "activation_fn", "fc2"),),
    "llama": (_gated("LlamaDecoderLayer"),),
    "mistral": (_gated("MistralDecoderLayer"),),
    "qwen2": (_gated("Qwen2DecoderLayer"),),
    "qwen3": (_gated("Qwen3DecoderLayer"),),
    "gemma": (_gated("GemmaDecoderLayer", gain=1.0),),
    "gemma2": (_gated("Gemma2DecoderLayer", "pre_feedforward_layernorm", 1.0),),
    "gemma3_text": (_gated("Gemma3DecoderLayer", "pre_feedforward_layernorm", 1.0),),
}
