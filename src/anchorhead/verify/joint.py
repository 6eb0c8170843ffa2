"""Softmaxes that outputs take alike, in numbers that are, up to errors, the same or opposite: one unit together.

An output o takes take_o of a unit, up to off_o. Units in the same t that are taken alike are parts of one. Units in
numbers of one direction, of which outputs take multiples, are one where they are a function together: heads whose sum
is a ramp, parts of a function that stand on several tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from anchorhead.verify.claims import Unit
from anchorhead.verify.context import Context, Reads
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.forms import Forms, Quantities
from anchorhead.verify.rounding import OWN_UNIT, SLACK, Arithmetic, own_error, power_of_two
from anchorhead.verify.scalar.part import Part

DIGITS = 5
"""Coefficients that agree in so many digits are tried as the same; how far they are apart is counted."""


@dataclass(frozen=True, eq=False)
class Taken:
    """A unit, how much of it every output takes, and by how much that is off; members: what it was joined of."""

    take: np.ndarray
    off: np.ndarray
    unit: Unit
    members: tuple[Taken, ...] = ()

    def instead(self, first: np.ndarray, ratio: float, model: Arithmetic) -> np.ndarray:
        """How far outputs are off that are said to take so many times of the unit what they take of the first: beside
        the difference, products with what they do take are rounded, where those with a power of two would not be."""
        take = ratio * first
        size = sum(float((np.abs(p.values) + p.value_error).max()) * 1.001 + p.direct[0] for p in self.unit.parts)
        rounds = power_of_two(first) & ~power_of_two(self.take)
        own = np.where(self.take == take, 0.0, 4 * OWN_UNIT) + np.where(rounds, model.unit, 0.0)
        return self.off + (np.abs(self.take - take) + own * np.abs(self.take)) * size * SLACK


def read(context: Context, rows: Sequence[Sequence[Taken]], where: str, weights: bool) -> list[list[Reads]]:
    """What every token reads of its units; weights: whether outputs sum the weights of all keys, or what heads read."""
    joined = _proven_better(context, [_joined(context, _same(context, row)) for row in rows])
    found = iter(context.explained([mine.unit for row in joined for mine in row], where))
    reads: list[list[Reads]] = []
    for row in joined:
        reads.append([])
        for mine in row:
            one, parts = next(found), mine.unit.parts
            terms = np.array([float(sum(len(part.values) for part in parts) if weights else len(parts))])
            if one is None:
                reads[-1].append(replace(context.between(mine.take, mine.unit), terms=terms, off=mine.off))
            else:
                size = np.array([one.mass if weights else one.reach])
                reads[-1].append(Reads(mine.take[:, None], one.form, size, terms, mine.off))
    return reads


def _proven_better(context: Context, rows: list[list[Taken]]) -> list[list[Taken]]:
    """Joined units whose proof is no worse than those of their members, which stand in their place otherwise: kinks of
    opposite numbers that are each off are no line together."""

    def error(units: Sequence[Taken]) -> float:
        try:
            found = context.claims.explain([one.unit for one in units])
        except NotVerified:  # parts of a function alone may be none
            return np.inf
        pairs = zip(units, found, strict=True)
        return sum(np.inf if of is None else float(np.abs(one.take).max()) * of.error for one, of in pairs)

    def chosen(mine: Taken) -> Sequence[Taken]:
        return mine.members if mine.members and error([mine]) > error(mine.members) else (mine,)

    return [[one for mine in row for one in chosen(mine)] for row in rows]


def _grouped(taken: Iterable[Taken], name: Callable[[Taken], tuple]) -> list[list[Taken]]:
    groups: dict[tuple, list[Taken]] = {}
    for one in taken:
        groups.setdefault(name(one), []).append(one)
    return list(groups.values())


def _same(context: Context, taken: Sequence[Taken]) -> list[Taken]:
    """Units in the same number that are taken alike: parts of one unit."""

    def name(one: Taken) -> tuple:
        number = one.unit.reading.number
        return ("alone", id(one)) if number is None else number, np.round(one.take, 12).tobytes()

    groups = _grouped(taken, name)
    return [group[0] if len(group) == 1 else replace(_together(context, group), members=()) for group in groups]


def _joined(context: Context, taken: list[Taken]) -> list[Taken]:
    """Units in numbers of one direction, of which outputs take multiples: one, where they are a function together."""

    def name(one: Taken) -> tuple:
        lead = one.take[np.abs(one.take).argmax()]
        return *direction(one.unit.reading.t), (np.round(one.take / (lead or 1.0), DIGITS) + 0.0).tobytes()

    found = []
    for group in _grouped(taken, name):
        whole = _better(context, group)
        if whole is not None:
            found.append(whole)
            continue
        pairs = [group[0]]
        for one in group[1:]:  # parts of one function stand side by side
            pair = _better(context, [pairs[-1], one])
            pairs[-1:] = [pairs[-1], one] if pair is None else [pair]
        found += pairs
    return found


def _better(context: Context, group: list[Taken]) -> Taken | None:
    """The group as one, if that is closer to a function than its members are."""
    if len(group) == 1:
        return group[0]
    together = _together(context, group)
    apart = [float(np.abs(one.take).max()) * context.claims.match(one.unit)[0] for one in (together, *group)]
    return together if apart[0] < sum(apart[1:]) else None


def _together(context: Context, group: list[Taken]) -> Taken:
    """Values are those of the first, times how much more is taken of a unit; the first is the steepest, which would
    bear no error of t."""
    group = sorted(group, key=lambda one: -max(float(np.abs(part.slopes).max()) for part in one.unit.parts))
    first = group[0]
    lead = int(np.abs(first.take).argmax())
    units, off = [], np.zeros(len(first.take))
    for one in group:
        ratio = float(one.take[lead] / first.take[lead])
        parts = tuple(_times(part, ratio) for part in one.unit.parts)
        units.append(replace(one.unit, parts=parts))
        off = off + one.instead(first.take, ratio, context.model)
    members = tuple(one for mine in group for one in mine.members or (mine,))
    return Taken(first.take, off, joint(units, context.quantities), members)


def _times(part: Part, ratio: float) -> Part:
    """The part with values so many times as large, and all that they are off by."""
    more = 1.0 if ratio == 1 else abs(ratio) * SLACK
    error, size = (more * one for one in part.direct)
    return replace(part, values=part.values * ratio, value_error=part.value_error * more, direct=(error, size))


def direction(t: Forms) -> tuple[bytes, ...]:
    """A name for what t depends on, up to its sign, constant and last digits."""
    coefficients = t.coefficients[0, 0] * _sign(t)
    return t.ids.tobytes(), (np.round(coefficients, DIGITS) + 0.0).tobytes()


def joint(group: Sequence[Unit], quantities: Quantities) -> Unit:
    """Units in t_1, t_2, ... of one direction, as one in t_1.

    For t_h = sum_i c_hi q_i + b_h, a sign s = +-1 and shift = b_h - s b_1, t_h as computed is s t_1 + shift up to the
    errors of both and sum_i |c_hi - s c_1i| max|q_i|, by which t leans in that part; up to what both round by, if they
    are the same number. A logit a t_h + g is then (s a) t_1 + (a shift + g).
    """
    first = group[0].reading
    low, high = first.ends
    parts = []
    for unit in group:
        own = unit.reading
        same = own is first or (own.number is not None and own.number == first.number)
        sign = 1.0 if same else _sign(own.t) * _sign(first.t)
        shift = 0.0 if same else float(own.t.constant[0, 0] - sign * first.t.constant[0, 0])
        ends = sorted(sign * (end - shift) for end in own.ends)
        low, high = min(low, ends[0]), max(high, ends[1])
        lean = 0.0 if own is first else (own.rounded + first.rounded) * SLACK
        if not same:
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
