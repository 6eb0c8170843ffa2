"""Fitting in context beside scikit-learn: time as a ratio, layers, and where the time goes.

scikit-learn solves each model its own way, as tightly as it can. In context, a step is one layer of attention for
squared losses, one more with a threshold, three for other links; of the time, "step ms" is what one step takes, and
"kept" is the share of all steps that belong to the learner that is kept: the others showed a better rate or momentum.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import torch

from anchorhead import incontext
from anchorhead.incontext.tables import made_table
from benchmarks.measure import best_time, command, in_own_process, peak_megabytes

MODELS = ("linear", "ridge", "lasso", "elastic net", "logistic", "poisson", "huber", "quantile")
SETS = ("diabetes", "cancer", "table")
LARGE = ("ridge, 10,000 x 50", "logistic, 10,000 x 50")


def main() -> list[dict]:
    cases = [f"{model}, {name}" for name in SETS for model in MODELS]
    return [in_own_process("benchmarks.learn", case) for case in (*cases, *LARGE)]


def run(case: str) -> dict:
    from anchorhead.incontext.estimators_reference import deviation, reference

    torch.set_num_threads(2)
    kind, _, name = case.partition(", ")
    X, y = data(name, {"logistic": "class", "poisson": "count"}.get(kind, "number"))
    model = estimator(kind, float(y.std()))
    began = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - began
    other = reference(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = best_time(lambda: other.fit(X, y), repeats=3)
    return {
        "case": case,
        "fit s": seconds,
        "time ratio": seconds / theirs,
        "steps": model.n_iter_,
        "layers": model.n_layers_,
        "kept": model.n_iter_ / model.n_steps_,
        "step ms": 1e3 * seconds / model.n_steps_,
        "difference": deviation(model, other),
        "MB": peak_megabytes(),
    }


def estimator(kind: str, size: float) -> Any:
    """Penalties in proportion to the labels' spread."""
    made = {
        "linear": lambda: incontext.LinearRegression(),
        "ridge": lambda: incontext.Ridge(alpha=1.0),
        "lasso": lambda: incontext.Lasso(alpha=0.02 * size),
        "elastic net": lambda: incontext.ElasticNet(alpha=0.05 * size),
        "logistic": lambda: incontext.LogisticRegression(C=1.0),
        "poisson": lambda: incontext.PoissonRegressor(alpha=0.1),
        "huber": lambda: incontext.HuberRegressor(),
        "quantile": lambda: incontext.QuantileRegressor(alpha=0.01 * size),
    }
    return made[kind]()


def data(name: str, label: str) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_breast_cancer, load_diabetes

    if name == "table":
        return made_table(label)  # type: ignore[arg-type]
    if name.startswith("10,000"):
        return made_table(label, rows=10_000, columns=50)  # type: ignore[arg-type]
    X, y = (load_diabetes if name == "diabetes" else load_breast_cancer)(return_X_y=True)
    if name == "diabetes":
        y = (y > 140).astype(float) if label == "class" else y
    else:
        y = np.round(X[:, 0]) if label == "count" else y.astype(float)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


if __name__ == "__main__":
    command(__doc__ or "", run, main)
