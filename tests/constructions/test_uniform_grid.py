"""The paper's universal approximation: any continuous function on a uniform grid, proven, checked, never beyond."""

import dataclasses

import numpy as np
import pytest

import anchorhead as ah
from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.grids.grid import MAX_ANCHORS
from anchorhead.constructions.theorems.uniform_grid import approximate_uniform_grid
from anchorhead.language.expressions.parser import parse
from anchorhead.language.several import SeveralVariables
from anchorhead.network import Network
from anchorhead.proof.search.callable_search import largest_error
from anchorhead.terms import added_up
from tests.networks.grids import sides_of, stored_grid


def target(texts, variables, low, high):
    return SeveralVariables(tuple(parse(text, variables) for text in texts), tuple(variables), low, high)


CASES = {  # target, within, dtype, tokens
    "waves": (target(["sin(3*x)*cos(2*y) + exp(x*y)"], ("x", "y"), -1, 1), 0.3, "float64", None),
    "kinks, float32": (target(["abs(x - y) + max(x*y, 0.1)"], ("x", "y"), -1, 1), 0.15, "float32", None),
    "a root": (target(["sqrt(x)*y"], ("x", "y"), 0, 1), 0.2, "float64", None),
    "a sequence of one feature": (
        target(["x[0,0]*x[1,0]", "max(x[0,0], x[1,0])"], ("x[0,0]", "x[1,0]"), 0, 1),
        0.05,
        "float32",
        2,
    ),
    "far from 0, float32": (target(["tanh(x + y - 101)"], ("x", "y"), (49, 50), (51, 52)), 0.2, "float32", None),
    "three variables": (target(["1/(1 + x**2 + y**2 + z**2)"], ("x", "y", "z"), -1, 1), 0.3, "float64", None),
    "four variables": (target(["elu(x*y) - z*w"], ("x", "y", "z", "w"), -0.5, 0.5), 0.4, "float64", None),
    "one variable": (target(["sin(9*x)", "where(x < 0, 0, x)"], ("x",), -1, 1), 0.1, "float64", None),
    "a variable that does not matter": (target(["abs(x)"], ("x", "y"), -1, 1), 0.1, "float64", 1),
}


@pytest.fixture(scope="module")
def built():
    made = {}

    def make(name):
        if name not in made:
            wanted, within, dtype, tokens = CASES[name]
            made[name] = approximate_uniform_grid(
                dataclasses.replace(wanted, tokens=tokens), BuildRequest(within, dtype, outside="ignore")
            )
        return made[name]

    return make


def run(network, x):
    shape = (-1, network.embed.inputs) if not network.token_axis else (-1, network.embed.tokens, network.embed.inputs)
    return network(x.reshape(shape)).reshape(len(x), -1)


@pytest.mark.slow_for("waves", "a sequence of one feature", "three variables", "a root")
@pytest.mark.parametrize("name", CASES)
def test_what_is_asked_for_is_proven_and_checked_again(name, built):
    _, within, dtype, _ = CASES[name]
    network = built(name)
    certificate = network.certificate
    assert certificate.kind == "proven"
    assert 0.5 * within <= certificate.bound <= within
    assert certificate.dtype == dtype
    assert added_up(certificate.terms) <= certificate.bound <= 1.021 * added_up(certificate.terms)
    modulus, tail, rounding = certificate.terms
    assert [term.of for term in certificate.terms] == ["modulus", "tail", "softmax"]
    assert modulus.amount > tail.amount > 0
    assert modulus.amount > rounding.amount > 0
    assert [even.sides for even in modulus.anchors] == [sides_of(network)]
    sides = " x ".join(map(str, sides_of(network)))
    assert f"p = {sides}, beta = " in str(modulus)
    assert ah.check(network).stated == certificate.bound


@pytest.mark.parametrize("name", CASES)
def test_no_input_exceeds_the_bound(name, built, monkeypatch):
    monkeypatch.setattr("anchorhead.proof.search.callable_search.SAMPLES", 2048)
    monkeypatch.setattr("anchorhead.proof.search.callable_search.ROUNDS", 15)
    wanted, network = CASES[name][0], built(name)
    error, _ = largest_error(lambda x: run(network, x), wanted, seed=3)
    assert 0 < error <= network.certificate.bound


@pytest.mark.parametrize("name", ["waves", "kinks, float32"])
def test_values_are_those_of_the_function_at_even_anchors(name, built):
    wanted, atom = CASES[name][0], stored_grid(built(name))
    places = [np.linspace(a, b, side) for a, b, side in zip(wanted.low, wanted.high, atom.sides, strict=True)]
    truth = wanted.values(np.stack(np.meshgrid(*places, indexing="ij"), axis=-1))
    assert np.array_equal(atom.values, truth.astype(atom.dtype))
    assert not atom.bias.any()


def test_a_smaller_error_takes_as_many_more_anchors_as_the_modulus_says(built):
    wanted = CASES["waves"][0]
    finer = approximate_uniform_grid(wanted, BuildRequest(0.15))
    coarse, fine = (np.prod(sides_of(network)) for network in (built("waves"), finer))
    assert 3 <= fine / coarse <= 5.5
    root = target(["sqrt(x)"], ("x",), 0, 1)
    coarse, fine = (np.prod(sides_of(approximate_uniform_grid(root, BuildRequest(within)))) for within in (0.1, 0.05))
    assert 3.5 <= fine / coarse <= 4.5


