"""GPT-2 and OPT: two matrices, LayerNorm in front."""

from __future__ import annotations

from torch import nn

from anchorhead.convert.attention_only.families.sublayers import Layer


def _opt_norm(layer: nn.Module) -> str:
    """Most sizes normalise before each sublayer; OPT-350m after it, so that z is the attention's normalised output."""
    return "final_layer_norm" if getattr(layer, "do_layer_norm_before", True) else "self_attn_layer_norm"


FAMILIES = {
    "gpt2": (Layer("GPT2Block", "ln_2", "mlp.c_fc", "mlp.act", "mlp.c_proj"),),
    "opt": (Layer("OPTDecoderLayer", _opt_norm, "fc1", "activation_fn", "fc2"),),
}
