"""Which function of the program a scalar head computes: found by looking, and then proven, so that a wrong guess costs
the verification and never its truth.

A unit is one or several softmaxes in the same t whose readings are added up with the same weights. A claim says

    sum of the readings = alpha f(scale t + shift) + beta,

where f(z) is an atom of the program whose argument z is, up to errors, scale t + shift. The error of the unit against
alpha atom + beta is what `scalar.prove` finds, and |alpha| (slope e + jump) for e >= |scale t + shift - z|, where slope
and jump are those of f. A unit may as well compute t itself, alpha t + beta.

scale t + shift, being computed, may leave the interval of z by as much as e, and f need not be defined there. Then the
claim is about f(clip(.)) in the place of f, between the ends of z: as z lies between these, f(clip(z)) = f(z) is the
atom, and nothing else has to be said.

Where f is steep, as sqrt is at 0, slope e would be too much. There is a number t* with scale t* + shift = z exactly,
and |t - t*| <= e / |scale|: logits in t are logits in t* whose t leans by that much (`Part.lean`). So the unit is
proven in t*, of which all parts lean by as much more, and the argument of f is right. Softmaxes are not steep.

Scales and factors are numbers that a file does not tell. They are guessed from the weights, and taken from a pool of
numbers that a derivation mentions, where these are close: better guesses give smaller bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from flint import arb

from anchorhead.verify.balls import precision
from anchorhead.verify.errors import require
from anchorhead.verify.forms import EXACT, Forms, Quantities, mapped, summed
from anchorhead.verify.functions import behaviour, clipped, is_defined
from anchorhead.verify.programs.exact import Atom, Exact
from anchorhead.verify.programs.expressions import Expression
from anchorhead.verify.readings import Reading
from anchorhead.verify.rounding import SLACK, Arithmetic
from anchorhead.verify.scalar.cells import Claim, Proven, prove
from anchorhead.verify.scalar.part import Part

SAMPLES = 33
FITTED = 20.0
"""So much better must numbers be that were fitted than those that were found, for a fit has errors of its own: it makes
up for some of the head's, and is made up for nowhere else."""
FAR = 4.0
"""What is so many times as far from what a head reads as that is large is no function of it."""
FLAT = 1e-12
"""What changes by no more than so much of itself is taken for a constant."""
NEAR = 1e-4
"""How close a guessed scale must be to one of the pool to be taken for it."""


@dataclass(frozen=True, eq=False)
class Pool:
    """Scales and shifts of arguments and of results that may occur, and heads: a value for each slope and offset."""

    inner: tuple[tuple[float, float], ...] = ((1.0, 0.0),)
    outer: tuple[tuple[float, float], ...] = ((1.0, 0.0),)
    heads: tuple[dict[tuple[float, float], float], ...] = ()


@dataclass(eq=False)
class Unit:
    """Softmaxes in one t.

    hints   pairs (alpha, beta) that the maps after them suggest for an atom's number, None for a line
    limit   an error that would be good enough
    """

    reading: Reading
    parts: tuple[Part, ...]
    hints: dict[int | None, list[tuple[float, float]]] = field(default_factory=dict)
    limit: float = np.inf


@dataclass(frozen=True, eq=False)
class Explained:
    """What a unit reads: a form (1, 1), the sums of sizes that its terms may have, and how many they are."""

    form: Forms
    reach: float
    mass: float
    terms: int
    words: str
    error: float


@dataclass(eq=False)
class _Job:
    parts: tuple[Part, ...]
    claim: Claim
    low: float
    high: float
    error: float = 0.0
    limit: float = np.inf

    def covers(self, other: _Job) -> bool:
        wide = self.low <= other.low and other.high <= self.high and self.limit <= other.limit
        return wide and all(mine.covers(theirs) for mine, theirs in zip(self.parts, other.parts, strict=True))


