"""Gradient descent in context: a prompt of examples goes in, the fitted weights come out of a forward pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.incontext.certified import certificate_for_box
from anchorhead.incontext.learner import Learner
from anchorhead.incontext.squared import squared_network
from anchorhead.network import Outside
from anchorhead.network.dtypes import dtype_name
from anchorhead.targets.descent import Descent
from anchorhead.targets.losses import Loss, named_loss

SHARPNESSES = tuple(2.0**-k for k in range(3, 26))


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
    on: Any = (-4.0, 4.0),
    labels: Any = (-4.0, 4.0),
    examples: int = 64,
    dtype: Any = "float64",
    outside: Outside = "warn",
) -> Learner:
    """A network whose forward pass is gradient descent on the examples of its prompt; the same weights for all prompts.

    steps, rate   w <- w - rate gradient, so many times, from w = 0
    features      how many entries an example has
    intercept     one more entry of w, the last, for a column of ones
    decay         ridge: the penalty decay |w|^2 / 2
    threshold     lasso: the penalty threshold |w|_1, by proximal steps; with decay, elastic net
    momentum      v <- momentum v - rate gradient, w <- w + v
    on, labels    the box of prompts that the certificate covers: entries of x, and y; with the signed copies of a
                  prompt the larger of |low| and |high| counts
    examples      the most examples that it covers
    """
    kind = dtype_name(dtype)
    chosen = named_loss(loss) if isinstance(loss, str) else loss
    target = Descent(chosen, steps, rate, features, bool(intercept), decay, threshold, momentum, examples)
    x = Box.of(on).broadcast_to((target.features,)).magnitude
    y = float(Box.of(labels).magnitude.max())
    if not (x > 0).all():
        raise AnchorheadError(f"on={on!r}: a box of examples in which every feature may differ from 0")
    made = [_squared(target, h, kind, x, y) for h in SHARPNESSES]
    known = [one for one in made if one.certificate is not None]
    if not known:
        raise AnchorheadError(f"no sharpness serves {target} for |y| up to {y:g} in {kind}: give a smaller box")
    best = min(known, key=lambda one: one.certificate.bound)
    return best.with_(outside=outside)


def _squared(target: Descent, sharpness: float, dtype: str, x: np.ndarray, y: float) -> Learner:
    network = squared_network(target, sharpness, dtype)
    return Learner.of(network.with_(certificate=certificate_for_box(network, target, x, y)))
