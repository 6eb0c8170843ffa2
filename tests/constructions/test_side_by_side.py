"""Networks of several parts: proven, checked from their weights alone, and refused when these are changed."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

import anchorhead as ah
from anchorhead.language.expressions.parser import parse
from anchorhead.network import Network

BOX = {"x": (-1.0, 1.0), "y": (0.0, 2.0), "z": (-1.5, 1.0), "w": (-1.0, 1.0), "u": (0.0, 1.0)}
CASES = {
    "a grid and a neuron": (["exp(x*y) + tanh(z)"], "xyz", 1e-3),
    "five variables": (["sin(x*y) + exp(z*w)/2 + relu(u - x)"], "xyzwu", 5e-3),
    "several outputs": (["exp(x*y)", "sin(x*z) + max(x, y, w)", "x/3 - pi*w + 1"], "xyzw", 1e-2),
    "grids alone": (["sin(x)*(y + exp(z))"], "xyz", 5e-3),
    "kinks in layers": (["abs(x)*y + min(x, max(y, z))"], "xyz", 1e-2),
}
ROWS = [["exp(x[0,0]*x[0,1])", "x[0,0]"], ["sin(x[0,0]*x[1,1]) + max(x[1,0], x[0,0], x[0,1])", "1"]]


@pytest.fixture(scope="module")
def built():
    made = {}

    def make(name, dtype="float64"):
        if (name, dtype) not in made:
            texts, names, within = CASES[name]
            on = {one: BOX[one] for one in names}
            made[name, dtype] = ah.approximate(texts, on=on, within=within, dtype=dtype)
        return made[name, dtype]

    return make


@pytest.fixture(scope="module")
def sequence():
    return ah.approximate(ROWS, tokens=2, features=2, on=(-1, 1), within=1e-2, causal=True)


def error(network, texts, names, low, high, seed=0):
    """The largest error at random points, at corners and edges, and at points around the worst."""
    rng = np.random.default_rng(seed)
    low, high = np.asarray(low, float), np.asarray(high, float)
    expressions = [parse(text, tuple(names)) for text in texts]

    def at(x):
        x = x.astype(network.dtype)
        columns = {name: x[:, i].astype(float) for i, name in enumerate(names)}
        exact = np.stack([one.values(columns) * np.ones(len(x)) for one in expressions], axis=1)
        shape = (len(x), network.embed.tokens, -1) if network.token_axis else (len(x), -1)
        return np.abs(network(x.reshape(shape)).reshape(len(x), -1).astype(float) - exact).max(axis=1)

    x = rng.uniform(low, high, (4000, len(low)))
    edge = rng.random(x.shape)
    x = np.where(edge < 0.15, low, np.where(edge > 0.85, high, x))
    found = at(x)
    for step in (0.1, 0.01, 1e-3, 1e-4):
        top = x[np.argsort(-found)[:20]]
        x = np.clip(top[:, None] + step * (high - low) * rng.standard_normal((20, 20, len(low))), low, high)
        x = np.concatenate([top, x.reshape(-1, len(low))])
        found = at(x)
    return found.max()


@pytest.mark.slow_for("a grid and a neuron-float64", "several outputs-float64", "kinks in layers-float64")
@pytest.mark.parametrize(("name", "dtype"), list(product(CASES, ("float64", "float32"))))
def test_no_search_finds_more_than_the_bound_and_the_check_agrees(name, dtype, built):
    texts, names, within = CASES[name]
    network = built(name, dtype)
    low, high = np.array([BOX[one] for one in names]).T
    assert error(network, texts, names, low, high) <= network.certificate.bound <= within
    assert network.certificate.kind == "proven"
    assert ah.check(network).stated == network.certificate.bound


@pytest.mark.slow
def test_a_causal_sequence_of_parts_is_proven_and_cannot_see_later_tokens(sequence):
    names = [f"x[{i},{j}]" for i in range(2) for j in range(2)]
    texts = [text for row in ROWS for text in row]
    assert error(sequence, texts, names, [-1] * 4, [1] * 4) <= sequence.certificate.bound <= 1e-2
    ah.check(sequence)
    x = np.random.default_rng(0).uniform(-1, 1, (50, 2, 2))
    other = x.copy()
    other[:, 1] = -other[:, 1]
    assert np.array_equal(sequence(x)[:, 0], sequence(other)[:, 0])


@pytest.mark.parametrize(
    ("which", "least"), [("a grid and a neuron", 10), pytest.param("sequence", 12, marks=pytest.mark.slow)]
)
def test_changed_weights_are_refused(which, least, built, sequence):
    """Every array of every layer, changed at some place: what passes is what nobody reads."""
    rng = np.random.default_rng(0)
    refused = 0
    network = sequence if which == "sequence" else built(which)
    box = network.certificate.on.broadcast_to((2, 2) if network.token_axis else (network.embed.inputs,))
    x = rng.uniform(box.low, box.high, (200, *box.low.shape))
    for place, layer in enumerate(network.layers):
        for name in ("weight", "registers", "bias", "query", "key", "value", "output"):
            array = getattr(layer, name, None)
            if array is None or not array.any():
                continue
            changed = np.array(array)
            spots = np.argwhere(changed != 0)
            spot = tuple(spots[rng.integers(len(spots))])
            changed[spot] = changed[spot] * 1.5 + 0.1
            layers = list(network.layers)
            layers[place] = replace(layer, **{name: changed})
            other = network.with_(layers=tuple(layers))
            try:
                ah.check(other)
            except ah.CertificateError:
                refused += 1
            else:
                assert np.array_equal(other(x), network(x)), (place, name, spot)
    assert refused >= least


def test_another_function_a_larger_box_and_a_smaller_bound_are_refused(built):
    network = built("a grid and a neuron")
    lie = ah.program("exp(x*y) + tanh(z) + x/4096", on={"x": (-1, 1), "y": (0, 2), "z": (-1.5, 1)})
    assert (lie.input.low == network.program.input.low).all()
    with pytest.raises(ah.CertificateError):
        ah.check(network.with_(program=lie))
    wider = replace(network.certificate, on=ah.Box.of(([-1, 0, -1.5], [1.5, 2, 1])))
    with pytest.raises(ah.CertificateError, match="larger than the program's"):
        ah.check(network.with_(certificate=wider))
    small = replace(network.certificate, bound=network.certificate.bound / 2)
    with pytest.raises(ah.CertificateError, match=r"add up|does not follow"):
        ah.check(network.with_(certificate=small))


def test_networks_of_parts_are_saved_and_shown_like_others(built, tmp_path):
    network = built("a grid and a neuron")
    network.save(tmp_path / "net.safetensors")
    again = ah.load(tmp_path / "net.safetensors")
    ah.check(again)
    x = np.random.default_rng(0).uniform([-1, 0, -1.5], [1, 2, 1], (7, 3))
    assert np.array_equal(again(x), network(x))
    assert network(x[:0]).shape == (0, 1)
    assert network(x[0]).shape == (1,)
    maps = network.attention(x)
    assert [m.shape[-1] for m in maps] == [len(network.embed.registers)] * 2
    assert all(np.allclose(m.sum(axis=-1), 1) for m in maps)
    assert "grid of x, y" in network.describe()
    assert np.allclose(network.module()(torch.from_numpy(x)).detach().numpy(), network(x), rtol=0, atol=1e-12)


def test_a_grid_with_neurons_is_measured_where_the_proof_is_left_out():
    network = ah.approximate("exp(x*y) + tanh(z)", on={n: BOX[n] for n in "xyz"}, within=1e-2, prove=False)
    assert network.certificate.kind == "measured"
    with pytest.raises(ah.CertificateError, match="measured"):
        ah.check(network)


def test_registers_that_a_part_does_not_use_change_nothing(built):
    """The neurons see the first registers alone, so more of them change no bit of the output."""
    network = built("a grid and a neuron")
    embed = network.embed
    more = np.concatenate([embed.registers, np.full((5, embed.registers.shape[1]), 7.0)])
    larger = Network([replace(embed, registers=more), *network.layers[1:]], token_axis=False)
    x = np.random.default_rng(0).uniform([-1, 0, -1.5], [1, 2, 1], (100, 3))
    assert np.array_equal(larger(x), network(x))
