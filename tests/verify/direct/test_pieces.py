"""Series that follow functions, of several pieces: what they err by against these, and which files are refused."""

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
from anchorhead.network.direct.heads import SeriesHead
from anchorhead.verify import verify
from anchorhead.verify.balls import precision
from anchorhead.verify.claims import NOTHING, Claims, _Job
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.programs.expressions import Expression, read_expression
from anchorhead.verify.rounding import MODELS
from anchorhead.verify.scalar.part import Claim, Part
from anchorhead.verify.series import Series

from ..heads.test_claims import claims
from .heads_directly import Keys, as_read, following, roundings
from .heads_directly import both as line
from .test_direct_lemmas import QUOTIENTS

CASES: dict[str, tuple[str, str, float, float, float]] = {
    "an elbow, float32": ("leaky_relu(x, 0.25)", "float32", -1.5, 2.0, 4e-5),
    "an elbow, float64": ("leaky_relu(x, -0.5)", "float64", -3.0, 2.0, 1e-9),
    "an elbow off 0, float32": ("max(x - 0.3, 0.1*x)", "float32", -1.0, 2.0, 1e-5),
    "a parabola between lines, float32": ("hardswish(x)", "float32", -28.0, 28.0, 1e-3),
    "a parabola between lines, float64": ("hardswish(x)", "float64", -5.1, 5.5, 1e-10),
    "two poles, float64": ("softsign(x)", "float64", -11.4, 11.2, 1e-10),
    "a ramp, float32": ("hardtanh(x, -0.3, 1)", "float32", -3.6, 3.8, 1e-5),
    "long tails, float32": ("gelu(x)", "float32", -40.0, 30.0, 2e-4),
    "long tails, float64": ("gelu(x)", "float64", -40.0, 30.0, 1e-10),
}
"""Functions, dtype, interval, and what series may err by."""
KEYS: Keys = (np.array([-1.0, 1.0]), np.zeros(2), np.array([-1.0, 1.0]))
"""Of the head that they are said to be: they have nothing to do with it."""


@cache
def both(name: str) -> tuple[Series, Runs]:
    text, dtype, low, high, allowed = CASES[name]
    theirs = following(text, KEYS, low, high, allowed, dtype)
    assert theirs is not None
    assert theirs.error <= allowed
    return as_read(theirs, dtype), theirs


def meant(name: str) -> Expression:
    return read_expression(parse(CASES[name][0]).to_json())


def places(name: str) -> np.ndarray:
    """All over the interval, at its ends, around cuts, and tiny numbers."""
    _, dtype, low, high, _ = CASES[name]
    _, theirs = both(name)
    cuts = {end for one in (theirs, *theirs.beside) for end in (one.low, one.high) if np.isfinite(end)}
    off = np.concatenate([[0.0], np.geomspace(1e-12, 1e-2, 40)])
    t = [np.linspace(low, high, 80), [1e-44, -1e-40, 0.0], *(cut + sign * off for cut in cuts for sign in (-1, 1))]
    t = np.unique(np.concatenate(t).astype(dtype).astype(np.float64))
    return t[(t >= low) & (t <= high)]


def proven(found: Series, name: str) -> float:
    """The error of a unit of one part that is computed by a series, and is said to compute the function."""
    _, dtype, low, high, _ = CASES[name]
    off, size, series = found.read(KEYS, low, high, MODELS[dtype], False)
    part = Part(*KEYS, *[np.zeros(2)] * 6, MODELS[dtype], direct=(off, size), series=series)
    job = _Job((part,), Claim(meant(name), 1.0, 0.0, 1.0, 0.0), low, high)
    return Claims(claims()[0].exact, MODELS[dtype])._directly(job, [(low, high)], 0.0)


