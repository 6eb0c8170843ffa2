"""Certificates of learners: for all prompts of a box, or for one prompt."""

from __future__ import annotations

import numpy as np

from anchorhead.certificate import Certificate, round_up
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.incontext.prompts import Examples
from anchorhead.network import Network
from anchorhead.proof.arithmetic import require_model
from anchorhead.proof.descent import DescentBound
from anchorhead.proof.descent_proofs import proof_of
from anchorhead.targets.descent import Descent


def certificate_for_box(network: Network, target: Descent, x: np.ndarray, y: float) -> Certificate | None:
    """For all prompts with |x_ij| <= x_j and |y_i| <= y, of at most target.examples, for which the rate is safe.

    None if nothing can be said: residuals may be so large there that heads leave the range in which they serve.
    """
    proof = proof_of(target)
    columns = np.concatenate([x, [1.0]]) if target.intercept else x
    step = proof.read(network, target)
    found = proof.bound_for_box(step, target, columns, y, require_model(network.dtype))
    if not np.isfinite(found.total):
        return None
    ends = np.concatenate([x, [1.0, y]])
    where = (
        f"{target}, for prompts of at most {target.examples:,} examples for which the rate is safe (rate times the "
        f"largest second derivative at most {2 * (1 + target.momentum):g})"
    )
    return _certificate(network, found, Box.of((-ends, ends)), proof.METHOD, where)


def certificate_for_prompt(network: Network, target: Descent, one: Examples, given: np.ndarray) -> Certificate:
    """For one prompt, given as the array that it is."""
    proof = proof_of(target)
    A = one.design(target.intercept)
    found = proof.bound_for_prompt(proof.read(network, target), target, A, one.y, require_model(network.dtype))
    if not np.isfinite(found.total):
        raise AnchorheadError(
            "the residuals of this prompt are so large that heads leave the range in which they serve: scale its labels"
        )
    where = f"{target}, for one prompt of {len(one.y):,} examples"
    return _certificate(network, found, Box.of((given, given)), proof.METHOD, where)


def _certificate(network: Network, found: DescentBound, on: Box, method: str, where: str) -> Certificate:
    return Certificate(
        kind="proven",
        bound=round_up(found.total),
        norm="sup",
        on=on,
        dtype=network.dtype,
        arithmetic=str(require_model(network.dtype)),
        terms=found.terms,
        method=method,
        target=where,
    )


def curvature(target: Descent, one: Examples, slope: float = 1.0) -> float:
    """The largest second derivative, slope times the largest eigenvalue of X'X/n and the decay, in float64."""
    A = one.design(target.intercept)
    return slope * float(np.linalg.eigvalsh(A.T @ A / len(A))[-1]) + target.decay
