"""Models of scikit-learn whose fit is a forward pass: the examples are a prompt, attention layers find the weights.

Outside the network columns and labels are moved and scaled, nothing else. After fit:

    coef_, intercept_   for one's own columns
    network_            the Learner that found them, a Network: saves, loads, runs on network_.prompt of other examples
    n_iter_, n_layers_  its steps, and the attention layers that they are
    n_steps_            the steps of all learners that were run, those included that showed another rate or momentum to
                        be better
    distance_           about how far the weights are from where they settle, relative to the largest
    columns_, labels_   how columns and labels were moved and scaled

Arguments that all models have:

    fit_intercept   whether there is an intercept; penalties leave it alone
    tol             distance_ at which the steps end
    max_iter        the most steps of a learner; if they do not suffice a ConvergenceWarning says so
    dtype           "float64" or "float32", in which the network computes
    verbose         a line on stderr if it takes more than ten seconds

A constant column gets the coefficient 0, and a warning names it.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from anchorhead.errors import AnchorheadError
from anchorhead.incontext.estimators_fit import FitLine, fitted
from anchorhead.incontext.estimators_task import Labels, Task, coefficients_of
from anchorhead.network import Repeat
from anchorhead.network.dtypes import dtype_name
from anchorhead.targets.losses import named_loss

POISSON_SCORES = ((-6.0, 3.0), (-10.0, 5.0), (-16.0, 8.0))
"""Ranges of w . x + b in which a head for exp serves, one tried after the other."""
NORMAL = 1.4826
"""The standard deviation of a normal distribution over its median absolute deviation."""

Array = Float[np.ndarray, "..."]


class ColumnWarning(UserWarning):
    """A column is constant: nothing can be learned from it."""


class _InContext(BaseEstimator):
    """What all models share. A subclass says which Task its parameters and labels make."""

    fit_intercept: bool
    tol: float
    max_iter: int
    dtype: Any
    verbose: bool
    coef_: Any
    intercept_: Any

    def _task(self, y: Array) -> Task:
        raise NotImplementedError

    def _learn(self, X: Array, y: Array) -> tuple[Array, float]:
        """The coefficients and the intercept; sets everything else."""
        self._check_parameters()
        task = self._task(y)
        line = FitLine() if self.verbose else None
        try:
            found = fitted(
                task, X, y, self.tol, self.max_iter, dtype_name(self.dtype), None if line is None else line.told
            )
        finally:
            if line is not None:
                line.clear()
        self.network_, self.columns_, self.labels_ = found.learner, found.columns, task.labels
        self.n_iter_, self.n_steps_, self.distance_ = found.steps, found.every_step, found.distance
        layers = next(layer for layer in found.learner.layers if isinstance(layer, Repeat))
        self.n_layers_ = layers.steps
        self._warn(found.settled)
        return found.coefficients, found.intercept

    def _warn(self, settled: bool) -> None:
        constant = np.flatnonzero(self.columns_.constant)
        if constant.size:
            names = getattr(self, "feature_names_in_", None)
            which = ", ".join(str(j if names is None else names[j]) for j in constant[:8])
            warnings.warn(
                f"constant columns get the coefficient 0: {which}{', ...' if constant.size > 8 else ''}",
                ColumnWarning,
                stacklevel=4,
            )
        if not settled:
            warnings.warn(
                f"{self.n_iter_:,} steps did not settle within tol={self.tol:g}: about {self.distance_:.2g} is left. "
                "Give a larger max_iter or tol, or columns that are less alike",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _check_parameters(self) -> None:
        self._number("tol", above=0.0)
        if isinstance(self.max_iter, bool) or not isinstance(self.max_iter, int | np.integer) or self.max_iter < 1:
            raise AnchorheadError(f"max_iter={self.max_iter!r}: a whole number of at least 1")

    def _number(self, name: str, above: float | None = None, least: float = 0.0, below: float = np.inf) -> float:
        """A parameter as a float, if it is one of those allowed."""
        value = getattr(self, name)
        real = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not real or not (value > above if above is not None else value >= least) or not value < below:
            low = f"above {above:g}" if above is not None else f"of at least {least:g}"
            high = "" if below == np.inf else f" and below {below:g}"
            raise AnchorheadError(f"{name}={value!r} of {type(self).__name__}: a number {low}{high}")
        return float(value)

    def prompt(self, X: Any, y: Any) -> Array:
        """The prompt of other examples for network_, moved and scaled as those of fit were."""
        check_is_fitted(self, "network_")
        examples, labels = (np.asarray(one, dtype=np.float64) for one in (X, y))
        return self.network_.prompt(self.columns_(examples), self.labels_(self._numbers_of(labels)))

    def coefficients(self, w: Array) -> tuple[Array, float]:
        """Coefficients and intercept for one's own columns, from what network_ makes of a prompt."""
        check_is_fitted(self, "network_")
        return coefficients_of(np.asarray(w, dtype=np.float64), self.columns_, self.labels_)

    def _numbers_of(self, y: Array) -> Array:
        return y

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        given = validate_data(self, X, dtype=np.float64, reset=False)
        return given @ np.ravel(self.coef_) + np.ravel(self.intercept_)[0]


