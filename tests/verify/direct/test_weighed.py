"""Groups of a Softmax that are computed as heads of one base: the base is the one that runs, and what it is off by is
counted."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import anchorhead.network.direct.weighed as library
from anchorhead.network.direct import Refused
from anchorhead.verify import groups
from anchorhead.verify.context import Context
from anchorhead.verify.direct import NOTHING, Directly, Weighed
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.forms import Forms
from anchorhead.verify.grammar import Linear, Softmax
from anchorhead.verify.joint import Taken
from anchorhead.verify.named import Table
from anchorhead.verify.reach import within_reach
from anchorhead.verify.rounding import MODELS, SILENT

from ..heads.test_claims import claims
from ..naming import each
from . import heads_directly

KINK, LINE = "a kink, float32", "a line, float32"
SMOOTH = np.array([-30.0, 30.0]), np.array([0.0, 0.0]), np.array([-1.0, 0.7])
"""A head without a series, of which one key or the other is read."""


def table(keys: heads_directly.Keys, dtype: str, seed: int, outputs: int = 3, count: int = 4) -> np.ndarray:
    """Values (outputs, groups, keys) that are multiples of a head's, as the dtype has them."""
    takes = np.random.default_rng(seed).normal(size=(outputs, count))
    return (takes[..., None] * keys[2]).astype(dtype).astype(np.float64)


def test_groups_whose_logits_differ_in_the_sign_of_a_0_have_one_base() -> None:
    slopes, offsets, values = np.array([-1.0, 0.0, 1.0]), np.zeros(3), np.array([[[-4.0, 0.0, 4.0], [-2.0, 0.0, 2.0]]])
    logits = [(slopes, sign * offsets, (-1.0, 1.0)) for sign in (1.0, -1.0)]
    one, other = Directly(replace(MODELS["float32"], direct=True)).weighed(logits, values)
    assert one is not None
    assert other is not None
    assert one.base.tolist() == other.base.tolist() == [-4.0, 0.0, 4.0]
    assert other.take.tolist() == [0.5]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", [KINK, "two kinks, float64"])
def test_bases_are_those_that_run(name: str, seed: int) -> None:
    """With a key that is out of reach, whose values say nothing, and in any order."""
    (a, g, _), dtype, low, high = heads_directly.HEADS[name]
    values, rng = table(heads_directly.HEADS[name][0], dtype, seed), np.random.default_rng(seed)
    values = np.concatenate([values, rng.normal(size=(3, 4, 1)) * 1e9], axis=2)
    order = rng.permutation(len(a) + 1)
    slopes, offsets, values = np.append(a, 0.0)[order], np.append(g, -1e4)[order], values[:, :, order]
    model = replace(MODELS[dtype], direct=True)
    ours, theirs = _both(slopes, offsets, values, dtype, (low, high))
    assert None not in ours
    live = np.lexsort((offsets, slopes))
    live = live[live != int(np.flatnonzero(order == len(a))[0])]
    for n, one in enumerate(ours):
        assert one is not None
        np.testing.assert_array_equal(one.base[live], theirs.keys.values[:, 0])
        np.testing.assert_array_equal(np.flatnonzero(one.live), np.sort(live))
        np.testing.assert_array_equal(one.take, theirs.takes[:, n])
        keys = slopes[live], offsets[live], one.base[live]
        for softmax in (True, False):
            read = Directly(model, heads_directly.stored(keys, dtype)).read(*keys, (low, high), softmax=softmax)
            assert read != NOTHING
            assert one.read(softmax=softmax) == read


def test_groups_of_one_base_are_counted_on_all_of_their_intervals() -> None:
    """In any order: what one of them asks beyond the others, its series may be asked."""
    keys, dtype, low, high = heads_directly.HEADS[LINE]
    values, model = table(keys, dtype, 0, count=2), replace(MODELS[dtype], direct=True)
    base = library.Weighed.of(*keys[:2], values, dtype).keys.column(0)
    stored = heads_directly.stored(base, dtype)
    whole = Directly(model, stored).read(*base, (low, high))
    for first, other in (((low, low / 4), (low, high)), ((low / 4, high), (low, high / 4))):
        logits = [(*keys[:2], first), (*keys[:2], other)]
        for found in Directly(model, stored).weighed(logits, values):
            assert found is not None
            assert found.read(softmax=True) == whole


def _both(
    slopes: np.ndarray, offsets: np.ndarray, values: np.ndarray, dtype: str, ends: tuple[float, float]
) -> tuple[list[Weighed | None], library.Weighed]:
    logits = [(slopes, offsets, ends)] * values.shape[1]
    theirs = library.Weighed.of(slopes, offsets, values, dtype)
    stored = heads_directly.stored(theirs.keys.column(0), dtype)
    return Directly(replace(MODELS[dtype], direct=True), stored).weighed(logits, values), theirs


