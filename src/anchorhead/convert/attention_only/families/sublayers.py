"""What a family says of its feed-forward sublayers, and the matrices that are read from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import nn
from torch.nn.utils import parametrize

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

    def norm_of(self, layer: nn.Module) -> Path:
        return self.norm if isinstance(self.norm, str) else self.norm(layer)

    def paths(self, layer: nn.Module) -> list[Path]:
        """Of all parts, from the layer."""
        maps = [self.up, self.down] if self.gate is None else [self.gate, self.up, self.down]
        return [self.norm_of(layer), *maps, self.activation]


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


def layers_of(model: Any, layers: tuple[Layer, ...]) -> Iterator[tuple[str, nn.Module, Layer]]:
    """Every transformer layer of one of the kinds, first to last, with its name from the base model."""
    kinds = {layer.kind: layer for layer in layers}
    for name, module in model.base_model.named_modules():
        found = next((kinds[one.__name__] for one in type(module).__mro__ if one.__name__ in kinds), None)
        if found is not None:
            yield name, module, found


def sublayers_of(model: Any, layers: tuple[Layer, ...]) -> Iterator[Sublayer]:
    """Every feed-forward sublayer, first to last."""
    for name, module, found in layers_of(model, layers):
        start = f"{name}." if name else ""
        yield Sublayer(
            name=name,
            place=start + (found.activation if found.place is None else found.place),
            norm=module.get_submodule(found.norm_of(module)),
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
    """Of exactly a Linear, whose weight is (outputs, inputs), or transformers' Conv1D, which stores its transpose."""
    from transformers.pytorch_utils import Conv1D

    module: Any = layer.get_submodule(path)
    kind = parametrize.type_before_parametrizations(module)
    weight: Any = getattr(module, "weight", None)
    bias: Any = getattr(module, "bias", None)
    plain = kind in (nn.Linear, Conv1D) and _is_plain(weight, 2) and (bias is None or _is_plain(bias, 1))
    if not plain:
        raise AnchorheadError(
            f"{name}.{path} is a {kind.__name__}, no plain linear map: exactly torch.nn.Linear and transformers' "
            "Conv1D can be converted, with weights that are neither quantised nor distributed; merge adapters first "
            "(merge_and_unload())"
        )
    weight = weight.detach()
    return Map(weight if kind is nn.Linear else weight.T, None if bias is None else bias.detach())


def _is_plain(weight: Any, axes: int) -> bool:
    """Numbers in memory: no subclass, such as a quantised or a distributed tensor, of which .data is another thing."""
    if type(weight) not in (nn.Parameter, torch.Tensor) or type(weight.data) is not torch.Tensor:
        return False
    return weight.layout == torch.strided and weight.ndim == axes and weight.is_floating_point()
