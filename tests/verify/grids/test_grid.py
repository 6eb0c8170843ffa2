"""Heads over a grid: what is stated follows, less than the largest error and moved weights are refused."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import arb
from numpy.polynomial import chebyshev

import anchorhead as ah
from anchorhead.language.entries import Entries
from anchorhead.language.expressions.parser import parse
from anchorhead.network import Network
from anchorhead.verify import verify
from anchorhead.verify.balls import precision
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.grids import smooth
from anchorhead.verify.grids.cells import _on_cells
from anchorhead.verify.grids.functions import Lipschitz, on_tensor
from anchorhead.verify.grids.head import Grid, Unsettled
from anchorhead.verify.grids.polynomial import chebyshev_points, contract, cosines, from_values, largest, product
from anchorhead.verify.grids.rounding import axis_errors, grid_rounding, log_weights, on_cells, reach, upper_weights
from anchorhead.verify.grids.smooth import _Proof, verify_grid
from anchorhead.verify.grids.tensor import prove
from anchorhead.verify.programs.expressions import Expression, read_expression
from anchorhead.verify.rounding import arithmetic_of
from tests.networks.grids import grid_of, stored_grid

FLOAT64 = arithmetic_of("float64")
QUICK = [
    ("sin(3*x)*cos(2*y) + exp(x*y)", "xy", (-1, 1), 1e-3, "float32"),
    ("sin(3*x)*cos(2*y) + exp(x*y)", "xy", (-1, 1), 1e-6, "float64"),
    ("log(2 + x*y*z)", "xyz", (-1, 1), 1e-2, "float32"),
]
SLOW = [
    ("sin(3*x)*cos(2*y) + exp(x*y)", "xy", (-1, 1), 1e-8, "float64"),
    ("exp(sin(x*y))", "xy", (-2, 2), 1e-5, "float64"),
    ("1/(1 + x**2 + y**2 + z**2)", "xyz", (-1, 1), 1e-5, "float64"),
    ("sin(x*y + z*w)", "xyzw", (-1, 1), 1e-5, "float64"),
    ("exp(sin(x*y) + z)/(1 + w**2)", "xyzw", (-1, 1), 1e-4, "float64"),
    ("sqrt(x**2 + y**2 + 0.01)", "xy", (-1, 1), 1e-4, "float64"),
    ("softplus(x*y + z)*cos(w)", "xyzw", (-2, 2), 1e-3, "float64"),
    ("exp(-(x - y)**2)*x", "xy", (-2, 2), 5e-3, "float32"),
]
Case = tuple[str, str, tuple[float, float], float, str]


@dataclass(frozen=True, eq=False)
class Built:
    network: Network
    grid: Grid
    function: Expression
    target: Entries

    def verified(self, stated: float, grid: Grid | None = None) -> int:
        t = self.target
        model = arithmetic_of(self.network.dtype)
        return verify_grid(grid or self.grid, self.function, t.variables, box_of(t), model, stated)


def box_of(target: Entries) -> list[tuple[float, float]]:
    return [(float(low), float(high)) for low, high in zip(target.low, target.high, strict=True)]


@cache
def built(case: Case) -> Built:
    text, names, on, within, dtype = case
    network = grid_of(text, names, on, within, dtype)
    atom, target = stored_grid(network), Entries.of(network.program)
    axes = [(np.asarray(a, np.float64), np.asarray(g, np.float64)) for a, g in atom.axes]
    origins, values = (np.asarray(array, np.float64) for array in (atom.origins, atom.values[..., 0]))
    return Built(network, Grid(axes, origins, values), less(target.expressions[0], float(atom.bias[0])), target)


def less(function: object, bias: float) -> Expression:
    """What a grid stands for, where a bias is added to it."""
    nodes = read_expression(function.to_json()).nodes  # type: ignore[attr-defined]
    last = len(nodes)
    return Expression.of((*nodes, ("number", -bias, ()), ("add", None, (last - 1, last))))


def errors(one: Built, count: int) -> np.ndarray:
    t = one.target
    x = np.random.default_rng(5).uniform(t.low, t.high, (count, len(t.low))).astype(one.network.dtype)
    return np.abs(np.asarray(one.network(x), np.longdouble) - one.network.program(x))


@pytest.mark.parametrize("case", QUICK, ids=str)
def test_what_is_stated_follows(case: Case) -> None:
    one = built(case)
    assert one.network.certificate is not None
    assert one.verified(one.network.certificate.bound) > 0
    assert float(errors(one, 2_000).max()) <= one.network.certificate.bound


def test_coefficients_follow_from_values() -> None:
    p = np.array([[3.0, -1.0, 0.5], [0.25, 2.0, 0.0], [1.0, -4.0, 0.125], [0.5, 0.0, 8.0]])
    values = cosines(4).T @ p @ cosines(3)
    found, error = from_values(values)
    assert np.abs(found - p).sum() <= error + 1e-14


@pytest.mark.slow
@pytest.mark.parametrize("case", SLOW, ids=str)
def test_more_that_is_stated_follows(case: Case) -> None:
    one = built(case)
    assert one.network.certificate is not None
    assert one.verified(one.network.certificate.bound) > 0


@pytest.mark.parametrize("case", QUICK[1:], ids=str)
def test_less_than_the_largest_error_is_refused(case: Case) -> None:
    one = built(case)
    with pytest.raises(NotVerified, match="grid"):
        one.verified(float(errors(one, 20_000).max()) * 0.97)


@pytest.mark.parametrize("what", ["values", "slopes", "offsets"])
def test_a_moved_weight_is_refused(what: str) -> None:
    one = built(QUICK[0])
    assert one.network.certificate is not None
    if what == "values":
        moved = one.grid.values.copy()
        moved.flat[moved.size // 2] += 0.05 * np.abs(moved).max() + 1e-3
        grid = replace(one.grid, values=moved)
    else:
        column = 0 if what == "slopes" else 1
        axis = [array.copy() for array in one.grid.axes[0]]
        axis[column][2] += 0.05
        grid = replace(one.grid, axes=[(axis[0], axis[1]), *one.grid.axes[1:]])
    with pytest.raises(NotVerified):
        one.verified(one.network.certificate.bound, grid)


def test_rounding_counts() -> None:
    one = built(QUICK[0])
    assert one.network.certificate is not None
    exact, rounding = (term.amount for term in one.network.certificate.terms)
    assert rounding > 0.3 * exact
    with pytest.raises(NotVerified, match="grid"):
        one.verified(exact * 1.2)


def test_what_is_seen_is_not_taken_for_proven() -> None:
    """Between what is seen at points and what follows with rounding, no bound is accepted."""
    one = built(QUICK[0])
    t, terms = one.target, one.network.certificate.terms  # type: ignore[union-attr]
    allowed = terms[0].amount * 1.2
    with pytest.raises(NotVerified, match="only"):
        prove(one.grid, one.function, t.variables, box_of(t), arithmetic_of("float32"), allowed)


def _flat(value: float) -> Grid:
    return Grid([(np.zeros(1), np.zeros(1))] * 2, np.zeros(2), np.full((1, 1), value))


def test_smoothness_of_functions_counts() -> None:
    """A function that is right in the middle, and nowhere else."""
    with pytest.raises(NotVerified, match="only"):
        verify_grid(_flat(0.0), read_expression({"nodes": [["variable", "x"]]}), "xy", 2 * [(-1.0, 1.0)], FLOAT64, 0.1)


def test_values_of_functions_are_off_by_what_is_said() -> None:
    third = read_expression({"nodes": [["variable", "x"], ["number", 3.0], ["div", 0, 1]]})
    with precision():
        values, off = on_tensor(third, ["x"], [[arb(1)]])
        assert abs(arb(float(values[0])) - arb(1) / 3) <= float(off[0])
    assert off[0] < 1e-15


@pytest.mark.parametrize("what", ["interpolation", "values"])
def test_rests_count(what: str) -> None:
    """A head of one anchor that is the function: nothing but rests is left."""
    one, cuts, sides = read_expression({"nodes": [["number", 1.0]]}), [np.array([-1.0, 1.0])] * 2, [(-1.0, 1.0)] * 2
    proof = _Proof(_flat(1.0), one, ["x", "y"], cuts, np.zeros((1, 1)), 1e-3)
    rest, off = (1.1e-3, 0.0) if what == "interpolation" else (0.0, 1.1e-3)
    with precision(), pytest.MonkeyPatch.context() as patch:
        assert proof._unproven(sides, [2, 2], 0.9e-3) is None
        patch.setattr(smooth, "product", lambda *_: (np.ones((2, 2)), np.full((2, 2), off)))
        with pytest.raises(NotVerified, match="only"):
            proof._unproven(sides, [2, 2], rest)


def test_a_kink_in_the_box_is_refused() -> None:
    one = built(QUICK[0])
    kinked = read_expression({"nodes": [["variable", "x"], ["variable", "y"], ["max", 0, 1]]})
    with pytest.raises(Unsettled, match="boxes"):
        verify_grid(one.grid, kinked, ("x", "y"), 2 * [(-1.0, 1.0)], arithmetic_of("float32"), 0.01)


def _softmax(grid: Grid, axis: int, x: np.ndarray) -> np.ndarray:
    slopes, offsets = grid.axes[axis]
    z = (x[:, None] - grid.origins[axis]) * slopes + offsets
    w = np.exp(z - z.max(axis=1, keepdims=True))
    return w / w.sum(axis=1, keepdims=True)


def test_heads_at_points_are_those_of_the_softmax() -> None:
    one = built(QUICK[1])
    with precision():
        points = [chebyshev_points(-0.4, 0.1, 9), chebyshev_points(-1.0, 1.0, 5)]
        weights = [one.grid.weights(j, at) for j, at in enumerate(points)]
        found = [product(one.grid.values, weights, allowed) for allowed in (1.0, 0.0)]  # in float64, and in balls
    w = [_softmax(one.grid, j, np.array([float(x) for x in at])) for j, at in enumerate(points)]
    truth = np.einsum("ia,jb,ab->ij", *w, one.grid.values)
    for read, off in found:
        np.testing.assert_allclose(read, truth, atol=1e-12 * np.abs(one.grid.values).max())
        assert off.max() < 1e-12 * np.abs(one.grid.values).max()


@pytest.mark.parametrize("allowed", [1.0, 0.0])
def test_products_with_balls_are_off_by_what_is_said(allowed: float) -> None:
    """In float64 and in balls, of large values that nearly cancel."""
    rng, shares = np.random.default_rng(2), []
    for _ in range(20):
        tensor = rng.normal(size=(4, 3)) * 1e3
        tensor[1] = -tensor[0]
        with precision():
            matrices = [
                np.array([[arb(int(k)) / 7 for k in row] for row in rng.integers(1, 9, (2, n))]) for n in (4, 3)
            ]
            read, off = product(tensor, matrices, allowed)
            for i, j in np.ndindex(2, 2):
                terms = (matrices[0][i, a] * matrices[1][j, b] * tensor[a, b] for a in range(4) for b in range(3))
                shares.append(float(abs(sum(terms, arb(0)) - float(read[i, j])).upper()) / off[i, j])
    assert 1e-3 < max(shares) <= 1


AROUND = [
    "1/(1 + x**2)",
    "exp(2*x*y)",
    "sqrt(2 + x*y)*sin(3*x)",
    "x**3/(3 - y) + tanh(x)",
    "sigmoid(x - y)*x",
    "softplus(3*x*y)",
]


@pytest.mark.parametrize("text", AROUND)
def test_functions_are_no_larger_around_a_box_than_is_said(text: str) -> None:
    """On ellipses around [-1, 1] along x, infinite where there may be a pole or a cut."""
    parsed, found = parse(text, ("x", "y")), []
    proof = _Proof(_flat(0.0), read_expression(parsed.to_json()), ["x", "y"], [], np.zeros(1), 1.0)
    circle = np.exp(1j * np.linspace(0, 2 * np.pi, 400))
    named = {name: getattr(np, name) for name in ("sin", "exp", "sqrt", "tanh")}
    named |= {"sigmoid": lambda z: 1 / (1 + np.exp(-z)), "softplus": lambda z: np.log(1 + np.exp(z))}
    for rho in (1.1, 1.5, 1.9, 2.3):
        with precision():
            bound = proof._size([(-1.0, 1.0), (-0.5, 1.0)], 0, rho)
        for y in np.linspace(-0.5, 1.0, 7):
            x = (rho * circle + 1 / (rho * circle)) / 2
            assert np.abs(eval(text, {"__builtins__": {}}, {"x": x, "y": y, **named})).max() <= bound  # noqa: S307
        found.append(bound)
    assert found[0] < 40


@pytest.mark.parametrize("text", ["1/(1 + x**2)", "sqrt(x*y)", "log(0.5 + x)", "abs(x - y)", "max(x, y)", "1/(x - 2)"])
def test_nothing_is_said_around_a_box_where_a_function_is_not_analytic(text: str) -> None:
    proof = _Proof(_flat(0.0), read_expression(parse(text, ("x", "y")).to_json()), ["x", "y"], [], np.zeros(1), 1.0)
    with precision():
        assert proof._size([(-1.0, 1.0), (-1.0, 1.0)], 0, 4.0) == np.inf


def _interpolated(grid: Grid, low: float, high: float, n: int) -> float:
    """How far a head of one axis is from its interpolant at n points, at most, as far as it is seen."""
    with precision():
        nodes = np.array([float(x) for x in chebyshev_points(low, high, n)])
    x = np.linspace(low, high, 4001)
    p = chebyshev.chebfit((2 * nodes - low - high) / (high - low), _softmax(grid, 0, nodes) @ grid.values, n - 1)
    away = chebyshev.chebval((2 * x - low - high) / (high - low), p) - _softmax(grid, 0, x) @ grid.values
    return float(np.abs(away).max())


@pytest.mark.parametrize("steep", [0.5, 4.0, 30.0])
@pytest.mark.parametrize("allowed", [1e-12, 1e-2])
def test_interpolation_leaves_no_more_than_is_said(steep: float, allowed: float) -> None:
    """Of random heads, and of two opposed anchors, which have a pole nearest to the axis."""
    rng, shares = np.random.default_rng(7), []
    for case in range(12):
        slopes = np.array([-steep, steep]) if case == 0 else rng.uniform(-steep, steep, 6)
        values = np.array([1.0, -1.0]) if case == 0 else rng.normal(size=6)
        axis = slopes, np.zeros(2) if case == 0 else rng.normal(size=6)
        grid = Grid([axis], np.zeros(1), values)
        low, high = (-1.0, 1.0) if case == 0 else np.sort(rng.uniform(-2, 2, 2)).tolist()
        with precision():
            found = grid.interpolation_errors(0, low, high, allowed, 24)
        for n in (1, 2, 3, 5, 8, 12, 16):
            seen = _interpolated(grid, low, high, n)
            assert seen <= found[n] + 1e-13
            shares.append(seen / found[n])
    assert max(shares) > 0.3 or allowed > 1e-3


def test_points_too_far_apart_for_a_steep_head_are_not_enough() -> None:
    """With few points allowed for N, the lemma's own rest is what is said."""
    grid = Grid([(np.array([-9.0, 9.0]), np.zeros(2))], np.zeros(1), np.array([1.0, -1.0]))
    with precision():
        found = grid.interpolation_errors(0, -1.0, 1.0, 50.0, 24)
    assert _interpolated(grid, -1.0, 1.0, 24) <= found[24]
    assert found[24] > 1e-3


