"""What pictures of networks with several inputs need to know of their targets, whatever kind these are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorhead.certificate import Certificate
from anchorhead.errors import AnchorheadError
from anchorhead.network import Network
from anchorhead.proof.check_callable import callable_of
from anchorhead.targets import expressions, mlp, opaque_several, several
from anchorhead.targets.mlp import Mlp
from anchorhead.targets.several import SeveralVariables

KINDS = (mlp.KIND, several.KIND, expressions.KIND, opaque_several.KIND)
_EXAMPLE = 'ah.plot(net, "f.png", function=f)'


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
        record, certificate = network.target, network.certificate
        if record is None or certificate is None or record.kind not in KINDS:
            raise AnchorheadError("a network without its target or its certificate cannot be plotted")
        shape = (network.embed.inputs,) if not network.token_axis else (network.embed.tokens or 1, network.embed.inputs)
        box = certificate.on.broadcast_to(shape)
        if record.kind == mlp.KIND:
            target = Mlp.from_record(record)
            names = target.variables or tuple(f"input {i}" for i in range(target.inputs))
            known = bool(target.name), names, _flattened(target.values, len(shape)), target.outputs
        else:
            target = (
                callable_of(network, function, _EXAMPLE) if record.kind == opaque_several.KIND else _several_of(network)
            )
            values = target.values
            known = (
                True,
                target.variables,
                lambda x: values(x.reshape(*x.shape[: x.ndim - len(shape)], -1)),
                target.outputs,
            )
        named, names, function, outputs = known
        return cls(str(target), named, names, function, (box.low, box.high), outputs, certificate)


def _several_of(network: Network) -> SeveralVariables:
    if network.target is None:
        raise AnchorheadError("a network without its target cannot be plotted")
    return SeveralVariables.from_record(network.target)


def _flattened(values: Callable[[np.ndarray], np.ndarray], axes: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: values(x).reshape(*x.shape[: x.ndim - axes], -1)
