"""Proofs for heads over grids: every step against brute force, and bounds that nothing exceeds."""

import math

import numpy as np
import pytest
from flint import acb, arb, ctx

import anchorhead as ah
from anchorhead.effort import Effort
from anchorhead.heads.grids.grid import GridAtom, solve_grid, uniform_grid
from anchorhead.heads.grids.grid_atom import contract
from anchorhead.language.expressions.parser import parse
from anchorhead.proof.arithmetic.arithmetic import arithmetic_of
from anchorhead.proof.grids.grid import prove_grid
from anchorhead.proof.grids.grid_head import expansion
from anchorhead.proof.grids.grid_polynomial import largest_on_box
from anchorhead.proof.grids.grid_rounding import prove_grid_rounding, upper_weights
from anchorhead.proof.grids.grid_target import RHOS, AnalyticTarget, Sizes, interpolation_error
from anchorhead.proof.grids.grid_work import TooLong, Work

XY, XYZ = ("x", "y"), ("x", "y", "z")
CASES = {  # text, variables, low, high, within, dtype
    "waves": ("sin(3*x)*cos(2*y) + exp(x*y)", XY, [-1, -1], [1, 1], 1e-6, "float64"),
    "waves, closely": ("sin(3*x)*cos(2*y) + exp(x*y)", XY, [-1, -1], [1, 1], 1e-9, "float64"),
    "waves in float32": ("sin(3*x)*cos(2*y) + exp(x*y)", XY, [-1, -1], [1, 1], 1e-3, "float32"),
    "bell": ("1/(1 + x**2 + y**2 + z**2)", XYZ, [-1] * 3, [1] * 3, 1e-3, "float64"),
    "bell in float32": ("1/(1 + x**2 + y**2 + z**2)", XYZ, [-1] * 3, [1] * 3, 2e-3, "float32"),
    "near a pole": ("1/(1 + 10*(x**2 + y**2))", XY, [-1, -1], [1, 1], 1e-4, "float64"),
    "an uneven box": ("exp(x)*y", XY, [2, -30], [3, 50], 1e-5, "float64"),
    "near a branch point": ("sqrt(x + y)*log(x)", XY, [0.5, 1], [2, 3], 1e-5, "float64"),
    "one side of a kink": ("max(x, 0) * abs(y - 9)", XY, [1, 1], [2, 2], 1e-7, "float64"),
    "a variable that does nothing": ("tanh(2*x)", XY, [-1, -1], [1, 1], 1e-4, "float64"),
    "constant": ("pi + 0*x", XY, [-1, -1], [1, 1], 1e-9, "float64"),
    "four variables": ("x*y + z*w", ("x", "y", "z", "w"), [-1] * 4, [1] * 4, 1e-2, "float64"),
}


@pytest.fixture(scope="module")
def proven():
    made = {}

    def make(name):
        if name not in made:
            text, variables, low, high, within, dtype = CASES[name]
            expression = parse(text, variables)
            atom = solve_grid(lambda x: values(expression, variables, x), low, high, within, dtype)
            made[name] = atom, expression, prove_grid(atom, [expression], variables, low, high, arithmetic_of(dtype))
        return made[name]

    return make


def values(expression, variables, x):
    return expression.values(dict(zip(variables, x.T, strict=True)))


def climbed(score, low, high, seed=0, start=3000):
    """Points with the largest score that a climbing search finds: random ones, corners, edges, and steps around."""
    rng = np.random.default_rng(seed)
    low, high = np.asarray(low, float), np.asarray(high, float)
    x = rng.uniform(low, high, (start, len(low)))
    on_edges = rng.random(x.shape) < 0.3
    x = np.concatenate([x, np.where(on_edges, np.where(rng.random(x.shape) < 0.5, low, high), x)])
    for step in np.geomspace(0.2, 1e-4, 12):
        x = x[np.argsort(score(x))[-40:]]
        around = x[:, None] + rng.normal(size=(40, 15, len(low))) * step * (high - low)
        x = np.concatenate([x, around.reshape(-1, len(low)).clip(low, high)])
    return x


