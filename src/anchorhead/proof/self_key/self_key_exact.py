"""How far a head with its own key is from a named function in exact arithmetic, on the whole line.

The largest |f(s) - r(s)| / max(1, |s|) is bounded in three parts.

- On [-T, T], cut at -1, 1 and the kinks of f, the quotient is analytic piece by piece (divided by 1 between -1 and 1,
  by s or -s beyond): complex balls and the theorem of proof.enclosures.ellipse bound it.
- For s > T both are nearly straight. One key, `top`, has nearly all the weight, and by proof.self_key.self_key_softmax
  |r(s) - L(s)| <= left_over(T) max(1, |s|) with L(s) = skip s + bias + V_top(s), since every weight e^(-gap_k) falls
  with |s|. By targets.asymptotes |f(s) - A(s)| <= remainder(T) max(1, |s|) for the line A that f tends to. L and A are
  both straight: |L(s) - A(s)| <= (|slope of L - slope of A| + |constant of L - constant of A| / max(1, T)) max(1, |s|).
  The three add up.
- For s < -T likewise, with the key of the least slope.
"""

from __future__ import annotations

import math

from flint import arb

from anchorhead.errors import AnchorheadError
from anchorhead.heads.self_keys.self_key import SelfKeyHead
from anchorhead.language.analysis.asymptotes import Asymptotes, Line, asymptotes
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.precision import precision
from anchorhead.language.targets import ScalarTarget
from anchorhead.proof.enclosures.balls import upper
from anchorhead.proof.heads.head import prove_relative
from anchorhead.proof.self_key.self_key_softmax import ball_head, tail_of

_DISTANCES = (1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 128.0, 512.0, 2048.0, 2.0**14)
_NEAR = tuple(2.0**-k for k in range(30, -1, -2))


def prove_exact_self_key(head: SelfKeyHead, function: Expression, floor: float) -> float:
    """A bound on |f(s) - r(s)| / max(1, |s|) for every real s in [head.low, head.high].

    `floor`: what counts as nothing; tails begin where less than half of it remains.
    """
    lines = asymptotes(function)
    low, low_rest = _end(head, lines, -1, floor)
    high, high_rest = _end(head, lines, 1, floor)
    if not low < high:  # the interval lies in a tail
        return max(low_rest, high_rest)
    between = prove_relative(ball_head(head), ScalarTarget((function,), low, high), floor)
    return max(between.bound, low_rest, high_rest)


def _end(head: SelfKeyHead, lines: Asymptotes | None, side: int, floor: float) -> tuple[float, float]:
    """Where the tail begins, and the bound on it: the head's own end and 0 where that comes first."""
    end = head.high if side > 0 else head.low
    if lines is None:
        if not math.isfinite(end):
            raise AnchorheadError(
                f"{head.function} is not known to tend to a line: it is proven on an interval only, give low and high"
            )
        return end, 0.0
    line = lines.right if side > 0 else lines.left
    rests = []
    for distance in (*_NEAR, *_DISTANCES):
        if distance >= side * end:
            return end, 0.0
        rests.append((rest := _rest(head, line, side, distance), distance))
        if rest <= floor / 2:
            break
    rest, distance = min(rests)
    return side * distance, rest


def _rest(head: SelfKeyHead, line: Line, side: int, start: float) -> float:
    """The bound on the tail from |s| = start on, as the module says."""
    tail = tail_of(head, side, start)
    if tail is None or not math.isfinite(tail.left_over):
        return math.inf
    own = head.own is not None and tail.top == head.registers
    with precision(128):
        slope = arb(head.skip) + (head.own.value if own and head.own is not None else 0.0)
        constant = arb(head.bias) + (0.0 if own else float(head.values[tail.top]))
        apart = abs(slope - line.slope) + abs(constant - line.constant) / max(1.0, start)
        return upper(line.remainder(start) + apart + tail.left_over)