class _Regressor(RegressorMixin, _InContext):
    def fit(self, X: Any, y: Any) -> Any:
        """Fits the model to examples X (n, d) and labels y (n,)."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        y = np.asarray(y, dtype=np.float64)
        self._check_data(X, y)
        self.coef_, self.intercept_ = self._learn(X, y)
        return self

    def predict(self, X: Any) -> Array:
        return self._scores(X)

    def _check_data(self, X: Array, y: Array) -> None: ...

    def _squared(self, y: Array, decay: float = 0.0, threshold: float = 0.0) -> Task:
        """The squared loss: columns and labels are centred, so the intercept is known."""
        centre = float(y.mean()) if self.fit_intercept else 0.0
        unit = float(np.sqrt(np.mean((y - centre) ** 2)))
        unit = unit if unit > 1e-12 * max(float(np.abs(y).max()), 1e-300) else 1.0
        labels = Labels.measured(centre, unit)
        return Task(named_loss("squared"), False, self.fit_intercept, decay, threshold / unit, labels)


class LinearRegression(_Regressor):
    """Least squares: |y - X w - b|^2.

    It needs more examples than columns. Where columns are combinations of others, the coefficients are those of least
    norm for standardised columns.
    """

    def __init__(self, *, fit_intercept=True, tol=1e-7, max_iter=200_000, dtype="float64", verbose=True):
        self.fit_intercept, self.tol, self.max_iter = fit_intercept, tol, max_iter
        self.dtype, self.verbose = dtype, verbose

    def _check_data(self, X: Array, y: Array) -> None:
        if len(X) < X.shape[1] + bool(self.fit_intercept):
            raise AnchorheadError(
                f"n_samples={len(X)} for {X.shape[1]} columns{' and an intercept' if self.fit_intercept else ''}: "
                "many coefficients fit as well. Use Ridge, or fewer columns"
            )

    def _task(self, y: Array) -> Task:
        return self._squared(y)


class Ridge(_Regressor):
    """|y - X w - b|^2 + alpha |w|^2."""

    def __init__(self, alpha=1.0, *, fit_intercept=True, tol=1e-7, max_iter=200_000, dtype="float64", verbose=True):
        self.alpha, self.fit_intercept, self.tol, self.max_iter = alpha, fit_intercept, tol, max_iter
        self.dtype, self.verbose = dtype, verbose

    def _task(self, y: Array) -> Task:
        return self._squared(y, decay=self._number("alpha") / len(y))


class ElasticNet(_Regressor):
    """|y - X w - b|^2 / (2 n) + alpha l1_ratio |w|_1 + alpha (1 - l1_ratio) |w|^2 / 2."""

    def __init__(
        self,
        alpha=1.0,
        *,
        l1_ratio=0.5,
        fit_intercept=True,
        tol=1e-7,
        max_iter=200_000,
        dtype="float64",
        verbose=True,
    ):
        self.alpha, self.l1_ratio, self.fit_intercept = alpha, l1_ratio, fit_intercept
        self.tol, self.max_iter, self.dtype, self.verbose = tol, max_iter, dtype, verbose

    def _task(self, y: Array) -> Task:
        alpha, ratio = self._number("alpha"), self._number("l1_ratio")
        if ratio > 1:
            raise AnchorheadError(f"l1_ratio={self.l1_ratio!r}: a number from 0 to 1")
        return self._squared(y, decay=alpha * (1 - ratio), threshold=alpha * ratio)


class Lasso(_Regressor):
    """|y - X w - b|^2 / (2 n) + alpha |w|_1.

    A coefficient that is 0 at the minimum comes out as 1e-12 or so: the threshold is a head, and rounds as heads do.
    """

    def __init__(self, alpha=1.0, *, fit_intercept=True, tol=1e-7, max_iter=200_000, dtype="float64", verbose=True):
        self.alpha, self.fit_intercept, self.tol, self.max_iter = alpha, fit_intercept, tol, max_iter
        self.dtype, self.verbose = dtype, verbose

    def _task(self, y: Array) -> Task:
        return self._squared(y, threshold=self._number("alpha"))


class LogisticRegression(ClassifierMixin, _InContext):
    """C sum of log(1 + exp(-y s)) + |w|^2 / 2, s = X w + b, for two classes y = -1 and 1."""

    def __init__(self, C=1.0, *, fit_intercept=True, tol=1e-7, max_iter=200_000, dtype="float64", verbose=True):
        self.C, self.fit_intercept, self.tol, self.max_iter = C, fit_intercept, tol, max_iter
        self.dtype, self.verbose = dtype, verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any) -> Any:
        """Fits the model to examples X (n, d) of two classes y (n,)."""
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind != "binary":
            raise AnchorheadError(f"Only binary classification is supported. The type of the target is {kind}.")
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise AnchorheadError(f"y holds one class, {self.classes_[0]!r}: two are needed")
        coefficients, intercept = self._learn(X, self._numbers_of(y))
        self.coef_, self.intercept_ = coefficients[None], np.array([intercept])
        return self

    def _numbers_of(self, y: Array) -> Array:
        return (y == self.classes_[1]).astype(np.float64)

    def _task(self, y: Array) -> Task:
        decay = 1 / (self._number("C", above=0.0) * len(y))
        return Task(named_loss("logistic"), bool(self.fit_intercept), self.fit_intercept, decay, slope=0.25)

    def decision_function(self, X: Any) -> Array:
        """X w + b: above 0 for the second class."""
        return self._scores(X)

    def predict(self, X: Any) -> Array:
        scores = self._scores(X)
        return self.classes_[(scores > 0).astype(int)]

    def predict_proba(self, X: Any) -> Array:
        """The probabilities of both classes, (n, 2)."""
        scores = self._scores(X)
        return np.exp(-np.logaddexp(0.0, np.stack([scores, -scores], axis=1)))

    def predict_log_proba(self, X: Any) -> Array:
        scores = self._scores(X)
        return -np.logaddexp(0.0, np.stack([scores, -scores], axis=1))


class PoissonRegressor(_Regressor):
    """mean of exp(s) - y s + alpha |w|^2 / 2, s = X w + b, for counts y.

    A head for exp serves on a range of s, that of y's mean in its middle: from 6 below to 3 above at first, at most
    from 16 below to 8 above. Examples whose scores leave that are refused.
    """

    def __init__(self, *, alpha=1.0, fit_intercept=True, tol=1e-7, max_iter=200_000, dtype="float64", verbose=True):
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
            return Task(named_loss("poisson"), True, True, alpha / mean, labels=labels, scores=POISSON_SCORES)
        return Task(named_loss("poisson"), False, False, alpha, slope=max(1.0, mean), scores=POISSON_SCORES)

    def predict(self, X: Any) -> Array:
        return np.exp(self._scores(X))


class HuberRegressor(_Regressor):
    """sum of scale H((y - s) / scale) + alpha |w|^2, s = X w + b, H(z) = z^2 for |z| <= epsilon, else
    2 epsilon |z| - epsilon^2.

    scikit-learn's objective for a given scale, which scikit-learn looks for as well. Here it is a parameter; without
    one it is 1.4826 times the median distance of y from its median. scale_ says what was taken.
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
        verbose=True,
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
        return Task(loss, self.fit_intercept, self.fit_intercept, alpha * self.scale_ / len(y), labels=labels)

    def objective(self, X: Any, y: Any, coefficients: Any = None, intercept: Any = None) -> float:
        """What fit makes least, at the fitted coefficients or at others."""
        w, s = _at(self, X, coefficients, intercept)
        z = np.abs(np.asarray(y, dtype=np.float64) - s) / self.scale_
        H = np.where(z <= self.epsilon, z**2, 2 * self.epsilon * z - self.epsilon**2)
        return float(self.scale_ * H.sum() + self.alpha * w @ w)


class QuantileRegressor(_Regressor):
    """mean of L(y - s) + alpha |w|_1, s = X w + b, L(r) = t log(1 + exp(-r / t)) + quantile r.

    For t -> 0 that is scikit-learn's, the larger of quantile r and (quantile - 1) r; it is at most t log 2 above it.
    t = smoothing times the standard deviation of y, and smoothing_ says what that was.
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
        verbose=True,
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
        intercept = bool(self.fit_intercept)
        return Task(
            loss,
            intercept,
            intercept,
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


MODELS = (
    LinearRegression,
    Ridge,
    Lasso,
    ElasticNet,
    LogisticRegression,
    PoissonRegressor,
    HuberRegressor,
    QuantileRegressor,
)
