"""What a proof says of a network: all that its certificate may say, and the comparison of the two.

Builders make certificates of statements; the check proves anew, from the stored weights and the stored target, and
compares every field that a reader would rely on with what was stated then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from anchorhead.certificate import Certificate, Worst
from anchorhead.conditions import Condition
from anchorhead.decimals import round_up
from anchorhead.domain import Box
from anchorhead.errors import CertificateError
from anchorhead.network import Network
from anchorhead.proof.arithmetic import arithmetic_of, require_model

SAME = 0.01
"""Terms, and errors at a point, may differ by this share: a proof on another processor subdivides in other places."""


@dataclass(frozen=True)
class Statement:
    """The fields of a proven certificate, as a proof found them.

    total      the bound, before it is rounded up to a few digits
    worst      the largest error that the proof met
    evaluations   the ways to compute the network that the bound covers
    error_at   |network as it is computed - target| at an input, by which a `worst` is looked at again
    """

    total: float
    terms: Mapping[str, float]
    method: str
    target: str
    conditions: tuple[Condition, ...] = ()
    reference: Mapping[str, float] = field(default_factory=dict)
    worst: Worst | None = None
    evaluations: tuple[str, ...] = ("plain",)
    error_at: Callable[[np.ndarray], float] | None = None

    def certificate(self, on: Box, dtype: str) -> Certificate:
        """The certificate for the inputs of a box, in the arithmetic of a dtype that this machine keeps to."""
        return Certificate(
            kind="proven",
            bound=round_up(self.total),
            on=on,
            dtype=dtype,
            arithmetic=str(require_model(dtype)),
            terms=self.terms,
            method=self.method,
            target=self.target,
            reference=self.reference,
            conditions=self.conditions,
            worst=self.worst,
            evaluations=self.evaluations,
        )

    def require(self, certificate: Certificate) -> None:
        """Refuses a certificate that says anything else than what follows."""
        if not self.total <= certificate.bound:
            raise CertificateError(f"the bound {certificate.bound:.4g} is not justified: {self.total:.4g} follows")
        arithmetic = str(arithmetic_of(certificate.dtype))
        for name, said, follows in (
            ("target", certificate.target, self.target),
            ("method", certificate.method, self.method),
            ("arithmetic", certificate.arithmetic, arithmetic),
        ):
            if said != follows:
                raise CertificateError(f"the certificate says of its {name}: {said!r}; what is proven is {follows!r}")
        if not set(certificate.evaluations) <= set(self.evaluations):
            raise CertificateError(
                f"the certificate is for the evaluations {', '.join(certificate.evaluations)}; what is proven is for "
                f"{', '.join(self.evaluations)}"
            )
        self._require_terms(certificate)
        self._require_reference(certificate)
        self._require_conditions(certificate)
        self._require_worst(certificate)

    def _require_terms(self, certificate: Certificate) -> None:
        """Each is at least what follows, and no more than the bound that they add up to."""
        said, follow = certificate.terms, self.terms
        if list(said) != list(follow):
            raise CertificateError(f"the certificate's terms are {list(said)}; what follows are {list(follow)}")
        for term, value in said.items():
            if not follow[term] * (1 - SAME) <= value <= certificate.bound:
                raise CertificateError(f"the certificate says {value:.4g}, {term}; what follows is {follow[term]:.4g}")

    def _require_reference(self, certificate: Certificate) -> None:
        said, follow = certificate.reference, self.reference
        same = list(said) == list(follow) and all(math.isclose(said[name], follow[name], rel_tol=1e-9) for name in said)
        if not same:
            raise CertificateError(f"the certificate compares with {dict(said)}; what follows is {dict(follow)}")

    def _require_conditions(self, certificate: Certificate) -> None:
        said, follow = certificate.conditions, self.conditions
        if len(said) != len(follow) or not all(a.implies(b) for a, b in zip(said, follow, strict=True)):
            raise CertificateError(
                f"the certificate holds provided that {_listed(said)}; what follows holds provided that "
                f"{_listed(follow)}"
            )

    def _require_worst(self, certificate: Certificate) -> None:
        """Where several peaks are nearly equal, another processor may meet another one first: what must be the same is
        the error, and that it is where it is said to be."""
        said, met, box = certificate.worst, self.worst, certificate.on
        if said is None or met is None or self.error_at is None:
            if said is not met:
                raise CertificateError(f"the certificate names {said}, and the proof met {met}, as the largest error")
            return
        inside = len(said.at) == len(met.at) and bool(
            box.contains(np.reshape(said.at, np.atleast_1d(box.low).shape)).all()
        )
        if not inside or not math.isclose(said.error, met.error, rel_tol=SAME, abs_tol=1e-4 * self.total):
            raise CertificateError(
                f"the certificate says that {said.error:.4g} is the largest error met, at {said}; it is {met.error:.4g}"
            )
        found = self.error_at(np.array(said.at))
        if not abs(found - said.error) <= (self.total - met.error) + 5 * SAME * said.error:
            raise CertificateError(f"the certificate says that the error at {said} is {said.error:.4g}: {found:.4g} is")


def error_of(network: Network, values: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], float]:
    """|network as it is computed - values| at an input of the dtype, the largest of all outputs.

    values   the target's, (1, inputs) to (1, outputs)
    """

    def error_at(at: Float[np.ndarray, " inputs"]) -> float:
        x = at.astype(network.dtype).astype(np.float64)
        shape = (network.embed.tokens or 1, network.embed.inputs) if network.token_axis else (network.embed.inputs,)
        computed = np.asarray(network(x.reshape(1, *shape), outside="ignore"), np.float64)
        return float(np.abs(computed.reshape(-1) - np.asarray(values(x[None]), np.float64).reshape(-1)).max())

    return error_at


def _listed(conditions: tuple[Condition, ...]) -> str:
    return "; ".join(map(str, conditions)) or "nothing else"
