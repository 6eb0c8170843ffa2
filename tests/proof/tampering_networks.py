"""One small network of every kind of file that is saved with a proven bound, to be tampered with."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise

import numpy as np

import anchorhead as ah
from anchorhead import incontext
from anchorhead.convert import KernelSmoother
from anchorhead.network import Network
from anchorhead.targets.mlp import Affine, Hidden, Mlp
from anchorhead.targets.parser import parse

DTYPES = ("float32", "float64")
RELU, ABS, TANH = parse("relu(x)"), parse("abs(x)"), parse("tanh(x)")
Builder = Callable[[str], Network]


def mlp(*sizes: int, tokens: int | None = None, activations: tuple = (RELU, ABS)) -> Mlp:
    """A plain network with weights that are the same every time."""
    rng = np.random.default_rng(sum(sizes) + (tokens or 0))
    maps = [Affine(rng.normal(size=(n, m)) / np.sqrt(m), 0.3 * rng.normal(size=n)) for m, n in pairwise(sizes)]
    hidden = [Hidden(one, activations, np.arange(one.outputs) % len(activations)) for one in maps[:-1]]
    return Mlp(tuple(hidden), maps[-1], tokens)


def causal(target: Mlp) -> Mlp:
    """The same with weights to later tokens set to 0: neuron r belongs to token r of the first ones."""
    count, (layer,) = target.tokens or 1, target.hidden
    each, per = target.inputs // count, target.outputs // count
    owner = np.minimum(np.arange(layer.neurons), count - 1)
    weight = layer.affine.weight * (np.arange(target.inputs) // each <= owner[:, None])
    readout = target.readout.weight * (owner <= (np.arange(target.outputs) // per)[:, None])
    hidden = Hidden(Affine(weight, layer.affine.bias), layer.activations, layer.which)
    return Mlp((hidden,), Affine(readout, target.readout.bias), count)


def _ramp(dtype: str, tokens: int = 3, **words) -> Network:
    rng = np.random.default_rng(tokens)
    return ah.truncated_linear(
        rng.normal(size=(tokens, 2)), rng.normal(size=tokens), -1, 1, on=(-2, 2), dtype=dtype, **words
    )


def _converted(dtype: str, form: str, layout: str, tokens: int | None = 2, sizes=(4, 2, 2), **words) -> Network:
    target = mlp(*sizes, tokens=tokens)
    target = causal(target) if words.get("causal") else target
    within = 0.05 if dtype == "float32" else 1e-4
    return ah.convert(target, on=(-1, 1), within=within, form=form, layout=layout, dtype=dtype, **words)


def _smoother(dtype: str) -> Network:
    rng = np.random.default_rng(3)
    return ah.convert(KernelSmoother(rng.normal(size=(4, 2)), rng.normal(size=4), 0.7), on=(-1, 1), dtype=dtype)


def _approximated(text, on, dtype: str, within: float = 0.02, **words) -> Network:
    return ah.approximate(text, on, within, dtype=dtype, **words)


def _learner(dtype: str, loss: str, **words) -> Network:
    words = {"examples": 3, "rate": 0.05, **words}
    return incontext.gradient_descent(loss, steps=2, features=2, on=(-1, 1), dtype=dtype, **words)


HEADS: dict[str, Builder] = {
    "head": lambda dtype: ah.head("tanh", on=(-2, 2), within=1e-2, dtype=dtype).network,
    "head, summed": lambda dtype: ah.head("relu", on=(-1, 1), within=2e-3, dtype=dtype).network,
    "head, far from 0": lambda dtype: ah.head("sin(x)", on=(5, 7), within=1e-2, dtype=dtype).network,
    "head, several outputs": lambda dtype: ah.head(["sin(x)", "cos(x)"], on=(-1, 1), within=1e-2, dtype=dtype).network,
    "ramp, one head": lambda dtype: _ramp(dtype, anchors=5),
    "ramp, as many anchors as tokens": lambda dtype: _ramp(dtype),
    "ramp, many heads": lambda dtype: _ramp(dtype, heads=2),
    "ramp, outputs": lambda dtype: _ramp(dtype, anchors=6, outputs=[0, 0, 1, 1, 0, 0]),
    "ramp, outputs of many heads": lambda dtype: _ramp(dtype, heads=2, outputs=[0, 1]),
    "ramp, of nothing": lambda dtype: ah.truncated_linear(
        np.zeros((3, 2)), np.full(3, 0.5), -1, 1, on=(-2, 2), anchors=5, dtype=dtype
    ),
    "kernel smoother": _smoother,
}
CONVERTED: dict[str, Builder] = {
    "two-layer, sequence": lambda dtype: _converted(dtype, "two-layer", "sequence"),
    "two-layer, transformer": lambda dtype: _converted(dtype, "two-layer", "transformer"),
    "attention-softmax, sequence": lambda dtype: _converted(dtype, "attention-softmax", "sequence"),
    "attention-softmax, transformer": lambda dtype: _converted(dtype, "attention-softmax", "transformer"),
    "attention-softmax, one token": lambda dtype: _converted(dtype, "attention-softmax", "transformer", tokens=None),
    "deep, sequence": lambda dtype: _converted(dtype, "deep", "sequence", sizes=(4, 2, 3, 2)),
    "deep, transformer": lambda dtype: _converted(dtype, "deep", "transformer", sizes=(4, 2, 3, 2)),
    "deep, one token": lambda dtype: _converted(dtype, "deep", "transformer", tokens=None, sizes=(2, 3, 2, 1)),
    "causal, two-layer": lambda dtype: _converted(dtype, "two-layer", "transformer", causal=True),
    "causal, attention-softmax": lambda dtype: _converted(dtype, "attention-softmax", "transformer", causal=True),
}
FUNCTIONS: dict[str, Builder] = {
    "spline": lambda dtype: ah.convert(_spline(), on=(0, 1), within=0.02, dtype=dtype),
    "grid": lambda dtype: _approximated("exp(x*y)", {"x": (-1, 1), "y": (0, 1)}, dtype),
    "grid, uniform": lambda dtype: _approximated(
        "exp(x*y)", {"x": (-1, 1), "y": (0, 1)}, dtype, 1.0, placement="uniform"
    ),
    "neurons, uniform": lambda dtype: ah.convert(
        mlp(2, 2, 1, activations=(RELU,)), on=(-1, 1), within=0.3, placement="uniform", dtype=dtype
    ),
    "grid, tokens": lambda dtype: _approximated(
        [["exp(x[0,0]*x[1,0])"], ["x[0,0]*x[1,0]"]], (-1, 1), dtype, 0.1, tokens=2, features=1
    ),
    "grid, causal": lambda dtype: _approximated(
        [["x[0,0]**2"], ["exp(x[0,0]*x[1,0])"]], (-1, 1), dtype, 0.1, tokens=2, features=1, causal=True
    ),
    "parts": lambda dtype: _approximated(
        ["exp(x*y) + abs(z)", "z"], {"x": (-1, 1), "y": (0, 1), "z": (-1, 1)}, dtype, 0.1
    ),
    "parts, tokens": lambda dtype: _approximated(
        [["exp(x[0,0]*x[1,0])"], ["abs(x[1,0])"]], (-1, 1), dtype, 0.1, tokens=2, features=1
    ),
    "expressions": lambda dtype: _approximated(["abs(x) - 2*y", "relu(x + y)"], {"x": (-1, 1), "y": (0, 1)}, dtype),
}
LEARNERS: dict[str, Builder] = {
    "learner, direct": lambda dtype: _learner(dtype, "squared"),
    "learner, momentum": lambda dtype: _learner(dtype, "squared", rate=0.02, momentum=0.5, intercept=True),
    "learner, threshold": lambda dtype: _learner(dtype, "squared", threshold=0.01),
    "learner, logistic": lambda dtype: _learner(dtype, "logistic", rate=0.1),
    "learner, huber": lambda dtype: _learner(dtype, "huber", rate=0.1),
    "learner, logistic, threshold": lambda dtype: _learner(dtype, "logistic", rate=0.1, threshold=0.01),
    "learner, link of two variables": lambda dtype: _learner(
        dtype,
        incontext.link("s + sin(s)/2 + s*y**2/4 - y", "g(s, y)"),
        scores=(-2, 2),
        labels=(-1, 1),
        layout="transformer",
    ),
    "learner, sequence": lambda dtype: _learner(dtype, "logistic", rate=0.1, layout="sequence"),
    "learner, squared in a sequence": lambda dtype: _learner(dtype, "squared", layout="sequence"),
}
BUILDERS = {**HEADS, **CONVERTED, **FUNCTIONS, **LEARNERS}
NAMES = [f"{name} ({dtype})" for name in BUILDERS for dtype in DTYPES]


def _spline():
    from scipy.interpolate import BSpline

    return BSpline.construct_fast(np.array([0, 0, 0.5, 1, 1.0]), np.array([0.0, 1.0, -0.5]), 1)


@cache
def network(name: str) -> Network:
    """The network of one of NAMES; each is built once."""
    what, _, dtype = name.removesuffix(")").rpartition(" (")
    return BUILDERS[what](dtype)
