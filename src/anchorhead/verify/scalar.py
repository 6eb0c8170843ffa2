"""The scalar head: softmaxes whose logits are affine in one number t, against a function of t.

    R(t) = sum over parts of sum_k v_k softmax_k(a_k t + g_k)          claim:  R(t) = alpha f(scale t + shift) + beta

Lemma. For every t of the intervals the dtype's R(t) differs from the claim by at most `total`.

Proof, on a cell t = c + h x, |x| <= 1. D = R - claim is analytic wherever f is, and with d_j = D^(j)(c) h^j / j!

    D(c + h x) = sum_(j<n) d_j x^j + e x^n,    |e| <= sup over the cell of |D^(n)| h^n / n!,

which is Taylor's theorem. The d_j come from quotients of series of balls at the point c, the bound on e from the same
series with the whole cell as their constant term. The polynomial is bounded on equal pieces of the cell, to second
order around their middles; on each piece the rounding of every part is added (`_part_rounding`). Cells are halved until
the largest sum is close to what it is at a point. Where f is not analytic (a kink), cells are halved until they are
NARROW, and then R and f are enclosed by balls, each on its own.
Keys whose weight stays below exp(-AWAY) on a cell are left out of it: a softmax mean changes by at most their weights
times |v_k - R|, which is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import numpy as np
from flint import arb, arb_series

from anchorhead.verify.balls import above, coefficient, exact, precision
from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.programs.expressions import Expression, Undecided
from anchorhead.verify.rounding import (
    OWN_UNIT,
    SILENT,
    SLACK,
    Arithmetic,
    dot_error,
    power_of_two,
    softmax_log_error,
    softmax_read_error,
)

ORDER = 10
PIECES = 24
CLOSE = 1.001
"""How far above its largest value at a point the bound may end."""
HOPELESS = 1.001
"""An error at a point that is so much above what would be good enough ends the search."""
REST = 0.002
"""Of what is aimed at, what the remainder of Taylor's theorem may be."""
AWAY = 90.0
NARROW = 2.0**-90
MAX_CELLS = 60_000
BATCH = 256
MANY = 24
"""So many anchors are looked at neighbour by neighbour."""

_Nd = np.ndarray
_Arrays = tuple[_Nd, _Nd, _Nd, _Nd, _Nd, _Nd, _Nd, _Nd, _Nd]
"""Those of a Part, in its order."""


@dataclass(frozen=True, eq=False)
class Part:
    """One softmax: logits slopes t + offsets, read with values.

    sizes, exact_sizes, terms   of the constant products that make up each offset: the sum of their absolute values, of
                                those that round nothing, and how many they are
    wrong, wrong_slope          how far logits may be off beyond the rounding of their own sums: wrong + wrong_slope |t|
    whole                       whether `wrong` has that rounding too
    lean                        how far t itself may be off in this part: it moves logit k by a_k times that, of which
                                a common part changes no softmax, so that |a_k - A| lean remains, for any A
    value_error                 how far values may be off
    direct                      how far it is off what it is in exact arithmetic where it is computed otherwise than as
                                a softmax, and a bound on the sizes of the numbers that take its place in sums
    """

    slopes: np.ndarray
    offsets: np.ndarray
    values: np.ndarray
    sizes: np.ndarray
    exact_sizes: np.ndarray
    terms: np.ndarray
    wrong: np.ndarray
    wrong_slope: np.ndarray
    value_error: np.ndarray
    model: Arithmetic
    whole: bool = False
    lean: float = 0.0
    direct: tuple[float, float] = (0.0, 0.0)

    @property
    def arrays(self) -> _Arrays:
        return (
            self.slopes, self.offsets, self.values, self.sizes, self.exact_sizes, self.terms, self.wrong,
            self.wrong_slope, self.value_error,
        )  # fmt: skip

    def only(self, keys: np.ndarray) -> Part:
        arrays = cast("_Arrays", tuple(array[keys] for array in self.arrays))
        return Part(*arrays, self.model, self.whole, self.lean, self.direct)

    def key(self) -> tuple:
        """All but how far things may be off."""
        return (*(array.tobytes() for array in self.arrays[:6]), self.whole)

    def worse(self, other: Part) -> Part:
        """The same softmax, as far off as this one or the other."""
        pairs = zip(self.arrays[6:], other.arrays[6:], strict=True)
        wrong, slope, values = (np.maximum(mine, theirs) for mine, theirs in pairs)
        direct = max(self.direct[0], other.direct[0]), max(self.direct[1], other.direct[1])
        return Part(*self.arrays[:6], wrong, slope, values, self.model, self.whole, max(self.lean, other.lean), direct)

    def covers(self, other: Part) -> bool:
        """Whether the other is nowhere further off."""
        pairs = zip(self.arrays[6:], other.arrays[6:], strict=True)
        wide = self.lean >= other.lean and all(a >= b for a, b in zip(self.direct, other.direct, strict=True))
        return wide and all((mine >= theirs).all() for mine, theirs in pairs)

    def logit_error(self, t: np.ndarray, logits: np.ndarray) -> np.ndarray:
        """Delta_k for |t| and |logit| at most these, (..., 1) and (..., keys)."""
        steep = np.abs(self.slopes) * t
        exactly = np.where(power_of_two(self.slopes), steep, 0.0) + self.exact_sizes
        own = (self.slopes != 0) + self.terms
        summed = 0.0 if self.whole else dot_error(steep + self.sizes, exactly, own, logits, self.model)
        return summed + self.wrong + self.wrong_slope * t


