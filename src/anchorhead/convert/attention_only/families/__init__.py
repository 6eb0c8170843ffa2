"""The families of transformers models that can be converted, by the model_type of their config."""

from __future__ import annotations

from typing import Any

from anchorhead.convert.attention_only.families.as_built import (
    require_numbers,
    require_structure,
    require_undisturbed,
)
from anchorhead.convert.attention_only.families.known import FAMILIES
from anchorhead.convert.attention_only.families.sublayers import Map, Sublayer, layers_of, sublayers_of
from anchorhead.errors import AnchorheadError

__all__ = ["FAMILIES", "Map", "Sublayer", "feed_forward_sublayers", "require_as_built", "require_family"]


def require_family(kind: Any) -> None:
    if kind not in FAMILIES:
        raise AnchorheadError(
            f"models of type {kind!r} cannot be converted: the feed-forward sublayers of {', '.join(FAMILIES)} can"
        )


def require_as_built(model: Any) -> None:
    """Refuses a model that is not, in all that its feed-forward sublayers hang on, what transformers builds."""
    require_numbers(model)
    feed_forward_sublayers(model)
    base = "" if model.base_model is model else f"{model.base_model_prefix}."
    activations = []
    for name, layer, family in layers_of(model, FAMILIES[model.config.model_type]):
        require_undisturbed(layer, name, family.paths(layer))
        activations.append(f"{base}{name}.{family.activation}")
    require_structure(model, activations)


def feed_forward_sublayers(model: Any) -> list[Sublayer]:
    """Every feed-forward sublayer of a transformers model, first to last."""
    require_family(model.config.model_type)
    found = list(sublayers_of(model, FAMILIES[model.config.model_type]))
    if not found:
        raise AnchorheadError(f"this {type(model).__name__} has no feed-forward sublayer to convert")
    return found
