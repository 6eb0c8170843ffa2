"""Fitting: the prompt is made, a learner runs until it settles, rate and momentum as a first run shows them.

Everything that fits is the learner's forward pass. A rate that is safe for all columns is too small for most, so larger
ones are tried first; one that makes the steps grow is halved. Where the steps show that another momentum would be
faster, the learner starts again with it. The learner that is kept is the last one, from w = 0 in one go.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from anchorhead.constructions.learners.learner import Learner
from anchorhead.errors import AnchorheadError
from anchorhead.incontext.estimators.task import Columns, Task, learner_for
from anchorhead.incontext.settled import Settled, settle
from anchorhead.progress import Progress

FIRST_MOMENTUM, FIRST_EASE, LEAST_EASE = 0.8, 4.0, 2.0**-16
LEAST_LEFT = 0.2
"""With smaller rates it is not their overshooting that takes scores beyond the range that is served."""
MAX_RUNS = 40


def fitted(
    task: Task,
    columns: Columns,
    X: Float[np.ndarray, "n d"],
    y: Float[np.ndarray, " n"],
    tolerance: float,
    most: int,
    dtype: str,
    tell: Progress | None = None,
) -> tuple[Settled, int]:
    """Where the learner that is kept settled, and the steps of all that were run.

    tolerance   how far w may be from where it settles, relative to its largest entry
    most        the most steps that a learner may have
    """
    examples, labels = columns(X), task.labels(y)
    momentum, ease, scores, spent = FIRST_MOMENTUM, FIRST_EASE, list(task.scores), 0
    for run in range(MAX_RUNS):
        learner = learner_for(
            task.descent(columns, momentum, ease, most, len(y)), labels, dtype, scores[0] if scores else None
        )
        if ease > LEAST_EASE and learner.outside != "ignore" and not learner.bears(learner.prompt(examples, labels)):
            ease /= 2  # a threshold may keep the steps from growing, but the learner would refuse its own prompt
            continue
        found = _run(learner, examples, labels, tolerance, tell, patient=run >= MAX_RUNS // 2)
        spent += found.steps
        match found.outcome:
            case "diverged" if ease > LEAST_EASE:
                ease /= 2
            case "slow":
                momentum = found.momentum
            case "left" if len(scores) > 1:
                scores.pop(0)
            case "left" if ease > LEAST_LEFT:
                scores, ease = list(task.scores), ease / 2
            case "left":
                low, high = task.scores[-1]
                raise AnchorheadError(
                    f"the scores w . x + b leave [{low:g}, {high:g}], the widest range that is served: labels and "
                    "columns are too far apart. Scale columns, give a larger alpha, or check the labels for outliers"
                )
            case _:
                return found, spent
    raise AnchorheadError(f"no rate was found with which the steps shrink, in {MAX_RUNS} runs: scale the columns")


def _run(
    learner: Learner, X: np.ndarray, y: np.ndarray, tolerance: float, tell: Progress | None, patient: bool
) -> Settled:
    descent = learner.descent
    design = np.column_stack([X, np.ones(len(y))]) if descent.intercept else X

    def within(w: np.ndarray) -> bool:
        low, high = descent.scores or (-np.inf, np.inf)
        arguments = descent.loss.argument(design @ w, y)
        return bool(low <= arguments.min() and arguments.max() <= high)

    return settle(
        learner,
        learner.prompt(X, y),
        tolerance,
        tell,
        None if descent.scores is None or descent.loss.name != "poisson" else within,
        patient,
    )
