"""What is asked of a callable before it is fitted: the same values whenever and with whatever it is called."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from anchorhead.errors import AnchorheadError
from anchorhead.language.jump_search import find_jump
from anchorhead.language.targets.opaque_several import CallableSeveral

PROBES, FEW = 64, 5
NOISE = 1e-3
"""Differences up to this part of the error asked for are let pass: results of other batches are rounded otherwise."""

JUMP, PART = 10.0, 1e-3
"""Jumps of more than so many times the error asked for, and of more than this part of the range, are refused."""


def require_repeatable(target: CallableSeveral, within: float, seed: int) -> None:
    """Raises where the function gives other values the second time, or in other company."""
    x = np.random.default_rng([seed, 1]).uniform(target.low, target.high, (PROBES, len(target.variables)))
    first = target.values(x)
    for second, when in ((target.values(x), "a second time"), (target.values(x[:FEW]), "in a smaller batch")):
        differs = np.abs(first[: len(second)] - second).max(axis=1)
        if differs.max() > NOISE * within:
            at = int(differs.argmax())
            raise AnchorheadError(
                f"{target.name} gives {_shown(first[at])} at {x[at].tolist()}, and {_shown(second[at])} when it is "
                f"called {when}: it must be a function of each input alone, without chance or memory (for a torch "
                "module: model.eval())"
            )


def require_continuous(target: CallableSeveral, within: float, seed: int = 0) -> None:
    """Raises where a search finds a jump that is large beside the error asked for, and beside the function's range."""
    jump = find_jump(target.values, np.array(target.low), np.array(target.high), JUMP * within, PART, seed=seed)
    if jump is None:
        return
    (one, other), (first, second) = jump.points, jump.values
    which = "" if target.outputs == 1 else f"output {jump.output} of "
    raise AnchorheadError(
        f"{which}{target.name} is not continuous: it is {first:.6g} at {list(one)} and {second:.6g} at {list(other)}, "
        "next to it. Heads approximate continuous functions: choose a box on one side of the place, a larger error, or "
        "bridge the jump with a steep slope"
    )


def _shown(y: Float[np.ndarray, " outputs"]) -> str:
    return f"{float(y[0])!r}" if len(y) == 1 else str(y.tolist())
