"""Every term of a lemma counts: where one is all that there is, the bound is not below what it stands for."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import arb

from anchorhead.verify import rounding
from anchorhead.verify.balls import coefficient, exact, precision
from anchorhead.verify.constant import constant_softmax
from anchorhead.verify.forms import EXACT, Forms, Quantities, mapped, summed
from anchorhead.verify.scalar.cells import prove
from anchorhead.verify.scalar.gaps import gaps
from anchorhead.verify.scalar.part import Claim, Part, silent
from anchorhead.verify.scalar.softmax import MANY, Softmax

from . import adversary

MODEL = rounding.MODELS["float32"]


@pytest.mark.parametrize("terms", [1, 2, 3, 9])
def test_a_sum_of_n_terms_rounds_n_minus_1_times(terms: int) -> None:
    one = np.ones(1)
    found = rounding.dot_error(one, one, np.array([float(terms)]), one, MODEL)
    assert (terms - 1) * MODEL.unit <= float(found[0]) <= terms * MODEL.unit * 1.01 + 1e-30


@pytest.mark.parametrize("size", [1e-6, 0.3, 1.5])
def test_softmaxes_of_moved_logits_move_by_no_more(size: float) -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        w, values, most = (x.astype(np.longdouble) for x in (rng.dirichlet(np.ones(4)), *rng.normal(size=(2, 4))))
        w, most = w / w.sum(), size * np.abs(most)
        mean = w @ values
        logs, errors, away, sizes = (
            one[None].astype(np.float64) for one in (np.log(w), most, values - mean, np.abs(values))
        )
        result = np.abs([float(mean)])
        found, mass = rounding.softmax_read_error(logs, errors, (away, away), 0.0, sizes, result, 4, EXACT)
        moved = [w * np.exp(np.array(signs) * most) for signs in product((-1, 1), repeat=4)]
        moved = [one / one.sum() for one in moved]
        worst = max(abs(one @ values - mean) for one in moved)
        assert worst <= float(found[0]) <= 1.001 * worst
        assert max(one @ np.abs(values) for one in moved) <= float(mass[0])


@pytest.mark.parametrize(("half", "by", "around"), [(0.0, 9.0, 1e-5), (0.5, 1e6, 1e-5), (0.0, 1e4, 1e-3)])
def test_where_one_logit_may_be_anything_what_is_read_lies_between(half: float, by: float, around: float) -> None:
    """Two gentle keys that read t, nearly, and a steep one that holds what they read at 1, its logit off by so much."""
    gentle = np.array([-0.1, 0.1])
    slopes, values = np.array([*gentle, 1e6]), np.array([-10.0, 10.0, 10 * np.tanh(0.1)])
    offsets, no = np.array([0.0, 0.0, np.log(2 * np.cosh(0.1)) - 1e6]), np.zeros(3)
    part = Part(slopes, offsets, values, no, no, no, np.array([0.0, 0.0, by]), no, no, MODEL, whole=True)

    def read(t: np.ndarray, wrong: float) -> np.ndarray:
        weights = np.exp(gentle * t[:, None])
        steep = np.exp(np.clip(slopes[2] * t + offsets[2] + wrong, -700, 700))
        return (weights @ values[:2] + steep * values[2]) / (weights.sum(axis=1) + steep)

    for t in 1 + np.linspace(-around, around, 21):
        at, nothing = np.full((1, 1), t), np.zeros((1, 1))
        found = Softmax(part, MODEL).rounding(at, nothing + half, nothing + 2 * half, [np.arange(3)], np.zeros(1))[0]
        s = np.linspace(t - half, t + half, 301)
        worst = max(float(np.abs(read(s, wrong) - read(s, 0.0)).max()) for wrong in (-by, by))
        assert worst <= float(found[0, 0]) <= 1.1 * half + 10 * around


@pytest.mark.parametrize(
    ("steep", "low", "high", "by", "fine", "most"),
    [
        (1e3, -0.2, -0.03, 10.0, 8.0, 1.4),
        (1e3, 0.01, 0.2, 0.0, 8.0, 2.4),
        (1e2, -0.5, -0.12, 10.0, 1e-3, 3.0),
    ],
)
def test_heads_that_lean_beyond_a_kink_are_off_there(
    steep: float, low: float, high: float, by: float, fine: float, most: float
) -> None:
    """Gentle keys that read t, nearly, and a steep one that holds 0 and weighs all where t > 0, its logit off by so
    much: for t' = t -+ 0.02 it is off -relu(-t) where for t it would not be, whatever the strips."""
    lean, gentle, no = 0.02, np.array([-0.1, 0.1]), np.zeros(3)
    slopes, offsets, values = np.array([*gentle, steep]), np.array([0.0, 0.0, np.log(2)]), np.array([-10.0, 10.0, 0.0])
    part = Part(slopes, offsets, values, no, no, no, np.array([0.0, 0.0, by]), no, no, MODEL, whole=True, lean=lean)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("anchorhead.verify.scalar.softmax.FINE", fine)
        found = prove([part], Claim(adversary.expression("-relu(-x)"), 1.0, 0.0, 1.0, 0.0), [(low, high)], MODEL)
    t, s = np.linspace(low, high, 61)[:, None], np.linspace(-lean, lean, 81)
    weights = np.exp(gentle * (t + s)[..., None])
    worst = 0.0
    for wrong in (-by, by):
        weight = np.exp(np.clip(steep * (t + s) + offsets[2] + wrong, -700, 700))
        read = weights @ values[:2] / (weights.sum(axis=2) + weight)
        worst = max(worst, float(np.abs(read - np.minimum(t, 0)).max()))
    assert worst <= found.total <= most * worst