def test_the_bound_on_a_polynomial_is_near_its_largest_value() -> None:
    rng = np.random.default_rng(8)
    for _ in range(10):
        p = rng.normal(size=(7, 6)) * 0.6 ** np.add.outer(np.arange(7), np.arange(6))
        x = np.linspace(-1, 1, 401)
        truth = np.abs(chebyshev.chebgrid2d(x, x, p)).max()
        assert truth <= largest(p, truth * 1.02)[1] <= truth * 1.02
        assert largest(p, truth * 0.98)[1] > truth * 0.98


def test_rounding_covers_what_the_dtype_computes() -> None:
    one = built(QUICK[0])
    t, atom = one.target, stored_grid(one.network)
    cuts, bounds = grid_rounding(one.grid, t.low, t.high, arithmetic_of("float32"), 0.0)
    x = np.random.default_rng(10).uniform(t.low, t.high, (3_000, 2)).astype(np.float32)
    away = np.abs(atom(x).astype(np.longdouble) - atom.exact(x)).max(axis=1)
    cells = tuple(np.clip(np.searchsorted(c, x[:, j]) - 1, 0, len(c) - 2) for j, c in enumerate(cuts))
    assert (away <= bounds[cells]).all()


@pytest.mark.parametrize("cells", [1, 3, 40])
def test_heads_reach_no_further_on_cells_than_is_said(cells: int) -> None:
    """Of values that cancel: closely where cells are narrow."""
    rng = np.random.default_rng(4)
    for _ in range(10):
        axes = [(rng.uniform(-6, 6, p), rng.uniform(-1, 1, p)) for p in (3, 2)]
        grid = Grid(axes, rng.uniform(-1, 1, 2), rng.uniform(-9, 9, (3, 2)))
        cuts = [np.linspace(-1, 1, cells + 1)] * 2
        _, centres, upper, _ = zip(*(upper_weights(grid, j, cut) for j, cut in enumerate(cuts)), strict=True)
        found = reach(grid, [np.exp(one) for one in centres], upper)
        inner = np.stack([np.linspace(a, b, 9) for a, b in pairwise(cuts[0])]).ravel()
        read = contract(grid.values, [np.exp(log_weights(grid, j, inner)[0]) for j in (0, 1)])
        most = np.abs(read).reshape(cells, 9, cells, 9).max(axis=(1, 3))
        assert (most <= found).all()
        assert cells < 40 or (found - most).max() < np.abs(grid.values).max()


