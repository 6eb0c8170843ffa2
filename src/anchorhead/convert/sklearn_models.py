"""scikit-learn's feed-forward networks as targets: MLPRegressor and MLPClassifier. scikit-learn is not imported."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions.parser import parse
from anchorhead.language.targets.mlp import Affine, Hidden, Mlp

ACTIVATIONS = {"identity": "x", "logistic": "sigmoid(x)", "tanh": "tanh(x)", "relu": "relu(x)"}
SUPPORTED = ("MLPRegressor", "MLPClassifier")
LINKS = ("identity", "exp", "softmax", "logistic")
"""What comes last; the two of classifiers are left out of what is converted."""


def from_sklearn(model: Any) -> bool:
    """Whether it is an object of scikit-learn, whichever."""
    return any(one.__module__.partition(".")[0] == "sklearn" for one in type(model).__mro__)


def mlp_of_sklearn(model: Any, tokens: int | None = None) -> tuple[Mlp, str]:
    """The network of a fitted MLPRegressor or MLPClassifier, and the dtype of its weights.

    Of a regressor, the result is the prediction. Of a classifier, it is the logits: what comes before softmax (one for
    each class), or before the logistic function (one, for two classes; one a label, for several labels). `classes_of`
    makes classes of them.
    """
    kind = next((one.__name__ for one in type(model).__mro__ if one.__name__ in SUPPORTED), None)
    if kind is None:
        raise AnchorheadError(
            f"a {type(model).__name__} of scikit-learn cannot be converted: {' and '.join(SUPPORTED)} can. Of a "
            "Pipeline, give its last step, and inputs as they come out of the steps before"
        )
    if not all(hasattr(model, name) for name in ("coefs_", "intercepts_", "out_activation_")):
        raise AnchorheadError(f"this {kind} is not fitted: call fit first")
    if model.activation not in ACTIVATIONS or model.out_activation_ not in LINKS:
        raise AnchorheadError(
            f"this {kind} has activation={model.activation!r} and, at its end, {model.out_activation_!r}: known are "
            f"{', '.join(ACTIVATIONS)} and {', '.join(LINKS)}"
        )
    phi = parse(ACTIVATIONS[model.activation])
    weights, biases = (_arrays(model, name, kind) for name in ("coefs_", "intercepts_"))
    if len(weights) != len(biases) or not weights:
        raise AnchorheadError(f"this {kind} has {len(weights)} coefs_ and {len(biases)} intercepts_: call fit first")
    layers = [_affine(*both, kind) for both in zip(weights, biases, strict=True)]
    hidden = [Hidden.of(one.weight, one.bias, phi) for one in layers[:-1]]
    readout = layers[-1]
    if model.out_activation_ == "exp":
        hidden.append(Hidden.of(readout.weight, readout.bias, parse("exp(x)")))
        readout = Affine(np.eye(readout.outputs), np.zeros(readout.outputs))
    dtype = "float32" if all(one.dtype == np.float32 for one in weights) else "float64"
    names = tuple(str(name) for name in getattr(model, "feature_names_in_", ()))
    return Mlp(tuple(hidden), readout, tokens, variables=names), dtype


def classes_of(model: Any, logits: Float[np.ndarray, "... outputs"]) -> np.ndarray:
    """The classes that logits of a converted MLPClassifier say, (...,), as model.predict gives them.

    Of more than two classes the one with the largest logit; of two, the second where the logit is above 0; of several
    labels, 1 for each whose logit is above 0, (..., labels).
    """
    logits = np.asarray(logits)
    if getattr(model, "out_activation_", None) not in ("softmax", "logistic"):
        raise AnchorheadError(f"a {type(model).__name__} has no classes: give a fitted MLPClassifier")
    if logits.shape[-1:] != (model.n_outputs_,):
        raise AnchorheadError(f"logits of shape {logits.shape}: needed is (..., {model.n_outputs_})")
    if model.out_activation_ == "softmax":
        return np.asarray(model.classes_)[logits.argmax(-1)]
    if model.n_outputs_ == 1:
        return np.asarray(model.classes_)[(logits[..., 0] > 0).astype(int)]
    return (logits > 0).astype(int)


def _arrays(model: Any, name: str, kind: str) -> list[np.ndarray]:
    """What fit has written down, in float32 or float64."""
    try:
        arrays = [np.asarray(one) for one in getattr(model, name)]
        return [one if one.dtype == np.float32 else one.astype(np.float64) for one in arrays]
    except (TypeError, ValueError) as error:
        raise AnchorheadError(f"{name} of this {kind} are no arrays of numbers: {error}") from error


def _affine(weight: np.ndarray, bias: np.ndarray, kind: str) -> Affine:
    if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
        raise AnchorheadError(f"this {kind} has weights that are not finite: it did not converge")
    return Affine(weight.T.astype(np.float64), bias.astype(np.float64))
