"""What the proof of the paper's grids rests on: distances of picked anchors, ranges and slopes on cells, rounding."""

import numpy as np
import pytest

import anchorhead as ah
from anchorhead.heads.grids.grid import GridAtom, even_places, uniform_grid
from anchorhead.language.expressions.parser import parse
from anchorhead.proof.arithmetic.arithmetic import arithmetic_of
from anchorhead.proof.grids.grid_rounding import prove_mean_rounding
from anchorhead.proof.grids.uniform_grid import prove_uniform_grid, uniform_axes
from anchorhead.proof.grids.uniform_grid_modulus import cell_modulus, without_jumps
from anchorhead.proof.grids.uniform_grid_weights import axis_spread

XY = ("x", "y")


def weights(slopes, offsets, origin, x):
    z = np.outer(x - origin, slopes) + offsets
    w = np.exp(z - z.max(axis=1, keepdims=True))
    return w / w.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(12))
def test_anchors_that_are_picked_are_as_near_as_claimed(seed):
    """Even keys, keys as float32 stores them, and keys that somebody moved."""
    rng = np.random.default_rng(seed)
    p, c = int(rng.integers(2, 200)), rng.uniform(0.3, 6)
    low, high = np.sort(rng.uniform(-5, 5, 2))
    places, origin = even_places(low, high, p), (low + high) / 2
    beta = c / ((high - low) / (p - 1)) ** 2
    slopes, offsets = 2 * beta * (places - origin), -beta * (places - origin) ** 2
    if seed % 3 == 1:
        slopes, offsets = slopes.astype(np.float32).astype(float), offsets.astype(np.float32).astype(float)
    if seed % 3 == 2:
        slopes, offsets = np.sort(slopes * rng.uniform(0.9, 1.1, p)), offsets + rng.normal(size=p)
    spread = axis_spread(slopes, offsets, origin, places, low, high)
    x = np.sort(np.concatenate([np.linspace(low, high, 4001), places, (places[1:] + places[:-1]) / 2]).clip(low, high))
    w = weights(slopes, offsets, origin, x)
    far = np.abs(places - x[:, None])
    first, second = (w * far).sum(axis=1).max(), (w * far**2).sum(axis=1).max()
    assert first <= spread.first
    assert second <= spread.second
    cell = np.clip(np.searchsorted(places, x, side="right") - 1, 0, p - 2)[:, None]
    for reach, claimed in enumerate(spread.outside):
        beyond = (np.arange(p) < cell - reach) | (np.arange(p) > cell + 1 + reach)
        assert min((w * beyond).sum(axis=1).max(), 1.0) <= claimed
    if seed % 3 == 0:
        assert spread.first <= 1.05 * first
        assert spread.second <= 1.25 * second


def test_the_papers_sharpness_picks_anchors_within_half_a_spacing():
    places = even_places(-1.0, 1.0, 41)
    beta = 2.75 / 0.05**2
    spread = axis_spread(2 * beta * places, -beta * places**2, 0.0, places, -1.0, 1.0)
    assert 0.5 * 0.05 <= spread.first <= 0.506 * 0.05
    assert spread.outside[0] < 0.06
    assert spread.outside[2] < 1e-10


@pytest.mark.parametrize(
    "text",
    ["abs(x - y)*x", "max(x*y, min(x, 0.3), y - 1)", "elu(3*x)*y", "selu(x - y)", "celu(x + y, 0.5)", "sqrt(abs(x))",
     "leaky_relu(2*x - y, 0.1)", "where(x < y, x*x, 2*x*y - y*y)", "sin(5*x*y)/(1.2 + x)", "(x + 1.1)**1.5*y"],
)  # fmt: skip
def test_values_and_quotients_stay_within_ranges_and_slopes(text):
    expression = parse(text, XY)
    cuts = [np.linspace(-1, 1, 7), np.linspace(-1, 1, 5)]
    cells = cell_modulus([expression], XY, cuts)
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (4000, 2))
    cell = tuple(np.searchsorted(cuts[j], x[:, j]) - 1 for j in range(2))
    f = expression.values({"x": x[:, 0], "y": x[:, 1]})
    assert (cells.low[0][cell] <= f).all()
    assert (f <= cells.high[0][cell]).all()
    for j in range(2):
        other = x.copy()
        edges = cuts[j]
        other[:, j] = rng.uniform(edges[cell[j]], edges[cell[j] + 1])
        g = expression.values({"x": other[:, 0], "y": other[:, 1]})
        gap = np.abs(other - x)[:, j]
        assert (np.abs(g - f) <= cells.slopes[j][0][cell] * gap + 1e-13).all()
    for reach in (1, 2):
        osc, slopes = cells.block(reach)
        assert (osc >= cells.block(reach - 1)[0]).all()
        assert all((a >= b).all() for a, b in zip(slopes, cells.slopes, strict=True))


