"""The walk bounds whatever the layers compute: networks as they are built tightly, changed ones by intervals."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.passes.layout import built, drafted
from anchorhead.constructions.passes.run import Tries
from anchorhead.constructions.single.activation_heads import ActivationHeads
from anchorhead.domain import Box
from anchorhead.lemmas import copy, interval
from anchorhead.lemmas.output import OutputBound
from anchorhead.lemmas.prove import prove_mlp
from anchorhead.network import Attention, Linear, Network
from anchorhead.proof.arithmetic.affine_forms import Forms, Sources, embedded
from anchorhead.proof.arithmetic.arithmetic import FLOAT32, FLOAT64, arithmetic_of
from anchorhead.proof.arithmetic.readings import of_attention, visible
from tests.networks.converted import causal, neurons

ON = Box.of((-1, 1))
WAYS = [
    ("two-layer", "transformer", False),
    ("two-layer", "sequence", False),
    ("two-layer", "transformer", True),
    ("attention-softmax", "transformer", False),
    ("attention-softmax", "sequence", False),
    ("deep", "transformer", False),
    ("deep", "sequence", False),
]


def made(form: str, layout: str, hidden: bool, dtype: Any) -> tuple:
    """A network of neurons, without a certificate, with all that the proof of one takes."""
    target = neurons(4, 3, *((2,) if form == "deep" else ()), 2, tokens=2)
    target = causal(target) if hidden else target
    way = BuildRequest(0.05, dtype, form, layout, causal=hidden)
    laid = Tries(target, ON, 0.05, ActivationHeads(way.dtype, way.placement)).first
    return built(drafted(laid, target, way), target, way), target, laid.layers, laid.readout


def errors(network: Network, target: Any, rng: np.random.Generator) -> np.ndarray:
    """The largest error of each output at corners, at the middle and at random."""
    shape = target.input_shape
    x = np.concatenate([rng.uniform(-1, 1, (24, *shape)), rng.choice([-1.0, 1.0], (16, *shape)), np.zeros((1, *shape))])
    x = x.astype(network.dtype)
    y = np.asarray(network(x, outside="ignore"), np.float64).reshape(len(x), -1)
    return np.abs(y - target.values(x.astype(np.float64)).reshape(len(x), -1)).max(axis=0)


def holds(bound: OutputBound, found: np.ndarray) -> bool:
    return bool((found <= bound.approximation + bound.rounding).all())


def changed(network: Network, rng: np.random.Generator) -> Network:
    """One array of one layer scaled, shuffled, shifted or emptied, in one entry or in all; or another mask."""
    layers = list(network.layers)
    place = int(rng.integers(len(layers)))
    layer = layers[place]
    if isinstance(layer, Attention) and rng.random() < 0.2:
        layers[place] = replace(layer, mask=rng.choice(["causal", "self+registers"]))
        return Network(layers, network.output, token_axis=network.token_axis)
    names = [name for name, array in vars(layer).items() if isinstance(array, np.ndarray) and array.size]
    if not names:
        return network
    name = str(rng.choice(names))
    array = np.array(getattr(layer, name))
    flat = array.reshape(-1)
    some = int(rng.integers(flat.size)) if rng.random() < 0.5 else slice(None)
    match rng.integers(4):
        case 0:
            flat[some] *= 1 + rng.choice([-1, 1]) * 10.0 ** rng.uniform(-7, 0)
        case 1:
            flat[:] = rng.permutation(flat)
        case 2:
            flat[some] += 10.0 ** rng.uniform(-6, 2)
        case _:
            flat[some] = 0
    layers[place] = replace(layer, **{name: array})
    return Network(layers, network.output, token_axis=network.token_axis)


@pytest.mark.slow_for(
    "two-layer, sequence, False-float32",
    "two-layer, sequence, False-float64",
    "deep, transformer, False-float32",
    "two-layer, transformer, True-float32",
    "two-layer, transformer, True-float64",
    "two-layer, transformer, False-float32",
    "two-layer, transformer, False-float64",
    "deep, transformer, False-float64",
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: ", ".join(map(str, way)))
def test_networks_are_explained_and_changed_ones_still_bounded(way, dtype):
    network, target, layers, readout = made(way[0], way[1], way[2], dtype)
    rng = np.random.default_rng(0)
    bound = prove_mlp(network, target, layers, readout, ON)
    assert bound.total < 0.5
    assert holds(bound, errors(network, target, rng))
    loose = 0
    for _ in range(12):
        other = changed(network, rng)
        again = prove_mlp(other, target, layers, readout, ON)
        assert np.isfinite(again.total)
        assert holds(again, errors(other, target, rng))
        loose += again.total > bound.total
    assert loose


def test_maps_and_layers_that_the_target_does_not_have_are_bounded():
    network, target, layers, readout = made("deep", "transformer", False, "float64")
    rng = np.random.default_rng(0)
    last = network.streams[-1]
    turned = np.eye(last.inputs + last.registers)[[1, 0]]  # the first two of all tokens change places
    doubled, mixed = Linear(2 * np.eye(last.width)), Linear(np.eye(last.width), np.zeros(last.width), mix=turned)
    for more in (doubled, mixed):
        other = Network([*network.layers, more], token_axis=True)
        bound = prove_mlp(other, target, layers, readout, ON)
        assert bound.total > 0.1
        assert holds(bound, errors(other, target, rng))


@pytest.mark.parametrize("model", [FLOAT32, FLOAT64], ids=["float32", "float64"])
def test_a_mean_stays_in_its_interval_as_computed(model):
    rng = np.random.default_rng(1)
    for keys in (1, 2, 7, 300):
        values = rng.normal(size=(50, keys)).astype(model.dtype)
        logits = (10.0 ** rng.uniform(-2, 3) * rng.normal(size=(50, keys))).astype(model.dtype)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True, dtype=model.dtype)
        read = (weights * values).sum(axis=1, dtype=model.dtype).astype(np.float64)
        low, high = interval.bound(values.astype(np.float64), values.astype(np.float64), model)
        assert (low <= read).all()
        assert (read <= high).all()
        assert (high - low <= np.ptp(values.astype(np.float64), axis=1) + 1e-3).all()


def test_a_copy_needs_a_winner_that_rounding_cannot_take_away():
    network, target, *_ = made("two-layer", "transformer", False, "float32")
    box = ON.broadcast_to(target.input_shape)
    sources = Sources(box.low.reshape(-1).astype(float), box.high.reshape(-1).astype(float))
    arithmetic = arithmetic_of("float32")
    inputs, registers = embedded(network.embed, sources, arithmetic)
    gather = network.layers[1]
    assert isinstance(gather, Attention)

    def winners(layer: Attention) -> list[int | None]:
        seen = visible(layer, inputs, registers, 0, 0)
        return copy.read(of_attention(layer, inputs.token(0), seen, sources, arithmetic))

    assert winners(gather) == [0, 1]
    keys = [np.array(gather.key) * factor for factor in (0.5, 0.4, 0.3)]
    found = [winners(replace(gather, key=key.astype("float32"))) for key in keys]
    assert found[0] == [0, 1]  # 1000 above the others
    assert found[-1] == [None, None]  # 600: exp(-600) is 0 in float32, but it is float64 that decides
    for one, two in pairwise(found):
        assert not (one == [None, None] and two != one)


def test_forms_of_other_sources_keep_constants_and_intervals():
    sources = Sources(np.array([-1.0, 2.0]), np.array([1.0, 3.0]))
    forms = Forms(np.array([[[0.0, 0.0], [2.0, -1.0]]]), np.array([[5.0, 1.0]]), np.zeros((1, 2)), np.full((1, 2), 0.5))
    other = forms.over(sources, 7)
    assert other.coefficients.shape == (1, 2, 7)
    assert not other.coefficients.any()
    assert other.constant[0, 0] == 5.0
    assert other.rounding[0, 0] == 0.5
    low, high = other.ends(sources)
    assert (low <= [4.5, -4.5]).all()
    assert (high >= [5.5, 1.5]).all()
    assert high[0, 1] - low[0, 1] < 6.0 + 1e-9