@dataclass(frozen=True)
class Claim:
    """alpha f(scale t + shift) + beta; function None: f is the identity."""

    function: Expression | None
    scale: float
    shift: float
    alpha: float
    beta: float


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
    parts: Sequence[Part],
    claim: Claim,
    intervals: Sequence[tuple[float, float]],
    model: Arithmetic,
    limit: float = 0.0,
    required: bool = False,
) -> Proven:
    """The lemma; limit: what would be good enough, so that no more is done; required: more than that is of no use."""
    with precision(cap=ORDER + 1):
        return _Proof([Softmax(part, intervals, model) for part in parts], claim, intervals, limit, required).run()


class Softmax:
    """One part, in floats and in balls."""

    def __init__(self, part: Part, intervals: Sequence[tuple[float, float]], model: Arithmetic) -> None:
        self.part, self.model = part, model
        reach = max(max(abs(a), abs(b)) for a, b in intervals)
        self.noise = 8 * OWN_UNIT * (np.abs(part.slopes) * reach + np.abs(part.offsets) + 1)
        self.count = len(part.slopes)
        largest = np.abs(part.slopes) * reach + np.abs(part.offsets)
        wrong = softmax_log_error(part.logit_error(np.array(reach), largest), 2 * largest.max() + 0 * largest, model)
        self.wrong = wrong + wrong.max() + 2 * np.abs(part.slopes - part.slopes.mean()) * part.lean
        self.a, self.g, self.v = ([exact(x) for x in array] for array in (part.slopes, part.offsets, part.values))
        self.largest = float(np.abs(part.values).max()) if self.count else 0.0
        self.known: dict[tuple, arb_series] = {}

    def window(self, c: float, h: float) -> tuple[np.ndarray, int, float]:
        """The keys that matter on a cell, the heaviest at its middle, and a bound on the weight of the others, as
        computed: logits that are off by `wrong` may weigh e^wrong more."""
        part = self.part
        logits = part.slopes * c + part.offsets
        top = int(logits.argmax())
        gap = logits[top] - logits - np.abs(part.slopes - part.slopes[top]) * h * SLACK
        gap = gap - self.noise - self.noise[top] - self.wrong
        near = ~(gap >= AWAY)
        near[top] = True
        return np.flatnonzero(near), top, float(np.exp(-np.minimum(gap[~near], 700.0)).sum()) * SLACK

    def crossings(self) -> np.ndarray:
        """Where neighbours in the order of slopes have the same logit."""
        order = np.argsort(self.part.slopes, kind="stable")
        steps = np.diff(self.part.slopes[order])
        with np.errstate(divide="ignore", invalid="ignore"):
            found = -np.diff(self.part.offsets[order]) / steps
        return found[(steps > 0) & np.isfinite(found)]

    def series(self, c: arb, h: arb, near: np.ndarray, top: int, order: int) -> arb_series:
        """h^j r^(j) / j! at c, a point or a cell; values and logits are taken relative to the heaviest key's.

        What depends on these differences alone is kept: cells of even anchors are translates of one another.
        """
        if self.count < MANY:
            return self._series(c, h, near, top, order) + self.v[top]
        a, g, v = self.a, self.g, self.v
        here = c.mid()
        offsets = [(a[k] - a[top]) * here + (g[k] - g[top]) for k in near]
        slopes, values = self.part.slopes[near] - self.part.slopes[top], self.part.values[near] - self.part.values[top]
        exactly = all(one.is_exact() for one in offsets) and h.is_exact()
        if not exactly:
            return self._series(c, h, near, top, order) + v[top]
        name = (slopes.tobytes(), values.tobytes(), tuple(map(_name, offsets)), _name(h), order, c.is_exact())
        if name not in self.known:
            self.known[name] = self._series(c, h, near, top, order)
        return self.known[name] + v[top]

    def _series(self, c: arb, h: arb, near: np.ndarray, top: int, order: int) -> arb_series:
        upper, lower = [arb(0)] * order, [arb(0)] * order
        lower[0] = arb(1)
        a, g, v = self.a, self.g, self.v
        for k in near:
            if k == top:
                continue
            slope = a[k] - a[top]
            term = (slope * c + (g[k] - g[top])).exp()
            value, step = v[k] - v[top], slope * h
            for j in range(order):
                if j:
                    term = term * step / j
                lower[j] += term
                upper[j] += term * value
        if lower[0].contains(0):
            raise Undecided("softmax")
        return arb_series(upper, prec=order) / arb_series(lower, prec=order)

    def rounding(
        self, t: np.ndarray, half: np.ndarray, speed: np.ndarray, near: Sequence[np.ndarray] | None, leak: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """On pieces |s - t| <= half of cells, t (cells, pieces): the rounding of what is read, bounds on |it| and on
        sum_k |w_k v_k|. r moves by at most `speed` (cells,) on a piece; `near` are the keys that matter on each cell,
        by default all.

        log w_k is concave in t with slope a_k - sum w a, so w_k(s) <= w_k(t) exp(|a_k - A| half), A = sum w a at t.
        """
        if near is None:
            index, count = np.arange(self.count)[None], np.full((1, 1), self.count)
        else:
            widest, count = max(map(len, near)), np.array([[len(keys)] for keys in near])
            index = np.array([np.concatenate([keys, np.full(widest - len(keys), keys[0])]) for keys in near])
        absent = (np.arange(index.shape[1]) >= count)[:, None]
        part, noise = self.part.only(index[:, None]), self.noise[index[:, None]]
        t, half, speed = t[..., None], half[:, None, None], speed[:, None]
        half = half + 4 * OWN_UNIT * np.abs(t)
        logits = part.slopes * t + part.offsets
        gap, unsure = _gaps(part, t, np.where(absent, -np.inf, logits).argmax(axis=2))
        best = np.where(absent, np.inf, gap).argmin(axis=2)[..., None]  # float64 need not know which logit is largest
        least, less_sure = (np.take_along_axis(one, best, axis=2) for one in (gap, unsure))
        gap, unsure = gap - least, unsure + less_sure + 4 * OWN_UNIT * (np.abs(gap) + np.abs(least))
        weights = np.where(absent, 0.0, np.exp(-np.maximum(gap, 0.0)))
        total = weights.sum(axis=2, keepdims=True)
        weights /= total
        off = 4 * (unsure + (weights * unsure).sum(axis=2, keepdims=True)) + 1e-14
        mean, mean_slope = (weights * part.values).sum(axis=2), (weights * part.slopes).sum(axis=2)
        sizes, steep = np.abs(part.values), np.abs(part.slopes)
        deviation, tilt = np.abs(part.values - mean[..., None]), np.abs(part.slopes - mean_slope[..., None])
        mean_off = (weights * off * deviation).sum(axis=2) + 1e-14 * (weights * sizes).sum(axis=2)
        tilt = tilt + (weights * (off * tilt + 1e-14 * steep)).sum(axis=2, keepdims=True)
        # by logarithms: what underflows may not do so once it has grown
        grown = -np.maximum(gap, 0.0) - np.log(total) + tilt * half
        upper = np.where(absent, 0.0, np.minimum(np.exp(np.minimum(grown, 0.0)) * (1 + off), 1.0))
        deviation = deviation + (mean_off + speed)[..., None]
        result = np.abs(mean) + mean_off + speed
        delta = part.logit_error(np.abs(t) + half, np.abs(logits) + steep * half + noise) + tilt * part.lean * SLACK
        gaps = np.maximum(gap, 0.0) + (steep + steep.max(axis=2, keepdims=True)) * half + 2 * noise.max()
        lam = softmax_log_error(np.where(absent, 0.0, delta), gaps, self.model)
        values = np.where(absent, 0.0, np.broadcast_to(sizes, upper.shape))
        error, mass = softmax_read_error(upper, lam, deviation, values, result, count, self.model, self.count)
        error, least = np.maximum(error, part.direct[0]), part.direct[1]
        error = error + (upper * part.value_error).sum(axis=2) * (1 + 1e-3) + 8 * leak[:, None] * (self.largest + 1)
        return error, np.maximum(result + error, least), np.maximum(mass + error, least)


def _name(number: arb) -> tuple[int, int]:
    """An exact ball as whole numbers."""
    mantissa, exponent = number.man_exp()
    return int(mantissa), int(exponent)


def _gaps(part: Part, t: np.ndarray, top: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(a_top - a_k) t + g_top - g_k in twice float64's precision, and bounds on its error: where slopes are steep,
    logits are so large that float64 says nothing of their differences.

    Sums and products are split into what float64 holds and the exact rest (Knuth, Dekker); rests are summed plainly.
    """
    a, g = (np.broadcast_to(one, np.broadcast_shapes(one.shape, t.shape)) for one in (part.slopes, part.offsets))
    heaviest = top[..., None]
    rise, rise_rest = _sum(np.take_along_axis(a, heaviest, axis=-1), -a)
    lift, lift_rest = _sum(np.take_along_axis(g, heaviest, axis=-1), -g)
    steep, steep_rest = _product(rise, t)
    total, rest = _sum(steep, lift)
    gap = total + (rest + (steep_rest + lift_rest + rise_rest * t))
    size = np.abs(steep) + np.abs(lift) + np.abs(a * t) + np.abs(g)
    return gap, 8 * OWN_UNIT * (np.abs(gap) + 8 * OWN_UNIT * size) + 2.0**-1000


def _sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a + b as a float64 and the exact rest."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a b as a float64 and the exact rest, where nothing over- or underflows."""
    total = a * b
    (a1, a2), (b1, b2) = _halves(a), _halves(b)
    return total, ((a1 * b1 - total) + a1 * b2 + a2 * b1) + a2 * b2


def _halves(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a as a sum of two numbers of 26 bits."""
    scaled = a * 134_217_729.0
    high = scaled - (scaled - a)
    return high, a - high


@dataclass(eq=False)
class _Cell:
    """t = c + h x: the polynomial of R - claim in x, a bound on the rest, and for each part the keys that matter, a
    bound on the weight of the others, and one on |dr/dx|. Where f is not analytic, `rest` bounds all of it."""

    left: arb
    right: arb
    c: arb
    h: float
    coefficients: np.ndarray
    rest: float
    remainder: float
    near: list[np.ndarray]
    leak: list[float]
    speed: list[float]


class _Proof:
    def __init__(
        self,
        parts: list[Softmax],
        claim: Claim,
        intervals: Sequence[tuple[float, float]],
        limit: float,
        required: bool,
    ) -> None:
        self.parts, self.claim, self.intervals = parts, claim, intervals
        self.alpha, self.beta = exact(claim.alpha), exact(claim.beta)
        self.scale, self.shift = exact(claim.scale), exact(claim.shift)
        f = claim.function
        self.name = f.variables[0] if f is not None and f.variables else "x"
        self.floor, self.limit, self.required = 0.0, limit, required

    @property
    def goal(self) -> float:
        """What a cell must be below: what is good enough, if within reach, else close to the largest at a point."""
        return self.limit if self.limit >= self.floor else CLOSE * self.floor

    def run(self) -> Proven:
        """Level by level, the widest cells first."""
        waiting = [(exact(a), exact(b)) for a, b in self.intervals if a <= b]
        narrow = max(((b - a) * exact(NARROW) for a, b in waiting), key=above)
        waiting = [cell for a, b in waiting for cell in self._cut(a, b)]
        total = approximation = 0.0
        reach = np.zeros((2, len(self.parts)))
        count = 0
        while waiting:
            count += len(waiting)
            if count > MAX_CELLS:
                raise NotVerified(f"a head of {sum(p.count for p in self.parts)} anchors takes too many cells")
            cells, halved = [], []
            for a, b in waiting:
                found = self._cell(a, b)
                (halved if found is None else cells).append(found or (a, b))
            for start in range(0, len(cells), BATCH):
                batch = cells[start : start + BATCH]
                sums, bounds, sizes = self._bounds(batch)
                for cell, one, bound, size in zip(batch, sums, bounds, sizes, strict=True):
                    wide = cell.remainder > REST * max(self.floor, one) or one > self.goal
                    if wide and cell.right - cell.left > narrow:
                        halved.append((cell.left, cell.right))
                        continue
                    total, approximation = max(total, one), max(approximation, bound)
                    reach = np.maximum(reach, size)
                if self.required and 0 < self.limit * HOPELESS < self.floor:
                    raise NotVerified(f"a head that may err by {self.limit:.6g} errs by {self.floor:.6g} at some input")
            waiting = []
            for a, b in halved:
                require(
                    bool(b - a > narrow), f"a head of {sum(p.count for p in self.parts)} anchors has no bound at {a}"
                )
                middle = ((a + b) / 2).mid()
                waiting += [(a, middle), (middle, b)]
        read, mass = reach * SLACK
        return Proven(total * SLACK, approximation * SLACK, read, mass, count)

    def _cut(self, a: arb, b: arb) -> list[tuple[arb, arb]]:
        """First cells: for many anchors, between the places where neighbours weigh the same, so that cells of even
        anchors are translates of one another."""
        if max(part.count for part in self.parts) < MANY:
            return [(a, b)]
        low, high = float(a), float(b)
        cuts = np.unique(np.concatenate([part.crossings() for part in self.parts]))
        cuts = cuts[(cuts > low) & (cuts < high)]
        places = [a, *(exact(cut) for cut in cuts), b]
        return list(pairwise(places))

    def _cell(self, a: arb, b: arb) -> _Cell | None:
        """Taylor's theorem on one cell, or balls where f has a kink; None where neither tells anything."""
        c, h = ((a + b) / 2).mid(), (b - a) / 2
        t, half = float(c), above(h)
        windows = [part.window(t, half * SLACK + 4 * OWN_UNIT * abs(t)) for part in self.parts]
        leak = sum(one[2] * 2 * part.largest for one, part in zip(windows, self.parts, strict=True))
        near, leaks = [one[0] for one in windows], [one[2] for one in windows]
        cell = c + arb(0, 1) * h
        try:
            wide = [p.series(cell, h, *one[:2], ORDER + 1) for p, one in zip(self.parts, windows, strict=True)]
        except Undecided:
            return None
        points = [p.series(c, h, *one[:2], ORDER) for p, one in zip(self.parts, windows, strict=True)]
        tails = [above(abs(coefficient(one, ORDER))) for one in wide]
        sizes = [[above(abs(coefficient(one, j))) for j in range(ORDER)] for one in points]
        # r' = sum j r_j x^(j-1), and the rest of its own Taylor series; balls know little of sums that cancel
        speed = [
            min(above(abs(coefficient(one, 1))), sum(j * size[j] for j in range(1, ORDER)) * SLACK + ORDER * tail)
            for one, size, tail in zip(wide, sizes, tails, strict=True)
        ]
        try:
            rest = sum(wide, arb_series([0])) - self._claimed(cell, h)
            remainder = above(abs(coefficient(rest, ORDER)))
        except Undecided:
            remainder = np.inf
        if not remainder < np.inf:
            inner = self.scale * cell + self.shift
            f = self.claim.function
            claimed = self.alpha * (inner if f is None else f.ball({self.name: inner})) + self.beta
            moves = sum(sum(size[1:]) * SLACK + tail for size, tail in zip(sizes, tails, strict=True))
            around = above(abs(sum((one[0] for one in points), arb(0)) - claimed)) + moves
            bound = min(above(abs(sum((one[0] for one in wide), arb(0)) - claimed)), around) + leak
            zeros = np.zeros(ORDER)
            return _Cell(a, b, c, half, zeros, bound, 0.0, near, leaks, speed) if bound < np.inf else None
        difference = sum(points, arb_series([0])) - self._claimed(c, h)
        exactly = [coefficient(difference, j) for j in range(ORDER)]
        coefficients = np.array([float(one.mid()) for one in exactly])
        lost = sum(above(one.rad()) for one in exactly) + 80 * ORDER * OWN_UNIT * np.abs(coefficients).sum()
        return _Cell(a, b, c, half, coefficients, lost + remainder + leak, remainder, near, leaks, speed)

    def _bounds(self, cells: list[_Cell]) -> tuple[list[float], list[float], list[np.ndarray]]:
        """For each cell the largest error, in all and in exact arithmetic, and (2, parts) bounds on what is read."""
        middle, edge = np.linspace(-1, 1, 2 * PIECES + 1)[1::2], 1 / PIECES
        powers, order = middle[:, None] ** np.arange(ORDER), np.arange(ORDER)
        p = np.array([cell.coefficients for cell in cells])
        value = np.abs(p @ powers.T)
        slope = np.abs((p[:, 1:] * order[1:]) @ powers[:, :-1].T)
        bend = (np.abs(p) @ (order * (order - 1)))[:, None] / 2
        rest = np.array([cell.rest for cell in cells])[:, None]
        bounds = (value + slope * edge + bend * edge**2 + rest) * SLACK
        read = self._rounding(cells, middle[None], edge)
        sums = bounds + sum(one[0] for one in read)
        worst = sums.argmax(axis=1)[:, None]
        there = self._rounding(cells, middle[worst], 0.0)
        at_points = np.maximum(np.take_along_axis(value, worst, 1) - rest, 0.0) + sum(one[0] for one in there)
        self.floor = max(self.floor, float(at_points.max()))
        sizes = np.array([[one[n].max(axis=1) for one in read] for n in (1, 2)])
        return sums.max(axis=1).tolist(), bounds.max(axis=1).tolist(), list(np.moveaxis(sizes, 2, 0))

    def _rounding(self, cells: list[_Cell], x: np.ndarray, edge: float) -> list[tuple[np.ndarray, ...]]:
        """Of every part, on pieces x -+ edge of every cell."""
        half = np.array([cell.h for cell in cells])
        t = np.array([float(cell.c) for cell in cells])[:, None] + half[:, None] * x
        return [
            part.rounding(
                t,
                half * edge * SLACK,
                np.array([cell.speed[n] for cell in cells]) * edge * SLACK,
                [cell.near[n] for cell in cells],
                np.array([cell.leak[n] for cell in cells]),
            )
            for n, part in enumerate(self.parts)
        ]

    def _claimed(self, c: arb, h: arb) -> arb_series:
        inner = arb_series([self.scale * c + self.shift, self.scale * h], prec=ORDER + 1)
        f = self.claim.function
        return self.alpha * (inner if f is None else f.series({self.name: inner})) + self.beta


def silent(part: Part, intervals: Sequence[tuple[float, float]], model: Arithmetic) -> np.ndarray:
    """Keys whose computed weight is 0 wherever t is: their logit is always SILENT below another one's."""
    at = [part.slopes * end + part.offsets for ends in intervals for end in ends]
    reach = max(max(abs(a), abs(b)) for a, b in intervals)
    size = np.abs(part.slopes) * reach + part.sizes + np.abs(part.offsets)
    wrong = part.logit_error(np.array(reach), size) + 8 * OWN_UNIT * size
    least = np.minimum.reduce(at) - wrong
    most = np.maximum.reduce(at) + wrong
    return least.max() - most >= SILENT * (1 + 1e-6)
