"""How far a head is from a function, divided by max(1, |s|): the pieces on which that is analytic, and its supremum."""

from __future__ import annotations

import math

from flint import acb, arb

from anchorhead.language.expressions.precision import precision
from anchorhead.language.targets import ScalarTarget
from anchorhead.proof.enclosures.balls import BallHead, largest_jump
from anchorhead.proof.enclosures.ellipse import Enclosure
from anchorhead.proof.enclosures.supremum import Span, Supremum
from anchorhead.proof.heads.head import ExpressionOnBalls


def prove_relative(target: ScalarTarget, head: BallHead, floor: float) -> tuple[float, Supremum]:
    """A bound on |f(s) - r(s)| / max(1, |s|) for every s of the target's interval, within 2% of what was found, or at
    most `floor`; and what it was found with."""
    sup = Supremum(0.02, floor)
    bits = head.logit_bits(target.low, target.high)
    sup.cover(_spans(target, head), head.scale, bits, head.landmarks())
    return math.nextafter(sup.bound + largest_jump(target.pieces), math.inf), sup


def _spans(target: ScalarTarget, head: BallHead) -> list[Span]:
    """(f - r) / max(1, |s|) on the pieces of the target, each cut at -1 and 1: there the divisor is -s, 1 or s."""
    spans = []
    with precision(256):
        for piece in target.pieces.pieces:
            f = ExpressionOnBalls(piece.expression, target.variable)
            for start, end, sign in ((-math.inf, -1.0, -1), (-1.0, 1.0, 0), (1.0, math.inf, 1)):
                left, right = (arb(min(max(x, target.low), target.high)) for x in (start, end))
                outer = piece.left.lower().max(left), piece.right.upper().min(right)
                inner = piece.left.upper().max(left), piece.right.lower().min(right)
                if outer[0] < outer[1]:
                    spans.append(Span(*outer, inner, _quotient(f, head, sign), f.operations + head.operations))
    return spans


def _quotient(f: Enclosure, r: Enclosure, sign: int) -> Enclosure:
    def quotient(z: acb) -> acb:
        difference = f(z) - r(z)
        return difference / (sign * z) if sign else difference

    return quotient
