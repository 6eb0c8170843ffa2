"""The check of a learner's certificate: steps are read from stored weights and bounded again for the stated prompts."""

from __future__ import annotations

import numpy as np

from anchorhead.certificate import Certificate
from anchorhead.errors import CertificateError
from anchorhead.network import Network
from anchorhead.proof.arithmetic import require_model
from anchorhead.proof.descent_proofs import box_statement, proof_of
from anchorhead.proof.statement import Statement
from anchorhead.targets.descent import Descent
from anchorhead.targets.record import TargetRecord


def check_descent(network: Network, record: TargetRecord, certificate: Certificate) -> Statement:
    """What follows for every prompt of the certificate's box; raises CertificateError if nothing does."""
    target = Descent.from_record(record)
    if certificate.on.low.ndim > 1:
        raise CertificateError(
            "the certificate is for one prompt: such certificates are established by net.certify(prompt), which reads "
            "the stored weights anew; ah.check is for certificates of boxes of prompts"
        )
    ends = certificate.on.broadcast_to((target.features + 2,)).magnitude
    if not ends[target.features] <= 1:
        raise CertificateError("the box allows signs other than 1 and -1: no prompt has them")
    proof = proof_of(target)
    x = ends[: target.weights]
    found = proof.bound_for_box(proof.read(network, target), target, x, float(ends[-1]), require_model(network.dtype))
    if not np.isfinite(found.total):
        raise CertificateError("nothing follows for all prompts of the box")
    return box_statement(target, found, proof.METHOD)
