"""What no lemma explains is bounded: means lie between values, as far as computed weights add up to 1."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from anchorhead.verify import rounding
from anchorhead.verify.attention import after_attention
from anchorhead.verify.context import Context, Reads
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.forms import Forms
from anchorhead.verify.grammar import Attention, Linear
from anchorhead.verify.joint import Taken, _joined, _together, joint
from anchorhead.verify.named import Table
from anchorhead.verify.scalar.part import Claim

from ..heads.test_claims import claims
from ..naming import TANH

MODEL = rounding.MODELS["float32"]
STRAIGHT = Claim(None, 1.0, 0.0, 1.0, 0.0)
VALUES = np.array([[-3.0, 1.0], [0.5, 2.0], [2.0, -1.0]])


def context() -> Context:
    return Context(claims()[0].exact, MODEL, Table())


def ends(reads: Reads, within: Context) -> tuple[np.ndarray, np.ndarray]:
    low, high = reads.form.ends(within.quantities)
    return low[0], high[0]


def test_a_mean_lies_between_the_values() -> None:
    within = context()
    off = Forms(np.zeros(0, int), np.zeros((3, 2, 0)), VALUES, np.full((3, 2), 0.1), np.zeros((3, 2)))
    low, high = ends(within.anything(np.eye(2), off, "here"), within)
    room = 3 * MODEL.unit * np.abs(VALUES).max(axis=0)  # weights that add up to 1 but for three roundings
    assert (low <= VALUES.min(axis=0) - 0.1 - room).all()
    assert (high >= VALUES.max(axis=0) + 0.1 + room).all()
    assert (high <= VALUES.max(axis=0) + 0.101).all()


def test_parts_of_a_unit_lie_between_their_values() -> None:
    within, (_, unit) = context(), claims()
    (part,) = unit.parts
    off = replace(part, value_error=np.full(2, 0.1))
    low, high = ends(within.between(np.ones(1), replace(unit, parts=(off, off))), within)
    assert float(low[0]) <= -2.2 <= 2.2 <= float(high[0]) <= 2.21
    found = within.between(np.ones(1), replace(unit, parts=(replace(part, direct=(0.3, 7.0)),)))
    low, high = ends(found, within)
    assert float(low[0]) <= -1.3 <= 1.3 <= float(high[0]) <= 1.31
    assert float(found.size[0]) >= 7.0
    series = replace(part, direct=(0.3, 7.0), series=STRAIGHT)
    low, high = ends(within.between(np.ones(1), replace(unit, parts=(series,))), within)
    assert float(low[0]) <= -7.3 <= 7.3 <= float(high[0]) <= 7.31


def test_sums_count_the_sizes_of_all_that_they_add() -> None:
    """Reads that cancel are added with the rounding of what they stand for."""
    within = context()
    none = np.zeros((1, 1))
    zero = Forms(np.zeros(0, int), np.zeros((1, 1, 0)), none, none, np.full((1, 1), 1e-9))
    reads = [Reads(np.ones((1, 1)), zero, np.array([1e6]), np.ones(1)) for _ in range(3)]
    found = within.added(reads, np.array([0.25]), None, None)
    assert float(found.constant[0, 0]) == 0.25
    assert float(found.rounding[0, 0]) >= 2 * MODEL.unit * 3e6
    own = within.added(reads[:1], None, Forms.constants(np.array([[2.0]])), np.array([[3.0]]))
    assert float(own.constant[0, 0]) == 6.0


def test_tokens_that_nobody_reads_are_bounded() -> None:
    within, output = context(), np.array([[[2.0]]])
    none, one, skip = np.zeros((1, 1, 1)), np.ones((1, 1, 1)), Linear(np.eye(1), None, None)
    layer = Attention(none, none, one, output, np.array([1.0]), None, skip, None)
    tokens = {"input": Forms.constants(np.array([[5.0]])), "register": Forms.constants(VALUES[:, :1])}
    found = after_attention(within, layer, tokens, set(), 0)
    low, high = found["input"].ends(within.quantities)
    assert float(low[0, 0]) <= 6.0 + 2 * VALUES[:, 0].min()
    assert float(high[0, 0]) >= 6.0 + 2 * 5.0
    low, high = found["register"].ends(within.quantities)
    assert (low <= VALUES[:, :1] + 1.0 + 2 * VALUES[:, 0].min()).all()
    assert (high >= VALUES[:, :1] + 1.0 + 2 * 5.0).all()


def test_logits_that_may_overflow_are_refused() -> None:
    """Queries and keys of 2^65 are numbers of float32, their product is none: whoever reads it, or nobody; by large
    weights or by large tokens."""
    within, one = context(), np.ones((1, 1, 1))
    for (weights, token), asking in product(((2.0**65, 1.0), (1.0, 2.0**65)), ({"input"}, set[str]())):
        layer = Attention(weights * one, weights * one, one, one, None, None, None, None)
        with pytest.raises(NotVerified, match="logit may overflow"):
            after_attention(within, layer, {"input": Forms.constants(np.full((2, 1), token))}, asking, 0)


def test_units_in_numbers_that_differ_lean_by_the_errors_of_both() -> None:
    known, unit = claims()
    t, quantities = unit.reading.t, known.quantities
    mine, theirs = (Forms(t.ids, t.coefficients, t.constant + by, *[np.full((1, 1), 0.1)] * 2) for by in (0.0, 0.5))
    units = [replace(unit, reading=replace(unit.reading, t=one, ends=(-2.2, 2.7))) for one in (mine, theirs)]
    first, second = joint(units, quantities).parts
    assert first.lean == 0.0
    assert second.lean >= 0.4
    np.testing.assert_allclose(second.offsets, unit.parts[0].offsets + 0.5 * unit.parts[0].slopes)
    low, high = joint(units, quantities).reading.ends
    assert low <= -2.7
    assert high >= 2.7
    off = [replace(one, parts=(replace(one.parts[0], wrong_slope=np.full(2, 1e-3)),)) for one in units]
    assert (joint(off, quantities).parts[1].wrong >= 0.5e-3).all()


def test_what_is_taken_of_units_that_are_joined_is_off_by_no_more() -> None:
    """Two of one head, of which outputs take nearly the same, or nearly a multiple: off by what they take otherwise,
    and by a rounding where products with a power of two would have none. Their numbers may round apart."""
    _, unit = claims()
    unit = replace(unit, reading=replace(unit.reading, number=1, rounded=0.25))
    take, near, most = np.array([2.0, -1.0]), np.array([0.0, 1e-13]), float(np.abs(unit.parts[0].values).max())
    units = (replace(unit, reading=replace(unit.reading)) for _ in range(2))
    first, second = (Taken(one, np.full(2, 1e-9), of) for one, of in zip((take, take + near), units, strict=True))
    (same,) = _joined(context(), [first, second])
    assert [part.lean for part in same.unit.parts] == [0.0, pytest.approx(0.5)]
    assert same.unit.parts[1].lean >= 0.5
    assert (same.off >= 2e-9 + (near + MODEL.unit * np.array([0.0, 1.0])) * most).all()
    assert (same.off <= 2e-9 + (near + MODEL.unit * np.array([0.0, 1.01])) * 1.002 * most).all()
    (column,) = _joined(context(), [first, replace(first)])
    assert [part.lean for part in column.unit.parts] == [0.0, 0.0]
    another = replace(second, unit=replace(unit, claimed=None))
    assert len(_joined(context(), [first, another, replace(another)])) == 3
    later = replace(second, unit=replace(second.unit, claimed=replace(TANH, order=1)))
    (turned,) = _joined(context(), [later, first])
    np.testing.assert_array_equal(turned.take, take)
    loose = replace(unit, parts=(replace(unit.parts[0], value_error=np.full(2, 1e12)),))
    (same,) = _joined(context(), [first, replace(second, unit=loose)])
    assert same.off[1] >= 0.1
    third = Taken(3 * take + near, np.full(2, 1e-9), unit)
    both = _together(context(), [replace(first, keys=2), replace(third, keys=3)])
    assert both.keys == 5
    rounded = np.array([6.0, 3.0]) * MODEL.unit
    assert (both.off >= 2e-9 + (near + rounded) * most).all()
    assert (both.off <= 2e-9 + (near + rounded + 1e-14) * 1.002 * most).all()
    np.testing.assert_array_equal(both.unit.parts[1].values, 3 * unit.parts[0].values)
    nothing = np.zeros(2)
    thrice = _together(context(), [Taken(one, nothing, unit) for one in (3 * take, take)])
    assert (thrice.off >= 2.0**-53 * np.abs(take) * most).all()  # a third of the values is rounded
    (part,) = unit.parts
    loud = replace(part, value_error=np.full(2, 1e-3), direct=(1e-3, 7.0), series=STRAIGHT)
    worse = replace(unit, parts=(loud,))
    found = _together(context(), [first, replace(third, unit=worse)]).unit.parts[1]
    assert (found.value_error >= 3e-3).all()
    assert found.direct >= (3e-3, 21.0)
    assert found.series == replace(STRAIGHT, alpha=3.0)


def test_numbers_of_opposite_signs_that_nearly_agree_lean_by_how_far_they_are_apart() -> None:
    known, unit = claims()
    t, zero = unit.reading.t, np.zeros((1, 1))
    away = 1e-11 * t.coefficients
    theirs = Forms(t.ids, -t.coefficients + away, 0.25 - t.constant, zero, zero)
    mine = Forms(t.ids, t.coefficients, t.constant, zero, zero)
    part = replace(unit.parts[0], series=STRAIGHT)
    unit = replace(unit, parts=(part,))
    one, other = (replace(unit, reading=replace(unit.reading, t=form)) for form in (mine, theirs))
    first, second = joint([one, other], known.quantities).parts
    assert (first.series, second.series) == (STRAIGHT, replace(STRAIGHT, scale=-1.0, shift=0.25))
    assert second.lean >= float(np.abs(away[0, 0]) @ known.quantities.size(t.ids)) > 0
    np.testing.assert_array_equal(second.slopes, -part.slopes)
    np.testing.assert_allclose(second.offsets, part.offsets + 0.25 * part.slopes)
