"""Functions of several variables as networks: proven, checked again from the weights, saved, and never beyond."""

import dataclasses

import numpy as np
import pytest
import torch
from flint import arb, ctx

import anchorhead as ah
from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.grids.grid import certified_grid, solved_grid
from anchorhead.constructions.grids.grid_network import grid_network
from anchorhead.effort import Effort
from anchorhead.errors import NotReached, UnprovenWarning
from anchorhead.heads.grids.grid import GridAtom, uniform_grid
from anchorhead.language.entries import Entries
from anchorhead.language.expressions.parser import parse
from anchorhead.language.of_targets import program_of
from anchorhead.language.several import SeveralVariables
from anchorhead.network import Attention, Embed, Network
from anchorhead.proof.grids.grid import OPERATIONS
from tests.networks.grids import sides_of


def target(texts, variables, low, high):
    return SeveralVariables(tuple(parse(text, variables) for text in texts), tuple(variables), low, high)


WAVES = target(["sin(3*x)*cos(2*y) + exp(x*y)"], ("x", "y"), -1, 1)
BELL = target(["1/(1 + x**2 + y**2 + z**2)"], ("x", "y", "z"), -1, 1)
PAIR = target(["x*y", "exp(x - y)"], ("x", "y"), (0, -1), (1, 2))
ROWS = target(["x[0,0]*x[1,0]", "sin(x[0,0] + x[1,0]) + 3"], ("x[0,0]", "x[1,0]"), (0, -1), (1, 2))
FOUR = ("x[0,0]", "x[0,1]", "x[1,0]", "x[1,1]")
SEQUENCE = target(["x[0,0]*x[1,1]", "x[0,1]", "exp(x[0,0]*x[1,0])", "2 - x[0,1]"], FOUR, -0.5, 0.5)
CASES = {  # target, within, dtype, tokens, the most anchors
    "two variables": (WAVES, 1e-6, "float64", None, 100),
    "two variables, float32": (WAVES, 1e-3, "float32", None, 60),
    "three variables": (BELL, 1e-4, "float64", None, 800),
    "two outputs, float32": (PAIR, 1e-3, "float32", None, 60),
    "a sequence": (ROWS, 1e-6, "float64", 2, 80),
    "a sequence, float32": (ROWS, 1e-3, "float32", 2, 80),
    "a sequence of two features": (SEQUENCE, 1e-3, "float64", 2, 300),
}


@pytest.fixture(scope="module")
def built():
    made = {}

    def make(name):
        if name not in made:
            wanted, within, dtype, tokens, _ = CASES[name]
            made[name] = solved_grid(dataclasses.replace(wanted, tokens=tokens), BuildRequest(within, dtype)).network
        return made[name]

    return make


def run(network, x):
    """Outputs (n, all) for inputs (n, variables), whatever the layout."""
    shape = (-1, network.embed.inputs) if not network.token_axis else (-1, network.embed.tokens, network.embed.inputs)
    return network(x.reshape(shape)).reshape(len(x), -1)


def errors(network, wanted, x):
    return np.abs(run(network, x).astype(np.longdouble) - wanted.values(x)).max(axis=1).astype(float)


@pytest.mark.slow_for("a sequence of two features", "a sequence", "three variables")
@pytest.mark.parametrize("name", CASES)
def test_what_is_asked_for_is_proven_and_checked(name, built):
    _, within, dtype, _, most = CASES[name]
    network = built(name)
    assert network.certificate.kind == "proven"
    assert network.certificate.bound <= within
    assert network.dtype == dtype
    assert np.prod(sides_of(network)) <= most
    assert ah.check(network).stated == network.certificate.bound
    assert str(network.certificate).startswith("proven")
    assert f"slope along {CASES[name][0].variables[1]}" in network.describe()


@pytest.mark.parametrize("name", CASES)
def test_no_input_exceeds_the_bound(name, built):
    wanted = CASES[name][0]
    network = built(name)
    rng = np.random.default_rng(5)
    low, high = np.array(wanted.low), np.array(wanted.high)
    x = rng.uniform(low, high, (3000, len(low)))
    x = np.concatenate([x, np.where(rng.random(x.shape) < 0.5, low, high), x.astype(np.float32).clip(low, high)])
    for step in np.geomspace(0.2, 1e-6, 10):
        x = x[np.argsort(errors(network, wanted, x))[-40:]]
        around = x[:, None] + rng.normal(size=(40, 15, len(low))) * step * (high - low)
        x = np.concatenate([x, around.reshape(-1, len(low)).clip(low, high)])
    assert errors(network, wanted, x).max() <= network.certificate.bound
    worst = x[errors(network, wanted, x).argmax()]
    found = run(network, worst[None])[0].astype(float)
    with ctx.workprec(200):
        at = {name: arb(float(t)) for name, t in zip(wanted.variables, worst, strict=True)}
        off = [abs(e.ball(at) - float(y)).upper() for e, y in zip(wanted.expressions, found, strict=True)]
    assert all(one <= network.certificate.bound for one in off)


