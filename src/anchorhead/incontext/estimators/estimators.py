"""Models of scikit-learn whose fit is a forward pass: the examples are a prompt, attention layers find the weights.

Outside the network each column is standardised, moved and scaled by itself, and so are labels; nothing else. The
intercept is an entry of the network's weights, like the coefficients. After fit:

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
    verbose         whether a line on stderr says how far it is, if it takes more than three seconds and someone sees
                    it (anchorhead.progress); by default not, as is scikit-learn's way

All examples count alike: a sample_weight of fit other than None, and class_weight of a LogisticRegression, are refused.
Where a threshold makes coefficients 0 they are exactly 0: incontext.estimators.zeros says how that is told.

A constant column gets the coefficient 0, and a warning names it.

network_ has no certificate; network_.certify(prompt) proves a bound for one prompt where steps are few. On another
prompt its rate may be too large. For a squared loss that is seen at once, and the prompt is refused; for other losses
only by following exact descent on the prompt, which takes about as long as the network itself, so that network_ is
built with outside="ignore": network_(prompt, outside="warn") follows it, and refuses.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from anchorhead.decimals import counted
from anchorhead.errors import AnchorheadError
from anchorhead.given import checked_count, checked_number
from anchorhead.incontext.estimators.fit import fitted
from anchorhead.incontext.estimators.task import Task, coefficients_of, require_finite
from anchorhead.incontext.estimators.zeros import with_zeros
from anchorhead.network import Repeat
from anchorhead.network.dtypes import dtype_name
from anchorhead.progress import progress_line

Array = Float[np.ndarray, "..."]


class ColumnWarning(UserWarning):
    """Columns are constant: nothing can be learned from them.

    columns   their numbers
    """

    def __init__(self, columns: Sequence[int], names: Any = None) -> None:
        which = ", ".join(str(j if names is None else names[j]) for j in columns[:8])
        super().__init__(f"constant columns get the coefficient 0: {which}{', ...' if len(columns) > 8 else ''}")
        self.columns = tuple(columns)


class InContext(BaseEstimator):
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
        require_finite(X, y)
        task = self._task(y)
        self.columns_, self.labels_ = task.columns(X), task.labels
        with progress_line(bool(self.verbose), "fitting") as tell:
            found, self.n_steps_ = fitted(
                task, self.columns_, X, y, self.tol, self.max_iter, dtype_name(self.dtype), tell
            )
        self.network_, self.n_iter_, self.distance_ = found.learner, found.steps, found.distance
        layers = next(layer for layer in found.learner.layers if isinstance(layer, Repeat))
        self.n_layers_ = layers.steps
        self._warn(found.outcome == "settled")
        return self.coefficients(found.w)

    def _warn(self, settled: bool) -> None:
        constant = np.flatnonzero(self.columns_.constant)
        if constant.size:
            warnings.warn(ColumnWarning(constant.tolist(), getattr(self, "feature_names_in_", None)), stacklevel=4)
        if not settled:
            left = f"about {self.distance_:.2g} is left" if np.isfinite(self.distance_) else "how far is not known yet"
            warnings.warn(
                f"{counted(self.n_iter_, 'step')} did not settle within tol={self.tol:g}: {left}. "
                "Give a larger max_iter or tol, or columns that are less alike",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _check_parameters(self) -> None:
        self._number("tol", above=0.0)
        checked_count("max_iter", self.max_iter)

    def _number(self, name: str, above: float | None = None, least: float = 0.0, below: float = np.inf) -> float:
        """A parameter as a float, if it is one of those allowed."""
        low = f"above {above:g}" if above is not None else f"of at least {least:g}"
        high = "" if below == np.inf else f" and below {below:g}"
        needed = f"{type(self).__name__} takes a number {low}{high}"
        bounds = {"least": least} if above is None else {"above": above}
        return checked_number(name, getattr(self, name), needed, below=below, **bounds)

    def _refuse_weights(self, others: tuple[Any, ...], words: dict[str, Any]) -> None:
        """Refuses what fit is given beyond X and y; scikit-learn takes a parameter sample_weight for a promise."""
        given = {**dict(zip(("sample_weight", "another argument"), others, strict=False)), **words}
        wrong = [name for name, value in given.items() if name != "sample_weight" or value is not None]
        if wrong:
            raise AnchorheadError(
                f"fit of {type(self).__name__} was given {', '.join(wrong)}: it takes X and y, and all examples count "
                "alike; leave it out, or give examples that count more several times"
            )

    def prompt(self, X: Any, y: Any) -> Array:
        """The prompt of other examples for network_, moved and scaled as those of fit were.

        What the network makes least is what fit made least: of a penalty that is divided by the number of examples, n
        is that of fit. The intercept is found anew, and so is the rest; middle, scale, centre and unit are fit's.
        """
        check_is_fitted(self, "network_")
        examples = np.asarray(validate_data(self, X, dtype=np.float64, reset=False))
        return self.network_.prompt(self.columns_(examples), self.labels_(self._numbers_of(np.asarray(y))))

    def coefficients(self, w: Array) -> tuple[Array, float]:
        """Coefficients and intercept for one's own columns, from the weights w that network_ makes of a prompt."""
        check_is_fitted(self, "network_")
        given, needed = np.asarray(w, dtype=np.float64), self.network_.descent.weights
        if given.shape != (needed,):
            raise AnchorheadError(
                f"w has the shape {given.shape}: needed are the {needed} weights of network_(prompt), one a column"
                f"{' and that of the intercept' if self.network_.descent.intercept else ''}, of one prompt"
            )
        return coefficients_of(with_zeros(self.network_, given), self.columns_, self.labels_)

    def _numbers_of(self, y: np.ndarray) -> Array:
        """The labels as the loss takes them, before they are moved and scaled."""
        try:
            return y.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise AnchorheadError(f"y holds {y.dtype} labels: {type(self).__name__} takes numbers") from error

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        given = validate_data(self, X, dtype=np.float64, reset=False)
        return given @ np.ravel(self.coef_) + np.ravel(self.intercept_)[0]


class Regressor(RegressorMixin, InContext):
    def fit(self, X: Any, y: Any, *others: Any, **words: Any) -> Any:
        """Fits the model to examples X (n, d) and labels y (n,), which all count alike."""
        self._refuse_weights(others, words)
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        y = np.asarray(y, dtype=np.float64)
        self._check_data(X, y)
        self.coef_, self.intercept_ = self._learn(X, y)
        return self

    def predict(self, X: Any) -> Array:
        return self._scores(X)

    def _check_data(self, X: Array, y: Array) -> None: ...