def test_what_are_no_multiples_is_computed_as_it_is() -> None:
    """Two units make no difference, forty do: then nothing is computed so, and nothing need be counted."""
    keys, dtype, low, high = heads_directly.HEADS[KINK]
    values = table(keys, dtype, 0)
    values[1, 2, 1] *= 1 + 2 * MODELS[dtype].unit
    assert None not in _both(*keys[:2], values, dtype, (low, high))[0]
    values[1, 2, 1] *= 1 + 40 * MODELS[dtype].unit
    with pytest.raises(Refused, match="multiples"):
        library.Weighed.of(*keys[:2], values, dtype)
    logits = [(*keys[:2], (low, high))] * values.shape[1]
    assert Directly(replace(MODELS[dtype], direct=True)).weighed(logits, values) == [None] * 4


@pytest.mark.parametrize("name", [KINK, "smooth"])
def test_groups_are_off_by_no_more_than_is_counted(name: str) -> None:
    """What outputs take of heads, against what they are said to take of what is proven, in fractions."""
    keys, dtype = (SMOOTH, "float32") if name == "smooth" else heads_directly.HEADS[name][:2]
    values = table(keys, dtype, 1, 4, 5)
    context, taken, _ = _valued(keys, values, dtype, (-2.0, 2.0), True)
    heads = context.directly.weighed([(*keys[:2], (-2.0, 2.0))] * 5, values)
    for mine, head in zip(taken, heads, strict=True):
        assert head is not None
        (part,) = mine.unit.parts
        error, size, series = head.read(softmax=False)
        for o, (take, off) in enumerate(zip(mine.take, mine.off, strict=True)):
            own = [Fraction(head.take[o]) * Fraction(one) for one in head.base]
            meant = [Fraction(take) * Fraction(one) for one in part.values]
            assert max(abs(x - y) for x, y in zip(own, meant, strict=True)) <= Fraction(off)
            assert abs(head.take[o]) * error <= abs(take) * part.direct[0]
            assert abs(head.take[o]) * size <= abs(take) * part.direct[1]
            if part.series is not None:
                assert series is not None
                apart = Fraction(head.take[o]) * Fraction(series.alpha) - Fraction(take) * Fraction(part.series.alpha)
                assert abs(apart) * Fraction(size) <= Fraction(off)
                assert replace(part.series, alpha=series.alpha) == series
        assert (part.direct[0] > 0) == (part.series is not None) == (name != "smooth")


def test_large_series_are_counted_where_outputs_take_a_little_more_or_less() -> None:
    """What outputs take is no exact multiple of what they are said to take: of a series of size 1e6 that is much."""
    keys, dtype = heads_directly.HEADS[KINK][:2]
    values = table(keys, dtype, 1, 4, 5)
    context, taken, _ = _valued(keys, values, dtype, (-2.0, 2.0), True, 1e6)
    for mine, head in zip(taken, context.directly.weighed([(*keys[:2], (-2.0, 2.0))] * 5, values), strict=True):
        assert head is not None
        _, size, series = head.read(softmax=False)
        (part,) = mine.unit.parts
        assert size >= 1e6
        assert series is not None
        assert part.series is not None
        for own, take, off in zip(head.take, mine.take, mine.off, strict=True):
            apart = Fraction(own) * Fraction(series.alpha) - Fraction(take) * Fraction(part.series.alpha)
            assert abs(apart) * Fraction(size) <= Fraction(off)


def test_keys_of_which_cannot_be_told_whether_they_are_heard_are_refused() -> None:
    """One that is SILENT below the others, by less than is noise; and one that overflows where others meet."""
    offsets = np.array([-SILENT - 5e-10, -1.0, 0.0])
    overflows = np.array([-2e155, 0.0, 1e150]), np.array([0.0, 0.0, -1e303])
    for keys in ((np.ones(3), offsets), overflows):
        with np.errstate(all="ignore"), pytest.raises(NotVerified, match="cannot be told"):
            within_reach(*keys)
    assert within_reach(np.ones(3), offsets - np.array([1e-6, 0.0, 0.0])).tolist() == [False, True, True]


def test_groups_of_one_base_have_one_series() -> None:
    """So that they are proven once, whatever is rounded in what outputs take of them."""
    keys, dtype = heads_directly.HEADS[KINK][:2]
    _, taken, _ = _valued(keys, table(keys, dtype, 1, 4, 5), dtype, (-2.0, 2.0), True)
    assert len({mine.unit.parts[0].series for mine in taken}) == 1


