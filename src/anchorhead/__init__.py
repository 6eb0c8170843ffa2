"""Anchorhead: continuous functions as attention-only networks, with the weights written down and the error proven."""

from anchorhead.certificate import Certificate
from anchorhead.constructions.truncated_linear import truncated_linear
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError, CertificateError, OutsideWarning
from anchorhead.network import Network
from anchorhead.network.files import load
from anchorhead.proof.check import check

__version__ = "0.1.0"

__all__ = [
    "AnchorheadError",
    "Box",
    "Certificate",
    "CertificateError",
    "Network",
    "OutsideWarning",
    "check",
    "load",
    "truncated_linear",
]
