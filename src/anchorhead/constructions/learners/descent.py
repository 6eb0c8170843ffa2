"""Gradient descent as attention layers: the numbers that are free in a layout are those with the smallest bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.learners.approximating import approximating
from anchorhead.constructions.learners.certified import certificate_for_box, path_for_box
from anchorhead.constructions.learners.derived import certified_path, derived
from anchorhead.constructions.learners.learner import Learner
from anchorhead.constructions.learners.measured import measured_certificate
from anchorhead.constructions.learners.networks import (
    anchored,
    clip_of,
    link_anchors,
    linked,
    linked_network,
    squared_network,
)
from anchorhead.constructions.learners.written import network_of
from anchorhead.errors import AnchorheadError, NotReached
from anchorhead.language.forms import box_of
from anchorhead.language.program import Program
from anchorhead.language.targets.descent import Descent, LearnerLayout
from anchorhead.language.targets.scalar import interval
from anchorhead.lemmas.learners.average import Average
from anchorhead.lemmas.learners.box import error_of_a_step
from anchorhead.lemmas.learners.score import Scoring
from anchorhead.lemmas.learners.steps import Step, squared_step
from anchorhead.lemmas.learners.threshold import require_known
from anchorhead.network import Network
from anchorhead.proof.arithmetic.arithmetic import require_model

SHARPNESSES = tuple(2.0**-k for k in range(3, 26))
SCORES = {"poisson": (-6.0, 3.0)}
"""The range of the link's argument by default, where it is not (-10, 10)."""


def build_descent(target: Descent, program: Program, request: BuildRequest) -> Learner:
    """The learner in its layout, with a certificate for all prompts of a box of examples (x, y).

    With the signed copies of a prompt the larger of |low| and |high| counts.
    """
    target, x, y = _on_box(target, program, request)
    made = _BUILDERS[target.layout](target, request.dtype, x, y) or _measured(target, request.dtype, x, y)
    made = made.with_(program=program, outside=request.outside)
    if request.within is not None and made.certificate is not None and made.certificate.bound > request.within:
        bound = made.certificate.bound
        raise NotReached(
            f"within={request.within:g} was not reached for {target} in {request.dtype}: its certificate says "
            f"{made.certificate.kind} {bound:.3g}. What would help: a larger error, a smaller box, fewer steps",
            made,
            bound,
            request.within,
        )
    return made


def _on_box(target: Descent, program: Program, request: BuildRequest) -> tuple[Descent, np.ndarray, float]:
    """The descent with the range of its link's argument, the largest |x| of each feature, and the largest |y|."""
    ends = box_of(program).broadcast_to((target.features + 1,)).magnitude
    x, y = ends[:-1], float(ends[-1])
    if target.layout != "direct":
        labels = y if target.loss.form == "g(s, y)" else None
        target = replace(target, scores=_scores(target, request.scores, y), labels=labels)
    return target, x, y


def outlined(target: Descent, program: Program, request: BuildRequest) -> Network:
    """A network of the learner's size: its weights are those of sharpnesses that nobody chose, and not proven."""
    target, _, y = _on_box(target, program, request)
    dtype, (scoring, collecting) = request.dtype, SHARPNESSES[:2]
    if target.layout == "direct":
        return squared_network(target, collecting, dtype)
    if target.layout == "transformer":
        return linked_network(target, dtype, scoring, collecting)
    return network_of(target, anchored(target, y, dtype), dtype)


def _scores(target: Descent, given: Any, y: float) -> tuple[float, float]:
    """The range of the link's argument. Residuals of the squared loss are at most (1 + mu)/(1 - mu) sqrt(n) y in exact
    arithmetic (lemmas.learners.box)."""
    if given is not None:
        return interval(given)
    if target.loss.name == "squared":
        reach = (1 + target.momentum) / (1 - target.momentum) * math.sqrt(target.examples) * y
        return -math.ceil(1.01 * reach), math.ceil(1.01 * reach)
    if target.loss.name == "huber":
        delta = target.loss.parameters["delta"]
        return -2 * delta, 2 * delta
    return SCORES.get(target.loss.name, (-10.0, 10.0))