def test_what_is_silent_weighs_nothing() -> None:
    with np.errstate(under="ignore"):
        assert np.exp(np.float64(-rounding.SILENT)) == 0
    part, *_ = adversary.head("tanh, float32")
    far = replace(part, offsets=np.array([0.0, -900.0]))
    assert silent(far, [(-3.0, 3.0)], MODEL).tolist() == [False, True]
    assert not silent(replace(far, wrong=np.array([0.0, 200.0])), [(-3.0, 3.0)], MODEL).any()
    assert not silent(far, [(-60.0, 60.0)], MODEL).any()


@pytest.mark.parametrize("what", ["wrong", "wrong_slope", "value_error", "lean"])
def test_what_a_head_is_off_by_counts(what: str) -> None:
    """Logits, values and arguments moved as far as is said, towards what hurts."""
    part, claim, ends, _ = adversary.head("tanh, float32")
    by = 1e-3
    worse = replace(part, **{what: by if what == "lean" else np.full(2, by)})
    found = prove([worse], claim, [ends], MODEL).total
    t = np.linspace(*ends, 301)
    logits = part.slopes * t[:, None]
    values = part.values + (by if what == "value_error" else 0.0)
    moved = {"wrong": by, "wrong_slope": by * np.abs(t[:, None]), "lean": by}.get(what, 0.0)
    weights = np.exp(logits + np.sign(part.values) * moved)
    read = (weights * values).sum(axis=1) / weights.sum(axis=1)
    worst = float(np.abs(read - np.tanh(t)).max())
    assert 0.9 * worst <= worst * (1 - 1e-9) <= found <= 1.1 * worst + 1e-5


@pytest.mark.parametrize("name", ["logistic, float32"])
def test_scales_and_shifts_of_claims_count(name: str) -> None:
    """tanh(a x + b) as tanh of scale x + shift: the same head with the same error."""
    part, claim, ends, dtype = adversary.head(name)
    scale, shift = float(part.slopes[1]), float(part.offsets[1])
    other = Claim(adversary.expression("tanh(x)"), scale, shift, claim.alpha, claim.beta)
    model = rounding.MODELS[dtype]
    plain, again = (prove([part], one, [ends], model).total for one in (claim, other))
    assert plain == pytest.approx(again, rel=1e-3)


