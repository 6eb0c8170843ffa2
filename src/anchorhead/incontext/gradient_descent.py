"""Gradient descent in context: a prompt of examples goes in, the fitted weights come out of a forward pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.compile import compiled
from anchorhead.constructions.learners.learner import Learner
from anchorhead.decimals import beyond_float64
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.language.of_learners import program_of
from anchorhead.language.targets.descent import Descent, LearnerLayout
from anchorhead.language.targets.losses import Loss, named_loss
from anchorhead.network import Outside
from anchorhead.progress import Progress, progress_line

LABELS = {"logistic": 1.0, "hinge": 1.0, "poisson": 20.0}
"""The largest |y| that a certificate covers by default, where it is not 4."""


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
    ends = np.append(x, y)
    with progress_line(progress, "building a learner and its bound") as tell, beyond_float64():
        request = BuildRequest(dtype=dtype, layout=layout, outside=outside, progress=tell, scores=scores)
        made = compiled(program_of(target, (-ends, ends)), request)
    if not isinstance(made, Learner):
        raise TypeError("a program of gradient descent that is no learner")
    return made
