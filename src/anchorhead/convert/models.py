"""Models of other worlds as programs: networks, splines, maxout units and kernel smoothers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from anchorhead.convert.maxout import Maxout
from anchorhead.convert.onnx_files import mlp_from_onnx
from anchorhead.convert.sklearn_models import from_sklearn, mlp_of_sklearn
from anchorhead.convert.splines import spline_target
from anchorhead.convert.torch_modules import mlp_of
from anchorhead.convert.weight_files import mlp_from_safetensors
from anchorhead.disk import file_to_read
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.given import checked_count
from anchorhead.language.entries import Entries
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.of_targets import program_of
from anchorhead.language.program import Program
from anchorhead.language.targets.kernel_smoother import KernelSmoother
from anchorhead.language.targets.mlp import Mlp

ACCEPTED = (
    "a torch.nn.Sequential of Linear layers and activations, the path of a safetensors file with activation= or of an "
    "ONNX file, an MLPClassifier or MLPRegressor of scikit-learn, a scipy PPoly or BSpline, a Maxout or a "
    "KernelSmoother"
)


def program_of_model(
    model: Any,
    on: Any,
    tokens: Any,
    activation: str | None = None,
    output: str | None = None,
    order: Sequence[str] | None = None,
) -> tuple[Program, str]:
    """The program that a model is on a box, which a spline has of its own, and the dtype of its weights."""
    target, own = read(model, tokens, activation, output, order)
    if tokens is not None and not isinstance(target, Mlp):
        what = "a spline of one variable" if isinstance(target, Expression) else "a kernel smoother"
        raise AnchorheadError(f"tokens={tokens!r}: {what} takes one; leave it out")
    box = _box(model, on)
    if isinstance(target, Expression):
        if box.low.size != 1:
            raise AnchorheadError(f"on={on!r}: a spline has one variable, give its two ends")
        low, high = ((float(end.reshape(-1)[0]),) for end in (box.low, box.high))
        return Entries((target,), target.variables or ("x",), low, high).program(), own
    whole = box.broadcast_to(target.input_shape if isinstance(target, Mlp) else (target.inputs,))
    return program_of(target, (whole.low, whole.high)), own


def _box(model: Any, on: Any) -> Box:
    if on is not None:
        return Box.of(on)
    if type(model).__module__.startswith("scipy.interpolate"):
        return Box.of(spline_target(model)[1])
    if from_sklearn(model):
        raise AnchorheadError(
            "on is missing: the box of inputs; of training data X it is on=(X.min(axis=0), X.max(axis=0))"
        )
    raise AnchorheadError("on is missing: the box of inputs, as in on=(0, 1)")


def read(
    model: Any,
    tokens: Any,
    activation: str | None,
    output: str | None = None,
    order: Sequence[str] | None = None,
) -> tuple[Mlp | KernelSmoother | Expression, str]:
    """The target that a model is, and the dtype of its weights."""
    a_file = isinstance(model, str | Path)
    in_onnx = a_file and Path(model).suffix.lower() == ".onnx"
    if output is not None and not in_onnx:
        raise AnchorheadError(f"output={output!r} goes with an ONNX file, *.onnx: leave it out")
    for name, word in (("activation", activation), ("order", order)):
        if word is not None and (in_onnx or not a_file):
            holder = f"{model} says" if in_onnx else "this model has"
            raise AnchorheadError(f"{name}={word!r} goes with a file of weights; {holder} its own")
    if in_onnx:
        return mlp_from_onnx(model, checked_tokens(tokens), output)
    if a_file:
        file_to_read(model, "a safetensors or ONNX file")
        if activation is None:
            raise AnchorheadError(f"{model} holds weights alone: say activation=, such as activation='relu'")
        return mlp_from_safetensors(model, activation, checked_tokens(tokens), order)
    if isinstance(model, Mlp):
        return (model if tokens is None else replace(model, tokens=checked_tokens(tokens))), "float64"
    if isinstance(model, torch.nn.Module):
        return mlp_of(model, checked_tokens(tokens))
    if from_sklearn(model):
        return mlp_of_sklearn(model, checked_tokens(tokens))
    if isinstance(model, Maxout):
        return model.mlp(checked_tokens(tokens)), "float64"
    if isinstance(model, KernelSmoother):
        return model, "float64"
    if type(model).__module__.startswith("scipy.interpolate"):
        return spline_target(model)[0], "float64"
    raise AnchorheadError(f"a {type(model).__name__} cannot be converted: give {ACCEPTED}")


def checked_tokens(tokens: Any) -> int | None:
    return None if tokens is None else checked_count("tokens", tokens)
