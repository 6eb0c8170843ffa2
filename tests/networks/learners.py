"""Rows of learners: gradient descent on every kind of loss, in every layout."""

from __future__ import annotations

from typing import Any

from anchorhead import incontext
from anchorhead.network import Network

from .row import Row, row


def _learner(name: str, loss: Any, *tags: str, **words: Any) -> Row:
    words = {"examples": 3, "rate": 0.05, "steps": 2, "features": 2, "on": (-1, 1), **words}
    tags = (*tags, "sequence") if "sequence" in words.values() else (*tags, "any count")

    def build(dtype: str) -> Network:
        return incontext.gradient_descent(loss() if callable(loss) else loss, dtype=dtype, **words)

    options = {name: words[name] for name in ("layout", "scores") if name in words}
    return row(f"learner, {name}", "descent", build, "proven", "tokens", "repeat", *tags, options=options)


def _of_two_variables() -> incontext.Loss:
    return incontext.link("s + sin(s)/2 + s*y**2/4 - y", "g(s, y)")


def _many(dtype: str) -> Network:
    return incontext.many_learners(("squared", "logistic"), steps=2, features=2, dtype=dtype)


ROWS = (
    _learner("direct", "squared", "sample"),
    _learner("momentum", "squared", "momentum", rate=0.02, momentum=0.5, intercept=True),
    _learner("threshold", "squared", "threshold", threshold=0.01),
    _learner("squared in a transformer", "squared", "transformer", layout="transformer"),
    _learner("logistic", "logistic", "transformer", "link", rate=0.1),
    _learner("huber", "huber", "transformer", "link", rate=0.1),
    _learner("hinge", "hinge", "transformer", "link"),
    _learner("logistic, threshold", "logistic", "transformer", "link", "threshold", rate=0.1, threshold=0.01),
    _learner(
        "link of two variables",
        _of_two_variables,
        *("transformer", "link", "grid heads"),
        scores=(-2, 2),
        labels=(-1, 1),
        layout="transformer",
    ),
    _learner("sequence", "logistic", "link", rate=0.1, layout="sequence"),
    _learner("squared in a sequence", "squared", layout="sequence"),
    row("many learners", "many learners", _many, "tokens", "repeat", "any count"),
)
