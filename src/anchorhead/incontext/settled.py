"""Running a learner until it settles: its state says how far the last step moved.

With momentum mu, an entry of w along an eigenvector of the second derivative, rate times eigenvalue a, follows

    r^2 - (1 + mu - a) r + mu = 0,

so its distance to where it settles shrinks by |r| = sqrt(mu) a step as long as a >= (1 - sqrt(mu))^2, and by a real
r > sqrt(mu) for smaller a. How fast the steps shrink tells which it is: then a = (1 - r)(1 - mu / r), and the momentum
that serves this a best is (1 - sqrt(a))^2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from anchorhead.constructions.learners.learner import Learner
from anchorhead.errors import AnchorheadError
from anchorhead.network.modules.network import RepeatModule
from anchorhead.network.stated_arithmetic import stated_arithmetic
from anchorhead.network.threads import threads_for
from anchorhead.progress import Progress, Status

EVERY = 10
"""After how many steps the state is looked at."""
NOISE = {"float64": 1e-11, "float32": 1e-4}
"""Steps no longer than this, times the rate where it is above 1, that hardly become shorter: what rounding leaves."""
FAR = 10.0
"""Momentum mu lets steps grow to 1 / (1 - mu) times the first; beyond this many times as much w runs away."""
LEAST_SIZE = 1e-3
"""Weights of scaled columns for scaled labels that are smaller count as this large: w may settle at 0."""
MAX_MOMENTUM = 0.9998
DRIFT = 0.3
"""Steps that go one way get at least this share of the length of their path away."""
SLOW = 0.6
"""What is left shrinks by less than sqrt(mu) to this power: more than the wavering of the steps can explain."""
Outcome = Literal["settled", "slow", "diverged", "left", "steps"]


@dataclass(frozen=True, eq=False)
class Settled:
    """w after `steps` steps.

    outcome    "settled"; "slow": another momentum would be faster; "diverged": the rate is too large; "left": the
               caller's watch refused w; "steps": no more steps
    distance   about how far w is from where it settles, relative to the largest weight; infinite where unknown
    momentum   which momentum would be faster, where the outcome is "slow"
    learner    the learner of so many steps
    """

    w: np.ndarray
    steps: int
    outcome: Outcome
    distance: float
    momentum: float
    learner: Learner


class Pace:
    """How the steps of a learner shrink: the largest of the last steps beside the largest of those before them."""

    def __init__(self, momentum: float, tolerance: float, noise: float) -> None:
        self.momentum, self.tolerance, self.noise = momentum, tolerance, noise
        self.window = max(3, math.ceil(2 / (1 - math.sqrt(momentum)) / EVERY))
        self.moves: list[float] = []
        self.first = self.size = 0.0
        self._recent: list[np.ndarray] = []

    def add(self, w: np.ndarray, v: np.ndarray) -> None:
        moved = float(np.abs(v).max())
        if not self.moves:
            self.first = moved
        self.moves.append(moved)
        self.size = max(float(np.abs(w).max()), LEAST_SIZE)
        self._recent = [*self._recent[-self.window :], w]

    def _longest(self, windows_ago: int) -> float:
        end = len(self.moves) - windows_ago * self.window
        return max(self.moves[max(0, end - self.window) : end], default=math.nan)

    @property
    def factor(self) -> float:
        """By how much a step shrinks what is left; not a number until that can be said."""
        if len(self.moves) < 2 * self.window:
            return math.nan
        before = self._longest(1)
        return 0.0 if before == 0 else (self._longest(0) / before) ** (1 / (self.window * EVERY))

    @property
    def distance(self) -> float:
        factor = self.factor
        return max(self.moves[-max(2, self.window // 3) :]) / (1 - factor) / self.size if factor < 1 else math.inf

    @property
    def diverged(self) -> bool:
        last = self.moves[-1]
        if not math.isfinite(last) or last > FAR / (1 - self.momentum) * self.first:
            return True
        if len(self.moves) >= 3 * self.window and self._longest(2) <= self._longest(1) <= self._longest(0):
            return True
        return self._lingers and not self._drifts

    @property
    def _lingers(self) -> bool:
        """Whether what is left shrinks more slowly than momentum alone makes it; not so until that can be said."""
        return self.factor > self.momentum ** (SLOW / 2)

    @property
    def _drifts(self) -> bool:
        """Whether the last steps went one way: then a small curvature holds w up; else w goes to and fro."""
        went = float(np.abs(self._recent[-1] - self._recent[0]).max())
        return went >= DRIFT * EVERY * sum(self.moves[-self.window :])

    @property
    def settled(self) -> bool:
        at_rest = len(self.moves) > 1 and self.moves[-1] == self.moves[-2] == 0
        return at_rest or self.distance <= self.tolerance or self._at_noise

    @property
    def _at_noise(self) -> bool:
        return self._longest(0) <= self.noise and self._lingers

    def faster(self) -> float | None:
        """A momentum that would get there from the start in clearly fewer steps than are left with this one."""
        factor, mu = self.factor, self.momentum
        if not (self._lingers and factor < 1 and self._drifts):
            return None
        slowest = (1 - factor) * (1 - mu / factor)
        # slower ones may not be seen yet, and too much momentum costs less than too little
        best = min((1 - math.sqrt(0.6 * slowest)) ** 2, MAX_MOMENTUM)
        left = math.log(max(self.distance / self.tolerance, 1.0)) / -math.log(factor)
        anew = 2 * math.log(10 / self.tolerance) / -math.log(best)
        return best if best > mu and left > 1.25 * anew else None


def settle(
    learner: Learner,
    prompt: Any,
    tolerance: float,
    progress: Progress | None = None,
    watch: Callable[[np.ndarray], bool] | None = None,
    patient: bool = False,
) -> Settled:
    """Steps until w is about tolerance times its largest entry from where it settles, at most all of the learner's.

    For learners with momentum: the features v of their state are the last step.

    progress   told the number of steps and the distance, now and then
    watch      says of w whether to go on
    patient    go on even if another momentum would be faster
    """
    descent = learner.descent
    pace = Pace(descent.momentum, tolerance, NOISE[learner.dtype] * max(1.0, descent.rate))
    steps, weights, outcome, faster = 0, np.zeros(descent.weights), "steps", None
    for number, w, v in states(learner, prompt):
        if number != 1 and number % EVERY and number < descent.steps:
            continue
        steps, weights = number, w
        pace.add(w, v)
        if progress is not None:
            away = f", {pace.distance:.1e} from where it settles" if np.isfinite(pace.distance) else ""
            progress(Status(f"fitting: {steps:,} steps{away}"))
        faster = None if patient else pace.faster()
        outcome = _outcome(pace, faster, watch is None or watch(weights))
        if outcome != "steps":
            break
    momentum = pace.momentum if faster is None else faster
    return Settled(weights, steps, outcome, pace.distance, momentum, learner.with_steps(steps))


def states(learner: Learner, prompt: Any) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """The number of a step, w after it and the step v itself, for all steps of a learner with momentum on one prompt.

    Nothing but the last state is kept.
    """
    names, count = learner.streams[0].features, learner.descent.weights
    w, v = (next((n for n, name in enumerate(names) if name == f"{letter}0"), None) for letter in "wv")
    if w is None or v is None:
        raise AnchorheadError("a learner without momentum does not know how far its last step moved")
    runner = learner._calls.plain(torch.device("cpu"))
    repeat = next(step for step in runner.steps if isinstance(step, RepeatModule))
    tensor = torch.from_numpy(np.array(prompt, dtype=learner.dtype))
    numbers = learner._calls.numbers(tensor)
    with threads_for(numbers), torch.no_grad(), stated_arithmetic(tensor.device):
        tokens = runner.embed(tensor.unsqueeze(0))
    for number in range(1, repeat.times + 1):
        with threads_for(numbers), torch.no_grad(), stated_arithmetic(tensor.device):
            tokens = repeat.once(tokens)
        state = tokens["state"].reshape(-1, len(names))[0].numpy().astype(np.float64)
        yield number, state[w : w + count].copy(), state[v : v + count]


def _outcome(pace: Pace, faster: float | None, goes_on: bool) -> Outcome:
    if pace.settled:
        return "settled"
    if pace.diverged:
        return "diverged"
    if not goes_on:
        return "left"
    return "slow" if faster is not None else "steps"
