"""The claim of a unit, proven: that it computes a function of the program.

A unit is one or several softmaxes in the same t whose readings are added up with the same weights. A claim (`named`)
says

    sum of the readings = alpha f(scale t + shift) + beta,

where f(z) is an entry of the program whose argument z is, up to errors, scale t + shift. The error of the unit against
alpha f(z) + beta is what `scalar.prove` finds, and |alpha| (slope e + jump) for e >= |scale t + shift - z|, where slope
and jump are those of f. A wrong claim costs the verification, never its truth.

Where softmaxes may be computed by series S_i (`direct`), the error is that, or, if it is larger, that of the sum of the
S_i, and of the softmaxes that have none, against the same: `scalar.prove` finds it for a claim less these functions.
What the S_i round by is added, and what they move by where t leans. All that have series are computed by these, or
none: that is what two evaluations are.

scale t + shift, being computed, may leave the interval of z by as much as e, and f need not be defined there. Then the
claim is about f(clip(.)) in the place of f, between the ends of z: as z lies between these, f(clip(z)) = f(z), and
nothing else has to be said.

Where f is steep, as sqrt is at 0, slope e would be too much. There is a number t* with scale t* + shift = z exactly,
and |t - t*| <= e / |scale|: logits in t are logits in t* whose t leans by that much (`Part.lean`). So the unit is
proven in t*, of which all parts lean by as much more, and the argument of f is right. Softmaxes are not steep.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.forms import EXACT, Forms, Quantities, mapped, summed
from anchorhead.verify.functions import behaviour, clipped, is_defined
from anchorhead.verify.named import Claimed, Named
from anchorhead.verify.programs.exact import Entry, Exact
from anchorhead.verify.programs.expressions import Expression
from anchorhead.verify.programs.text import shortened, written
from anchorhead.verify.readings import Reading
from anchorhead.verify.rounding import SLACK, Arithmetic
from anchorhead.verify.scalar.cells import Proven, prove
from anchorhead.verify.scalar.part import Claim, Part


@dataclass(eq=False)
class Unit:
    """Softmaxes in one t; claimed: what they are said to compute."""

    reading: Reading
    parts: tuple[Part, ...]
    claimed: Claimed | None = None


@dataclass(frozen=True, eq=False)
class Explained:
    """What a unit reads: a form (1, 1), and the sums of sizes that its terms may have."""

    form: Forms
    reach: float
    mass: float
    words: str
    error: float


@dataclass(frozen=True, eq=False)
class _Meant:
    """What a unit is said to compute.

    approximate, rounded   |scale t + shift - z| is at most their sum: what heads before have left, and all else
    asked                  between what scale t + shift lies, and z
    """

    entry: Entry
    claim: Claim
    function: Expression
    approximate: float
    rounded: float
    asked: tuple[float, float]

    @property
    def off(self) -> float:
        return self.approximate + self.rounded


@dataclass(eq=False)
class _Job:
    parts: tuple[Part, ...]
    claim: Claim
    low: float
    high: float
    error: float = 0.0
    units: list[int] = field(default_factory=list)

    def covers(self, other: _Job) -> bool:
        wide = self.low <= other.low and other.high <= self.high
        return wide and all(mine.covers(theirs) for mine, theirs in zip(self.parts, other.parts, strict=True))


class Claims:
    """Units are collected and proven together: equal ones whose intervals overlap once, on all of these."""

    def __init__(self, exact: Exact, model: Arithmetic) -> None:
        self.exact, self.model = exact, model
        self.quantities: Quantities = exact.quantities
        self.proven: dict[tuple, list[tuple[_Job, Proven]]] = {}

    def explain(self, units: Sequence[Unit]) -> list[Explained | None]:
        """For each unit what it reads, or None where nothing is claimed of it."""
        meant = [None if unit.claimed is None else self._meant(unit.claimed.of, unit.reading.t) for unit in units]
        reach = _hulls([one for one in meant if one is not None])
        moves = [(0.0, 0.0, 0.0) if one is None else self._moves(one, reach) for one in meant]
        units = [_leaning(unit, lean) for unit, (_, _, lean) in zip(units, moves, strict=True)]
        jobs: dict[tuple, list[_Job]] = {}
        found: list[Explained | None] = [None] * len(units)
        for n in sorted(range(len(units)), key=lambda n: units[n].reading.ends):
            unit, one, (low, high) = units[n], meant[n], units[n].reading.ends
            if one is None:
                continue
            same = jobs.setdefault((*(part.key() for part in unit.parts), one.claim), [])
            if not same or same[-1].high < low:
                same.append(_Job(unit.parts, one.claim, low, high))
            job = same[-1]
            job.high = max(job.high, high)
            job.parts = tuple(mine.worse(theirs) for mine, theirs in zip(job.parts, unit.parts, strict=True))
            job.error = max(job.error, one.off)
            job.units.append(n)
        for key, same in jobs.items():
            for job in same:
                proven = self._proven(key, job)
                for n in job.units:
                    found[n] = self._result(meant[n], proven, moves[n])  # type: ignore[arg-type]
        return found

    def _proven(self, key: tuple, job: _Job) -> Proven:
        """By a proof that covers it, if there is one."""
        known = self.proven.setdefault(key, [])
        for one, proven in () if self.exact.excluded else known:
            if one.covers(job):
                return proven
        intervals = self._intervals(job)
        found = prove(job.parts, job.claim, intervals, self.model)
        known.append((job, replace(found, total=max(found.total, self._directly(job, intervals, found.total)))))
        return known[-1][1]

    def _directly(self, job: _Job, intervals: list[tuple[float, float]], enough: float) -> float:
        """The unit's error where parts are computed by their series; enough: what nobody would call too much."""
        series = [(part, part.series) for part in job.parts if part.series is not None]
        if not series:
            return 0.0
        off = sum(part.direct[0] + _moved(claim, part.lean, job.low, job.high) for part, claim in series) * SLACK
        opposite = tuple(replace(claim, alpha=-claim.alpha) for _, claim in series)
        rest = [part for part in job.parts if part.series is None] or [NOTHING]
        claim = replace(job.claim, more=opposite)
        return prove(rest, claim, intervals, self.model, max(enough - off, off / 100)).total + off

    def _meant(self, named: Named, t: Forms) -> _Meant:
        entry = self.exact.entry(*named.entry)
        f, z = entry.function, entry.argument
        if not isinstance(f, Expression) or z is None:
            raise NotVerified(f"{entry.where}, which softmaxes are said to compute, is no function of one number")
        scale, shift = (1.0, 0.0) if named.own_logits else (named.scale, named.shift)
        approximate, rounded = self._argument_error(z, scale, shift, t)
        low, high = (float(end[0, 0]) for end in z.ends(self.quantities))
        room = approximate + rounded
        asked = float(np.nextafter(low - room, -np.inf)), float(np.nextafter(high + room, np.inf))
        if not all(is_defined(f, end) for end in asked):
            f = clipped(f, *self.exact.ends(z))
        return _Meant(entry, Claim(f, scale, shift, named.alpha, named.beta), f, approximate, rounded, asked)

    def _argument_error(self, z: Forms, scale: float, shift: float, t: Forms) -> tuple[float, float]:
        """|scale t + shift - z|: what heads before have left, and all else."""
        scaled = mapped(np.array([[scale]]), None, t, self.quantities, EXACT)
        opposite = mapped(np.array([[-1.0]]), None, z, self.quantities, EXACT)
        difference = summed([scaled, opposite, Forms.constants(np.array([[shift]]))], self.quantities)
        low, high = difference.ends(self.quantities)
        whole = max(abs(float(low[0, 0])), abs(float(high[0, 0])))
        approximate = float(difference.approximation[0, 0])
        return approximate, max(whole - approximate, 0.0)

    def _moves(self, meant: _Meant, reach: dict[str, tuple[float, float]]) -> tuple[float, float, float]:
        """How far f(scale t + shift) is from f(z), for what heads before have left and for all else; or, where f is
        steep, by how much t leans."""
        pieces = _without(self.exact.excluded, meant.off, *reach[meant.function.key])
        each = [behaviour(meant.function, *piece) for piece in pieces]
        if any(one.steep for one in each) and not self.exact.excluded:
            return 0.0, 0.0, meant.off / abs(meant.claim.scale) * SLACK
        slope, jump = max(one.slope for one in each), max(one.jump for one in each)
        return slope * meant.approximate * SLACK, (slope * meant.rounded + jump) * SLACK, 0.0

    def _intervals(self, job: _Job) -> list[tuple[float, float]]:
        """Where t may be: its arguments scale t + shift are at most the error away from what is not excluded."""
        if not self.exact.excluded or job.claim.scale <= 0:
            return [(job.low, job.high)]
        pieces = _without(self.exact.excluded, job.error, job.claim.scale * job.low + job.claim.shift,
                          job.claim.scale * job.high + job.claim.shift)  # fmt: skip
        room = 1e-12 * (abs(job.low) + abs(job.high) + abs(job.claim.shift / job.claim.scale))
        ends = [[(end - job.claim.shift) / job.claim.scale for end in piece] for piece in pieces]
        return [(max(low - room, job.low), min(high + room, job.high)) for low, high in ends]

    def _result(self, meant: _Meant, proven: Proven, moved: tuple[float, float, float]) -> Explained:
        claim = meant.claim
        form = mapped(np.array([[claim.alpha]]), None, meant.entry.form, self.quantities, EXACT)
        form = summed([form, Forms.constants(np.array([[claim.beta]]))], self.quantities)
        approximation, rounding = (np.array([[abs(claim.alpha) * one * SLACK]]) for one in moved[:2])
        approximation = form.approximation + approximation + proven.total  # what sums round by is told apart (`joint`)
        rounding = form.rounding + rounding
        form = Forms(form.ids, form.coefficients, form.constant, approximation, rounding)
        error = float((approximation + rounding)[0, 0])
        words = f"{meant.entry.where} = {shortened(written(meant.function))}"
        return Explained(form, float(proven.reach.sum()), float(proven.mass.sum()), words, error)


