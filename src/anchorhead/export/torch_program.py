"""A network as a program of torch.export: every operation written out, any batch size, weights inside."""

from __future__ import annotations

import io

import torch

from anchorhead.errors import AnchorheadError
from anchorhead.export.carried import texts
from anchorhead.network import Network
from anchorhead.network.repeat import ran

MAX_STEPS = 500
"""How many layers a program may run: a Repeat is written out, step by step. Tracing takes 0.2 to 0.5 s a layer, and
loading about half of that."""
EXAMPLE = (3, 6)
"""The batch and, where any number will do, the tokens of the input with which a program is traced."""


def make(network: Network) -> torch.export.ExportedProgram:
    """The program of x (batch, tokens, inputs), without a token axis (batch, inputs): any batch of 1 or more; any
    number of tokens, of 2 or more, where the network takes any."""
    steps = ran(network.layers)
    if steps > MAX_STEPS:
        raise AnchorheadError(
            f"a program of torch.export writes out all {steps:,} layers that this network runs, at most {MAX_STEPS:,} "
            'are allowed: export it to="onnx", where repeated layers are a loop'
        )
    batch, tokens = EXAMPLE
    free = {0: torch.export.Dim("batch", min=1)}
    shape = (batch, network.embed.inputs)
    if network.token_axis:
        shape = (batch, network.embed.tokens or tokens, network.embed.inputs)
        if network.embed.tokens is None:
            free[1] = torch.export.Dim("tokens", min=2)
    x = torch.zeros(shape, dtype=getattr(torch, network.dtype))
    module = network.module().requires_grad_(False)
    return torch.export.export(module, (x,), dynamic_shapes=(free,))


def to_bytes(program: torch.export.ExportedProgram, network: Network) -> bytes:
    """The .pt2 archive, with what travels along as extra files."""
    held = io.BytesIO()
    torch.export.save(program, held, extra_files=texts(network))
    return held.getvalue()
