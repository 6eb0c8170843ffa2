"""A proof of how far a head is from a piecewise analytic target, and of how far and how fast a head moves.

The difference target - head is bounded, not the two apart: see `supremum.py`, and `ellipse.py` for the
theorem.

A kink is a ball, such as that of sqrt(2). Each piece is proven on the whole of the balls at its ends. Within
such a ball both neighbours are then proven, and the target is one of the two (or within `jump` of them).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from flint import acb, arb

from anchorhead.effort import Effort
from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Part
from anchorhead.language.expressions.precision import precision
from anchorhead.proof.arithmetic.arithmetic import UP
from anchorhead.proof.enclosures.balls import BallHead, ball_heads, upper
from anchorhead.proof.enclosures.ellipse import Enclosure
from anchorhead.proof.enclosures.operations import operations_of
from anchorhead.proof.enclosures.supremum import Span, Supremum

Piece = tuple[arb, arb, Enclosure]
"""Left and right end, and an enclosure of the analytic function that the target is between them."""


@dataclass(frozen=True)
class Proof:
    """What has been proven of |target - head|.

    bound    |target(s) - head(s)| <= bound for every real s of the interval (infinity if nothing could be
             shown)
    found    |target(at) - head(at)| >= found: the largest difference that was evaluated
    at       where, rounded to a float (NaN if no difference was seen)
    """

    bound: float
    found: float
    at: float


def prove_sup(
    parts: Sequence[Part],
    origin: float,
    bias: Any,
    pieces: Sequence[Sequence[Piece]],
    low: float,
    high: float,
    rtol: float = 0.02,
    floor: float = 0.0,
    effort: Effort | None = None,
    jump: float = 0.0,
) -> Proof:
    """Prove |target(s) - head(s)| <= bound for all real s in [low, high], for every output, exactly.

    head(s) = bias + sum over parts of sum_k values_k softmax_k(slopes_k (s - origin) + offsets_k), the
    weights being the stored floats. `pieces` describe each output of the target from left to right, adjoining at
    its kinks, and cover [low, high]. The function of a piece

    - takes a complex ball and encloses the target's values on it, at the working precision;
    - gives a finite ball only if the target is analytic on the ball given, that is, on a neighbourhood of
      every point;
    - on a ball of reals (imaginary part exactly 0) need only enclose its values where it is defined: so the
      end of a square root is reached, by balls that extend a little beyond it. It is the piece's own function
      there too, not that of a neighbour.

    The proof is refined until bound <= max((1 + rtol) found, floor), or bound is below 2^-80 of the head's
    values (an exact head). Once the effort is over the bound is what has been shown by then.
    Where a kink's ball hides more than two neighbours, give `jump`: within such a ball the target differs from
    either neighbour by at most that. It is added to the bound.
    """
    check_interval(low, high)
    return prove_outputs(ball_heads(parts, origin, bias), pieces, low, high, Supremum(rtol, floor, effort), jump)


def prove_outputs(
    heads: Sequence[BallHead],
    pieces: Sequence[Sequence[Piece]],
    low: float,
    high: float,
    sup: Supremum,
    jump: float = 0.0,
    relative: bool = False,
) -> Proof:
    """The same for heads on balls, one an output; relative: of |target(s) - head(s)| / max(1, |s|)."""
    for head, own in zip(heads, pieces, strict=True):
        spans = _spans(own, head, low, high, relative)
        sup.cover(spans, head.scale, head.logit_bits(low, high), head.landmarks())
    with precision(128):
        bound = upper(arb(sup.bound) + jump) if jump else sup.bound
    return Proof(bound, sup.found, sup.at)


def lipschitz_bound(
    parts: Sequence[Part],
    low: float,
    high: float,
    origin: float = 0.0,
    rtol: float = 0.02,
    effort: Effort | None = None,
) -> float:
    """L >= |r'(s)| for every s in [low, high] and every output; at most (1 + rtol) times the largest |r'|, within the
    effort.

    Once that is over: r' = Cov_w(slopes, values) is at most a quarter of the slopes' range times the values'.
    """
    check_interval(low, high)
    sup = Supremum(rtol, effort=effort)
    for head in ball_heads(parts, origin):
        cover_slope(sup, head, low, high)
    if not sup.effort.over:
        return sup.bound
    widest = sum(np.ptp(part.slopes.astype(float)) * np.ptp(part.values.astype(float), axis=0) / 4 for part in parts)
    return min(sup.bound, float(np.max(widest)) * UP)


def cover_slope(sup: Supremum, head: BallHead, low: float, high: float) -> None:
    """Bound |r'| on [low, high]."""
    span = _whole(head.derivative, low, high, head.operations)
    sup.cover([span], head.steepness, head.logit_bits(low, high), head.landmarks())


def size_bound(part: Part, low: float, high: float, rtol: float = 0.01) -> float:
    """A bound on |r(s)| for every s in [low, high], in every output; at most (1 + rtol) times the largest."""
    check_interval(low, high)
    sup = Supremum(rtol)
    for head in ball_heads([part]):
        span = _whole(head, low, high, head.operations)
        sup.cover([span], head.scale, head.logit_bits(low, high), head.landmarks())
    return sup.bound


def _whole(f: Enclosure, low: float, high: float, operations: int) -> Span:
    return Span(arb(low), arb(high), (arb(low), arb(high)), f, operations)


def _spans(pieces: Sequence[Piece], head: BallHead, low: float, high: float, relative: bool) -> list[Span]:
    """target - head on the pieces that [low, high] needs, with exact ends; an error if they leave a gap.

    Relative to max(1, |s|) pieces are cut at -1 and 1: between these the divisor is 1, and beyond them -s and s.
    """
    spans: list[Span] = []
    cuts = [low, *(cut for cut in (-1.0, 1.0) if relative and low < cut < high), high]
    reached, end = arb(low), arb(high)
    with precision(256):
        for left, right, target in pieces:
            for start, stop in pairwise(map(arb, cuts)):
                outer = left.lower().max(start), right.upper().min(stop)
                if not (outer[0] <= outer[1] and outer[0] <= reached):
                    continue
                reached = reached.max(outer[1])
                inner = left.upper().max(start), right.lower().min(stop)
                sign = (start >= 1) - (stop <= -1) if relative else 0
                operations = operations_of(target) + head.operations
                spans.append(Span(*outer, inner, _difference(target, head, sign), operations))
    if not spans or not reached >= end:
        raise AnchorheadError(
            f"the pieces of the target cover [{low}, {high}] only up to {float(reached)}: give pieces that adjoin"
        )
    return spans


def _difference(target: Enclosure, head: BallHead, sign: int) -> Callable[[acb], acb]:
    """Divided by sign times the argument, unless that is 0."""
    return lambda z: (target(z) - head(z)) / (sign * z) if sign else target(z) - head(z)


def check_interval(low: float, high: float) -> None:
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise AnchorheadError(f"low={low!r}, high={high!r} is not an interval: give two finite numbers, low <= high")
