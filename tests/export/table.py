"""The one table of networks that every exporter is tried on: each layer, construction, layout, dtype and learner."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise

import numpy as np
import torch

import anchorhead as ah
from anchorhead import incontext
from anchorhead.convert import KernelSmoother
from anchorhead.network import Network
from network.networks import table as layers

DTYPES = ("float64", "float32")


def mlp(*sizes: int, activation: type[torch.nn.Module] = torch.nn.ReLU) -> torch.nn.Sequential:
    """A plain network in float64 with weights that are the same every time."""
    rng = np.random.default_rng(sum(sizes))
    modules: list[torch.nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        linear = torch.nn.Linear(inputs, outputs, dtype=torch.float64)
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(rng.normal(size=(outputs, inputs)) / np.sqrt(inputs)))
            linear.bias.copy_(torch.from_numpy(0.3 * rng.normal(size=outputs)))
        modules += [linear, activation()]
    return torch.nn.Sequential(*modules[:-1])


def _truncated(dtype: str, **words: int) -> Network:
    w = np.array([[1.0, -0.5], [0.3, 0.8], [0.2, 0.1], [-0.4, 0.6]])
    return ah.truncated_linear(w, [0.1, -0.2, 0.0, 0.3], -1, 1, on=(-2, 2), dtype=dtype, **words)


def _smoother(dtype: str) -> Network:
    rng = np.random.default_rng(3)
    smoother = KernelSmoother(rng.normal(size=(6, 2)), rng.normal(size=6), 0.7)
    return ah.convert(smoother, on=(-1, 1), dtype=dtype)


CONSTRUCTIONS: dict[str, Callable[[str], Network]] = {
    "truncated linear, one head": lambda dtype: _truncated(dtype, anchors=8),
    "truncated linear, many heads": lambda dtype: _truncated(dtype, heads=3),
    "head": lambda dtype: ah.head("tanh", on=(-3, 3), within=1e-3, dtype=dtype).network,
    "head of several softmaxes": lambda dtype: ah.head("relu", on=(-1, 1), within=1e-3, dtype=dtype).network,
    "kernel smoother": _smoother,
    "function of one variable": lambda dtype: ah.approximate("sin(2*x)", {"x": (-1, 1)}, 1e-2, dtype=dtype),
    "grid": lambda dtype: ah.approximate("exp(x*y)", {"x": (-1, 1), "y": (0, 1)}, 1e-2, dtype=dtype),
    "grid and neuron": lambda dtype: ah.approximate(
        ["exp(x*y) + sin(z)", "z"], {"x": (-1, 1), "y": (0, 1), "z": (-1, 1)}, 1e-2, dtype=dtype
    ),
    "uniform grid": lambda dtype: ah.approximate(
        "x*y", {"x": (-1, 1), "y": (0, 1)}, 0.3, placement="uniform", dtype=dtype
    ),
    "two-layer, sequence": lambda dtype: _converted(dtype, "two-layer", "sequence"),
    "two-layer, transformer": lambda dtype: _converted(dtype, "two-layer", "transformer"),
    "attention-softmax, sequence": lambda dtype: _converted(dtype, "attention-softmax", "sequence"),
    "attention-softmax, transformer": lambda dtype: _converted(dtype, "attention-softmax", "transformer"),
    "deep, sequence": lambda dtype: ah.convert(
        mlp(4, 3, 3, 2), (-1, 1), 1e-2, tokens=2, form="deep", layout="sequence", dtype=dtype
    ),
    "deep, transformer": lambda dtype: ah.convert(mlp(2, 4, 3, 2), (-1, 1), 1e-2, dtype=dtype),
    "deep, uniform": lambda dtype: ah.convert(mlp(2, 3, 2), (-1, 1), 0.2, placement="uniform", dtype=dtype),
    "causal": lambda dtype: ah.approximate(
        [["x[0,0]**2"], ["x[0,0] + tanh(x[1,0])"]], (-1, 1), 1e-2, tokens=2, features=1, causal=True, dtype=dtype
    ),
}
LEARNERS: dict[str, Callable[[str], Network]] = {
    "learner, direct": lambda dtype: _learner(dtype, "squared", rate=0.05),
    "learner, momentum": lambda dtype: _learner(dtype, "squared", rate=0.02, momentum=0.5, intercept=True),
    "learner, threshold": lambda dtype: _learner(dtype, "squared", rate=0.05, threshold=0.01),
    "learner, logistic": lambda dtype: _learner(dtype, "logistic", rate=0.1),
    "learner, sequence": lambda dtype: _learner(dtype, "logistic", rate=0.1, layout="sequence", examples=4),
    "many learners": lambda dtype: incontext.many_learners(("squared", "logistic"), steps=2, features=2, dtype=dtype),
}


def _converted(dtype: str, form: str, layout: str) -> Network:
    return ah.convert(mlp(4, 3, 2), (-1, 1), 1e-2, tokens=2, form=form, layout=layout, dtype=dtype)


def _learner(dtype: str, loss: str, **words: object) -> Network:
    words = {"examples": 8, **words}
    return incontext.gradient_descent(loss, steps=3, features=2, on=(-1, 1), dtype=dtype, **words)


NAMES = [f"{name} ({dtype})" for dtype in DTYPES for name in (*layers(), *CONSTRUCTIONS, *LEARNERS)]


@cache
def network(name: str) -> Network:
    """The network of one name of NAMES; each is built once."""
    what, _, dtype = name.removesuffix(")").rpartition(" (")
    made = layers(dtype).get(what) or {**CONSTRUCTIONS, **LEARNERS}[what](dtype)
    return made


def inputs(net: Network, batch: int, seed: int = 0) -> np.ndarray:
    """A batch of inputs of its box, or near 0; of a learner, prompts."""
    rng = np.random.default_rng(seed)
    examples = 4 if net.embed.tokens is None else net.embed.tokens // 2
    if isinstance(net, incontext.ManyLearner):
        rates = rng.uniform(0.01, 0.1, size=batch)
        sets = [(rng.uniform(-1, 1, size=(examples, 2)), rng.normal(size=examples)) for _ in rates]
        return np.array([net.prompt(*one, "squared", rate=r) for one, r in zip(sets, rates, strict=True)], net.dtype)
    if net.target is not None and net.target.kind == "descent":
        X, y = rng.uniform(-1, 1, size=(batch, examples, 2)), rng.integers(0, 2, size=(batch, examples))
        return incontext.prompt(X, y, net.descent.loss).astype(net.dtype)  # type: ignore[attr-defined]
    shape = (net.embed.inputs,) if not net.token_axis else (net.embed.tokens or 4, net.embed.inputs)
    low, high = (-1.0, 1.0) if net.certificate is None else (net.certificate.on.low, net.certificate.on.high)
    return rng.uniform(low, high, size=(batch, *shape)).astype(net.dtype)