def test_a_spike_that_samples_miss_is_not_missed_by_the_proof():
    spike = target(["max(0, 1 - 300*abs(x - 0.12345))"], ("x",), -1, 1)
    network = approximate_uniform_grid(spike, BuildRequest(0.4))
    x = np.append(np.random.default_rng(0).uniform(0.11, 0.14, 2000), 0.12345)[:, None]
    assert np.abs(network(x) - spike.values(x)).max() <= network.certificate.bound <= 0.4
    flat = target(["max(0, 1 - 9000*abs(x - 0.12345))"], ("x",), -1, 1)
    with pytest.raises(ah.AnchorheadError, match=r"within=0\.1"):
        approximate_uniform_grid(flat, BuildRequest(0.1))


def changed(network, change):
    """The network with its registers changed, its certificate kept."""
    registers = np.array(network.embed.registers)
    change(registers, list(network.embed.features))
    layers = [dataclasses.replace(network.embed, registers=registers), *network.layers[1:]]
    return Network(
        layers,
        program=network.program,
        derivation=network.derivation,
        certificate=network.certificate,
        token_axis=network.token_axis,
        outside="ignore",
    )


def move_a_value(registers, names):
    registers[len(registers) // 2, names.index("value 0")] += 0.3


def columns(names, axis):
    """The columns of a register that hold slope and offset along an axis."""
    slope = [n for n, name in enumerate(names) if name.startswith("slope along")][axis]
    return slope, slope + 1


def blunt_the_keys(registers, names):
    registers[:, columns(names, 0)] *= 0.001


def turn_the_keys(registers, names):
    registers[:, columns(names, 1)[0]] *= -1


def shift_the_keys(registers, names):
    slope, offset = columns(names, 0)
    registers[:, offset] += 0.2 * registers[:, slope]


@pytest.mark.parametrize("name", ["kinks, float32", pytest.param("a sequence of one feature", marks=pytest.mark.slow)])
@pytest.mark.parametrize("change", [move_a_value, blunt_the_keys, turn_the_keys, shift_the_keys])
def test_tampered_weights_are_refused(name, change, built):
    with pytest.raises(ah.CertificateError):
        ah.check(changed(built(name), change))


@pytest.mark.parametrize("name", ["kinks, float32", pytest.param("a sequence of one feature", marks=pytest.mark.slow)])
def test_a_bound_that_does_not_follow_is_refused(name, built):
    network = built(name)
    error, _ = largest_error(lambda x: run(network, x), CASES[name][0], seed=3)
    certificate = dataclasses.replace(network.certificate, bound=0.99 * error, terms=())
    with pytest.raises(ah.CertificateError, match="grid"):
        ah.check(network.with_(certificate=certificate))


@pytest.mark.slow
def test_saved_networks_are_still_proven(built, tmp_path):
    built("kinks, float32").save(tmp_path / "grid.safetensors")
    assert ah.check(tmp_path / "grid.safetensors").stated == built("kinks, float32").certificate.bound


def test_a_grid_that_would_be_too_large_is_refused_with_its_size():
    with pytest.raises(
        ah.AnchorheadError, match=r"= [\d,]+ anchors, and at most 20,000 .*placement=\"solved\""
    ) as said:
        approximate_uniform_grid(CASES["waves"][0], BuildRequest(1e-3))
    anchors = int(str(said.value).split(" = ")[1].split(" ")[0].replace(",", ""))
    assert 1e7 < anchors < 1e8 > MAX_ANCHORS


def test_functions_that_are_not_continuous_are_refused():
    step = target(["where(x < y, 0, 1)"], ("x", "y"), -1, 1)
    with pytest.raises(ah.AnchorheadError, match="jump"):
        approximate_uniform_grid(step, BuildRequest(0.3))
    with pytest.raises(ah.AnchorheadError, match="jump"):
        approximate_uniform_grid(target(["where(x < 0.0001, 0, 0.7)"], ("x",), -1, 1), BuildRequest(0.6))
    with pytest.raises(ah.AnchorheadError, match="not finite at"):
        approximate_uniform_grid(target(["1/(x - y)"], ("x", "y"), -1, 1), BuildRequest(0.3))


def test_what_a_dtype_cannot_hold_is_refused_with_the_reason():
    with pytest.raises(ah.AnchorheadError, match=r"rounding alone.*float64"):
        approximate_uniform_grid(target(["sin(20*x)"], ("x",), -1, 1), BuildRequest(0.01, "float32"))


def test_bad_requests_are_refused():
    wanted = CASES["waves"][0]
    for within in (0, -1, True, float("nan"), "0.1"):
        with pytest.raises(ah.AnchorheadError, match="within="):
            approximate_uniform_grid(wanted, BuildRequest(within))
    five = target(["a*b*c*d*f"], ("a", "b", "c", "d", "f"), -1, 1)
    with pytest.raises(ah.AnchorheadError, match="at most 4"):
        approximate_uniform_grid(five, BuildRequest(0.1))
    with pytest.raises(ah.AnchorheadError, match="divides both"):
        dataclasses.replace(wanted, tokens=3)


def test_progress_is_told_every_grid_that_is_tried():
    told = []
    network = approximate_uniform_grid(CASES["kinks, float32"][0], BuildRequest(0.15, progress=told.append))
    reached = [(status.anchors, status.error) for status in told]
    assert (np.prod(sides_of(network)), network.certificate.bound) in reached
