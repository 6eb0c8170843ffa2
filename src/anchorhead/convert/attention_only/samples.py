"""What is measured: a layer on inputs that its norm can put out, and the whole model on sample inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import nn

from anchorhead.conditions import NormImage
from anchorhead.convert.attention_only.families import Sublayer
from anchorhead.convert.attention_only.report import Change
from anchorhead.errors import AnchorheadError

TOKENS = 256
SEED = 0
Inputs = Mapping[str, torch.Tensor]


def normed_inputs(sublayer: Sublayer, image: NormImage) -> Float[torch.Tensor, "tokens width"]:
    """Vectors that the norm in front can put out, in float64: random, spiked, and such that drive a neuron far."""
    random = torch.Generator().manual_seed(SEED)
    scale, shift = (torch.tensor(row, dtype=torch.float64) for row in (image.scale, image.shift))
    x = torch.randn(TOKENS, len(scale), generator=random, dtype=torch.float64)
    third = TOKENS // 3
    x[:third] = x[:third] ** 5
    chosen = torch.randint(sublayer.neurons, (third,), generator=random)
    rows = (sublayer.up if sublayer.gate is None else sublayer.gate).weight[chosen.to(sublayer.up.weight.device)]
    signs = torch.where(torch.arange(third) % 2 == 0, 1.0, -1.0)[:, None]
    x[third : 2 * third] = rows.cpu().double() * scale * signs
    if image.norm == "LayerNorm":
        x = x - x.mean(dim=1, keepdim=True)
    hat = x / x.square().mean(dim=1, keepdim=True).sqrt().clamp(min=1e-300)
    return scale * hat + shift


def layer_error(sublayer: Sublayer, heads: nn.Module, z: Float[torch.Tensor, "tokens width"]) -> float:
    """The largest |output of the attention layer in the model's dtype - feed-forward in float64| at inputs z."""
    kind, device = sublayer.up.weight.dtype, sublayer.up.weight.device
    z = z.to(kind)
    activation: Any = sublayer.activation
    with torch.no_grad():
        given = z.to(device)
        pre = [nn.functional.linear(given, one.weight, one.bias) for one in sublayer.maps[:-1]]
        found = nn.functional.linear(heads(*pre), sublayer.down.weight, sublayer.down.bias).cpu().double()
        exact = [nn.functional.linear(z.double(), *_doubled(one)) for one in sublayer.maps[:-1]]
        hidden = activation(exact[0]) if len(exact) == 1 else activation(exact[0]) * exact[1]
        error = found - nn.functional.linear(hidden, *_doubled(sublayer.down))
    return float(error.abs().max())


def _doubled(one: Any) -> tuple[torch.Tensor, torch.Tensor | None]:
    return one.weight.cpu().double(), None if one.bias is None else one.bias.cpu().double()


@dataclass(frozen=True)
class Before:
    """The original's outputs on sample inputs."""

    inputs: tuple[Inputs, ...]
    words: str
    name: str
    outputs: tuple[torch.Tensor, ...]


def outputs_before(model: Any, inputs: Any) -> Before:
    """Runs the model on the inputs given, or on random ones."""
    if inputs is None:
        given, words = (random_inputs(model),), "random inputs"
    else:
        given = (inputs,) if isinstance(inputs, Mapping) else tuple(inputs)
        words = f"{len(given)} batch{'es' * (len(given) != 1)} of inputs"
    if not given or not all(isinstance(one, Mapping) for one in given):
        raise AnchorheadError("inputs: give what the model takes by name, as a tokenizer makes it, or a list of such")
    found = [_main_output(model, one) for one in given]
    return Before(given, words, found[0][0], tuple(output for _, output in found))


def change_since(before: Before, model: Any) -> Change:
    """How far the outputs moved."""
    after = [_main_output(model, one)[1] for one in before.inputs]
    pairs = list(zip(before.outputs, after, strict=True))
    return Change(
        before.words,
        before.name,
        max(float((one - two).abs().max()) for one, two in pairs),
        max(float(one.abs().max()) for one, _ in pairs),
        min(least_cosine(one, two) for one, two in pairs),
    )


def least_cosine(one: Float[torch.Tensor, "... d"], two: Float[torch.Tensor, "... d"]) -> float:
    """The least cosine between vectors of the last axis; 1 where both are 0."""
    sizes = one.norm(dim=-1) * two.norm(dim=-1)
    cosine = (one * two).sum(dim=-1) / sizes.clamp(min=1e-300)
    same = (one == two).all(dim=-1)
    return float(torch.where(same, 1.0, cosine).min())


def _main_output(model: Any, inputs: Inputs) -> tuple[str, torch.Tensor]:
    training, device = model.training, next(model.parameters()).device
    model.eval()
    try:
        with torch.no_grad():
            given = {
                name: value.to(device, model.dtype if value.is_floating_point() else value.dtype)
                for name, value in inputs.items()
                if isinstance(value, torch.Tensor)
            }
            found = model(**given)
    finally:
        model.train(training)
    for name in ("logits", "last_hidden_state"):
        if getattr(found, name, None) is not None:
            return name, getattr(found, name).cpu().double()
    name, value = next((name, value) for name, value in found.items() if isinstance(value, torch.Tensor))
    return name, value.cpu().double()


def random_inputs(model: Any) -> dict[str, torch.Tensor]:
    """Inputs of the model's kind: token ids, pixels or sound features."""
    random = torch.Generator().manual_seed(SEED)
    config = model.config
    main = model.main_input_name
    if main == "pixel_values":
        side = config.image_size
        height, width = (side, side) if isinstance(side, int) else side
        return {main: torch.randn(2, config.num_channels, height, width, generator=random)}
    inputs: dict[str, torch.Tensor] = {}
    if main == "input_features" and hasattr(config, "num_mel_bins") and _hears(model):
        inputs[main] = torch.randn(1, config.num_mel_bins, 2 * config.max_source_positions, generator=random)
        main = "decoder_input_ids" if hasattr(model.base_model, "decoder") else ""
    elif main == "input_features":
        main = "input_ids"
    if main:
        longest = getattr(config, "max_position_embeddings", None) or getattr(config, "max_target_positions", 32)
        length = max(1, min(32, longest - 4))
        inputs[main] = torch.randint(3, max(4, config.vocab_size), (2, length), generator=random)
    return inputs


def _hears(model: Any) -> bool:
    """Whether this Whisper model has the half that hears."""
    return any(type(module).__name__ == "WhisperEncoder" for module in model.modules())
