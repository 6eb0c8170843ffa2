"""Feed-forward networks of torch as targets: an nn.Sequential of Linear layers and activations, layer by layer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import is_lazy
from torch.nn.utils import parametrize

from anchorhead.errors import AnchorheadError
from anchorhead.given import require_finite
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.parser import parse
from anchorhead.language.targets.mlp import IDENTITY, Affine, Hidden, Mlp
from anchorhead.network.tensors import require_dense

USUAL_THRESHOLD = 20
"""Of torch's Softplus, beyond which it is x."""

ACTIVATIONS: dict[type[nn.Module], Callable[[Any], str]] = {
    nn.ReLU: lambda m: "relu(x)",
    nn.LeakyReLU: lambda m: f"leaky_relu(x, {_exact(m.negative_slope)})",
    nn.ReLU6: lambda m: "relu6(x)",
    nn.Hardtanh: lambda m: f"hardtanh(x, {_exact(m.min_val)}, {_exact(m.max_val)})",
    nn.Hardswish: lambda m: "hardswish(x)",
    nn.Hardsigmoid: lambda m: "hardsigmoid(x)",
    nn.GELU: lambda m: "gelu(x)" if m.approximate == "none" else "gelu_tanh(x)",
    nn.SiLU: lambda m: "silu(x)",
    nn.Mish: lambda m: "mish(x)",
    nn.ELU: lambda m: f"elu(x, {_exact(m.alpha)})",
    nn.SELU: lambda m: "selu(x)",
    nn.CELU: lambda m: f"celu(x, {_exact(m.alpha)})",
    nn.Softplus: lambda m: _softplus(m),
    nn.Tanh: lambda m: "tanh(x)",
    nn.Sigmoid: lambda m: "sigmoid(x)",
    nn.Softsign: lambda m: "softsign(x)",
    nn.Softshrink: lambda m: f"soft_threshold(x, {_exact(m.lambd)})" if m.lambd else "x",
    nn.Tanhshrink: lambda m: "x - tanh(x)",
    nn.LogSigmoid: lambda m: "-softplus(-x)",
}
"""The activation of each module, an expression in x."""
DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.AlphaDropout, nn.FeatureAlphaDropout)
BY_ONNX = (nn.Conv1d, nn.Conv2d, nn.BatchNorm2d, nn.AvgPool1d, nn.AvgPool2d, nn.ZeroPad2d, nn.Dropout2d)
"""Modules that are not read here, but as nodes of an ONNX file."""
OTHERS = (nn.Linear, nn.Sequential, nn.Identity, nn.Flatten, *DROPOUTS, nn.BatchNorm1d, nn.PReLU)


@dataclass(frozen=True, eq=False)
class _Layer:
    """A module on the way through the network, and what messages call it."""

    path: str
    module: nn.Module

    @property
    def kind(self) -> type[nn.Module]:
        """Its class; where torch put a parametrised one in its place, the one before."""
        return parametrize.type_before_parametrizations(self.module)

    @property
    def name(self) -> str:
        return f"layer {self.path} ({self.kind.__name__})" if self.path else f"the {self.kind.__name__}"


def mlp_of(module: nn.Module, tokens: int | None = None) -> tuple[Mlp, str]:
    """The network as a target, and the dtype of its weights, "float32" or "float64".

    Linear maps in a row are kept apart, by layers without an activation; an activation that follows no linear map acts
    on the identity. Flatten does nothing to a vector, Dropout nothing outside training. A BatchNorm1d is the affine map
    of its running statistics, with scale = weight / sqrt(var + eps) and shift = bias - mean scale, both as float64
    rounds them. Softplus is log(1 + exp(beta x)) / beta for all x: torch's is x beyond its threshold, which at the
    default threshold of 20 is up to 2.1e-9 / beta less. tokens=n: inputs and outputs are n tokens, one after the other.
    """
    if not isinstance(module, nn.Module):
        raise AnchorheadError(f"{type(module).__name__} is not a torch module: give an nn.Sequential, or an nn.Linear")
    layers = [_Layer(path, leaf) for path, leaf in _leaves(module, "")]
    steps = [(layer, step) for layer in layers if (step := _step(layer, module)) is not None]
    width = next((step.inputs for _, step in steps if isinstance(step, Affine)), None)
    if width is None:
        raise AnchorheadError(f"the {type(module).__name__} holds no nn.Linear, so nothing says how many inputs it has")
    hidden: list[Hidden] = []
    waiting: Affine | None = None
    for layer, step in steps:
        if isinstance(step, Affine):
            if step.inputs != width:
                raise AnchorheadError(
                    f"{layer.name} takes {step.inputs} inputs, but what comes before it makes {width}"
                )
            hidden += [] if waiting is None else [_all_alike(waiting, IDENTITY)]
            waiting, width = step, step.outputs
        else:
            hidden.append(_activated(layer, waiting or _unchanged(width), step))
            waiting = None
    return Mlp(tuple(hidden), waiting or _unchanged(width), tokens), _dtype(layers)


