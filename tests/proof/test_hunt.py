"""The hunt finds what was planted, invents nothing, and finds no violation of a certificate."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import numpy as np
import pytest

from anchorhead.constructions.head import head
from anchorhead.constructions.single.certified_head import Head
from anchorhead.constructions.single.head_network import head_network
from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Atom, Part
from anchorhead.language.targets import target_of
from anchorhead.network import Network
from anchorhead.progress import Status
from anchorhead.proof.search.hunt import Claim, hunt
from anchorhead.proof.search.hunt_points import FloatRange, from_ordinals, to_ordinals
from tests.networks import names, network

HEADS = {
    "relu": ((-1, 1), 1e-9, 1e-4),
    "hardtanh": ((-2, 2), 1e-9, 1e-4),
    "abs": ((-1, 1), 1e-9, 1e-4),
    "tanh": ((-5, 5), 1e-14, 1e-5),
    "sigmoid": ((-8, 8), 1e-14, 1e-5),
    "relu(x - 1000)": ((999, 1001), 1e-8, 1e-2),
    "sin": ((-0.001, 0.002), 1e-9, 1e-6),
}
"""Domain, and the error asked for in float64 and in float32: heads whose bound is mostly rounding."""


def relu(dtype: str = "float32") -> Head:
    return head("relu", on=(-1, 1), within=1e-4, dtype=dtype)


def changed(built: Head, part: int, anchor: int, factor: float) -> Network:
    """The network of a head with one value multiplied, under its old certificate."""
    parts = list(built.parts)
    values = np.array(parts[part].values)
    values[anchor] *= factor
    parts[part] = Part.of(parts[part].slopes, parts[part].offsets, values, built.atom.dtype)
    atom = Atom.of(parts, built.atom.origin, built.atom.bias, built.atom.dtype)
    return head_network(atom, built.target).with_(certificate=built.certificate)


@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        pytest.param(function, dtype, marks=[pytest.mark.slow] if (number + other) % 2 else [])
        for number, function in enumerate(HEADS)
        for other, dtype in enumerate(("float32", "float64"))
    ],
)
def test_no_certificate_is_violated(function, dtype):
    on, in_float64, in_float32 = HEADS[function]
    built = head(function, on=on, within=in_float64 if dtype == "float64" else in_float32, dtype=dtype)
    found = hunt(Claim.of(built.network), inputs=40_000)
    assert found.violations == ()
    assert found.inputs == 40_000
    assert on[0] <= found.at <= on[1]
    assert 0.05 < found.ratio <= 1


@pytest.mark.slow_for(
    "head, far from 0 (float32)",
    "head, summed (float64)",
    "head (float64)",
    "head, several outputs (float64)",
    "function of one variable (float32)",
)
@pytest.mark.parametrize("name", names("scalar", "proven"))
def test_no_head_of_the_table_is_violated(name):
    found = hunt(Claim.of(network(name)), inputs=5_000)
    assert found.violations == ()
    assert found.worst_error <= network(name).certificate.bound


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_bound_below_the_true_error_is_found_out(dtype):
    claim = Claim.of(relu(dtype).network)
    worst = hunt(claim, inputs=20_000).worst_error
    found = hunt(replace(claim, bound=0.98 * worst), inputs=20_000, seed=1)
    assert found.violations
    assert found.worst_error == found.violations[0].error > 0.98 * worst


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_value_that_was_changed_is_found_out(dtype):
    built = relu(dtype)
    heavy = int(np.abs(built.parts[0].values[:, 0]).argmax())
    found = hunt(Claim.of(changed(built, 0, heavy, 1.001)), inputs=20_000)
    assert found.violations
    worst = found.violations[0]
    exact = max(worst.at, 0.0)
    assert max(abs(y - exact) for row in worst.computed for y in row) == pytest.approx(worst.error)
    assert worst.error > built.certificate.bound


def test_a_violation_that_an_even_grid_does_not_see_is_found():
    """A ReLU of three anchors whose error lives within about 1e-6 of the kink, and is 1e-9 elsewhere."""
    steep, small = 1e6, 1e-4
    part = Part.of([-steep, -small, small], [np.log(2), 0, 0], [0, -1 / small, 1 / small], "float64")
    target = target_of("relu", (-1, 1))
    claim = Claim(head_network(Atom.of([part], 0.0, 0.0, "float64"), target), target, bound=2e-7)
    even = np.linspace(-1, 1, 20_000)
    assert np.abs(claim.computed(even)[:, 0, 0] - np.maximum(even, 0)).max() < 1e-8
    found = hunt(claim, inputs=20_000)
    assert len(found.violations) > 10
    assert all(abs(violation.at) < 5e-6 for violation in found.violations)
    assert found.worst_error == pytest.approx(0.2785 / steep, rel=1e-3)


def test_a_result_that_is_not_a_number_is_a_violation():
    claim = Claim.of(relu().network)
    found = claim.judge(0.5, np.array([[np.nan], [0.5]]))
    assert found.above
    assert found.error == np.inf


@pytest.mark.slow
def test_noise_in_the_values_of_the_target_invents_no_violation():
    """In float64, (1 - cos x)/x^2 is 0 near 1e-8, where 1/2 is right; Arb knows better."""
    built = head("(1 - cos(x))/x**2", on=(1e-8, 1), anchors=3, dtype="float32")
    x = np.geomspace(1e-8, 1e-7, 1000)
    noise = np.abs(built.target.values(x)[:, 0] - 0.5).max()
    assert noise > 10 * built.certificate.bound
    found = hunt(Claim.of(built.network), inputs=20_000)
    assert found.violations == ()
    assert found.worst_error <= built.certificate.bound


@pytest.mark.slow_for("True")
@pytest.mark.parametrize("planted", [False, True])
def test_a_hunt_that_was_stopped_ends_as_if_it_had_not_been(planted, tmp_path):
    claim = Claim.of(relu().network)
    claim = replace(claim, bound=claim.bound / 4) if planted else claim
    state, done = tmp_path / "hunt.json", []

    def stop(status: Status) -> None:
        done.append(round(20_000 * (status.share or 0.0)))
        if len(done) in (1, 3):
            raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            hunt(claim, 20_000, state=state, progress=stop)
    resumed = hunt(claim, 20_000, state=state, progress=stop)
    assert done == sorted(set(done))
    assert done[-1] == resumed.inputs == 20_000
    assert resumed == hunt(claim, 20_000)
    assert bool(resumed.violations) == planted
    assert hunt(claim, 20_000, state=state) == resumed


def test_the_state_of_another_hunt_is_refused(tmp_path):
    built, state = relu(), tmp_path / "hunt.json"
    claim = Claim.of(built.network)
    hunt(claim, 5_000, state=state)
    before = state.read_bytes()
    others = [
        replace(claim, bound=claim.bound / 2),
        Claim.of(changed(built, 0, 0, 1.5)),
        Claim.of(head("hardtanh", on=(-2, 2), within=1e-4, dtype="float32").network),
    ]
    for other in others:
        with pytest.raises(AnchorheadError, match="another head, target or bound"):
            hunt(other, 5_000, state=state)
    with pytest.raises(AnchorheadError, match="another seed"):
        hunt(claim, 5_000, seed=1, state=state)
    with pytest.raises(AnchorheadError, match="another inputs"):
        hunt(claim, 6_000, state=state)
    assert state.read_bytes() == before


def test_a_damaged_state_is_refused(tmp_path):
    claim, state = Claim.of(relu().network), tmp_path / "hunt.json"
    hunt(claim, 5_000, state=state)
    good = json.loads(state.read_bytes())
    for change in (
        {"worst": [[1]]},
        {"tried": 10**9},
        {"tried": "many"},
        {"violations": None},
        {"worst": [["x", [], "0x1p0", 0]]},
    ):
        state.write_text(json.dumps(good | change))
        with pytest.raises(AnchorheadError, match="damaged"):
            hunt(claim, 5_000, state=state)
    seed = json.dumps(good)
    for damaged in (
        seed.replace('"tried": 5000', '"tried": -1'),
        seed.replace("0x1.", "0x1.7", 1),
        seed[:-9],
        "[" * 10**5,
    ):
        assert damaged != seed
        state.write_text(damaged)
        with pytest.raises(AnchorheadError, match="not the state of a hunt, or is damaged"):
            hunt(claim, 5_000, state=state)
    state.unlink()
    os.mkfifo(state)  # nobody writes to it: opening it would wait for ever
    with pytest.raises(AnchorheadError, match="not a file but a pipe"):
        hunt(claim, 5_000, state=state)
    state.unlink()
    state.write_text("[]")
    with pytest.raises(AnchorheadError, match="damaged"):
        hunt(claim, 5_000, state=state)


def test_a_network_that_claims_nothing_is_refused():
    with pytest.raises(AnchorheadError, match="a hunt needs"):
        Claim.of(relu().network.with_(certificate=None))
    with pytest.raises(AnchorheadError, match="inputs=0: a whole number of at least 1"):
        hunt(Claim.of(relu().network), inputs=0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ordinals_count_the_floats(dtype):
    info = np.finfo(dtype)
    x = np.array([0.0, info.smallest_subnormal, -info.smallest_subnormal, 1.0, -1.0, info.max, info.min], dtype)
    assert np.array_equal(from_ordinals(to_ordinals(x), dtype), x)
    assert np.array_equal(to_ordinals(np.nextafter(x[:-2], np.array(np.inf, dtype))), to_ordinals(x[:-2]) + 1)
    assert to_ordinals(np.array([-0.0], dtype))[0] == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_input_lies_in_the_domain_and_neighbours_of_the_places_are_tried(dtype):
    built = head("hardtanh", on=(-1.7, 2.1), within=1e-4, dtype=dtype)
    floats = FloatRange.of(built.target, built.parts, built.atom.origin, dtype)
    rng = np.random.default_rng(0)
    ordinals = floats.explore(0, 40_000, 20_000, rng)
    ordinals = np.concatenate([ordinals, floats.near(ordinals, rng)])
    x = from_ordinals(ordinals, dtype).astype(np.float64)
    assert x.min() >= -1.7
    assert x.max() <= 2.1
    for place in (-1.0, 1.0, 0.0):
        at = int(to_ordinals(np.array([place], dtype))[0])
        assert set(range(at - 50, at + 51)) <= set(ordinals.tolist())
    for end, inwards in ((floats.first, 1), (floats.last, -1)):
        assert {end + inwards * step for step in range(50)} <= set(ordinals.tolist())