_0 = np.zeros(1)
NOTHING = Part(_0, _0, _0, _0, _0, _0, _0, _0, _0, EXACT, whole=True)
"""A softmax that reads 0."""


def _moved(series: Claim, lean: float, low: float, high: float) -> float:
    """How far a series moves where t leans."""
    if not lean or series.function is None:
        return 0.0
    start, end = sorted(series.scale * end + series.shift for end in (low - lean, high + lean))
    known = behaviour(series.function, float(np.nextafter(start, -np.inf)), float(np.nextafter(end, np.inf)))
    return abs(series.alpha) * (known.slope * lean + known.jump) * SLACK


def _hulls(meant: Sequence[_Meant]) -> dict[str, tuple[float, float]]:
    """For each function the hull of all its arguments, with their errors."""
    reach: dict[str, tuple[float, float]] = {}
    for one in meant:
        (low, high), before = one.asked, reach.get(one.function.key, one.asked)
        reach[one.function.key] = min(low, before[0]), max(high, before[1])
    return reach


def _leaning(unit: Unit, lean: float) -> Unit:
    """In the number for which the argument of f is right: t is no further from it than this."""
    if not lean:
        return unit
    low, high = unit.reading.ends
    ends = float(np.nextafter(low - lean, -np.inf)), float(np.nextafter(high + lean, np.inf))
    parts = tuple(replace(part, lean=part.lean + lean) for part in unit.parts)
    return replace(unit, reading=replace(unit.reading, ends=ends), parts=parts)


def _without(
    excluded: Sequence[tuple[float, float]], error: float, low: float, high: float
) -> list[tuple[float, float]]:
    """[low, high] without open intervals, each made smaller by an error on both sides."""
    pieces, start = [], low
    for a, b in sorted(excluded):
        a, b = a + error * SLACK, b - error * SLACK
        if a < b and b > low and a < high:
            pieces.append((start, a))
            start = b
    found = [(a, b) for a, b in [*pieces, (start, high)] if a <= b]
    require(bool(found), "the conditions leave no input")
    return found
