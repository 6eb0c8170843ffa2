"""The lemmas of the evaluation "direct": series, keys left out and folded sums err by no more than is said."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import arb

from anchorhead.network.direct import saturated
from anchorhead.network.direct.keys import Keys
from anchorhead.verify import series
from anchorhead.verify.attention import after_attention
from anchorhead.verify.balls import precision
from anchorhead.verify.claims import Unit
from anchorhead.verify.context import Context
from anchorhead.verify.direct import NOTHING, Directly
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.forms import Forms, Quantities, joined, mapped
from anchorhead.verify.grammar import Attention
from anchorhead.verify.named import Table
from anchorhead.verify.reach import within_reach
from anchorhead.verify.rounding import MODELS, SILENT
from anchorhead.verify.scalar.cells import prove
from anchorhead.verify.series import that_runs

from ..files import report
from ..heads import adversary
from ..heads.test_claims import claims
from . import heads_directly


@pytest.mark.parametrize("name", heads_directly.HEADS)
def test_series_err_by_no_more_than_is_derived(name: str) -> None:
    assert heads_directly.library_holds(name)
    assert 0.1 < heads_directly.worst_share(name) <= 1


def test_ends_of_series_are_numbers_of_the_dtype() -> None:
    """Or the dtype would clip elsewhere than it is proven."""
    keys, dtype, *_ = heads_directly.HEADS["a kink, float32"]
    found = saturated(*keys, dtype)
    assert found is not None
    with pytest.raises(NotVerified, match="float32"):
        heads_directly.as_read(replace(found, low=found.low + 1e-12), dtype)


@pytest.mark.parametrize("power", [(2, 1e39), (5, 1e-30)])
def test_series_that_may_overflow_are_refused(power: tuple[int, float]) -> None:
    """A coefficient, or a power of t, of which the product would be none."""
    mine, _ = heads_directly.both("a line, float32")
    with pytest.raises(NotVerified, match="overflow"):
        replace(mine, powers=(power,)).magnitude(-1e8, 1e8, MODELS["float32"])


QUOTIENTS: dict[str, tuple[tuple[tuple[int, float], ...], tuple[tuple[int, float], ...], float]] = {
    "steep": (((2, 900.0),), ((1, -0.001),), 0.95),
    "towards a pole": (((2, 0.7), (3, 0.3)), ((1, -0.5), (2, -0.3)), 0.7),
    "with a gap": (((2, -0.5), (5, 0.25)), ((4, 0.5),), 0.2),
    "of many powers": (tuple((j, 1.1**-j) for j in range(2, 12)), tuple((j, -0.03) for j in range(1, 9)), 0.6),
}
"""Coefficients above and below, and how much of what is derived is met."""


@pytest.mark.parametrize("name", QUOTIENTS)
def test_quotients_round_by_no_more_than_is_derived(name: str) -> None:
    """Every rounding as far as it may, towards the same side, at the end of the interval; a head has no part in it."""
    above, below, met = QUOTIENTS[name]
    mine, theirs = heads_directly.both("a line, float32")
    found = replace(theirs, coefficients=above, below=below, origin=0.0)
    with precision(300):
        s = arb(1)
        exact = (s + sum(arb(c) * s**j for j, c in above)) / (1 + sum(arb(d) * s**j for j, d in below))
        off = max(float(abs(one - exact)) for one in heads_directly.roundings(found, 1.0, "float32"))
    size, bound = replace(mine, powers=above, below=below, origin=0.0)._computed(-0.5, 1.0, MODELS["float32"])
    assert met <= off / bound <= 1
    assert float(exact) <= size <= 1.3 * float(exact)


def test_quotients_whose_denominators_may_be_0_are_refused() -> None:
    """1 + d s, which is 0 at -1/d: outside of the interval, at its end, within a piece of it that is not its middle."""
    mine, _ = heads_directly.both("a line, float32")
    model = MODELS["float32"]
    replace(mine, below=((1, 0.9),)).magnitude(-1.0, 1.0, model)
    for below in (1.0, 1 / (1 - 1e-9), 1.001, 3.0):
        with pytest.raises(NotVerified, match="denominator"):
            replace(mine, below=((1, below),)).magnitude(-1.0, 1.0, model)


@pytest.mark.parametrize("seed", range(4))
def test_keys_that_are_left_out_weigh_nothing_anywhere(seed: int) -> None:
    """In fractions, at all corners of the largest line; and the library leaves out the same."""
    rng = np.random.default_rng(seed)
    for _ in range(20):
        count = int(rng.integers(2, 9))
        slopes, offsets = rng.normal(size=count) * 10 ** rng.uniform(0, 6), rng.normal(size=count) * 800.0
        slopes[-1] = rng.choice(slopes)
        left = within_reach(slopes, offsets)
        lines = list(zip(map(Fraction, slopes.tolist()), map(Fraction, offsets.tolist()), strict=True))
        corners = [(h - g) / (a - b) for a, g in lines for b, h in lines if a != b] or [Fraction(0)]
        least = [min(max(a * t + g for a, g in lines) - (b * t + h) for t in corners) for b, h in lines]
        assert [one < SILENT for one in least] == left.tolist()
        assert len(Keys(slopes, offsets, offsets[:, None]).live().slopes) == left.sum()


@pytest.mark.parametrize("terms", [1, 2, 3, 9])
def test_folded_sums_err_by_no_more(terms: int) -> None:
    """Reads of a series in a map that takes q: weights rounded twice, products and sums once, each as far as it may,
    towards the same side. The series itself is taken to be exact."""
    keys, dtype, low, high = heads_directly.HEADS["a kink far from 0, float32"]
    model, rng = replace(MODELS[dtype], direct=True), np.random.default_rng(terms)
    u, (found,) = Fraction(model.unit), heads_directly.stored(keys, dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(series.Series, "error", lambda *a: 0.0)
        read = Directly(model, [found]).read(*keys, (low, high))
    assert read != NOTHING
    scale, shift = Fraction(found.scale), Fraction(found.shift)
    for bias in (0.0, 1.0, -1000.0):
        for _ in range(20):
            weight, q = rng.normal(size=terms), rng.uniform(-0.5, 1.0, terms)
            reads = np.array([float(scale * Fraction(one) + shift) for one in q])
            x = Forms.constants(reads[None])
            x = Forms(x.ids, *x.arrays[:3], np.full((1, terms), read[0]))
            size, ones = np.full((1, terms), read[1]), np.ones(terms)
            form = mapped(weight[None], np.array([bias]), x, Quantities(), model, size, ones)
            moved = Fraction(bias) + sum(map(Fraction, weight), Fraction(0)) * shift
            products = sorted((abs(Fraction(a) * scale * Fraction(b)) for a, b in zip(weight, q, strict=True)))[::-1]
            worst = abs(moved) * ((1 + u) ** (terms + 1) - 1)  # the first of all sums
            worst += sum(one * ((1 + u) ** (3 + terms - n) - 1) for n, one in enumerate(products))
            assert worst <= Fraction(float(form.rounding[0, 0]))


def test_heads_are_as_far_off_as_their_series() -> None:
    part, claim, ends, dtype = adversary.head("tanh, float32")
    plain = prove([part], claim, [ends], MODELS[dtype])
    found = prove([replace(part, direct=(1e-2, 7.0))], claim, [ends], MODELS[dtype])
    assert plain.total < 1e-2 <= found.total <= 1.002 * (plain.total + 1e-2)
    assert (found.reach >= 7.0).all()
    assert (found.mass >= 7.0).all()
    other: Any = replace(part, direct=(1e-3, 9.0))
    assert replace(part, direct=(1e-2, 7.0)).worse(other).direct == (1e-2, 9.0)
    assert not replace(part, direct=(1e-2, 7.0)).covers(other)


def test_softmaxes_of_values_whose_sum_overflows_are_refused() -> None:
    """A GPU divides by the sum of weights last: it adds up 8 values of 8e37."""
    model, nothing = replace(MODELS["float32"], direct=True), np.zeros(8)
    slopes = np.arange(8.0)
    assert Directly(model).read(slopes, nothing, np.full(8, 5e36), (-1.0, 1.0)) == NOTHING
    with pytest.raises(NotVerified, match="overflow"):
        Directly(model).read(slopes, nothing, np.full(8, 8e37), (-1.0, 1.0))


def test_equal_heads_are_counted_on_all_of_their_intervals() -> None:
    keys, dtype, low, high = heads_directly.HEADS["a line, float32"]
    stored = heads_directly.stored(keys, dtype)
    known, alone = (Directly(replace(MODELS[dtype], direct=True), stored) for _ in range(2))
    some, more = (known.read(*keys, (part * low, part * high)) for part in (0.5, 1.0))
    assert some is not None
    assert more is not None
    assert more == alone.read(*keys, (low, high))
    assert some[0] < more[0]


def test_heads_that_may_have_the_keys_of_a_series_are_refused() -> None:
    """Offsets that are off: those of a series by as little as that, or by more; and one of another key."""
    keys, dtype, low, high = heads_directly.HEADS["a kink, float32"]
    directly = Directly(replace(MODELS[dtype], direct=True), heads_directly.stored(keys, dtype))
    slopes, offsets, values = keys
    off = np.where(np.arange(len(slopes)) == 0, 1e-3, 0.0)
    with pytest.raises(NotVerified, match="rounded"):
        directly.read(slopes, offsets + off / 2, values, (low, high), off)
    assert directly.read(slopes, offsets + 4 * off, values, (low, high), off) == NOTHING
    more = [np.append(column, one) for column, one in zip(keys, (0.0, -2000.0, 1.0), strict=True)]
    assert directly.read(*more, (low, high), np.append(0 * off, 1e-3)) != NOTHING


def test_heads_of_more_keys_than_a_series_are_softmaxes() -> None:
    """Unless nothing is heard of the others, anywhere; and one head has one series, of keys in their order."""
    keys, dtype, *_ = heads_directly.HEADS["a kink, float32"]
    (stored,), nothing = heads_directly.stored(keys, dtype), np.zeros(len(keys[0]) + 1)
    for offset in (-1.0, -700.0, -900.0):
        wider = tuple(np.append(one, more) for one, more in zip(keys, (0.0, offset, 5.0), strict=True))
        assert (that_runs([stored], wider, nothing) is stored) == (offset < -SILENT)  # type: ignore[arg-type]
    rounded = np.append(nothing[1:], 50.0)
    assert that_runs([stored], wider, rounded) is stored  # type: ignore[arg-type]
    with pytest.raises(NotVerified, match="some are rounded"):
        that_runs([stored], wider, 3 * rounded)  # type: ignore[arg-type]
    with pytest.raises(NotVerified, match="two series of one head"):
        heads_directly.listed([stored, replace(stored, shift=7.0)], dtype)
    for order in ([1, 0, 2], [0, 0, 1]):
        with pytest.raises(NotVerified, match="sorted"):
            heads_directly.listed([replace(stored, keys=tuple(stored.keys[k] for k in order))], dtype)
    with pytest.raises(NotVerified, match="slopes are all 0"):
        heads_directly.listed([replace(stored, keys=((0.0, -1.0, 0.0), (0.0, 0.0, 1.0)))], dtype)


def test_heads_of_a_network_are_as_far_off_as_their_series() -> None:
    """A head of registers, on an interval where one of its keys is heard, and on one where all are; and with a value
    that is not known exactly."""
    keys, dtype, low, _ = heads_directly.HEADS["a kink, float32"]
    model, exact = replace(MODELS[dtype], direct=True), claims()[0].exact
    query, value = np.eye(3)[None, :2], np.eye(3)[None, 2:]
    layer = Attention(query, query, value, np.ones((1, 1, 1)), None, "registers+states", None, None)
    registers = Forms.constants(np.stack(keys, axis=1))
    for high in (0.5 * low, 1.0):
        half, middle = (high - low) / 4, (high + low) / 2  # of a quantity between -2 and 2
        t = Forms(exact.inputs, np.full((1, 1, 1), half), np.full((1, 1), middle), *np.zeros((2, 1, 1)))
        asker = joined([t, Forms.constants(np.array([[1.0, 0.0]]))], axis=1)
        context = Context(exact, model, Table(), series=heads_directly.stored(keys, dtype))
        told: list[Unit] = []
        context.explained = partial(_not_explained, told)  # type: ignore[method-assign]
        found = after_attention(context, layer, {"input": asker, "register": registers}, {"input"}, 0)
        read = context.directly.read(*keys, (low, high), softmax=high < 0)
        assert read != NOTHING
        if high > 0:
            assert [part.series for unit in told for part in unit.parts] == [read[2]] != [None]
            assert [part.direct[0] for unit in told for part in unit.parts] == pytest.approx([read[0]])
        else:
            assert not told
            assert float(found["input"].rounding[0, 0]) >= read[0] * (1 - 1e-9)
        vague = Forms(registers.ids, *registers.arrays[:3], np.full((3, 3), [0.0, 0.0, 1e-9]))
        with pytest.raises(NotVerified, match="or are rounded"):
            after_attention(context, layer, {"input": asker, "register": vague}, {"input"}, 0)


def _not_explained(told: list[Unit], units: list[Unit], where: str) -> list[None]:
    told += units
    return [None] * len(units)


def test_a_bound_that_holds_for_plain_alone_is_refused() -> None:
    name = "spline (float32)"

    def plain(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        header["certificate"]["evaluations"] = ["plain"]

    def smaller(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        header["certificate"].update(bound=both / 2 + alone / 2, terms={}, worst=None)

    def smaller_plain(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        plain(header, arrays)
        smaller(header, arrays)

    with tempfile.TemporaryDirectory() as folder:
        both, alone = (report(name, Path(folder), change).found for change in (None, plain))
        assert alone < both
        assert not report(name, Path(folder), smaller).verified
        assert report(name, Path(folder), smaller_plain).verified
