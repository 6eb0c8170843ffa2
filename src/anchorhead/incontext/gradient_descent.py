"""Gradient descent in context: a prompt of examples goes in, the fitted weights come out of a forward pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from anchorhead.decimals import beyond_float64
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.incontext.approximating import approximating
from anchorhead.incontext.certified import certificate_for_box, steepest_link
from anchorhead.incontext.learner import Learner
from anchorhead.incontext.measured import measured_certificate
from anchorhead.incontext.networks import linked_network, sequence_network, squared_network
from anchorhead.language.targets.descent import Descent, LearnerLayout
from anchorhead.language.targets.losses import Loss, named_loss
from anchorhead.language.targets.scalar import interval
from anchorhead.lemmas.learners.average import Average
from anchorhead.lemmas.learners.box import error_of_a_step
from anchorhead.lemmas.learners.prove import read_proven
from anchorhead.lemmas.learners.score import Scoring
from anchorhead.network import Network, Outside
from anchorhead.network.dtypes import dtype_name
from anchorhead.progress import Progress, progress_line
from anchorhead.proof.arithmetic.arithmetic import require_model

SHARPNESSES = tuple(2.0**-k for k in range(3, 26))
LABELS = {"logistic": 1.0, "hinge": 1.0, "poisson": 20.0}
"""The largest |y| that a certificate covers by default, where it is not 4."""
SCORES = {"poisson": (-6.0, 3.0)}
"""The range of the link's argument by default, where it is not (-10, 10)."""


def gradient_descent(
    loss: str | Loss = "squared",
    *,
    steps: int,
    rate: float,
    features: int,
    intercept: bool = False,
    decay: float = 0.0,
    threshold: float = 0.0,
    momentum: float = 0.0,
    layout: LearnerLayout | None = None,
    scores: Any = None,
    on: Any = (-4.0, 4.0),
    labels: Any = None,
    examples: int = 64,
    dtype: Any = "float64",
    outside: Outside = "warn",
    progress: Progress | bool | None = True,
    **parameters: float,
) -> Learner:
    """A network whose forward pass is gradient descent on the examples of its prompt; the same weights for all prompts.

    loss          "squared", "logistic", "poisson", "huber", "absolute", "quantile", "hinge", or one's own, see link
    steps, rate   w <- w - rate gradient, so many times, from w = 0
    features      how many entries an example has
    intercept     one more entry of w, the last, for a column of ones
    decay         ridge: the penalty decay |w|^2 / 2
    threshold     lasso: the penalty threshold |w|_1, by proximal steps; with decay, elastic net
    momentum      v <- momentum v - rate gradient, w <- w + v
    layout        "direct": one attention for each step, for the squared loss. "transformer": three, for any loss.
                  "sequence": anchors for each example. None: "direct" where it serves, else "transformer"
    scores        (low, high), the range of the link's argument (s - y, s or y s) that is served, where no head serves
                  on the whole line: squared in other layouts, Poisson, links of one's own
    on, labels    the box of prompts that the certificate covers: entries of x, and y; with the signed copies of a
                  prompt the larger of |low| and |high| counts
    examples      the most examples that it covers; in the sequence layout, how many a prompt has
    parameters    of the loss: delta=1.35 for "huber", q=0.5 for "quantile", smoothing=0.1 for "absolute", "quantile"
                  and "hinge"
    progress      a line for those who wait, none (False), or a function of a Status: see anchorhead.progress

    returns   a Learner: net(net.prompt(X, y)) are the fitted weights

        >>> net = incontext.gradient_descent(steps=20, rate=0.3, features=1)
        >>> w = net(net.prompt([[1.0], [-1.0], [0.5]], [2.0, -2.0, 1.0]))
        >>> round(float(w[0]), 2)
        1.99
    """
    kind = dtype_name(dtype)
    if isinstance(loss, Loss) and parameters:
        raise AnchorheadError(f"{', '.join(parameters)}: parameters go with the name of a loss, not with a Loss")
    if not isinstance(loss, str | Loss):
        raise AnchorheadError(f"loss={loss!r}: the name of a loss, or a Loss, as incontext.link makes it")
    chosen = named_loss(loss, **parameters) if isinstance(loss, str) else loss
    given = layout or ("direct" if chosen.name == "squared" and scores is None else "transformer")
    target = Descent(chosen, steps, rate, features, bool(intercept), decay, threshold, momentum, examples, given)
    x = Box.of(on).broadcast_to((target.features,)).magnitude
    y = LABELS.get(chosen.name, 4.0) if labels is None else float(Box.of(labels).magnitude.max())
    y = 1.0 if chosen.form == "y phi(y s)" else y
    if not (x > 0).all():
        raise AnchorheadError(f"on={on!r}: a box of examples in which every feature may differ from 0")
    if given != "direct":
        target = replace(target, scores=_scores(target, scores, y), labels=y if chosen.form == "g(s, y)" else None)
    with progress_line(progress, "building a learner and its bound"), beyond_float64():
        made = _BUILDERS[given](target, kind, x, y) or _measured(target, kind, x, y)
        return made.with_(outside=outside)


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
            certificate = measured_certificate(network, target, x, y, steepest_link(target, y), why)
            return network.with_(certificate=certificate)
    raise AnchorheadError(
        f"nothing can be said of {target} for |y| up to {y:g} in {dtype}: links leave the range that is served, or "
        "errors grow from step to step. Give a smaller box, fewer steps, a smaller rate, or float64"
    )


