"""What pictures of networks with several inputs need to know of their targets, whatever kind these are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorhead.certificate import Certificate
from anchorhead.errors import AnchorheadError
from anchorhead.network import Network
from anchorhead.targets import mlp, opaque_several, several
from anchorhead.targets import several_expressions as expressions
from anchorhead.targets.mlp import Mlp
from anchorhead.targets.opaque_several import CallableSeveral
from anchorhead.targets.record import TargetRecord
from anchorhead.targets.several import SeveralVariables

KINDS = (mlp.KIND, several.KIND, expressions.KIND, opaque_several.KIND)


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
                _callable_of(network, record, function)
                if record.kind == opaque_several.KIND
                else SeveralVariables.from_record(record)
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


def _callable_of(network: Network, record: TargetRecord, function: Callable[..., Any] | None) -> CallableSeveral:
    """The callable, if it is the one that the network was made from."""
    if function is None:
        raise AnchorheadError(
            "this network approximates a callable, which it does not keep: give it, as in "
            'ah.plot(net, "f.png", function=f)'
        )
    low, high = (np.array(record.data[end], np.float64) for end in ("low", "high"))
    tokens = network.embed.tokens if network.token_axis else None
    found = CallableSeveral(function, low, high, tokens, tuple(record.data["variables"]))
    if found.record().data["opaque"] != record.data["opaque"]:
        raise AnchorheadError(f"function={found.name} is not the one that the network approximates: its values differ")
    return found


def _flattened(values: Callable[[np.ndarray], np.ndarray], axes: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: values(x).reshape(*x.shape[: x.ndim - axes], -1)
