"""Data sets to learn from, the same in every test."""

from __future__ import annotations

import numpy as np


def regression(n: int = 64, d: int = 5, seed: int = 0, noise: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """Standardised columns and labels, a linear model with noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.3 * rng.standard_normal((d, d)))
    y = X @ rng.standard_normal(d) + noise * rng.standard_normal(n)
    return (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()


def safe_rate(X: np.ndarray, intercept: bool = False, slope: float = 1.0, decay: float = 0.0) -> float:
    """The largest rate at which descent cannot diverge, 2 over the largest second derivative."""
    A = np.column_stack([X, np.ones(len(X))]) if intercept else X
    return 2 / (slope * np.linalg.eigvalsh(A.T @ A / len(A))[-1] + decay)


AWKWARD = {
    "one example": lambda rng: (rng.uniform(-4, 4, (1, 5)), rng.uniform(-4, 4, 1)),
    "fewer examples than features": lambda rng: (rng.uniform(-1, 1, (3, 5)), rng.uniform(-4, 4, 3)),
    "the same column twice": lambda rng: (
        (lambda X: X[:, [0, 1, 2, 0, 1]])(rng.normal(size=(40, 5)).clip(-4, 4)),
        rng.normal(size=40).clip(-4, 4),
    ),
    "one label far out": lambda rng: (rng.uniform(-1, 1, (64, 5)), np.where(np.arange(64) == 7, 4.0, 0.0)),
    "entries at the corners": lambda rng: (rng.choice([-4.0, 4.0], (64, 5)), rng.choice([-4.0, 4.0], 64)),
    "columns of zeros": lambda rng: (rng.uniform(-4, 4, (20, 5)) * [1, 0, 1, 0, 1], rng.uniform(-4, 4, 20)),
    "tiny entries": lambda rng: (1e-8 * rng.normal(size=(30, 5)), rng.uniform(-4, 4, 30)),
}