def _measured(target: Descent, dtype: str, x: np.ndarray, y: float) -> Learner:
    """Where no bound holds for all prompts of the box: built for fewer examples and steps, for which one does, and
    measured."""
    few = (target.examples, target.steps)
    while max(few) > 1 and target.layout != "sequence":
        few = (max(1, few[0] // 4), max(1, few[1] // 2))
        made = _BUILDERS[target.layout](replace(target, examples=few[0], steps=few[1]), dtype, x, y)
        if made is not None:
            network = approximating(made.with_steps(target.steps), target)
            why = f"bounds are known for {few[1]:,} steps on up to {few[0]:,} examples; with more they grow without end"
            certificate = measured_certificate(network, target, x, y, why)
            return certified_path(network, certificate)
    raise AnchorheadError(
        f"nothing can be said of {target} for |y| up to {y:g} in {dtype}: links leave the range that is served, or "
        "errors grow from step to step. Give a smaller box, fewer steps, a smaller rate, or float64"
    )


def _direct(target: Descent, dtype: str, x: np.ndarray, y: float) -> Learner | None:
    """With momentum and a threshold nothing is proven, and measuring every sharpness would take long: it is then chosen
    for the same descent without its threshold, whose layer has no sharpness."""
    guide = replace(target, threshold=0.0) if target.momentum else target
    clip = clip_of(guide, dtype)

    def bound(sharpness: float) -> float:
        found = certificate_for_box(squared_step(Average.of(guide, sharpness, dtype, clip)), guide, x, y, dtype)
        return np.inf if found is None else found.bound

    sharpness = _lowest(bound)
    if not np.isfinite(bound(sharpness)):
        sharpness = min(SHARPNESSES, key=bound)
    own = clip if guide is target else clip_of(target, dtype)
    step = squared_step(Average.of(target, sharpness, dtype, own))
    return _certified(step, target, x, y, dtype)


def _sequence(target: Descent, dtype: str, x: np.ndarray, y: float) -> Learner | None:
    return _certified(anchored(target, y, dtype), target, x, y, dtype)


def _linked(target: Descent, dtype: str, x: np.ndarray, y: float) -> Learner | None:
    """The two sharpnesses one after the other, since each adds an error of its own to that of a step; see _direct."""
    guide = replace(target, threshold=0.0) if target.momentum else target
    require_known(guide)
    columns, model = np.concatenate([x, [1.0]]) if target.intercept else x, require_model(dtype)
    held, clip = link_anchors(guide, dtype), clip_of(guide, dtype)
    known = linked(guide, held, clip, SHARPNESSES[0], SHARPNESSES[1], dtype)

    def error(scoring: float, collecting: float) -> float:
        step = replace(
            known,
            scoring=Scoring.of(scoring, dtype),
            collect=Average.of(guide, collecting, dtype, clip),
        )
        return error_of_a_step(step, guide, columns, y, model)

    collecting = _lowest(lambda h: error(h / 4, h))
    scoring = _lowest(lambda h: error(h, collecting))
    collecting = _lowest(lambda h: error(scoring, h), near=collecting)
    own = clip if guide is target else clip_of(target, dtype)
    while min(scoring, collecting) > 0.5 * SHARPNESSES[-1]:
        made = _certified(linked(target, held, own, scoring, collecting, dtype), target, x, y, dtype)
        if made is not None:
            return made
        # a drift over many steps may take links further than a single step does
        scoring, collecting = scoring / 2, collecting / 2
    return None


def _lowest(bound: Callable[[float], float], near: float | None = None) -> float:
    """The sharpness with the lowest bound: every fourth first, or one that is near, then its neighbours."""
    known: dict[float, float] = {}

    def ask(candidates: Sequence[float]) -> float:
        for h in candidates:
            if h not in known:
                known[h] = bound(h)
        return min(known, key=lambda h: (known[h], -h))

    best = ask(SHARPNESSES[1::4] if near is None else (near,))
    for distance in (2, 1):
        place = SHARPNESSES.index(best)
        best = ask([SHARPNESSES[k] for k in (place - distance, place + distance) if 0 <= k < len(SHARPNESSES)])
    return best


def _certified(step: Step, target: Descent, x: np.ndarray, y: float, dtype: str) -> Learner | None:
    """None where nothing can be said of such steps."""
    certificate, path = path_for_box(step, target, x, y, dtype)
    if certificate is None:
        return None
    network = derived(network_of(target, step, dtype), target, step, path)
    return Learner.of(certified_path(network, certificate))


_BUILDERS: dict[LearnerLayout, Callable[[Descent, str, np.ndarray, float], Learner | None]] = {
    "direct": _direct,
    "transformer": _linked,
    "sequence": _sequence,
}
