"""Checks the bound of a head over a grid again, from the stored weights and the stored target alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from anchorhead.certificate import Certificate
from anchorhead.errors import AnchorheadError, CertificateError
from anchorhead.heads.grid_atom import GridAtom
from anchorhead.network import Network
from anchorhead.proof import uniform_grid
from anchorhead.proof.arithmetic import Arithmetic, arithmetic_of
from anchorhead.proof.grid import prove_grid
from anchorhead.proof.grid_form import grid_form
from anchorhead.proof.overflow import require_room
from anchorhead.proof.statement import Statement, error_of
from anchorhead.targets.record import TargetRecord
from anchorhead.targets.several import SeveralVariables


def check_grid(network: Network, record: TargetRecord, certificate: Certificate) -> Statement:
    """What follows from the stored weights; raises CertificateError if nothing does."""
    try:
        target = SeveralVariables.from_record(record)
    except AnchorheadError as error:
        raise CertificateError(f"the stored target cannot be read: {error}") from error
    form = grid_form(network)
    if form.axes != tuple(range(len(target.variables))) or form.hidden.any() or form.atom.outputs != target.outputs:
        raise CertificateError(
            f"the network has {form.atom.variables} variables and {form.atom.outputs} outputs, the target "
            f"{len(target.variables)} and {target.outputs}"
        )
    box = certificate.on.broadcast_to((network.embed.tokens or 1, network.embed.inputs))
    low, high = (np.asarray(end, np.float64).reshape(-1) for end in (box.low, box.high))
    if tuple(low) != target.low or tuple(high) != target.high:
        raise CertificateError(f"the certificate is for {certificate.on}, the target for {target}")
    require_room(network, box)
    found = _stated(form.atom, target, arithmetic_of(network.dtype), certificate.method == uniform_grid.METHOD)
    return replace(found, error_at=error_of(network, target.values))


def _stated(atom: GridAtom, target: SeveralVariables, arithmetic: Arithmetic, uniform: bool) -> Statement:
    """By the modulus of continuity, for the paper's placement; or by analytic functions, for solved values."""
    given = (atom, target.expressions, target.variables, target.low, target.high, arithmetic)
    try:
        if uniform:
            return uniform_grid.prove_uniform_grid(*given).statement(atom, target)
        return prove_grid(*given).statement(str(target))
    except AnchorheadError as error:
        raise CertificateError(f"the stored network does not prove its bound: {error}") from error