def test_kinks_move_by_what_their_quotients_say() -> None:
    """A head of nothing, against |x|."""
    part, *_ = adversary.head("tanh, float32")
    nothing = replace(part, slopes=np.zeros(2), values=np.zeros(2))
    found = prove([nothing], Claim(adversary.expression("abs(x)"), 1.0, 0.0, 1.0, 0.0), [(-1.0, 1.0)], MODEL).total
    assert 1.0 <= found <= 1.01


def test_keys_that_may_weigh_something_are_kept() -> None:
    part, *_ = adversary.head("tanh, float32")
    far = replace(part, slopes=np.zeros(2), offsets=np.array([0.0, -100.0]))
    for wrong, kept in ((0.0, 1), (30.0, 2)):
        softmax = Softmax(replace(far, wrong=np.array([0.0, wrong])), MODEL)
        ((near, leak),) = softmax.windows(np.zeros(1), np.ones(1))
        assert len(near) == kept
        assert leak >= (np.exp(-100.0) if kept == 1 else 0.0)


def test_of_many_keys_those_matter_that_do_on_some_cell() -> None:
    """Even anchors, on cells of one of them each: with others that matter there, and what all others weigh counts."""
    part, *_ = adversary.head("ramp, float64")
    places = np.arange(2.0 * MANY)
    every = part.only(np.zeros(2 * MANY, int))
    even = Softmax(replace(every, slopes=6 * places, offsets=-3 * places**2), MODEL)
    t = np.arange(10.0, 20.0)
    assert even.windows(t[:0], t[:0]) == []
    for middle, (near, leak) in zip(t, even.windows(t, np.full(10, 0.5)), strict=True):
        assert near[0] == middle
        assert set(near.tolist()) == set(range(int(middle) - 6, int(middle) + 7))
        assert 0 < leak < 1e-35
    low = Softmax(replace(every, slopes=0 * places, offsets=np.where(places > 0, -95.0, 0.0)), MODEL)
    for near, leak in low.windows(np.zeros(2), np.ones(2)):
        assert near.tolist() == [0]
        assert leak >= (2 * MANY - 1) * np.exp(-95.0)


def test_slopes_of_a_softmax_are_enclosed() -> None:
    """On cells, beside what series have at their points."""
    rng = np.random.default_rng(0)
    no = np.zeros(4)
    for _ in range(20):
        slopes, offsets, values = rng.normal(size=(3, 4)) * [[9.0], [1.0], [3.0]]
        softmax = Softmax(Part(slopes, offsets, values, no, no, no, no, no, no, MODEL), MODEL)
        keys, (at, half) = rng.permutation(4), rng.uniform(0, 1, 2) * [1.0, 1e-3]
        with precision():
            found = softmax.slope(exact(at) + arb(0, 1) * exact(half), keys)
            for t in np.linspace(at - half, at + half, 7)[1:-1].tolist():
                assert found.contains(coefficient(softmax.series(exact(t), arb(1), keys, 2), 1))


def test_keys_that_lean_towards_the_heaviest_are_kept() -> None:
    """Slopes -1, 0 and 1, the middle one 100 below: it is the heaviest where t is 200 less than is said."""
    part, *_ = adversary.head("ramp, float32")
    few = replace(part.only(np.arange(3)), slopes=np.array([-1.0, 0.0, 1.0]), offsets=np.array([-1000.0, 0.0, 0.0]))
    for lean, kept in ((0.0, 1), (5.0, 1), (20.0, 2)):
        ((near, leak),) = Softmax(replace(few, lean=lean), MODEL).windows(np.full(1, 100.0), np.zeros(1))
        assert len(near) == kept
        assert leak >= (np.exp(lean - 100.0) if kept == 1 else 0.0)


