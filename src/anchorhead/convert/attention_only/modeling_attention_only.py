"""Models of transformers in which attention layers stand for the feed-forward sublayers.

This file, `attend.py` and `attend_triton.py`, for GPUs, are all that a saved folder needs beside torch and
transformers.

A feed-forward sublayer y = W_2 phi(W_1 z + b_1) + b_2 becomes one attention layer with mask "self+registers": every
token sees itself and a few register tokens that all layers' heads share, and a head stands for a neuron.

    queries    [s, 1], s = w.z + b      linear in the token: the rows of W_1 are the query maps of the heads
    keys       of register k: [slopes_k, offsets_k];   of the token itself: [own slope, own offset]
    values     of register k: values_k;                of the token itself: own value times s, linear in the token
    output     W_2, b_2                 the heads' values, side by side, back to the residual stream

So W_1 and W_2 stay where transformers has them, under their names, and what stood between them, the activation, is a
softmax over keys (`OwnAttention`). A gated sublayer W_3 (phi(W_1 z) * W_2 z) has two heads a neuron: queries [g, 1],
g = (W_1 z)_r, and the token's own value is u = (W_2 z)_r (`GateAttention`).

`config.attention_only` holds the heads' numbers and says which head stands where, from the base model.
"""

from __future__ import annotations

from typing import Any

import torch
import transformers
from torch import nn

from .attend import GateAttention, OwnAttention


class GatedFeedForward(nn.Module):
    """down(phi(gate z) * up z) as attention: queries by `gate_proj`, own values by `up_proj`, output by `down_proj`."""

    def __init__(self, gate_proj: nn.Module, up_proj: nn.Module, down_proj: nn.Module, heads: nn.Module) -> None:
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj, self.heads = gate_proj, up_proj, down_proj, heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(self.heads(self.gate_proj(x), self.up_proj(x)))


def attention(head: dict[str, Any]) -> nn.Module:
    """What stands for the neurons of a sublayer, from a head's numbers."""
    return (GateAttention if head["kind"] == "gate" else OwnAttention)(head)


def place_heads(model: Any, settings: dict[str, Any]) -> int:
    """Puts heads where the settings say; how many. Parts of the base model that this model lacks are passed over."""
    placed = 0
    for place, number in settings["layers"].items():
        head = settings["heads"][number]
        parent, _, name = place.rpartition(".")
        try:
            holder = model.base_model.get_submodule(parent)
            there = holder.get_submodule(name)
        except AttributeError:
            continue
        with torch.device("cpu"):
            heads = attention(head)
        weight = next(there.parameters(), next(holder.parameters(), None))
        if weight is not None and not weight.is_meta:
            heads = heads.to(weight.device)
        if head["kind"] == "gate":
            heads = GatedFeedForward(there.gate_proj, there.up_proj, there.down_proj, heads)
        setattr(holder, name, heads)
        placed += 1
    if not placed:
        raise ValueError(f"no feed-forward sublayer of {type(model).__name__} is where config.attention_only says")
    return placed


class AttentionOnly:
    """In front of a model class of transformers: the model with heads in place, from `config.attention_only`."""

    def __init__(self, config: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(config, *args, **kwargs)  # type: ignore[call-arg]
        place_heads(self, config.attention_only)

    @classmethod
    def is_custom_code(cls) -> bool:
        """Weights have the names that transformers has for them: what it renames for `base`, it renames for this."""
        return False

    @classmethod
    def from_pretrained(cls, *args: Any, **kwargs: Any) -> Any:
        found = super().from_pretrained(*args, **kwargs)  # type: ignore[misc]
        model = found[0] if isinstance(found, tuple) else found
        # transformers builds models without numbers, and in the dtype asked for: the heads keep their own
        place_heads(model, model.config.attention_only)
        model.eval()
        return found


def attention_only_class(base: type) -> type:
    """The class of models like `base` with heads in place. It has the same name: transformers goes by names."""
    name = base.__name__
    if name not in globals():
        about = f"transformers' {name} without feed-forward layers."
        globals()[name] = type(name, (AttentionOnly, base), {"__module__": __name__, "__doc__": about})
    return globals()[name]


def __getattr__(name: str) -> Any:
    """Classes are made when transformers asks for them: `modeling_attention_only.BertModel`."""
    base = None if name.startswith("_") else getattr(transformers, name, None)
    if not (isinstance(base, type) and issubclass(base, transformers.PreTrainedModel)):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return attention_only_class(base)
