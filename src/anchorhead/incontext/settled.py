"""Running a learner until it settles: its state says how far the last step moved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from anchorhead.errors import AnchorheadError
from anchorhead.incontext.learner import Learner
from anchorhead.network import Repeat
from anchorhead.network.module import RepeatModule

EVERY = 20
"""After how many steps the state is looked at."""


@dataclass(frozen=True, eq=False)
class Settled:
    """w after `steps` steps; `moved` is how far the last of them moved any weight; the learner of so many steps."""

    w: np.ndarray
    steps: int
    moved: float
    converged: bool
    learner: Learner


def settle(
    learner: Learner, prompt: Any, tolerance: float, progress: Callable[[int, float], None] | None = None
) -> Settled:
    """Steps until one moves no weight by more than tolerance times the largest weight, at most all of the learner's.

    For learners with momentum: the features v of their state are the last step.
    """
    names = learner.streams[0].features
    w, v = (next((n for n, name in enumerate(names) if name == f"{letter}0"), None) for letter in "wv")
    if w is None or v is None:
        raise AnchorheadError("a learner without momentum does not know how far its last step moved")
    count = learner.descent.weights
    runner = learner._runner(torch.device("cpu"))
    tensor = torch.from_numpy(np.array(prompt, dtype=learner.dtype))
    with torch.no_grad():
        tokens = runner.embed(tensor.unsqueeze(0))
        repeat = next(step for step in runner.steps if isinstance(step, RepeatModule))
        steps, moved, weights = 0, np.inf, np.zeros(count)
        while steps < repeat.times:
            for _ in range(min(EVERY, repeat.times - steps)):
                tokens = repeat.once(tokens)
                steps += 1
            state = tokens["state"].reshape(-1, len(names))[0].numpy().astype(np.float64)
            weights, moved = state[w : w + count], float(np.abs(state[v : v + count]).max())
            if progress is not None:
                progress(steps, moved)
            if not np.isfinite(moved):
                raise AnchorheadError(f"the weights overflow after {steps} steps: the rate is too large for this prompt")
            if moved <= tolerance * float(np.abs(weights).max()):
                break
    done = moved <= tolerance * float(np.abs(weights).max())
    return Settled(weights.copy(), steps, moved, done, _of_steps(learner, steps))


def _of_steps(learner: Learner, steps: int) -> Learner:
    """The same learner with so many steps."""
    target = replace(learner.descent, steps=steps)
    layers = tuple(replace(layer, times=steps) if isinstance(layer, Repeat) else layer for layer in learner.layers)
    return learner.with_(layers=layers, target=target.record(), certificate=None)
