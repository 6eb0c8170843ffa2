"""What pictures of networks with several inputs need to know of their programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorhead.certificate import Certificate
from anchorhead.errors import AnchorheadError
from anchorhead.language.entries import Entries
from anchorhead.language.program import Program
from anchorhead.language.steps import Opaque
from anchorhead.language.targets.opaque_several import CallableSeveral
from anchorhead.network import Network

OF_SEVERAL = ("mlp", "grid", "expressions", "opaque several")
"""Constructions of networks whose function is drawn so."""


@dataclass(frozen=True, eq=False)
class SeveralTarget:
    """values: from inputs (..., shape) to (..., outputs), flattened; box: the ends of the inputs, of that shape."""

    text: str
    named: bool
    names: tuple[str, ...]
    values: Callable[[np.ndarray], np.ndarray]
    box: tuple[np.ndarray, np.ndarray]
    outputs: int
    certificate: Certificate

    @classmethod
    def of(cls, network: Network, function: Callable[..., Any] | None = None) -> SeveralTarget:
        """The target of a converted network, or of one that approximates a function of several variables.

        function   the callable, where the network was made from one: a network does not keep it
        """
        program, certificate = network.program, network.certificate
        if program is None or certificate is None or network.construction not in OF_SEVERAL:
            raise AnchorheadError("a network without its program or its certificate cannot be plotted")
        shape = (network.embed.inputs,) if not network.token_axis else (network.embed.tokens or 1, network.embed.inputs)
        box = certificate.on.broadcast_to(shape)
        plain = network.construction == "mlp" and network.lowered is program and not program.title
        out = program.output_shape
        return cls(
            certificate.target,
            not plain,
            _names(program, box.low.size),
            _values(network, program, function, len(shape)),
            (box.low, box.high),
            (out.tokens or 1) * out.width,
            certificate,
        )


def _names(program: Program, inputs: int) -> tuple[str, ...]:
    """What the entries of the input are called."""
    names = program.features
    if not all(names):
        return tuple(f"input {i}" for i in range(inputs))
    tokens = inputs // len(names)
    return names if tokens == 1 else tuple(f"x[{i},{j}]" for i in range(tokens) for j in range(len(names)))


def _values(
    network: Network, program: Program, function: Callable[..., Any] | None, axes: int
) -> Callable[[np.ndarray], np.ndarray]:
    """Of inputs (..., shape), that have so many axes, to (..., outputs)."""
    if network.construction == "opaque several":
        values = _callable_of(network, Entries.of(program), function).values
        return lambda x: values(x.reshape(*x.shape[: x.ndim - axes], -1))
    return lambda x: program(x).reshape(*x.shape[: x.ndim - axes], -1)


def _callable_of(network: Network, known: Entries, function: Callable[..., Any] | None) -> CallableSeveral:
    """The callable, if it is the one that the network was made from."""
    if function is None:
        raise AnchorheadError(
            "this network approximates a callable, which it does not keep: give it, as in "
            'ah.plot(net, "f.png", function=f)'
        )
    tokens = network.embed.tokens if network.token_axis else None
    found = CallableSeveral(function, np.array(known.low), np.array(known.high), tokens, known.variables)
    first = known.functions[0]
    if not isinstance(first, Opaque) or found.digest != first.digest:
        raise AnchorheadError(f"function={found.name} is not the one that the network approximates: its values differ")
    return found
