"""What a user asks: the best head with so many anchors, or the fewest anchors for an error."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anchorhead.decimals import counted
from anchorhead.domain import interval_text
from anchorhead.effort import Effort
from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Dtype
from anchorhead.heads.solver.problem import Function, Problem
from anchorhead.heads.solver.search import Construction, Search
from anchorhead.heads.solver.single import Solution
from anchorhead.progress import Progress

SAFETY = 0.95  # of the error asked for: what a proof may add to an estimate
_SHARP = 3e-4  # below this part of the target's range a free softmax cannot beat those that follow the kinks


class OutOfReach(AnchorheadError):
    """No head that was found is estimated within the error asked for.

    where    interval and dtype
    closest  the best that was found, if any
    advice   what would help
    verdict  whether it is out of reach, or the search ended before it
    """

    def __init__(self, message: str, where: str, closest: Solution | None, advice: str, verdict: str) -> None:
        super().__init__(message)
        self.where, self.closest, self.advice, self.verdict = where, closest, advice, verdict


def improvements(
    f: Function,
    kinks: Sequence[float],
    low: float,
    high: float,
    anchors: int,
    dtype: Dtype = "float64",
    max_value: float | None = None,
    max_slope: float | None = None,
    progress: Progress | None = None,
    effort: Effort | None = None,
) -> list[Solution]:
    """The heads with at most so many anchors that were, on some way, better than all with fewer anchors.

    f takes (n,) and gives (n,) or (n, m); between kinks it is smooth. `progress` is told on the way.
    With more anchors the list only grows; it ends where the effort does.
    """
    search = _search(f, kinks, low, high, dtype, max_value, max_slope, progress, effort=effort)
    found: list[Solution] = []
    for way in search.ways:
        found += search.climb(way, _top(search, way, anchors, found))
    if not found:
        raise AnchorheadError(f"no head with {counted(anchors, 'anchor')} keeps to the caps; {_help(search, None)}")
    return found


def smallest(
    f: Function,
    kinks: Sequence[float],
    low: float,
    high: float,
    within: float,
    dtype: Dtype = "float64",
    max_value: float | None = None,
    max_slope: float | None = None,
    max_anchors: int = 128,
    progress: Progress | None = None,
    effort: Effort | None = None,
) -> Solution:
    """The head with the fewest anchors whose estimated error, rounding included, is at most SAFETY *
    within.
    """
    if not within > 0:
        raise AnchorheadError(f"within={within!r}: the error asked for has to be above 0")
    aim, top = SAFETY * within, max_anchors
    search = _search(f, kinks, low, high, dtype, max_value, max_slope, progress, aim, effort)
    reached: Solution | None = None
    sharp = bool(search.problem.kinks) and within < _SHARP * search.problem.scale
    for way in (*search.ways, search.placed):
        if sharp and way in (search.ladder, search.placed):
            continue
        if way is search.placed and (reached is not None or search.placed.ruled_out(aim)):
            continue
        for solution in search.climb(way, top):
            if solution.total <= aim:
                reached, top = solution, solution.atom.anchors - 1
    if reached is None:
        raise _out_of_reach(search, within, _closest(search), max_anchors)
    return reached


def _closest(search: Search) -> Solution | None:
    """The solution for the best sketch of all climbs that keeps to the caps."""
    order = sorted(search.sketched, key=lambda rung: rung[:2])
    return next(filter(search.allowed, (way.solution(anchors) for _, anchors, way in order)), None)


def _top(search: Search, way: Construction, anchors: int, found: Sequence[Solution]) -> int:
    """How many anchors a way may have: a free softmax fewer than what follows the kinks and is sharp."""
    if anchors < 1:
        raise AnchorheadError(f"anchors={anchors!r}: a head has at least 1 anchor")
    sharp = [solution.atom.anchors for solution in found if solution.total < _SHARP * search.problem.scale]
    return min([anchors, *(count - 1 for count in sharp)]) if way is search.ladder else anchors


def _search(
    f: Function,
    kinks: Sequence[float],
    low: float,
    high: float,
    dtype: Dtype,
    max_value: float | None,
    max_slope: float | None,
    progress: Progress | None,
    aim: float | None = None,
    effort: Effort | None = None,
) -> Search:
    for name, cap in (("max_value", max_value), ("max_slope", max_slope)):
        if cap is not None and not cap > 0:
            raise AnchorheadError(f"{name}={cap!r}: a cap is a number above 0, or None for no cap")
    return Search(
        Problem.of(f, kinks, low, high),
        dtype,
        np.inf if max_value is None else max_value,
        np.inf if max_slope is None else max_slope,
        progress or (lambda status: None),
        aim,
        effort or Effort(np.inf),
    )


def _out_of_reach(search: Search, within: float, best: Solution | None, max_anchors: int) -> OutOfReach:
    """What was asked, what can be had, and what would help."""
    where = f"on {interval_text(search.problem.low, search.problem.high)} in {search.dtype}"
    advice = _help(search, best)
    if best is None:
        most = counted(max_anchors, "anchor")
        message = f"within={within:g} {_verdict(search)} {where}: no head with at most {most}; {advice}"
    else:
        found = best.estimate
        message = (
            f"within={within:g} {_verdict(search)} {where}: the best head found errs by {found.total:.3g} "
            f"({found.exact:.3g} in exact arithmetic, {found.rounding:.3g} by rounding) "
            f"with {counted(best.atom.anchors, 'anchor')}; {advice}"
        )
    return OutOfReach(message, where, best, advice, _verdict(search))


def _verdict(search: Search) -> str:
    return "was not reached with the work that a search may take" if search.effort.over else "is out of reach"


def _help(search: Search, best: Solution | None) -> str:
    capped = [name for name in ("max_value", "max_slope") if np.isfinite(getattr(search, name))]
    ways = [f"a higher {name} than {getattr(search, name):g}" for name in capped]
    if best is None:
        ways.append("more anchors")
    elif best.estimate.rounding > 0.3 * best.total:
        ways += ['dtype="float64"'] if search.dtype == "float32" else ["a larger error: float64 itself is the limit"]
    else:
        ways.append("a larger error")
    return f"what would help: {', '.join([*ways, 'a smaller domain'])}"
