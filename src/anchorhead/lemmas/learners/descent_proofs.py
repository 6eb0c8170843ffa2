"""The proof that belongs to each layout of a learner, and what they have in common."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from anchorhead.errors import CertificateError
from anchorhead.lemmas.learners import descent_grid, descent_linked, descent_sequence, descent_squared
from anchorhead.lemmas.learners.descent_given import conditions_for_box
from anchorhead.lemmas.learners.loop import DescentBound
from anchorhead.lemmas.learners.threshold import NotKnown
from anchorhead.network import Network
from anchorhead.proof.arithmetic.arithmetic import Arithmetic
from anchorhead.proof.statement import Statement
from anchorhead.targets.descent import Descent


@runtime_checkable
class DescentProof(Protocol):
    """A module that reads a step from stored weights and bounds what it gets wrong."""

    @property
    def METHOD(self) -> str: ...

    def read(self, network: Network, target: Descent) -> Any:
        """What the stored weights do at a step; CertificateError if it is not what the construction does."""
        ...

    def bound_for_prompt(
        self, step: Any, /, target: Descent, A: np.ndarray, y: np.ndarray, model: Arithmetic
    ) -> DescentBound:
        """For one prompt: A (n, weights) what w multiplies, y (n,)."""
        ...

    def bound_for_box(self, step: Any, /, target: Descent, x: np.ndarray, y: float, model: Arithmetic) -> DescentBound:
        """For all prompts with |A_ij| <= x_j, |y_i| <= y, at most target.examples examples and a safe rate."""
        ...


PROOFS: dict[str, DescentProof] = {
    "direct": descent_squared,
    "sequence": descent_sequence,
    "transformer": descent_linked,
}


def box_statement(target: Descent, found: DescentBound, method: str) -> Statement:
    """What is proven for all prompts of a box that keep to the conditions."""
    return Statement(found.total, found.terms, method, str(target), conditions_for_box(target, found.given))


def proof_of(target: Descent) -> DescentProof:
    if target.scales is not None:
        raise NotKnown(f"{target}: penalties that differ from entry to entry are not proven; give columns one scale")
    if target.layout not in PROOFS:
        raise CertificateError(f"nothing is proven for learners of the layout {target.layout!r}")
    if target.layout == "transformer" and target.loss.form == "g(s, y)":
        return descent_grid
    return PROOFS[target.layout]
