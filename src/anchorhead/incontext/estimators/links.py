"""Other losses than the squared one, each by its link, as models of scikit-learn that fit in context."""

from __future__ import annotations

from inspect import Signature, signature
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import d2_tweedie_score
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from anchorhead.errors import AnchorheadError
from anchorhead.incontext.estimators.estimators import Array, InContext, Regressor
from anchorhead.incontext.estimators.task import Labels, Task
from anchorhead.language.targets.losses import named_loss

POISSON_SCORES = ((-6.0, 3.0), (-10.0, 5.0), (-16.0, 8.0))
"""Ranges of w . x + b in which a head for exp serves, one tried after the other."""
NORMAL = 1.4826
"""The standard deviation of a normal distribution over its median absolute deviation."""


class LogisticRegression(ClassifierMixin, InContext):
    """C sum of log(1 + exp(-y s)) + |w|^2 / 2, s = X w + b, for two classes y = -1 and 1, which count alike.

    >>> incontext.LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).predict([[2.5]]).tolist()
    [1]
    """

    def __new__(cls, *args: Any, **words: Any) -> Any:
        if "class_weight" in words:
            raise AnchorheadError(
                f"class_weight={words['class_weight']!r} of LogisticRegression: both classes count alike; leave it "
                "out, or give the examples of one of them several times"
            )
        return super().__new__(cls)

    def __init__(self, C=1.0, *, fit_intercept=True, tol=1e-7, max_iter=200_000, dtype="float64", verbose=False):
        self.C, self.fit_intercept, self.tol, self.max_iter = C, fit_intercept, tol, max_iter
        self.dtype, self.verbose = dtype, verbose

    # that of __init__: scikit-learn takes every parameter for a promise
    __signature__ = Signature([*signature(__init__).parameters.values()][1:])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any, *others: Any, **words: Any) -> Any:
        """Fits the model to examples X (n, d) of two classes y (n,), which all count alike."""
        self._refuse_weights(others, words)
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind != "binary":
            raise AnchorheadError(f"Only binary classification is supported. The type of the target is {kind}.")
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise AnchorheadError(f"y holds one class, {str(self.classes_[0])!r}: two are needed")
        coefficients, intercept = self._learn(X, self._numbers_of(y))
        self.coef_, self.intercept_ = coefficients[None], np.array([intercept])
        return self

    def _numbers_of(self, y: np.ndarray) -> Array:
        known = np.isin(y, self.classes_)
        if not known.all():
            first, second = map(str, self.classes_)
            raise AnchorheadError(f"y holds {str(y[~known][0])!r}: the classes of fit are {first!r} and {second!r}")
        return (y == self.classes_[1]).astype(np.float64)

    def _task(self, y: Array) -> Task:
        decay = 1 / (self._number("C", above=0.0) * len(y))
        return Task(named_loss("logistic"), bool(self.fit_intercept), decay, slope=0.25)

    def decision_function(self, X: Any) -> Array:
        """X w + b: above 0 for the second class."""
        return self._scores(X)

    def predict(self, X: Any) -> np.ndarray:
        scores = self._scores(X)
        return self.classes_[(scores > 0).astype(int)]

    def predict_proba(self, X: Any) -> Array:
        """The probabilities of both classes, (n, 2)."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> Array:
        scores = self._scores(X)
        return -np.logaddexp(0.0, np.stack([scores, -scores], axis=1))


class PoissonRegressor(Regressor):
    """mean of exp(s) - y s + alpha |w|^2 / 2, s = X w + b, for counts y.

    A head for exp serves on a range of s, that of y's mean in its middle: from 6 below to 3 above at first, at most
    from 16 below to 8 above. Examples whose scores leave that are refused.

        >>> model = incontext.PoissonRegressor(alpha=0.1).fit([[0.0], [1.0], [2.0], [3.0]], [1, 2, 4, 8])
        >>> bool(model.coef_[0] > 0)
        True
    """

    def __init__(self, *, alpha=1.0, fit_intercept=True, tol=1e-7, max_iter=200_000, dtype="float64", verbose=False):
        self.alpha, self.fit_intercept, self.tol, self.max_iter = alpha, fit_intercept, tol, max_iter
        self.dtype, self.verbose = dtype, verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def _check_data(self, X: Array, y: Array) -> None:
        if (y < 0).any():
            raise AnchorheadError(
                f"y has the entry {y.min():g}: Some value(s) of y are out of the valid range, from 0 on"
            )
        if not y.any():
            raise AnchorheadError("y is 0 in every example: there is no intercept for a mean of 0")

    def _task(self, y: Array) -> Task:
        alpha, mean = self._number("alpha"), float(y.mean())
        if self.fit_intercept:
            labels = Labels(0.0, mean, 1.0, float(np.log(mean)))
            return Task(named_loss("poisson"), True, alpha / mean, labels=labels, scores=POISSON_SCORES)
        return Task(named_loss("poisson"), False, alpha, slope=max(1.0, mean), scores=POISSON_SCORES)

    def predict(self, X: Any) -> Array:
        return np.exp(self._scores(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """D^2 = 1 - D(predictions) / D(mean of y), with Poisson's deviance D(m) = 2 mean(y log(y / m) - y + m)."""
        return float(d2_tweedie_score(y, self.predict(X), sample_weight=sample_weight, power=1))


