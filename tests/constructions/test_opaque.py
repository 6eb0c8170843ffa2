"""Callables of a few variables: measured by a search, proven with a Lipschitz constant, refused with the reason."""

import numpy as np
import pytest

import anchorhead as ah
from anchorhead.conditions import AssumedLipschitz
from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.fitting.opaque import approximate_callable
from anchorhead.heads.grids.grid import solve_grid
from anchorhead.language.entries import Entries
from anchorhead.language.targets.lipschitz import Lipschitz
from anchorhead.language.targets.opaque_several import CallableSeveral
from anchorhead.proof.grids.grid_cover import prove_cover
from anchorhead.proof.grids.grid_derivatives import second_derivatives
from anchorhead.proof.search.callable_search import largest_error
from anchorhead.terms import added_up


def callable_target(f, inputs, low=-1.0, high=1.0, tokens=None):
    names = tuple(f"x{j}" for j in range(inputs))
    return CallableSeveral(f, np.full(inputs, low), np.full(inputs, high), tokens, names)


def waves(x):
    return np.sin(3 * x[:, 0]) * np.cos(2 * x[:, 1]) + np.exp(x[:, 0] * x[:, 1])


def kink(x):
    return np.abs(x[:, :1] - x[:, 1:])


def bell(x):
    return 1 / (1 + (x**2).sum(axis=1))


def pair(x):
    return np.stack([x[:, 0] * x[:, 1], np.maximum(x[:, 0], x[:, 1])], axis=1)


CASES = {  # function, inputs, the constant, within, dtype, tokens, which grid
    "smooth": (waves, 2, 5.0, 0.1, "float64", None, "solved"),
    "smooth, a constant an input, float32": (waves, 2, (5.8, 4.6), 0.1, "float32", None, "solved"),
    "a kink": (kink, 2, 2**0.5, 0.08, "float64", None, "uniform"),
    "a kink, a constant an input, float32": (kink, 2, (1, 1), 0.1, "float32", None, "uniform"),
    "three inputs": (bell, 3, 0.66, 0.1, "float64", None, "solved"),
    "four inputs, float32": (lambda x: x.prod(axis=1), 4, 2.0, 0.6, "float32", None, "solved"),
    "a sequence": (pair, 2, 2**0.5, 0.1, "float32", 2, "uniform"),
}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("anchorhead.proof.search.callable_search.SAMPLES", 2048)
    monkeypatch.setattr("anchorhead.proof.search.callable_search.ROUNDS", 15)


def run(network, x):
    shape = (-1, network.embed.inputs) if not network.token_axis else (-1, network.embed.tokens, network.embed.inputs)
    return network(x.reshape(shape)).reshape(len(x), -1)


@pytest.mark.parametrize("name", CASES)
def test_a_lipschitz_constant_gives_a_proof_that_no_input_exceeds(name):
    f, inputs, constant, within, dtype, tokens, grid = CASES[name]
    target, known = callable_target(f, inputs, tokens=tokens), Lipschitz.of(constant, inputs)
    network = approximate_callable(target, BuildRequest(within, dtype, outside="ignore"), known).network
    certificate = network.certificate
    assert certificate.kind == "proven"
    assert 0.3 * within <= certificate.bound <= within
    assert certificate.conditions == (AssumedLipschitz(tuple(np.atleast_1d(constant).tolist())),)
    assert "provided    |f(x) - f(y)| <=" in str(certificate)
    assert ("solved grid" in certificate.method) == (grid == "solved")
    assert added_up(certificate.terms) <= certificate.bound <= 1.021 * added_up(certificate.terms)
    error, _ = largest_error(lambda x: run(network, x), target, seed=5)
    assert 0 < error <= certificate.bound
    functions = Entries.of(network.program).functions
    assert {one.lipschitz for one in functions} == {tuple(np.atleast_1d(constant))}