def test_groups_that_are_alone_are_granted_more() -> None:
    """One product with what is read, and the rounding of what is taken, have no other terms to hide behind; so it is of
    an output that takes one of several groups."""
    row = np.array([-1.0, 0.7])
    for takes in ([[1.0], [0.1]], [[1.0, 0.0], [0.1, 0.0], [0.0, 0.5]]):
        values = (np.array(takes)[:, :, None] * row).astype("float32").astype(np.float64)
        _, (mine, *_), _ = _valued(SMOOTH, values, "float32", (-2.0, 2.0), True)
        assert (mine.off >= 2 * MODELS["float32"].unit * np.abs(values[:, 0]).max(axis=1)).all()


def test_groups_of_which_one_key_is_heard_are_as_far_off_as_their_series() -> None:
    """On the left of its kink a head reads 0 as a softmax, but not by its series; on the right of a steep one that is
    no softmax what outputs take of the base is off."""
    (*logits, read), dtype, low, _ = heads_directly.HEADS[KINK]
    keys = (*logits, (read - read[0]).astype(dtype).astype(np.float64))
    values = table(keys, dtype, 2)
    assert not values[:, :, 0].any()
    context, taken, found = _valued(keys, values, dtype, (low, low / 2))
    assert not taken
    heads = context.directly.weighed([(*keys[:2], (low, low / 2))] * 4, values)
    wrong = np.zeros(3)
    for head in heads:
        assert head is not None
        wrong += np.abs(head.take) * head.read(softmax=True)[0]
    assert (wrong > 0).all()
    assert (found.rounding[0] >= wrong).all()
    values = table(SMOOTH, dtype, 3)
    context, taken, found = _valued(SMOOTH, values, dtype, (50.0, 60.0))
    assert not taken
    heads = context.directly.weighed([(*SMOOTH[:2], (50.0, 60.0))] * 4, values)
    own = np.zeros(3)
    for n, head in enumerate(heads):
        assert head is not None
        own += np.abs(head.take * head.base[1] - values[:, n, 1])
    assert (own > 0).any()
    assert (found.rounding[0] >= own).all()


def test_groups_of_which_one_key_is_heard_may_follow_what_is_claimed_of_them() -> None:
    """Their series need not be constant where that key is all that softmaxes hear."""
    keys, dtype, low, _ = heads_directly.HEADS[KINK]
    _, taken, _ = _valued(keys, table(keys, dtype, 2), dtype, (low, low / 2), True)
    assert [mine.unit.parts[0].series is not None for mine in taken] == [True] * 4


def test_groups_of_constants_are_refused() -> None:
    """What no input reaches may be summed beforehand, and need not be the constant that softmaxes are proven for."""
    context = Context(claims()[0].exact, replace(MODELS["float32"], direct=True), Table())
    tokens = {"input": Forms.constants(np.array([[0.3]]))}
    before, after = Linear(np.array([[1.0], [-1.0]]), None, None), Linear(np.array([[1.0, -1.0]]), None, None)
    with pytest.raises(NotVerified, match="multiples of a constant"):
        groups.after_groups(context, before, Softmax((2,)), after, tokens, tokens, 0)


def _valued(
    keys: heads_directly.Keys,
    values: np.ndarray,
    dtype: str,
    ends: tuple[float, float],
    named: bool = False,
    shift: float = 0.0,
) -> tuple[Context, list[Taken], Forms]:
    """Groups on one number between the ends: what is taken of what is explained, which is then left out; named: whether
    the derivation has the head; shift: what is added to its series."""
    exact = claims()[0].exact
    base = library.Weighed.of(*keys[:2], values, dtype).keys.column(0)
    stored = [replace(one, shift=one.shift + shift) for one in heads_directly.stored(base, dtype)]
    table = each(values.shape[1], keys[2]) if named else Table()
    context = Context(exact, replace(MODELS[dtype], direct=True), table, series=stored)
    half, middle = (ends[1] - ends[0]) / 4, (ends[1] + ends[0]) / 2  # of a quantity between -2 and 2
    t = Forms(exact.inputs, np.full((1, 1, 1), half), np.full((1, 1), middle), *np.zeros((2, 1, 1)))
    count, size = values.shape[1:]
    before = Linear(np.tile(keys[0], count)[:, None], np.tile(keys[1], count), None)
    after = Linear(values.reshape(len(values), -1), None, None)
    taken: list[Taken] = []

    def told(context: Context, rows: list[list[Taken]], where: str) -> list[list]:
        taken.extend(rows[0])
        return [[]]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups, "read", told)
        found = groups.after_groups(context, before, Softmax((size,) * count), after, {"input": t}, {"input": t}, 0)
    return context, taken, found["input"]