@pytest.mark.slow_for("four variables", "bell in float32", "bell", "near a pole")
@pytest.mark.parametrize("name", CASES)
def test_no_search_finds_more_than_the_bound(name, proven):
    atom, expression, bound = proven(name)
    _, variables, low, high, _, dtype = CASES[name]

    def exact(x):
        return np.abs(atom.exact(x)[:, 0] - values(expression, variables, x)).astype(float)

    def computed(x):
        return np.abs(atom(x)[:, 0].astype(np.longdouble) - values(expression, variables, x)).astype(float)

    x = climbed(exact, low, high)
    assert exact(x).max() <= bound.exact
    for points in (x, x.astype(dtype).astype(float).clip(low, high), climbed(computed, low, high, start=300)):
        assert computed(points).max() <= bound.total
        worst = points[computed(points).argmax()]
        with ctx.workprec(200):
            truth = expression.ball({name: arb(float(t)) for name, t in zip(variables, worst, strict=True)})
            assert abs(truth - float(atom(worst)[0])).upper() <= bound.total


@pytest.mark.parametrize("name", CASES)
def test_the_bound_is_tight(name, proven):
    """Within a quarter of what was found, where rounding of the proof itself or of the head does not rule."""
    _, _, bound = proven(name)
    assert bound.found <= bound.exact <= max(1.25 * bound.found, bound.rounding, 1e-14)
    assert bound.total <= CASES[name][4] * 1.25


@pytest.mark.parametrize("name", ["waves", "bell", "an uneven box"])
def test_the_place_of_the_largest_error_is_right(name, proven):
    atom, expression, bound = proven(name)
    x = np.array([bound.at])
    error = abs(float(atom.exact(x)[0, 0]) - float(values(expression, CASES[name][1], x)[0]))
    assert bound.found <= error <= 1.02 * bound.found


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rounding_alone_is_never_exceeded_on_a_box(dtype):
    """Wild values, so that rounding is large, and inputs in float64: their rounding counts as well."""
    rng = np.random.default_rng(3)
    for sides in ((6, 8), (20, 20), (5, 4, 6)):
        low, high = rng.uniform(-3, 0, len(sides)), rng.uniform(0.5, 3, len(sides))
        axes = [(rng.normal(size=p) * 6, rng.normal(size=p) * 4) for p in sides]
        atom = GridAtom.of(axes, (low + high) / 2, rng.normal(size=(*sides, 1)) * 50, [0.0], dtype)
        bound = prove_grid_rounding(atom, low, high, arithmetic_of(dtype))

        def off(x, atom=atom):
            return np.abs(atom(x).astype(np.longdouble) - atom.exact(x))[:, 0].astype(float)

        worst = off(climbed(off, low, high)).max()
        assert 0 < worst <= bound <= 600 * worst


def test_weights_of_cells_are_upper_bounds():
    rng = np.random.default_rng(0)
    slopes, offsets = rng.normal(size=9) * 8, rng.normal(size=9) * 3
    cuts = np.linspace(-1.5, 2, 12)
    bound = upper_weights(slopes, offsets, 0.3, cuts)
    for cell in range(11):
        x = np.linspace(cuts[cell], cuts[cell + 1], 101)
        z = slopes * (x[:, None] - 0.3) + offsets
        w = np.exp(z - z.max(axis=1, keepdims=True))
        w /= w.sum(axis=1, keepdims=True)
        assert (w.max(axis=0) <= bound[cell]).all()


@pytest.mark.parametrize("text", ["1/(1 + x**2 + y**2)", "exp(2*x*y) - sin(x)", "sqrt(x + y + 5)"])
@pytest.mark.parametrize("axis", [0, 1])
def test_the_size_around_a_box_is_an_upper_bound(text, axis):
    target = AnalyticTarget([parse(text, XY)], XY)
    centres, halves = (0.0, 0.1), (1.0, 0.7)
    sizes = Sizes(target, axis, centres, halves, 1.0)
    rng = np.random.default_rng(1)
    for rho in RHOS[:9]:
        bound = sizes.bound(rho)
        if not math.isfinite(bound):
            continue
        angles, shrink = rng.uniform(0, 2 * np.pi, 400), rng.uniform(0, 1, 400) ** 0.1
        axes = (rho + 1 / rho) / 2, (rho - 1 / rho) / 2
        z = shrink * (axes[0] * np.cos(angles) + 1j * axes[1] * np.sin(angles))
        others = np.where(rng.random(400) < 0.5, rng.uniform(-1, 1, 400), rng.choice([-1.0, 0.0, 1.0], 400))
        points = [
            c + h * (z if j == axis else others + 0j) for j, (c, h) in enumerate(zip(centres, halves, strict=True))
        ]
        found = max(target.size_on([acb(p.real, p.imag) for p in pair]) for pair in zip(*points, strict=True))
        assert found <= bound


