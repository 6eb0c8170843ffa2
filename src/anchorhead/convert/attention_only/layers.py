"""The layers of an attention-only model, written out as attention: a sequence, a mask, queries, keys, values.

    sequence   the n tokens of the text, then p register tokens
    mask       a token sees itself and the registers
    head       queries [s, 1] of a token, s = w.z + b; keys [slope, offset]; values

This is what the fast paths of `attend.py` compute without writing it out: for study, and for tests that they do.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch.nn import functional

from anchorhead.conditions import NormImage
from anchorhead.convert.attention_only.families import FAMILIES, Map
from anchorhead.convert.attention_only.families.sublayers import sublayers_of
from anchorhead.convert.attention_only.ranges import norm_of
from anchorhead.errors import AnchorheadError, OutsideWarning
from anchorhead.heads.arithmetic import arithmetic_of

MOST_SCORES = 2**24
"""Heads are taken a few at a time, so that no more scores than this are held at once."""

Tokens = Float[torch.Tensor, "n features"]


@dataclass(frozen=True)
class Part:
    """One softmax a neuron: keys (p + 1, 2) of the registers and, last, of the token itself; the registers' values.

    own   the token's own value is this times s, or, gated, times u; None where it is not among the keys
    """

    keys: Float[torch.Tensor, "keys 2"]
    values: Float[torch.Tensor, " registers"]
    own: float | None

    def mask(self, tokens: int) -> Bool[torch.Tensor, "tokens keys"]:
        """Which of the registers and, after them, of the tokens each token sees."""
        registers = torch.ones(tokens, len(self.values), dtype=torch.bool)
        themselves = torch.eye(tokens, dtype=torch.bool)
        return registers if self.own is None else torch.cat([registers, themselves], dim=1)


@dataclass(frozen=True)
class AttentionLayer:
    """Attention in the place of a feed-forward sublayer: y = output(heads side by side) + skip.

    query   the query maps of all heads, a row a neuron: s = query z
    value   gated: u = value z, the tokens' own values; otherwise s itself
    output  the neurons' results back to the residual stream; skip s + bias joins them, with weights of no token
    domain  what the norm in front puts out: for such tokens the layer's bound is proven
    """

    name: str
    query: Map
    value: Map | None
    output: Map
    parts: tuple[Part, ...]
    skip: float
    bias: float
    domain: NormImage

    def __call__(
        self, z: Tokens, outside: Literal["warn", "raise", "ignore"] = "warn"
    ) -> Float[torch.Tensor, "n outputs"]:
        """The layer's output at tokens z, by F.scaled_dot_product_attention over the sequence.

        outside  what to do with tokens that the norm in front cannot put out, of which nothing is proven
        """
        if outside != "ignore":
            self._mind_the_domain(z, outside)
        s = functional.linear(z, self.query.weight, self.query.bias)
        own = s if self.value is None else functional.linear(z, self.value.weight, self.value.bias)
        keys = len(z) + max(len(part.values) for part in self.parts)
        few = max(1, MOST_SCORES // (len(z) * keys))
        found = [self._heads(s[:, i : i + few].T, own[:, i : i + few].T) for i in range(0, s.shape[1], few)]
        hidden = torch.cat(found).T + self.skip * s + self.bias
        return functional.linear(hidden, self.output.weight, self.output.bias)

    def _mind_the_domain(self, z: Tokens, outside: str) -> None:
        covered = self.domain.holds(z.detach().cpu().double().numpy())
        if covered.all():
            return
        text = (
            f"{int((~covered).sum())} of {len(covered)} tokens are none that the {self.domain.norm} in front of "
            f'{self.name} can put out: nothing is proven for them. Give outputs of that norm, or outside="ignore"'
        )
        if outside == "raise":
            raise AnchorheadError(text)
        warnings.warn(text, OutsideWarning, stacklevel=3)

    def _heads(self, s: Float[torch.Tensor, "heads n"], own: Float[torch.Tensor, "heads n"]) -> torch.Tensor:
        heads, n = s.shape
        queries = torch.stack([s, torch.ones_like(s)], dim=-1)
        total = torch.zeros_like(s)
        for part in self.parts:
            there = part.keys.to(s)
            keys = there[:-1] if part.own is not None else there
            values = part.values.to(s).expand(heads, -1)
            keys = keys.expand(heads, -1, 2)
            if part.own is not None:
                keys = torch.cat([keys, there[-1].expand(heads, n, 2)], dim=1)
                values = torch.cat([values, part.own * own], dim=1)
            seen = part.mask(n).to(s.device)
            read = functional.scaled_dot_product_attention(queries, keys, values[..., None], seen, scale=1.0)
            total = total + read[..., 0]
        return total


def attention_layers(model: Any) -> list[AttentionLayer]:
    """The layers that stand for feed-forward sublayers in a model that `attention_only` made, first to last."""
    config: Any = getattr(model, "config", None)
    settings = getattr(config, "attention_only", None)
    if settings is None:
        raise AnchorheadError(f"this {type(model).__name__} was not made by attention_only")
    found = []
    for sublayer in sublayers_of(model, FAMILIES[config.model_type]):
        head = settings["heads"][settings["layers"][sublayer.place]]
        gated = head["kind"] == "gate"
        parts = tuple(map(_gate_part, head["parts"])) if gated else (_own_part(head),)
        query, value = (sublayer.gate, sublayer.up) if sublayer.gate is not None else (sublayer.up, None)
        skip, bias = (0.0, 0.0) if gated else (head["skip"], head["bias"])
        norm = norm_of(sublayer.norm, sublayer.gain, query.weight.shape[1])
        domain = norm.image(arithmetic_of(settings["dtype"]))
        found.append(AttentionLayer(sublayer.name, query, value, sublayer.down, parts, skip, bias, domain))
    return found


def _own_part(head: dict[str, Any]) -> Part:
    keys = [*zip(head["slopes"], head["offsets"], strict=True)]
    own = head["own"]
    if own is not None:
        keys.append((own["slope"], own["offset"]))
    return Part(_numbers(keys), _numbers(head["values"]), None if own is None else own["value"])


def _gate_part(part: dict[str, Any]) -> Part:
    keys = [*zip(part["slopes"], part["offsets"], strict=True), (0.0, 0.0)]
    return Part(_numbers(keys), torch.zeros(len(part["slopes"]), dtype=torch.float64), part["factor"])


def _numbers(values: list[Any]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)
