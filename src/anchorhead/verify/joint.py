"""Softmaxes that a claim names together, in numbers that are, up to errors, the same or opposite: one unit.

An output o takes take_o of a softmax, up to off_o. Softmaxes of one claim are parts of one unit, of which every output
takes what it takes of the first: heads whose sum is a ramp, parts of a function that stand on several tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from anchorhead.verify.claims import Unit
from anchorhead.verify.context import Context, Reads
from anchorhead.verify.errors import require
from anchorhead.verify.forms import Quantities
from anchorhead.verify.named import Claimed, Named
from anchorhead.verify.readings import Reading
from anchorhead.verify.rounding import OWN_UNIT, SLACK, Arithmetic, own_error, power_of_two
from anchorhead.verify.scalar.part import Part


@dataclass(frozen=True, eq=False)
class Taken:
    """A unit, how much of it every output takes, and by how much that is off; keys: of how many keys outputs sum the
    weights themselves, those that none of them takes aside, or 0: they sum what heads read."""

    take: np.ndarray
    off: np.ndarray
    unit: Unit
    keys: int = 0

    def instead(self, first: np.ndarray, ratio: float, model: Arithmetic) -> np.ndarray:
        """How far outputs are off that are said to take so many times of the unit what they take of the first: beside
        the difference, products with what they do take are rounded, where those with a power of two would not be."""
        take = ratio * first
        size = sum(max(part.most(-1), part.most(1)) for part in self.unit.parts) * 1.001
        rounds = power_of_two(first) & ~power_of_two(self.take)
        exact = (self.take == take) & power_of_two(np.array(ratio))
        own = np.where(exact, 0.0, 4 * OWN_UNIT) + np.where(rounds, model.unit, 0.0)
        return self.off + (np.abs(self.take - take) + own * np.abs(self.take)) * size * SLACK


def in_motion(pairs: Iterable[tuple[Reading | None, Claimed | None]]) -> set[Named]:
    """What is claimed of readings of which some input moves one: constant ones among them are parts as well."""
    return {claimed.of for one, claimed in pairs if one is not None and claimed is not None and not one.still}


def read(context: Context, rows: Sequence[Sequence[Taken]], where: str) -> list[list[Reads]]:
    """What every token reads of its units."""
    joined = [_joined(context, row) for row in rows]
    found = iter(context.explained([mine.unit for row in joined for mine in row], where))
    reads: list[list[Reads]] = []
    for row in joined:
        reads.append([])
        for mine in row:
            one, terms = next(found), np.array([float(mine.keys or len(mine.unit.parts))])
            if one is None:
                reads[-1].append(replace(context.between(mine.take, mine.unit), terms=terms, off=mine.off))
            else:
                size = np.array([one.mass if mine.keys else one.reach])
                reads[-1].append(Reads(mine.take[:, None], one.form, size, terms, mine.off))
    return reads


def _joined(context: Context, taken: Sequence[Taken]) -> list[Taken]:
    """The units of what one token reads: all that a claim names is one."""
    groups: dict[int, list[Taken]] = {}
    for one in taken:
        claimed = one.unit.claimed
        groups.setdefault(id(one if claimed is None else claimed.of), []).append(one)
    return [group[0] if len(group) == 1 else _together(context, group) for group in groups.values()]


def _together(context: Context, group: list[Taken]) -> Taken:
    """Values are those of the first, times how much more is taken of a unit. Its number t is the unit's: of those that
    have one it is the first that is named."""
    group = sorted(group, key=lambda one: (one.unit.reading.constant, one.unit.claimed and one.unit.claimed.order))
    first = group[0]
    lead = int(np.abs(first.take).argmax())
    require(first.take[lead] != 0, "a unit of which no output takes the first softmax")
    units, off = [], np.zeros(len(first.take))
    for one in group:
        ratio = float(one.take[lead] / first.take[lead])
        parts = tuple(_times(part, ratio) for part in one.unit.parts)
        units.append(replace(one.unit, parts=parts))
        off = off + one.instead(first.take, ratio, context.model)
    return Taken(first.take, off, joint(units, context.quantities), sum(one.keys for one in group))


def _times(part: Part, ratio: float) -> Part:
    """The part with values so many times as large, and all that they are off by."""
    more = 1.0 if ratio == 1 else abs(ratio) * SLACK
    error, size = (more * one for one in part.direct)
    series = None if part.series is None else replace(part.series, alpha=part.series.alpha * ratio)
    value_error = part.value_error * more
    return replace(part, values=part.values * ratio, value_error=value_error, direct=(error, size), series=series)


def joint(group: Sequence[Unit], quantities: Quantities) -> Unit:
    """Units in t_1, t_2, ... of one direction, as one in t_1.

    For t_h = sum_i c_hi q_i + b_h, a sign s = +-1 and shift = b_h - s b_1, t_h as computed is s t_1 + shift up to the
    errors of both and sum_i |c_hi - s c_1i| max|q_i|, by which t leans in that part; up to what both round by, if they
    are the same number. A logit a t_h + g is then (s a) t_1 + (a shift + g); what a is off by counts for both.
    """
    first = group[0].reading
    low, high = first.ends
    parts = []
    for unit in group:
        own = unit.reading
        same = own is first or (own.number is not None and own.number == first.number)
        ids = np.union1d(own.t.ids, first.t.ids)
        mine, theirs = (one.t.aligned(ids).coefficients[0, 0] for one in (own, first))
        sign = -1.0 if not same and mine @ theirs < 0 else 1.0
        shift = 0.0 if same else float(own.t.constant[0, 0] - sign * first.t.constant[0, 0])
        if not own.constant:
            ends = sorted(sign * (end - shift) for end in own.ends)
            low, high = min(low, ends[0]), max(high, ends[1])
        lean = 0.0 if own is first else (own.rounded + first.rounded) * SLACK
        if not same:
            apart = np.abs(mine - sign * theirs)
            lean = float((own.t.error + first.t.error)[0, 0] + apart @ quantities.size(ids)) * SLACK
            lean += 4 * OWN_UNIT * abs(shift)
        for part in unit.parts:
            moved = np.abs(part.slopes) * abs(shift)
            parts.append(
                replace(
                    part,
                    slopes=sign * part.slopes,
                    offsets=part.offsets + part.slopes * shift,
                    sizes=part.sizes + moved,
                    wrong=part.wrong
                    + part.wrong_slope * abs(shift) * SLACK
                    + (own_error(2) * (np.abs(part.offsets) + moved) if shift else 0.0),
                    lean=part.lean + lean,
                    series=None if part.series is None else replace(part.series, scale=sign, shift=shift),
                )
            )
    return replace(group[0], reading=replace(first, ends=(low, high)), parts=tuple(parts))
