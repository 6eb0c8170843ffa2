"""Networks of one layer are read back from what is stored: as they were built tightly, changed ones by intervals."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

import anchorhead as ah
from anchorhead.constructions.single.certified_head import claim_of as head_claim
from anchorhead.constructions.theorems.truncated_linear import MARGIN
from anchorhead.constructions.theorems.truncated_linear import claim_of as ramp_claim
from anchorhead.domain import Box
from anchorhead.language.targets.kernel_smoother import KernelSmoother
from anchorhead.language.targets.ramp import TruncatedLinear
from anchorhead.lemmas.kernel import Smoothed
from anchorhead.lemmas.one_number import OneNumber
from anchorhead.lemmas.prove import prove_functions
from anchorhead.network import Network
from anchorhead.proof.arithmetic.arithmetic import require_model
from anchorhead.proof.heads.head import prove_head
from anchorhead.proof.heads.ramp import Lattice
from anchorhead.proof.heads.whole_head import read_network

RAMPS: dict[str, dict[str, Any]] = {
    "one head": {"anchors": 6},
    "fewer anchors than tokens": {"anchors": 2},
    "many heads": {"heads": 3},
    "outputs": {"anchors": 6, "outputs": [0, 0, 1, 1, 0, 0]},
    "a sharpness that rounds": {"anchors": 6, "sharpness": 17.3},
}


def ramp(dtype: str, **words: Any) -> tuple[Network, OneNumber, TruncatedLinear, Box]:
    rng = np.random.default_rng(5)
    w, t, on = rng.normal(size=(4, 2)), rng.normal(size=4), Box.of((-2, 2))
    network = ah.truncated_linear(w, t, -1, 1, on=on, dtype=dtype, **words)
    cuts = np.array([(a + b) / 2 for a, b in network.certificate.excluded])
    features = [0, 1, 0] if len(cuts) else [0]
    target = TruncatedLinear(w, t, -1.0, 1.0, cuts, np.array(features))
    spacing = 2 / (2 * words["heads"] if "heads" in words else words["anchors"] - 1)
    return network, ramp_claim(target, Lattice(0.0, spacing, MARGIN if len(cuts) else 0.0), dtype), target, on


def head(dtype: str) -> tuple[Network, OneNumber, Any, Box]:
    own = ah.Head.of([-2.0, 0.0, 2.0], [0.1, 0.0, -0.3], [-1.0, 0.25, 1.0], origin=0.25, bias=0.5, dtype=dtype)
    found = own.certify("sin", on=(-1, 2))
    bound = prove_head(own.parts, own.atom.origin, own.atom.bias, found.target, require_model(dtype))
    return found.network, head_claim(own.atom, found.target, bound), found.target, Box.of((-1, 2))


def smoother(dtype: str) -> tuple[Network, Smoothed, KernelSmoother, Box]:
    rng = np.random.default_rng(5)
    target = KernelSmoother(rng.normal(size=(6, 2)), rng.normal(size=(6, 2)), np.array([0.5, 0.8]))
    return ah.convert(target, on=(-1, 2), dtype=dtype), Smoothed(target), target, Box.of((-1, 2))


def error(network: Network, target: Any, on: Box, rng: np.random.Generator) -> float:
    """The largest error at some inputs, without what the certificate leaves out."""
    x = rng.uniform(on.low, on.high, (60, network.embed.tokens, network.embed.inputs)).astype(network.dtype)
    y = np.asarray(network(x if network.token_axis else x[:, 0], outside="ignore"), np.float64)
    y = y.reshape(len(x), network.embed.tokens, -1)
    wide = x.astype(np.float64)
    if isinstance(target, KernelSmoother):
        return float(np.abs(y - target.values(wide)).max())
    if not isinstance(target, TruncatedLinear):
        return float(np.abs(y - target.values(wide.reshape(-1)).reshape(y.shape)).max())
    s = target.pre_activations(wide).astype(np.float64)
    claimed = np.all([(s < a) | (s > b) for a, b in network.certificate.excluded] or [np.full(s.shape, True)], axis=0)
    return float((np.abs(y - target.values(wide)).max(axis=-1) * claimed).max())


def changed(network: Network, rng: np.random.Generator) -> Network:
    """One stored number is another one."""
    layers = list(network.layers)
    place = int(rng.integers(len(layers)))
    held = [
        f.name for f in fields(layers[place]) if getattr(getattr(layers[place], f.name), "dtype", None) == network.dtype
    ]
    name = str(rng.choice(held))
    array = np.array(getattr(layers[place], name))
    at = tuple(int(rng.integers(size)) for size in array.shape)
    array[at] = array[at] * rng.choice([0.0, 1.001, -1.0, 2.0]) + rng.choice([0.0, 0.01, 0.5])
    layers[place] = replace(layers[place], **{name: array})
    return Network(layers, network.output, token_axis=network.token_axis, certificate=network.certificate)


@pytest.mark.slow_for(
    "one head-float64", "many heads-float32", "outputs-float32", "many heads-float64", "outputs-float64"
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("words", RAMPS.values(), ids=list(RAMPS))
def test_what_is_stated_of_truncated_lines_follows_from_the_walk(words, dtype):
    network, claim, target, on = ramp(dtype, **words)
    bound = prove_functions(network, claim, on)
    assert bound.total <= network.certificate.bound <= 1.02 * bound.total
    assert error(network, target, on, np.random.default_rng(0)) <= bound.total


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_what_is_stated_of_heads_follows_from_the_walk(dtype):
    network, claim, _, on = head(dtype)
    bound = prove_functions(network, claim, on, cast=False)
    assert bound.total <= network.certificate.bound <= 1.02 * bound.total
    assert read_network(network, on).atom(dtype).origin == 0.25


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_what_is_stated_of_smoothers_follows_from_the_walk(dtype):
    network, claim, target, on = smoother(dtype)
    bound = prove_functions(network, claim, on)
    assert bound.total <= network.certificate.bound <= 1.02 * bound.total
    assert error(network, target, on, np.random.default_rng(0)) <= bound.total


@pytest.mark.parametrize("what", ["a head", "a smoother", *RAMPS])
def test_bounds_hold_for_changed_weights(what):
    rng = np.random.default_rng(3)
    if what in RAMPS:
        network, claim, target, on = ramp("float64", **RAMPS[what])
    else:
        network, claim, target, on = head("float64") if what == "a head" else smoother("float64")
    loose = 0
    for _ in range(25):
        other = changed(network, rng)
        bound = prove_functions(other, claim, on, cast=what != "a head").total
        loose += bound > 1.02 * network.certificate.bound
        assert error(other, target, on, rng) <= bound
    assert loose >= 5


def test_inputs_of_another_type_cost_a_head_its_bound():
    network, claim, _, on = head("float32")
    assert prove_functions(network, claim, on).total > 1  # an interval: the proof is about inputs of the dtype
