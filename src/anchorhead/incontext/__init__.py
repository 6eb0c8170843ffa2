"""Learners as attention layers: gradient descent in a forward pass, on the examples of a prompt.

Models of scikit-learn that fit so are loaded when they are first named, since scikit-learn is an extra.
"""

from typing import TYPE_CHECKING, Any

from anchorhead.errors import AnchorheadError
from anchorhead.incontext.gradient_descent import gradient_descent
from anchorhead.incontext.learner import Learner
from anchorhead.incontext.many import ManyLearner, many_learners
from anchorhead.incontext.prompts import prompt, standardised
from anchorhead.incontext.trace import Trace, trace
from anchorhead.targets.losses import LOSSES, Loss, link, named_loss

if TYPE_CHECKING:
    from anchorhead.incontext.estimators import (
        ElasticNet,
        HuberRegressor,
        Lasso,
        LinearRegression,
        LogisticRegression,
        PoissonRegressor,
        QuantileRegressor,
        Ridge,
    )

__all__ = [
    "LOSSES",
    "ElasticNet",
    "HuberRegressor",
    "Lasso",
    "Learner",
    "LinearRegression",
    "LogisticRegression",
    "Loss",
    "ManyLearner",
    "PoissonRegressor",
    "QuantileRegressor",
    "Ridge",
    "Trace",
    "gradient_descent",
    "link",
    "many_learners",
    "named_loss",
    "prompt",
    "standardised",
    "trace",
]

ESTIMATORS = (
    "LinearRegression",
    "Ridge",
    "Lasso",
    "ElasticNet",
    "LogisticRegression",
    "PoissonRegressor",
    "HuberRegressor",
    "QuantileRegressor",
)


def __getattr__(name: str) -> Any:
    if name not in ESTIMATORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from anchorhead.incontext import estimators
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "sklearn":
            raise
        raise AnchorheadError(
            f'incontext.{name} needs scikit-learn, which is not installed: pip install "anchorhead[sklearn]"'
        ) from error
    return getattr(estimators, name)
