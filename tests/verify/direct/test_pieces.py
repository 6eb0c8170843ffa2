"""Series of several pieces: what they err by, where they turn, and which files are refused."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from flint import arb

import anchorhead as ah
from anchorhead.language.expressions.parser import parse
from anchorhead.language.targets.mlp import Affine, Hidden, Mlp
from anchorhead.network import Network
from anchorhead.network.direct import Series as Runs
from anchorhead.network.direct.bent import BentHead
from anchorhead.proof.heads.pieces import pieces
from anchorhead.verify import verify
from anchorhead.verify.balls import precision
from anchorhead.verify.forms import EXACT
from anchorhead.verify.rounding import MODELS
from anchorhead.verify.scalar.part import Part
from anchorhead.verify.series import Series

from .heads_directly import BENT, Keys, as_read, curved, exact_read, roundings
from .heads_directly import both as line
from .test_direct_lemmas import QUOTIENTS


def elbow(dtype: str, steep: float, left: float) -> Keys:
    """A line of slope `left` that becomes one of slope 1 at 0: two anchors each, so steeply apart."""
    h = 0.05
    sides = ((-steep - h, -left / h), (-steep + h, left / h), (-h, -1 / h), (h, 1 / h))
    return curved(dtype, *((slope, 0.0, value) for slope, value in sides))


HEADS: dict[str, tuple[Keys, str, float, float, float]] = {
    "an elbow, float32": (elbow("float32", 1e5, 0.25), "float32", -1.5, 2.0, 4e-5),
    "an elbow, float64": (elbow("float64", 1e7, -0.5), "float64", -3.0, 2.0, 1e-9),
    "long tails, float32": (curved("float32", *BENT), "float32", -40.0, 30.0, 2e-4),
    "long tails, float64": (curved("float64", *BENT), "float64", -40.0, 30.0, 1e-10),
}
"""Keys, dtype, interval, and what series may err by."""


@cache
def both(name: str) -> tuple[Series, Runs]:
    keys, dtype, low, high, allowed = HEADS[name]
    theirs = pieces(keys, low, high, allowed, dtype)
    assert theirs is not None
    assert theirs.beside
    assert theirs.error <= allowed
    return as_read(theirs, dtype), theirs


def places(name: str) -> np.ndarray:
    """All over the interval, at its ends, around cuts, and tiny numbers."""
    keys, dtype, low, high, _ = HEADS[name]
    _, theirs = both(name)
    cuts = {end for one in (theirs, *theirs.beside) for end in (one.low, one.high) if np.isfinite(end)}
    off = np.concatenate([np.geomspace(1e-6, 100, 40) / np.ptp(keys[0]), np.geomspace(1e-12, 1e-2, 20)])
    t = [np.linspace(low, high, 80), [1e-44, -1e-40, 0.0], *(cut + sign * off for cut in cuts for sign in (-1, 1))]
    t = np.unique(np.concatenate(t).astype(dtype).astype(np.float64))
    return t[(t >= low) & (t <= high)]


def bounds(name: str, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The verifier's and the builder's, at these."""
    keys, dtype, low, high, _ = HEADS[name]
    mine, theirs = both(name)
    error, _, calm = mine.read(keys, low, high, MODELS[dtype])
    assert calm is not None or not theirs.turns
    nothing = np.zeros(len(keys[0]))
    part = Part(*keys, *[nothing] * 6, EXACT, direct=(error, 0.0), calm=calm)
    built = np.full(len(t), theirs.error)
    for start, end, most in theirs.turns:
        built = np.where((t >= start) & (t <= end), np.maximum(built, most), built)
    return part.read_otherwise(t, np.zeros(len(t))), built


@pytest.mark.parametrize("name", HEADS)
def test_pieces_err_by_no_more_than_is_derived(name: str) -> None:
    """Computed by the library, and with every rounding as far as it may be to one side."""
    keys, dtype, *_ = HEADS[name]
    theirs, t = both(name)[1], places(name)
    mine, built = bounds(name, t)
    q = torch.tensor(t.astype(dtype))
    head = BentHead(theirs, dtype)
    for operation in head.operations(q, q.new_empty(head.scratch(len(q)))):
        operation()
    worst, u = 0.0, arb(MODELS[dtype].unit)
    with precision(300):
        for at, found, one, other in zip(t.tolist(), q.tolist(), mine.tolist(), built.tolist(), strict=True):
            exact = exact_read(keys, at)
            assert abs(arb(theirs.scale) * arb(found) + arb(theirs.shift) - exact) <= min(one, other)
            for side, first in zip((1, 1, -1, -1), roundings(replace(theirs, beside=()), at, dtype), strict=True):
                total = first
                for piece in theirs.beside:
                    alone = replace(theirs, **vars(piece) | {"beside": ()})
                    sign = side if piece.scale > 0 else -side
                    more = list(roundings(alone, at, dtype))[0 if sign > 0 else 2]
                    total = total + arb(piece.scale) * more
                    total = total + side * u * abs(total)
                off = abs(arb(theirs.scale) * total + arb(theirs.shift) - exact)
                assert off <= one
                worst = max(worst, float(off) / one)
    assert worst > 0.2


