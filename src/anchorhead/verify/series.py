"""Series: polynomials that the evaluation "direct" computes in the place of heads, and how far they are off.

A file stores them, each with the keys of the head that it stands for (slopes, offsets and values, three lists of one
length), an origin o, ends where t is clipped (None: nowhere), pairs (j, c_j) with powers j >= 2, a scale and a shift:

    q = s + sum_j c_j s^j,   s = clip(t, low, high) - o,      r(t) = sum_k v_k softmax_k(a_k t + g_k) = scale q + shift,

the latter nearly. Whatever has all of these keys may be computed by it. q is computed in the dtype, of which o and the
ends are numbers, c_j rounded to it.

Lemma. |scale q + shift - r(t)| <= error for every t of [low, high], t a number of the dtype.

Proof. In exact arithmetic scale q + shift is a function of t, from which the softmax differs by what the lemma of
scalar heads says of exact arithmetic. Rounding: s^j has j roundings from s and j - 1 products; c_j two and its product
one; every sum adds one to all: gamma_(m_j), m_j = 2j + 2 + n, of |c_j| |s|^j, n the number of powers, and m_1 = 1 + n.
Of what underflows, tiny, there are less than 40.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorhead.verify.errors import Unreadable, require
from anchorhead.verify.files import Stored
from anchorhead.verify.forms import EXACT
from anchorhead.verify.programs.expressions import Expression
from anchorhead.verify.rounding import SLACK, Arithmetic
from anchorhead.verify.scalar.cells import Claim, prove
from anchorhead.verify.scalar.part import Part

MAX_SERIES, MAX_POWER = 1000, 8
ENOUGH = 0.01
"""Of its rounding: what a series may be off in exact arithmetic for nobody to look closer."""
Keys = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Slopes, offsets and values."""


@dataclass(frozen=True)
class Series:
    """See above; keys: triples of a slope, an offset and a value."""

    keys: frozenset[tuple[float, float, float]]
    origin: float
    low: float | None
    high: float | None
    powers: tuple[tuple[int, float], ...]
    scale: float
    shift: float

    def magnitude(self, low: float, high: float, model: Arithmetic) -> tuple[float, float]:
        """Bounds on |scale q|, as computed, and |shift|, for t between low and high; refused where something on the way
        may overflow."""
        s = self._furthest(low, high)
        q = s + sum(abs(c) * s**j for j, c in self.powers)
        most = max([q, *(s**j for j, _ in self.powers), *(abs(c) for _, c in self.powers)])
        require(most < model.largest / 4, f"direct: a series may overflow in {model.dtype}")
        return abs(self.scale) * (q * (1 + 64 * model.unit) + 2 * model.tiny) * SLACK, abs(self.shift)

    def error(self, keys: Keys, low: float, high: float, model: Arithmetic) -> float:
        """The lemma's, for a head of these keys."""
        s, n = self._furthest(low, high), len(self.powers)
        rounded = model.gamma(1 + n) * s + sum(model.gamma(2 * j + 2 + n) * abs(c) * s**j for j, c in self.powers)
        rounded += 40 * model.tiny * (1 + sum(abs(c) for _, c in self.powers)) * (1 + s) ** MAX_POWER
        rounded *= abs(self.scale) * SLACK
        nothing = np.zeros(len(keys[0]))
        part = Part(*keys, nothing, nothing, nothing, nothing, nothing, nothing, EXACT, whole=True)
        claim = Claim(self._function(), 1.0, 0.0, 1.0, 0.0)
        found = prove([part], claim, [(low, high)], EXACT, ENOUGH * rounded)
        return (found.approximation + rounded) * SLACK

    def _furthest(self, low: float, high: float) -> float:
        """The largest |t - o| of a t that is clipped."""
        ends = (-np.inf if self.low is None else self.low, np.inf if self.high is None else self.high)
        return max(abs(min(max(t, ends[0]), ends[1]) - self.origin) for t in (low, high)) * SLACK

    def _function(self) -> Expression:
        """scale q + shift, of x."""
        nodes: list[tuple[str, Any, tuple[int, ...]]] = [("variable", "x", ())]

        def made(op: str, *of: int | float, data: Any = None) -> int:
            """The place of what is made of places, and of numbers."""
            places = []
            for one in of:
                places.append(one if isinstance(one, int) else len(nodes))
                if isinstance(one, float):
                    nodes.append(("number", one, ()))
            nodes.append((op, data, tuple(places)))
            return len(nodes) - 1

        clipped = 0
        for op, end in (("max", self.low), ("min", self.high)):
            clipped = clipped if end is None else made(op, clipped, end)
        s = made("add", clipped, -self.origin)
        terms = [made("mul", c, made("integer_power", s, data=j)) for j, c in self.powers]
        made("add", made("mul", made("add", s, *terms), self.scale), self.shift)
        return Expression.of(tuple(nodes))


def read_series(stored: Stored, dtype: str) -> list[Series]:
    """Those that a file names; they are no hints, but what may be computed."""
    data = (stored.derivation or {}).get("data")
    rows = data.get("series", []) if isinstance(data, dict) else []
    try:
        require(isinstance(rows, list) and len(rows) <= MAX_SERIES, f"more than {MAX_SERIES} series")
        return [_read(row, dtype) for row in rows]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Unreadable(f"a series is damaged: {error!r}"[:200]) from error


def _read(row: dict[str, Any], dtype: str) -> Series:
    columns = [[float(x) for x in row[name]] for name in ("slopes", "offsets", "values")]
    keys = frozenset(zip(*columns, strict=True))
    low, high = (None if row[name] is None else float(row[name]) for name in ("low", "high"))
    powers = tuple((int(j), float(c)) for j, c in row["coefficients"])
    found = Series(keys, float(row["origin"]), low, high, powers, float(row["scale"]), float(row["shift"]))
    held = [found.origin, *(end for end in (low, high) if end is not None)]
    numbers = [*held, *(c for _, c in powers), found.scale, found.shift, *(x for column in columns for x in column)]
    whole = list(dict.fromkeys(j for j, _ in powers)) == [j for j, _ in row["coefficients"]]
    require(bool(np.isfinite(numbers).all()) and len(keys) > 1, "a series of numbers that are none")
    require(any(columns[0]), "a series of a head whose slopes are all 0")
    require(whole and all(2 <= j <= MAX_POWER for j, _ in powers), f"a series of powers beyond {MAX_POWER}")
    require(all(float(np.dtype(dtype).type(one)) == one for one in held), f"a series that is clipped beside {dtype}")
    return found


def that_may_run(series: Sequence[Series], keys: Keys) -> list[Series]:
    """Those that a head of these keys may be computed by."""
    own = set(zip(*(one.tolist() for one in keys), strict=True))
    return [one for one in series if one.keys <= own]
