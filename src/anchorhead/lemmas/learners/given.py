"""What must hold of a prompt, beside lying in the box, for a certificate of a learner to cover it, as conditions.

Numbers that a proof finds are rounded to the safe side: limits down, ranges inward, slopes up.
"""

from __future__ import annotations

import math
from fractions import Fraction

from anchorhead.conditions import AtMostExamples, Condition, KeepsWithin, SafeCurvature, SafeRate
from anchorhead.decimals import round_down, round_up
from anchorhead.language.targets.descent import Descent

DIGITS = 6
ARGUMENTS = {
    "phi(s - y)": ("residuals", "s - y"),
    "phi(s) - y": ("scores", "s"),
    "y phi(y s)": ("margins", "y s"),
    "g(s, y)": ("scores", "s"),
}
"""By the form of a loss, what the link's argument is, in words and as a formula."""


def conditions_for_box(target: Descent, given: tuple[Condition, ...] = ()) -> tuple[Condition, ...]:
    """All that a certificate for a box of prompts asks of them; `given` as in lemmas.learners.loop.PathBound."""
    return AtMostExamples(target.examples), SafeRate(target.rate, _safe_limit(target.momentum)), *given


def _safe_limit(momentum: float) -> float:
    """2 (1 + momentum), not rounded up."""
    exact, limit = 2 * (1 + Fraction(momentum)), 2 * (1 + momentum)
    return limit if Fraction(limit) <= exact else math.nextafter(limit, 0.0)


def given_conditions(
    target: Descent, slope: float | None, safe: float, ends: tuple[float, float] | None, margin: float = 0.0
) -> tuple[Condition, ...]:
    """What must hold of a prompt beside the rate's being safe for the exact descent.

    slope, safe   rate (slope times the largest eigenvalue of A'A/n + decay) <= safe; no slope: nothing
    ends, margin  the exact path's arguments keep to [low + margin, high - margin]; no ends: nothing
    """
    found: list[Condition] = []
    if slope is not None:
        found.append(SafeCurvature(target.rate, round_up(slope, DIGITS), target.decay, round_down(safe, DIGITS)))
    if ends is not None:
        low = math.nextafter(ends[0] + margin, math.inf)
        high = math.nextafter(ends[1] - margin, -math.inf)
        quantity = ARGUMENTS[target.loss.form][1]
        found.append(KeepsWithin(quantity, round_up(low, DIGITS), round_down(high, DIGITS)))
    return tuple(found)
