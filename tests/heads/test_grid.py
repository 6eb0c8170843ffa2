"""Grids are small, solved within what is asked, deterministic, and refused before they are too large."""

import numpy as np
import pytest

import anchorhead as ah
from anchorhead.heads.grids.grid import GridAtom, solve_grid, uniform_grid
from anchorhead.heads.grids.grid_rounding import asked_error, axis_log_errors, grid_read_error
from anchorhead.proof.arithmetic.arithmetic import arithmetic_of


def waves(x):
    return np.sin(3 * x[:, 0]) * np.cos(2 * x[:, 1]) + np.exp(x[:, 0] * x[:, 1])


def bell(x):
    return 1 / (1 + (x**2).sum(axis=1))


CASES = {  # function, low, high, within, dtype, the most anchors it may take
    "waves": (waves, [-1, -1], [1, 1], 1e-6, "float64", 100),
    "waves, closely": (waves, [-1, -1], [1, 1], 1e-9, "float64", 160),
    "waves in float32": (waves, [-1, -1], [1, 1], 1e-3, "float32", 60),
    "bell": (bell, [-1] * 3, [1] * 3, 1e-4, "float64", 600),
    "an uneven box": (lambda x: np.exp(x[:, 0]) * x[:, 1], [2, -30], [3, 50], 1e-5, "float64", 50),
    "a product": (lambda x: x[:, 0] * x[:, 1], [-1, -1], [1, 1], 1e-9, "float64", 30),
    "one variable matters more": (lambda x: np.sin(6 * x[:, 0]) + x[:, 1] / 9, [-1, -1], [1, 1], 1e-4, "float64", 60),
    "four variables": (lambda x: np.exp(-(x**2).sum(axis=1)), [-0.5] * 4, [0.5] * 4, 1e-3, "float64", 300),
    "two outputs": (lambda x: np.stack([waves(x), x[:, 0]], axis=1), [-1, -1], [1, 1], 1e-4, "float64", 80),
    "constant": (lambda x: np.full(len(x), 2.5), [0, 0], [1, 1], 1e-9, "float64", 1),
}


@pytest.mark.parametrize("name", CASES)
def test_the_grid_is_small_and_within_what_was_asked(name):
    f, low, high, within, dtype, most = CASES[name]
    atom = solve_grid(f, low, high, within, dtype)
    assert atom.anchors <= most
    assert atom.anchors == np.prod(atom.sides) == atom.values[..., 0].size
    x = np.random.default_rng(7).uniform(low, high, (3000, len(low)))
    x[: 2 ** len(low)] = np.stack(np.meshgrid(*zip(low, high, strict=True)), axis=-1).reshape(-1, len(low))
    x = x.astype(dtype).clip(low, high)
    truth = f(x.astype(np.float64)).reshape(len(x), -1)
    assert np.abs(atom(x) - truth).max() <= within
    assert np.abs(atom.exact(x) - truth).max() <= within


def test_variables_that_bend_more_get_more_anchors():
    f, low, high, within, dtype, _ = CASES["one variable matters more"]
    sides = solve_grid(f, low, high, within, dtype).sides
    assert sides[0] > sides[1] + 4


def test_solving_twice_gives_the_same_bits():
    once, again = (solve_grid(waves, [-1, -1], [1, 1], 1e-5) for _ in range(2))
    assert once.sides == again.sides
    assert np.array_equal(once.values, again.values)


def test_the_formula_is_the_one_that_is_written():
    atom = GridAtom.of(
        [([0.0, 1.0], [0.0, 0.5]), ([-1.0, 0.0, 2.0], [0.1, 0.0, -0.3])],
        [0.25, -1.0],
        np.arange(12.0).reshape(2, 3, 2),
        [10.0, 20.0],
        "float64",
    )
    t = np.array([0.4, 0.7]) - [0.25, -1.0]
    total, weight = np.zeros(2), 0.0
    for i in range(2):
        for j in range(3):
            (a, g), (b, h) = atom.axes
            e = np.exp(a[i] * t[0] + g[i] + b[j] * t[1] + h[j])
            total, weight = total + e * atom.values[i, j], weight + e
    expected = total / weight + [10, 20]
    for found in (atom(np.array([0.4, 0.7])), atom.exact(np.array([0.4, 0.7]))):
        assert np.abs(found - expected).max() <= 1e-14


def test_weights_are_stored_in_the_dtype_and_cannot_be_changed():
    atom = solve_grid(waves, [-1, -1], [1, 1], 1e-2, "float32")
    assert atom.values.dtype == atom.bias.dtype == atom.axes[0][0].dtype == atom(np.zeros((1, 2))).dtype == np.float32
    with pytest.raises(ValueError, match="read-only"):
        atom.values[0] = 0