def test_sums_of_pieces_round_by_no_more_than_is_derived() -> None:
    """Every rounding as far as it may, towards the same side, at the end of the interval; a head has no part in it."""
    above, below, _ = QUOTIENTS["of many powers"]
    mine, theirs = line("a line, float32")
    quotient = {"origin": 0.0, "below": below, "scale": 3.0}
    first = replace(mine, powers=((2, 0.5),), below=(), origin=0.0)
    found = replace(first, beside=(replace(mine, powers=above, **quotient),))
    size, bound = found._whole(-0.5, 1.0, MODELS["float32"])
    u = arb(MODELS["float32"].unit)
    with precision(300):
        exact = arb(1.5) + 3 * (1 + sum(arb(c) for _, c in above)) / (1 + sum(arb(d) for _, d in below))
        one = next(roundings(replace(theirs, coefficients=((2, 0.5),), below=(), origin=0.0), 1.0, "float32"))
        other = next(roundings(replace(theirs, coefficients=above, origin=0.0, below=below), 1.0, "float32"))
        total = (one + 3 * other * (1 + u) ** 2) * (1 + u)
        assert 0.6 <= float(total - exact) / bound <= 1
        assert float(total) <= size <= 1.3 * float(exact)


@pytest.mark.parametrize("number", ["scale", "origin", "high", "low", "coefficients", "below"])
@pytest.mark.parametrize("name", ["an elbow, float64", "long tails, float64"])
def test_pieces_that_are_something_else_are_as_far_off(name: str, number: str) -> None:
    """Of a piece one number is moved by a hundredth: the error is no less than the difference of exact functions."""
    keys, dtype, low, high, _ = HEADS[name]
    theirs = both(name)[1]
    piece = theirs.beside[0]
    value = getattr(piece, number)
    if value == () or value in (np.inf, -np.inf):
        return
    moved = tuple((j, c + 0.01) for j, c in value) if isinstance(value, tuple) else value + 1 / 128
    forged = replace(theirs, beside=(replace(piece, **{number: moved}), *theirs.beside[1:]))
    error, _, _ = as_read(forged, dtype).read(keys, low, high, MODELS[dtype])
    with precision(200):
        worst = max(float(abs(_exact(forged, at) - exact_read(keys, at))) for at in places(name).tolist())
    assert worst <= error


def _exact(found: Runs, t: float) -> arb:
    total = arb(0)
    for one in (found, *found.beside):
        s = min(max(arb(t), arb(one.low)), arb(one.high)) - arb(one.origin)
        q = (s + sum(arb(c) * s**j for j, c in one.coefficients)) / (1 + sum(arb(d) * s**j for j, d in one.below))
        total = total + q * (1 if one is found else arb(one.scale))
    return total * arb(found.scale) + arb(found.shift)


def test_turns_are_felt_where_t_may_be_in_them() -> None:
    """Within half a piece, and as far as t leans; of two that are said to be the same, what is worse."""
    nothing = np.zeros(2)
    part = Part(np.array([0.0, 1.0]), *[nothing] * 8, EXACT, direct=(5.0, 0.0), calm=(1.0, ((2.0, 3.0),)))
    t, half = np.array([0.0, 1.4, 1.6, 2.5, 3.4, 3.6]), np.full(6, 0.5)
    assert part.read_otherwise(t, half).tolist() == [1.0, 1.0, 5.0, 5.0, 5.0, 1.0]
    assert replace(part, lean=0.2).read_otherwise(t, half).tolist() == [1.0, 5.0, 5.0, 5.0, 5.0, 5.0]
    more = replace(part, calm=(2.0, ((2.0, 3.0),)))
    assert part.worse(more).calm == more.calm
    assert more.covers(part)
    assert not part.covers(more)
    other = replace(part, calm=(1.0, ((2.0, 3.5),)))
    assert part.worse(other).calm is None
    assert part.worse(replace(part, calm=None)).calm is None
    assert not part.covers(other)
    assert not part.covers(replace(part, calm=None))
    assert replace(part, calm=None).covers(part)


def network(name: str, dtype: str, form: str) -> Network:
    rng = np.random.default_rng(0)
    hidden = Hidden.of(rng.normal(size=(256, 10)) / 10**0.5, rng.normal(size=256) / 10**0.5, parse(f"{name}(x)"))
    target = Mlp((hidden,), Affine(rng.normal(size=(1, 256)) / 16, rng.normal(size=1) / 16))
    return ah.convert(target, on=(0, 1), within=1e-5, dtype=dtype, form=form, layout="transformer")


@pytest.mark.slow
@pytest.mark.parametrize("form", ["two-layer", "attention-softmax"])
def test_networks_run_by_pieces_and_are_verified(form: str, tmp_path: Path) -> None:
    net = network("selu", "float64", form)
    assert net.derivation is not None
    (row,) = net.derivation.data["series"]
    assert row["beside"]
    assert row["turns"]
    net.save(tmp_path / "net.safetensors")
    assert verify(tmp_path / "net.safetensors").verified
    for number in ("scale", "origin", "high"):
        rows = [{**row, "beside": [{**row["beside"][0], number: row["beside"][0][number] + 2.0**-12}]}]
        forged = replace(net.derivation, data={**net.derivation.data, "series": rows})
        net.with_(derivation=forged).save(tmp_path / "forged.safetensors")
        assert not verify(tmp_path / "forged.safetensors").verified
