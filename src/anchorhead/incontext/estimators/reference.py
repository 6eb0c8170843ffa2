"""scikit-learn's own estimator beside ours: the same parameters, solved as tightly as it can."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import linear_model

from anchorhead import incontext
from anchorhead.errors import AnchorheadError
from anchorhead.incontext.estimators.path import relative_difference

TIGHT, MANY = 1e-12, 100_000
SAME_OBJECTIVE = ("LinearRegression", "Ridge", "Lasso", "ElasticNet", "LogisticRegression", "PoissonRegressor")
"""Models with scikit-learn's coefficients; its Huber looks for a scale too, and its quantile loss is not smooth."""


def reference(model: Any) -> Any:
    """An estimator of scikit-learn, not fitted, for one of ours."""
    intercept = model.fit_intercept
    match model:
        case incontext.LinearRegression():
            return linear_model.LinearRegression(fit_intercept=intercept)
        case incontext.Ridge():
            return linear_model.Ridge(model.alpha, fit_intercept=intercept, solver="svd")
        case incontext.Lasso():
            return linear_model.Lasso(model.alpha, fit_intercept=intercept, tol=TIGHT, max_iter=MANY)
        case incontext.ElasticNet():
            return linear_model.ElasticNet(
                model.alpha, l1_ratio=model.l1_ratio, fit_intercept=intercept, tol=TIGHT, max_iter=MANY
            )
        case incontext.LogisticRegression():
            return linear_model.LogisticRegression(
                C=model.C, fit_intercept=intercept, tol=TIGHT, max_iter=MANY, solver="newton-cholesky"
            )
        case incontext.PoissonRegressor():
            return linear_model.PoissonRegressor(
                alpha=model.alpha, fit_intercept=intercept, tol=TIGHT, max_iter=MANY, solver="newton-cholesky"
            )
        case incontext.HuberRegressor():
            return linear_model.HuberRegressor(
                epsilon=model.epsilon, alpha=model.alpha, fit_intercept=intercept, tol=1e-9, max_iter=MANY
            )
        case incontext.QuantileRegressor():
            return linear_model.QuantileRegressor(
                quantile=model.quantile, alpha=model.alpha, fit_intercept=intercept, solver="highs"
            )
    raise AnchorheadError(f"{type(model).__name__} is no model of anchorhead.incontext")


def deviation(model: Any, other: Any) -> float:
    """The largest difference of any two coefficients of fitted models, relative to the largest coefficient."""
    return relative_difference(np.ravel(model.coef_), np.ravel(other.coef_))