def _leaves(module: nn.Module, path: str) -> Iterator[tuple[str, nn.Module]]:
    """The modules that a Sequential runs, those of Sequentials inside it included, in order."""
    if isinstance(module, nn.Sequential) and type(module).forward is nn.Sequential.forward:
        _check_plain(_Layer(path, module))
        for name, child in module._modules.items():  # named_children() leaves out a module that comes a second time
            if child is not None:
                yield from _leaves(child, f"{path}.{name}" if path else name)
    else:
        yield path, module


def _step(layer: _Layer, whole: nn.Module) -> Affine | tuple[Expression, ...] | None:
    """The affine map or the activations (one, or one a neuron) of a layer of the whole; None if it does nothing."""
    module, kind = layer.module, layer.kind
    _check_plain(layer)
    if kind in ACTIVATIONS:
        return (_parsed(layer, lambda: ACTIVATIONS[kind](module)),)
    if isinstance(module, nn.PReLU) and kind is nn.PReLU:
        slopes = _array(layer, "weight").tolist()
        return tuple(_parsed(layer, lambda slope=slope: f"leaky_relu(x, {_exact(slope)})") for slope in slopes)
    if isinstance(module, nn.Linear) and kind is nn.Linear:
        weight = _array(layer, "weight")
        return Affine(weight, np.zeros(len(weight)) if module.bias is None else _array(layer, "bias"))
    if isinstance(module, nn.BatchNorm1d) and kind is nn.BatchNorm1d:
        return _normalised(layer, module)
    if kind in DROPOUTS:
        if module.training and getattr(module, "p", 0.0) > 0:
            raise AnchorheadError(f"{layer.name} drops entries at random while training: call .eval() on the network")
        return None
    if kind is nn.Flatten:
        if (module.start_dim, module.end_dim) != (1, -1):
            raise AnchorheadError(
                f"{layer.name} flattens axes {module.start_dim} to {module.end_dim}: only nn.Flatten() leaves vectors "
                "as they are"
            )
        return None
    if kind is nn.Identity:
        return None
    supported = ", ".join(known.__name__ for known in (*OTHERS, *ACTIVATIONS))
    hint = "" if isinstance(module, nn.ModuleList) or not any(True for _ in module.children()) else _PASS_ITS_LAYERS
    raise AnchorheadError(f"{layer.name} cannot be converted{hint}: supported are {supported}{_onnx_route(whole)}")


_PASS_ITS_LAYERS = ", because its forward may do anything; give an nn.Sequential of its layers instead"


def _onnx_route(module: nn.Module) -> str:
    """The way by an ONNX file, for a network without modules of torch that are refused there too."""
    leaves = [one for one in module.modules() if not any(True for _ in one.children())]
    known = (*OTHERS, *ACTIVATIONS, *BY_ONNX)
    if any(type(one).__module__.startswith("torch.nn.") and type(one) not in known for one in leaves):
        return ""
    own = any(type(one) not in (*known, nn.Sequential) for one in module.modules())
    return (
        f". By way of an ONNX file {'it may be' if own else 'all of it is'} converted: torch.onnx.export(model, (x,), "
        "'model.onnx', dynamo=False), then ah.convert('model.onnx', ...)"
    )