@pytest.mark.parametrize(
    ("f", "constant"),
    [
        (waves, 4.0),
        (waves, (5.8, 1.0)),
        (kink, 1.3),  # along the axes 1 would do: only the diagonal shows it wrong
        (lambda x: (x[:, :1] > 0.123) * 1.0, 20.0),
    ],
)
def test_a_constant_that_does_not_hold_is_refused_with_two_points(f, constant):
    target = callable_target(f, 2)
    with pytest.raises(ah.AnchorheadError, match=r"changes by .* from \[.*\] to \[.*\], and lipschitz= allows") as said:
        approximate_callable(target, BuildRequest(0.1), Lipschitz.of(constant, 2))
    text = str(said.value)
    x, y = (np.array([float(n) for n in part.split("]")[0].split(",")]) for part in text.split("[")[1:3])
    gap = np.abs(target.values(x) - target.values(y)).max()
    assert gap > Lipschitz.of(constant, 2).apart(x - y)


def test_what_would_be_needed_is_said():
    with pytest.raises(ah.AnchorheadError, match=r"= [\d,]+ anchors, .* [\d,]+ evaluations of the function"):
        approximate_callable(callable_target(waves, 2), BuildRequest(1e-4), Lipschitz.of(5.0, 2))
    for wrong in (-1, float("inf"), (1, 2, 3), "much", True):
        with pytest.raises(ah.AnchorheadError, match="lipschitz="):
            ah.approximate(waves, {"x": (-1, 1), "y": (-1, 1)}, 0.1, lipschitz=wrong)
    with pytest.raises(ah.AnchorheadError, match="within=0"):
        approximate_callable(callable_target(waves, 2), BuildRequest(0))


def test_a_constant_function_takes_one_anchor():
    network = approximate_callable(
        callable_target(lambda x: np.full((len(x), 1), 7.0), 3), BuildRequest(1e-3, "float32"), Lipschitz.of(0, 3)
    ).network
    assert len(network.embed.registers) == 1
    assert network.certificate.bound < 1e-4


def test_kinked_callables_are_measured_on_a_uniform_grid():
    target = callable_target(kink, 2)
    network = approximate_callable(target, BuildRequest(0.05, outside="ignore")).network
    assert network.certificate.kind == "measured"
    assert "evaluations" in network.certificate.method
    assert "the largest error is at (" in network.certificate.method
    error, _ = largest_error(lambda x: run(network, x), target, seed=11)
    assert error <= 1.02 * network.certificate.bound <= 1.02 * 0.05


@pytest.mark.parametrize(("f", "inputs", "within"), [(waves, 2, 1e-3), (bell, 3, 1e-2), (bell, 4, 0.05)])
def test_second_derivatives_of_a_grid_are_bounded(f, inputs, within):
    ends = np.full(inputs, -1.0), np.full(inputs, 1.0)
    atom = solve_grid(f, *ends, within)
    bound = second_derivatives(atom, *ends)
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (2000, inputs))
    x = np.where(rng.random(x.shape) < 0.2, np.sign(x), x)
    step = 1e-3
    for j in range(inputs):
        for m in range(inputs):
            a, b = np.eye(inputs)[[j, m]] * step
            second = atom.exact(x + a + b) - atom.exact(x + a - b) - atom.exact(x - a + b) + atom.exact(x - a - b)
            found = float(np.abs(second).max()) / (4 * step**2)
            assert found <= bound[j, m] * 1.001 + 1e-4
            assert bound[j, m] <= 60 * max(found, 0.1)


def test_a_cover_bounds_functions_that_move_as_fast_as_they_may_between_centres():
    """f equals the head at the centres of cells but goes away from it everywhere else."""
    lipschitz, counts = Lipschitz.of(3.0, 2), (9, 7)
    ends = [-1.0, -1.0], [1.0, 1.0]
    atom = solve_grid(lambda x: np.sin(x[:, 0] + x[:, 1]), *ends, 1e-3)
    centres = [(np.arange(n) + 0.5) * 2 / n - 1 for n in counts]
    nodes = np.stack(np.meshgrid(*centres, indexing="ij"), axis=-1).reshape(-1, 2)
    held = atom.exact(nodes).astype(float)[:, 0]

    def f(x):  # the largest function with this constant through these values
        return np.min(held + 3 * np.linalg.norm(x[:, None] - nodes, axis=2), axis=1)[:, None]

    cover = prove_cover(atom, f, lipschitz, *ends, counts, rounding=0.0)
    x = np.random.default_rng(0).uniform(-1, 1, (20000, 2))
    found = np.abs(f(x) - atom.exact(x)).max()
    assert cover.found < 1e-12
    assert 0.6 * cover.exact <= found <= cover.exact