@pytest.mark.parametrize("wrong", [0.0, 1e-3])
def test_products_with_slopes_that_are_off_round(wrong: float) -> None:
    """A slope of 1 rounds nothing, and a slope of 0 is no term, unless they are just close to that."""
    part, *_ = adversary.head("tanh, float32")
    nothing, one = np.zeros(2), np.ones(2)
    few = replace(part, slopes=np.array([0.0, 1.0]), offsets=one, sizes=one, exact_sizes=one, terms=one, wrong=nothing)
    off = replace(few, wrong_slope=np.full(2, wrong)).logit_error(np.full(1, 8.0), np.full(2, 9.0)) - 8 * wrong
    least = MODEL.unit * np.array([1.0, 17.0]) if wrong else MODEL.unit * np.array([0.0, 9.0])
    assert (off >= least * (1 - 1e-6)).all()
    assert (off <= least * (1 + 1e-2) + MODEL.unit * 16 * wrong + 1e-30).all()


def test_keys_that_are_left_out_may_hold_more_than_is_known() -> None:
    part, *_ = adversary.head("tanh, float32")
    far = replace(part, slopes=np.zeros(2), offsets=np.array([0.0, -100.0]), values=np.zeros(2))
    softmax = Softmax(replace(far, value_error=np.array([0.0, 1e40])), MODEL)
    ((near, leak),) = softmax.windows(np.zeros(1), np.ones(1))
    here = np.zeros((1, 1))
    error = softmax.rounding(here, here, here, [near], np.array([leak]))[0]
    assert float(error[0, 0]) >= max(float(np.exp(-100.0)), MODEL.tiny) * 1e40


def test_weights_on_a_piece_are_no_larger_than_is_said() -> None:
    part, _, ends, _ = adversary.head("ramp, float32")
    softmax = Softmax(part, MODEL)
    t, half = np.linspace(*ends, 13)[None], 0.5 * np.ones((1, 13))
    upper = softmax.pieces(t, half, 0 * half, [np.arange(len(part.slopes))]).upper[0]
    for step in np.linspace(-0.5, 0.5, 21):
        z = part.slopes * (t[0, :, None] + step) + part.offsets
        logs = z - z.max(axis=1, keepdims=True)
        assert (logs - np.log(np.exp(logs).sum(axis=1, keepdims=True)) <= upper).all()


def test_forms_hold_what_they_say() -> None:
    """Sums and maps of forms at corners of quantities and of errors."""
    rng, quantities = np.random.default_rng(1), Quantities()
    ids = quantities.add(np.array([-1.0, 2.0]), np.array([3.0, 5.0]))
    shape = (1, 3)
    x, y = (
        Forms(ids, rng.normal(size=(*shape, 2)), rng.normal(size=shape), rng.random(shape), rng.random(shape))
        for _ in range(2)
    )
    weight, bias = rng.normal(size=(2, 3)), rng.normal(size=2)
    total, map_ = summed([x, y], quantities), mapped(weight, bias, x, quantities, MODEL)
    for corner in product((-1.0, 3.0), (2.0, 5.0)):
        at = np.array(corner)
        ends = [one.coefficients @ at + one.constant for one in (x, y)]
        for sign in (-1, 1):
            both = sum(end + sign * one.error for end, one in zip(ends, (x, y), strict=True))
            away = np.abs(both - total.coefficients @ at - total.constant)
            assert (away <= total.error * (1 + 1e-9)).all()
            assert (away >= 0.999 * total.error).all()
            low, high = total.ends(quantities)
            assert ((low <= both) & (both <= high)).all()
            for row in range(2):
                read = (ends[0] + sign * np.sign(weight[row]) * x.error) @ weight[row] + bias[row]
                held = map_.coefficients[0, row] @ at + map_.constant[0, row]
                assert abs(float(read[0]) - held) <= map_.error[0, row]
    assert total.size(quantities).max() >= np.abs(total.constant).max()


def test_a_map_that_may_overflow_is_refused() -> None:
    with pytest.raises(Exception, match="overflow"):
        mapped(np.full((1, 1), 2.0**100), None, Forms.constants(np.full((1, 1), 2.0**30)), Quantities(), MODEL)


