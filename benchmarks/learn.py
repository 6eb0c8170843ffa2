"""Fitting in context beside scikit-learn: time as a ratio, layers, and where the time goes.

All on one core, in seconds of its time, models of one table in one process. scikit-learn solves each model its own way,
as tightly as it can; in context it takes "steps" steps, each one layer of attention for squared losses, one more with a
threshold, three for other links. Squared losses stop at tol=1e-7, others at 1e-5.

Where the time goes: "step ms" is what one step takes, "in layers" about the share of the fit that is the forward pass
through attention layers, and "kept" the share of all steps that belong to the learner that is kept: the others showed a
better rate or momentum. "difference" is the largest of two coefficients, relative to the largest; huber's and
quantile's objectives are not scikit-learn's. MB: the most memory that the process has held so far.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from anchorhead import incontext
from anchorhead.incontext.estimators.reference import deviation, reference
from anchorhead.incontext.settled import states
from benchmarks.made_table import made_table
from benchmarks.measure import best_time, command, in_own_process, peak_megabytes

MODELS = ("linear", "ridge", "lasso", "elastic net", "logistic", "poisson", "huber", "quantile")
LARGE = "10,000 x 50"
SETS = {"diabetes": MODELS, "cancer": MODELS, "table": MODELS, LARGE: ("ridge", "logistic")}
LABELS = {"logistic": "class", "poisson": "count"}
TIMED_STEPS = 50


def main() -> list[dict]:
    return [row for name in SETS for row in in_own_process("benchmarks.learn", name)]


def run(name: str) -> list[dict]:
    """All models of one set, or one alone: "ridge, diabetes"."""
    torch.set_num_threads(1)
    model, comma, rest = name.partition(", ")
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if comma:
            return [measured(model, rest)]
        return [measured(one, name) for one in SETS[name]]


def measured(kind: str, name: str) -> dict:
    X, y = data(name, LABELS.get(kind, "number"))
    model = estimator(kind, float(y.std()))
    began = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - began
    other = reference(model)
    theirs = best_time(lambda: other.fit(X, y), repeats=3, clock=time.process_time)
    return {
        "case": f"{kind}, {name}",
        "fit s": seconds,
        "time ratio": seconds / theirs,
        "steps": model.n_iter_,
        "layers": model.n_layers_,
        "kept": model.n_iter_ / model.n_steps_,
        "step ms": 1e3 * seconds / model.n_steps_,
        "in layers": model.n_steps_ * step_seconds(model, X, y) / seconds,
        "difference": deviation(model, other),
        "MB": peak_megabytes(),
    }


def step_seconds(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """What the layers of one step take by themselves, the first left out: it sets them up."""
    steps = min(TIMED_STEPS, model.n_iter_)
    running = states(model.network_.with_steps(steps + 1), model.prompt(X, y))
    next(running)
    began = time.process_time()
    for _ in running:
        pass
    return (time.process_time() - began) / steps


def estimator(kind: str, size: float) -> Any:
    """Penalties in proportion to the labels' spread."""
    made = {
        "linear": lambda: incontext.LinearRegression(),
        "ridge": lambda: incontext.Ridge(alpha=1.0),
        "lasso": lambda: incontext.Lasso(alpha=0.02 * size),
        "elastic net": lambda: incontext.ElasticNet(alpha=0.05 * size),
        "logistic": lambda: incontext.LogisticRegression(C=1.0, tol=1e-5),
        "poisson": lambda: incontext.PoissonRegressor(alpha=0.1, tol=1e-5),
        "huber": lambda: incontext.HuberRegressor(tol=1e-5),
        "quantile": lambda: incontext.QuantileRegressor(alpha=0.01 * size, tol=1e-5),
    }
    return made[kind]()


def data(name: str, label: str) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_breast_cancer, load_diabetes

    if name == "table":
        return made_table(label)  # type: ignore[arg-type]
    if name == LARGE:
        return made_table(label, rows=10_000, columns=50)  # type: ignore[arg-type]
    X, y = (load_diabetes if name == "diabetes" else load_breast_cancer)(return_X_y=True)
    if name == "diabetes":
        y = (y > 140).astype(float) if label == "class" else y
    else:
        y = np.round(X[:, 0]) if label == "count" else y.astype(float)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


if __name__ == "__main__":
    command(__doc__ or "", run, main)
