"""What exists becomes attention: networks, splines, maxout units and kernel smoothers, each with a proof."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anchorhead.constructions.build_request import BuildRequest, Form, Layout, Placement
from anchorhead.constructions.compile import compiled
from anchorhead.convert.models import program_of_model
from anchorhead.decimals import beyond_float64
from anchorhead.network import Network, Outside
from anchorhead.network.dtypes import dtype_name
from anchorhead.progress import Progress, progress_line


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
        program, own = program_of_model(model, on, tokens, activation, output, order)
        request = BuildRequest(
            within,
            dtype_name(own if dtype is None else dtype),
            form,
            layout,
            placement or "solved",
            causal,
            outside=outside,
            progress=tell,
        )
        return compiled(program, request)
