"""The torch model inside the bridge: embedding, blocks that add attention to a residual stream, unembedding.

Tokens stand in the order input, register, state. A token that a head lets see nothing reads 0 from it: tokens whose
answer nobody reads do not ask, as in the network's own module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from anchorhead.errors import AnchorheadError
from anchorhead.export.lens_layout import LensLayout, Sight
from anchorhead.export.lens_weights import BlockWeights, block_weights
from anchorhead.network import Embed, Kind, Network, Stream
from anchorhead.network.stated_arithmetic import stated_arithmetic
from anchorhead.network.stream import KINDS

MAX_PATTERN = 2**28
"""How many attention weights one block may have for a whole batch: 2 GiB in float64."""

Hook = Callable[[Tensor], Tensor]


class LensModel(nn.Module):
    """x (..., tokens, inputs), or a residual stream (batch, all tokens, width), to what the network's module gives."""

    def __init__(self, network: Network, layout: LensLayout) -> None:
        super().__init__()
        self.start = network.streams[0]
        self.kind: Kind = network.output
        self.token_axis, self.width = network.token_axis, layout.width
        self.input_shape = network.embed.tokens, network.embed.inputs
        self.tokens_in = LensEmbed(network.embed, layout)
        made = [block_weights(layout, block, network.dtype) for block in layout.blocks or [None]]
        self.head_labels, self.head_wiring = (
            tuple(getattr(one, name) for one in made) for name in ("labels", "wiring")
        )
        self.layers = nn.ModuleList(LensBlock(one, layout, self.start) for one in made)
        readout = layout.readout
        weight = np.zeros((len(readout.weight), layout.width), network.dtype)
        np.add.at(weight.T, readout.reads, readout.weight.T)
        self.tokens_out = _linear(weight, readout.bias)

    def forward(
        self,
        input_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        attention_mask: Tensor | None = None,
    ) -> Tensor:
        """The bridge hands numbers on as inputs_embeds, whole ones as input_ids; both are inputs of the network."""
        if attention_mask is not None:
            raise AnchorheadError("attention_mask=: who sees whom is part of the network; leave it out")
        given = torch.as_tensor(input_ids if inputs_embeds is None else inputs_embeds)
        given = given.to(self.tokens_out.weight)
        with stated_arithmetic(given.device):
            return self._run(given)

    def _run(self, given: Tensor) -> Tensor:
        if given.dim() == 3 and given.shape[-1] == self.width:
            self._check_stream(given)
            batch, stream = given.shape[:1], given
        else:
            x = given if self.token_axis else given.unsqueeze(-2)
            self._check(x)
            batch = x.shape[:-2]
            stream = self.tokens_in(x.reshape(-1, *x.shape[-2:]))
        for layer in self.layers:
            (stream,) = layer(stream)
        y = self.tokens_out(stream)[:, self._leaving(stream.shape[1])]
        y = y.reshape(*batch, *y.shape[1:])
        return y if self.token_axis else y.squeeze(-2)

    def _leaving(self, tokens: int) -> slice:
        counts = _counts(self.start, tokens)
        first = sum(counts[kind] for kind in KINDS[: KINDS.index(self.kind)])
        return slice(first, first + counts[self.kind])

    def _check(self, x: Tensor) -> None:
        tokens, inputs = self.input_shape
        if x.dim() < 2 or x.shape[-1] != inputs or (tokens is not None and x.shape[-2] != tokens):
            shape = f"(..., {tokens or 'tokens'}, {inputs})" if self.token_axis else f"(..., {inputs})"
            given = tuple(x.shape) if self.token_axis else tuple(x.shape[:-2] + x.shape[-1:])
            raise AnchorheadError(
                f"an input of shape {given}: needed is {shape}, or a residual stream (batch, all tokens, {self.width})"
            )

    def _check_stream(self, stream: Tensor) -> None:
        tokens, exactly, least = stream.shape[1], self.start.tokens, self.start.registers + self.start.states
        if tokens < least or (exactly is not None and tokens != exactly):
            needed = f"{least} registers and states, behind any inputs" if exactly is None else str(exactly)
            raise AnchorheadError(f"a residual stream of {tokens} tokens: needed are {needed}")


class LensEmbed(nn.Module):
    """Output token i is x_source(i) W_i + b_i, (..., inputs) to (..., width); then registers and states, constants."""

    def __init__(self, embed: Embed, layout: LensLayout) -> None:
        super().__init__()
        parts = [part for part in (embed.registers, embed.states) if part is not None]
        constants = np.concatenate(parts) if parts else np.zeros((0, embed.weight.shape[-2]), embed.weight.dtype)
        self.weight = self._wide(np.swapaxes(embed.weight, -1, -2), layout)
        self.bias = self._wide(embed.bias, layout)
        # the bridge's state_dict keeps what is called weight or bias, and nothing else
        self.constants = nn.ParameterDict({"weight": self._wide(constants, layout)})
        self.source: Tensor | None
        self.register_buffer("source", None if embed.source is None else torch.from_numpy(np.array(embed.source)))

    def forward(self, x: Tensor) -> Tensor:
        x = x if self.source is None else x.index_select(1, self.source)
        if self.weight.dim() == 2:
            tokens = torch.matmul(x, self.weight) + self.bias
        else:
            tokens = torch.einsum("bni,nio->bno", x, self.weight) + self.bias
        return torch.cat([tokens, self.constants["weight"].expand(len(x), -1, -1)], 1)

    @staticmethod
    def _wide(array: Float[np.ndarray, "... features"], layout: LensLayout) -> nn.Parameter:
        """With zeros at the places that later blocks write."""
        fresh = (0, layout.width - array.shape[-1])
        return nn.Parameter(torch.from_numpy(np.pad(array, [(0, 0)] * (array.ndim - 1) + [fresh])))


