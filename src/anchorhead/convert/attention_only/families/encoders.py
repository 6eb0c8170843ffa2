"""BERT and its kin, DistilBERT, ViT, and Whisper's two halves: two matrices, LayerNorm in front."""

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


FAMILIES = {
    "bert": (_bert_like("BertLayer"),),
    "roberta": (_bert_like("RobertaLayer"),),
    "xlm-roberta": (_bert_like("XLMRobertaLayer"),),
    "distilbert": (Layer("TransformerBlock", "sa_layer_norm", "ffn.lin1", "ffn.activation", "ffn.lin2"),),
    "vit": (Layer("ViTLayer", "layernorm_after", "mlp.fc1", "mlp.activation_fn", "mlp.fc2"),),
    "whisper": (_whisper("WhisperEncoderLayer"), _whisper("WhisperDecoderLayer")),
}