@pytest.mark.parametrize("name", CASES)
def test_pieces_err_by_no_more_than_is_derived(name: str) -> None:
    """Computed by the library, and with every rounding as far as it may be to one side."""
    dtype = CASES[name][1]
    (mine, theirs), t, f = both(name), places(name), meant(name)
    bound = proven(mine, name)
    q = torch.tensor(t.astype(dtype))
    head = SeriesHead(theirs, dtype)
    for operation in head.operations(q, q.new_empty(head.scratch(len(q)))):
        operation()
    worst, u = 0.0, arb(MODELS[dtype].unit)
    with precision(300):
        for at, found in zip(t.tolist(), q.tolist(), strict=True):
            exact = f.ball({"x": arb(at)})
            assert abs(arb(theirs.scale) * arb(found) + arb(theirs.shift) - exact) <= min(bound, theirs.error)
            for side, first in zip((1, 1, -1, -1), roundings(replace(theirs, beside=()), at, dtype), strict=True):
                total = first
                for piece in theirs.beside:
                    alone = replace(theirs, **vars(piece) | {"beside": ()})
                    sign = side if piece.scale > 0 else -side
                    more = list(roundings(alone, at, dtype))[0 if sign > 0 else 2]
                    total = total + arb(piece.scale) * more
                    total = total + side * u * abs(total)
                off = abs(arb(theirs.scale) * total + arb(theirs.shift) - exact)
                assert off <= bound
                worst = max(worst, float(off) / bound)
    assert worst > 0.05


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


def test_pieces_of_which_nothing_is_taken_or_that_may_overflow_are_counted() -> None:
    """A factor of 2^-151 is 0 in float32, but of a piece of 1000 2^111 it would be 2^-30; pieces that cancel, or their
    factors, may be no numbers."""
    mine, model = replace(line("a line, float32")[0], powers=(), origin=0.0), MODELS["float32"]

    def whole(*pieces: tuple[float, float]) -> float:
        """Of pieces (c, f): f (s + c s^2)."""
        beside = tuple(replace(mine, powers=((2, c),), scale=f) for c, f in pieces)
        return replace(mine, low=0.0, high=0.0, beside=beside)._whole(0.0, 1.0, model)[1]

    assert whole((1000 * 2.0**111, 2.0**-151)) >= 1000 * 2.0**-40
    assert whole((1e3, 1e34), (1e3, -1e34)) < np.inf
    for pieces in ([(1e3, 3e38), (1e3, -3e38)], [(-1 + 2.0**-20, 1e39), (-1 + 2.0**-20, -1e39)]):
        with pytest.raises(NotVerified, match="overflow"):
            whole(*pieces)
    tiny = replace(mine, powers=((2, -1 + 2.0**-20),), low=1.0, high=1.0)
    with pytest.raises(NotVerified, match="overflow"):
        replace(mine, beside=(replace(tiny, scale=1e39), replace(tiny, scale=-1e39)))._whole(0.0, 1.0, model)


@pytest.mark.parametrize("number", ["scale", "origin", "high", "low", "coefficients", "below"])
@pytest.mark.parametrize("name", ["an elbow, float64", "two poles, float64", "long tails, float64"])
def test_pieces_that_are_something_else_are_as_far_off(name: str, number: str) -> None:
    """Of a piece one number is moved by a hundredth: the error is no less than the difference of exact functions."""
    theirs, f = both(name)[1], meant(name)
    piece = theirs.beside[0]
    value = getattr(piece, number)
    if value == () or value in (np.inf, -np.inf):
        return
    moved = tuple((j, c + 0.01) for j, c in value) if isinstance(value, tuple) else value + 1 / 128
    forged = replace(theirs, beside=(replace(piece, **{number: moved}), *theirs.beside[1:]))
    with precision(200):
        worst = max(float(abs(_exact(forged, at) - f.ball({"x": arb(at)}))) for at in places(name).tolist())
    assert worst <= proven(as_read(forged, CASES[name][1]), name)


def _exact(found: Runs, t: float) -> arb:
    total = arb(0)
    for one in (found, *found.beside):
        s = min(max(arb(t), arb(one.low)), arb(one.high)) - arb(one.origin)
        q = (s + sum(arb(c) * s**j for j, c in one.coefficients)) / (1 + sum(arb(d) * s**j for j, d in one.below))
        total = total + q * (1 if one is found else arb(one.scale))
    return total * arb(found.scale) + arb(found.shift)


