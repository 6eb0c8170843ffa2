"""Learners: networks whose forward pass is gradient descent on the examples of a prompt.

A prompt of n examples (x_i, y_i) is 2n tokens (x_i, 1, y_i) and their negatives, in any order, but in the layout
*sequence* first all examples, then all negatives; for a loss of the margin, y phi(y s) with labels 1 and -1, (y_i x_i,
y_i, 1) and their negatives. A certificate for a box bounds |w_t -
exact w_t| at all steps, for every prompt with entries in the box that keeps to its conditions; one for a prompt, for
that one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.grammar import Network
from anchorhead.verify.learners.box import Box, bound_for_box
from anchorhead.verify.learners.layers import read_step
from anchorhead.verify.learners.link import Link, read_links
from anchorhead.verify.learners.many import bound_for_many, is_many
from anchorhead.verify.learners.prompt import Rows, bound_for_prompt
from anchorhead.verify.learners.step import Step
from anchorhead.verify.learners.target import Descent, read_descent
from anchorhead.verify.learners.tokens import Rows as Shown
from anchorhead.verify.learners.tokens import require_finite
from anchorhead.verify.programs.program import Program, Repeat
from anchorhead.verify.rounding import Arithmetic, arithmetic_of

Conditions = Iterable[Mapping[str, Any]]
STEP = 64.0
"""By how much larger the next aim is, where none is stated."""


def is_learner(program: Program) -> bool:
    """Whether a program is a path of descent: one Repeat of all that it puts out."""
    return any(isinstance(program.steps[place], Repeat) for place in program.outputs)


def bound_for_learner(
    network: Network, program: Program, low: np.ndarray, high: np.ndarray, stated: Conditions, bound: float
) -> float:
    """What follows for all prompts with rows between low and high, (features + 2,), that keep to the stated conditions;
    `bound` is what is aimed at."""
    target, model = read_descent(program), arithmetic_of(network.dtype)
    sizes = np.maximum(np.abs(low), np.abs(high)).reshape(-1)
    require(sizes.shape == (target.features + 2,), "the box of the certificate does not fit an example")
    entries = [*sizes[: target.features], *([1.0] if target.intercept else [])]

    def found(step: Step, link: Link) -> float:
        box = read_conditions(stated, target, link, tuple(map(float, entries)), float(sizes[-1]), network)
        _require_finite(network, sizes, box.examples, model)
        return bound_for_box(step, target, link, box, bound, model)

    return _first(network, target, float(sizes[-1]), bound, model, found)


def bound_for_one_prompt(network: Network, program: Program, prompt: np.ndarray, bound: float | None = None) -> float:
    """What follows for one prompt, (2 examples, features + 2), or as many learners have it.

    bound   what is aimed at; None: the least of a few that can be shown
    """
    require(prompt.ndim == 2 and prompt.dtype.kind == "f", "a prompt is an array (tokens, features) of floats")
    found = bound_for_many if is_many(program) else _bound_for_examples
    if bound is not None:
        return found(network, program, prompt, bound)
    why, aim = NotVerified("nothing follows for this prompt"), 2 * arithmetic_of(network.dtype).unit
    while aim < 1:
        aim *= STEP
        try:
            follows = found(network, program, prompt, aim)
        except NotVerified as error:
            why = error
            continue
        if follows <= aim:
            return follows
    raise why


def _bound_for_examples(network: Network, program: Program, prompt: np.ndarray, bound: float) -> float:
    target, model = read_descent(program), arithmetic_of(network.dtype)
    rows, columns = prompt.shape
    n = rows // 2
    require(rows == 2 * n > 0 and columns == target.features + 2, "the prompt does not fit the program")
    require(network.embed.tokens in (None, rows), f"a prompt of {n} examples: the network takes another number")
    plus = np.asarray(prompt, np.float64)[:n]
    require(bool(np.isfinite(plus).all()), "a prompt with an entry that is not finite")
    require(
        bool((plus == -np.asarray(prompt, np.float64)[n:]).all()), "the second half of a prompt is not its negative"
    )
    require(bool((plus.astype(network.dtype) == plus).all()), f"the prompt is not in {network.dtype}")
    _require_finite(network, np.abs(plus).max(axis=0), n, model)
    A, y, none = plus[:, : target.size], plus[:, -1], np.zeros(n)

    def found(step: Step, link: Link) -> float:
        signed = (y == 1) & (np.abs(plus[:, -2]) == 1) if link.form == "margin" else plus[:, -2] == 1
        require(bool(signed.all()), "an example without its sign")
        a, b = (y if link.form == form else none for form in ("residual", "labelled"))
        given = Rows(A, A, a, b, none if link.form == "margin" else y, np.zeros(n, int), np.zeros(target.size))
        return bound_for_prompt(step, target, [link], given, bound, model)

    return _first(network, target, float(np.abs(y).max()), bound, model, found)


def _first(
    network: Network, target: Descent, labels: float, bound: float, model: Arithmetic,
    found: Callable[[Step, Link], float],
) -> float:  # fmt: skip
    """For the first form of the link that the stored weights stand for; a link may have several."""
    why: list[NotVerified] = []
    for link in read_links(target.link, labels):
        try:
            step = read_step(network, target, [link], _rows(target, link.form), bound, model)
        except NotVerified as error:
            why.append(error)
            continue
        return found(step, link)
    raise why[0]


def read_conditions(
    stated: Conditions, target: Descent, link: Link, entries: tuple[float, ...], y: float, network: Network
) -> Box:
    """Prompts that keep to the stated conditions: at most so many examples, a safe rate, and further ones by the form
    of the link. Each is minded by its meaning; what is not known is refused."""
    found: dict[str, Mapping[str, Any]] = {}
    for one in stated:
        kind = one.get("kind")
        require(isinstance(kind, str) and kind not in found, "the certificate states a condition twice, or none")
        found[str(kind)] = one
    examples = found.pop("at most so many examples", {}).get("most")
    safe, steep, keeps = (found.pop(name, None) for name in ("safe rate", "safe curvature", "keeps within"))
    require(not found, "conditions that a learner does not have")
    if isinstance(examples, bool) or not isinstance(examples, int) or not 1 <= examples <= target.most:
        raise NotVerified(f"the certificate is for {examples} examples; the program takes 1 to {target.most:,}")
    limit = number(safe or {}, "limit")
    require(0 < limit <= 2 * (1 + target.momentum), f"a limit of {limit:g} lets errors grow from step to step")
    for one in (safe or {}, steep or safe or {}):
        require(number(one, "rate") == target.rate, "the certificate speaks of another rate than the program")
    curvature = None if steep is None else (number(steep, "slope"), number(steep, "decay"), number(steep, "limit"))
    ends = None
    if keeps is not None:
        require(keeps.get("quantity") == ARGUMENTS[link.form], "a condition on something else than the link's argument")
        ends = number(keeps, "low"), number(keeps, "high")
        require(ends[0] < ends[1], "a condition that no prompt keeps")
    count = examples if network.embed.tokens is None else network.embed.tokens // 2
    return Box(entries, y, count, limit, curvature, ends)


ARGUMENTS = {"residual": "s - y", "labelled": "s", "margin": "y s", "both": "s"}
"""By the form of a link, what its argument is called in conditions."""


def number(condition: Mapping[str, Any], name: str) -> float:
    value = condition.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise NotVerified(f"a condition of the certificate has no {name}")
    return float(value)


def _require_finite(network: Network, sizes: np.ndarray, examples: int, model: Arithmetic) -> None:
    box = np.append(sizes[:-2], np.maximum(sizes[-2:], 1.0))
    require_finite(network, box, 2 * examples, model)


def _rows(target: Descent, form: str) -> Shown:
    """Examples (a_i, 1, y_i), or (y_i a_i, y_i, 1) for a margin, and their negatives."""
    sign, label, x = target.features + (form == "margin"), target.features + 1, tuple(range(target.size))
    taken = label if form == "labelled" else None
    return Shown(label + 1, x, x, label, ({sign: 1.0}, {sign: -1.0}), form == "residual", (None, taken))
