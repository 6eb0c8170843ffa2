"""The independent check: does a network's certificate follow from its weights and its stored target?"""

from __future__ import annotations

from pathlib import Path

from anchorhead.certificate import Certificate
from anchorhead.errors import CertificateError
from anchorhead.network import Network
from anchorhead.network.files import load
from anchorhead.proof import ball_ramp
from anchorhead.targets import ramp

CHECKERS = {ramp.KIND: ball_ramp.check_ramp}


def check(thing: Network | str | Path) -> Certificate:
    """Establishes a certificate again, by ball arithmetic, from the weights and the target; returns it.

    None of the stored numbers is trusted but the bound that is to be justified. Raises CertificateError where it is not.
    """
    network = thing if isinstance(thing, Network) else load(thing)
    certificate, target = network.certificate, network.target
    if certificate is None or target is None:
        missing = "certificate" if certificate is None else "target"
        raise CertificateError(f"the network has no {missing}: there is nothing to check")
    if certificate.kind != "proven":
        raise CertificateError(f"the certificate says {certificate.kind!r}: only proven bounds can be checked")
    if target.kind not in CHECKERS:
        raise CertificateError(f"no checker for targets of the kind {target.kind!r}: {', '.join(CHECKERS)}")
    CHECKERS[target.kind](network, target, certificate)
    return certificate