def test_a_pole_inside_the_ellipse_is_seen():
    target = AnalyticTarget([parse("1/(1 + 4*x**2 + 0*y)", XY)], XY)
    sizes = Sizes(target, 0, [0.0, 0.0], [1.0, 1.0], 1.0)
    for rho in RHOS:
        reach = (rho - 1 / rho) / 2
        assert math.isfinite(sizes.bound(rho)) == (reach < 0.5 - 0.05) or abs(reach - 0.5) < 0.05


def test_a_pole_for_some_value_of_another_variable_is_seen():
    """1/(1 + x^2 y^2): at y = 2 the poles in x are at i/2, and the ellipse must keep clear of them for all y."""
    target = AnalyticTarget([parse("1/(1 + x**2*y**2)", XY)], XY)
    sizes = Sizes(target, 0, [0.0, 0.0], [1.0, 2.0], 1.0)
    assert math.isfinite(sizes.bound(1.45))  # reaches 0.38
    assert not math.isfinite(sizes.bound(1.8))  # reaches 0.62


def interpolated(table, fine):
    """The polynomial through values at tensor points cos(k pi / n), elsewhere, by barycentric weights."""
    matrices = []
    for n, points in zip((side - 1 for side in table.shape), fine, strict=True):
        nodes = np.cos(np.arange(n + 1) * np.pi / n)
        signs = (-1.0) ** np.arange(n + 1) * np.where((np.arange(n + 1) % n) == 0, 0.5, 1.0)
        gaps = signs / (points[:, None] - nodes)
        matrices.append(gaps / gaps.sum(axis=1, keepdims=True))
    return contract(table, matrices)


def test_interpolation_errs_by_no_more_than_the_theorem_says():
    target = AnalyticTarget([parse("1/(1 + x**2 + y**2)", XY)], XY)
    fine, others = np.linspace(-0.999, 0.9973, 37), np.linspace(-1, 1, 9)
    f = lambda x, y: 1 / (1 + x[:, None] ** 2 + y**2)  # noqa: E731
    for rho in (1.3, 1.8, 2.1):
        largest = Sizes(target, 0, [0.0, 0.0], [1.0, 1.0], 1.0).bound(rho)
        for degree in (4, 9, 14, 20):
            nodes = np.cos(np.arange(degree + 1) * np.pi / degree)
            found = max(np.abs(interpolated(row, [fine]) - f(fine, y)[:, 0]).max() for y, row in
                        ((np.array([y]), f(nodes, np.array([y]))[:, 0]) for y in others))  # fmt: skip
            assert found <= interpolation_error(largest, rho, degree) + 1e-14
    tail = target.tail(0, [0.0, 0.0], [1.0, 1.0], 1.0, 1e-9, 2)
    for allowed in (1e-3, 1e-9):
        assert tail[tail.degree(allowed)] <= allowed


def test_the_tail_of_a_head_is_an_upper_bound():
    atom = uniform_grid(lambda x: np.sin(4 * x[:, 0] + x[:, 1]), [-1, -1], [1, 1], (9, 6), c=0.8)
    for axis in (0, 1):
        tail = expansion(atom, axis, -1.0, 1.0, 1e-12)
        assert tail is not None
        for degree in (4, 8, 16, 32):
            nodes = np.cos(np.arange(degree + 1) * np.pi / degree)
            fine, others = np.linspace(-0.999, 0.9971, 61), np.linspace(-1, 1, 7)

            def table(points, axis=axis, others=others):
                pair = (points, others) if axis == 0 else (others, points)
                grid = atom(np.stack(np.meshgrid(*pair, indexing="ij"), axis=-1))[..., 0]
                return grid if axis == 0 else grid.T

            known, truth = table(nodes), table(fine)
            found = max(np.abs(interpolated(k, [fine]) - t).max() for k, t in zip(known.T, truth.T, strict=True))
            assert found <= tail[degree][0] + 1e-14
        assert tail[32][0] < tail[8][0] / 5


