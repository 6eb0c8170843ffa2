"""The scalar head: softmaxes whose logits are affine in one number t, against a function of t, cell by cell.

    R(t) = skip t + bias + sum over parts of r(t)          claim:  R(t) = alpha f(scale t + shift) + beta

Lemma. For every t of the intervals the dtype's R(t) differs from the claim by at most `total`, or, if that is asked
for, by at most `total` max(1, |t|).

Proof, on a cell t = c + h x, |x| <= 1. D = R - claim is analytic wherever f is, and with d_j = D^(j)(c) h^j / j!

    D(c + h x) = sum_(j<n) d_j x^j + e x^n,    |e| <= sup over the cell of |D^(n)| h^n / n!,

which is Taylor's theorem. The d_j come from quotients of series of balls at the point c, the bound on e from the same
series with the whole cell as their constant term. The polynomial is bounded on equal pieces of the cell, to second
order around their middles; on each piece the rounding of every part is added (`Softmax.rounding`), and that of their
sum. A part that leans is computed for some s, |s - t| <= lean, and what it reads is off r(t) by its rounding at s, at
most the largest on strips that cover all such s of the piece, and by |r(s) - r(t)|, at most lean times the largest
|r'| on strips that cover those of the cell. Cells are halved until the largest sum is close to what it is at a point,
or to what is good enough. Where f is not analytic (a kink), cells are halved until they are narrow, and then R and f
are enclosed by balls, each on its own, or D by what it is at c and by balls of the difference quotients of both.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from flint import arb, arb_series

from anchorhead.verify.balls import above, below, coefficient, exact, precision
from anchorhead.verify.errors import require
from anchorhead.verify.programs.expressions import Undecided
from anchorhead.verify.programs.slopes import slope_along
from anchorhead.verify.rounding import OWN_UNIT, SLACK, Arithmetic, power_of_two
from anchorhead.verify.scalar.part import Claim, Part
from anchorhead.verify.scalar.softmax import MANY, ORDER, Softmax

PIECES = 24
CLOSE = 1.001
"""How far above its largest value at a point the bound may end."""
NEGLIGIBLE = 1e-3
"""Of one rounding of what keys hold: an error that is good enough, unless it is said what is."""
REST = 0.002
"""Of what is aimed at, what the remainder of Taylor's theorem may be."""
DEEPEST = 90
"""How often an interval is halved."""
MAX_CELLS = 10_000
"""Beside four for each of the first; heads of the tables take up to 1,300."""
STRIPS_OF_A_CELL = 16
"""Strips take as long together as one cell more, and count like it."""
BATCH = 256
NARROWEST = 2.0**-900
"""Half the width of a cell at least, for float64 divides by it: narrower ones are looked at as if they were as wide."""
Place = tuple[arb, arb, int]
"""Where a cell begins and ends, and how often an interval was halved for it."""


@dataclass(frozen=True)
class Straight:
    """skip t + bias, to which what is read is added, all in any order. relative: bounds are on |R - claim| over
    max(1, |t|)."""

    skip: float = 0.0
    bias: float = 0.0
    relative: bool = True


@dataclass(frozen=True)
class Proven:
    """total: a bound on |computed R - claim|; approximation: its part in exact arithmetic.

    reach, mass   for each part bounds on |what the dtype reads| and on sum_k |computed w_k v_k|
    """

    total: float
    approximation: float
    reach: np.ndarray
    mass: np.ndarray
    cells: int


def prove(
    parts: Sequence[Part | Softmax],
    claim: Claim,
    intervals: Sequence[tuple[float, float]],
    model: Arithmetic,
    limit: float = 0.0,
    straight: Straight | None = None,
) -> Proven:
    """The lemma; limit: what would be good enough, so that no more is done;
    straight: None if whoever asks adds up what is read."""
    with precision(cap=ORDER + 1):
        softmaxes = [part if isinstance(part, Softmax) else Softmax(part, model) for part in parts]
        return _Proof(softmaxes, claim, intervals, limit, straight).run()


