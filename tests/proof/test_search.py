"""The search finds what a proof bounds, never more than it, and looks where errors live."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anchorhead.constructions.truncated_linear import truncated_linear
from anchorhead.domain import Box
from anchorhead.language.forms import ramp_of
from anchorhead.language.targets.ramp import TruncatedLinear
from anchorhead.network import Network
from anchorhead.proof.search.search import Segments, Worst, worst_error


def functions(tokens: int = 8, features: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(tokens, features)), rng.normal(size=tokens)


def target_of(network: Network) -> TruncatedLinear:
    assert network.program is not None
    return ramp_of(network.program)


def hunted(network: Network, seed: int = 0) -> Worst:
    assert network.certificate is not None
    return worst_error(network, target_of(network), network.certificate.on, seed)


@pytest.mark.slow_for("options1-float64", "options2-float32", "options3-float64", "options3-float32")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("options", [{"anchors": 8}, {"anchors": 64}, {"heads": 1}, {"heads": 6}])
def test_the_search_comes_close_to_the_bound_and_stays_below(options, dtype):
    for low, high in ((-1.0, 1.0), (5.0, 7.0)):
        network = truncated_linear(*functions(), low, high, dtype=dtype, **options)
        assert 0.95 * network.certificate.bound < hunted(network).error <= network.certificate.bound


@pytest.mark.parametrize("c", [0.05, 0.3, 2.7, 30.0, 1000.0])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("options", [{"anchors": 17}, {"heads": 3}, {"anchors": 9, "outputs": lambda k: k // 3}])
def test_a_sharpness_of_ones_own_keeps_its_bound(options, dtype, c):
    intervals = options.get("anchors", 19) - 1
    network = truncated_linear(*functions(), 5, 7, dtype=dtype, sharpness=c * (intervals / 2) ** 2, **options)
    assert hunted(network).error <= network.certificate.bound


@settings(max_examples=10, deadline=None)
@given(
    low=st.floats(-100, 100),
    width=st.floats(0.01, 50),
    tokens=st.integers(3, 9),
    size=st.integers(2, 40),
    several=st.booleans(),
    c=st.none() | st.floats(0.01, 1000),
    reach=st.floats(0.1, 100),
    dtype=st.sampled_from(["float32", "float64"]),
    seed=st.integers(0, 1000),
)
def test_no_bound_is_ever_exceeded(low, width, tokens, size, several, c, reach, dtype, seed):
    heads = size // 8 + 1
    options, intervals = ({"heads": heads}, (tokens - 2) * heads) if several else ({"anchors": size}, size - 1)
    beta = None if c is None else c * (intervals / width) ** 2
    network = truncated_linear(
        *functions(tokens, 2, seed),
        low,
        low + width,
        sharpness=beta,
        on=(-reach, reach),
        dtype=dtype,
        **options,
    )
    assert hunted(network, seed).error <= network.certificate.bound


def test_a_box_in_which_no_token_comes_near_a_crossing_is_searched_all_the_same():
    network = truncated_linear(*functions(3, 2, 0), -3.0, -2.0, anchors=2, on=(-0.109375, 0.109375), dtype="float32")
    assert 0 < hunted(network).error <= network.certificate.bound


def test_what_a_uniform_grid_misses_is_found():
    network = truncated_linear(*functions(), -1, 1, anchors=9, on=(-1e6, 1e6))
    target = target_of(network)
    segments = Segments.of(target, network.certificate.on)
    x = segments.inputs(np.linspace(*segments.reach, 5000))
    on_a_grid = np.abs(network(x) - target.values(x)).max()
    assert on_a_grid < network.certificate.bound / 1000
    assert hunted(network).error > 0.98 * network.certificate.bound


def test_one_wrong_anchor_among_many_is_found():
    network = truncated_linear(*functions(), -1, 1, anchors=64)
    registers = np.array(network.embed.registers)
    registers[20, 2] += 0.5
    wrong = Network(
        [replace(network.embed, registers=registers), *network.layers[1:]],
        program=network.program,
        derivation=network.derivation,
        certificate=network.certificate,
    )
    assert hunted(wrong).error > 3 * network.certificate.bound


def test_what_the_certificate_leaves_out_is_not_searched():
    network = truncated_linear(*functions(), -1, 1, anchors=12, outputs=lambda k: k // 4)
    found = hunted(network)
    assert found.error <= network.certificate.bound
    assert not any(low < found.s < high for low, high in network.certificate.excluded)
    everywhere = worst_error(network.with_(certificate=None), target_of(network), Box.of((-10, 10)))
    assert everywhere.error > 2 * network.certificate.bound


def test_the_worst_input_shows_the_error_that_is_claimed():
    network = truncated_linear(*functions(), -1, 1, heads=4)
    target, found = target_of(network), hunted(network)
    error = np.abs(network(found.x[None]) - target.values(found.x[None]))[0, found.token]
    assert float(error.max()) == pytest.approx(found.error, rel=1e-9)
    assert float(target.pre_activations(found.x)[found.token]) == found.s
    assert network.certificate.on.contains(found.x).all()


def test_the_same_seed_finds_the_same():
    network = truncated_linear(*functions(), -1, 1, anchors=16)
    first, second = hunted(network, 3), hunted(network, 3)
    assert (first.error, first.token, first.s, first.evaluations) == (
        second.error,
        second.token,
        second.s,
        second.evaluations,
    )


@pytest.mark.parametrize("t", [0.3, 50.0])
def test_functions_that_do_not_move_or_never_reach_the_range_are_searched_too(t):
    w = np.zeros((3, 2))
    still = truncated_linear(w, np.full(3, t), -1, 1, anchors=5)
    assert hunted(still).error <= still.certificate.bound
    beyond = truncated_linear(w + 0.1, np.full(3, t), -1, 1, anchors=5)
    assert hunted(beyond).error <= beyond.certificate.bound


def test_segments_give_inputs_of_the_box_with_the_s_that_is_asked():
    target = target_of(truncated_linear(*functions(), -1, 1))
    segments = Segments.of(target, Box.of((-2, 3)))
    least, most = segments.reach
    rng = np.random.default_rng(0)
    s = rng.uniform(least, most, (50, 8))
    for base in (None, segments.random(50, rng)):
        x = segments.inputs(s, base)
        np.testing.assert_allclose(target.pre_activations(x).astype(float), s, atol=1e-13)
        assert segments.box.contains(x).all()
