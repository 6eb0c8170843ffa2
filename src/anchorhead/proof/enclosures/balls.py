"""A head in ball arithmetic: every number that comes out encloses the exact one.

Balls are python-flint's `arb` (real) and `acb` (complex). A stored weight is a binary float, and `arb(float)`
is exact, so that the only widths are those of the argument and of the working precision (targets.precision).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from flint import arb
from jaxtyping import Float

from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Part
from anchorhead.language.expressions.precision import FLOAT64_BITS, precision, working_bits
from anchorhead.language.targets import Pieces
from anchorhead.proof.enclosures.operations import PER_ANCHOR


def upper(ball: arb) -> float:
    """A float that is not below any number of the ball; infinity for a ball that is not finite."""
    end = ball.upper()
    near = float(end)
    if math.isnan(near):
        return math.inf
    return near if near >= end else math.nextafter(near, math.inf)


def lower(ball: arb) -> float:
    """A float that is not above any number of the ball; minus infinity for a ball that is not finite."""
    return -upper(-ball)


def crossings(part: Part, apart: int = 1) -> Float[np.ndarray, " crossings"]:
    """About where anchors that are so many apart, in the order of their slopes, weigh the same, as values of t."""
    slopes, offsets, _ = part.astype(np.float64)
    rise, fall = slopes[apart:] - slopes[:-apart], offsets[:-apart] - offsets[apart:]
    return fall[rise > 0] / rise[rise > 0]


@precision(FLOAT64_BITS)
def largest_jump(pieces: Pieces) -> float:
    """How much a function may jump by at one of its kinks: the two sides of a `where` meet up to rounding only."""
    return max((upper(kink.jump) for kink in pieces.kinks), default=0.0)


class BallSoftmax:
    """One softmax, one output, in balls; values are V_k = v_k + b_k t, with rises b_k where the token is a key itself.

    With any anchor j as the reference,

        sum_k V_k softmax_k(alpha_k t + gamma_k) = V_j + N / (1 + D),
        e_k = exp((alpha_k - alpha_j) t + gamma_k - gamma_j),
        N = sum_{k != j} (V_k - V_j) e_k,  D = sum_{k != j} e_k

    for every complex t with 1 + D(t) != 0. The reference is the anchor with the largest logit at the ball's
    midpoint: the e_k are then at most 1 there, anchors far below cost nothing in accuracy, and none is
    dropped. The quotient is a finite ball only if the ball of 1 + D keeps away from 0, so a finite result
    proves the head analytic on the ball. (It is analytic wherever |Im t| < pi / (alpha_max - alpha_min):
    multiply numerator and denominator by exp(-(alpha_max + alpha_min) t / 2); every term of the denominator
    then has an argument within (-pi/2, pi/2), hence a positive real part. That says where to look; no proof
    leans on it.)
    """

    def __init__(
        self, slopes: np.ndarray, offsets: np.ndarray, values: np.ndarray, rises: np.ndarray | None = None
    ) -> None:
        rises = np.zeros(len(slopes)) if rises is None else rises
        self.slopes, self.offsets, self.values, self.rises = (
            [float(number) for number in array] for array in (slopes, offsets, values, rises)
        )
        self._relative: dict[tuple[int, int], list[tuple[arb, arb, arb, arb | None]]] = {}

    def reference(self, t: float) -> int:
        """The anchor with the largest logit at t (nearly the largest will do)."""
        logits = [slope * t + offset for slope, offset in zip(self.slopes, self.offsets, strict=True)]
        return logits.index(max(logits))

    @property
    def largest(self) -> float:
        """The largest |V_k|, relative to max(1, |t|)."""
        return max(abs(value) + abs(rise) for value, rise in zip(self.values, self.rises, strict=True))

    def relative(self, j: int) -> list[tuple[arb, arb, arb, arb | None]]:
        """Slopes, offsets, values and rises of the other anchors, less those of anchor j; None for a rise of 0."""
        key = j, working_bits()
        if key not in self._relative:
            self._relative[key] = [
                (
                    arb(a) - self.slopes[j],
                    arb(g) - self.offsets[j],
                    arb(v) - self.values[j],
                    arb(b) - self.rises[j] if b != self.rises[j] else None,
                )
                for k, (a, g, v, b) in enumerate(zip(self.slopes, self.offsets, self.values, self.rises, strict=True))
                if k != j
            ]
        return self._relative[key]

    def __call__(self, t: Any) -> Any:
        """The softmax on a ball, arb or acb; the result is of the same kind."""
        j = self.reference(float(t.real.mid()))
        numerator, denominator = t * 0, t * 0 + 1
        for slope, offset, value, rise in self.relative(j):
            weight = (slope * t + offset).exp()
            denominator += weight
            numerator += (value if rise is None else value + rise * t) * weight
        result = numerator / denominator + self.values[j]
        return result + self.rises[j] * t if self.rises[j] else result

    def derivative(self, t: Any) -> Any:
        """Cov_w(alpha, V) + E_w[b] on a ball, Cov = E_w[alpha V] - E_w[alpha] E_w[V], both less those of anchor j."""
        j = self.reference(float(t.real.mid()))
        slopes, values, products, rises, total = t * 0, t * 0, t * 0, t * 0 + self.rises[j], t * 0 + 1
        others = self.rises[:j] + self.rises[j + 1 :]
        for (slope, offset, value, rise), own in zip(self.relative(j), others, strict=True):
            weight = (slope * t + offset).exp()
            value = value if rise is None else value + rise * t
            total += weight
            slopes += slope * weight
            values += value * weight
            products += slope * value * weight
            rises = rises + own * weight if own else rises
        return products / total - (slopes / total) * (values / total) + rises / total


class BallHead:
    """One output of a head, r(s) = skip t + bias + sum over parts of softmaxes of t = s - origin, in balls."""

    def __init__(self, softmaxes: Sequence[BallSoftmax], origin: float, bias: float, skip: float = 0.0) -> None:
        self.softmaxes, self.origin, self.bias, self.skip = tuple(softmaxes), origin, bias, skip

    @property
    def operations(self) -> int:
        """What a value takes."""
        return PER_ANCHOR * sum(len(part.slopes) for part in self.softmaxes)

    @property
    def scale(self) -> float:
        """The size of the numbers that add up: the largest |value| of each part, |skip| and |bias|."""
        return sum(part.largest for part in self.softmaxes) + abs(self.skip) + abs(self.bias)

    def logit_bits(self, low: float, high: float) -> int:
        """How many bits of a logit stand before the point on [low, high]: so many more are needed."""
        far = max(abs(low - self.origin), abs(high - self.origin))
        size = max(
            abs(slope) * far + abs(offset)
            for part in self.softmaxes
            for slope, offset in zip(part.slopes, part.offsets, strict=True)
        )
        return max(0, math.frexp(min(size, 1e300))[1])

    @property
    def steepness(self) -> float:
        """The size of the numbers that add up in r': the range of slopes times that of values, each part, and rises."""
        return sum(
            (max(part.slopes) - min(part.slopes)) * (max(part.values) - min(part.values) + max(map(abs, part.rises)))
            + max(map(abs, part.rises))
            for part in self.softmaxes
        ) + abs(self.skip)

    def landmarks(self) -> Iterator[arb]:
        """Crossings of neighbouring anchors, and a few lengths 1/(difference of slopes) to either side."""
        for part in self.softmaxes:
            for (a, g), (b, h) in pairwise(zip(part.slopes, part.offsets, strict=True)):
                slope = arb(b) - a
                if slope != 0:
                    crossing = (arb(g) - h) / slope + self.origin
                    yield from (crossing + multiple / abs(slope) for multiple in (-4, -2, -1, 0, 1, 2, 4))

    def __call__(self, s: Any) -> Any:
        """The head on a ball, arb or acb; the result is of the same kind."""
        t = s - self.origin
        return sum((part(t) for part in self.softmaxes), t * self.skip + self.bias)

    def derivative(self, s: Any) -> Any:
        """r' on a ball."""
        t = s - self.origin
        return sum((part.derivative(t) for part in self.softmaxes), t * 0 + self.skip)


def ball_heads(parts: Sequence[Part], origin: float = 0.0, bias: Any = 0.0) -> list[BallHead]:
    """The head that the parts make up, one BallHead an output."""
    columns = [part.astype(np.float64) for part in parts]
    biases = np.broadcast_to(np.asarray(bias, np.float64), columns[0][2].shape[1:])
    if not all(np.isfinite(a).all() for a in (*(a for part in columns for a in part), biases, origin)):
        raise AnchorheadError("a head with a weight that is not finite: nothing can be proven of it")
    return [
        BallHead([BallSoftmax(a, g, v[:, i]) for a, g, v in columns], float(origin), shift)
        for i, shift in enumerate(biases.tolist())
    ]
