"""One network, many learners: loss, rate, penalty and start are what the prompt says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.compile import compiled
from anchorhead.constructions.learners.approximating import approximating
from anchorhead.constructions.learners.many import ManyLearner
from anchorhead.language.of_learners import program_of
from anchorhead.language.targets.losses import Loss, named_loss
from anchorhead.language.targets.many_learners import ManyLearners


def many_learners(
    losses: Iterable[str | Loss] = ("squared", "logistic", "huber"),
    *,
    steps: int,
    features: int,
    intercept: bool = False,
    reach: float = 16.0,
    dtype: Any = "float64",
) -> ManyLearner:
    """A network with fixed weights that runs gradient descent on any of several losses, as its prompt says.

    losses     names, or losses as incontext.named_loss and incontext.link make them; penalties need "squared"
    intercept  one more entry of w, the last
    reach      the largest |w . x - y| (for losses of s alone: |w . x|) that is meant to come up

    returns   a ManyLearner, whose prompt(X, y, loss=…, rate=…) says what to do

        >>> net = incontext.many_learners(("squared",), steps=20, features=1)
        >>> w = net(net.prompt([[1.0], [-1.0]], [2.0, -2.0], loss="squared", rate=0.3))
        >>> round(float(w[0]), 2)
        2.0
    """
    chosen = tuple(named_loss(one) if isinstance(one, str) else one for one in losses)
    target = ManyLearners(chosen, steps, features, intercept, reach)
    request = BuildRequest(dtype=dtype, scores=(-target.reach, target.reach))
    made = compiled(program_of(target), request)
    if not isinstance(made, ManyLearner):
        raise TypeError("a program of learners that is none")
    return approximating(made, target)  # which weight is the intercept, and what losses are called, no program says
