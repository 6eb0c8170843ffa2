"""The walk meets the layers of a Repeat as often as they run, and shows states to those who see them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from anchorhead.errors import AnchorheadError
from anchorhead.lemmas.prove import prove_mlp
from anchorhead.lemmas.walk import MAX_LAYERS
from anchorhead.network import Attention, Linear, Network, Repeat
from tests.lemmas.test_walk import ON, errors, holds, made


@pytest.fixture(scope="module", params=["two-layer", "deep"])
def known(request):
    return made(request.param, "transformer", False, "float64")


def test_rounds_are_layers_one_after_the_other(known):
    network, target, layers, readout = known
    width = network.streams[-1].width
    halved = Linear(0.5 * np.eye(width), np.full(width, 0.25))
    inside = Repeat((halved, Repeat((halved,), 2)), 2)
    bounds = []
    for more in ([inside], [halved] * 6):
        other = Network([*network.layers, *more])
        bounds.append(prove_mlp(other, target, layers, readout, ON))
        assert holds(bounds[-1], errors(other, target, np.random.default_rng(0)))
    assert bounds[0].total == bounds[1].total > 0.1
    assert np.array_equal(bounds[0].rounding, bounds[1].rounding)


def test_a_repeat_of_all_layers_is_explained(known):
    network, target, layers, readout = known
    whole = Network([network.embed, Repeat(network.layers[1:], 1)])
    assert prove_mlp(whole, target, layers, readout, ON).total == prove_mlp(network, target, layers, readout, ON).total


def test_attention_in_rounds_is_bounded(known):
    network, target, layers, readout = known
    last = network.streams[-1]
    rng = np.random.default_rng(1)
    weights = [rng.normal(size=shape) for shape in ((2, 1, last.width), (2, 1, last.width), (2, 3, last.width))]
    mixing = Attention(*weights, 0.1 * rng.normal(size=(2, last.width, 3)), skip=Linear(0.5 * np.eye(last.width)))
    other = Network([*network.layers, Repeat((mixing,), 3)])
    bound = prove_mlp(other, target, layers, readout, ON)
    assert np.isfinite(bound.total)
    assert holds(bound, errors(other, target, rng))


def test_too_many_rounds_are_refused(known):
    network, target, layers, readout = known
    width = network.streams[-1].width
    other = Network([*network.layers, Repeat((Linear(np.eye(width)),), MAX_LAYERS + 1)])
    with pytest.raises(AnchorheadError, match="rounds of 1 layers: at most"):
        prove_mlp(other, target, layers, readout, ON)


def with_states(network: Network, row: float, mask: str | None) -> Network:
    """With two states, and a mask for every attention."""
    states = np.full((2, network.embed.weight.shape[-2]), row)
    masked = [replace(one, mask=mask) if isinstance(one, Attention) else one for one in network.layers[1:]]
    return Network([replace(network.embed, states=states), *masked])


@pytest.mark.parametrize("mask", [None, "causal", "self+registers", "registers+states"])
def test_states_matter_to_those_who_see_them_alone(mask):
    network, target, layers, readout = made("two-layer", "transformer", False, "float64")
    rng = np.random.default_rng(2)
    found = set()
    for row in (0.0, 3.0, -50.0):
        other = with_states(network, row, mask)
        bound = prove_mlp(other, target, layers, readout, ON)
        assert holds(bound, errors(other, target, rng))
        found.add(bound.total)
    assert (len(found) == 1) == (mask in ("causal", "self+registers"))
