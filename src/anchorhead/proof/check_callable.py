"""Checks the bound of a head over a grid for a callable again: from the stored weights, and the callable given again.

The Lipschitz constant is what the user vouched for; it is checked against values, and the bound holds given it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from anchorhead.certificate import Certificate
from anchorhead.errors import AnchorheadError, CertificateError
from anchorhead.heads.grid_atom import GridAtom
from anchorhead.network import Network
from anchorhead.proof.arithmetic import Arithmetic, arithmetic_of
from anchorhead.proof.grid_cover import MOST_CELLS, prove_cover
from anchorhead.proof.grid_form import grid_form
from anchorhead.proof.grid_rounding import prove_grid_rounding
from anchorhead.proof.overflow import require_room
from anchorhead.proof.statement import Statement, error_of
from anchorhead.proof.uniform_grid import uniform_axes
from anchorhead.proof.uniform_grid_lipschitz import prove_uniform_lipschitz, uniform_lipschitz_statement
from anchorhead.targets.lipschitz import Lipschitz
from anchorhead.targets.opaque_several import CallableSeveral
from anchorhead.targets.record import TargetRecord


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
) -> Statement:
    """What follows, given the function and its constant; raises CertificateError if nothing does."""
    form = grid_form(network)
    try:
        target = callable_of(network, function, "ah.check(net, function=f)")
        lipschitz = _constant(record, len(target.variables))
        if form.axes != tuple(range(len(target.variables))) or form.hidden.any() or form.atom.outputs != target.outputs:
            raise CertificateError(
                f"the network has {form.atom.variables} variables and {form.atom.outputs} outputs, the function "
                f"{len(target.variables)} and {target.outputs}"
            )
        box = certificate.on.broadcast_to((network.embed.tokens or 1, network.embed.inputs))
        low, high = (tuple(np.asarray(end, np.float64).reshape(-1).tolist()) for end in (box.low, box.high))
        if (low, high) != (target.low, target.high):
            raise CertificateError(
                f"the certificate is for {certificate.on}, the function for {target.low}, {target.high}"
            )
        require_room(network, box)
        target.check_lipschitz(lipschitz)
        found = _stated(form.atom, target, lipschitz, arithmetic_of(network.dtype), record)
    except CertificateError:
        raise
    except AnchorheadError as error:
        raise CertificateError(f"the bound is not established: {error}") from error
    return replace(found, error_at=error_of(network, target.values))


def _constant(record: TargetRecord, inputs: int) -> Lipschitz:
    given = record.data.get("lipschitz")
    if not isinstance(given, list) or not given:
        raise CertificateError("the stored target has no Lipschitz constant: nothing is proven of a callable without")
    return Lipschitz.of(given[0] if len(given) == 1 else given, inputs)


def _stated(
    atom: GridAtom, target: CallableSeveral, lipschitz: Lipschitz, arithmetic: Arithmetic, record: TargetRecord
) -> Statement:
    """By as many cells as the proof had; without any, by the theorem for even anchors."""
    ends = target.low, target.high
    if "cells" not in record.data:
        places, _ = uniform_axes(atom, *ends)
        table = target.values(np.stack(np.meshgrid(*places, indexing="ij"), axis=-1)).reshape(atom.values.shape)
        bound = prove_uniform_lipschitz(atom, table, lipschitz, *ends, arithmetic)
        return uniform_lipschitz_statement(bound, atom, *ends, lipschitz, str(target))
    counts = record.data["cells"]
    whole = isinstance(counts, list) and all(type(count) is int and count >= 1 for count in counts)
    if not whole or len(counts) != atom.variables or prod(counts) > MOST_CELLS:
        raise CertificateError(f"the stored target names {counts!r} cells: at most {MOST_CELLS:,} in all are covered")
    low, high = (np.array(end) for end in ends)
    rounding = prove_grid_rounding(atom, low, high, arithmetic)
    covered = prove_cover(atom, target.values, lipschitz, *ends, counts)
    return covered.statement(atom, rounding, lipschitz, str(target))
