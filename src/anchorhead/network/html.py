"""A network as notebooks show it: layers, heads, sizes, certificate, and a small drawing. Nothing takes long."""

from __future__ import annotations

from typing import Any

import numpy as np

from anchorhead.as_html import Markup, block, curve, flow, folded, shown, table
from anchorhead.decimals import counted, shortened
from anchorhead.network.attention import Attention
from anchorhead.network.chain import Placed, placed
from anchorhead.network.network import Layer, Network
from anchorhead.network.repeat import Repeat
from anchorhead.network.stream import Stream

MAX_LABELS, LONGEST_LABEL = 3, 80
POINTS, MAX_PARAMETERS = 121, 100_000
"""A function of one number is drawn through so many points, unless the network is large."""


def network_html(network: Network) -> str:
    certificate = network.certificate
    kind = "" if certificate is None else certificate.kind
    known = "" if certificate is None else f", {kind} within {certificate.bound:.3g}"
    name = type(network).__name__
    title = (
        f"{name}: {counted(len(network.layers), 'layer')}, {network.parameters:,} parameters, {network.dtype}{known}"
    )
    return block(
        title,
        "" if certificate is None else certificate.target,
        _picture(network),
        table(("", "layer", "tokens that leave it", "features", "heads"), map(_row, placed(network.layers))),
        "" if certificate is None else folded("certificate", shown(certificate)),
        kind=kind,
    )


def _row(one: Placed) -> tuple[Any, ...]:
    if isinstance(one.layer, Repeat):
        return one.number, f"Repeat {counted(one.layer.times, 'time')}", "", "", ""
    return one.number, type(one.layer).__name__, _tokens(one.leaves), one.leaves.width, _heads(one.layer)


def _tokens(stream: Stream) -> str:
    inputs = "any number of inputs" if stream.inputs is None else counted(stream.inputs, "input")
    others = [(stream.registers, "register"), (stream.states, "state")]
    return ", ".join([*([inputs] if stream.inputs != 0 else []), *(counted(n, name) for n, name in others if n)])


def _heads(layer: Layer) -> str:
    if not isinstance(layer, Attention):
        return ""
    labels = [shortened(label, LONGEST_LABEL) for label in layer.labels or ()]
    more = [f"and {len(labels) - MAX_LABELS:,} more"] if len(labels) > MAX_LABELS else []
    return "\n".join([f"{layer.heads:,}: {labels[0]}", *labels[1:MAX_LABELS], *more])


def _picture(network: Network) -> Markup:
    """The first output over the box, of one number; else the layers in a row."""
    certificate = network.certificate
    one = (network.embed.tokens, network.embed.inputs) == (1, 1) and network.parameters <= MAX_PARAMETERS
    if certificate is None or not one:
        return flow("layers, with a dot for each head", [_box(one.layer) for one in placed(network.layers)])
    low, high = float(certificate.on.low.min()), float(certificate.on.high.max())
    x = np.linspace(low, high, POINTS)
    y = network(x.reshape(-1, 1, 1) if network.token_axis else x[:, None], outside="ignore")
    return curve("the network's output", x.tolist(), np.asarray(y, np.float64).reshape(POINTS, -1)[:, 0].tolist())


def _box(layer: Layer) -> tuple[str, int]:
    if isinstance(layer, Repeat):
        return f"{counted(layer.times, 'time')}:", 0
    return type(layer).__name__, layer.heads if isinstance(layer, Attention) else 0
