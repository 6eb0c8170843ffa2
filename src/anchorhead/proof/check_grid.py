"""Checks the bound of a head over a grid again, from the stored weights and the stored target alone."""

from __future__ import annotations

from functools import partial

import numpy as np

from anchorhead.certificate import Certificate
from anchorhead.errors import AnchorheadError, CertificateError
from anchorhead.heads.grid_atom import GridAtom
from anchorhead.network import Network, TargetRecord
from anchorhead.proof.arithmetic import Arithmetic, arithmetic_of
from anchorhead.proof.grid import LIMIT_S, prove_grid
from anchorhead.proof.grid_form import grid_form
from anchorhead.proof.uniform_grid import evenly_placed, prove_uniform_grid
from anchorhead.targets.several import SeveralVariables

EVEN_S = 20.0
"""How long the second proof may take for the paper's placement: it has many anchors, and mostly rests on the first."""


def check_grid(network: Network, record: TargetRecord, certificate: Certificate) -> None:
    """Returns if the bound is justified, raises CertificateError if not."""
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
    if certificate.norm != "sup" or certificate.excluded:
        raise CertificateError("the certificate of a grid bounds the largest error, and leaves nothing out")
    bound = _proven(form.atom, target, arithmetic_of(network.dtype), certificate.bound)
    if not bound <= certificate.bound:
        raise CertificateError(f"the bound {certificate.bound:.4g} is not justified: {bound:.4g} is what follows")


def _proven(atom: GridAtom, target: SeveralVariables, arithmetic: Arithmetic, wanted: float) -> float:
    """The smaller of the two bounds that apply: by the modulus of continuity, for the paper's placement, which is
    quick and holds for kinks as well; and by analytic functions, for solved values."""
    given = (atom, target.expressions, target.variables, target.low, target.high, arithmetic)
    bounds, reasons = [], []
    limit_s = EVEN_S if evenly_placed(atom, target.low, target.high) else LIMIT_S
    for prove in (prove_uniform_grid, partial(prove_grid, limit_s=limit_s)):
        try:
            bounds.append(prove(*given).total)
        except AnchorheadError as error:
            reasons.append(str(error))
        if bounds and bounds[-1] <= wanted:
            return bounds[-1]
    if not bounds:
        raise CertificateError(f"the stored network does not prove its bound: {'; '.join(reasons)}")
    return min(bounds)