class LensBlock(nn.Module):
    """stream + attention(stream)."""

    def __init__(self, weights: BlockWeights, layout: LensLayout, start: Stream) -> None:
        super().__init__()
        self.attn = LensAttention(weights, layout, start)

    def forward(self, hidden_states: Tensor) -> tuple[Tensor]:
        read, _ = self.attn(hidden_states)
        return (hidden_states + read,)


class LensAttention(nn.Module):
    """o(softmax(q k^T + mask) v), head by head, with a mask for each head."""

    def __init__(self, weights: BlockWeights, layout: LensLayout, start: Stream) -> None:
        super().__init__()
        self.heads, self.size, self.start = layout.heads, layout.head_size, start
        for name, weight in (("q", weights.query), ("k", weights.key), ("v", weights.value)):
            self.add_module(name, _linear(weight, np.zeros(len(weight), weight.dtype)))
        self.o = _linear(weights.output, weights.bias)
        self.sights = tuple(dict.fromkeys(weights.sights))
        which = torch.tensor([self.sights.index(sight) for sight in weights.sights])
        self.which: Tensor
        self.register_buffer("which", which, persistent=False)

    def forward(
        self,
        hidden_states: Tensor,
        scored: Hook = lambda scores: scores,
        weighed: Hook = lambda pattern: pattern,
        projected: Hook | None = None,
    ) -> tuple[Tensor, Tensor]:
        """What is added to the stream, and the attention weights.

        scored, weighed  called with the scores, -inf where a token is not seen, and with the attention weights
        projected        in place of the output map
        """
        batch, tokens, _ = hidden_states.shape
        if batch * self.heads * tokens**2 > MAX_PATTERN:
            raise AnchorheadError(
                f"{batch} inputs of {tokens} tokens (registers and states included) have {batch} x {self.heads} x "
                f"{tokens} x {tokens} attention weights in a block: at most {MAX_PATTERN:,}. Give fewer at a time"
            )
        q, k, v = (self._split(getattr(self, name)(hidden_states)) for name in ("q", "k", "v"))
        seen = self.seen(tokens)
        scores = scored(torch.matmul(q, k.mT).masked_fill(~seen, -torch.inf))
        sees_something = seen.any(-1, keepdim=True)
        pattern = torch.softmax(scores.masked_fill(~sees_something, 0.0), -1).masked_fill(~sees_something, 0.0)
        pattern = weighed(pattern)
        z = torch.matmul(pattern, v).transpose(1, 2).flatten(2)
        return (projected or self.o)(z), pattern

    def seen(self, tokens: int) -> Bool[Tensor, "heads tokens tokens"]:
        """For each head, whether token i (row) sees token k (column)."""
        counts = _counts(self.start, tokens)
        masks = torch.stack([visible(sight, counts) for sight in self.sights])
        return masks.to(self.which.device)[self.which]

    def _split(self, x: Float[Tensor, "batch tokens headsize"]) -> Float[Tensor, "batch heads tokens size"]:
        return x.unflatten(-1, (self.heads, self.size)).transpose(1, 2)


def visible(sight: Sight, counts: Mapping[Kind, int]) -> Bool[Tensor, "tokens tokens"]:
    """Whether token i (row) sees token k (column), for so many tokens of each kind."""

    def block(asking: Kind, seen: Kind) -> np.ndarray:
        i, j = np.ogrid[: counts[asking], : counts[seen]]
        if asking not in sight.asking:
            found = False
        elif sight.layer is None:
            found = (asking == seen) & (i == j)
        else:
            found = sight.layer.sees_token(asking, i, seen, j)
        return np.broadcast_to(found, (counts[asking], counts[seen]))

    return torch.from_numpy(np.block([[block(asking, seen) for seen in KINDS] for asking in KINDS]))


def _counts(start: Stream, tokens: int) -> dict[Kind, int]:
    """How many there are of each kind among so many tokens, registers and states included."""
    return start.count(tokens - start.registers - start.states)


def _linear(weight: np.ndarray, bias: np.ndarray) -> nn.Linear:
    linear = nn.Linear(1, 1, device="meta")
    linear.out_features, linear.in_features = weight.shape
    linear.weight, linear.bias = (nn.Parameter(torch.from_numpy(np.array(one))) for one in (weight, bias))
    return linear