def test_the_largest_value_between_nodes_is_bounded_closely():
    rng = np.random.default_rng(2)
    for degrees in ((5, 7), (12, 3), (4, 5, 6), (3, 2, 3, 2)):
        values = rng.normal(size=[n + 1 for n in degrees])
        largest = largest_on_box(values, degrees)
        fine = [np.cos(np.linspace(0.01, 3.13, 40 if len(degrees) == 2 else 17)) for _ in degrees]
        found = max(np.abs(interpolated(values, fine)).max(), np.abs(values).max())
        assert found <= largest.bound <= 1.35 * found
        there = interpolated(values, [np.array([x + 1e-13]) for x in largest.at])
        assert found <= 1.1 * largest.found <= 1.1 * abs(float(there.item())) * (1 + 1e-9)


@pytest.mark.parametrize("text", ["abs(x - y)", "max(x*y, 0.1)", "where(x < y, x, y)"])
def test_kinks_are_refused(text):
    atom = uniform_grid(lambda x: x[:, 0], [-1, -1], [1, 1], 3, c=1.0)
    with pytest.raises(ah.AnchorheadError, match="kink"):
        prove_grid(atom, [parse(text, XY)], XY, [-1, -1], [1, 1], arithmetic_of("float64"))


@pytest.mark.slow_for("1/(x - y)", "log(x + y)")
@pytest.mark.parametrize("text", ["sqrt(x + 1)*y", "1/(x - y)", "log(x + y)"])
def test_singular_places_are_refused(text):
    atom = uniform_grid(lambda x: x[:, 0], [-1, -1], [1, 1], 3, c=1.0)
    with pytest.raises(ah.AnchorheadError, match="nothing is proven near"):
        prove_grid(atom, [parse(text, XY)], XY, [-1, -1], [1, 1], arithmetic_of("float64"))


def test_the_work_is_limited_and_progress_is_told(proven):
    atom, expression, _ = proven("bell")
    model, ends = arithmetic_of("float64"), ([-1] * 3, [1] * 3)
    with pytest.raises(TooLong, match="not proven with 1,000 operations"):
        prove_grid(atom, [expression], XYZ, *ends, model, Effort(1_000))
    told = []
    prove_grid(atom, [expression], XYZ, *ends, model, progress=told.append)
    shares, left = zip(*((status.share, status.left) for status in told), strict=True)
    assert (shares[-1], left[-1]) == (1.0, 0.0)
    assert list(shares) == sorted(shares)
    assert shares[0] > 0
    assert min(left) >= 0


def test_the_work_that_is_left_is_counted_from_shares():
    """Boxes of equal share and equal cost: after one of four, three times its work is left."""
    told = []
    work = Work(Effort(1000.0), lambda share, done, left: told.append((share, left)))
    for _ in range(4):
        work.spend(2.0)
        for _ in range(4):
            work.done(0.25 / 4, 2.0)
    assert told[3] == pytest.approx((0.25, 30.0))
    assert told[7] == pytest.approx((0.5, 20.0))
    assert told[-1] == (1.0, 0.0)


def test_what_does_not_fit_together_is_refused(proven):
    atom, expression, _ = proven("waves")
    model = arithmetic_of("float64")
    with pytest.raises(ah.AnchorheadError, match="numbers must agree"):
        prove_grid(atom, [expression], XYZ, [-1] * 3, [1] * 3, model)
    with pytest.raises(ah.AnchorheadError, match="not a box"):
        prove_grid(atom, [expression], XY, [-1, 1], [1, -1], model)
    with pytest.raises(ah.AnchorheadError, match="not a variable of the grid"):
        prove_grid(atom, [expression], ("x", "t"), [-1] * 2, [1] * 2, model)


def test_a_wrong_head_has_a_large_bound(proven):
    """Values moved at one anchor: the bound grows at least as much as the error does."""
    atom, expression, bound = proven("waves")
    table = np.array(atom.values)
    table[4, 4] += 1.0
    worse = GridAtom.of(atom.axes, atom.origins, table, atom.bias, "float64")
    again = prove_grid(worse, [expression], XY, [-1, -1], [1, 1], arithmetic_of("float64"))
    x = climbed(lambda p: np.abs(worse(p)[:, 0] - values(expression, XY, p)), [-1, -1], [1, 1])
    assert np.abs(worse(x)[:, 0] - values(expression, XY, x)).max() <= again.total
    assert again.exact > 1e4 * bound.exact


def test_the_working_precision_is_left_as_it_was(proven):
    before = ctx.prec
    proven("an uneven box")
    assert ctx.prec == before
