"""Softmaxes whose numbers are, up to errors, the same one or its opposite: one unit together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from anchorhead.verify.claims import Unit
from anchorhead.verify.forms import Forms, Quantities
from anchorhead.verify.rounding import OWN_UNIT, SLACK, own_error

DIGITS = 9
"""Coefficients that agree in so many digits are tried as the same; how far they are apart is counted."""


def direction(t: Forms) -> tuple[bytes, ...]:
    """A name for what t depends on, up to its sign, constant and last digits."""
    coefficients = t.coefficients[0, 0] * _sign(t)
    return t.ids.tobytes(), (np.round(coefficients, DIGITS) + 0.0).tobytes()


def joint(group: Sequence[Unit], quantities: Quantities) -> Unit:
    """Units in t_1, t_2, ... of one direction, as one in t_1.

    For t_h = sum_i c_hi q_i + b_h, a sign s = +-1 and shift = b_h - s b_1, t_h as computed is s t_1 + shift up to the
    errors of both and sum_i |c_hi - s c_1i| max|q_i|, by which t leans in that part. A logit a t_h + g is then
    (s a) t_1 + (a shift + g).
    """
    first = group[0].reading
    low, high = first.ends
    parts = []
    for unit in group:
        own = unit.reading
        sign = _sign(own.t) * _sign(first.t)
        shift = float(own.t.constant[0, 0] - sign * first.t.constant[0, 0])
        ends = sorted(sign * (end - shift) for end in own.ends)
        low, high = min(low, ends[0]), max(high, ends[1])
        lean = 0.0
        if own is not first:
            apart = np.abs(own.t.coefficients[0, 0] - sign * first.t.coefficients[0, 0])
            lean = float((own.t.error + first.t.error)[0, 0] + apart @ quantities.size(own.t.ids)) * SLACK
            lean += 4 * OWN_UNIT * abs(shift)
        for part in unit.parts:
            moved = np.abs(part.slopes) * abs(shift)
            parts.append(
                replace(
                    part,
                    slopes=sign * part.slopes,
                    offsets=part.offsets + part.slopes * shift,
                    sizes=part.sizes + moved,
                    wrong=part.wrong + (own_error(2) * (np.abs(part.offsets) + moved) if shift else 0.0),
                    lean=part.lean + lean,
                )
            )
    return replace(group[0], reading=replace(first, ends=(low, high)), parts=tuple(parts))


def _sign(t: Forms) -> float:
    """That of the largest coefficient, the first of equal ones."""
    coefficients = np.round(t.coefficients[0, 0], DIGITS)
    return -1.0 if len(coefficients) and coefficients[np.abs(coefficients).argmax()] < 0 else 1.0