class Claims:
    """Units are collected, matched, and proven together: equal ones once, on the hull of their intervals."""

    def __init__(self, exact: Exact, model: Arithmetic, pool: Pool) -> None:
        self.exact, self.model, self.pool = exact, model, pool
        self.quantities: Quantities = exact.quantities
        self.proven: dict[tuple, tuple[Proven, _Job]] = {}
        self.learned: list[tuple[float, float]] = []
        self._grouped: dict[bytes, list[Atom]] | None = None
        self._matched: dict[Unit, tuple[float, tuple[Atom | None, Claim] | None]] = {}
        self._stacked: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def explain(self, units: Sequence[Unit]) -> list[Explained | None]:
        """For each unit what it reads, or None where no atom is found."""
        matched = [self.match(unit)[1] for unit in units]
        reach = self._arguments(units, matched)
        moves = [self._moves(unit, found, reach) for unit, found in zip(units, matched, strict=True)]
        units = [_leaning(unit, lean) for unit, (_, _, lean) in zip(units, moves, strict=True)]
        jobs: dict[tuple, _Job] = {}
        for unit, found in zip(units, matched, strict=True):
            if found is None:
                continue
            key = _key(unit.parts, found[1])
            low, high = unit.reading.ends
            job = jobs.setdefault(key, _Job(unit.parts, found[1], low, high))
            job.low, job.high = min(job.low, low), max(job.high, high)
            job.parts = tuple(mine.worse(theirs) for mine, theirs in zip(job.parts, unit.parts, strict=True))
            job.limit = min(job.limit, unit.limit)
            if found[0] is not None and self.exact.excluded:
                job.error = max(job.error, sum(self._argument_error(found[0], found[1], unit.reading.t)))
        for key, job in jobs.items():
            known = self.proven.get(key)
            if known is None or self.exact.excluded or not known[1].covers(job):
                limit = job.limit if job.limit < np.inf else 0.0
                self.proven[key] = prove(job.parts, job.claim, self._intervals(job), self.model, limit, True), job
        return [
            None
            if found is None
            else self._result(unit, found[0], found[1], self.proven[_key(unit.parts, found[1])][0], moved)
            for unit, found, moved in zip(units, matched, moves, strict=True)
        ]

    def _moves(self, unit: Unit, found: Any, reach: dict[str, tuple[float, float]]) -> tuple[float, float, float]:
        """How far f(scale t + shift) is from the atom, for what heads before have left and for all else; or, where f is
        steep, by how much t leans."""
        if found is None or found[0] is None:
            return 0.0, 0.0, 0.0
        atom, claim = found
        f = cast("Expression", claim.function)
        approximate, rounded = self._argument_error(atom, claim, unit.reading.t)
        pieces = _without(self.exact.excluded, approximate + rounded, *reach[f.key])
        each = [behaviour(f, *piece) for piece in pieces]
        if any(one.steep for one in each) and not self.exact.excluded:
            return 0.0, 0.0, (approximate + rounded) / abs(claim.scale) * SLACK
        slope, jump = max(one.slope for one in each), max(one.jump for one in each)
        return slope * approximate * SLACK, (slope * rounded + jump) * SLACK, 0.0

    def _arguments(self, units: Sequence[Unit], matched: list) -> dict[str, tuple[float, float]]:
        """For each function the hull of all its arguments, with their errors."""
        reach: dict[str, tuple[float, float]] = {}
        for unit, one in zip(units, matched, strict=True):
            if one is None or one[0] is None:
                continue
            low, high = self._asked(one[0], one[1], unit.reading.t)
            before = reach.get(one[1].function.key, (low, high))
            reach[one[1].function.key] = min(low, before[0]), max(high, before[1])
        return reach

    def _asked(self, atom: Atom, claim: Claim, t: Forms) -> tuple[float, float]:
        """Between what scale t + shift lies, and the argument of the atom."""
        room = sum(self._argument_error(atom, claim, t))
        low, high = (float(end[0, 0]) for end in cast("Forms", atom.argument).ends(self.quantities))
        return float(np.nextafter(low - room, -np.inf)), float(np.nextafter(high + room, np.inf))

    def _defined(self, atom: Atom, scale: float, shift: float, t: Forms) -> Expression:
        """The atom's function; where arguments as computed may be beyond its domain, that of arguments clipped."""
        f = cast("Expression", atom.function)
        asked = self._asked(atom, Claim(f, scale, shift, 1.0, 0.0), t)
        if all(is_defined(f, end) for end in asked):
            return f
        return clipped(f, *self.exact.ends(cast("Forms", atom.argument)))

    def _intervals(self, job: _Job) -> list[tuple[float, float]]:
        """Where t may be: its arguments scale t + shift are at most the error away from what is not excluded."""
        if not self.exact.excluded or job.claim.scale <= 0:
            return [(job.low, job.high)]
        pieces = _without(self.exact.excluded, job.error, job.claim.scale * job.low + job.claim.shift,
                          job.claim.scale * job.high + job.claim.shift)  # fmt: skip
        room = 1e-12 * (abs(job.low) + abs(job.high) + abs(job.claim.shift / job.claim.scale))
        ends = [[(end - job.claim.shift) / job.claim.scale for end in piece] for piece in pieces]
        return [(max(low - room, job.low), min(high + room, job.high)) for low, high in ends]

    # matching

    def match(self, unit: Unit) -> tuple[float, tuple[Atom | None, Claim] | None]:
        """The atom and the claim with the smallest error at some points, and that error."""
        if unit not in self._matched:
            self._matched[unit] = self._match(unit)
        return self._matched[unit]

    def _match(self, unit: Unit) -> tuple[float, tuple[Atom | None, Claim] | None]:
        t, (low, high) = unit.reading.t, unit.reading.ends
        points = np.unique(np.concatenate([np.linspace(low, high, SAMPLES), [min(max(0.0, low), high)]]))
        if self.exact.excluded:
            points = self._with_turns(unit, points)
        all_read = cast("np.ndarray", sum(_values(part, points) for part in unit.parts))
        size = float(np.abs(all_read).max()) + 1e-300
        best: tuple[float, Atom | None, Claim] | None = None
        atoms = self._candidates(t)
        for atom, scale, shift in [*atoms, *((None, *pair) for pair in self.pool.inner)]:
            if atom is not None and not isinstance(atom.function, Expression):
                continue
            function = None if atom is None else self._defined(atom, scale, shift, t)
            every = _function_values(function, scale * points + shift)  # type: ignore[arg-type]
            if every is None:
                continue
            known = _outside(self.exact.excluded, scale * points + shift)
            values, read = every[known], all_read[known]
            hints = unit.hints.get(None if atom is None else atom.number, [])
            told = [(pair, 1.0) for pair in hints]
            for (alpha, beta), handicap in told if unit.hints else self._factors(values, read):
                error = handicap * max(float(np.abs(read - alpha * values - beta).max()), 1e-14 * size)
                if best is None or error < best[0]:
                    best = error, atom, Claim(function, scale, shift, alpha, beta)  # type: ignore[arg-type]
        if best is None or best[0] > FAR * size:
            return size, None
        return best[0], (best[1], best[2])

    @staticmethod
    def _with_turns(unit: Unit, points: np.ndarray) -> np.ndarray:
        """And points at which one anchor of a softmax passes on to the next, and between them: functions that are
        claimed outside some intervals alone may be 0 at all points that are far apart."""
        found = [points]
        for part in unit.parts:
            order = np.argsort(part.slopes)
            gaps = np.diff(part.slopes[order])
            turns = -np.diff(part.offsets[order])[gaps > 0] / gaps[gaps > 0]
            turns = np.sort(turns[(turns > points[0]) & (turns < points[-1])])
            turns = turns[:: len(turns) // SAMPLES + 1]
            found += [turns, (turns[1:] + turns[:-1]) / 2]
        return np.unique(np.concatenate(found))

    def _candidates(self, t: Forms) -> list[tuple[Atom, float, float]]:
        """Atoms whose argument is scale t + shift, nearly."""
        if not len(t.ids):
            return []
        found = []
        groups = self._by_ids()
        same = groups.get(t.ids.tobytes())
        for atoms in [same] if same else groups.values():
            known, rows = self._rows(atoms)
            ids = np.union1d(t.ids, known)
            size = self.quantities.size(ids)
            own, theirs = t.aligned(ids).coefficients[0, 0], np.zeros((len(rows), len(ids)))
            theirs[:, np.searchsorted(ids, known)] = rows
            lead = int((np.abs(own) * size).argmax())
            ratio = theirs[:, lead] / own[lead] if own[lead] else np.zeros(len(atoms))
            reach = np.abs(theirs) @ size
            close = (np.abs(theirs - ratio[:, None] * own) @ size <= NEAR * reach) & (ratio != 0)
            for n in np.flatnonzero(close):
                constant = float(atoms[n].argument.constant[0, 0])  # type: ignore[union-attr]
                found += self._snapped(atoms[n], float(ratio[n]), float(t.constant[0, 0]), constant, float(reach[n]))
        return found

    def _rows(self, atoms: list[Atom]) -> tuple[np.ndarray, np.ndarray]:
        """The quantities that the arguments of a group of atoms are made of, and their coefficients."""
        if id(atoms) not in self._stacked:
            arguments = [cast("Forms", atom.argument) for atom in atoms]
            rows = np.array([one.coefficients[0, 0] for one in arguments])
            self._stacked[id(atoms)] = arguments[0].ids, rows
        return self._stacked[id(atoms)]

    def _by_ids(self) -> dict[bytes, list[Atom]]:
        """Atoms of one argument, by the quantities that it is made of."""
        if self._grouped is None:
            self._grouped = {}
            for atom in self.exact.atoms.values():
                if atom.argument is not None:
                    self._grouped.setdefault(atom.argument.ids.tobytes(), []).append(atom)
        return self._grouped

    def _snapped(
        self, atom: Atom, ratio: float, own: float, theirs: float, size: float
    ) -> list[tuple[Atom, float, float]]:
        """z = scale t + shift with numbers of the pool, up to powers of two, where these are close; else as is."""
        found = []
        for scale, shift in (*self.pool.inner, *self.learned):
            unit = ratio / scale
            power = 2.0 ** round(np.log2(abs(unit))) if unit else 0.0
            if unit > 0 and abs(unit / power - 1) < NEAR:
                wanted = theirs - scale * power * own
                if abs(wanted - shift * power) <= NEAR * (abs(theirs) + abs(scale * power * own) + size):
                    found.append((atom, scale * power, shift * power))
        if not found:
            self.learned.append((ratio, theirs - ratio * own))
            found.append((atom, *self.learned[-1]))
        return found

    def _factors(self, values: np.ndarray, read: np.ndarray) -> list[tuple[tuple[float, float], float]]:
        """Pairs (alpha, beta) with read = alpha values + beta, nearly: numbers of the pool, up to powers of two, and
        those that fit best; and how much better they must be."""
        if not np.ptp(values) > 0:
            return [((1.0, float(read.mean() - values.mean())), 1.0)]
        centred, pairs = values - values.mean(), []
        alpha = float((centred * (read - read.mean())).sum() / (centred**2).sum())
        flat = not alpha * np.ptp(values) > FLAT * np.abs(read).max()
        for scale, shift in self.pool.outer:
            power = 0.0 if flat else 2.0 ** round(np.log2(alpha * scale))
            pairs += [((power / scale, beta), 1.0) for beta in (-shift / scale, 0.0)]
        return [*pairs, ((alpha, float(read.mean() - alpha * values.mean())), FITTED)]

    # results

    def _result(
        self, unit: Unit, atom: Atom | None, claim: Claim, proven: Proven, moved: tuple[float, float, float]
    ) -> Explained:
        t, zero = unit.reading.t, np.zeros((1, 1))
        if atom is None:
            form = mapped(np.array([[claim.alpha * claim.scale]]), None, t, self.quantities, EXACT)
            shift = claim.alpha * claim.shift + claim.beta
            form = summed([form, Forms.constants(np.array([[shift]]))], self.quantities)
            approximation, rounding = form.approximation, form.rounding
            words = "a line"
        else:
            form = Forms(np.array([atom.number]), np.array([[[claim.alpha]]]), np.array([[claim.beta]]), zero, zero)
            approximation, rounding = (np.array([[abs(claim.alpha) * one * SLACK]]) for one in moved[:2])
            words = f"{atom.where} = {atom.function}"
        total = proven.total
        approximation = approximation + min(proven.approximation, total)
        rounding = rounding + max(total - proven.approximation, 0.0)
        form = Forms(form.ids, form.coefficients, form.constant, approximation, rounding)
        error = float((approximation + rounding)[0, 0])
        terms = sum(len(part.slopes) for part in unit.parts)
        return Explained(form, float(proven.reach.sum()), float(proven.mass.sum()), terms, words, error)

    def _argument_error(self, atom: Atom, claim: Claim, t: Forms) -> tuple[float, float]:
        """|scale t + shift - z|: what heads before have left, and all else."""
        z = atom.argument
        scaled = mapped(np.array([[claim.scale]]), None, t, self.quantities, EXACT)
        opposite = mapped(np.array([[-1.0]]), None, z, self.quantities, EXACT)  # type: ignore[arg-type]
        difference = summed([scaled, opposite, Forms.constants(np.array([[claim.shift]]))], self.quantities)
        low, high = difference.ends(self.quantities)
        whole = max(abs(float(low[0, 0])), abs(float(high[0, 0])))
        approximate = float(difference.approximation[0, 0])
        return approximate, max(whole - approximate, 0.0)


def _leaning(unit: Unit, lean: float) -> Unit:
    """In the number for which the argument of f is right: t is no further from it than this."""
    if not lean:
        return unit
    low, high = unit.reading.ends
    ends = float(np.nextafter(low - lean, -np.inf)), float(np.nextafter(high + lean, np.inf))
    parts = tuple(replace(part, lean=part.lean + lean) for part in unit.parts)
    return replace(unit, reading=replace(unit.reading, ends=ends), parts=parts)


def _key(parts: tuple[Part, ...], claim: Claim) -> tuple:
    return (*(part.key() for part in parts), claim)


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


def _outside(excluded: Sequence[tuple[float, float]], points: np.ndarray) -> np.ndarray:
    """Which points are in none of some intervals; all, if each is in one."""
    outside = np.ones(len(points), bool)
    for low, high in excluded:
        outside &= (points <= low) | (points >= high)
    return outside if outside.any() else ~outside


def _values(part: Part, points: np.ndarray) -> np.ndarray:
    logits = part.slopes * points[:, None] + part.offsets
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return (weights @ part.values) / weights.sum(axis=1)


def _function_values(function: Expression | None, points: np.ndarray) -> np.ndarray | None:
    if function is None:
        return points
    name = function.variables[0] if function.variables else "x"
    with precision(64):
        found = np.array([float(function.point({name: arb(float(point))}).mid()) for point in points])
    return found if np.isfinite(found).all() else None