def _direct(target: Descent, dtype: str, x: np.ndarray, y: float) -> Learner | None:
    """With momentum and a threshold nothing is proven, and measuring every sharpness would take long: it is then chosen
    for the same descent without its threshold, whose layer has no sharpness."""
    guide = replace(target, threshold=0.0) if target.momentum else target

    def bound(sharpness: float) -> float:
        found = _certified(squared_network(guide, sharpness, dtype), guide, x, y).certificate
        return np.inf if found is None else found.bound

    sharpness = _lowest(bound)
    if not np.isfinite(bound(sharpness)):
        sharpness = min(SHARPNESSES, key=bound)
    return _best([_certified(squared_network(target, sharpness, dtype), target, x, y)])


def _sequence(target: Descent, dtype: str, x: np.ndarray, y: float) -> Learner | None:
    made = sequence_network(target, dtype, labels=y)
    return _best([_certified(made, target, x, y)])


def _linked(target: Descent, dtype: str, x: np.ndarray, y: float) -> Learner | None:
    """The two sharpnesses one after the other, since each adds an error of its own to that of a step; see _direct."""
    guide = replace(target, threshold=0.0) if target.momentum else target
    columns, model = np.concatenate([x, [1.0]]) if target.intercept else x, require_model(dtype)

    known = read_proven(linked_network(guide, dtype, *SHARPNESSES[:2]), guide)

    def error(scoring: float, collecting: float) -> float:
        collect = Average.of(guide, collecting, dtype)
        step = replace(
            known,
            scoring=Scoring.of(scoring, known.residual, dtype),
            collect=replace(known.collect, sharpness=collect.sharpness, outputs=collect.outputs),
        )
        return error_of_a_step(step, guide, columns, y, model)

    collecting = _lowest(lambda h: error(h / 4, h))
    scoring = _lowest(lambda h: error(h, collecting))
    collecting = _lowest(lambda h: error(scoring, h), near=collecting)
    made: list[Learner] = []
    while min(scoring, collecting) > 0.5 * SHARPNESSES[-1] and (not made or made[-1].certificate is None):
        # a drift over many steps may take links further than a single step does
        made.append(_certified(linked_network(target, dtype, scoring, collecting), target, x, y))
        scoring, collecting = scoring / 2, collecting / 2
    return _best(made)


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


def _certified(network: Network, target: Descent, x: np.ndarray, y: float) -> Learner:
    return Learner.of(network.with_(certificate=certificate_for_box(network, target, x, y)))


def _best(made: list[Learner]) -> Learner | None:
    known = [(one.certificate.bound, -number) for number, one in enumerate(made) if one.certificate is not None]
    return made[-min(known)[1]] if known else None


_BUILDERS: dict[LearnerLayout, Callable[[Descent, str, np.ndarray, float], Learner | None]] = {
    "direct": _direct,
    "transformer": _linked,
    "sequence": _sequence,
}
