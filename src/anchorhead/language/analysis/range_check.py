"""Whether an analytic piece stays within what float64 can hold."""

from __future__ import annotations

import sys

from flint import arb

from anchorhead.errors import AnchorheadError
from anchorhead.language.analysis.resolver import place, short
from anchorhead.language.expressions.expression import Expression

_LARGEST = arb(sys.float_info.max)
_CELLS = 500


def check_range(original: Expression, piece: Expression, name: str, left: arb, right: arb) -> None:
    """Raise if |piece| exceeds the largest float64 somewhere on [left, right], naming the place.

    Ends and midpoints decide that it does, balls over cells that it does not. What neither decides after some
    hundred cells is let pass: the piece is bounded, having no singularity, and was in range wherever it was
    looked at.
    """
    cells = [(left.mid(), right.mid())]
    for point in cells[0]:
        _look(original, piece, name, point)
    for _ in range(_CELLS):
        if not cells:
            return
        low, high = cells.pop()
        if piece.ball({name: low.union(high)}).abs_upper() <= _LARGEST:
            continue
        middle = ((low + high) / 2).mid()
        _look(original, piece, name, middle)
        cells += [(middle, high), (low, middle)]


def _look(original: Expression, piece: Expression, name: str, point: arb) -> None:
    if piece.ball({name: point}).abs_lower() > _LARGEST:
        raise AnchorheadError(
            f"{short(original)} is larger than float64 can hold at {name} = {place(point)}: choose a smaller domain"
        )
