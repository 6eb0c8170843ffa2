"""What pictures of networks with several inputs need to know of their targets, whatever kind these are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from anchorhead.certificate import Certificate
from anchorhead.errors import AnchorheadError
from anchorhead.network import Network
from anchorhead.targets import expressions, mlp, several
from anchorhead.targets.mlp import Mlp
from anchorhead.targets.several import SeveralVariables

KINDS = (mlp.KIND, several.KIND, expressions.KIND)


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
    def of(cls, network: Network) -> SeveralTarget:
        """The target of a converted network, or of one that approximates a function of several variables."""
        record, certificate = network.target, network.certificate
        if record is None or certificate is None or record.kind not in KINDS:
            raise AnchorheadError("a network without its target or its certificate cannot be plotted")
        shape = (network.embed.inputs,) if not network.token_axis else (network.embed.tokens or 1, network.embed.inputs)
        box = certificate.on.broadcast_to(shape)
        if record.kind == mlp.KIND:
            target = Mlp.from_record(record)
            names = tuple(f"input {i}" for i in range(target.inputs))
            known = bool(target.name), names, _flattened(target.values, len(shape)), target.outputs
        else:
            several_variables = SeveralVariables.from_record(record)
            target = several_variables

            def values(x: np.ndarray) -> np.ndarray:
                return several_variables.values(x.reshape(*x.shape[: x.ndim - len(shape)], -1))

            known = True, target.variables, values, target.outputs
        named, names, function, outputs = known
        return cls(str(target), named, names, function, (box.low, box.high), outputs, certificate)


def _flattened(values: Callable[[np.ndarray], np.ndarray], axes: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: values(x).reshape(*x.shape[: x.ndim - axes], -1)
