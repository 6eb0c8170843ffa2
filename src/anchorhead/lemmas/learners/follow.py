"""One walk along the path of a learner: what every step errs by, from what holds where it begins.

What holds there is an *invariant*: of the path of one prompt (lemmas.learners.prompt), or of all paths of a box
(lemmas.learners.box). Each says of some examples, or of some ranges of arguments, where arguments lie with w as far off
as it may be by then. With that, at a step,

*score*    what is written for arguments z lies within d of them (lemmas.learners.score);
*link*     the head's error holds at what was written, and phi moves by at most d times its steepest slope between that
           and z: links are known up to slope d + error of the head + rounding;
*collect*  what is added to w errs by what lemmas.learners.average or lemmas.learners.own_anchors say of such links.

How errors of steps become errors of paths is lemmas.learners.loop. Where several registers carry w, each computes
scores with its own: that moves links by slope |x_i| times how far they are apart. Of two that carry w and -w scores see
half the difference alone, which follows the descent, each step erring by what either's update errs by; the other half,
by which the one that is read may differ, changes by as much a step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from anchorhead.language.targets.descent import Descent
from anchorhead.lemmas.learners.average import Moments
from anchorhead.lemmas.learners.loop import Off, Paths, StepError
from anchorhead.lemmas.learners.score import Arguments, Written, written
from anchorhead.lemmas.learners.steps import Step
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic

Array = Float[np.ndarray, " n"]
Weights = Float[np.ndarray, " weights"]


@dataclass(frozen=True, eq=False)
class Links:
    """Of their links.

    steep       bounds on the slopes between arguments and what is written for them
    exact       by how much what stands for links is off in exact arithmetic, and by rounding
    moments     what is averaged, if links are known up to given errors
    drawn       by how much the step is another for every length by which tokens that carry w are apart
    growth      between what rate times the second derivative lies on the way to the exact path
    own         what the reference path itself errs by, in float64
    """

    steep: Array
    exact: Array | float
    rounding: Array | float
    moments: Callable[[Any], Moments]
    drawn: float
    growth: tuple[float, float]
    own: float = 0.0


@runtime_checkable
class Invariant(Protocol):
    """What holds along a path. Either is None where nothing can be said."""

    def arguments(self, t: int, off: Off) -> Arguments | None:
        """Where step t begins."""
        ...

    def links(self, t: int, off: Off, z: Arguments, scores: Written) -> Links | None:
        """What links then are, given what is written for arguments."""
        ...


def follow(along: Invariant, paths: Paths, step: Step, target: Descent, model: Arithmetic) -> bool:
    """All steps, one after the other; False where nothing can be said."""
    for t in range(target.steps):
        found = error_at(t, along, paths.off, step, target, model) if np.isfinite(paths.off.w) else None
        if found is None:
            return False
        error, rounding, links, scores = found
        paths.note("score", scores.wrong, scores.rounding)
        paths.note("link", links.exact + links.rounding, links.rounding)
        paths.note("update", error.of_weights, rounding)
        paths.step(error, rounding, step.collect.update, *links.growth, links.own)
    return True


def error_at(
    t: int, along: Invariant, off: Off, step: Step, target: Descent, model: Arithmetic
) -> tuple[StepError, float, Links, Written] | None:
    """What step t errs by, what of that is rounding, what links are there, and what is written for arguments; None
    where nothing can be said."""
    z = along.arguments(t, off)
    if z is None:
        return None
    scores = written(step.scoring, z, model)
    links = along.links(t, off, z, scores)
    if links is None:
        return None
    rounding = links.steep * scores.rounding * UP + links.rounding
    wrong = links.steep * scores.wrong * UP + links.exact + links.rounding
    every = alone = step.collect.error(target, links.moments(wrong), model)
    if not np.array_equal(wrong, rounding):
        alone = step.collect.error(target, links.moments(rounding), model)
    if step.carriers == "each":
        drawn = target.rate * (1 + 1e-6) * links.drawn * off.apart * UP
        every, alone = every.more(drawn), alone.more(drawn)
    if step.carriers == "pair":
        return replace(every, apart=(every.of_weights, 0.0)), 2 * alone.rounding, links, scores
    return every, alone.rounding, links, scores


def steepest(slopes: tuple[Array, Array]) -> Array:
    """The larger size of two bounds."""
    return np.maximum(np.abs(slopes[0]), np.abs(slopes[1]))
