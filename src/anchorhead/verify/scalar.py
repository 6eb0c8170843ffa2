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

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from flint import arb, arb_series

from anchorhead.verify.balls import above, below, exact, precision
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.expressions import Expression, Undecided
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
CLOSE = 1.004
"""How far above its largest value at a point the bound may end."""
REST = 0.002
"""Of what is aimed at, what the remainder of Taylor's theorem may be."""
AWAY = 90.0
NARROW = 2.0**-90
MAX_CELLS = 200_000


@dataclass(frozen=True, eq=False)
class Part:
    """One softmax: logits slopes t + offsets, read with values.

    sizes, exact_sizes, terms   of the constant products that make up each offset: the sum of their absolute values, of
                                those that round nothing, and how many they are
    wrong, wrong_slope          how far logits may be off beyond the rounding of their own sums: wrong + wrong_slope |t|
    whole                       whether `wrong` has that rounding too
    value_error                 how far values may be off
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

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return (
            self.slopes, self.offsets, self.values, self.sizes, self.exact_sizes, self.terms, self.wrong,
            self.wrong_slope, self.value_error,
        )  # fmt: skip

    def only(self, keys: np.ndarray) -> Part:
        return Part(*(array[keys] for array in self.arrays), self.model, self.whole)

    def key(self) -> tuple[bytes, ...]:
        return tuple(array.tobytes() for array in self.arrays)

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
) -> Proven:
    """The lemma; limit: what would be good enough, so that no more is done."""
    with precision(cap=ORDER + 1):
        return _Proof([_Softmax(part, intervals, model) for part in parts], claim, intervals, limit).run()


class _Softmax:
    """One part, in floats and in balls."""

    def __init__(self, part: Part, intervals: Sequence[tuple[float, float]], model: Arithmetic) -> None:
        self.part, self.model = part, model
        reach = max(max(abs(a), abs(b)) for a, b in intervals)
        self.noise = 8 * OWN_UNIT * (np.abs(part.slopes) * reach + np.abs(part.offsets) + 1)
        self.count = len(part.slopes)
        self.a, self.g, self.v = ([exact(x) for x in array] for array in (part.slopes, part.offsets, part.values))
        self.largest = float(np.abs(part.values).max()) if self.count else 0.0

    def window(self, c: float, h: float) -> tuple[np.ndarray, int, float]:
        """The keys that matter on a cell, the heaviest at its middle, and a bound on the weight of the others."""
        part = self.part
        logits = part.slopes * c + part.offsets
        top = int(logits.argmax())
        gap = logits[top] - logits - np.abs(part.slopes - part.slopes[top]) * h * SLACK
        gap = gap - self.noise - self.noise[top]
        near = gap < AWAY
        near[top] = True
        return np.flatnonzero(near), top, float(np.exp(-np.minimum(gap[~near], 700.0)).sum()) * SLACK

    def series(self, c: arb, h: arb, near: np.ndarray, top: int, order: int) -> arb_series:
        """h^j r^(j) / j! at c, a point or a cell; values and logits are taken relative to the heaviest key's."""
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
        return arb_series(upper, prec=order) / arb_series(lower, prec=order) + v[top]

    def rounding(
        self, t: np.ndarray, half: float, speed: float, near: np.ndarray, leak: float
    ) -> tuple[np.ndarray, ...]:
        """On pieces |s - t| <= half: the rounding of what is read, bounds on |it| and on sum_k |w_k v_k|; r moves by `speed`.

        log w_k is concave in t with slope a_k - sum w a, so w_k(s) <= w_k(t) exp(|a_k - A| half), A = sum w a at t.
        """
        part, noise = self.part.only(near), self.noise[near]
        t = t[:, None]
        half = half + 4 * OWN_UNIT * np.abs(t)
        logits = part.slopes * t + part.offsets
        gap = logits.max(axis=1, keepdims=True) - logits
        weights = np.exp(-gap)
        weights /= weights.sum(axis=1, keepdims=True)
        off = 4 * (noise + (weights * noise).sum(axis=1, keepdims=True)) + 1e-14
        mean, mean_slope = weights @ part.values, weights @ part.slopes
        deviation, tilt = np.abs(part.values - mean[:, None]), np.abs(part.slopes - mean_slope[:, None])
        mean_off = (weights * off * deviation).sum(axis=1) + 1e-14 * (weights @ np.abs(part.values))
        tilt = tilt + (weights * off * tilt).sum(axis=1, keepdims=True) + 1e-14 * (weights @ np.abs(part.slopes))[:, None]
        upper = np.minimum(weights * np.exp(np.minimum(tilt * half, 700.0)) * (1 + off), 1.0)
        deviation = deviation + (mean_off + speed)[:, None]
        result = np.abs(mean) + mean_off + speed
        steep = np.abs(part.slopes)
        delta = part.logit_error(np.abs(t) + half, np.abs(logits) + steep * half + noise)
        gaps = gap + (steep + steep.max()) * half + 2 * noise.max()
        lam = softmax_log_error(delta, gaps, self.model)
        error, mass = softmax_read_error(
            upper, lam, deviation, np.broadcast_to(np.abs(part.values), upper.shape), result, self.count, self.model
        )
        error = error + (upper * part.value_error).sum(axis=1) * (1 + 1e-3) + 4 * leak * (self.largest + 1)
        return error, result + error, mass + error


@dataclass(frozen=True)
class _Found:
    """The bound on a cell, its part in exact arithmetic, and (2, parts) bounds on what is read."""

    total: float
    approximation: float
    reach: np.ndarray