def _activated(layer: _Layer, affine: Affine, activations: tuple[Expression, ...]) -> Hidden:
    if len(activations) == 1:
        return _all_alike(affine, activations[0])
    if len(activations) != affine.outputs:
        raise AnchorheadError(f"{layer.name} has {len(activations)} slopes, but {affine.outputs} entries enter it")
    different = tuple(dict.fromkeys(activations))
    return Hidden(affine, different, np.array([different.index(one) for one in activations]))


def _all_alike(affine: Affine, activation: Expression) -> Hidden:
    return Hidden(affine, (activation,), np.zeros(affine.outputs, int))


def _unchanged(width: int) -> Affine:
    return Affine(np.eye(width), np.zeros(width))


def _normalised(layer: _Layer, module: nn.BatchNorm1d) -> Affine:
    if module.training:
        raise AnchorheadError(f"{layer.name} normalises by the batch while training: call .eval() on the network")
    if module.running_mean is None or module.running_var is None:
        raise AnchorheadError(
            f"{layer.name} keeps no running statistics and normalises by the batch: make it with "
            "track_running_stats=True"
        )
    mean, variance = _array(layer, "running_mean"), _array(layer, "running_var") + module.eps
    if not (variance > 0).all():
        raise AnchorheadError(f"{layer.name} has a running variance + eps of {variance.min():g}: it must be positive")
    scale = 1 / np.sqrt(variance)
    shift = np.zeros(len(mean))
    if module.affine:
        scale, shift = scale * _array(layer, "weight"), _array(layer, "bias")
    return Affine(np.diag(scale), shift - mean * scale)


def _array(layer: _Layer, name: str) -> np.ndarray:
    """A parameter in float64, exactly; refused unless dense, real and finite."""
    tensor = getattr(layer.module, name)
    require_dense(tensor, f"the {name} of {layer.name}")
    problems = (
        (
            tensor.dtype not in (torch.float32, torch.float64),
            f"has dtype {tensor.dtype}: weights are float32 or float64; call .float() on the network",
        ),
        (not tensor.numel(), f"has shape {tuple(tensor.shape)}, with nothing in it: every side must be at least 1"),
    )
    for wrong, problem in problems:
        if wrong:
            raise AnchorheadError(f"the {name} of {layer.name} {problem}")
    array = tensor.detach().cpu().numpy().astype(np.float64)
    require_finite(array, f"the {name} of {layer.name} has", "all weights")
    return array


def _dtype(layers: list[_Layer]) -> str:
    kinds = {parameter.dtype for layer in layers for parameter in layer.module.parameters()}
    kinds |= {b.dtype for layer in layers for b in layer.module.buffers() if b.is_floating_point()}
    return "float64" if torch.float64 in kinds else "float32"


def _check_plain(layer: _Layer) -> None:
    """Refuses what the weights do not tell, before anything is read."""
    module = layer.module
    held = (*module._parameters.values(), *module._buffers.values())
    if any(tensor is not None and is_lazy(tensor) for tensor in held):
        raise AnchorheadError(f"{layer.name} has no weights yet: run the network once on an input first")
    if module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module):
        raise AnchorheadError(
            f"{layer.name} has forward hooks or a forward of its own, which may change what it computes: remove them "
            "(those of pruning and weight_norm with torch's own remove functions)"
        )


def _parsed(layer: _Layer, text: Callable[[], str]) -> Expression:
    try:
        return parse(text())
    except AnchorheadError as error:
        raise AnchorheadError(f"{layer.name} cannot be converted: {error}") from error


def _softplus(module: nn.Softplus) -> str:
    if module.threshold < USUAL_THRESHOLD and module.beta > 0:
        jump = float(np.logaddexp(0, -module.threshold)) / module.beta
        raise AnchorheadError(
            f"Softplus(threshold={module.threshold:g}) jumps by {jump:.2g} where it goes over to x: thresholds "
            f"of at least {USUAL_THRESHOLD:g}, torch's default, can be converted"
        )
    return f"softplus(x, {_exact(module.beta)})"


def _exact(value: Any) -> str:
    """A number as text that reads back as the same float64."""
    if not math.isfinite(value):
        raise AnchorheadError(f"its parameter is {value}: parameters must be finite")
    return repr(float(value))
