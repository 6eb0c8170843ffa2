"""What a family says of its feed-forward sublayers, and the matrices that are read from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import nn

from anchorhead.errors import AnchorheadError

Path = str
"""Where a module is, from the layer that holds it: "intermediate.dense"."""


@dataclass(frozen=True)
class Layer:
    """Where the parts of a feed-forward sublayer are, from the transformer layer of the given class.

        gated:      down(phi(gate z) * up z)
        otherwise:  down(phi(up z))

    norm     the LayerNorm or RMSNorm whose output z is; a function of the layer where that depends on its settings
    place    what is replaced: the activation, or, gated, the module whose forward multiplies
    gain     what an RMSNorm adds to its weight: 1 in Gemma
    """

    kind: str
    norm: Path | Callable[[nn.Module], Path]
    up: Path
    activation: Path
    down: Path
    gate: Path | None = None
    place: Path | None = None
    gain: float = 0.0


@dataclass(frozen=True)
class Map:
    """x -> weight x + bias, as stored."""

    weight: Float[torch.Tensor, "outputs inputs"]
    bias: Float[torch.Tensor, " outputs"] | None

    @property
    def numbers(self) -> int:
        return self.weight.numel() + (0 if self.bias is None else self.bias.numel())


@dataclass(frozen=True)
class Sublayer:
    """One feed-forward sublayer of a model.

    name    of the transformer layer, from the base model
    place   of what is replaced, from the base model too
    """

    name: str
    place: str
    norm: nn.Module
    gain: float
    activation: nn.Module | None
    gate: Map | None
    up: Map
    down: Map

    @property
    def maps(self) -> tuple[Map, ...]:
        return (self.up, self.down) if self.gate is None else (self.gate, self.up, self.down)

    @property
    def neurons(self) -> int:
        return len(self.up.weight)


def sublayers_of(model: Any, layers: tuple[Layer, ...]) -> Iterator[Sublayer]:
    """Every feed-forward sublayer, first to last."""
    kinds = {layer.kind: layer for layer in layers}
    base = model.base_model
    for name, module in base.named_modules():
        found = next((kinds[one.__name__] for one in type(module).__mro__ if one.__name__ in kinds), None)
        if found is None:
            continue
        start = f"{name}." if name else ""
        norm = found.norm if isinstance(found.norm, str) else found.norm(module)
        yield Sublayer(
            name=name,
            place=start + (found.activation if found.place is None else found.place),
            norm=module.get_submodule(norm),
            gain=found.gain,
            activation=_activation(module, found.activation),
            gate=None if found.gate is None else _map(module, name, found.gate),
            up=_map(module, name, found.up),
            down=_map(module, name, found.down),
        )


def _activation(layer: nn.Module, path: Path) -> nn.Module | None:
    """None where heads have taken its place."""
    try:
        return layer.get_submodule(path)
    except AttributeError:
        return None


def _map(layer: nn.Module, name: str, path: Path) -> Map:
    """A Linear's weight is (outputs, inputs); GPT-2's Conv1D stores its transpose."""
    module = layer.get_submodule(path)
    kinds = [one.__name__ for one in type(module).__mro__]
    weight: Any = getattr(module, "weight", None)
    bias: Any = getattr(module, "bias", None)
    plain = type(weight) in (nn.Parameter, torch.Tensor) and weight.ndim == 2 and weight.is_floating_point()
    if not plain or not ("Linear" in kinds or "Conv1D" in kinds):
        raise AnchorheadError(
            f"{name}.{path} is a {type(module).__name__}, no plain linear map: convert a model whose weights are "
            "neither quantised nor wrapped in adapters (merge those first)"
        )
    weight = weight.detach()
    return Map(weight if "Linear" in kinds else weight.T, None if bias is None else bias.detach())