class HuberRegressor(Regressor):
    """sum of scale H((y - s) / scale) + alpha |w|^2, s = X w + b, H(z) = z^2 for |z| <= epsilon, else
    2 epsilon |z| - epsilon^2.

    scikit-learn's objective for a given scale, which scikit-learn looks for as well. Here it is a parameter; without
    one it is 1.4826 times the median distance of y from its median. scale_ says what was taken.

        >>> model = incontext.HuberRegressor().fit([[0.0], [1.0], [2.0], [3.0]], [1.0, 3.0, 5.0, 7.0])
        >>> model.coef_.round(2).tolist()
        [2.0]
    """

    def __init__(
        self,
        *,
        epsilon=1.35,
        alpha=0.0001,
        scale=None,
        fit_intercept=True,
        tol=1e-7,
        max_iter=200_000,
        dtype="float64",
        verbose=False,
    ):
        self.epsilon, self.alpha, self.scale, self.fit_intercept = epsilon, alpha, scale, fit_intercept
        self.tol, self.max_iter, self.dtype, self.verbose = tol, max_iter, dtype, verbose

    def _task(self, y: Array) -> Task:
        epsilon, alpha = self._number("epsilon", least=1.0), self._number("alpha")
        middle = float(np.median(y))
        if self.scale is None:
            spread = NORMAL * float(np.median(np.abs(y - middle)))
            self.scale_ = next((one for one in (spread, float(y.std())) if one > 1e-12 * np.abs(y).max()), 1.0)
        else:
            self.scale_ = self._number("scale", above=0.0)
        labels = Labels.measured(middle if self.fit_intercept else 0.0, epsilon * self.scale_)
        loss = named_loss("huber", delta=1.0)
        return Task(loss, bool(self.fit_intercept), alpha * self.scale_ / len(y), labels=labels)

    def objective(self, X: Any, y: Any, coefficients: Any = None, intercept: Any = None) -> float:
        """What fit makes least, at the fitted coefficients or at others."""
        w, s = _at(self, X, coefficients, intercept)
        z = np.abs(np.asarray(y, dtype=np.float64) - s) / self.scale_
        H = np.where(z <= self.epsilon, z**2, 2 * self.epsilon * z - self.epsilon**2)
        return float(self.scale_ * H.sum() + self.alpha * w @ w)


class QuantileRegressor(Regressor):
    """mean of L(y - s) + alpha |w|_1, s = X w + b, L(r) = t log(1 + exp(-r / t)) + quantile r.

    For t -> 0 that is scikit-learn's, the larger of quantile r and (quantile - 1) r; it is at most t log 2 above it.
    t = smoothing times the standard deviation of y, and smoothing_ says what that was.

        >>> model = incontext.QuantileRegressor(alpha=0.01).fit([[0.0], [1.0], [2.0], [3.0]], [1.0, 3.0, 5.0, 7.0])
        >>> bool(abs(model.coef_[0] - 2) < 0.1)
        True
    """

    def __init__(
        self,
        *,
        quantile=0.5,
        alpha=1.0,
        smoothing=0.05,
        fit_intercept=True,
        tol=1e-7,
        max_iter=200_000,
        dtype="float64",
        verbose=False,
    ):
        self.quantile, self.alpha, self.smoothing, self.fit_intercept = quantile, alpha, smoothing, fit_intercept
        self.tol, self.max_iter, self.dtype, self.verbose = tol, max_iter, dtype, verbose

    def _task(self, y: Array) -> Task:
        q, smoothing = self._number("quantile", above=0.0, below=1.0), self._number("smoothing", above=0.0)
        unit = float(y.std())
        unit = unit if unit > 1e-12 * np.abs(y).max() else 1.0
        self.smoothing_ = smoothing * unit
        centre = float(np.quantile(y, q)) if self.fit_intercept else 0.0
        loss = named_loss("quantile", q=q, smoothing=smoothing)
        return Task(
            loss,
            bool(self.fit_intercept),
            threshold=self._number("alpha"),
            labels=Labels.measured(centre, unit),
            slope=1 / (4 * smoothing),
        )

    def objective(self, X: Any, y: Any, coefficients: Any = None, intercept: Any = None) -> float:
        """What fit makes least, at the fitted coefficients or at others."""
        w, s = _at(self, X, coefficients, intercept)
        r, t = np.asarray(y, dtype=np.float64) - s, self.smoothing_
        return float(np.mean(t * np.logaddexp(0.0, -r / t) + self.quantile * r) + self.alpha * np.abs(w).sum())


def _at(model: Any, X: Any, coefficients: Any, intercept: Any) -> tuple[Array, Array]:
    check_is_fitted(model)
    w = np.asarray(model.coef_ if coefficients is None else coefficients, dtype=np.float64)
    return w, np.asarray(X, dtype=np.float64) @ w + (model.intercept_ if intercept is None else intercept)
