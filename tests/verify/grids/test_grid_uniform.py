"""The paper's even grids: what is stated follows, and what is less than the largest error, or moved, is refused."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from flint import arb

import anchorhead as ah
from anchorhead.heads.grids.grid import uniform_grid
from anchorhead.language.entries import Entries
from anchorhead.language.expressions.parser import parse
from anchorhead.language.targets.lipschitz import Lipschitz
from anchorhead.network import Network
from anchorhead.proof.arithmetic.arithmetic import FLOAT64
from anchorhead.proof.grids.uniform_grid import prove_uniform_lipschitz
from anchorhead.verify.balls import precision
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.grids import functions as verified_by
from anchorhead.verify.grids.cells import cover
from anchorhead.verify.grids.functions import known_of
from anchorhead.verify.grids.head import Grid
from anchorhead.verify.programs.expressions import Expression, read_expression
from anchorhead.verify.programs.numbers import Range
from anchorhead.verify.programs.slopes import slopes_of
from anchorhead.verify.rounding import arithmetic_of
from tests.networks.grids import stored_grid

from .test_grid import box_of, less

CASES = [
    ("sin(2*x)*y", "xy", (-1, 1), 0.2, "float32"),
    ("sqrt(x*y)", "xy", (0, 1), 0.4, "float64"),
    ("x*y*z", "xyz", (0, 1), 0.3, "float32"),
]
Case = tuple[str, str, tuple[float, float], float, str]


def stored(atom: object) -> tuple[Grid, float]:
    """A grid of one output, and what is added to it."""
    axes = [(np.asarray(a, np.float64), np.asarray(g, np.float64)) for a, g in atom.axes]  # type: ignore[attr-defined]
    origins, values, bias = (np.asarray(getattr(atom, name), np.float64) for name in ("origins", "values", "bias"))
    return Grid(axes, origins, values[..., 0]), float(bias[0])


@cache
def built(case: Case) -> tuple[Network, Grid, Expression, Entries]:
    text, names, on, within, dtype = case
    network = ah.approximate(text, on=dict.fromkeys(names, on), within=within, placement="uniform", dtype=dtype)
    (grid, bias), target = stored(stored_grid(network)), Entries.of(network.program)
    return network, grid, less(target.expressions[0], bias), target


def verified(grid: Grid, function: Expression, target: Entries, dtype: str, stated: float) -> None:
    cover(grid, known_of(function, target.variables), box_of(target), arithmetic_of(dtype), stated)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_stated_follows(case: Case) -> None:
    network, grid, function, target = built(case)
    assert network.certificate is not None
    verified(grid, function, target, network.dtype, network.certificate.bound)
    x = np.random.default_rng(0).uniform(target.low, target.high, (3_000, len(target.low))).astype(network.dtype)
    worst = float(np.abs(np.asarray(network(x), np.longdouble) - network.program(x)).max())
    assert worst <= network.certificate.bound
    verified(grid, function, target, network.dtype, worst * 2)
    with pytest.raises(NotVerified, match="on a grid"):
        verified(grid, function, target, network.dtype, worst * 0.97)


@pytest.mark.parametrize("what", ["values", "slopes", "offsets"])
def test_a_moved_weight_is_refused(what: str) -> None:
    network, grid, function, target = built(CASES[0])
    assert network.certificate is not None
    if what == "values":
        moved = grid.values.copy()
        moved.flat[0] += 0.3
        wrong = replace(grid, values=moved)
    else:
        axis = [array.copy() for array in grid.axes[0]]
        axis[what == "offsets"][3] += 300.0 if what == "offsets" else -300.0
        wrong = replace(grid, axes=[(axis[0], axis[1]), grid.axes[1]])
    with pytest.raises(NotVerified):
        verified(wrong, function, target, network.dtype, network.certificate.bound)


@pytest.mark.parametrize("constants", [1.5, (1.0, 1.0)], ids=str)
def test_a_function_with_its_constant(constants: float | tuple[float, float]) -> None:
    lipschitz = Lipschitz.of(constants, 2)

    def f(x: np.ndarray) -> np.ndarray:
        return np.abs(x[..., 0] - x[..., 1])[..., None]

    atom = uniform_grid(f, (-1.0, -1.0), (1.0, 1.0), (17, 17), 2.7)
    places = np.linspace(-1, 1, 17)
    values = f(np.stack(np.meshgrid(places, places, indexing="ij"), axis=-1))
    stated = prove_uniform_lipschitz(atom, values, lipschitz, (-1.0, -1.0), (1.0, 1.0), FLOAT64).total * 1.01
    grid, bias = stored(atom)
    worst = float(np.abs(atom(np.full((1, 2), 1 / 16)) - f(np.full((1, 2), 1 / 16))).max())  # on the kink

    def verify(by: float, stated: float) -> None:
        def values(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return f(x)[:, 0] - bias + by * x[:, 0], np.full(len(x), 1e-15)

        known = verified_by.Lipschitz(lipschitz.constants, lipschitz.euclidean).known(values)
        cover(grid, known, 2 * [(-1.0, 1.0)], arithmetic_of("float64"), stated)

    verify(0.0, stated)
    with pytest.raises(NotVerified):
        verify(1.0, stated)
    with pytest.raises(NotVerified):
        verify(0.0, worst * 0.97)


SLOPES = ["sin(x*y) + exp(-x)", "max(x, y*y)", "abs(x - y)/(2 + y)", "sqrt(1 + x*x)*tanh(y)"]
MEETING = ["elu(x*y, 2)*y", "celu(x - y, 0.5)", "leaky_relu(x*y, 0.3)", "selu(x + y)"]


@pytest.mark.parametrize("text", [*SLOPES, *MEETING])
def test_slopes_hold_every_difference_quotient(text: str) -> None:
    function, rng = read_expression(parse(text, ("x", "y")).to_json()), np.random.default_rng(1)
    with precision():
        for low in rng.uniform(-1, 0.7, (20, 2)):
            box = [Range(arb(float(a)), arb(float(a + 0.3))) for a in low]
            values, slopes = slopes_of(function, ("x", "y"), box)
            for _ in range(5):
                p, q = (low + 0.3 * rng.uniform(size=2) for _ in range(2))
                for j in range(2):
                    r = p.copy()
                    r[j] = q[j]
                    ends = [function.ball({"x": arb(float(z[0])), "y": arb(float(z[1]))}) for z in (p, r)]
                    assert values.ball.overlaps(ends[0])
                    assert slopes[j].is_finite()
                    assert slopes[j].overlaps((ends[1] - ends[0]) / (arb(float(r[j])) - float(p[j])))


@pytest.mark.parametrize("text", ["max(x, y*y)", "abs(x - y)/(2 + y)", "sqrt(x + 1)*y", "sin(4*x*y)"])
def test_between_corners_expressions_are_as_near_to_chords_as_is_said(text: str) -> None:
    """On cells that are interpolated from their corners, by the best of what is known."""
    parsed, shares = parse(text, ("x", "y")), []
    known = known_of(read_expression(parsed.to_json()), ("x", "y"))
    for count in (1, 3):
        cuts = [np.linspace(-1, 1, count + 1)] * 2
        corners, _, spreads = known(cuts)
        most = np.min([one.sum(axis=-1) for one in spreads], axis=0)
        for cell in np.ndindex(count, count):
            t = np.random.default_rng(0).random((500, 2))
            low, high = (np.array([cut[i + end] for cut, i in zip(cuts, cell, strict=True)]) for end in (0, 1))
            x = low + (high - low) * t
            (i, j), chords = cell, np.zeros(len(x))
            for a, b in np.ndindex(2, 2):
                chords += np.abs(1 - a - t[:, 0]) * np.abs(1 - b - t[:, 1]) * corners[i + a, j + b]
            away = np.abs(parsed.values({"x": x[:, 0], "y": x[:, 1]}) - chords).max()
            assert away <= most[cell] + 1e-12
            shares.append(away / most[cell])
    assert max(shares) > 0.2
