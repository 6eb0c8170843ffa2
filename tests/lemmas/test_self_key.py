"""Keys of tokens' own in the walk: neurons of one layer, of several, gated, and changed ones, which it still bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from flint import arb

from anchorhead.conditions import NormImage
from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.layouts.self_key_layout import self_key_network
from anchorhead.constructions.passes.layout import built, drafted
from anchorhead.constructions.passes.run import Tries
from anchorhead.constructions.single.activation_heads import ActivationHeads
from anchorhead.constructions.single.gate_head import gate_head
from anchorhead.constructions.single.self_key_head import self_key_head
from anchorhead.convert.attention_only.heads import numbers_of
from anchorhead.convert.attention_only.networks import parts_of
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions.activation_names import activation_of
from anchorhead.language.targets.mlp import Affine, Mlp
from anchorhead.lemmas.activations import Steepness
from anchorhead.lemmas.prove import prove_claims, prove_on_image
from anchorhead.lemmas.self_key import SelfKeys, speed_of
from anchorhead.network import Attention, Embed, Linear, Network
from anchorhead.proof.arithmetic.affine_forms import Sources
from tests.lemmas.test_walk import ON, changed, holds
from tests.networks.converted import neurons

WIDTH, NEURONS, OUTPUTS, REACH = 5, 7, 3, 6.0
WITHIN = {"float64": 1e-7, "float32": 1e-5}


def affine(rng: np.random.Generator, outputs: int, inputs: int, dtype: str, spread: float = 0.4) -> Affine:
    weight, bias = spread * rng.normal(size=(outputs, inputs)), 0.2 * rng.normal(size=outputs)
    return Affine(*(one.astype(dtype).astype(np.float64) for one in (weight, bias)))


def claimed(act: str, gated: bool, asks: Affine, carries: Affine | None, dtype: str) -> SelfKeys:
    head = gate_head(act, WITHIN[dtype], dtype) if gated else self_key_head(act, WITHIN[dtype], dtype, -REACH, REACH)
    lost = head.underflow if gated else 0.0
    phi = Steepness(head.bound, 1.13, 1.0)
    return SelfKeys(activation_of(act)[1], parts_of(numbers_of(head)), asks, carries, -REACH, REACH, phi, lost)


def exact(claim: SelfKeys, z: np.ndarray) -> np.ndarray:
    """The neurons of the claim, in float64."""
    s = z @ claim.asks.weight.T + claim.asks.bias
    phi = np.array([float(claim.function.ball({"x": arb(one)}).mid()) for one in s.reshape(-1).tolist()]).reshape(
        s.shape
    )
    return phi if claim.carries is None else phi * (z @ claim.carries.weight.T + claim.carries.bias)


def errors(network: Network, claim: SelfKeys, down: Affine, z: np.ndarray) -> np.ndarray:
    y = np.asarray(network(z.astype(network.dtype)[:, None], outside="ignore"), np.float64)[:, 0]
    return np.abs(y - (exact(claim, z) @ down.weight.T + down.bias)).max(axis=0)


CASES = [("gelu", False), ("relu", False), ("leaky_relu", False), ("tanh", False), ("silu", True), ("relu", True)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("act", "gated"), CASES)
def test_neurons_behind_a_norm_are_explained_and_changed_ones_still_bounded(act, gated, dtype):
    rng = np.random.default_rng(0)
    asks, down = affine(rng, NEURONS, WIDTH, dtype), affine(rng, OUTPUTS, NEURONS, dtype)
    carries = affine(rng, NEURONS, WIDTH, dtype) if gated else None
    claim = claimed(act, gated, asks, carries, dtype)
    network = self_key_network(asks, carries, down, claim.parts, dtype, REACH)
    scale, shift = rng.uniform(0.5, 1.0, WIDTH), 0.1 * rng.normal(size=WIDTH)
    image = NormImage("LayerNorm", tuple(scale), tuple(shift), slack=1e-3, rounding=1e-6)
    p = rng.normal(size=(200, WIDTH))
    p -= p.mean(axis=1, keepdims=True)
    z = (scale * p * np.sqrt(WIDTH) / np.linalg.norm(p, axis=1, keepdims=True) + shift).astype(dtype).astype(float)
    bound = prove_on_image(network, [claim], down, image)
    # gated relu is the difference of two steps at 0: parts that round what they ask apart from one another may disagree
    assert bound.total < (3.0 if (act, gated) == ("relu", True) else (400 if gated else 40) * WITHIN[dtype])
    assert holds(bound, errors(network, claim, down, z))
    loose = 0
    for _ in range(16):
        other = changed(network, rng)
        if other.layers[1].mask == "causal":  # tokens that see one another are no single tokens
            continue
        again = prove_on_image(other, [claim], down, image)
        assert np.isfinite(again.total)
        assert holds(again, errors(other, claim, down, z))
        loose += again.total > bound.total
    assert loose


def larger(dtype: str) -> tuple[Network, list[Any], Affine, Mlp]:
    """Inputs of another sign, gelu neurons with keys of their own, and on what they give neurons as softmax groups."""
    rng = np.random.default_rng(1)
    asks, down = affine(rng, NEURONS, WIDTH, dtype), affine(rng, 3, NEURONS, dtype, 0.1)
    claim = claimed("gelu", False, Affine(-asks.weight, asks.bias), None, dtype)
    first = self_key_network(asks, None, down, claim.parts, dtype, REACH)
    size = first.embed.weight.shape[0]
    turned = Linear(np.diag(np.where(np.arange(size) < WIDTH, -1.0, 1.0).astype(dtype)))
    target = neurons(3, 4, OUTPUTS)
    way = BuildRequest(0.05, dtype, "attention-softmax", "transformer")
    laid = Tries(target, ON, 0.05, ActivationHeads(way.dtype, way.placement)).first
    then = built(drafted(laid, target, way), target, way)
    gather = then.layers[1]
    assert isinstance(gather, Attention)
    # the map that it ends with; it lets tokens see one another, of which there is one
    between = Linear(gather.output[0], gather.bias)
    layers = [replace(first.embed, tokens=1), turned, first.layers[1], between, *then.layers[2:]]
    (layer,) = laid.layers
    outer, (off, rest) = layer.affine, layer.affine.errors
    weight, bias = outer.weight @ down.weight, outer.weight @ down.bias + outer.bias
    off = off @ np.abs(down.weight) + 1e-15 * (np.abs(outer.weight) @ np.abs(down.weight))
    rest = rest + 1e-15 * (np.abs(outer.weight) @ np.abs(down.bias) + np.abs(outer.bias))
    inner = replace(layer, affine=Affine(weight, bias, off, rest))
    return Network(layers), [claim, inner], laid.readout, target


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_step_with_keys_of_its_own_inside_a_larger_network_is_proven(dtype):
    network, claims, readout, target = larger(dtype)
    box, rng = Box.of((-1.0, 1.0)).broadcast_to((1, WIDTH)), np.random.default_rng(2)
    bound = prove_claims(network, claims, readout, box)
    assert bound.total < 0.05
    z = np.concatenate([rng.uniform(-1, 1, (100, WIDTH)), rng.choice([-1.0, 1.0], (20, WIDTH))])
    z = z.astype(dtype).astype(float)
    down = network.layers[2]
    assert isinstance(down, Attention)
    middle = exact(claims[0], z) @ down.output[:NEURONS, :, 0].astype(float) + np.asarray(down.bias, float)
    wanted = target.values(middle)

    def found(network: Network) -> np.ndarray:
        y = np.asarray(network(z.astype(dtype)[:, None], outside="ignore"), np.float64)[:, 0]
        return np.abs(y - wanted).max(axis=0)

    assert holds(bound, found(network))
    loose = 0
    for _ in range(12):
        other = changed(network, rng)
        again = prove_claims(other, claims, readout, box)
        assert holds(again, found(other))
        loose += again.total > bound.total
    assert loose


def test_every_token_has_neurons_of_its_own():
    """Two tokens that do not see one another: as many neurons again, in the inputs of the second."""
    rng, dtype = np.random.default_rng(3), "float64"
    asks, down = affine(rng, NEURONS, WIDTH, dtype), affine(rng, OUTPUTS, NEURONS, dtype)
    claim = claimed("gelu", False, asks, None, dtype)
    network = self_key_network(asks, None, down, claim.parts, dtype, REACH)
    network = Network([replace(network.embed, tokens=2), network.layers[1]])
    both, out = (Affine(np.kron(np.eye(2), one.weight), np.tile(one.bias, 2)) for one in (asks, down))
    bound = prove_claims(network, [replace(claim, asks=both)], out, Box.of((-1.0, 1.0)).broadcast_to((2, WIDTH)))
    assert bound.total < 40 * WITHIN[dtype]
    z = rng.uniform(-1, 1, (50, 2, WIDTH))
    y = np.asarray(network(z, outside="ignore"))
    wanted = exact(claim, z.reshape(-1, WIDTH)) @ down.weight.T + down.bias
    assert holds(bound, np.abs(y.reshape(50, -1) - wanted.reshape(50, -1)).max(axis=0))


@pytest.mark.parametrize("what", ["register value", "own key", "own value", "range", "another order"])
def test_what_is_not_the_head_gets_the_interval(what: str) -> None:
    rng, dtype = np.random.default_rng(4), "float64"
    asks, down = affine(rng, NEURONS, WIDTH, dtype), affine(rng, OUTPUTS, NEURONS, dtype)
    claim = claimed("gelu", False, asks, None, dtype)
    network = self_key_network(asks, None, down, claim.parts, dtype, REACH)
    embed, attention = network.embed, network.layers[1]
    assert isinstance(embed, Embed)
    assert isinstance(attention, Attention)
    registers, bias, value = (np.array(one) for one in (embed.registers, embed.bias, attention.value))
    match what:
        case "register value":
            registers[0, WIDTH + 3] += 1e-3
        case "own key":
            bias[WIDTH + 2] += 1e-3
        case "own value":
            value[0, 0, 0] += 1e-3
        case "range":
            claim = replace(claim, high=0.5)
        case _:
            registers = registers[::-1]
    layers = [replace(embed, registers=registers, bias=bias, tokens=1), replace(attention, value=value)]
    box = Box.of((-1.0, 1.0)).broadcast_to((1, WIDTH))
    bound = prove_claims(Network(layers), [claim], down, box)
    z = rng.uniform(-1, 1, (50, WIDTH))
    assert holds(bound, errors(Network(layers), claim, down, z))
    near = {"another order": 40 * WITHIN[dtype], "own value": 3e-3}.get(what)
    assert bound.total > 0.05 if near is None else bound.total < near


@pytest.mark.parametrize("act", ["silu", "relu", "sigmoid"])
def test_parts_that_are_asked_apart_move_no_more_than_that(act: str) -> None:
    head = gate_head(act, WITHIN["float64"], "float64")
    rng = np.random.default_rng(8)
    g = np.concatenate([rng.uniform(-4, 4, 2000), 1e-12 * rng.normal(size=2000)])
    for part, one in zip(parts_of(numbers_of(head)), head.parts, strict=True):
        alone = replace(head, parts=(one,))
        for apart in (1e-3, 1e-7, 1e-13):
            moved = np.abs(alone(g + apart) - alone(g)).max()
            assert moved <= min(speed_of(part, -6.0, 6.0) * apart, abs(part.factor)) + 1e-12


def test_a_skip_with_a_bias_is_a_map_of_its_own() -> None:
    rng, dtype = np.random.default_rng(7), "float64"
    asks, down = affine(rng, NEURONS, WIDTH, dtype), affine(rng, OUTPUTS, NEURONS, dtype)
    claim = claimed("gelu", False, asks, None, dtype)
    network = self_key_network(asks, None, down, claim.parts, dtype, REACH)
    attention: Any = network.layers[1]
    skip = Linear(np.zeros((OUTPUTS, attention.width)), np.arange(1.0, OUTPUTS + 1))
    network = Network([replace(network.embed, tokens=1), replace(attention, skip=skip)])
    moved = Affine(down.weight, down.bias + np.asarray(skip.bias), bias_error=1e-15 * np.ones(OUTPUTS))
    bound = prove_claims(network, [claim], moved, Box.of((-1.0, 1.0)).broadcast_to((1, WIDTH)))
    assert bound.total < 40 * WITHIN[dtype]
    assert holds(bound, errors(network, claim, moved, rng.uniform(-1, 1, (50, WIDTH))))


def test_any_number_of_tokens_that_see_one_another_is_refused() -> None:
    rng, dtype = np.random.default_rng(5), "float64"
    asks, down = affine(rng, NEURONS, WIDTH, dtype), affine(rng, OUTPUTS, NEURONS, dtype)
    claim = claimed("gelu", False, asks, None, dtype)
    network = self_key_network(asks, None, down, claim.parts, dtype, REACH)
    attention: Any = network.layers[1]
    image = NormImage("RMSNorm", (1.0,) * WIDTH, (0.0,) * WIDTH, slack=1e-3, rounding=1e-6)
    for mask in (None, "causal"):
        with pytest.raises(AnchorheadError, match="see one another"):
            prove_on_image(Network([network.embed, replace(attention, mask=mask)]), [claim], down, image)


def test_neurons_lie_between_what_their_claim_says() -> None:
    rng = np.random.default_rng(6)
    asks, carries = (affine(rng, NEURONS, WIDTH, "float64") for _ in range(2))
    claim = claimed("silu", True, asks, carries, "float64")
    found = claim.after(Sources(-np.ones(WIDTH), np.ones(WIDTH)))
    values = exact(claim, rng.uniform(-1, 1, (500, WIDTH)))
    assert (found.low <= values.min(axis=0)).all()
    assert (values.max(axis=0) <= found.high).all()
