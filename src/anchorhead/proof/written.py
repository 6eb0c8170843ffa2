"""That the program a network was built of is the one that was written: the verifier's proof, for the check."""

from __future__ import annotations

import numpy as np

from anchorhead.errors import CertificateError
from anchorhead.language.canonical import to_data
from anchorhead.language.symbolic import formula
from anchorhead.network import Network
from anchorhead.verify.equality.compare import difference
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.files import Stored
from anchorhead.verify.program import read_lowered, read_program

NEGLIGIBLE = 0.01
"""Of the bound: numbers of the form that was built are rounded, and stand for others within their radii."""


def require_as_written(network: Network) -> None:
    """Refuses a network whose program is not the function that its derivation says it was built of."""
    derivation, certificate, written = network.derivation, network.certificate, network.program
    if derivation is None or derivation.lowered is None or certificate is None or written is None:
        return
    (program, arrays), (lowered, others) = to_data(written), to_data(derivation.lowered)
    tensors = {f"program.{name}": array for name, array in arrays.items()}
    tensors |= {f"lowered.{name}": array for name, array in others.items()}
    stored = Stored({}, program, {"lowered": lowered}, None, tensors)
    box = certificate.on.broadcast_to((network.embed.tokens or 1, network.embed.inputs))
    low, high = (np.array(end, np.float64) for end in (box.low, box.high))
    try:
        one, other = read_program(stored), read_lowered(stored)
        off = 0.0 if other is None else float(difference(one, other, low, high).max())
    except NotVerified as error:
        raise CertificateError(f"{formula(written)} and what the network was built of: {error}") from error
    if not off <= NEGLIGIBLE * certificate.bound:
        raise CertificateError(
            f"the program says {formula(written)}, and what the network was built of was not found to be the same: "
            f"they may be {off:.3g} apart"
        )
