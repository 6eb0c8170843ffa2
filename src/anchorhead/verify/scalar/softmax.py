"""One softmax in floats and in balls: its Taylor series, the keys that matter on a cell, and the rounding of what it
reads, r(t) = sum_k w_k (v_k + own_k t), w = softmax_k(a_k t + g_k).

Lemma. Let |s - t| <= half. Then w_k(s) <= w_k(t) e^(|a_k - A| half), A = sum w a at t: log w_k is concave, with the
slope a_k - A at t.

Keys whose weight stays below e^(-AWAY) on a cell are left out of it. A softmax mean changes by at most their weights
times the largest difference of what keys hold, which is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from flint import arb, arb_mat, arb_series

from anchorhead.verify.balls import above, exact
from anchorhead.verify.errors import require
from anchorhead.verify.programs.expressions import Undecided
from anchorhead.verify.rounding import (
    LARGE,
    OWN_UNIT,
    SLACK,
    UNDERFLOW,
    Arithmetic,
    power_of_two,
    softmax_log_error,
    softmax_read_error,
)
from anchorhead.verify.scalar.gaps import gaps
from anchorhead.verify.scalar.part import Part

ORDER = 10
"""Of Taylor's polynomials."""
AWAY = 90.0
MANY = 24
"""So many anchors are looked at neighbour by neighbour."""
STRIPS, FINE = 1024, 8.0
"""Strips in which logits move by 1 / FINE, either way; as many keys are looked at in all of them together, or fewer."""
KEPT = 64
"""Expansions that are kept."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """Keys on pieces |s - t| <= half of cells; arrays (cells, pieces, keys), where keys are padded with absent ones.

    index     which keys, the cell's heaviest first    part        these keys
    count     how many they are, (cells, 1)            far         bounds on |s|, (cells, pieces, 1)
    weights   at t                                     upper       bounds on their logarithms on the piece
    lam       Lambda_k, of softmax_log_error           held        bounds on |v_k + own_k s|
    away      between what that less r lies            result      bounds on |r|, (cells, pieces)
    """

    index: np.ndarray
    part: Part
    count: np.ndarray
    far: np.ndarray
    half: np.ndarray
    weights: np.ndarray
    upper: np.ndarray
    lam: np.ndarray
    held: np.ndarray
    away: tuple[np.ndarray, np.ndarray]
    result: np.ndarray


class Softmax:
    """One part, in floats and in balls.

    terms     how many keys hold anything; by default all that matter
    rounded   whether the floats are rounded ones of the balls
    """

    rounded = False

    def __init__(self, part: Part, model: Arithmetic, terms: int | None = None) -> None:
        self.part, self.model, self.count, self.terms = part, model, len(part.slopes), terms
        self.lean = part.lean
        require(not self.lean or part.own is None, "keys of which what they hold leans")
        own = np.zeros(self.count) if part.own is None else part.own
        columns = part.slopes, part.offsets, part.values, own
        self.a, self.g, self.v, self.own = ([exact(x) for x in column] for column in columns)
        self.expansions: dict[bytes, tuple[list[arb], arb_mat]] = {}

    def largest(self, far: float) -> float:
        """A bound on what keys hold for |t| <= far."""
        held = np.abs(self.part.values) + (0.0 if self.part.own is None else np.abs(self.part.own) * far)
        return float(held.max()) * SLACK if self.count else 0.0

    def windows(self, c: np.ndarray, h: np.ndarray) -> list[tuple[np.ndarray, float]]:
        """For cells |t - c| <= h, (cells,), and as far beyond as t leans: the keys that matter, the heaviest at the
        middle first, and a bound on the weight of the others, as computed: logits that are off by `wrong` may weigh
        e^wrong more. Of many keys those are looked at that matter on the smallest interval around all cells."""
        h = (h + self.lean) * SLACK
        if self.count < MANY or not len(c):
            return self._windows(self.part, c, h)
        low, high = float((c - h).min()), float((c + h).max())
        middle, half = np.array([low / 2 + high / 2]), np.array([high / 2 - low / 2]) * SLACK + UNDERFLOW
        ((some, lost),) = self._windows(self.part, middle, half)
        found = self._windows(self.part.only(some), c, h)
        return [(some[keys], others + lost) for keys, others in found]

    def _windows(self, part: Part, c: np.ndarray, h: np.ndarray) -> list[tuple[np.ndarray, float]]:
        c, h = c[:, None], h[:, None]
        far = np.abs(c) + h
        logits, size = part.slopes * c + part.offsets, np.abs(part.slopes) * far + np.abs(part.offsets)
        noise = 8 * OWN_UNIT * (size + 1)
        most = 2 * size.max(axis=1, keepdims=True)
        wrong = softmax_log_error(part.logit_error(far, size), most, self.model)
        wrong = wrong + wrong.max(axis=1, keepdims=True)
        top = logits.argmax(axis=1)[:, None]
        gap = np.take_along_axis(logits - noise, top, axis=1) - logits - noise - wrong
        gap = gap - np.abs(part.slopes - part.slopes[top]) * h * SLACK
        np.put_along_axis(gap, top, -np.inf, axis=1)
        near = ~(gap >= AWAY)
        others = np.where(near, 0.0, np.exp(-np.clip(gap, AWAY, 700.0))).sum(axis=1) * SLACK
        keys = map(np.flatnonzero, near)
        first = [np.concatenate([one, some[some != one]]) for one, some in zip(top, keys, strict=True)]
        return list(zip(first, others.tolist(), strict=True))

    def crossings(self) -> np.ndarray:
        """Where neighbours in the order of slopes have the same logit."""
        order = np.argsort(self.part.slopes, kind="stable")
        steps = np.diff(self.part.slopes[order])
        with np.errstate(divide="ignore", invalid="ignore"):
            found = -np.diff(self.part.offsets[order]) / steps
        return found[(steps > 0) & np.isfinite(found)]

    def series(self, c: arb, h: arb, near: np.ndarray, order: int) -> arb_series:
        """h^j r^(j) / j! at c, a point or a cell, less what the first of these keys holds, the heaviest."""
        top, *others = near.tolist()
        if not others:
            return arb_series([0], prec=order)
        v, own, (slopes, powers) = self.v, self.own, self._powers(near)
        columns = []
        for k, a in zip(others, slopes, strict=True):
            weight, lean = (a * c + (self.g[k] - self.g[top])).exp(), own[k] - own[top]
            columns.append([weight, weight * (v[k] - v[top] + lean * c), weight * lean])
        found = (powers * arb_mat(columns)).entries()
        steps = [arb(1)]
        for _ in range(1, order):
            steps.append(steps[-1] * h)
        lower = [found[3 * j] * steps[j] for j in range(order)]
        upper = [(found[3 * j + 1] + (found[3 * j - 1] if j else 0)) * steps[j] for j in range(order)]
        lower[0] += 1
        if lower[0].contains(0):
            raise Undecided("softmax")
        return arb_series(upper, prec=order) / arb_series(lower, prec=order)

    def strips(self, half: float, near: np.ndarray) -> int:
        """Into how many strips what t leans by is cut, for pieces of such a half width: few of these, if they are wide
        or weights change little."""
        steep = FINE * float(np.ptp(self.part.slopes[near]))
        return int(np.clip(np.ceil(self.lean * steep / max(1.0, half * steep)), 1, max(STRIPS // len(near), 1)))

    def steepest(self, c: arb, h: arb, near: np.ndarray) -> float:
        """A bound on |dr/dt| on a cell, and as far beyond as t leans, strip by strip if that is further than the cell
        is wide: halving the cell would tell no more of it."""
        cut = self.strips(0.0 if h < self.lean else above(h), near)
        wide = (h + self.lean) / cut
        return max(above(abs(self.slope(c + (arb(0, 1) + j) * wide, near))) for j in range(1 - cut, cut, 2))

    def slope(self, c: arb, near: np.ndarray) -> arb:
        """dr/dt on a cell, of keys that hold values alone: with w the weights, any A and V,

            sum_k w_k (a_k - A)(v_k - V) - (sum_k w_k (a_k - A)) (sum_k w_k (v_k - V)).

        V is near the mean, and logits are taken relative to the key that would move it most, whose slope is A: balls of
        keys that hold much, of either sign, are then narrow, and wide ones are of keys that hold about V.
        """
        keys, held = near.tolist(), [self.v[k] for k in near.tolist()]
        weights = self._weights(c.mid(), keys, keys[0])
        mean = (sum((w * x for w, x in zip(weights, held, strict=True)), arb(0)) / sum(weights, arb(0))).mid()
        gauge = max(zip(weights, held, keys, strict=True), key=lambda one: above(one[0] * abs(one[1] - mean)))[2]
        total = tilts = aparts = both = arb(0)
        for w, k in zip(self._weights(c, keys, gauge), keys, strict=True):
            tilt, apart = self.a[k] - self.a[gauge], self.v[k] - mean
            total, tilts, aparts, both = total + w, tilts + w * tilt, aparts + w * apart, both + w * tilt * apart
        if not total > 0:
            raise Undecided("softmax")
        return both / total - tilts / total * (aparts / total)

    def _weights(self, t: arb, keys: Sequence[int], gauge: int) -> list[arb]:
        """e^(logits), relative to one of the keys."""
        return [((self.a[k] - self.a[gauge]) * t + (self.g[k] - self.g[gauge])).exp() for k in keys]

    def _powers(self, near: np.ndarray) -> tuple[list[arb], arb_mat]:
        """Slopes of keys less that of the first one, and the coefficients of e^(slope x)."""
        name = near.tobytes()
        if name not in self.expansions:
            if len(self.expansions) > KEPT:
                self.expansions.clear()
            top, *others = near.tolist()
            slopes = [self.a[k] - self.a[top] for k in others]
            rows = [[arb(1)] * len(slopes)]
            for j in range(1, ORDER + 1):
                rows.append([x * a / j for x, a in zip(rows[-1], slopes, strict=True)])
            self.expansions[name] = slopes, arb_mat(rows)
        return self.expansions[name]

    def pieces(self, t: np.ndarray, half: np.ndarray, speed: np.ndarray, near: Sequence[np.ndarray]) -> Pieces:
        """On pieces |s - t| <= half of cells, all (cells, pieces): r less the heaviest key's line moves by at most
        `speed` there; `near` are the keys that matter on each cell."""
        widest, count = max(map(len, near)), np.array([[len(keys)] for keys in near])
        index = np.array([np.concatenate([keys, np.full(widest - len(keys), keys[0])]) for keys in near])
        absent = (np.arange(index.shape[1]) >= count)[:, None]
        part = self.part.only(index[:, None])
        t, half = t[..., None], half[..., None]
        half = half + 4 * OWN_UNIT * np.abs(t)
        far, steep = np.abs(t) + half, np.abs(part.slopes)
        logits = part.slopes * t + part.offsets
        noise = 8 * OWN_UNIT * (steep * far + np.abs(part.offsets) + 1)
        gap, unsure = gaps(part.slopes, part.offsets, t, np.where(absent, -np.inf, logits).argmax(axis=2))
        best = np.where(absent, np.inf, gap).argmin(axis=2)[..., None]  # float64 need not know which logit is largest
        least, less_sure = (np.take_along_axis(one, best, axis=2) for one in (gap, unsure))
        gap, unsure = gap - least, unsure + less_sure + 4 * OWN_UNIT * (np.abs(gap) + np.abs(least))
        unsure = unsure + 2 * noise.max(axis=2, keepdims=True) * self.rounded
        weights = np.where(absent, 0.0, np.exp(-np.maximum(gap, 0.0)))
        total = weights.sum(axis=2, keepdims=True)
        weights /= total
        off = 4 * (unsure + (weights * unsure).sum(axis=2, keepdims=True)) + 1e-14
        tilt = np.abs(part.slopes - (weights * part.slopes).sum(axis=2, keepdims=True))
        tilt = tilt + (weights * (off * tilt + 1e-14 * steep)).sum(axis=2, keepdims=True)
        # by logarithms: what underflows may not do so once it has grown
        upper = np.minimum(np.minimum(-np.maximum(gap, 0.0) - np.log(total) + tilt * half, 0.0) + off, 0.0)
        upper = np.where(absent, -np.inf, upper)
        apart, sizes, sway, base = part.values, np.abs(part.values), 0.0, 0.0
        spread = sizes
        if part.own is not None:
            rise, lean = part.values - part.values[..., :1], part.own - part.own[..., :1]
            base = part.values[..., 0] + part.own[..., 0] * t[..., 0]
            apart, spread = rise + lean * t, np.abs(rise) + np.abs(lean) * far
            sizes = np.abs(part.values) + np.abs(part.own) * far
            lost = spread + self.rounded * (sizes + sizes[..., :1])
            sway = np.abs(lean) * half + 8 * OWN_UNIT * lost
        mean = (weights * apart).sum(axis=2)
        deviation = apart - mean[..., None]
        around = (weights * (off * np.abs(deviation) + 1e-14 * spread)).sum(axis=2) + speed
        result = np.abs(mean + base) + around
        if part.own is not None:
            result = result + np.abs(part.own[..., 0]) * half[..., 0] + 8 * OWN_UNIT * sizes[..., 0]
        delta = part.logit_error(far, np.abs(logits) + steep * half + noise)
        apart = np.maximum(gap, 0.0) + (steep + steep.max(axis=2, keepdims=True)) * half
        apart = apart + 2 * noise.max(axis=2, keepdims=True)
        lam = softmax_log_error(np.where(absent, 0.0, delta), np.where(absent, 0.0, apart), self.model)
        held, wide = np.where(absent, 0.0, np.broadcast_to(sizes, upper.shape)), around[..., None] + sway
        away = deviation - wide, deviation + wide
        return Pieces(index[:, None], part, count, far, half, weights, upper, lam, held, away, result)

    def rounding(
        self, t: np.ndarray, half: np.ndarray, speed: np.ndarray, near: Sequence[np.ndarray], leak: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """On `pieces` the rounding of what is read, bounds on |it| and on sum_k |w_k (v_k + own_k t)|; leak: bounds on
        the weight of keys that are left out, (cells,)."""
        on, (off, most) = self.pieces(t, half, speed, near), self.part.direct
        error, mass = self._read_error(on, on.count)
        if self.part.own is None and (on.lam > LARGE).any():
            again = self._one_apart(on, t, half, near)
            error, mass = np.minimum(error, again[0]), np.minimum(mass, again[1])
        error = np.maximum(error, off if self.part.series is None else 0.0) + self.left_out(on, leak)
        return error, np.maximum(on.result + error, most), np.maximum(mass + error, most)

    def _read_error(self, on: Pieces, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        held = on.away, self.value_error(on), on.held, on.result
        return softmax_read_error(on.upper, on.lam, *held, count, self.model, self.count, self.terms)

    def _one_apart(
        self, on: Pieces, t: np.ndarray, half: np.ndarray, near: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `_read_error`, where the weight of one key, that whose logit is off most, may be anything.

        Lemma. Let that key hold V, and M be the mean of the others, r = w V + (1 - w) M. If V and M, computed in sums
        of as many terms, are off by at most e and f, then r is by at most |V - M| + e + f.

        Proof. What is computed is w~ V~ + (1 - w~) M~ for some w~ between 0 and 1, V~ and M~ having the roundings of
        their terms, and r lies between V and M: it is no further than |V - M| from either.

        So it is at a kink, where V and M are about the same. M moves by no more than its covariance of slopes and
        values allows: a quarter of the product of the widths of both, at any weights.
        """
        worst = np.take_along_axis(on.index[:, 0], on.lam.max(axis=1).argmax(axis=-1)[:, None], axis=1)
        others = [keys[keys != one] if len(keys) > 1 else keys for keys, one in zip(near, worst, strict=True)]
        widths = [np.ptp(self.part.slopes[keys]) * np.ptp(self.part.values[keys]) / 4 for keys in others]
        moves = np.array(widths)[:, None] * on.half[..., 0] * SLACK
        rest = self.pieces(t, half, moves, others)
        alone = self.part.only(worst[:, None])
        nothing, size = np.zeros_like(alone.values), np.abs(alone.values)
        held = (nothing, nothing), alone.value_error, size, size[..., 0]
        one = softmax_read_error(nothing, nothing, *held, on.count, self.model, self.count, self.terms)
        first = rest.part.values[..., 0] - alone.values[..., 0]
        apart = np.maximum(*(np.abs(first - end[..., 0]) for end in rest.away))
        apart = apart + 1e-14 * (rest.held.max(axis=-1) + size[..., 0])
        error, mass = self._read_error(rest, on.count)
        return (apart + error + one[0]) * SLACK, (mass + one[1]) * SLACK

    def value_error(self, on: Pieces) -> np.ndarray:
        """How far what keys hold may be off."""
        own = on.part.own
        if own is None:
            return on.part.value_error
        rounded = np.where(power_of_two(own), 0.0, self.model.unit * np.abs(own)) * on.far
        return on.part.value_error + rounded + np.where(own == 0, 0.0, 2 * self.model.tiny * (1 + np.abs(own)))

    def left_out(self, on: Pieces, leak: np.ndarray) -> np.ndarray:
        """What keys that are left out may change, in exact arithmetic and as the dtype has it."""
        most = (np.abs(self.part.values) + self.part.value_error).max() + 1
        if self.part.own is not None:
            most = most + np.abs(self.part.own).max() * on.far[..., 0]
        underflow = 4 * (self.count - on.count) * self.model.tiny
        return (8 * leak[:, None] + underflow) * most