@pytest.mark.parametrize("tokens", [None, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_networks_compute_the_formula_of_their_grid(tokens, dtype):
    rng = np.random.default_rng(1)
    sides = (3, 4, 2, 5)
    axes = [(rng.normal(size=p) * 2, rng.normal(size=p)) for p in sides]
    atom = GridAtom.of(axes, rng.normal(size=4), rng.normal(size=(*sides, 6)), rng.normal(size=6), dtype)
    network = grid_network(atom, tokens)
    x = rng.normal(size=(50, 4))
    assert np.abs(run(network, x) - atom.exact(x.astype(dtype))).max() <= (1e-5 if dtype == "float32" else 1e-13)


def test_shapes_and_tensors(built):
    assert built("three variables")(np.zeros((4, 5, 3))).shape == (4, 5, 1)
    assert built("a sequence of two features")(np.zeros((4, 2, 2))).shape == (4, 2, 2)
    x = torch.zeros((7, 2), dtype=torch.float64, requires_grad=True)
    y = built("two variables")(x)
    y.sum().backward()
    assert x.grad is not None
    assert torch.isfinite(x.grad).all()
    with pytest.warns(ah.OutsideWarning):
        built("two variables").with_()(np.array([2.0, 0.0]))


@pytest.mark.parametrize("name", ["two variables", "a sequence, float32"])
def test_saved_networks_are_the_same_and_still_proven(name, built, tmp_path):
    network = built(name)
    network.save(tmp_path / "grid.safetensors")
    loaded = ah.load(tmp_path / "grid.safetensors")
    x = np.random.default_rng(0).uniform(CASES[name][0].low, CASES[name][0].high, (50, 2))
    assert np.array_equal(run(loaded, x), run(network, x))
    assert ah.check(tmp_path / "grid.safetensors").stated == network.certificate.bound
    assert Entries.of(loaded.program).expressions == CASES[name][0].expressions


@pytest.mark.parametrize("name", ["two variables", "two variables, float32", "a sequence"])
def test_smaller_bounds_and_other_claims_are_refused(name, built):
    network = built(name)
    certificate = network.certificate
    wrong = [
        {"bound": 0.8 * certificate.bound},
        {"on": ah.Box.of((-2, 2))},
    ]
    for change in wrong:
        with pytest.raises(ah.CertificateError):
            ah.check(network.with_(certificate=dataclasses.replace(certificate, **change)))
    other = target(["x[0,0]*x[1,0]*1.01"] * CASES[name][0].outputs, ("x[0,0]", "x[1,0]"), *network_ends(network))
    with pytest.raises(ah.CertificateError):
        ah.check(network.with_(program=program_of(dataclasses.replace(other, tokens=network.embed.tokens))))


def network_ends(network):
    box = network.certificate.on.broadcast_to((network.embed.tokens, network.embed.inputs))
    return box.low.reshape(-1), box.high.reshape(-1)


def tampered(network, rng):
    """One weight changed, by a random amount, or a zero that is none any more."""
    layers = list(network.layers)
    place = int(rng.integers(len(layers)))
    layer = layers[place]
    names = ["weight", "bias", "registers"] if isinstance(layer, Embed) else ["query", "key", "value", "output"]
    name = str(rng.choice(names))
    array = np.array(getattr(layer, name))
    entry = tuple(int(rng.integers(side)) for side in array.shape)
    if rng.random() < 0.7:
        filled = np.argwhere(array != 0)
        entry = tuple(filled[rng.integers(len(filled))])
    array[entry] = array[entry] * (1 + 10 ** rng.uniform(-4, 0)) + (10 ** rng.uniform(-3, 0) if not array[entry] else 0)
    layers[place] = dataclasses.replace(layer, **{name: array})
    return Network(
        layers,
        program=network.program,
        derivation=network.derivation,
        certificate=network.certificate,
        outside="ignore",
        token_axis=network.token_axis,
    )


@pytest.mark.parametrize("name", ["two variables, float32", pytest.param("a sequence", marks=pytest.mark.slow)])
def test_weights_whose_error_exceeds_the_bound_are_refused(name, built):
    network, wanted = built(name), CASES[name][0]
    rng = np.random.default_rng(2)
    x = rng.uniform(wanted.low, wanted.high, (1000, 2))
    refused = beyond = 0
    for _ in range(40):
        other = tampered(network, rng)
        worse = errors(other, wanted, x).max() > network.certificate.bound
        beyond += worse
        try:
            ah.check(other)
        except ah.CertificateError:
            refused += 1
        else:
            assert not worse
    assert beyond >= 10
    assert refused >= beyond


def test_other_networks_are_refused(built):
    network = built("two variables")
    head = ah.head("tanh", on=(-1, 1), within=1e-2).network
    swapped = Network(head.layers, program=network.program, derivation=network.derivation, outside="ignore")
    with pytest.raises(ah.CertificateError):
        ah.check(swapped.with_(certificate=dataclasses.replace(network.certificate, on=ah.Box.of((-1, 1)))))
    layers = [network.layers[0], dataclasses.replace(network.layers[1], grid=None)]
    assert isinstance(layers[1], Attention)
    with pytest.raises(ah.CertificateError):
        ah.check(
            Network(
                layers,
                program=network.program,
                derivation=network.derivation,
                certificate=network.certificate,
                token_axis=False,
            )
        )


def test_measured_says_so():
    network = solved_grid(WAVES, BuildRequest(1e-3, prove=False)).network
    assert network.certificate.kind == "measured"
    assert network.certificate.bound <= 1e-3
    with pytest.raises(ah.CertificateError, match="measured"):
        ah.check(network)


def test_the_papers_grid_is_proven_too():
    atom = uniform_grid(WAVES.values, WAVES.low, WAVES.high, (12, 12), c=1.0)
    network = certified_grid(atom, WAVES, BuildRequest(), "", Effort(OPERATIONS)).network
    assert 0.05 < network.certificate.bound < 1
    assert ah.check(network).stated == network.certificate.bound


def test_what_cannot_be_built_is_refused(monkeypatch):
    with pytest.raises(ah.AnchorheadError, match="kink"):
        solved_grid(target(["abs(x - y)"], ("x", "y"), -1, 1), BuildRequest(1e-2))
    with pytest.raises(ah.AnchorheadError, match="at most 4"):
        solved_grid(target(["a*b*c*d*f"], ("a", "b", "c", "d", "f"), -1, 1), BuildRequest(1e-2))
    with pytest.raises(ah.AnchorheadError, match="divides both"):
        dataclasses.replace(WAVES, tokens=3)
    with pytest.raises(ah.AnchorheadError, match="within"):
        solved_grid(WAVES, BuildRequest(0))
    monkeypatch.setattr("anchorhead.constructions.grids.grid.MAX_ANCHORS", 40)
    with pytest.raises(ah.AnchorheadError, match="at most 40 are allowed"):
        solved_grid(WAVES, BuildRequest(1e-6))


@pytest.mark.parametrize(
    ("variables", "low", "high"),
    [(("x",), -1, 1), (("x", "y"), (0, 1), (1, 1)), (("x", "x"), 0, 1), (("x", "y"), 0, "a")],
)
def test_targets_that_are_none_are_refused(variables, low, high):
    with pytest.raises(ah.AnchorheadError):
        SeveralVariables((parse("x*y", ("x", "y")),), variables, low, high)


def interrupted_at(share):
    def progress(status):
        if (status.share or 0.0) >= share:
            raise KeyboardInterrupt

    return progress


def test_a_proof_that_is_interrupted_leaves_the_network_measured():
    with pytest.warns(UnprovenWarning, match="interrupted at"):
        network = solved_grid(BELL, BuildRequest(1e-2, progress=interrupted_at(0.1))).network
    assert network.certificate.kind == "measured"
    assert "the proof was interrupted at" in network.certificate.method
    assert network.certificate.bound <= 1e-2
    x = np.random.default_rng(0).uniform(-1, 1, (2000, 3))
    assert errors(network, BELL, x).max() <= network.certificate.bound


def test_a_proof_that_takes_too_long_leaves_the_network_measured(monkeypatch):
    monkeypatch.setattr("anchorhead.constructions.grids.grid.OPERATIONS", 1_000)
    with pytest.warns(UnprovenWarning, match="more than 1,000 operations"):
        network = solved_grid(PAIR, BuildRequest(1e-2)).network
    assert network.certificate.kind == "measured"
    assert "would take more than" in network.certificate.method


def test_the_best_network_comes_with_the_error_that_is_not_reached(monkeypatch):
    """Where the proof is too loose for what is asked, the network that came closest is inside the error."""
    monkeypatch.setattr("anchorhead.constructions.grids.grid.TRIES", 1)
    monkeypatch.setattr("anchorhead.constructions.grids.grid.AIM", dict.fromkeys(range(1, 5), 3.0))
    with pytest.raises(NotReached) as caught:
        solved_grid(WAVES, BuildRequest(1e-6))
    assert caught.value.network.certificate.bound == caught.value.bound > 1e-6
    ah.check(caught.value.network)


def test_a_short_proof_says_nothing(capsys):
    solved_grid(PAIR, BuildRequest(1e-2))
    assert capsys.readouterr() == ("", "")