@dataclass(eq=False)
class _Cell:
    """t = c + h x: the polynomial of R - claim in x, a bound on the rest, and for each part the keys that matter, a
    bound on the weight of the others, one on |dr/dx|, as far as the part leans beyond the cell, and |dr/dx| at c. Where
    f is not analytic, `rest` bounds all of it.

    middle, edge, value, bounds   of pieces: see `_Proof._bound`
    """

    left: arb
    right: arb
    depth: int
    c: arb
    h: float
    coefficients: np.ndarray
    rest: float
    remainder: float
    near: list[np.ndarray]
    leak: list[float]
    speed: list[float]
    rise: list[float]
    middle: np.ndarray = field(init=False)
    edge: np.ndarray = field(init=False)
    value: np.ndarray = field(init=False)
    bounds: np.ndarray = field(init=False)


class _Proof:
    def __init__(
        self,
        parts: list[Softmax],
        claim: Claim,
        intervals: Sequence[tuple[float, float]],
        limit: float,
        straight: Straight | None,
    ) -> None:
        self.parts, self.intervals = parts, intervals
        self.claims = [_Claimed(claim), *map(_Claimed, claim.more)]
        nothing = NEGLIGIBLE * max(part.model.unit * part.largest(0.0) for part in parts)
        self.floor, self.limit, self.strips = 0.0, limit or nothing, 0
        self.added, self.straight = straight is not None, straight or Straight(relative=False)

    @property
    def goal(self) -> float:
        """What a cell must be below: what is good enough, if within reach, else close to the largest at a point."""
        return self.limit if self.limit >= self.floor else CLOSE * self.floor

    def run(self) -> Proven:
        """The widest cells first. Rounding is looked at where all else is good enough, for many cells together."""
        pairs = [(exact(a), exact(b)) for a, b in self.intervals if a <= b]
        require(bool(pairs), f"{self} on no number")
        waiting = deque((*cell, 0) for a, b in pairs for cell in self._cut(a, b))
        ready: list[_Cell] = []
        total = approximation = 0.0
        reach = np.zeros((2, len(self.parts)))
        count, most = 0, MAX_CELLS + 4 * len(waiting)
        while waiting or ready:
            places = [waiting.popleft() for _ in range(min(BATCH, len(waiting)))]
            count += len(places)
            require(count + self.strips // STRIPS_OF_A_CELL <= most, f"{self} takes too many cells")
            for place, cell in self._cells(places):
                if cell is None or self._too_much(cell):
                    waiting += self._halves(*place)
                else:
                    ready.append(cell)
            if waiting and len(ready) < BATCH:
                continue
            batch, ready = ready[:BATCH], ready[BATCH:]
            for cell, one, size in self._rounded(batch):
                require(not np.isnan(one), "a head of which cannot be told how far it is off")
                wide = cell.remainder > REST * max(self.floor, self.limit, one) or one > self.goal
                if wide and cell.depth < DEEPEST:
                    waiting += self._halves(cell.left, cell.right, cell.depth)
                    continue
                total, approximation = max(total, one), max(approximation, float(cell.bounds.max()))
                reach = np.maximum(reach, size)
        read, mass = reach * SLACK
        return Proven(total * SLACK, approximation * SLACK, read, mass, count)

    def __str__(self) -> str:
        return f"a head of {sum(part.count for part in self.parts)} anchors"

    def _raise(self, errors: np.ndarray) -> None:
        """The floor, by errors at points, as far as they are known."""
        self.floor = max(self.floor, float(np.where(errors < np.inf, errors, 0.0).max(initial=0.0)))

    def _too_much(self, cell: _Cell) -> bool:
        """Whether a cell is to be halved, whatever its rounding."""
        self._raise((cell.value - cell.rest) / self._scale(np.abs(float(cell.c) + cell.h * cell.middle)))
        return bool(cell.depth < DEEPEST and 0 < self.limit == self.goal < cell.bounds.max())

    def _halves(self, a: arb, b: arb, depth: int) -> list[Place]:
        require(depth < DEEPEST, f"{self} has no bound at {a}")
        middle = self._middle(a, b)
        return [(a, middle, depth + 1), (middle, b, depth + 1)]

    def _cut(self, a: arb, b: arb) -> list[tuple[arb, arb]]:
        """First cells: for many anchors, quarters between the places where neighbours weigh the same."""
        if max(part.count for part in self.parts) < MANY:
            return [(a, b)]
        low, high = float(a), float(b)
        cuts = np.unique(np.concatenate([part.crossings() for part in self.parts]))
        cuts = cuts[(cuts > low) & (cuts < high)]
        places = [a, *(exact(cut) for cut in cuts), b]
        quarters = [(x + (y - x) * k / 4).mid() for x, y in pairwise(places) for k in range(4)]
        return list(pairwise([*quarters, b]))

    def _middle(self, a: arb, b: arb) -> arb:
        """Where a cell is halved: if it spans scales, halfway between these."""
        low, high = float(a), float(b)
        if not self._spans_scales(low, high):
            return ((a + b) / 2).mid()
        return exact(math.copysign(math.sqrt(abs(low)) * math.sqrt(abs(high)), low))

    def _spans_scales(self, low: float, high: float) -> bool:
        least, most = sorted((abs(low), abs(high)))
        return self.straight.relative and low * high > 0 and least >= 1 and most > 4 * least

    def _cells(self, places: list[Place]) -> Iterable[tuple[Place, _Cell | None]]:
        middles = [((a + b) / 2).mid() for a, b, _ in places]
        c = np.array([float(one) for one in middles])
        halves = [((b - a) / 2).max(exact(NARROWEST)) for a, b, _ in places]
        h = np.array([above(one) for one in halves])
        windows = zip(*(part.windows(c, h * SLACK + 4 * OWN_UNIT * np.abs(c)) for part in self.parts), strict=True)
        found = [
            self._cell(*place, middle, half, [keys for keys, _ in one], [others for _, others in one])
            for place, middle, half, one in zip(places, middles, halves, windows, strict=True)
        ]
        self._bound([cell for cell in found if cell is not None])
        return zip(places, found, strict=True)

    def _cell(
        self, a: arb, b: arb, depth: int, c: arb, h: arb, near: list[np.ndarray], leaks: list[float]
    ) -> _Cell | None:
        """Taylor's theorem on one cell, or balls where f has a kink; None where neither tells anything."""
        t, half = float(c), above(h)
        both, far = list(zip(self.parts, near, strict=True)), (abs(t) + half) * SLACK
        leak = sum(2 * others * part.largest(far) for part, others in zip(self.parts, leaks, strict=True))
        cell = c + arb(0, 1) * h
        try:
            wide = [part.series(cell, h, keys, ORDER + 1) for part, keys in both]
            self.strips += sum(p.strips(below(h), keys) for p, keys in both if p.lean)
            leans = [p.steepest(c, h, keys) * half * SLACK if p.lean else None for p, keys in both]
        except Undecided:
            return None
        points = [part.series(c, h, keys, ORDER) for part, keys in both]
        tails = [above(abs(coefficient(one, ORDER))) for one in wide]
        sizes = [[above(abs(coefficient(one, j))) for j in range(ORDER)] for one in points]
        # r' = sum j r_j x^(j-1), and the rest of its own Taylor series; balls know little of sums that cancel
        speed = [
            lean
            if lean is not None
            else min(above(abs(coefficient(one, 1))), sum(j * size[j] for j in range(1, ORDER)) * SLACK + ORDER * tail)
            for one, lean, size, tail in zip(wide, leans, sizes, tails, strict=True)
        ]
        rise = [size[1] if half > p.lean else most for p, size, most in zip(self.parts, sizes, speed, strict=True)]
        value = sum((p.v[keys[0]] for p, keys in both), exact(self.straight.bias))
        slope = sum((p.own[keys[0]] for p, keys in both), exact(self.straight.skip))
        here = sum(points, arb_series([value + slope * c, slope * h], prec=ORDER))
        claimed, remainder = self._expanded(cell, c, h, wide)
        if claimed is None:
            ball = sum((one.ball(cell) for one in self.claims), arb(0))
            moves = sum(sum(size[1:]) * SLACK + tail for size, tail in zip(sizes, tails, strict=True))
            around = above(abs(coefficient(here, 0) - ball)) + moves + above(abs(slope * h))
            whole = sum((coefficient(one, 0) for one in wide), value + slope * cell)
            bound = min(above(abs(whole - ball)), around, self._by_quotients(cell, c, h, wide, here, slope)) + leak
            zeros = np.zeros(ORDER)
            return _Cell(a, b, depth, c, half, zeros, bound, 0.0, near, leaks, speed, rise) if bound < np.inf else None
        difference = here - claimed
        exactly = [coefficient(difference, j) for j in range(ORDER)]
        coefficients = np.array([float(one.mid()) for one in exactly])
        lost = sum(above(one.rad()) for one in exactly) + 80 * ORDER * OWN_UNIT * np.abs(coefficients).sum()
        rest = lost + remainder + leak
        remainder = remainder / self._scale(below(abs(cell)))
        return _Cell(a, b, depth, c, half, coefficients, rest, float(remainder), near, leaks, speed, rise)

    def _by_quotients(self, cell: arb, c: arb, h: arb, wide: list[arb_series], here: arb_series, slope: arb) -> float:
        """|R - claim| at c, and as far as difference quotients of both allow it to move from there."""
        rise = sum((coefficient(one, 1) for one in wide), slope * h)
        moves = rise - h * sum((one.slope(cell) for one in self.claims), arb(0))
        found = coefficient(here, 0) - sum((one.ball(c) for one in self.claims), arb(0))
        return above(abs(found)) + above(abs(moves))

    def _expanded(self, cell: arb, c: arb, h: arb, wide: list[arb_series]) -> tuple[arb_series | None, float]:
        """The claim as a polynomial in x, and the remainder of R less the claim; None where f may not be analytic."""
        try:
            read = sum(wide, arb_series([0], prec=ORDER + 1))
            remainder = above(abs(coefficient(read - self._claimed(cell, h), ORDER)))
            return (self._claimed(c, h), remainder) if remainder < np.inf else (None, remainder)
        except Undecided:
            return None, np.inf

    def _scale(self, t: float | np.ndarray) -> float | np.ndarray:
        """What bounds are divided by, for |t| at least this."""
        return np.maximum(t, 1.0) if self.straight.relative else 1.0

    def _bound(self, cells: list[_Cell]) -> None:
        """Sets pieces of cells, |polynomial| at their middles, and bounds on the error there in exact arithmetic."""
        if not cells:
            return
        middle, edge = (np.array(one) for one in zip(*map(self._pieces, cells), strict=True))
        order = np.arange(ORDER)
        powers = middle[..., None] ** order
        p = np.array([cell.coefficients for cell in cells])
        value = np.abs(np.einsum("cpj,cj->cp", powers, p))
        slope = np.abs(np.einsum("cpj,cj->cp", powers[..., :-1], p[:, 1:] * order[1:]))
        bend = (np.abs(p) @ (order * (order - 1)))[:, None] / 2
        rest = np.array([[cell.rest] for cell in cells])
        t, half = _places(cells, middle, edge)
        scale = self._scale(np.abs(t) - half)
        bounds = (value + slope * edge + bend * edge**2 + rest) / scale * SLACK
        for cell, *found in zip(cells, middle, edge, value, bounds, strict=True):
            cell.middle, cell.edge, cell.value, cell.bounds = found

    def _rounded(self, cells: list[_Cell]) -> Iterable[tuple[_Cell, float, np.ndarray]]:
        """Each cell with the largest error in all, and (2, parts) bounds on what is read. Cells that are not good
        enough raise the floor, by the error where its bound is largest."""
        names = "middle", "edge", "value", "bounds"
        middle, edge, value, bounds = (np.array([getattr(cell, name) for cell in cells]) for name in names)
        _, rounding, sizes = self._rounding(cells, middle, edge)
        sums = bounds + rounding
        wide = np.flatnonzero(sums.max(axis=1) > self.goal)
        if len(wide):
            worst = sums[wide].argmax(axis=1)[:, None]
            middle, value = (np.take_along_axis(one[wide], worst, 1) for one in (middle, value))
            rest = np.array([[cells[n].rest] for n in wide])
            t, rounding, _ = self._rounding([cells[n] for n in wide], middle, 0 * middle)
            self._raise(np.maximum(value - rest, 0.0) / self._scale(np.abs(t)) + rounding)
        return zip(cells, sums.max(axis=1).tolist(), np.moveaxis(sizes, 2, 0), strict=True)

    def _pieces(self, cell: _Cell) -> tuple[np.ndarray, np.ndarray]:
        """Middles and half widths of pieces in x: equal ones, or equal quotients where a cell spans scales."""
        cuts = np.linspace(-1, 1, PIECES + 1)
        low, high = float(cell.left), float(cell.right)
        if self._spans_scales(low, high):
            cuts = (np.geomspace(low, high, PIECES + 1)[1:-1] - float(cell.c)) / cell.h
            cuts = np.concatenate([[-1.0], cuts, [1.0]])
        middle = (cuts[1:] + cuts[:-1]) / 2
        return middle, np.maximum(cuts[1:] - middle, middle - cuts[:-1]) * SLACK

    def _rounding(self, cells: list[_Cell], x: np.ndarray, edge: np.ndarray) -> tuple[np.ndarray, ...]:
        """On pieces x -+ edge of every cell: their middles, the rounding of R, and (2, parts, cells) bounds on what is
        read."""
        t, half = _places(cells, x, edge)
        h, inside = np.array([[cell.h] for cell in cells]), np.where(edge > 0, half, 0.0)  # float64 may leave a point
        read = []
        for n, part in enumerate(self.parts):
            near, leak = [cell.near[n] for cell in cells], np.array([cell.leak[n] for cell in cells])
            speed, rise = (np.array([[getattr(cell, one)[n]] for cell in cells]) for one in ("speed", "rise"))
            speed = np.where(edge > 0, speed, rise) / h * 1.001
            cut = max(part.strips(float(one), keys) for one, keys in zip(half.min(axis=1), near, strict=True))
            strip = part.lean * SLACK / cut
            at = t[..., None] + strip * np.arange(1 - cut, cut, 2)
            wide, moves = (np.repeat(one, cut, axis=1) for one in (half + strip, speed * (inside + strip)))
            found = part.rounding(at.reshape(len(t), -1), wide, moves, near, leak)
            error, *sizes = (one.reshape(at.shape).max(axis=2) for one in found)
            read.append([error + speed * part.lean * part.moves * SLACK, *sizes])
        scale, far = self._scale(np.abs(t) - half), (np.abs(t) + half) * SLACK
        rounding, total = (np.sum([one[n] for one in read], axis=0) / scale for n in (0, 1))
        if self.added:
            rounding = rounding + self._summed(np.minimum(far, 1.0) if self.straight.relative else far, total)
        sizes = np.array([[one[n].max(axis=1) for one in read] for n in (1, 2)])
        return t, rounding * SLACK, sizes

    def _summed(self, along: np.ndarray, read: np.ndarray) -> np.ndarray:
        """The rounding of skip t, and of its sum with bias and with what parts read; `along` bounds |t| and `read`
        these, both over max(1, |t|) if bounds are relative."""
        skip, bias, model = self.straight.skip, self.straight.bias, self.parts[0].model
        product = 0.0 if power_of_two(np.array(skip)) else model.unit * abs(skip) * along
        sums = float(model.gamma(len(self.parts) - 1 + (skip != 0) + (bias != 0)))
        whole = np.where(read < np.inf, abs(skip) * along + abs(bias) + read + product, 1.0)  # no 0 times infinity
        return product + sums * whole + 4 * model.tiny * (1 + abs(skip))

    def _claimed(self, c: arb, h: arb) -> arb_series:
        return sum((one.series(c, h) for one in self.claims), arb_series([0], prec=ORDER + 1))


class _Claimed:
    """One function of a claim, in balls."""

    def __init__(self, claim: Claim) -> None:
        self.f = f = claim.function
        self.name = f.variables[0] if f is not None and f.variables else "x"
        self.scale, self.shift, self.alpha, self.beta = map(exact, (claim.scale, claim.shift, claim.alpha, claim.beta))

    def ball(self, t: arb) -> arb:
        inner = self.scale * t + self.shift
        return self.alpha * (inner if self.f is None else self.f.ball({self.name: inner})) + self.beta

    def slope(self, t: arb) -> arb:
        """Difference quotients on a cell."""
        inner = {self.name: self.scale * t + self.shift}
        return self.alpha * self.scale * (1 if self.f is None else slope_along(self.name, self.f, inner))

    def series(self, c: arb, h: arb) -> arb_series:
        inner = arb_series([self.scale * c + self.shift, self.scale * h], prec=ORDER + 1)
        return self.alpha * (inner if self.f is None else self.f.series({self.name: inner})) + self.beta


def _places(cells: list[_Cell], x: np.ndarray, edge: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Middles and half widths of pieces x -+ edge of cells, with what float64 loses of them."""
    c, h = (np.array(one)[:, None] for one in zip(*((float(cell.c), cell.h) for cell in cells), strict=True))
    return c + h * x, h * edge * SLACK + 4 * OWN_UNIT * (np.abs(c) + h)
