"""Learners: networks whose forward pass is gradient descent on the examples of a prompt.

A prompt of n examples (x_i, y_i) is 2n tokens (x_i, 1, y_i) and their negatives, in any order; for a loss of the
margin, y phi(y s) with labels 1 and -1, (y_i x_i, y_i, 1) and their negatives. A certificate for a box bounds |w_t -
exact w_t| at all steps, for every prompt with entries in the box that keeps to its conditions; one for a prompt, for
that one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.grammar import Network
from anchorhead.verify.learners.box import Box, Curved, bound_for_box
from anchorhead.verify.learners.layers import read_step
from anchorhead.verify.learners.link import Link, read_link
from anchorhead.verify.learners.prompt import bound_for_prompt
from anchorhead.verify.learners.target import Descent, read_descent
from anchorhead.verify.learners.tokens import require_finite
from anchorhead.verify.program import Program, Repeat
from anchorhead.verify.rounding import Arithmetic, arithmetic_of

Conditions = Iterable[Mapping[str, Any]]


@dataclass(frozen=True)
class Given:
    """The conditions on prompts that a certificate states: at most so many examples, rate |H| at most `limit`; further
    conditions of curved links by their kind."""

    examples: int
    limit: float
    more: Mapping[str, Mapping[str, Any]]


def is_learner(program: Program) -> bool:
    """Whether a program is a path of descent: one Repeat of all that it puts out."""
    return any(isinstance(program.steps[place], Repeat) for place in program.outputs)


def bound_for_learner(
    network: Network, program: Program, low: np.ndarray, high: np.ndarray, stated: Conditions, bound: float
) -> float:
    """What follows for all prompts with rows between low and high, (features + 2,), that keep to the stated conditions;
    `bound` is what is aimed at."""
    target, model = read_descent(program), arithmetic_of(network.dtype)
    given = read_conditions(stated, target)
    sizes = np.maximum(np.abs(low), np.abs(high)).reshape(-1)
    require(sizes.shape == (target.features + 2,), "the box of the certificate does not fit an example")
    _require_finite(network, target, sizes, given.examples, model)
    entries = [*sizes[: target.features], *([1.0] if target.intercept else [])]
    box = Box(tuple(map(float, entries)), float(sizes[-1]), given.examples, given.limit)
    link = read_link(target.link)
    step = read_step(network, target, link, bound, model)
    return bound_for_box(step, target, link, box, _curved(given, target, link), bound, model)


def bound_for_one_prompt(network: Network, program: Program, prompt: np.ndarray, bound: float) -> float:
    """What follows for one prompt, (2 examples, features + 2)."""
    target, model = read_descent(program), arithmetic_of(network.dtype)
    rows, columns = prompt.shape
    n = rows // 2
    require(rows == 2 * n > 0 and columns == target.features + 2, "the prompt does not fit the program")
    plus = np.asarray(prompt, np.float64)[:n]
    require(
        bool((plus == -np.asarray(prompt, np.float64)[n:]).all()), "the second half of a prompt is not its negative"
    )
    require(bool((plus.astype(network.dtype) == plus).all()), f"the prompt is not in {network.dtype}")
    _require_finite(network, target, np.abs(plus).max(axis=0), n, model)
    A, y = plus[:, : target.size], plus[:, -1]
    link = read_link(target.link)
    margin = link.form == "margin"
    signed = (plus[:, -1] == 1) & (np.abs(plus[:, -2]) == 1) if margin else plus[:, -2] == 1
    require(bool(signed.all()), "an example without its sign")
    step = read_step(network, target, link, bound, model)
    return bound_for_prompt(step, target, link, A, np.zeros(n) if margin else y, bound, model)


def read_conditions(stated: Conditions, target: Descent) -> Given:
    found: dict[str, Mapping[str, Any]] = {}
    for one in stated:
        kind = one.get("kind")
        require(isinstance(kind, str) and kind not in found, "the certificate states a condition twice, or none")
        found[str(kind)] = one
    examples = found.pop("at most so many examples", {}).get("most")
    safe = found.pop("safe rate", {})
    if isinstance(examples, bool) or not isinstance(examples, int) or not 1 <= examples <= target.most:
        raise NotVerified(f"the certificate is for {examples} examples; the program takes 1 to {target.most:,}")
    limit = number(safe, "limit")
    require(number(safe, "rate") == target.rate, "the certificate speaks of another rate than the program")
    require(0 < limit <= 2 * (1 + target.momentum), f"a limit of {limit:g} lets errors grow from step to step")
    return Given(examples, limit, found)


def _curved(given: Given, target: Descent, link: Link) -> Curved | None:
    """The conditions of a curved link; none for a straight one."""
    more = dict(given.more)
    steep, keeps = more.pop("safe curvature", None), more.pop("keeps within", None)
    require(not more, "conditions that a learner does not have")
    if steep is None:
        require(keeps is None, "a condition on arguments of a straight link")
        return None
    require(number(steep, "rate") == target.rate, "the certificate speaks of another rate than the program")
    ends = None
    if keeps is not None:
        require(keeps.get("quantity") == ARGUMENTS[link.form], "a condition on something else than the link's argument")
        ends = number(keeps, "low"), number(keeps, "high")
        require(ends[0] < ends[1], "a condition that no prompt keeps")
    return Curved(number(steep, "slope"), number(steep, "decay"), number(steep, "limit"), ends)


ARGUMENTS = {"residual": "s - y", "labelled": "s", "margin": "y s"}
"""By the form of a link, what its argument is called in conditions."""


def number(condition: Mapping[str, Any], name: str) -> float:
    value = condition.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise NotVerified(f"a condition of the certificate has no {name}")
    return float(value)


def _require_finite(network: Network, target: Descent, sizes: np.ndarray, examples: int, model: Arithmetic) -> None:
    tokens = 2 * examples + len(network.embed.registers) + 1
    body = network.layers[0]
    layers = list(getattr(body, "layers", ()))
    require(bool(layers), "a learner repeats its steps")
    box = np.maximum(sizes, np.eye(len(sizes))[[target.features, target.features + 1]].max(axis=0))
    require_finite(network.embed, layers, target.times, box, tokens, model)
