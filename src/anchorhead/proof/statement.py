"""What is said of a network: by a proof, with a bound that leaves a little room for the verifier; or by a search."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from anchorhead.certificate import Certificate, Worst
from anchorhead.conditions import Condition
from anchorhead.decimals import round_up
from anchorhead.domain import Box
from anchorhead.proof.arithmetic.arithmetic import require_model
from anchorhead.terms import Term

MORE = 1.01
"""So many times what was proven is stated."""
LEAST = 2.0**-1020
"""What is stated at least: of a bound of 0 nothing that rounds could be found to be within it."""


@dataclass(frozen=True)
class Statement:
    """The fields of a certificate, as a proof or a search found them.

    total      what was proven, of which the certificate states a little more, see stated_bound; or the largest error
               that was found
    worst      the largest error that the proof met
    evaluations   the ways to compute the network that the bound covers
    """

    total: float
    terms: tuple[Term, ...]
    method: str
    target: str
    conditions: tuple[Condition, ...] = ()
    reference: tuple[Term, ...] = ()
    worst: Worst | None = None
    evaluations: tuple[str, ...] = ("plain",)

    def certificate(self, on: Box, dtype: str, within: float | None = None) -> Certificate:
        """The certificate for the inputs of a box, in the arithmetic of a dtype that this machine keeps to.

        within   the error asked for, if one was
        """
        return self._at_least()._stated("proven", stated_bound(max(self.total, LEAST), within), on, dtype)

    def _at_least(self) -> Statement:
        """The same where nothing errs at all, with LEAST for what is rounded."""
        if self.total >= LEAST:
            return self
        others = tuple(term for term in self.terms if term.kind != "rounding")
        own = next((term for term in self.terms if term.kind == "rounding"), Term("rounding", 0.0, "network"))
        return replace(self, terms=(*others, replace(own, amount=own.amount + LEAST - self.total)))

    def measured(self, on: Box, dtype: str) -> Certificate:
        """The certificate that nothing worse was found than this."""
        return self._stated("measured", round_up(self.total), on, dtype)

    def _stated(self, kind: Literal["proven", "measured"], bound: float, on: Box, dtype: str) -> Certificate:
        return Certificate(
            kind=kind,
            bound=bound,
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


def stated_bound(proven: float, within: float | None = None) -> float:
    """The bound that a certificate states: a little more than was proven, in a few digits.

    The verifier bounds the same error by another route, and accepts only what its own bound reaches: the little more is
    what the two routes may differ by. Where that would pass the error asked for, and what was proven does not, the
    bound is the error asked for.
    """
    stated = round_up(MORE * proven)
    return within if within is not None and proven <= within < stated else stated
