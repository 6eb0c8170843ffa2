"""How a network is called: what it is given is looked at, and runs in blocks of rows.

Where the certificate covers it that is the direct evaluation, otherwise the layers as they are written. Tensors of
weights are made once for each device.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from anchorhead.errors import AnchorheadError
from anchorhead.network.chain import placed
from anchorhead.network.direct import DirectModule, Refused, WithGradients, is_traced, planned, stored_series
from anchorhead.network.guard import Guard, Outside
from anchorhead.network.modules.network import NetworkModule, build
from anchorhead.network.stated_arithmetic import lasting_tensors
from anchorhead.network.stream import Kind, Stream
from anchorhead.network.threads import threads_for

if TYPE_CHECKING:
    from anchorhead.network.network import Network

MEMORY_CAP = 256 * 2**20
"""Bytes that the logits of one block may take when a network is called."""


class Calls:
    """Those of one network."""

    def __init__(self, network: Network) -> None:
        self.layers, self.token_axis = network.layers, network.token_axis
        self.output: Kind = network.output
        self.dtype, self.certificate = network.dtype, network.certificate
        self.derivation = network.derivation
        self.guard = Guard(network.embed, network.token_axis, network.certificate, network.program)
        self.size = np.dtype(self.dtype).itemsize
        self.modules: dict[torch.device, NetworkModule] = {}
        self.lowered: dict[torch.device, DirectModule | None] = {}

    def run(self, x: Any, outside: Outside, evaluation: str | None = None) -> Any:
        """What leaves the network: a tensor for a tensor, an array for anything else."""
        tensor, inside = self.guard.look(x, outside)
        direct = self.direct(tensor.device) if inside and evaluation != "plain" and not is_traced() else None
        axes = 2 if self.token_axis else 1
        flat = tensor if tensor.dim() == axes + 1 else tensor.reshape(-1, *tensor.shape[-axes:])
        if direct is None:
            y = self._in_blocks(flat)
        else:
            with threads_for(flat.shape[0] * direct.numbers):
                if tensor.requires_grad and torch.is_grad_enabled():
                    y = WithGradients.apply(direct, self.plain(tensor.device), flat)
                else:
                    y = direct(flat)
            y = y.unflatten(1, direct.shape) if self.token_axis else y
        y = y if flat is tensor else y.reshape(*tensor.shape[:-axes], *y.shape[1:])
        return y if isinstance(x, Tensor) else y.detach().cpu().numpy()

    def _in_blocks(self, x: Tensor) -> Tensor:
        """The layers as they are written, of inputs that are a batch."""
        module, numbers = self.plain(x.device), self._numbers_a_row(x)
        rows = max(1, MEMORY_CAP // (self.size * numbers))
        with threads_for(x.shape[0] * numbers):
            return module(x) if x.shape[0] <= rows else torch.cat([module(part) for part in x.split(rows)])

    def path(self, x: Any, outside: Outside) -> Any:
        """What would leave the network after 0, 1, ... steps of its Repeat: (..., steps + 1, tokens, outputs)."""
        tensor = self.guard.look(x, outside)[0]
        with threads_for(self.numbers(tensor)), torch.no_grad():
            found = self.plain(tensor.device).path(tensor)
        return found if isinstance(x, Tensor) else found.cpu().numpy()

    def attention(self, x: Any) -> list[Any]:
        """See Network.attention."""
        tensor = self.guard.look(x, "ignore")[0]
        tensor = tensor if self.token_axis else tensor.unsqueeze(-2)
        module = self.plain(tensor.device)
        flat = tensor.reshape(-1, *tensor.shape[-2:])
        numbers = len(flat) * module.recorded(flat.shape[-2])
        if numbers * self.size > 16 * MEMORY_CAP:
            raise AnchorheadError(
                f"the attention weights of {len(flat):,} inputs of {flat.shape[-2]:,} tokens are {numbers:,} "
                "numbers: ask for fewer or shorter inputs"
            )
        record: list[Tensor] = []
        with threads_for(self.numbers(tensor)), torch.no_grad():
            module(flat if self.token_axis else flat.squeeze(-2), record)
        maps = [m if m.dim() == 4 else m.expand(len(flat), *m.shape) for m in record]
        maps = [m.reshape(*tensor.shape[:-2], *m.shape[1:]) for m in maps]
        return maps if isinstance(x, Tensor) else [m.cpu().numpy() for m in maps]

    def direct(self, device: torch.device) -> DirectModule | None:
        """The steps of the direct evaluation, where the certificate covers it and the layers are such as have one."""
        if device not in self.lowered:
            self.lowered[device] = None
            if self.certificate is not None and self.guard.has_direct:
                with lasting_tensors(), suppress(Refused):  # of a certificate that other layers were given
                    series = stored_series({} if self.derivation is None else self.derivation.data)
                    self.lowered[device] = planned(self.layers, self.output, self.dtype).module(device, series)
        return self.lowered[device]

    def plain(self, device: torch.device) -> NetworkModule:
        """The layers as they are written."""
        if device not in self.modules:
            with lasting_tensors():
                module = build(self.layers, self.output, self.token_axis).to(device).requires_grad_(False)
                module.take_shortcuts()
            for attention in module.attentions():
                attention.budget = MEMORY_CAP // self.size
            self.modules[device] = module
        return self.modules[device]

    def numbers(self, tensor: Tensor) -> int:
        """About how many numbers a run on these inputs handles at the widest place."""
        return tensor.shape[: -2 if self.token_axis else -1].numel() * self._numbers_a_row(tensor)

    def _numbers_a_row(self, tensor: Tensor) -> int:
        """About how many numbers one element of a batch of inputs needs at the widest place."""
        tokens = tensor.shape[-2] if self.token_axis else 1
        activations = max(sum(s.count(tokens).values()) * s.width for s in self._streams)
        logits = max((attention.logits(tokens) for attention in self.plain(tensor.device).attentions()), default=0)
        return max(activations, 2 * logits)

    @cached_property
    def _streams(self) -> tuple[Stream, ...]:
        """What leaves each layer, those inside a Repeat included."""
        return tuple(one.leaves for one in placed(self.layers))
