"""Heads with a series: as the library evaluates them, and as arithmetic that rounds as badly as it may would."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from types import SimpleNamespace

import numpy as np
import torch
from flint import arb

from anchorhead.heads.atom import Part
from anchorhead.language.expressions.parser import parse
from anchorhead.network.direct import Series as Runs
from anchorhead.network.direct import saturated
from anchorhead.network.direct.heads import SeriesHead
from anchorhead.network.direct.stored_series import _as_json
from anchorhead.proof.heads.activation_head import ActivationHead
from anchorhead.proof.heads.followed import followed
from anchorhead.verify.balls import above, precision
from anchorhead.verify.rounding import arithmetic_of
from anchorhead.verify.series import Found, Series, _read, read_series

Keys = tuple[np.ndarray, np.ndarray, np.ndarray]


def head(dtype: str, gentle: float, steep: float, kinks: tuple[float, ...], middle: float, apart: float = 0.0) -> Keys:
    """A line of about slope 1 by two anchors whose slopes differ by `gentle` and which weigh the same at the middle,
    clipped at the kinks by anchors `steep` away, whose values are `apart` from the line; about 0 at the first kink.
    Numbers are those of the dtype."""
    half, size, start = gentle / 2, 2 / gentle, (*kinks, 0.0)[0]
    slopes, offsets = [-half, half], [half * middle, -half * middle]
    values = [middle - start - size, middle - start + size]
    for sign, kink in zip((-1, 1), kinks, strict=False):
        place = 0 if sign < 0 else len(slopes)
        total = np.log(np.exp(-half * (kink - middle)) + np.exp(half * (kink - middle)))
        slopes.insert(place, sign * steep)
        offsets.insert(place, total - sign * steep * kink)
        values.insert(place, middle - start + size * np.tanh(half * (kink - middle)) + apart)
    return tuple(np.array(one).astype(dtype).astype(np.float64) for one in (slopes, offsets, values))  # type: ignore[return-value]


def curved(dtype: str, *keys: tuple[float, float, float]) -> Keys:
    """A smooth head of these anchors, in numbers of the dtype."""
    return tuple(np.array(one).astype(dtype).astype(np.float64) for one in zip(*keys, strict=True))  # type: ignore[return-value]


BENT = (-1.78, 1.55, 0.004), (0.0, 0.0, -14.5), (0.33, 1.33, 3.8)
"""Slopes, offsets and values of anchors that bend."""
HEADS: dict[str, tuple[Keys, str, float, float]] = {
    "a kink, float32": (head("float32", 0.06, 5e5, (0.0,), 0.5), "float32", -1.0, 1.0),
    "a kink off the line, float32": (head("float32", 0.06, 5e5, (0.0,), 0.5, 1e-5), "float32", -1.0, 1.0),
    "a kink, float64": (head("float64", 1e-4, 3e11, (0.0,), 0.5), "float64", -1.0, 1.0),
    "two kinks, float32": (head("float32", 0.04, 4e4, (-1.0, 1.0), 0.0), "float32", -2.0, 2.0),
    "two kinks, float64": (head("float64", 2e-5, 5e10, (-1.0, 1.0), 0.0), "float64", -2.0, 2.0),
    "a kink far from 0, float32": (head("float32", 0.02, 1e5, (100.0,), 101.0), "float32", 90.0, 102.0),
    "a kink far from 0, float64": (head("float64", 1e-5, 2e12, (100.0,), 101.0), "float64", 90.0, 102.0),
    "a line, float32": (head("float32", 0.03, 0.0, (), 0.0), "float32", -1.0, 1.0),
    "a bend, float32": (curved("float32", *BENT), "float32", -3.0, 2.5),
    "a bend, float64": (curved("float64", *BENT), "float64", -3.0, 2.5),
    "a step, float32": (curved("float32", (-0.5, 0.1, -1.0), (0.5, -0.1, 1.0)), "float32", -2.0, 4.0),
    "a bend that is far, float32": (curved("float32", *BENT), "float32", -2.0, 9.0),
}
ALLOWED = {
    "a bend, float32": 3e-5,
    "a bend, float64": 1e-9,
    "a step, float32": 2e-6,
    "a bend that is far, float32": 1e-4,
}
"""What the quotients of smooth heads may err by."""


def following(text: str, keys: Keys, low: float, high: float, allowed: float, dtype: str) -> Runs | None:
    """A series of a head of these keys that follows a function between two numbers."""
    shape = ActivationHead(parse(text), low, high, (Part.of(*keys, "float64"),), 0.0, 0.0)
    return followed(shape, keys, allowed, 400, dtype)


def written(keys: Keys) -> str:
    """The head as an expression, of few keys that are not steep."""
    weights = [f"exp({a!r}*x + {g!r})" for a, g in zip(keys[0].tolist(), keys[1].tolist(), strict=True)]
    above = " + ".join(f"{v!r}*{weight}" for v, weight in zip(keys[2].tolist(), weights, strict=True))
    return f"({above})/({' + '.join(weights)})"


def as_read(series: Runs, dtype: str) -> Series:
    """A series as the verifier reads it."""
    found = _read(_as_json(asdict(series)), dtype)
    assert isinstance(found, Series)
    return found


def listed(series: list[Series], dtype: str) -> list[Found]:
    """As a file would give them back that stores these."""
    rows = []
    for one in series:
        columns = dict(zip(("slopes", "offsets", "values"), map(list, zip(*one.keys, strict=True)), strict=True))
        numbers = {name: getattr(one, name) for name in ("origin", "low", "high", "scale", "shift", "below")}
        rows.append({**columns, **numbers, "coefficients": one.powers})
    return read_series(SimpleNamespace(derivation={"data": {"series": rows}}), dtype)  # type: ignore[arg-type]


def stored(keys: Keys, dtype: str) -> list[Series]:
    """What a file of a head would store."""
    found = saturated(*keys, dtype)
    return [] if found is None else [as_read(found, dtype)]


@cache
def both(name: str) -> tuple[Series, Runs]:
    """The series as the verifier and as the library have it."""
    keys, dtype, low, high = HEADS[name]
    theirs = saturated(*keys, dtype)
    if name in ALLOWED:
        theirs = following(written(keys), keys, low, high, ALLOWED[name], dtype)
    assert theirs is not None
    return as_read(theirs, dtype), theirs


def bound_of(name: str) -> float:
    keys, dtype, low, high = HEADS[name]
    return both(name)[0].error(keys, low, high, arithmetic_of(dtype))


def exact_read(keys: Keys, t: float) -> arb:
    logits = [arb(float(a)) * arb(t) + arb(float(g)) for a, g in zip(*keys[:2], strict=True)]
    top = max(logits, key=lambda z: float(z.mid()))
    weights = [(z - top).exp() for z in logits]
    return sum((arb(float(v)) * w for v, w in zip(keys[2], weights, strict=True)), arb(0)) / sum(weights, arb(0))


@cache
def places(name: str) -> np.ndarray:
    """Numbers of the dtype all over the interval, at its ends, and around crossings, where clipping loses something."""
    keys, dtype, low, high = HEADS[name]
    series, rng = both(name)[0], np.random.default_rng(0)
    found = [rng.uniform(low, high, 60), [low, high, series.origin]]
    for end in (series.low, series.high):
        if end is not None:
            off = np.concatenate([np.geomspace(1e-6, 0.9, 25), np.linspace(1, 10, 25), [40.0]]) / np.ptp(keys[0])
            found += [end + off, end - off]
    t = np.concatenate(found).astype(dtype).astype(np.float64)
    return np.unique(t[(t >= low) & (t <= high)])


def library_holds(name: str) -> bool:
    """Whether the library's own evaluation is within the lemma's bound, everywhere."""
    keys, dtype, *_ = HEADS[name]
    theirs = both(name)[1]
    t = places(name)
    q = torch.tensor(t.astype(dtype))
    evaluated = SeriesHead(theirs, dtype)
    for operation in evaluated.operations(q, q.new_empty(evaluated.scratch(len(q)))):
        operation()
    bound = bound_of(name)
    with precision(300):
        off = [
            abs(arb(theirs.scale) * arb(one) + arb(theirs.shift) - exact_read(keys, at))
            for at, one in zip(t.tolist(), q.tolist(), strict=True)
        ]
        return all(one <= bound for one in off)


def worst_share(name: str) -> float:
    """The largest error, as a share of the lemma's bound, of arithmetic in which every rounding is of u, and moves the
    result to the same side."""
    keys, dtype, *_ = HEADS[name]
    theirs, bound, worst = both(name)[1], bound_of(name), 0.0
    with precision(300):
        for at in places(name).tolist():
            for q in roundings(theirs, at, dtype):
                off = abs(arb(theirs.scale) * q + arb(theirs.shift) - exact_read(keys, at))
                worst = max(worst, above(off) / bound)
    return worst


def roundings(found: Runs, t: float, dtype: str) -> Iterator[arb]:
    """q of t, with s and all that is made of it rounded to either side, each."""
    for up in (1, -1):
        for slide in (1, -1):
            yield _evaluated(found, arb(t), up * arb(arithmetic_of(dtype).unit), slide)


def _evaluated(found: Runs, t: arb, up: arb, slide: int) -> arb:
    """The steps that `series` names, each rounded so that q moves to the side of `up`, s by as much to either side."""
    s = min(max(t, arb(found.low)), arb(found.high)) - arb(found.origin)
    s = _up(s, slide * up)
    if not found.below and len(found.coefficients) == 1:
        ((power, coefficient),) = found.coefficients
        return _up(s + _up(arb(coefficient) * s**power, (power + 1) * up), up)
    coefficients = dict(found.coefficients)
    numerator = [1.0, *(coefficients.get(power, 0.0) for power in range(2, max(coefficients, default=1) + 1))]
    total = _up(s * _horner(numerator, s, up * _sign(s)), up)
    if not found.below:
        return total
    return _up(total / _horner([1.0, *(d for _, d in found.below)], s, -up * _sign(total)), up)


def _horner(coefficients: list[float], s: arb, up: arb) -> arb:
    """Rounded so that it moves to the side of `up`: what is rounded is multiplied by s as often as there are powers."""
    *others, last = coefficients
    total = _up(arb(last), up * _sign(s) ** len(others)) if others else arb(last)
    for power, one in reversed(list(enumerate(others))):
        side = up * _sign(s) ** power
        coefficient = arb(one) if one in (0.0, 1.0) else _up(arb(one), side)
        total = _up(_up(total * s, side) + coefficient, side)
    return total


def _up(x: arb, by: arb) -> arb:
    return x + abs(x) * by


def _sign(x: arb | float) -> int:
    return -1 if x < 0 else 1
