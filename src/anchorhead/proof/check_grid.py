"""Checks the bound of a head over a grid again, from the stored weights and the stored target alone."""

from __future__ import annotations

import numpy as np

from anchorhead.certificate import Certificate
from anchorhead.errors import AnchorheadError, CertificateError
from anchorhead.network import Network, TargetRecord
from anchorhead.proof.arithmetic import arithmetic_of
from anchorhead.proof.grid import prove_grid
from anchorhead.proof.grid_form import grid_form
from anchorhead.targets.several import SeveralVariables


def check_grid(network: Network, record: TargetRecord, certificate: Certificate) -> None:
    """Returns if the bound is justified, raises CertificateError if not."""
    try:
        target = SeveralVariables.from_record(record)
    except AnchorheadError as error:
        raise CertificateError(f"the stored target cannot be read: {error}") from error
    form = grid_form(network)
    if form.atom.variables != len(target.variables) or form.atom.outputs != target.outputs:
        raise CertificateError(
            f"the network has {form.atom.variables} variables and {form.atom.outputs} outputs, the target "
            f"{len(target.variables)} and {target.outputs}"
        )
    box = certificate.on.broadcast_to((network.embed.tokens or 1, network.embed.inputs))
    low, high = (np.asarray(end, np.float64).reshape(-1) for end in (box.low, box.high))
    if tuple(low) != target.low or tuple(high) != target.high:
        raise CertificateError(f"the certificate is for {certificate.on}, the target for {target}")
    if certificate.norm != "sup" or certificate.excluded:
        raise CertificateError("the certificate of a grid bounds the largest error, and leaves nothing out")
    try:
        bound = prove_grid(
            form.atom, target.expressions, target.variables, target.low, target.high, arithmetic_of(network.dtype)
        )
    except AnchorheadError as error:
        raise CertificateError(f"the stored network does not prove its bound: {error}") from error
    if not bound.total <= certificate.bound:
        raise CertificateError(f"the bound {certificate.bound:.4g} is not justified: {bound.total:.4g} is what follows")
