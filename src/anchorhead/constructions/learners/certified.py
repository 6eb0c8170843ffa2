"""Certificates of learners: for all prompts of a box, or for one prompt."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anchorhead.certificate import Certificate
from anchorhead.constructions.learners.measured import measured_certificate
from anchorhead.constructions.learners.prompts import Examples
from anchorhead.constructions.learners.written import network_of
from anchorhead.decimals import counted
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.language.targets.descent import Descent
from anchorhead.lemmas.learners.loop import PathBound, most_curvature
from anchorhead.lemmas.learners.prove import prove_box, prove_prompt
from anchorhead.lemmas.learners.steps import Step
from anchorhead.lemmas.learners.threshold import NotKnown


def certificate_for_box(step: Step, target: Descent, x: np.ndarray, y: float, dtype: str) -> Certificate | None:
    """The certificate of `path_for_box` alone."""
    return path_for_box(step, target, x, y, dtype)[0]


def path_for_box(
    step: Step, target: Descent, x: np.ndarray, y: float, dtype: str
) -> tuple[Certificate | None, PathBound]:
    """For all prompts with |x_ij| <= x_j and |y_i| <= y, of at most target.examples, for which the rate is safe; and
    what is proven of its path.

    Proven, or measured where no proof is known. None if nothing can be said: residuals may be so large there that heads
    leave the range in which they serve.
    """
    try:
        found, path = prove_box(step, target, np.concatenate([x, [1.0]]) if target.intercept else x, y, dtype)
    except NotKnown as why:
        network = network_of(target, step, dtype)
        return measured_certificate(network, target, x, y, str(why)), PathBound()
    ends = np.concatenate([x, [1.0, y]])
    return None if found is None else found.certificate(Box.of((-ends, ends)), dtype), path


def certificate_for_prompt(step: Step, target: Descent, one: Examples, given: np.ndarray, dtype: str) -> Certificate:
    """For one prompt, given as the array that it is."""
    where = f"{target}, for one prompt of {counted(len(one.y), 'example')}"
    found = prove_prompt(step, target, one.design(target.intercept), one.y, where, dtype)
    if found is None:
        raise AnchorheadError(
            "nothing can be said of this prompt: its residuals are so large that heads leave the range in which they "
            "serve, or its rate is so large that errors grow without bound. Scale its labels, or take a smaller rate"
        )
    return found.certificate(Box.of((given, given)), dtype)


@dataclass(frozen=True)
class DescentSummary:
    """What exact descent on a prompt does, in float64.

    steepest    the largest second derivative that it meets; where the rate is too large for one, the first of those
    arguments   the least and the largest argument of the link
    """

    steepest: float
    arguments: tuple[float, float]


def course(target: Descent, one: Examples) -> DescentSummary:
    """Follows exact descent and watches its second derivative, A' diag(slopes of the link) A / n + decay.

    Where the slope is the same everywhere and no range is stated, nothing need be followed.
    """
    A = one.design(target.intercept)
    with np.errstate(over="ignore", invalid="ignore"):  # beyond float64: no rate is small enough
        gram, decays = A.T @ A / len(A), np.diag(target.decays)
    if not np.isfinite(gram).all():
        return DescentSummary(np.inf, (-np.inf, np.inf))
    line = target.loss.link.affine() if target.scores is None else None
    if line is not None and target.loss.form != "g(s, y)":
        return DescentSummary(_largest(float(line[0].get("x", 0)) * gram + decays), (-np.inf, np.inf))
    with np.errstate(over="ignore", invalid="ignore"):
        path = target.path(A, one.y)
        scores = path @ A.T
    far = ~(np.abs(scores) < 1e100).all(axis=1)
    scores = scores[: max(int(far.argmax()), 1)] if far.any() else scores
    arguments = target.loss.argument(scores, one.y)
    ends = float(arguments.min()), float(arguments.max())
    slopes = target.loss.curvature(scores, np.broadcast_to(one.y, scores.shape))
    slopes = np.where(np.isfinite(slopes), slopes, np.finfo(np.float64).max ** 0.25)
    steepest = _largest(float(slopes.max()) * gram + decays)
    if steepest <= most_curvature(target) or float(np.ptp(slopes)) == 0:
        return DescentSummary(steepest, ends)
    met = 0.0
    for row in slopes:
        met = max(met, _largest((A.T * row) @ A / len(A) + decays))
        if met > most_curvature(target) * (1 + 1e-9):
            break
    return DescentSummary(met, ends)


def _largest(symmetric: np.ndarray) -> float:
    return float(np.linalg.eigvalsh(symmetric)[-1])


def eigenvalue_of(target: Descent, one: Examples) -> float:
    """The largest eigenvalue of A'A/n, the mean of x x'."""
    A = one.design(target.intercept)
    return _largest(A.T @ A / len(A))
