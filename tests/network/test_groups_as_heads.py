"""Groups of a Softmax that run as heads of one base: sums of these err by no more than proofs count."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from flint import arb
from torch import nn

import anchorhead as ah
from anchorhead.language.expressions.precision import precision
from anchorhead.network import Linear
from anchorhead.network.direct import Refused, Series, TwoKeys, planned, saturated, stored_series
from anchorhead.network.direct.heads import SeriesHead, SoftmaxHead
from anchorhead.network.direct.steps import DirectModule, Neurons
from anchorhead.network.direct.stored_series import Finder
from anchorhead.network.direct.two_keys import SigmoidHead
from anchorhead.network.direct.weighed import Weighed
from anchorhead.proof.heads.evaluated_keys import DirectHeads
from anchorhead.proof.heads.quotients import magnitude
from anchorhead.proof.heads.two_keys import two_keys

ACTIVATIONS = {"relu": nn.ReLU(), "hardtanh": nn.Hardtanh(), "gelu": nn.GELU(), "elu": nn.ELU(), "tanh": nn.Tanh()}
WITHIN = {"float64": 1e-6, "float32": 5e-2}
_made: dict[tuple, tuple[nn.Sequential, ah.Network]] = {}


def converted(
    name: str, dtype: str, layout: str = "transformer", neurons: int = 40
) -> tuple[nn.Sequential, ah.Network]:
    key = name, dtype, layout, neurons
    if key not in _made:
        torch.manual_seed(5)
        model = nn.Sequential(nn.Linear(3, neurons), ACTIVATIONS[name], nn.Linear(neurons, 2)).double()
        words = {"within": WITHIN[dtype], "dtype": dtype, "layout": layout, "form": "attention-softmax"}
        _made[key] = model, ah.convert(model, on=(-1, 1), **words)
    return _made[key]


def lowered(network: ah.Network, find: Finder | None = None) -> DirectModule:
    """What runs, by the series that are stored, or by others."""
    assert network.derivation is not None
    find = stored_series(network.derivation.data) if find is None else find
    return planned(network.layers, network.output, network.dtype).module(torch.device("cpu"), find)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("layout", ["transformer", "sequence"])
def test_a_group_is_a_head_without_an_axis_of_keys(layout: str, dtype: str) -> None:
    for name, kind, count in (("relu", SeriesHead, 40), ("gelu", SeriesHead, 40), ("tanh", SigmoidHead, 40),
                              ("gelu", SoftmaxHead, 20)):  # fmt: skip
        (step,) = lowered(converted(name, dtype, layout, count)[1]).steps
        assert isinstance(step, Neurons)
        assert all(isinstance(group.head, kind) for group in step.groups)
        assert sum(group.width for group in step.groups) == count


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["relu", "hardtanh", "tanh"])
def test_sums_of_heads_err_by_no_more_than_is_counted(name: str, dtype: str) -> None:
    """In balls, from the queries that were computed, at kinks and all over: what heads and their base are off by, and
    gamma_(n + 4) of their sizes; and that is no more than gamma_N where N weights are summed instead. By
    series and sigmoids that follow heads: what follows functions is as far off these."""
    model, network = converted(name, dtype)
    x = np.random.default_rng(0).uniform(-1, 1, (80, 3))
    weight, bias = (one.detach().numpy() for one in model[0].parameters())
    for row in range(40):  # moved along a neuron's weights to where it is 0
        w, b = weight[row], bias[row]
        x[row] = np.clip(x[row] - (w @ x[row] + b) / (w @ w) * w, -1, 1)
    given = torch.tensor(x.astype(dtype))
    runs = lowered(network, None if name == "tanh" else saturated)
    (step,) = runs.steps
    assert isinstance(step, Neurons)
    (group,) = step.groups
    assert group.before.columns is not None
    assert not isinstance(group.head, SoftmaxHead)
    queries = torch.addmm(group.before.bias, given, group.before.columns).double().numpy()
    behind = network.layers[-1]
    assert isinstance(behind, Linear)
    assert behind.bias is not None
    values = behind.on_features().astype(np.float64).reshape(2, 40, -1)
    slopes, offsets = _logits(network)
    found = Weighed.of(slopes, offsets, values, dtype)
    logits = queries[..., None] * found.keys.slopes + found.keys.offsets
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    most = float((weights @ np.abs(found.keys.values[:, 0]) / weights.sum(axis=-1)).max())
    error, size = _off(group.head.found, found, queries, dtype)
    unit, taken = float(np.finfo(dtype).eps) / 2, np.abs(found.takes)
    room = (taken * (error + found.offs * most)).sum(axis=1)
    room = room + 44 * unit * (1 + 1e-3) * (taken.sum(axis=1) * size + np.abs(behind.bias))
    assert (44 * unit + found.offs.max() <= found.counts * unit).all()
    for t, y in zip(queries, runs(given).tolist(), strict=True):
        for computed, exact, own in zip(y, _sums(values, slopes, offsets, t, behind.bias), room, strict=True):
            assert abs(arb(computed) - exact) <= float(own)


def _off(runs: Series | TwoKeys, found: Weighed, queries: np.ndarray, dtype: str) -> tuple[float, float]:
    """How far the head of a base is off, and of what size."""
    low, high = float(queries.min()), float(queries.max())
    if isinstance(runs, Series):
        size = magnitude(runs, low, high, dtype) if runs.fitted else runs.magnitude(low, high)
        return runs.error, size
    pair = two_keys(found.keys.column(0), max(-low, high), dtype)
    assert pair is not None
    assert pair[0] == runs
    return pair[1], float(np.abs(found.keys.values).max()) + pair[1]


def _sums(values: np.ndarray, slopes: np.ndarray, offsets: np.ndarray, t: np.ndarray, bias: np.ndarray) -> list[arb]:
    """sum over groups of sum_k V_k w_k(t), and the bias, for each output."""
    with precision(200):
        found = [arb(float(one)) for one in bias]
        for g, at in enumerate(t.tolist()):
            logits = [arb(a) * arb(at) + arb(o) for a, o in zip(slopes.tolist(), offsets.tolist(), strict=True)]
            top = max(logits, key=lambda z: float(z.mid()))
            weights = [(z - top).exp() for z in logits]
            total = sum(weights, arb(0))
            for o, own in enumerate(values[:, g].tolist()):
                found[o] += sum((arb(v) * w for v, w in zip(own, weights, strict=True)), arb(0)) / total
        return found


def _logits(network: ah.Network) -> tuple[np.ndarray, np.ndarray]:
    """Slopes and offsets, which all groups share."""
    before = network.layers[-3]
    assert isinstance(before, Linear)
    assert before.bias is not None
    dense = before.on_features().astype(np.float64)
    slopes = dense[np.arange(len(dense)), np.abs(dense).argmax(axis=1)].reshape(40, -1)
    offsets = np.broadcast_to(before.bias, len(dense)).astype(np.float64).reshape(40, -1)
    assert (slopes == slopes[0]).all()
    assert (offsets == offsets[0]).all()
    return slopes[0], offsets[0]


def test_a_sum_that_is_granted_too_little_is_computed_as_it_is_written() -> None:
    """Of one neuron's few weights: certificates name no other evaluation, be it of a series or a sigmoid."""
    for name, dtype in (("relu", "float64"), ("tanh", "float32")):
        network = converted(name, dtype, neurons=1)[1]
        assert network.certificate is not None
        assert network.certificate.evaluations == ("plain",)
    assert not DirectHeads.of(network, []).sums.softmaxes
    with pytest.raises(Refused, match="err by more"):
        DirectHeads.of(converted("relu", "float64", neurons=1)[1], [])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_claim_of_before_is_held_against_what_would_run(dtype: str) -> None:
    """A certificate that names "direct" does not make it run what its bound does not cover."""
    network = converted("relu", dtype)[1]
    behind = network.layers[-1]
    assert isinstance(behind, Linear)
    weight = np.array(behind.weight)
    place = np.unravel_index(np.abs(weight).argmax(), weight.shape)
    weight[place] *= 1 + 40 * np.finfo(dtype).eps
    changed = network.with_(layers=(*network.layers[:-1], replace(behind, weight=weight)))
    changed = changed.with_(certificate=network.certificate)
    x = np.random.default_rng(0).uniform(-1, 1, (50, 3)).astype(dtype)
    assert np.array_equal(changed(x), changed(x, evaluation="plain"))
    assert not np.array_equal(network(x), network(x, evaluation="plain"))