def test_units_are_as_far_off_as_their_series() -> None:
    """Of tanh by a line: against what is claimed, with what it rounds by, and moves by where t leans; what has no
    series is the softmax that it was, and the worse of both evaluations counts."""
    known, unit = claims()
    (part,), model = unit.parts, MODELS["float64"]
    low, high = -0.5, 0.25
    tanh = Claim(read_expression(parse("tanh(x)").to_json()), 1.0, 0.0, 1.0, 0.0)
    straight = Claim(read_expression(parse("x").to_json()), 1.0, 0.0, 1.0, 0.0)

    def error(*parts: Part, claim: Claim = tanh) -> float:
        return Claims(known.exact, model)._proven((), _Job(parts, claim, low, high)).total

    def directly(*parts: Part) -> float:
        return Claims(known.exact, model)._directly(_Job(parts, tanh, low, high), [(low, high)], 0.0)

    apart = 0.5 - float(np.tanh(0.5))
    alone = error(part)
    assert alone < 1e-12
    follows = replace(part, series=straight)
    assert apart <= error(follows) <= 1.002 * apart
    assert apart + 0.125 <= error(replace(follows, direct=(0.125, 1.0))) <= 1.002 * (apart + 0.125)
    assert apart + 0.25 <= directly(replace(follows, lean=0.25)) <= 1.01 * (apart + 0.25)
    steep = replace(follows, series=replace(straight, alpha=-2.0), lean=0.25)
    assert directly(steep) >= 1.0 + float(np.tanh(0.5)) + 0.5
    nothing = replace(part, series=replace(straight, alpha=0.0))
    assert error(part, nothing, claim=replace(tanh, alpha=2.0)) >= np.tanh(0.5)
    assert directly(part, nothing) <= 1.01 * alone
    assert directly(part, replace(part, series=tanh)) >= np.tanh(0.5)
    both_ways = replace(follows, series=replace(straight, scale=-1.0, shift=0.25, alpha=-1.0))
    assert apart + 0.25 <= error(both_ways) + 1e-12
    assert error(replace(part, series=tanh)) <= 1.01 * alone
    assert error(replace(follows, values=0 * part.values)) >= np.tanh(0.5)  # plainly it is 0
    assert error(NOTHING, part) <= 1.01 * alone


def test_units_with_other_series_are_others() -> None:
    (part,) = claims()[1].parts
    straight = Claim(None, 1.0, 0.0, 1.0, 0.0)
    keys = {part.key(), replace(part, series=straight).key(), replace(part, series=replace(straight, shift=1.0)).key()}
    assert len(keys) == 3


def network(name: str, dtype: str, form: str) -> Network:
    rng = np.random.default_rng(0)
    hidden = Hidden.of(rng.normal(size=(256, 10)) / 10**0.5, rng.normal(size=256) / 10**0.5, parse(f"{name}(x)"))
    target = Mlp((hidden,), Affine(rng.normal(size=(1, 256)) / 16, rng.normal(size=1) / 16))
    return ah.convert(target, on=(0, 1), within=1e-5, dtype=dtype, form=form, layout="transformer")


@pytest.mark.slow
@pytest.mark.parametrize("form", ["two-layer", "attention-softmax"])
@pytest.mark.parametrize("name", ["selu", "hardswish", "leaky_relu", "softsign"])
def test_networks_run_by_pieces_and_are_verified(name: str, form: str, tmp_path: Path) -> None:
    net = network(name, "float64", form)
    assert net.derivation is not None
    row, *others = net.derivation.data["series"]
    assert row["beside"]
    assert all(one["low"] == one["high"] for one in others)
    net.save(tmp_path / "net.safetensors")
    assert verify(tmp_path / "net.safetensors").verified
    for number in ("scale", "origin", "high"):
        piece = row["beside"][0]
        if piece[number] is None:
            continue
        rows = [{**row, "beside": [{**piece, number: piece[number] + 2.0**-12}]}, *others]
        forged = replace(net.derivation, data={**net.derivation.data, "series": rows})
        net.with_(derivation=forged).save(tmp_path / "forged.safetensors")
        assert not verify(tmp_path / "forged.safetensors").verified
