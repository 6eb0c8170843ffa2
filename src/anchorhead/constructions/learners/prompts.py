"""Prompts: the examples that a learner reads, each twice, once with either sign.

A prompt of n examples with d features is an array (2n, d + 2). Row i is (x_i, 1, y_i), row n + i is its negative. The
entry 1 or -1 tells the copies apart, and serves as the column of an intercept. For a loss of the margin, row i is
(y_i x_i, y_i, 1): there the last entry tells the copies apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from anchorhead.errors import AnchorheadError
from anchorhead.given import numbers, shown
from anchorhead.language.targets.losses import Loss, named_loss
from anchorhead.network.tensors import without_torch


def prompt(X: Any, y: Any, loss: str | Loss = "squared", standardise: bool = False) -> Any:
    """The prompt (2n, d + 2) of examples X (n, d) with labels y (n,), or (..., 2n, d + 2) of many data sets at once.

    loss          for its labels: logistic takes 0 and 1 or -1 and 1; for hinge the examples are multiplied by them
    standardise   columns to mean 0 and variance 1 first; refused for a constant column

    Arrays in, an array out; tensors in, a tensor out.

        >>> incontext.prompt([[1.0], [-1.0]], [2.0, -2.0]).shape
        (4, 3)
    """
    kind = named_loss(loss) if isinstance(loss, str) else loss
    examples, labels = array_of(X, "X"), array_of(y, "y")
    if examples.ndim < 2 or labels.shape != examples.shape[:-1] or not examples.size:
        raise AnchorheadError(
            f"X of shape {examples.shape} with y of shape {labels.shape}: needed are (..., examples, features) and "
            "(..., examples), at least one of each"
        )
    if standardise:
        examples = standardised(examples)[0]
    labels = kind.checked_labels(labels)
    if kind.form == "y phi(y s)":
        signed = np.concatenate([labels[..., None] * examples, labels[..., None], np.ones_like(labels)[..., None]], -1)
    else:
        signed = np.concatenate([examples, np.ones_like(labels)[..., None], labels[..., None]], -1)
    made = np.concatenate([signed, -signed], axis=-2)
    return torch.from_numpy(made).to(X.device) if isinstance(X, Tensor) else made


def standardised(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The columns of X less their mean, over their standard deviation; the means; the deviations.

    >>> X, means, deviations = incontext.standardised([[1.0], [3.0]])
    >>> X.tolist(), means.tolist(), deviations.tolist()
    ([[-1.0], [1.0]], [2.0], [1.0])
    """
    examples = array_of(X, "X")
    mean, scale = examples.mean(axis=-2, keepdims=True), examples.std(axis=-2, keepdims=True)
    flat = scale <= 1e-12 * np.abs(examples).max(axis=-2, keepdims=True)
    if flat.any():
        column = int(np.argwhere(flat)[0][-1])
        raise AnchorheadError(f"column {column} of X is constant: it cannot be standardised; leave it out")
    return (examples - mean) / scale, mean[..., 0, :], scale[..., 0, :]


@dataclass(frozen=True, eq=False)
class Examples:
    """What a prompt says, read back: X (n, d), the column s (n,) of 1 or of labels, and y (n,)."""

    X: Float[np.ndarray, "n d"]
    ones: Float[np.ndarray, " n"]
    y: Float[np.ndarray, " n"]

    def design(self, intercept: bool) -> Float[np.ndarray, "n weights"]:
        """What w multiplies: the features, and the column of the intercept."""
        return np.concatenate([self.X, self.ones[:, None]], axis=1) if intercept else self.X


def examples_of(given: Any, features: int, loss: Loss | None = None) -> list[Examples]:
    """The examples of one prompt (2n, d + 2), or of many (..., 2n, d + 2); refuses what is no prompt.

    loss   for which it is a prompt: only for a loss of the margin may the column of signs be -1 in the first half.
           There the copies are told apart by the last column; for all others, a row with -1 is a negative copy.
    """
    array = array_of(given, "the prompt")
    if array.ndim < 2 or array.shape[-1] != features + 2 or array.shape[-2] % 2 or not array.shape[-2]:
        raise AnchorheadError(
            f"a prompt of shape {array.shape} for {features} features: needed is (..., 2 x examples, {features + 2}), "
            "as incontext.prompt(X, y) makes it"
        )
    n = array.shape[-2] // 2
    plus, minus = array[..., :n, :], array[..., n:, :]
    if not (np.array_equal(plus, -minus) and (np.abs(plus[..., -2]) == 1).all()):
        raise AnchorheadError(
            "this is no prompt: its second half must be the negative of its first, with 1 or -1 in the last column "
            "but one. incontext.prompt(X, y) makes it so"
        )
    if loss is not None and loss.form != "y phi(y s)" and not (plus[..., -2] == 1).all():
        raise AnchorheadError(
            f"this is no prompt for the {loss}: the last column but one must be 1 in its first half and -1 in its "
            "second. incontext.prompt(X, y) makes it so"
        )
    rows = plus.reshape(-1, n, features + 2).astype(np.float64)
    return [Examples(row[:, :features], row[:, features], row[:, features + 1]) for row in rows]


def refused_label(loss: Loss, y: Float[np.ndarray, " n"]) -> float | None:
    """An entry of a prompt's last column, first half, that a prompt for this loss cannot have: labels of a logistic
    loss are 0 and 1 there, of Poisson's not below 0, and examples for a loss of the margin hold 1."""
    if loss.form == "y phi(y s)":
        allowed = y == 1
    elif loss.name == "logistic":
        allowed = (y == 0) | (y == 1)
    else:
        allowed = y >= 0 if loss.name == "poisson" else np.full(y.shape, True)
    return None if allowed.all() else float(y[~allowed][0])


def array_of(given: Any, name: str) -> np.ndarray:
    """A prompt, X or y as an array of float32 or float64; refuses what holds anything but finite numbers."""
    given = without_torch(given, name)
    kept = isinstance(given, np.ndarray) and given.dtype in (np.float32, np.float64)
    array = given if kept else numbers(given)
    if array is None:
        raise AnchorheadError(
            f"{name} is {shown(given)}: needed is an array of real numbers, as incontext.prompt(X, y) takes"
        )
    if array.ndim == 0:
        raise AnchorheadError(
            f"{name} is {shown(given)}: needed is an array, as incontext.prompt(X, y) takes and makes them"
        )
    if not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise AnchorheadError(f"{name} has the entry {array[place]} at {place}: all must be finite")
    return array
