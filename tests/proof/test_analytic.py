"""prove_sup: no search exceeds the bound, and the bound is within two per cent of what a search finds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import acb, arb, ctx

from anchorhead.effort import Effort
from anchorhead.errors import AnchorheadError
from anchorhead.proof.enclosures.analytic import Proof, prove_sup

from .analytic_cases import (
    Case,
    Softmax,
    exact,
    fitted,
    gelu,
    gelu8,
    mirrored,
    perturbed_random,
    random_part,
    relu5,
    relu_part,
    relu_pieces,
    softmax,
    stored,
    worst,
)


def root_two() -> arb:
    with ctx.workprec(150):
        return arb(2).sqrt()


def sqrt(z: acb) -> acb:
    """Analytic off (-inf, 0]; on reals, of their part that is not negative."""
    if z.imag == 0:
        return acb(z.real.nonnegative_part().sqrt())
    return z.sqrt() if z.real > 0 or z.imag > 0 else acb("nan")


def silu(z: acb) -> acb:
    return z / (1 + (-z).exp()) if z.real.mid() > 0 else z * z.exp() / (1 + z.exp())


def square_part(h: float) -> Softmax:
    """V cosh(hs) / (5 + cosh(hs)) - V/6 with V = 14.4 / h^2."""
    return softmax([-h, 0, h], [0, math.log(10), 0], np.array([5, -1, 5]) * 2.4 / h**2)


CASES = {
    "relu, A = 1e3": Case([relu_part(1e3, 1e-2)], relu_pieces(-1, 1), -1.0, 1.0),
    "relu, A = 1e9": Case([relu_part(1e9, 1e-5)], relu_pieces(-1, 1), -1.0, 1.0),
    "relu, A = 1e12": Case([relu_part(1e12, 1e-6)], relu_pieces(-1, 1), -1.0, 1.0),
    "relu, 5 anchors": Case([relu5()], relu_pieces(-1, 1), -1.0, 1.0),
    "silu": Case([relu_part(1.0, 1e-5)], [(arb(-10), arb(10), silu)], -10.0, 10.0),
    "square": Case([square_part(1e-2)], [(arb(-1), arb(1), lambda z: z * z)], -1.0, 1.0),
    "abs, two parts": Case(
        [relu_part(1e9, 1e-5), mirrored(relu_part(1e9, 1e-5))],
        [(arb(-1), arb(0), lambda z: -z), (arb(0), arb(1), lambda z: z)],
        -1.0,
        1.0,
    ),
    "gelu": Case([gelu8()], [(arb(-10), arb(10), gelu)], -10.0, 10.0),
    "sin, 10 anchors": Case(
        [fitted(np.sin, -3.2, 3.2, np.linspace(-1, 1, 10), np.linspace(-1, 1, 10) ** 2 * -2)],
        [(arb(-4), arb(4), lambda z: z.sin())],
        -math.pi,
        math.pi,
    ),
    "sin, far from 0": Case(
        [fitted(lambda s: np.sin(s + 1005), -5, 5, np.linspace(-3, 3, 9), np.linspace(-3, 3, 9) ** 2 * -0.8)],
        [(arb(1000), arb(1010), lambda z: z.sin())],
        1000.0,
        1010.0,
        origin=1005.0,
    ),
    "a kink at the root of 2": Case(
        [softmax([-1e8, -1e-4, 1e-4], [math.log(2), 0, 0], [-0.125, -1e4 - 0.125, 1e4 - 0.125])],
        [(arb(-4), root_two(), lambda z: z * 0), (root_two(), arb(4), lambda z: z - arb(2).sqrt())],
        -1.0,
        2.0,
        origin=math.sqrt(2),
        bias=0.125,
    ),
    "the end of a square root": Case(
        [fitted(np.sqrt, 0, 1, -np.geomspace(0.5, 500, 8), np.linspace(0, 4, 8))],
        [(arb(0), arb(1), sqrt)],
        0.0,
        1.0,
    ),
    "5 random anchors": perturbed_random(1, 5, 3.0),
    "9 random anchors, steep": perturbed_random(2, 9, 300.0),
}


def prove(case: Case, **options) -> Proof:
    parts = stored(*case.parts)
    return prove_sup(parts, case.origin, case.bias, [case.pieces], case.low, case.high, **options)


@pytest.mark.slow_for(
    "relu, 5 anchors",
    "the end of a square root",
    "5 random anchors",
    "gelu",
    "abs, two parts",
    "9 random anchors, steep",
)
@pytest.mark.parametrize("name", CASES)
def test_no_search_exceeds_the_bound_and_the_bound_is_within_two_per_cent(name: str) -> None:
    proof, largest = prove(CASES[name]), worst(CASES[name])
    assert largest.upper() <= proof.bound
    assert proof.bound <= 1.02 * largest
    assert proof.found <= proof.bound <= 1.02 * proof.found


@pytest.mark.parametrize("name", ["relu, A = 1e9", "silu", "gelu", "abs, two parts"])
def test_a_wrong_value_shows(name: str) -> None:
    case = CASES[name]
    values = case.parts[0].values.copy()
    values[-1] *= 1.01
    wrong = case._replace(parts=[case.parts[0]._replace(values=values), *case.parts[1:]])
    proof, largest = prove(wrong), worst(wrong)
    assert largest.upper() <= proof.bound <= 1.02 * largest


def test_the_place_of_the_largest_difference_is_where_it_is() -> None:
    case = CASES["gelu"]
    proof = prove(case)
    with ctx.workprec(300):
        there = abs(gelu(acb(proof.at)).real - exact(case.parts, 0.0, 0.0)(arb(proof.at)))
    assert there * 1.0001 >= proof.found


@pytest.mark.parametrize(
    ("part", "target"),
    [
        (softmax([-1, 1], [0, 0], [-1, 1]), lambda z: z.tanh()),
        (softmax([0, 1], [0, 0], [0, 1]), lambda z: 1 / (1 + (-z).exp())),
    ],
)
def test_an_exact_head_is_proven_exact(part, target) -> None:
    proof = prove(Case([part], [(arb(-10), arb(10), target)], -10.0, 10.0))
    assert 0 <= proof.found <= proof.bound <= 1e-20


def test_a_tighter_tolerance_gives_a_tighter_bound() -> None:
    case = CASES["gelu"]
    loose, tight = prove(case, rtol=0.3), prove(case, rtol=1e-3)
    assert worst(case) <= tight.bound <= 1.001 * worst(case)
    assert tight.bound <= loose.bound <= 1.3 * worst(case)


def test_a_floor_ends_the_proof_early() -> None:
    proof = prove(CASES["gelu"], floor=1e-2)
    assert worst(CASES["gelu"]) <= proof.bound <= 1e-2


def test_without_effort_the_bound_is_loose_and_still_holds() -> None:
    proof = prove(CASES["gelu"], effort=Effort(0))
    assert 1.02 * proof.found < proof.bound
    assert worst(CASES["gelu"]) <= proof.bound


def test_every_output_counts() -> None:
    slopes, offsets = np.linspace(-1, 1, 7), np.linspace(-1, 1, 7) ** 2 * -2
    columns = [fitted(f, -2, 2, slopes, offsets).values for f in (np.sin, np.cos)]
    both = softmax(slopes, offsets, np.stack(columns, axis=1))
    pieces = [[(arb(-2), arb(2), lambda z: z.sin())], [(arb(-2), arb(2), lambda z: z.cos())]]
    proof = prove_sup(stored(both), 0.0, np.zeros(2), pieces, -2.0, 2.0)
    largest = max(
        (
            worst(Case([softmax(slopes, offsets, column)], own, -2.0, 2.0))
            for column, own in zip(columns, pieces, strict=True)
        ),
        key=float,
    )
    assert largest.upper() <= proof.bound <= 1.02 * largest


@pytest.mark.parametrize("distance", [1e-1, 1e-3, 1e-8])
def test_a_pole_near_the_interval_is_seen(distance: float) -> None:
    """A bump of height 1 and width `distance`, between all points that a plain sample would try."""
    centre = 1 / math.pi

    def bump(z: acb) -> acb:
        return distance**2 / ((z - arb(centre)) ** 2 + arb(distance) ** 2)

    case = Case([softmax([-1, 1], [0, 0], [0, 0])], [(arb(-1), arb(1), bump)], -1.0, 1.0)
    proof = prove(case)
    assert abs(bump(acb(centre))).upper() * (1 - 1e-12) <= proof.bound <= 1.03
    assert proof.bound <= 1.02 * proof.found


def test_a_pole_on_the_interval_is_not_certified() -> None:
    part = softmax([-1, 1], [0, 0], [0, 1])
    for place in (arb(0), arb(1) / 3, arb(1)):
        target = [(arb(-1), arb(1), lambda z, place=place: arb(1e-30) / (z - place))]
        proof = prove(Case([part], target, -1.0, 1.0))
        assert proof.bound == math.inf


def test_a_jump_that_is_not_declared_is_not_certified() -> None:
    part = softmax([-1, 1], [0, 0], [0, 1])

    def step(z: acb) -> acb:
        return acb(1) if z.real > 0.3 else acb(0) if z.real < 0.3 else acb("nan")

    assert prove(Case([part], [(arb(-1), arb(1), step)], -1.0, 1.0)).bound == math.inf


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_scaling_the_domain_changes_nothing(scale: float) -> None:
    scale = 2.0 ** round(math.log2(scale))
    part = gelu8()
    wide = part._replace(slopes=part.slopes / scale)
    pieces = [(arb(-10 * scale), arb(10 * scale), lambda z: gelu(z / scale))]
    proof = prove(Case([wide], pieces, -10 * scale, 10 * scale))
    assert proof.bound == pytest.approx(prove(CASES["gelu"]).bound, rel=0.02)


def test_the_working_precision_is_restored() -> None:
    part = random_part(0, 4, 1.0)
    before = ctx.prec

    def fails(z: acb) -> acb:
        raise RuntimeError("no value")

    prove(CASES["silu"])
    assert ctx.prec == before
    with pytest.raises(RuntimeError, match="no value"):
        prove(Case([part], [(arb(-1), arb(1), fails)], -1.0, 1.0))
    assert ctx.prec == before


def test_a_jump_is_added_to_the_bound() -> None:
    case = CASES["relu, A = 1e3"]
    assert prove(case, jump=1e-3).bound == pytest.approx(prove(case).bound + 1e-3, rel=1e-12)


def test_a_single_point_is_an_interval() -> None:
    part = softmax([-1, 1], [0, 0], [0, 1])
    proof = prove(Case([part], [(arb(-1), arb(1), lambda z: z)], 0.5, 0.5))
    assert abs(0.5 - 1 / (1 + math.exp(-1.0))) == pytest.approx(proof.bound, rel=1e-12)


def test_bad_input_is_refused() -> None:
    part = softmax([-1, 1], [0, 0], [0, 1])
    whole = [(arb(-1), arb(1), lambda z: z)]
    with pytest.raises(AnchorheadError, match="adjoin"):
        prove(Case([part], [(arb(-1), arb(0), abs), (arb(0.5), arb(1), abs)], -1.0, 1.0))
    with pytest.raises(AnchorheadError, match="interval"):
        prove(Case([part], whole, 1.0, -1.0))
    with pytest.raises(AnchorheadError, match="not finite"):
        prove(Case([part], whole, -1.0, 1.0, bias=np.inf))
