"""What is proven of learners, for a box of prompts or for one, and what that is called."""

from __future__ import annotations

import numpy as np

from anchorhead.language.targets.descent import Descent
from anchorhead.language.targets.many_learners import ManyLearners, Rows
from anchorhead.lemmas.learners.box import bound_for_box
from anchorhead.lemmas.learners.given import conditions_for_box
from anchorhead.lemmas.learners.loop import PathBound
from anchorhead.lemmas.learners.prompt import bound_for_prompt, bound_for_rows
from anchorhead.lemmas.learners.steps import Step
from anchorhead.proof.arithmetic.arithmetic import require_model
from anchorhead.proof.statement import Statement

ROUNDING = "softmax and sums in any order of rounding"
METHODS = {
    "direct": "series of sinh and cosh with Cauchy's bound on the rest; " + ROUNDING + "; errors of the steps add up, "
    "because a safe rate and a soft threshold bring paths no further apart",
    "transformer": "series of tanh, sinh and cosh with bounds on the rest; the link's head proven on its range; "
    + ROUNDING + "; errors of the steps add up, multiplied by no more than the link's slopes allow",
    "grid": "series of tanh, sinh and cosh with bounds on the rest; the link's grid interpolated at Chebyshev points, "
    "remainders on Bernstein ellipses; " + ROUNDING + "; errors of the steps add up, multiplied by no more than the "
    "link's slopes allow",
    "sequence": "the link's head against the link on Bernstein ellipses with complex balls, or in closed form; "
    + ROUNDING + "; errors of the steps add up, because a safe rate brings paths no further apart",
    "many": "tanh for scores and sinh for sums by their series, links by their heads; " + ROUNDING + "; errors of the "
    "steps add up, multiplied by no more than the links' slopes allow",
}  # fmt: skip
HEADS = {
    "direct": "gradient and threshold",
    "transformer": "score, link and gradient",
    "grid": "score, link and gradient",
    "sequence": "link",
    "many": "scores, links and sums",
}
"""In place of what heads stand: of that a bound's approximation is."""


def prove_box(step: Step, target: Descent, x: np.ndarray, y: float, dtype: str) -> tuple[Statement | None, PathBound]:
    """For all prompts with |A_ij| <= x_j, |y_i| <= y, at most target.examples examples and a safe rate; and the bound
    that the statement is made of."""
    found = bound_for_box(step, target, x, y, require_model(dtype))
    return _statement(found, _kind(target), str(target), conditions_for_box(target, found.given)), found


def prove_prompt(step: Step, target: Descent, A: np.ndarray, y: np.ndarray, where: str, dtype: str) -> Statement | None:
    """For one prompt: A (n, weights) what w multiplies, y (n,)."""
    found = bound_for_prompt(step, target, A, y, require_model(dtype))
    return _statement(found, _kind(target), where)


def prove_rows(step: Step, target: ManyLearners, rows: Rows, where: str, dtype: str) -> Statement | None:
    """For one prompt of a network of many learners."""
    return _statement(bound_for_rows(step, target, rows, require_model(dtype)), "many", where)


def _kind(target: Descent) -> str:
    return "grid" if target.layout == "transformer" and target.loss.form == "g(s, y)" else target.layout


def _statement(found: PathBound, kind: str, where: str, conditions: tuple = ()) -> Statement | None:
    """None where nothing can be said."""
    if not np.isfinite(found.total):
        return None
    return Statement(found.total, found.terms(HEADS[kind]), METHODS[kind], where, conditions)
