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
from anchorhead.verify.grids import lipschitz as verified_by
from anchorhead.verify.grids.head import Grid
from anchorhead.verify.grids.points import values_of
from anchorhead.verify.grids.uniform import modulus_of, verify_even
from anchorhead.verify.programs.expressions import Expression, read_expression
from anchorhead.verify.programs.numbers import Range
from anchorhead.verify.programs.slopes import slopes_of
from anchorhead.verify.rounding import arithmetic_of
from tests.networks.grids import stored_grid

from .test_grid import less

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


def verified(grid: Grid, function: Expression, target: Entries, dtype: str, stated: float) -> float:
    box = list(zip(target.low, target.high, strict=True))
    known = modulus_of(function, target.variables, box), values_of(function, target.variables)
    return verify_even(grid, *known, target.low, target.high, arithmetic_of(dtype), stated)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_stated_follows(case: Case) -> None:
    network, grid, function, target = built(case)
    assert network.certificate is not None
    found = verified(grid, function, target, network.dtype, network.certificate.bound)
    x = np.random.default_rng(0).uniform(target.low, target.high, (3_000, len(target.low))).astype(network.dtype)
    worst = float(np.abs(np.asarray(network(x), np.longdouble) - network.program(x)).max())
    assert worst <= found <= network.certificate.bound
    with pytest.raises(NotVerified, match="even grid"):
        verified(grid, function, target, network.dtype, worst * 0.97)


@pytest.mark.parametrize("what", ["values", "slopes", "offsets"])
def test_a_moved_weight_is_refused(what: str) -> None:
    network, grid, function, target = built(CASES[0])
    assert network.certificate is not None
    if what == "values":
        moved = grid.values.copy()
        moved.flat[0] += 0.05
        wrong = replace(grid, values=moved)
    else:
        axis = [array.copy() for array in grid.axes[0]]
        axis[what == "offsets"][3] += 60.0
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
    modulus = verified_by.Lipschitz(lipschitz.constants, lipschitz.euclidean).modulus

    def verify(by: float, stated: float) -> float:
        def values(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return f(x)[:, 0] - bias + by * x[:, 0], np.full(len(x), 1e-15)

        return verify_even(grid, modulus, values, (-1.0, -1.0), (1.0, 1.0), arithmetic_of("float64"), stated)

    assert verify(0.0, stated) <= stated
    with pytest.raises(NotVerified):
        verify(0.01, stated)
    with pytest.raises(NotVerified):
        verify(0.0, stated * 0.9)


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
