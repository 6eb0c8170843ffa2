"""Lengths of vectors and norms of matrices, bounded from above whatever float64 rounds."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from anchorhead.proof.arithmetic.arithmetic import FLOAT64, UP

SQUARINGS = 10


def lengths(vectors: Float[np.ndarray, "... d"]) -> Float[np.ndarray, "..."]:
    """Bounds on the lengths along the last axis; their squares neither overflow nor vanish."""
    largest = np.asarray(np.abs(vectors).max(axis=-1, initial=0.0))
    with np.errstate(all="ignore"):
        scale = np.where((largest > 0) & np.isfinite(largest), np.ldexp(1.0, np.frexp(largest)[1] - 1), 1.0)
        found = np.linalg.norm(vectors / scale[..., None], axis=-1) * scale
        return np.asarray(np.maximum(found * UP, largest))


def length_of(vector: Float[np.ndarray, " d"]) -> float:
    """A bound on the length of one vector."""
    return float(lengths(vector))


def eigenvalue_bound(A: Float[np.ndarray, "n weights"]) -> float:
    """An upper bound on the largest eigenvalue of A'A/n, about a tenth of a per cent above it."""
    gram, error = gram_of(A)
    return norm_bound(gram, error)


def gram_of(A: Float[np.ndarray, "n weights"]) -> tuple[Float[np.ndarray, "weights weights"], float]:
    """A'A/n, and a bound on its error in the Frobenius norm."""
    n = len(A)
    size = np.abs(A)
    rounded = float(FLOAT64.gamma(n + 2)) * float(np.linalg.norm(size.T @ size / n)) * UP
    return A.T @ A / n, rounded + 4 * A.shape[1] * FLOAT64.tiny


def norm_bound(P: Float[np.ndarray, "d d"], error: float) -> float:
    """A bound on the norm of a symmetric matrix that is known up to `error` in the Frobenius norm.

    |P| = |P^m|^(1/m) <= |P^m|_F^(1/m), m = 2^10. The errors of the products, by |fl(PQ) - PQ| <= gamma |P||Q|, are
    followed along.
    """
    log_scale = 0.0
    for _ in range(SQUARINGS):
        norm = float(np.linalg.norm(P)) * UP
        if norm + error == 0:
            break
        # an error larger than the matrix itself must not overflow either
        scale = 2.0 ** math.floor(math.log2(norm + error))
        P, error, norm = P / scale, error / scale, norm / scale
        log_scale = 2 * (log_scale + math.log(scale))
        error = (2 * norm * error + error**2 + float(FLOAT64.gamma(len(P))) * norm**2) * UP
        P = P @ P
    last = (float(np.linalg.norm(P)) + error) * UP
    return 0.0 if last == 0 else math.exp((log_scale + math.log(last)) / 2.0**SQUARINGS) * UP