def steep() -> Grid:
    """Two anchors an axis, whose logits cancel where they cross: rounding of the logits is nearly all there is."""
    axis = np.array([-40.0, 40.0]), np.array([30.0, -30.0])
    return Grid([axis, axis], np.zeros(2), np.array([[1.0, -2.0], [0.5, 3.0]]))


@pytest.mark.parametrize("x", [(-0.9, 0.8), (0.1, -0.2), (0.75, 0.751)], ids=str)
@pytest.mark.parametrize("which", ["solved", "steep"])
def test_the_worst_rounding_is_covered(which: str, x: tuple[float, float]) -> None:
    """Logits, distances from the largest, exp, and every sum at its worst, all against r."""
    grid, model = steep() if which == "steep" else built(QUICK[0]).grid, arithmetic_of("float32")
    _, bounds = grid_rounding(grid, x, tuple(a + 1e-9 for a in x), model, 0.0)
    u, parts, sizes = model.unit, [], []
    for (slopes, offsets), origin, a in zip(grid.axes, grid.origins, x, strict=True):
        parts.append(slopes * (a - origin) + offsets)
        sizes.append(np.abs(slopes * (a - origin)) + np.abs(offsets))
    z, size = (np.add.outer(*both).ravel().astype(np.longdouble) for both in (parts, sizes))
    w = np.exp(z - z.max())
    w /= w.sum()
    worst = 0.0
    for v in (grid.values.reshape(-1),):
        wrong = 0.99 * (4 * u * size + u * (z.max() - z) + model.exp_error) * np.sign(v - w @ v)
        moved = abs((w * np.exp(wrong)) @ v / (w @ np.exp(wrong)) - w @ v)
        heard = int((w > 1e-18).sum())  # what is less than half a unit of a sum is lost, and no more
        summed = (heard + 1) * u * (w @ np.abs(v)) + (heard - 1) * u * abs(w @ v)
        worst = max(worst, float(moved + 0.99 * summed))
    assert float(bounds.min()) >= worst


