"""A head with its own key in ball arithmetic; and where it is one key alone, up to a little.

    R(s) = sum_k w_k(s) V_k(s),   V_k = v_k for a register, V = value s for the own key
    r(s) = skip s + bias + R(s)

Far out the key of the largest slope (on the right; of the least on the left) has all the weight: with a_top its slope,

    w_k(s) <= e^(-gap_k(s)),   gap_k(s) = |a_top - a_k| |s| + g_top - g_k,

which falls with |s|, and |V_k| <= size_k max(1, |s|) with size_k = |v_k| / max(1, T) for |s| >= T, or |value|.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb
from jaxtyping import Float

from anchorhead.heads.self_keys.self_key import SelfKeyHead
from anchorhead.language.expressions.precision import working_bits
from anchorhead.proof.arithmetic.arithmetic import UP
from anchorhead.proof.enclosures.operations import PER_ANCHOR


class BallSelfKeyHead:
    """r on complex balls. A finite result proves r analytic on the ball, as with proof.enclosures.balls.BallSoftmax."""

    def __init__(self, head: SelfKeyHead) -> None:
        self.slopes, self.offsets, self.values = (column.tolist() for column in head.keys)
        self.own = len(self.slopes) - 1 if head.own is not None else -1
        self.skip, self.bias = head.skip, head.bias
        self._relative: dict[tuple[int, int], list[tuple[arb, arb, arb, int]]] = {}

    @property
    def operations(self) -> int:
        """What a value takes."""
        return PER_ANCHOR * len(self.slopes)

    @property
    def scale(self) -> float:
        """The size of the numbers that add up, relative to max(1, |s|)."""
        return max(map(abs, self.values)) + abs(self.skip) + abs(self.bias)

    @property
    def steepness(self) -> float:
        """The size of the numbers that add up in R', for |s| <= 1; some unit for others."""
        return (max(self.slopes) - min(self.slopes) + 1) * (max(map(abs, self.values)) + 1)

    def logit_bits(self, far: float) -> int:
        """How many bits of a logit stand before the point for |s| <= far."""
        size = max(abs(a) * far + abs(g) for a, g in zip(self.slopes, self.offsets, strict=True))
        return max(0, math.frexp(min(size, 1e300))[1])

    def landmarks(self) -> list[arb]:
        """Where two keys cross, and a little to either side."""
        found = []
        for j in range(len(self.slopes)):
            for k in range(j):
                slope = arb(self.slopes[j]) - self.slopes[k]
                if slope != 0 and (len(self.slopes) < 4 or abs(j - k) == 1):
                    crossing = (arb(self.offsets[k]) - self.offsets[j]) / slope
                    found += [crossing + multiple / abs(slope) for multiple in (-4, -2, -1, 0, 1, 2, 4)]
        return found

    def __call__(self, s: Any) -> Any:
        """r on a ball, with the key of the largest logit as the reference."""
        j = self._reference(s)
        rise = (self.skip + (arb(self.values[j]) if j == self.own else 0)) * s
        numerator, denominator = s * 0, s * 0 + 1
        for weight, difference in self._others(s, j):
            denominator += weight
            numerator += difference * weight
        return numerator / denominator + rise + (self.bias if j == self.own else arb(self.values[j]) + self.bias)

    def derivative(self, s: Any) -> Any:
        """R' = Cov_w(a, V) + value w_own on a ball."""
        j = self._reference(s)
        total, slopes, values, products = s * 0 + 1, s * 0, s * 0, s * 0
        own = s * 0 + (self.values[j] if j == self.own else 0.0)
        for (weight, difference), (slope, _, value, k) in zip(self._others(s, j), self._rest(j), strict=True):
            total += weight
            slopes += slope * weight
            values += difference * weight
            products += slope * difference * weight
            own += weight * value if k == self.own else 0
        return products / total - (slopes / total) * (values / total) + own / total

    def _reference(self, s: Any) -> int:
        t = float(s.real.mid())
        logits = [slope * t + offset for slope, offset in zip(self.slopes, self.offsets, strict=True)]
        return logits.index(max(logits))

    def _rest(self, j: int) -> list[tuple[arb, arb, arb, int]]:
        key = j, working_bits()
        if key not in self._relative:
            self._relative[key] = [
                (arb(a) - self.slopes[j], arb(g) - self.offsets[j], arb(v), k)
                for k, (a, g, v) in enumerate(zip(self.slopes, self.offsets, self.values, strict=True))
                if k != j
            ]
        return self._relative[key]

    def _others(self, s: Any, j: int) -> list[tuple[Any, Any]]:
        """e^(z_k - z_j) and V_k - V_j for the keys other than j."""
        base = self.values[j] * s if j == self.own else arb(self.values[j])
        return [
            ((slope * s + offset).exp(), (value * s if k == self.own else value) - base)
            for slope, offset, value, k in self._rest(j)
        ]


@dataclass(frozen=True, eq=False)
class Tail:
    """One side from |s| = start on: the key `top` has all the weight, the others at most `weights` each.

    gaps     gap_k at the start; infinite for the top key itself       falls   |a_top - a_k|
    sizes    |V_k| <= sizes_k max(1, |s|)
    """

    start: float
    top: int
    gaps: Float[np.ndarray, " keys"]
    falls: Float[np.ndarray, " keys"]
    sizes: Float[np.ndarray, " keys"]

    @property
    def weights(self) -> Float[np.ndarray, " keys"]:
        return np.exp(np.minimum(-self.gaps, 300.0))

    @property
    def left_over(self) -> float:
        """|R - V_top| <= left_over max(1, |s|) on the whole tail: sum_k w_k (|V_k| + |V_top|)."""
        return float((self.weights * (self.sizes + self.sizes[self.top])).sum()) * UP + 1e-300


def tail_of(head: SelfKeyHead, side: int, start: float) -> Tail | None:
    """The tail from |s| = start on, on the side -1 or 1; None if two keys share the largest slope there."""
    slopes, offsets, values = head.keys
    top = int((side * slopes).argmax())
    falls = np.abs(slopes - slopes[top])
    others = np.arange(len(slopes)) != top
    if (falls[others] == 0).any():
        return None
    # rounded down by more than these few operations lose
    lost = 1e-15 * (falls * start + np.abs(offsets) + abs(offsets[top]))
    gaps = np.where(others, falls * start + offsets[top] - offsets - 4 * lost, np.inf)
    sizes = np.abs(values) / max(1.0, start)
    if head.own is not None:
        sizes[-1] = abs(values[-1])
    return Tail(start, top, gaps, falls, sizes)


def settled(head: SelfKeyHead, side: int, share: float) -> float:
    """The distance from 0 at which the other keys leave at most `share` on this side, rounded up to a few bits."""
    start = 2.0**-30
    while start < 2.0**40:
        tail = tail_of(head, side, start)
        if tail is None:
            break
        if tail.left_over <= share:
            if start <= 2.0**-30:
                return start
            for part in range(17, 32):
                finer = start * part / 32
                tail = tail_of(head, side, finer)
                if tail is not None and tail.left_over <= share:
                    return finer
            return start
        start *= 2
    return math.inf