def test_even_anchors_carry_the_values_of_the_function():
    atom = uniform_grid(waves, [-1, -1], [1, 1], (9, 7), c=400.0)
    x = np.stack(np.meshgrid(np.linspace(-1, 1, 9), np.linspace(-1, 1, 7), indexing="ij"), axis=-1)
    assert np.abs(atom(x)[..., 0] - waves(x.reshape(-1, 2)).reshape(9, 7)).max() <= 1e-12
    finer = [
        np.abs(uniform_grid(waves, [-1, -1], [1, 1], n, c=1.0)(x)[..., 0] - atom(x)[..., 0]).max() for n in (9, 33)
    ]
    assert finer[1] < finer[0] / 3


def test_too_large_a_grid_is_refused_with_its_size():
    with pytest.raises(
        ah.AnchorheadError, match=r"a grid of about \d+ x \d+ = \d+ anchors, and at most 30 are allowed"
    ):
        solve_grid(waves, [-1, -1], [1, 1], 1e-6, most=30)
    with pytest.raises(ah.AnchorheadError, match=r"would take a grid of about [\d,]+ x [\d,]+ = \d+,\d+,\d+"):
        solve_grid(lambda x: np.abs(x[:, 0] - x[:, 1]), [-1, -1], [1, 1], 1e-6)
    with pytest.raises(ah.AnchorheadError, match=r"out of reach in float32.*float64"):
        solve_grid(waves, [-1, -1], [1, 1], 2e-6, "float32")


@pytest.mark.parametrize("within", [0, -1, float("nan"), True, "small"])
def test_errors_that_make_no_sense_are_refused(within):
    with pytest.raises(ah.AnchorheadError, match="within"):
        solve_grid(waves, [-1, -1], [1, 1], within)


@pytest.mark.parametrize(
    ("low", "high"), [([0, 0], [1, 0]), ([0], [1, 1]), ([0, 0], [1, np.inf]), ([0] * 5, [1] * 5), ([[0]], [[1]])]
)
def test_boxes_that_are_none_are_refused(low, high):
    with pytest.raises(ah.AnchorheadError, match="a box from"):
        solve_grid(waves, low, high, 1e-3)


def test_values_that_are_not_finite_are_refused_with_their_place():
    with np.errstate(all="ignore"), pytest.raises(ah.AnchorheadError, match="not finite at"):
        solve_grid(lambda x: np.log(x[:, 0] + x[:, 1]), [-1, -1], [1, 1], 1e-3)


def test_arrays_that_do_not_fit_are_refused():
    with pytest.raises(ah.AnchorheadError, match="a grid of axes"):
        GridAtom.of([([0.0, 1.0], [0.0])], [0.0], np.zeros((2, 1)), [0.0], "float64")
    with pytest.raises(ah.AnchorheadError, match="not finite"):
        GridAtom.of([([0.0, 1.0], [0.0, 1.0])], [0.0], np.full((2, 1), 1e300), [0.0], "float32")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("seed", range(4))
def test_the_rounding_bound_at_points_is_never_exceeded(seed, dtype):
    """Grids with values that cancel, far from their origin, at random points: rounding against extended precision."""
    rng = np.random.default_rng(seed)
    sides = ((5, 7), (12, 3), (4, 4, 5), (1, 9))[seed]
    spread = (1, 10, 3, 30)[seed]
    axes = [(rng.normal(size=p) * spread, rng.normal(size=p) * spread) for p in sides]
    values = rng.normal(size=(*sides, 2)) * 10 ** rng.uniform(-2, 4, size=(*sides, 1))
    atom = GridAtom.of(axes, rng.normal(size=len(sides)), values, np.zeros(2), dtype)  # adding a bias rounds elsewhere
    model = arithmetic_of(dtype)
    for x in rng.uniform(-2, 2, (400, len(sides))):
        weights, errors = [], []
        for (slopes, offsets), origin, t in zip(atom.axes, atom.origins, x, strict=True):
            z = slopes.astype(float) * (t - float(origin)) + offsets
            weights.append((np.exp(z - z.max()) / np.exp(z - z.max()).sum())[None] * (1 + 1e-12))
            at = np.array([t])
            moved = asked_error(at, at, float(origin), model)
            errors.append(axis_log_errors(slopes, offsets, float(origin), at, at, moved, len(sides), model))
        bound = grid_read_error(atom, weights, errors, model).reshape(2)
        assert (np.abs(atom(x) - atom.exact(x)) <= bound).all()
