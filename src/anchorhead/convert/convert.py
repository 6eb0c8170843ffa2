"""What exists becomes attention: networks, splines, maxout units and kernel smoothers, each with a proof."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from anchorhead.constructions.build_options import Form, Layout, options_of
from anchorhead.constructions.kernel_smoother import kernel_smoother
from anchorhead.constructions.mlp import proven_mlp
from anchorhead.constructions.single.head import Placement, head
from anchorhead.convert.maxout import Maxout
from anchorhead.convert.onnx_files import mlp_from_onnx
from anchorhead.convert.sklearn_models import from_sklearn, mlp_of_sklearn
from anchorhead.convert.splines import spline_target
from anchorhead.convert.torch_modules import mlp_of
from anchorhead.convert.weight_files import mlp_from_safetensors
from anchorhead.decimals import beyond_float64
from anchorhead.disk import file_to_read
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.given import checked_count, checked_within
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.targets.kernel_smoother import KernelSmoother
from anchorhead.language.targets.mlp import Mlp
from anchorhead.network import Network, Outside
from anchorhead.network.dtypes import dtype_name
from anchorhead.progress import Progress, progress_line

ACCEPTED = (
    "a torch.nn.Sequential of Linear layers and activations, the path of a safetensors file with activation= or of an "
    "ONNX file, an MLPClassifier or MLPRegressor of scikit-learn, a scipy PPoly or BSpline, a Maxout or a "
    "KernelSmoother"
)


def convert(
    model: Any,
    on: Any = None,
    within: float | None = None,
    *,
    tokens: int | None = None,
    form: Form | None = None,
    layout: Layout | None = None,
    placement: Placement | None = None,
    dtype: Any = None,
    causal: bool = False,
    activation: str | None = None,
    order: Sequence[str] | None = None,
    output: str | None = None,
    outside: Outside = "warn",
    progress: Progress | bool | None = True,
) -> Network:
    """An attention-only network that is proven within an error of the model, on a box of inputs.

    model      a torch.nn.Sequential of Linear layers and activations; a safetensors file of its weights, with
               activation=; an ONNX file; an MLPClassifier (its logits) or MLPRegressor of scikit-learn; a scipy PPoly
               or BSpline; a Maxout; a KernelSmoother
    on         the box: (0, 1), or a pair of arrays with the ends of each input; a spline has its own
    within     the error asked for, in the sup norm over the box, rounding included
    tokens     the model's input and output vectors are so many tokens, one after the other:
               (..., tokens, features) to (..., tokens, outputs); without, (..., inputs) to (..., outputs)
    form       "two-layer" or "attention-softmax", for one hidden layer; "deep": one attention layer for each hidden
               layer
    layout     "transformer": linear maps act on a token alone; "sequence": the paper's, across all tokens
    placement  "solved": anchors where they serve best; "uniform": the paper's
    dtype      float32 or float64; by default the model's own
    causal     token i's output may depend on tokens up to i only (transformer layout)
    activation  what stands between the layers of a safetensors file
    order      of a safetensors file: the names of its layers, first to last; by default sorted, fc2 before fc10
    output     of an ONNX file: the name of the value at which the network ends; by default its only output
    outside    what a call does with inputs outside the box: "warn", "raise", "clip" or "ignore"
    progress   a line for those who wait, none (False), or a function of a Status: see anchorhead.progress

    returns   a Network with its certificate; NotReached, which holds the best network, where `within` is out of reach

        >>> net = ah.convert("examples/mlp.safetensors", on=(0, 1), within=1e-6, activation="relu")
        >>> net([0.1, 0.2, 0.3, 0.4]).shape
        (2,)
        >>> net.certificate.bound <= 1e-6
        True
    """
    with progress_line(progress, "converting") as tell, beyond_float64():
        target, own = read(model, tokens, activation, output, order)
        kind = dtype_name(own if dtype is None else dtype)
        words = {"tokens": tokens, "form": form, "layout": layout, "placement": placement, "causal": causal or None}
        if isinstance(target, Expression):
            return _spline(target, model, on, within, kind, words, outside, tell)
        if isinstance(target, KernelSmoother):
            _refuse(words, "a kernel smoother is one softmax head, exactly")
            return kernel_smoother(target, _box(on), kind, within, outside)
        if within is None:
            raise AnchorheadError("within is missing: the error asked for, as in within=1e-4")
        within = checked_within(within)
        options = options_of(target, form, layout or "transformer", placement or "solved", kind, causal)  # type: ignore[arg-type]
        if on is None and type(model).__module__.startswith("scipy.interpolate"):
            on = spline_target(model)[1]
        if on is None and from_sklearn(model):
            raise AnchorheadError(
                "on is missing: the box of inputs; of training data X it is on=(X.min(axis=0), X.max(axis=0))"
            )
        return proven_mlp(target, _box(on), within, options, outside, tell).network


def read(
    model: Any,
    tokens: Any,
    activation: str | None,
    output: str | None = None,
    order: Sequence[str] | None = None,
) -> tuple[Mlp | KernelSmoother | Expression, str]:
    """The target that a model is, and the dtype of its weights."""
    if isinstance(model, str | Path) and Path(model).suffix.lower() == ".onnx":
        for name, word in (("activation", activation), ("order", order)):
            if word is not None:
                raise AnchorheadError(f"{name}={word!r} goes with a file of weights; {model} says its own")
        return mlp_from_onnx(model, checked_tokens(tokens), output)
    if output is not None:
        raise AnchorheadError(f"output={output!r} goes with an ONNX file, *.onnx: leave it out")
    if isinstance(model, str | Path):
        file_to_read(model, "a safetensors or ONNX file")
        if activation is None:
            raise AnchorheadError(f"{model} holds weights alone: say activation=, such as activation='relu'")
        return mlp_from_safetensors(model, activation, checked_tokens(tokens), order)
    for name, word in (("activation", activation), ("order", order)):
        if word is not None:
            raise AnchorheadError(f"{name}={word!r} goes with a file of weights; this model has its own")
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


def _box(on: Any) -> Box:
    if on is None:
        raise AnchorheadError("on is missing: the box of inputs, as in on=(0, 1)")
    return Box.of(on)


def _refuse(words: dict[str, Any], why: str) -> None:
    given = [f"{name}={value!r}" for name, value in words.items() if value is not None]
    if given:
        raise AnchorheadError(f"{', '.join(given)}: {why}; leave out {', '.join(words)}")


def _spline(
    target: Expression,
    model: Any,
    on: Any,
    within: float | None,
    dtype: str,
    words: dict[str, Any],
    outside: Outside,
    progress: Progress | None,
) -> Network:
    """A spline of higher degree is a function of one variable: one head."""
    placement = words.pop("placement") or "solved"
    _refuse(words, "a spline of one variable becomes one head")
    if within is None:
        raise AnchorheadError("within is missing: the error asked for, as in within=1e-4")
    ends = Box.of(spline_target(model)[1] if on is None else on)
    if ends.low.size != 1:
        raise AnchorheadError(f"on={on!r}: a spline has one variable, give its two ends")
    interval = float(ends.low.reshape(-1)[0]), float(ends.high.reshape(-1)[0])
    found = head(target, interval, within=within, dtype=dtype, placement=placement, progress=progress)
    return found.network.with_(token_axis=False, outside=outside)
