"""Between which ends quantities stay: enclosures, as the proof finds them, so that what is defined here is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from flint import arb

from anchorhead.errors import NotDefined
from anchorhead.language.expressions.expression import Expression
from anchorhead.proof.enclosures.balls import lower, upper
from anchorhead.proof.enclosures.ranges import range_of

CELLS = (64, 1024)
"""On so many cells a function is enclosed: a few do for most, and the proof takes as many as the most."""
LARGEST = 1e300
"""Products of what is no larger than this with numbers of a few digits do not overflow."""


def range_of_combination(
    coefficients: Mapping[int, arb], constant: arb, ranges: Sequence[tuple[float, float]]
) -> tuple[float, float]:
    """Ends of constant + sum_i coefficients[i] q_i, each q_i anywhere in its own range; NotDefined beyond float64."""
    value = constant + sum((c * _ball(*ranges[i]) for i, c in coefficients.items()), arb(0))
    low, high = lower(value), upper(value)
    if not max(abs(low), abs(high)) <= LARGEST:
        raise NotDefined(
            f"a part of the function may be larger than {LARGEST:g}, as far as is known of its parts: choose a smaller "
            "box, or write the function in another way"
        )
    return low, high


def range_of_function(function: Expression, low: float, high: float) -> tuple[float, float]:
    """Ends that the function does not leave on [low, high]; NotDefined where it has none."""
    for cells in CELLS:
        least, most = range_of(function, np.array([low]), np.array([high]), cells)
        if np.isfinite([least[0], most[0]]).all():
            return float(least[0]), float(most[0])
    raise NotDefined(
        f"a part of the function, {function}, is needed for x in [{low:.6g}, {high:.6g}], the bounds on its argument, "
        "and has no bounds there: choose a smaller box, or write the function in another way"
    )


def _ball(low: float, high: float) -> arb:
    return arb(low).union(arb(high))