def _largest(read: list[tuple[np.ndarray, ...]]) -> np.ndarray:
    return np.array([[float(one[n].max()) for one in read] for n in (1, 2)])


class _Proof:
    def __init__(
        self, parts: list[_Softmax], claim: Claim, intervals: Sequence[tuple[float, float]], limit: float
    ) -> None:
        self.parts, self.claim, self.intervals, self.limit = parts, claim, intervals, limit
        self.alpha, self.beta = exact(claim.alpha), exact(claim.beta)
        self.scale, self.shift = exact(claim.scale), exact(claim.shift)
        f = claim.function
        self.name = f.variables[0] if f is not None and f.variables else "x"
        self.floor = limit / CLOSE
        self.reach = np.zeros((2, len(parts)))

    def run(self) -> Proven:
        waiting = deque(
            (exact(a), exact(b), (exact(b) - exact(a)) * exact(NARROW)) for a, b in self.intervals if a <= b
        )
        total = approximation = 0.0
        cells = 0
        while waiting:
            a, b, narrow = waiting.popleft()
            cells += 1
            c, last = ((a + b) / 2).mid(), not b - a > narrow
            found = self._cell(c, (b - a) / 2, last)
            if found is not None and (found.total <= CLOSE * self.floor or last):
                total, approximation = max(total, found.total), max(approximation, found.approximation)
                self.reach = np.maximum(self.reach, found.reach)
                continue
            if last or cells + len(waiting) > MAX_CELLS:
                raise NotVerified(f"a head of {sum(p.count for p in self.parts)} anchors is not bounded near {c}")
            waiting += [(a, c, narrow), (c, b, narrow)]
        reach, mass = self.reach * SLACK
        return Proven(total * SLACK, approximation * SLACK, reach, mass, cells)

    def _cell(self, c: arb, h: arb, last: bool) -> _Found | None:
        """The bound on a cell; None: it is too wide."""
        t, half = float(c), above(h)
        windows = [part.window(t, half * SLACK + 4 * OWN_UNIT * abs(t)) for part in self.parts]
        leak = sum(one[2] * 2 * part.largest for one, part in zip(windows, self.parts, strict=True))
        cell = c + arb(0, 1) * h
        try:
            wide = [p.series(cell, h, *one[:2], ORDER + 1) for p, one in zip(self.parts, windows, strict=True)]
            rest = sum(wide, arb_series([0])) - self._claimed(cell, h)
            remainder = above(abs(rest[ORDER]))
        except Undecided:
            return self._narrow(c, h, cell, windows, leak)
        if not remainder < np.inf:
            return self._narrow(c, h, cell, windows, leak)
        near = [p.series(c, h, *one[:2], ORDER) for p, one in zip(self.parts, windows, strict=True)]
        difference = sum(near, arb_series([0])) - self._claimed(c, h)
        coefficients = np.array([float(difference[j].mid()) for j in range(ORDER)])
        lost = sum(above(difference[j].rad()) for j in range(ORDER)) + 4 * OWN_UNIT * np.abs(coefficients).sum()
        middle, edge = np.linspace(-1, 1, 2 * PIECES + 1)[1::2], 1 / PIECES
        value = np.abs(np.polyval(coefficients[::-1], middle))
        slope = np.abs(np.polyval((coefficients * np.arange(ORDER))[:0:-1], middle))
        bend = (np.abs(coefficients) * np.arange(ORDER) * (np.arange(ORDER) - 1)).sum() / 2
        noise = 64 * OWN_UNIT * np.abs(coefficients).sum() * ORDER
        bound = (value + slope * edge + bend * edge**2 + noise + lost + remainder + leak) * SLACK
        speeds = [above(abs(one[1])) * edge for one in wide]
        read = self._rounding(t, half, middle, edge, speeds, windows)
        sums = bound + sum(one[0] for one in read)
        if remainder <= REST * max(self.floor, float(sums.max())) or last:
            worst = [int(sums.argmax())]
            there = self._rounding(t, half, middle[worst], 0.0, [0.0] * len(speeds), windows)
            self.floor = max(self.floor, float(value[worst][0]) + sum(float(one[0][0]) for one in there))
            return _Found(float(sums.max()), float(bound.max()), _largest(read))
        return None

    def _narrow(self, c: arb, h: arb, cell: arb, windows: list, leak: float) -> _Found | None:
        """Where f has a kink: balls will do, once the cell is narrow enough."""
        t, half = float(c), above(h)
        try:
            values = [p.series(cell, h, *one[:2], 2) for p, one in zip(self.parts, windows, strict=True)]
        except Undecided:
            return None
        inner = self.scale * cell + self.shift
        f = self.claim.function
        claimed = self.alpha * (inner if f is None else f.ball({self.name: inner})) + self.beta
        bound = above(abs(sum((one[0] for one in values), arb(0)) - claimed)) + leak
        read = self._rounding(t, half, np.zeros(1), 1.0, [2 * above(abs(one[1])) for one in values], windows)
        return _Found(bound + float(sum(one[0] for one in read)[0]), bound, _largest(read))

    def _rounding(
        self, t: float, half: float, middle: np.ndarray, edge: float, speeds: list[float], windows: list
    ) -> list[tuple[np.ndarray, ...]]:
        at = t + half * middle
        return [
            part.rounding(at, half * edge * SLACK, speed, one[0], one[2])
            for part, speed, one in zip(self.parts, speeds, windows, strict=True)
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
