"""Series: quotients of polynomials that the evaluation "direct" computes in the place of heads; how far they are off.

A file stores them, each with the keys of the head that it stands for (slopes, offsets and values, three lists of one
length, sorted by slope, then by offset), an origin o, ends where t is clipped (None: nowhere), pairs (j, c_j) with
powers j >= 2, pairs (j, d_j) with powers j >= 1, none in files of before, a scale and a shift:

    q = N / D,   N = s + sum_j c_j s^j,   D = 1 + sum_j d_j s^j,   s = clip(t, low, high) - o,
    S(t) = scale q + shift.

A head of which these keys, and no others, weigh anything is computed by it. S is a function of its own: it need not be
close to the head, but to what is claimed of that (`claims`). q is computed in the dtype, of which o and the ends are
numbers, c_j and d_j rounded to it, N = s (N / s) and D by Horner's rule, or s + c_j s^j by products. Pieces that a
series has beside it are quotients of their own, each with an origin, ends and a scale f, and q is its own N / D with
f N / D of each added to it, one after the other.

Lemma. As computed, scale q + shift is off S(t) by at most `rounding` for every t of [low, high], t a number of the
dtype, and off what a softmax is in exact arithmetic by at most `error`.

Proof. The latter differs from S by what the lemma of scalar heads says of exact arithmetic. Of c_j s^j, s has j
roundings, products j, and c_j one; where n + 1 terms are summed, it is part of min(n, j + 1) sums. So that is
gamma_(m_j) of |c_j| |s|^j, m_j = 2j + 1 + min(n, j + 1), less 1 for the first terms, s and 1. Of what underflows, tiny,
there are less than 8 for each of `top` + 2 powers, multiplied by no more than (1 + |s|)^top (1 + sum |c_j|). With e_N
and e_D the sums,

    |N~ / D~ - N / D| = |(N~ - N) - q (D~ - D)| / D~ <= (e_N + |q| e_D) / (D - e_D),

and the quotient is rounded once. Pieces are off by f times as much; n of them are rounded by gamma_(n + 2) of the sum
of all: a rounding of f, one of its product, and n sums; f may underflow, too, which is tiny times what it takes. No sum
of pieces may overflow, whatever is taken of it behind them. All of this is bounded on PIECES of the interval of s: |s|
by its ends, and a polynomial from its value at the middle, by Taylor's theorem: it is no further than half a piece
times its slope there, and half the square of that times the largest that its second derivative may be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.files import Stored
from anchorhead.verify.forms import EXACT
from anchorhead.verify.programs.expressions import Expression
from anchorhead.verify.reach import within_reach
from anchorhead.verify.rounding import FOLDED, OWN_UNIT, SLACK, Arithmetic
from anchorhead.verify.scalar.cells import prove
from anchorhead.verify.scalar.part import Claim, Part
from anchorhead.verify.two_keys import Keys, TwoKeys, read_two_keys

MAX_SERIES, MAX_POWER, MAX_PIECES, PIECES = 1000, 48, 8, 512
ENOUGH = 0.01
"""Of its rounding: what a series may be off in exact arithmetic for nobody to look closer."""


@dataclass(frozen=True)
class Series:
    """See above; keys: triples of a slope, an offset and a value."""

    keys: tuple[tuple[float, ...], ...]
    origin: float
    low: float | None
    high: float | None
    powers: tuple[tuple[int, float], ...]
    below: tuple[tuple[int, float], ...]
    scale: float
    shift: float
    beside: tuple[Series, ...] = ()

    def magnitude(self, low: float, high: float, model: Arithmetic) -> tuple[float, float]:
        """Bounds on |scale q|, as computed, and |shift|, for t between low and high; refused where something on the way
        may overflow: their sum too, of which a map behind may take little."""
        found = abs(self.scale) * self._whole(low, high, model)[0] * SLACK, abs(self.shift)
        require(sum(found) < model.largest / 4, _overflow(model))
        return found

    def read(
        self, keys: Keys, low: float, high: float, model: Arithmetic, softmax: bool
    ) -> tuple[float, float, Claim | None]:
        """How far a head of these keys is off S, folding included, a bound on |scale q| + |shift|, and S; or how far it
        is off its softmax."""
        require(1 / FOLDED <= self.scale <= FOLDED, "direct: a head that a map behind it hardly takes")
        size = sum(self.magnitude(low, high, model))
        error = self.error(keys, low, high, model) if softmax else self.rounding(low, high, model)
        return (error + 6 * model.unit * size) * SLACK, size, None if softmax else self.claim

    @property
    def claim(self) -> Claim:
        """S."""
        return Claim(self._function(), 1.0, 0.0, 1.0, 0.0)

    def rounding(self, low: float, high: float, model: Arithmetic) -> float:
        """The lemma's."""
        return abs(self.scale) * self._whole(low, high, model)[1] * SLACK

    def error(self, keys: Keys, low: float, high: float, model: Arithmetic) -> float:
        """The lemma's, for a head of these keys."""
        rounded, nothing = self.rounding(low, high, model), np.zeros(len(keys[0]))
        part = Part(*keys, nothing, nothing, nothing, nothing, nothing, nothing, EXACT, whole=True)
        found = prove([part], self.claim, [(low, high)], EXACT, ENOUGH * rounded)
        return (found.approximation + rounded) * SLACK

    def _whole(self, low: float, high: float, model: Arithmetic) -> tuple[float, float]:
        """Bounds on |q| as computed, with its pieces, and on how far it is off, for t between low and high."""
        most, error = self._computed(low, high, model)
        for one in self.beside:
            size, off = one._computed(low, high, model)
            most, error = most + abs(one.scale) * size, error + abs(one.scale) * off + model.tiny * (4 + size)
        error += bool(self.beside) * model.gamma(len(self.beside) + 2) * most
        found = (most + error) * SLACK, error * SLACK
        numbers = max([found[0], *(abs(one.scale) for one in self.beside)])
        require(numbers < model.largest / 4, _overflow(model))
        return found

    @np.errstate(all="ignore")  # what is not finite is refused
    def _computed(self, low: float, high: float, model: Arithmetic) -> tuple[float, float]:
        """The same of its own quotient alone."""
        ends = (-np.inf if self.low is None else self.low, np.inf if self.high is None else self.high)
        start, end = (min(max(t, ends[0]), ends[1]) - self.origin for t in (low, high))
        edges = np.linspace(start, end, PIECES + 1)
        far = np.maximum(np.abs(edges[1:]), np.abs(edges[:-1])) * SLACK
        middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2 + 8 * OWN_UNIT * far

        def bounds(*powers: tuple[int, float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            """Of a polynomial, whose first coefficient is 1: between what it lies, and how far it is off."""
            n, top, total = len(powers) - 1, max(j for j, _ in powers), sum(abs(c) for _, c in powers)
            sizes = np.array([abs(c) * far**j for j, c in powers])
            require(bool(max(sizes.sum(axis=0).max(), (far**top).max(), total) < model.largest / 4), overflow)
            off = sum(model.gamma(2 * j + min(n, j + 1) + bool(k)) * sizes[k] for k, (j, _) in enumerate(powers))
            off = off + 8 * (top + 2) * model.tiny * (1 + far) ** top * (1 + total)
            value = sum(c * middle**j for j, c in powers)
            own = 8 * (top + 2) * OWN_UNIT
            slope = np.abs(sum(j * c * middle ** (j - 1) for j, c in powers if j))
            slope = slope + own * sum(j * abs(c) * far ** (j - 1) for j, c in powers if j)
            curved = sum(j * (j - 1) * abs(c) * far ** (j - 2) for j, c in powers if j > 1)
            wide = (half * slope + half**2 / 2 * curved) * SLACK + own * sizes.sum(axis=0)
            return value - wide, value + wide, off * SLACK

        overflow = _overflow(model)
        left, right, wrong = bounds((1, 1.0), *self.powers)
        least, _, other = bounds((0, 1.0), *self.below)
        kept = (least - other) / SLACK
        require(bool((kept > 0).all()), "direct: a series whose denominator may be 0")
        q = np.maximum(np.abs(left), np.abs(right)) / kept
        off = (wrong + q * other) / kept
        off = off + bool(self.below) * (model.unit * (q + off) + model.tiny)
        most, error = (float(one.max()) * SLACK for one in (q + off, off))
        require(most < model.largest / 4, overflow)
        return most, error

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

        quotients = []
        for piece in (self, *self.beside):
            clipped = 0
            for op, end in (("max", piece.low), ("min", piece.high)):
                clipped = clipped if end is None else made(op, clipped, end)
            if piece.low is not None and piece.low == piece.high:
                clipped = made("add", piece.low)
            s = made("add", clipped, -piece.origin)
            above, below = (
                [made("mul", c, made("integer_power", s, data=j)) for j, c in of] for of in (piece.powers, piece.below)
            )
            q = made("div", made("add", s, *above), made("add", 1.0, *below))
            quotients.append(q if piece is self else made("mul", q, piece.scale))
        made("add", made("mul", made("add", *quotients), self.scale), self.shift)
        return Expression.of(tuple(nodes))


Found = Series | TwoKeys


def read_series(stored: Stored, dtype: str) -> list[Found]:
    """Those that a file names; they are no hints, but what may be computed."""
    data = {} if stored.derivation is None else stored.derivation.get("data")
    if not isinstance(data, dict):  # who runs the network may take pairs for an object, too
        raise NotVerified("the data of a derivation are no object")
    rows = data.get("series", [])
    try:
        require(isinstance(rows, list) and len(rows) <= MAX_SERIES, f"more than {MAX_SERIES} series")
        found = [_read(row, dtype) for row in rows]
        require(len({one.keys for one in found}) == len(found), "two series of one head")
        return found
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NotVerified(f"a series is damaged: {error!r}"[:200]) from error


def _read(row: dict[str, Any], dtype: str) -> Found:
    columns = [[float(x) for x in row[name]] for name in ("slopes", "offsets", "values")]
    keys = tuple(zip(*columns, strict=True))
    require(bool(np.isfinite(columns).all()), _NONE)
    require(all(one[:2] < other[:2] for one, other in pairwise(keys)), "a series of keys that are not sorted, or equal")
    if "rate" in row:
        return read_two_keys(row, keys, dtype)
    found = replace(_quotient(row, dtype), keys=keys, shift=float(row["shift"]))
    require(bool(np.isfinite(found.shift)), _NONE)
    require(len(found.keys) > 1 and any(columns[0]), "a series of a head whose slopes are all 0, or of one key")
    require(any(columns[2]), "a series of a head that reads nothing")  # it is not computed, by no series either
    beside = row.get("beside", [])
    require(len(beside) <= MAX_PIECES, f"a series of more than {MAX_PIECES} pieces")
    return replace(found, beside=tuple(_quotient(one, dtype) for one in beside))


_NONE = "a series of numbers that are none"


def _overflow(model: Arithmetic) -> str:
    return f"direct: a series may overflow in {model.dtype}"


def _quotient(row: dict[str, Any], dtype: str) -> Series:
    """Of no keys yet."""
    low, high = (None if row[name] is None else float(row[name]) for name in ("low", "high"))
    rows = row["coefficients"], row.get("below", [])
    above, below = (tuple((int(j), float(c)) for j, c in one) for one in rows)
    found = Series((), float(row["origin"]), low, high, above, below, float(row["scale"]), 0.0)
    held = [found.origin, *(end for end in (low, high) if end is not None)]
    require(bool(np.isfinite([*held, *(c for _, c in above + below), found.scale]).all()), _NONE)
    for least, powers, one in zip((2, 1), (above, below), rows, strict=True):
        whole = list(dict.fromkeys(j for j, _ in powers)) == [j for j, _ in one]
        require(whole and all(least <= j <= MAX_POWER for j, _ in powers), f"a series of powers beyond {MAX_POWER}")
    require(all(float(np.dtype(dtype).type(one)) == one for one in held), f"a series that is clipped beside {dtype}")
    return found


def that_runs(series: Sequence[Found], keys: Keys, off: np.ndarray) -> Found | None:
    """That which a head of these keys is computed by, if it has one: of all keys that weigh anything. off: how far
    their offsets may be; a head that may have all keys of a series, but for what some are off by, is refused: also if
    one of its others may be heard or not."""
    own = set(zip(*(one[off == 0].tolist() for one in keys), strict=True))
    found = [one for one in series if own.issuperset(one.keys)]
    if found:
        live = within_reach(keys[0], keys[1] + off)  # what is silent there is so with smaller offsets
        heard = sorted(zip(*(one[live].tolist() for one in keys), strict=True))
        found = [one for one in found if list(one.keys) == heard]
    if off.any():
        slopes, offsets, values = keys
        for one in series:
            near = [((slopes == a) & (values == v) & (np.abs(offsets - g) <= off)).any() for a, g, v in one.keys]
            require(one in found or not all(near), "direct: a head of whose keys some are rounded")
    return found[0] if found else None