def test_every_rounding_along_an_axis_counts() -> None:
    """Products and sums of logits, the largest taken off, and the input less its origin, all at their worst."""
    model, steep = arithmetic_of("float32"), 100.0
    grid = Grid([(np.array([-steep, steep]), np.zeros(2))], np.array([0.5]), np.ones(2))
    found = axis_errors(grid, 0, np.array([1.5, 1.5]), 1, model)
    worst = model.unit * steep * np.array([2 + 2 + 1, 2 + 0 + 1])
    assert (worst <= found[0]).all()
    assert (found[0] <= 1.01 * worst).all()


@pytest.mark.parametrize("what", ["exp", "sums"])
def test_every_rounding_of_a_grids_weights_counts(what: str) -> None:
    """Anchors that weigh the same: exponentials that err against one another, or values that do not differ."""
    model, count = arithmetic_of("float32"), 2 if what == "exp" else 500
    values = np.array([1.0, -1.0]) if what == "exp" else np.ones(count)
    grid = Grid([(np.zeros(count), np.zeros(count))], np.zeros(1), values)
    _, found = grid_rounding(grid, (0.0,), (1.0,), model, 0.0)
    worst = (8 + 3) * model.unit if what == "exp" else 2 * count * model.unit
    assert 0.99 * worst <= float(found.max()) <= 2.5 * worst


