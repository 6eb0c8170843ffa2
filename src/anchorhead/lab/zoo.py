"""Ten attention-only networks of known functions: ground truth for work on interpretability.

Each comes with the function that it computes, inputs to try it on, and, for every head and every feature of every
layer, what it does and what it means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from anchorhead.constructions.approximate import approximate
from anchorhead.constructions.head import head
from anchorhead.constructions.learners.prompts import prompt
from anchorhead.constructions.truncated_linear import truncated_linear
from anchorhead.convert.convert import convert
from anchorhead.errors import AnchorheadError
from anchorhead.incontext.gradient_descent import gradient_descent
from anchorhead.network import Network
from anchorhead.network.describe import labels

FIRST, SECOND, THIRD = "x[0,0]", "x[1,0]", "x[2,0]"
LINES = np.random.default_rng(0).normal(size=(6, 4)).round(2)  # three slopes and a threshold for each of six tokens
RATE, STEPS = 0.3, 20


@dataclass(frozen=True)
class Animal:
    """A network of a known function.

    summary  what it computes                     truth    the function, from inputs to outputs
    build    makes the network                    inputs   so many random inputs of its domain
    """

    name: str
    summary: str
    build: Callable[[], Network]
    truth: Callable[[np.ndarray], np.ndarray]
    inputs: Callable[[int], np.ndarray]


def about(one: Animal, network: Network, count: int = 2000) -> dict[str, Any]:
    """All that is known of the network, as JSON can hold it; the error is looked for at so many inputs.

    takes, gives  the shapes of an input and of an output, less the batch; null: any number of tokens
    on            the box of inputs for which the bound is proven, low and high
    layers        for each layer what its heads do and what the features that leave it mean
    """
    certificate, tokens = network.certificate, [network.embed.tokens] if network.token_axis else []
    if certificate is None:
        raise AnchorheadError(f"the network {one.name} has no certificate: build it anew")
    return {
        "name": one.name,
        "computes": one.summary,
        "takes": [*tokens, network.embed.inputs],
        "gives": list(network(one.inputs(1)).shape[1:]),
        "on": certificate.to_json()["on"],
        "proven bound": certificate.bound,
        "largest error found": largest_error(one, network, count),
        "certificate": str(certificate),
        "layers": labels(network),
    }


def largest_error(one: Animal, network: Network, count: int) -> float:
    """The largest |network - function| at random inputs."""
    x = one.inputs(count)
    return float(np.abs(network(x) - one.truth(x)).max())


def _uniform(low: float, high: float, *shape: int) -> Callable[[int], np.ndarray]:
    return lambda count: np.random.default_rng(1).uniform(low, high, (count, *shape))


def _clipped(x: np.ndarray) -> np.ndarray:
    return np.clip((LINES[:, :3] * x).sum(axis=-1, keepdims=True) + LINES[:, 3:], -1, 1)


def _relu_network() -> torch.nn.Sequential:
    """Biases are small, so that every neuron is on for some inputs of the box and off for others."""
    rng = np.random.default_rng(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 2)).double()
    for parameter in model.parameters():
        spread = 1.0 if parameter.dim() == 2 else 0.25
        parameter.data = torch.from_numpy(rng.normal(scale=spread, size=tuple(parameter.shape)).round(2))
    return model


def _of_relu_network(x: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        return _relu_network()(torch.from_numpy(x)).numpy()


def _data(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Data sets of 20 examples of two features, within the box for which the learners are proven."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (count, 20, 2))
    return X, np.einsum("bnd,bd->bn", X, rng.uniform(-1, 1, (count, 2)))


def _prompts(loss: str) -> Callable[[int], np.ndarray]:
    def made(count: int) -> np.ndarray:
        X, y = _data(count)
        return prompt(X, y if loss == "squared" else (y > 0).astype(float), loss)

    return made


def _descended(slope: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """Plain gradient descent on the examples of the prompts, of which the first half carries the sign +1."""

    def descended(prompts: np.ndarray) -> np.ndarray:
        half = prompts.shape[1] // 2
        X, y = prompts[:, :half, :2], prompts[:, :half, 3]
        w = np.zeros((len(prompts), 2))
        for _ in range(STEPS):
            w -= RATE * np.einsum("bnd,bn->bd", X, slope(np.einsum("bnd,bd->bn", X, w), y)) / half
        return w

    return descended


_PLANE = {"x": (-1.0, 1.0), "y": (-1.0, 1.0)}
_LEAST, _MOST = (f"{name}({FIRST}, {SECOND}, {THIRD})" for name in ("min", "max"))
_SORTED = [[_LEAST], [f"{FIRST} + {SECOND} + {THIRD} - {_LEAST} - {_MOST}"], [_MOST]]
ZOO = {
    one.name: one
    for one in (
        Animal(
            "sine",
            "the sine of a number from -π to π: one head of six anchors",
            lambda: head("sin", (-np.pi, np.pi), within=1e-6).network,
            np.sin,
            _uniform(-np.pi, np.pi, 1, 1),
        ),
        Animal(
            "clip",
            "six tokens, each with a linear function of its own, cut off at -1 and 1: one head of 64 anchors",
            lambda: truncated_linear(LINES[:, :3], LINES[:, 3], low=-1, high=1, anchors=64),
            _clipped,
            _uniform(-10, 10, 6, 3),
        ),
        Animal(
            "clip-by-position",
            "as clip, by eight heads, each for a part of [-1, 1], with the tokens' own positions as anchors",
            lambda: truncated_linear(LINES[:, :3], LINES[:, 3], low=-1, high=1, heads=8),
            _clipped,
            _uniform(-10, 10, 6, 3),
        ),
        Animal(
            "product",
            "the product of two numbers: a head for each of two squares",
            lambda: approximate("x*y", on=_PLANE, within=1e-6),
            lambda x: x[..., :1] * x[..., 1:],
            _uniform(-1, 1, 2),
        ),
        Animal(
            "surface",
            "the function sin(3x) cos(2y) + exp(xy): one head over a grid of anchors",
            lambda: approximate("sin(3*x)*cos(2*y) + exp(x*y)", on=_PLANE, within=1e-6),
            lambda x: np.sin(3 * x[..., :1]) * np.cos(2 * x[..., 1:]) + np.exp(x[..., :1] * x[..., 1:]),
            _uniform(-1, 1, 2),
        ),
        Animal(
            "sort",
            "three tokens in ascending order: gather, then two layers of neurons",
            lambda: approximate(_SORTED, on=(0, 1), tokens=3, features=1, within=1e-6),
            lambda x: np.sort(x, axis=1),
            _uniform(0, 1, 3, 1),
        ),
        Animal(
            "running-maximum",
            "each of three tokens gets the largest number so far: every layer is causal",
            lambda: approximate(
                [[FIRST], [f"max({FIRST}, {SECOND})"], [f"max({FIRST}, {SECOND}, {THIRD})"]],
                on=(0, 1), tokens=3, features=1, within=1e-6, causal=True,
            ),
            lambda x: np.maximum.accumulate(x, axis=1),
            _uniform(0, 1, 3, 1),
        ),
        Animal(
            "relu-network",
            "a feed-forward network of six ReLU neurons: one head for each neuron",
            lambda: convert(_relu_network(), on=(-1, 1), within=1e-6),
            _of_relu_network,
            _uniform(-1, 1, 4),
        ),
        Animal(
            "regression",
            "20 steps of gradient descent on the squared loss of the examples in the prompt",
            lambda: gradient_descent(steps=STEPS, rate=RATE, features=2, on=(-1, 1), labels=(-2, 2)),
            _descended(lambda s, y: s - y),
            _prompts("squared"),
        ),
        Animal(
            "classification",
            "20 steps of gradient descent on the logistic loss: score, link, gradient, a layer each",
            lambda: gradient_descent("logistic", steps=STEPS, rate=RATE, features=2, on=(-1, 1)),
            _descended(lambda s, y: 1 / (1 + np.exp(-s)) - y),
            _prompts("logistic"),
        ),
    )
}  # fmt: skip
