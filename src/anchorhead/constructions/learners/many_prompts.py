"""Prompts for a network of many learners: loss, rate, penalty and start are features of the rows.

Rows as in targets.many_learners: an example is (x, v = rate (N/n) x), a penalty a row for each feature, then one row
that carries the start; after them their negatives, whose links have flags of their own, since phi(-s) is not -phi(s).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from anchorhead.constructions.learners.prompts import standardised
from anchorhead.errors import AnchorheadError
from anchorhead.given import checked_number, numbers, shown
from anchorhead.language.targets.losses import Loss
from anchorhead.language.targets.many_learners import ManyLearners, flags


def many_prompt(
    target: ManyLearners,
    X: Float[np.ndarray, "n features"],
    y: Float[np.ndarray, " n"],
    loss: str,
    rate: float,
    penalty: float = 0.0,
    start: Any = None,
    standardise: bool = False,
) -> Float[np.ndarray, "tokens columns"]:
    """The prompt of one data set, in float64."""
    number = target.number(loss)
    kind = target.losses[number]
    _check(target, X, y, rate, penalty)
    examples = standardised(X)[0] if standardise else X
    labels = kind.checked_labels(y)
    x = np.concatenate([examples, np.ones((len(y), int(target.intercept)))], axis=1)
    x = labels[:, None] * x if kind.form == "y phi(y s)" else x
    a, b = _offsets(kind, labels)
    weights, n = target.weights, len(y)
    penalised = np.eye(target.features, weights) if penalty else np.zeros((0, weights))
    total = n + len(penalised)
    line = target.number("squared") if penalty else number

    c = target.columns
    which = np.array([number] * n + [line] * len(penalised) + [-1])
    up = np.zeros((total + 1, c.count))
    up[:n, c.x], up[n:total, c.x] = x, penalised
    up[:n, c.v], up[n:total, c.v] = rate * (total / n) * x, rate * total * penalty * penalised
    up[:n, c.a], up[:n, c.b] = a, b
    up[total, c.v] = _start(start, weights)
    up[total, c.start] = 1
    down = -up
    for half, negative in ((up, False), (down, True)):
        half[:, c.flags] = flags(which, c.losses, negative)
        half[total, c.no_example] = 1
    return np.concatenate([up, down])


def _offsets(loss: Loss, y: Float[np.ndarray, " n"]) -> tuple[Any, Any]:
    """What is taken from the score, and from the link."""
    match loss.form:
        case "phi(s - y)":
            return y, 0.0
        case "phi(s) - y":
            return 0.0, y
        case _:
            return 0.0, 0.0


def _check(target: ManyLearners, X: np.ndarray, y: np.ndarray, rate: Any, penalty: Any) -> None:
    if X.ndim != 2 or y.shape != X.shape[:1] or not len(y) or X.shape[1] != target.features:
        raise AnchorheadError(
            f"X of shape {X.shape} with y of shape {y.shape}: needed are (examples, {target.features}) and (examples,)"
        )
    checked_number("rate", rate, "a number above 0", above=0.0)
    checked_number("penalty", penalty, "a number of at least 0", least=0.0)
    if penalty and "squared" not in [loss.name for loss in target.losses]:
        raise AnchorheadError('a penalty needs the link of the squared loss: build with "squared" among the losses')


def _start(start: Any, weights: int) -> np.ndarray:
    if start is None:
        return np.zeros(weights)
    given = numbers(start)
    if given is None or given.shape != (weights,) or not np.isfinite(given).all():
        raise AnchorheadError(f"start={shown(start)}: {weights} finite weights are needed")
    return given