def test_gaps_of_steep_logits_are_known() -> None:
    """(a_top - a_k) t + g_top - g_k where float64 loses it, beside fractions."""
    rng = np.random.default_rng(2)
    t = rng.normal(size=(40, 1))
    slopes = 1e12 * rng.normal(size=2)
    for row in t:
        offsets = np.array([-slopes[0] * row[0], -slopes[1] * row[0] + 1e-3])
        found, unsure = gaps(slopes, offsets, row, np.zeros((), int))
        x, a, g = Fraction(float(row[0])), [*map(Fraction, slopes.tolist())], [*map(Fraction, offsets.tolist())]
        exactly = (a[0] - a[1]) * x + g[0] - g[1]
        assert abs(Fraction(float(found[1])) - exactly) <= Fraction(float(unsure[1]))
        assert unsure[1] < 1e-9


@pytest.mark.parametrize("keys", [2, 5])
def test_what_constant_logits_are_off_by_counts(keys: int) -> None:
    rng, by = np.random.default_rng(keys), 1e-3
    offsets, values = rng.normal(size=keys), rng.normal(size=keys)
    nothing = np.zeros(keys)
    mean = np.exp(offsets) @ values / np.exp(offsets).sum()
    moved = np.exp(offsets + by * np.sign(values - mean))
    for wrong, steep, far in ((by, 0.0, 0.0), (0.0, by / 4, 4.0)):
        errors = np.full(keys, wrong), np.full(keys, steep), nothing
        part = Part(nothing, offsets, nothing, nothing, nothing, nothing, *errors, MODEL)
        found, size = constant_softmax(part, far, Forms.constants(values[:, None]), Quantities(), MODEL)
        assert abs(moved @ values / moved.sum() - float(found.constant[0, 0])) <= float(found.error[0, 0])
    assert float(size[0]) >= abs(mean)


def test_what_is_not_known_exactly_is_no_zero() -> None:
    one, zero = np.ones((1, 1)), np.zeros((1, 1))
    ids, none = np.zeros(0, int), np.zeros((1, 1, 0))
    assert Forms(ids, none, zero, zero, zero).zero.all()
    for unknown in (
        Forms(ids, none, zero, one, zero),
        Forms(ids, none, zero, zero, one),
        Forms(ids, none, one, zero, zero),
    ):
        assert not unknown.zero.any()
        assert unknown.fixed.all()


def test_a_bias_that_cancels_costs_what_is_rounded() -> None:
    """A feature of 10^6 and its opposite: what float64 loses is a part of what is left, and is counted."""
    rng = np.random.default_rng(12)
    for by in (1.0, -2.0, 0.25):
        for _ in range(50):
            constant, weight = rng.normal() * 1e6, np.array([[0.0, by, 0.0]])
            bias = np.array([-by * constant + rng.normal() * 10.0 ** rng.integers(-12, 7)])
            x = Forms.constants(np.array([[0.0, constant, 0.0]]))
            found = mapped(weight, bias, x, Quantities(), EXACT)
            exactly = Fraction(by) * Fraction(constant) + Fraction(float(bias[0]))
            lost = abs(exactly - Fraction(float(found.constant[0, 0])))
            assert lost <= found.rounding[0, 0] <= 4 * 2.0**-53 * abs(found.constant[0, 0])


def test_products_with_exact_powers_of_two_alone_are_exact() -> None:
    """A constant that one weight makes of another: as exact as that was where either is a power of two."""
    weight, off = float(np.float32(0.1)), 1e-3
    for constant, exactly in ((1.0, True), (0.25, True), (3.0, False)):
        for error in (0.0, off):
            x = Forms.constants(np.array([[constant]]))
            x = Forms(x.ids, *x.arrays[:3], np.full((1, 1), error))
            found = float(mapped(np.array([[weight]]), None, x, Quantities(), MODEL).rounding[0, 0])
            carried = weight * error
            least = Fraction(carried) + (
                0 if exactly and not error else Fraction(MODEL.unit) * Fraction(weight * constant)
            )
            assert (found == 0) == (exactly and not error)
            assert Fraction(found) >= least