def test_anchors_that_are_hardly_heard_count() -> None:
    """Two of a thousand, of weights of about 1e-19 and values of 1e20: each sum that they are in may lose them."""
    slopes, values = np.zeros(1000), np.zeros(1000)
    offsets = np.full(1000, -2000.0)
    offsets[:3], values[1:3] = (0.0, -43.5, -43.5), (1e20, -1e20)
    grid = Grid([(slopes, offsets)], np.zeros(1), values)
    found = on_cells(grid, [np.array([0.0, 1.0])], arithmetic_of("float64"))
    assert float(found.max()) >= 8 * 2 * np.exp(-43.5) * 1e20


def test_weights_on_a_cell_are_no_larger_than_is_said() -> None:
    one = built(QUICK[0])
    slopes, offsets = one.grid.axes[0]
    cuts = np.linspace(-1, 1, 9)
    _, _, upper, _ = upper_weights(one.grid, 0, cuts)
    for cell, (low, high) in enumerate(pairwise(cuts)):
        z = (np.linspace(low, high, 50)[:, None] - one.grid.origins[0]) * slopes + offsets
        w = np.exp(z - z.max(axis=1, keepdims=True))
        assert ((w / w.sum(axis=1, keepdims=True)).max(axis=0) <= upper[cell]).all()