def test_a_jump_has_no_slope_and_a_range():
    cells = cell_modulus([parse("where(x < 0.1, 0, 1)", XY)], XY, [np.linspace(-1, 1, 5), np.linspace(-1, 1, 3)])
    assert np.isinf(cells.slopes[0][0, 2]).all()
    assert 1 <= (cells.high - cells.low)[0, 2].min() < 1.001
    assert np.isfinite(cells.slopes[0][0, :2]).all()


@pytest.mark.parametrize("text", ["elu(x)", "elu(x, 2)", "selu(x)", "celu(x, 0.3)", "leaky_relu(x, 0.2)", "relu(x)"])
def test_functions_written_without_jumps_are_the_same(text):
    x = np.linspace(-3, 3, 601)
    expression = parse(text, ("x",))
    other = without_jumps(expression)
    assert np.allclose(other.values({"x": x}), expression.values({"x": x}), rtol=1e-15, atol=1e-15)
    assert not any(op == "where" for op, _, _ in other.program)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rounding_alone_is_never_exceeded(dtype):
    """Values that differ wildly: what the dtype computes is within the bound of what exact arithmetic does."""
    rng = np.random.default_rng(1)
    for sides in ((9, 14), (40, 30), (6, 5, 7)):
        d = len(sides)
        low, high = rng.uniform(-3, 0, d), rng.uniform(0.5, 30, d)
        table = rng.normal(size=(*sides, 1)) * 50
        atom = uniform_grid(lambda _, table=table: table.reshape(-1, 1), low, high, sides, 2.75, dtype)
        _, spreads = uniform_axes(atom, low, high)
        x = rng.uniform(low, high, (3000, d))
        x[:200] = np.where(rng.random((200, d)) < 0.5, low, high)
        exact = atom.exact(x).astype(np.float64)
        mean = GridAtom.of(atom.axes, atom.origins, np.abs(table), [0.0], dtype)
        off = np.abs(atom(x).astype(np.float64) - exact)[:, 0]
        # the mean of |v_k - r| is at most that of |v_k| and |r|
        apart = float((mean.exact(x).astype(np.float64) + np.abs(exact)).max())
        bound = prove_mean_rounding(atom, spreads, low, high, arithmetic_of(dtype), apart)
        assert 0 < off.max() <= bound


def test_a_grid_of_other_values_or_keys_has_a_large_bound():
    expression, model = parse("sin(2*x) + y*y", XY), arithmetic_of("float64")
    ends = ([-1, -1], [1, 1])
    atom = uniform_grid(lambda x: np.sin(2 * x[:, 0]) + x[:, 1] ** 2, *ends, (20, 16), 2.75)
    good = prove_uniform_grid(atom, [expression], XY, *ends, model)
    assert good.total < 0.25
    table = np.array(atom.values)
    table[3, 4] += 0.7
    moved = GridAtom.of(atom.axes, atom.origins, table, atom.bias, "float64")
    assert prove_uniform_grid(moved, [expression], XY, *ends, model).total >= 0.7
    lifted = GridAtom.of(atom.axes, atom.origins, atom.values, [0.5], "float64")
    assert prove_uniform_grid(lifted, [expression], XY, *ends, model).total >= 0.5
    blunt = GridAtom.of([(a / 50, g / 50) for a, g in atom.axes], atom.origins, atom.values, atom.bias, "float64")
    assert prove_uniform_grid(blunt, [expression], XY, *ends, model).total > 2 * good.total
    turned = GridAtom.of([(-a, g) for a, g in atom.axes], atom.origins, atom.values, atom.bias, "float64")
    with pytest.raises(ah.AnchorheadError, match="not in order"):
        prove_uniform_grid(turned, [expression], XY, *ends, model)
    steep = GridAtom.of([(a * 1e6, g * 1e6) for a, g in atom.axes], atom.origins, atom.values, atom.bias, "float64")
    with pytest.raises(ah.AnchorheadError, match="logits"):
        prove_uniform_grid(steep, [expression], XY, *ends, model)
