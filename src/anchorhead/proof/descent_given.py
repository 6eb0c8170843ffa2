"""What a certificate for a box of prompts says in words: its target, and what else must hold of a prompt.

Numbers are rounded to the safe side: limits down, ranges inward, slopes up, so that whoever keeps to the words is
covered by the proof.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from anchorhead.targets.descent import Descent

DIGITS = 6
ARGUMENTS = {
    "phi(s - y)": ("residuals", "s - y"),
    "phi(s) - y": ("scores", "s"),
    "y phi(y s)": ("margins", "y s"),
    "g(s, y)": ("scores", "s"),
}
"""By the form of a loss, what the link's argument is, in words and as a formula."""


def words_for_box(target: Descent, given: str) -> str:
    """What a certificate for a box of prompts covers; `given` as in proof.descent.DescentBound."""
    most = _rounded(2 * (1 + Fraction(target.momentum)), ROUND_FLOOR)
    where = (
        f"{target}, for prompts of at most {target.examples:,} examples for which the rate is safe (rate times the "
        f"largest second derivative at most {most})"
    )
    return f"{where}, {given}" if given else where


def given_words(
    target: Descent, slope: float | None, safe: float, ends: tuple[float, float] | None, margin: float = 0.0
) -> str:
    """What must hold of a prompt beside the rate's being safe for the exact descent.

    slope, safe   rate (slope times the largest eigenvalue of A'A/n + decay) <= safe; no slope: nothing
    ends, margin  the exact path's arguments keep to [low + margin, high - margin]; no ends: nothing
    """
    texts = []
    if slope is not None:
        texts.append(f"for which {curvature_words(target, slope)} is at most {_rounded(safe, ROUND_FLOOR)}")
    if ends is not None:
        low = _end(ends[0], margin, ROUND_CEILING)
        high = _end(ends[1], -margin, ROUND_FLOOR)
        texts.append(f"for which exact descent keeps {ARGUMENTS[target.loss.form][1]} between {low} and {high}")
    return " and ".join(texts)


def ends_within(ends: tuple[float, float] | None, margin: float) -> tuple[float, float] | None:
    """[low + margin, high - margin], rounded inward."""
    return (
        None
        if ends is None
        else (math.nextafter(ends[0] + margin, math.inf), math.nextafter(ends[1] - margin, -math.inf))
    )


def curvature_words(target: Descent, slope: float) -> str:
    """rate (slope times the largest eigenvalue of A'A/n + decay), in words."""
    steep = f"{_rounded(slope, ROUND_CEILING)} times " if slope != 1 else ""
    eigenvalue = f"{steep}the largest eigenvalue of the mean of x x'"
    return f"the rate times ({eigenvalue}, plus the decay)" if target.decay else f"the rate times {eigenvalue}"


def _end(end: float, by: float, rounding: str) -> str:
    finite = math.isfinite(end) and math.isfinite(by)
    return _rounded(Fraction(end) + Fraction(by) if finite else end + by, rounding)


def _rounded(number: float | Fraction, rounding: str) -> str:
    """With DIGITS decimal digits, rounded once."""
    if not math.isfinite(number):
        return f"{float(number):g}"
    n, d = number.as_integer_ratio()
    found = Context(prec=DIGITS, rounding=rounding).divide(Decimal(n), Decimal(d))
    # a decimal of so many digits comes back from float64 as it was
    return f"{float(found):.{DIGITS}g}"