def test_bounds_on_polynomials_hold_between_the_points_of_a_grid() -> None:
    """c - (x - s)^2 is largest at s, wherever that lies."""
    for s in np.linspace(-0.9, 0.9, 61):
        for top in (0.05, 0.3, 1.0):
            p = chebyshev.poly2cheb([top - s * s, 2 * s, -1.0])
            truth = max(top, *(abs(top - (x - s) ** 2) for x in (-1, 1)))
            for goal in (0.999 * truth, 1.001 * truth, 3 * truth):
                assert largest(p, goal)[1] >= truth * (1 - 1e-12)


def test_factors_of_functions_count() -> None:
    network = ah.approximate("3*exp(x*y)", on={"x": (-1, 1), "y": (0, 1)}, within=0.1)
    with tempfile.TemporaryDirectory() as folder:
        network.save(Path(folder) / "network.safetensors")
        assert verify(Path(folder) / "network.safetensors").verified


def test_work_is_bounded() -> None:
    """A steep grid, and a bound of nothing: refused, in words, and soon."""
    steep = Grid([(np.array([0.0, 1e12]), np.zeros(2))], np.zeros(1), np.eye(2)[0])
    with precision():
        assert (steep.interpolation_errors(0, -1.0, 1.0, 1e-6, 24) == np.inf).all()
    one = read_expression({"nodes": [["variable", "x"]]})
    with pytest.raises(NotVerified, match="grid"):
        verify_grid(steep, one, ["x"], [(-1.0, 1.0)], FLOAT64, 0.1)
    assert largest(np.array([0.5, 0.0, 0.25]), 0.0)[1] >= 0.75
    assert largest(np.array([0.5, 0.0, 0.25]), -1.0)[1] >= 0.75


@pytest.mark.parametrize("width", [1.0, 0.1, 1e-3, 1e-6])
def test_chords_bound_the_functions_that_turn_the_furthest_from_them(width: float) -> None:
    """Of all functions with a constant and these values at the ends of a cell, those that follow the cones."""
    rng, shares = np.random.default_rng(3), []
    for _ in range(300):
        slopes, offsets, values = (rng.normal(size=4) * size for size in (6.0, 1.0, 2.0))
        grid = Grid([(slopes, offsets)], np.zeros(1), values)
        low, sign = float(rng.uniform(-1, 1)), float(rng.choice([-1.0, 1.0]))
        high, rise = low + width, float(rng.uniform(-2.0, 2.0)) * width

        def cone(x: np.ndarray, low: float = low, high: float = high, rise: float = rise, sign: float = sign) -> Any:
            return sign * np.minimum(2 * (x[:, 0] - low), sign * rise + 2 * (high - x[:, 0]))

        x = np.linspace(low, high, 801)
        w = np.exp(x[:, None] * slopes + offsets)
        read = w @ values / w.sum(axis=1)
        shift = float(read[400] - rise / 2)  # the head is then right at the middle of the chord
        worst = float(np.abs(read - cone(x[:, None]) - shift).max())
        values = partial(lambda cone, shift, x: (cone(x) + shift, 4e-16 * np.ones(len(x))), cone, shift)
        known, model = Lipschitz((2.0,), euclidean=False).known(values), FLOAT64
        ((bound,), _, _) = _on_cells(grid, known, model, [np.array([low, high])])
        shares.append(worst / float(bound))
    assert max(shares) <= 1
    assert max(shares) > 0.5
