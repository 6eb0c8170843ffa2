"""Rows of networks that are converted: every form and layout of neurons, splines and kernel smoothers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

import anchorhead as ah
from anchorhead.constructions.planning.plan import Plan
from anchorhead.convert import KernelSmoother
from anchorhead.language.expressions.parser import parse
from anchorhead.language.targets.mlp import Affine, Hidden, Mlp
from anchorhead.network import Network

from .row import Row, row

RELU, ABS, TANH = parse("relu(x)"), parse("abs(x)"), parse("tanh(x)")


def neurons(*sizes: int, tokens: int | None = None, activations: tuple = (RELU, ABS)) -> Mlp:
    """Layers of neurons with weights that are the same every time."""
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


def _neurons(name: str, form: str, layout: str, *tags: str, sizes=(4, 2, 2), tokens: int | None = 2, **words) -> Row:
    def target() -> Mlp:
        made = neurons(*sizes, tokens=tokens)
        return causal(made) if words.get("causal") else made

    def build(dtype: str) -> Network:
        return ah.convert(target(), on=(-1, 1), within=1e-2, form=form, layout=layout, dtype=dtype, **words)

    def plan(dtype: str) -> Plan:
        return ah.plan(target(), on=(-1, 1), within=1e-2, dtype=dtype, **words)

    tags = ("proven", form, layout, *tags, *(() if tokens is None else ("tokens",)))
    options = {"within": 1e-2, "form": form, "layout": layout, **words}
    return row(name, "mlp", build, *tags, plan=plan, options=options)


def _of_torch(name: str, activation: str, within: float, *tags: str, **words: Any) -> Row:
    def model() -> Any:
        from benchmarks.figures_cases import mlp

        return mlp(2, 2, 1, activation=activation)

    def build(dtype: str) -> Network:
        return ah.convert(model(), on=(-1, 1), within=within, dtype=dtype, **words)

    def plan(dtype: str) -> Plan:
        return ah.plan(model(), on=(-1, 1), within=within, dtype=dtype)

    tags = ("proven", "two-layer", "transformer", *tags)
    return row(name, "mlp", build, *tags, plan=plan, options={"within": within, **words})


def _bspline() -> Any:
    from scipy.interpolate import BSpline

    return BSpline.construct_fast(np.array([0, 0, 0.5, 1, 1.0]), np.array([0.0, 1.0, -0.5]), 1)


def _spline(dtype: str) -> Network:
    return ah.convert(_bspline(), on=(0, 1), within=0.02, dtype=dtype)


def _planned_spline(dtype: str) -> Plan:
    return ah.plan(_bspline(), on=(0, 1), within=0.02, dtype=dtype)


def _smoother(dtype: str) -> Network:
    rng = np.random.default_rng(3)
    return ah.convert(KernelSmoother(rng.normal(size=(4, 2)), rng.normal(size=4), 0.7), on=(-1, 1), dtype=dtype)


ROWS = (
    _neurons("two-layer, sequence", "two-layer", "sequence", "across", "sample"),
    _neurons("two-layer, transformer", "two-layer", "transformer"),
    _neurons("two-layer, causal", "two-layer", "transformer", "causal", causal=True),
    _neurons("attention-softmax, sequence", "attention-softmax", "sequence", "across", "softmax"),
    _neurons("attention-softmax, transformer", "attention-softmax", "transformer", "softmax"),
    _neurons("attention-softmax, causal", "attention-softmax", "transformer", "causal", "softmax", causal=True),
    _neurons("attention-softmax, one token", "attention-softmax", "transformer", "softmax", tokens=None),
    _neurons("deep, sequence", "deep", "sequence", "across", sizes=(4, 2, 3, 2)),
    _neurons("deep, transformer", "deep", "transformer", sizes=(4, 2, 3, 2)),
    _neurons("deep, one token", "deep", "transformer", tokens=None, sizes=(2, 3, 2, 1)),
    _of_torch("neurons, smooth", "GELU", 1e-2, "smooth"),
    _of_torch("neurons, uniform", "ReLU", 0.3, "uniform", placement="uniform"),
    row("spline", "mlp", _spline, "proven", plan=_planned_spline, options={"within": 0.02}),
    row("kernel smoother", "kernel smoother", _smoother, "proven"),
)
