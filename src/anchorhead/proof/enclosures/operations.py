"""Operations on balls, in which the work of a proof is counted."""

from __future__ import annotations

from typing import Any

from anchorhead.language.expressions.precision import working_bits

OPERATIONS = 12_000_000
"""Of one proof, unless told otherwise."""
PER_ANCHOR = 3
"""What an anchor of a softmax takes: a logit, its exponential, and two sums."""
_ORDINARY = 512  # bits: from here on operations take longer


def operations_of(function: Any) -> int:
    """What a function of balls says that one call takes; 1 where it does not say."""
    return int(getattr(function, "operations", 1))


def precise(operations: int) -> int:
    """The same number of operations, at the working precision."""
    return operations * (1 + working_bits() // _ORDINARY)
