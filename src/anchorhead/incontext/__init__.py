"""Learners as attention layers: gradient descent in a forward pass, on the examples of a prompt.

Models of scikit-learn that fit so are loaded when they are first named, since scikit-learn is an extra.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from anchorhead.constructions.learners.learner import Learner
from anchorhead.constructions.learners.many import ManyLearner
from anchorhead.constructions.learners.prompts import prompt, standardised
from anchorhead.errors import AnchorheadError
from anchorhead.incontext.gradient_descent import gradient_descent
from anchorhead.incontext.many_learners import many_learners
from anchorhead.incontext.trace import Trace, trace
from anchorhead.language.targets.losses import LOSSES, Loss, link, named_loss

if TYPE_CHECKING:
    from anchorhead.incontext.estimators.links import (
        HuberRegressor,
        LogisticRegression,
        PoissonRegressor,
        QuantileRegressor,
    )
    from anchorhead.incontext.estimators.squared import ElasticNet, Lasso, LinearRegression, Ridge

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

ESTIMATORS = {
    "LinearRegression": "estimators.squared",
    "Ridge": "estimators.squared",
    "Lasso": "estimators.squared",
    "ElasticNet": "estimators.squared",
    "LogisticRegression": "estimators.links",
    "PoissonRegressor": "estimators.links",
    "HuberRegressor": "estimators.links",
    "QuantileRegressor": "estimators.links",
}
"""Models of scikit-learn, and the modules that hold them."""


def __getattr__(name: str) -> Any:
    if name not in ESTIMATORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(f"{__name__}.{ESTIMATORS[name]}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "sklearn":
            raise
        raise AnchorheadError(
            f'incontext.{name} needs scikit-learn, which is not installed: pip install "anchorhead[sklearn]"'
        ) from error
    return getattr(module, name)
