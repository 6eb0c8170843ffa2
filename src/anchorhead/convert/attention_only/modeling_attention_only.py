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
softmax over keys (`SelfKeyAttention`). A gated sublayer W_3 (phi(W_1 z) * W_2 z) has two heads a neuron: queries
[g, 1], g = (W_1 z)_r, and the token's own value is u = (W_2 z)_r (`GateAttention`).

`config.attention_only` holds the heads' numbers and says which head stands where, from the base model.

The weights alone would give the original model, feed-forward layers and all, to whoever loads them without this code.
So a saved config.json has a model_type and architectures that transformers does not know, for which AutoModel asks for
`trust_remote_code=True`; and a config names no activation, in memory as on disk, but says so (`LOAD_WITH_CODE`), so
that transformers' own classes, with that config, end with these words.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import transformers
from torch import nn

from .attend import GateAttention, SelfKeyAttention

LOAD_WITH_CODE = "none: attention heads take its place, so load the folder with trust_remote_code=True"
TYPE, ARCHITECTURE = "attention_only_", "AttentionOnly"
"""In front of the original's, on disk."""


class GatedFeedForward(nn.Module):
    """down(phi(gate z) * up z) as attention: queries by `gate_proj`, own values by `up_proj`, output by `down_proj`."""

    def __init__(self, gate_proj: nn.Module, up_proj: nn.Module, down_proj: nn.Module, heads: nn.Module) -> None:
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj, self.heads = gate_proj, up_proj, down_proj, heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(self.heads(self.gate_proj(x), self.up_proj(x)))


def attention(head: dict[str, Any]) -> nn.Module:
    """What stands for the neurons of a sublayer, from a head's numbers."""
    return (GateAttention if head["kind"] == "gate" else SelfKeyAttention)(head)


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


class AttentionOnlyConfig:
    """In front of a config class of transformers: written under a type that transformers does not know."""

    _auto_class = "AutoConfig"

    def to_json_string(self, use_diff: bool = True) -> str:
        written = json.loads(super().to_json_string(use_diff))  # type: ignore[misc]
        written["model_type"] = TYPE + written["model_type"]
        if written.get("architectures"):
            written["architectures"] = [ARCHITECTURE + name for name in written["architectures"]]
        return json.dumps(written, indent=2, sort_keys=True) + "\n"

    @classmethod
    def get_config_dict(cls, *args: Any, **kwargs: Any) -> Any:
        found, rest = super().get_config_dict(*args, **kwargs)  # type: ignore[misc]
        if found.get("model_type"):
            found["model_type"] = found["model_type"].removeprefix(TYPE)
        if found.get("architectures"):
            found["architectures"] = [name.removeprefix(ARCHITECTURE) for name in found["architectures"]]
        return found, rest


@contextmanager
def _original_activations(config: Any) -> Iterator[None]:
    """While transformers builds its modules, of which some outside of feed-forward sublayers have activations."""
    names = config.attention_only["activations"]
    for key, name in names.items():
        setattr(config, key, name)
    try:
        yield
    finally:
        for key in names:
            setattr(config, key, LOAD_WITH_CODE)


class AttentionOnly:
    """In front of a model class of transformers: the model with heads in place, from `config.attention_only`."""

    def __init__(self, config: Any, *args: Any, **kwargs: Any) -> None:
        with _original_activations(config):
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
    config = {} if base.config_class is None else {"config_class": attention_only_config(base.config_class)}
    return _class_of(AttentionOnly, base, "without feed-forward layers", config)


def attention_only_config(base: type) -> type:
    """The class of configs like `base` of such models."""
    return _class_of(AttentionOnlyConfig, base, "of a model without feed-forward layers", {})


def _class_of(ours: type, base: type, about: str, more: dict[str, Any]) -> type:
    name = base.__name__
    if name not in globals():
        body = {"__module__": __name__, "__doc__": f"transformers' {name} {about}.", **more}
        globals()[name] = type(name, (ours, base), body)
    return globals()[name]


def __getattr__(name: str) -> Any:
    """Classes are made when transformers asks for them: `modeling_attention_only.BertModel`."""
    base = None if name.startswith("_") else getattr(transformers, name, None)
    for kind, made in (
        (transformers.PreTrainedModel, attention_only_class),
        (transformers.PreTrainedConfig, attention_only_config),
    ):
        if isinstance(base, type) and issubclass(base, kind):
            return made(base)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
