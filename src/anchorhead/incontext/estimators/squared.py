"""Least squares as models of scikit-learn that fit in context, with the penalties of ridge, lasso and elastic net."""

from __future__ import annotations

import numpy as np

from anchorhead.errors import AnchorheadError
from anchorhead.incontext.estimators.estimators import Array, Regressor
from anchorhead.incontext.estimators.task import Labels, Task
from anchorhead.language.targets.losses import named_loss

FAR = 4.0
"""Labels whose mean is more deviations from 0 are moved there. An intercept so much larger than the coefficients would
leave them few digits, since tol is relative to the largest weight."""


def squared_task(y: Array, fit_intercept: bool, decay: float = 0.0, threshold: float = 0.0) -> Task:
    """The squared loss with penalties, on labels that are scaled to deviation 1, or to mean square 1 if there is no
    intercept. They are moved to mean 0 where they are far from it; elsewhere the network finds all of the intercept."""
    mean = float(y.mean()) if fit_intercept else 0.0
    unit = float(np.sqrt(np.mean((y - mean) ** 2)))
    unit = unit if unit > 1e-12 * max(float(np.abs(y).max()), 1e-300) else 1.0
    labels = Labels.measured(mean if abs(mean) > FAR * unit else 0.0, unit)
    return Task(named_loss("squared"), bool(fit_intercept), decay, threshold / unit, labels)


class LinearRegression(Regressor):
    """Least squares: |y - X w - b|^2.

    It needs more examples than columns. Where columns are combinations of others, the coefficients are those of least
    norm for standardised columns.

        >>> incontext.LinearRegression().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).coef_.round(4).tolist()
        [2.0]
    """

    def __init__(self, *, fit_intercept=True, tol=1e-7, max_iter=200_000, dtype="float64", verbose=False):
        self.fit_intercept, self.tol, self.max_iter = fit_intercept, tol, max_iter
        self.dtype, self.verbose = dtype, verbose

    def _check_data(self, X: Array, y: Array) -> None:
        if len(X) < X.shape[1] + bool(self.fit_intercept):
            raise AnchorheadError(
                f"n_samples={len(X)} for {X.shape[1]} columns{' and an intercept' if self.fit_intercept else ''}: "
                "many coefficients fit as well. Use Ridge, or fewer columns"
            )

    def _task(self, y: Array) -> Task:
        return squared_task(y, self.fit_intercept)


class Ridge(Regressor):
    """|y - X w - b|^2 + alpha |w|^2.

    >>> incontext.Ridge(alpha=2.0).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).coef_.round(4).tolist()
    [1.0]
    """

    def __init__(self, alpha=1.0, *, fit_intercept=True, tol=1e-7, max_iter=200_000, dtype="float64", verbose=False):
        self.alpha, self.fit_intercept, self.tol, self.max_iter = alpha, fit_intercept, tol, max_iter
        self.dtype, self.verbose = dtype, verbose

    def _task(self, y: Array) -> Task:
        return squared_task(y, self.fit_intercept, decay=self._number("alpha") / len(y))


class ElasticNet(Regressor):
    """|y - X w - b|^2 / (2 n) + alpha l1_ratio |w|_1 + alpha (1 - l1_ratio) |w|^2 / 2.

    >>> incontext.ElasticNet(alpha=10.0).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).coef_.tolist()
    [0.0]
    """

    def __init__(
        self,
        alpha=1.0,
        *,
        l1_ratio=0.5,
        fit_intercept=True,
        tol=1e-7,
        max_iter=200_000,
        dtype="float64",
        verbose=False,
    ):
        self.alpha, self.l1_ratio, self.fit_intercept = alpha, l1_ratio, fit_intercept
        self.tol, self.max_iter, self.dtype, self.verbose = tol, max_iter, dtype, verbose

    def _task(self, y: Array) -> Task:
        alpha, ratio = self._number("alpha"), self._number("l1_ratio")
        if ratio > 1:
            raise AnchorheadError(f"l1_ratio={self.l1_ratio!r}: a number from 0 to 1")
        return squared_task(y, self.fit_intercept, decay=alpha * (1 - ratio), threshold=alpha * ratio)


class Lasso(Regressor):
    """|y - X w - b|^2 / (2 n) + alpha |w|_1.

    A coefficient that is 0 at the minimum leaves the network as 1e-15 or so, since the threshold is a head; what its
    proven error does not tell from 0 is read as 0.

        >>> incontext.Lasso(alpha=10.0).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).coef_.tolist()
        [0.0]
    """

    def __init__(self, alpha=1.0, *, fit_intercept=True, tol=1e-7, max_iter=200_000, dtype="float64", verbose=False):
        self.alpha, self.fit_intercept, self.tol, self.max_iter = alpha, fit_intercept, tol, max_iter
        self.dtype, self.verbose = dtype, verbose

    def _task(self, y: Array) -> Task:
        return squared_task(y, self.fit_intercept, threshold=self._number("alpha"))
