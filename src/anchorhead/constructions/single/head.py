"""The fewest anchors for a function of one variable: a head, proven, and the network that it is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.representable import require_representable
from anchorhead.constructions.single.certified_head import PROOFS, Head, certified_head
from anchorhead.decimals import counted
from anchorhead.effort import Effort
from anchorhead.errors import AnchorheadError, NotReached
from anchorhead.given import checked_count, checked_number, shown
from anchorhead.heads.atom import Atom
from anchorhead.heads.solver.single import Solution
from anchorhead.heads.solver.solve import OutOfReach, improvements, smallest
from anchorhead.heads.tables.table import Entry, Frontier, lookup
from anchorhead.heads.uniform import uniform
from anchorhead.language.targets import CallableTarget, ScalarTarget
from anchorhead.proof.arithmetic.arithmetic import require_model
from anchorhead.proof.heads.head import HeadBound

TRIES = 4
MAX_ANCHORS = 512
FEW_EVEN, MAX_EVEN = 8, 256
"""Even anchors: from so many on errors fall at a rate, and steeper keys take minutes to prove, or cannot be."""
AIM_EVEN, TOO_MANY_TIMES = 0.97, 4
"""How much of the error asked for may be used up, and how many times too many anchors are foretold to no purpose."""
LOOSEST = 2.2  # estimates: no proven bound is larger
SEARCH = 14_000_000
"""The work (anchorhead.effort) that may go into the search for a head."""
MORE_EVEN = 8.0
"""So much more may the proofs of even anchors take, of which there are many."""


def best_head(target: ScalarTarget | CallableTarget, request: BuildRequest) -> Head:
    """The smallest head that is proven within an error, or the best with at most so many anchors."""
    request = _checked(request)
    if request.within is not None:
        values = target.values(np.linspace(target.low, target.high, 33))
        require_representable(request.within, values, request.dtype)
    proofs = Effort(PROOFS * (MORE_EVEN if request.placement == "uniform" else 1.0))
    search = _Search(target, request, proofs)
    return search.within(request.within) if request.within is not None else search.with_anchors(request.anchors or 0)


@dataclass(frozen=True)
class _Search:
    target: ScalarTarget | CallableTarget
    request: BuildRequest
    proofs: Effort
    search: Effort = field(default_factory=lambda: Effort(SEARCH))

    def within(self, error: float) -> Head:
        """From the table; else asks the solver for a little less than the proof will find, until the proof agrees."""
        known = self._known and self._shipped(self._known.within(error), error)
        if known:
            return known
        aim, best = error, None
        for _ in range(TRIES):
            try:
                found = self.certified(self._smallest(aim), within=error)
            except OutOfReach as refused:
                return self._closest(error, refused, best)
            if found.certificate.bound <= error:
                return found
            best = found if best is None or found.certificate.bound < best.certificate.bound else best
            aim *= 0.97 * min(error / found.certificate.bound, 1.0)
            if self.proofs.over:
                break
        if best is None:
            raise AnchorheadError(f"no bound could be proven for {self.target.name} with the work that proofs may take")
        known, dtype = best.certificate, self.request.dtype
        raise NotReached(
            f"within={error:g} was not reached for {self.target.name} in {dtype}: the best certificate says "
            f"{known.kind} {known.bound:.3g}{' with the work that proofs may take' if self.proofs.over else ''}. What "
            f"would help: a larger error, {'float64, ' if dtype == 'float32' else ''}a smaller domain",
            best.network,
            known.bound,
            error,
        )

    def _closest(self, error: float, refused: OutOfReach, best: Head | None) -> Head:
        """The best head there was, if its certificate is within the error after all; else says what can be had."""
        if refused.closest is not None:
            found = self.certified(refused.closest.atom, within=error)
            best = found if best is None or found.certificate.bound < best.certificate.bound else best
        if best is None:
            raise refused
        known = best.certificate
        if known.bound <= error:
            return best
        parts = "; ".join(f"{term.amount:.3g} {term}" for term in known.terms)
        raise NotReached(
            f"within={error:g} {refused.verdict} {refused.where}: the best head found has "
            f"{counted(best.anchors, 'anchor')} and is {known.kind} within {known.bound:.3g} ({parts}); "
            f"{refused.advice}",
            best.network,
            known.bound,
            error,
        ) from refused

    def with_anchors(self, anchors: int) -> Head:
        if self.request.placement == "uniform":
            return self.certified(self._even(anchors).atom)
        known = self._known and self._shipped(self._known.with_anchors(anchors))
        if self._known and known and anchors <= self._known.searched:
            return known
        found = self._best_proven(anchors)
        return known if known and known.certificate.bound <= found.certificate.bound else found

    def _best_proven(self, anchors: int) -> Head:
        """The head with the smallest certified bound of all that the search comes by: more anchors never do worse.

        A certificate adds at most the rounding to the exact part where an estimate adds them point by point, so it is
        between one and two estimates: heads that are estimated beyond that cannot be the best.
        """
        found = improvements(self.target.values, self.target.kinks, *self._interval, anchors, **self._options)
        least = min(solution.total for solution in found)
        hopeful = [solution for solution in found if solution.total <= LOOSEST * least]
        heads: list[Head] = []
        for solution in sorted(hopeful, key=lambda solution: solution.total):
            if heads and self.proofs.over:
                break
            heads.append(self.certified(solution.atom))
        return min(heads, key=lambda head: (head.certificate.bound, head.anchors))

    @cached_property
    def _known(self) -> Frontier | None:
        """What the table that ships with the package holds for this target."""
        if self.request.placement != "solved" or not isinstance(self.target, ScalarTarget):
            return None
        return lookup(self.target.name, *self._interval, self.request.dtype, str(require_model(self.request.dtype)))

    def _shipped(self, entry: Entry | None, within: float | None = None) -> Head | None:
        """The head of the table with the bound that was proven for it, if it keeps to the caps."""
        if entry is None or self._capped(entry.atom):
            return None
        return self.certified(entry.atom, HeadBound(entry.exact, entry.rounding, entry.found, entry.at), within)

    def _capped(self, atom: Atom) -> bool:
        pairs = ((atom.max_value, self.request.max_value), (atom.max_slope, self.request.max_slope))
        return any(cap is not None and not size <= cap for size, cap in pairs)

    def _smallest(self, error: float) -> Atom:
        if self.request.placement == "solved":
            options = {**self._options, "max_anchors": MAX_ANCHORS}
            return smallest(self.target.values, self.target.kinks, *self._interval, error, **options).atom
        return self._smallest_uniform(error)

    def _smallest_uniform(self, error: float) -> Atom:
        """The fewest even anchors that do, nearly: counts grow by a fifth, or as far as the errors so far foretell."""
        errors: dict[int, float] = {}
        count = 2
        while count <= MAX_EVEN:
            solution = self._even(count)
            if solution.total <= AIM_EVEN * error:
                return solution.atom
            errors[count] = solution.total
            foretold = 0.95 * _foretold(errors, AIM_EVEN * error)
            if foretold > TOO_MANY_TIMES * MAX_EVEN:
                break
            # beside a kink errors fall by fits and starts: what two of them foretell may be far too many
            count = max(count + 1, int(1.2 * count), int(min(2 * count, foretold)))
        raise AnchorheadError(
            f"within={error:g} was not reached with up to {MAX_EVEN} uniform anchors: use placement='solved' or a "
            "larger error"
        )

    def _even(self, count: int) -> Solution:
        return uniform(self.target.values, *self._interval, count, self.request.dtype, self.target.kinks)

    def certified(self, atom: Atom, bound: HeadBound | None = None, within: float | None = None) -> Head:
        """The head with its certificate; bound: by this proof."""
        return certified_head(atom, self.target, self.proofs, self.request.progress, bound, within)

    @property
    def _interval(self) -> tuple[float, float]:
        return self.target.low, self.target.high

    @property
    def _options(self) -> dict[str, Any]:
        return {
            "dtype": self.request.dtype,
            "max_value": self.request.max_value,
            "max_slope": self.request.max_slope,
            "progress": self.request.progress,
            "effort": self.search,
        }


def _checked(request: BuildRequest) -> BuildRequest:
    """The error or the size that is asked for, and caps on the weights."""
    within, anchors = request.within, request.anchors
    if (within is None) == (anchors is None):
        raise AnchorheadError(
            f"within={shown(within)} and anchors={shown(anchors)}: give one of the two, the error or the size"
            if anchors is not None
            else "within is missing: the error asked for, as in within=1e-4; of ah.head and ah.compile, or anchors="
        )
    if anchors is not None:
        anchors = checked_count("anchors", anchors, 1, MAX_ANCHORS)
    caps = {name: _cap(name, getattr(request, name)) for name in ("max_value", "max_slope")}
    return replace(request, anchors=anchors, **caps)


def _cap(name: str, cap: Any) -> float | None:
    return None if cap is None else checked_number(name, cap, "a cap on the weights, a number above 0", above=0.0)


def _foretold(errors: dict[int, float], error: float) -> float:
    """The count at which the error is reached, if it goes on falling as it did; at least as its first power."""
    known = [(count, found) for count, found in errors.items() if count >= FEW_EVEN]
    if len(known) < 2 or not known[-1][1] < known[0][1]:
        return 0.0
    (before, first), (last, latest) = known[0], known[-1]
    rate = min(max(np.log(first / latest) / np.log(last / before), 1.0), 4.0)
    return float(last * (latest / error) ** (1 / rate))
