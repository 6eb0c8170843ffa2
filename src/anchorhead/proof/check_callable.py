"""Checks the bound of a head over a grid for a callable again: from the stored weights, and the callable given again.

The Lipschitz constant is what the user vouched for; it is checked against values, and the bound holds given it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from anchorhead.certificate import Certificate
from anchorhead.errors import AnchorheadError, CertificateError
from anchorhead.heads.grid_atom import GridAtom
from anchorhead.network import Network, TargetRecord
from anchorhead.proof.arithmetic import Arithmetic, arithmetic_of
from anchorhead.proof.grid_cover import MOST_CELLS, cell_counts, prove_cover, steepest
from anchorhead.proof.grid_form import grid_form
from anchorhead.proof.grid_rounding import prove_grid_rounding
from anchorhead.proof.uniform_grid import evenly_placed, uniform_axes
from anchorhead.proof.uniform_grid_lipschitz import prove_uniform_lipschitz
from anchorhead.targets.lipschitz import Lipschitz
from anchorhead.targets.opaque_several import CallableSeveral

_LOOKS = 2000
_ROOMS = (0.92, 0.75, 0.6)
"""Of what the bound leaves for changes within cells, the parts tried: the smaller, the more cells."""


def callable_of(network: Network, function: Callable[..., Any] | None, example: str) -> CallableSeveral:
    """The callable, if it is the one that the network was made from; example: how to give it."""
    record = network.target
    if record is None or function is None:
        raise AnchorheadError(f"this network approximates a callable, which it does not keep: give it, as in {example}")
    data = record.data
    tokens = network.embed.tokens if network.token_axis else None
    try:
        low, high = (np.array(data[end], np.float64) for end in ("low", "high"))
        names, digest = tuple(data["variables"]), data["opaque"]
    except (KeyError, TypeError, ValueError) as error:
        raise AnchorheadError(f"the stored target is not a callable of several variables: {error!r}") from error
    found = CallableSeveral(function, low, high, tokens, names)
    if found.record().data["opaque"] != digest:
        raise AnchorheadError(f"function={found.name} is not the one that the network approximates: its values differ")
    return found


def check_callable(
    network: Network, record: TargetRecord, certificate: Certificate, function: Callable[..., Any] | None
) -> None:
    """Returns if the bound is justified, raises CertificateError if not."""
    form = grid_form(network)
    try:
        target = callable_of(network, function, "ah.check(net, function=f)")
        lipschitz = _constant(record, len(target.variables))
        if form.axes != tuple(range(len(target.variables))) or form.hidden.any() or form.atom.outputs != target.outputs:
            raise CertificateError(
                f"the network has {form.atom.variables} variables and {form.atom.outputs} outputs, the function "
                f"{len(target.variables)} and {target.outputs}"
            )
        _require_same_claim(network, target, lipschitz, certificate)
        target.check_lipschitz(lipschitz)
        bound = _proven(form.atom, target, lipschitz, arithmetic_of(network.dtype), certificate.bound)
    except CertificateError:
        raise
    except AnchorheadError as error:
        raise CertificateError(f"the bound is not established: {error}") from error
    if not bound <= certificate.bound:
        raise CertificateError(f"the bound {certificate.bound:.4g} is not justified: {bound:.4g} is what follows")


def _constant(record: TargetRecord, inputs: int) -> Lipschitz:
    given = record.data.get("lipschitz")
    if not isinstance(given, list) or not given:
        raise CertificateError("the stored target has no Lipschitz constant: nothing is proven of a callable without")
    return Lipschitz.of(given[0] if len(given) == 1 else given, inputs)


def _require_same_claim(
    network: Network, target: CallableSeveral, lipschitz: Lipschitz, certificate: Certificate
) -> None:
    """The certificate is for this box, in the sup norm, and says the constant that it rests on."""
    box = certificate.on.broadcast_to((network.embed.tokens or 1, network.embed.inputs))
    low, high = (tuple(np.asarray(end, np.float64).reshape(-1).tolist()) for end in (box.low, box.high))
    if (low, high) != (target.low, target.high):
        raise CertificateError(f"the certificate is for {certificate.on}, the function for {target.low}, {target.high}")
    if certificate.norm != "sup" or certificate.excluded:
        raise CertificateError("the certificate of a grid bounds the largest error, and leaves nothing out")
    if str(lipschitz) not in certificate.method:
        raise CertificateError(f"the target is stored with {lipschitz}, of which the certificate does not speak")


def _proven(
    atom: GridAtom, target: CallableSeveral, lipschitz: Lipschitz, arithmetic: Arithmetic, wanted: float
) -> float:
    """By the theorem for even anchors where that does; else by cells, as many as the bound asks for."""
    ends = target.low, target.high
    bound = np.inf
    if evenly_placed(atom, *ends):
        places, _ = uniform_axes(atom, *ends)
        table = target.values(np.stack(np.meshgrid(*places, indexing="ij"), axis=-1)).reshape(atom.values.shape)
        bound = prove_uniform_lipschitz(atom, table, lipschitz, *ends, arithmetic).total
        if bound <= wanted:
            return bound
    low, high = (np.array(end) for end in ends)
    rounding = prove_grid_rounding(atom, low, high, arithmetic)
    x = np.random.default_rng(1).uniform(low, high, (_LOOKS, atom.variables))
    seen = float(np.abs(atom(x).astype(np.float64) - target.values(x)).max())
    slopes, spent = steepest(atom, *ends), 0
    for part in _ROOMS:
        room = part * (wanted - 1.2 * seen - rounding)
        if not room > 0:
            break
        counts = cell_counts(lipschitz, high - low, slopes, room)
        spent += prod(counts)
        if spent > MOST_CELLS:
            break
        covered = prove_cover(atom, target.values, lipschitz, *ends, counts)
        bound = min(bound, (covered.bound + rounding) * (1 + 1e-15))
        if bound <= wanted:
            break
    return float(bound)
