"""Learners: networks whose forward pass is gradient descent on the examples of a prompt.

A prompt of n examples (x_i, y_i) is 2n tokens (x_i, 1, y_i) and their negatives, in any order, but in the layout
*sequence* first all examples, then all negatives; for a loss of the margin, y phi(y s) with labels 1 and -1, (y_i x_i,
y_i, 1) and their negatives; many learners have rows that say which loss, rate, penalty and start (`_shown`), and
certificates for one prompt alone. A certificate for a box bounds |w_t - exact w_t| at all steps, for every prompt with
entries in the box that keeps to its conditions; one for a prompt, for that one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.grammar import Network
from anchorhead.verify.learners.body import Body
from anchorhead.verify.learners.box import Box, BoxPath
from anchorhead.verify.learners.finite import require_finite
from anchorhead.verify.learners.link import Link, read_links
from anchorhead.verify.learners.prompt import PromptPath
from anchorhead.verify.learners.reading import Reading
from anchorhead.verify.learners.shown import Shown, rows_of, shown_of
from anchorhead.verify.learners.step import Path, distance
from anchorhead.verify.learners.target import Descent, read_descent
from anchorhead.verify.programs.program import Program, Repeat
from anchorhead.verify.rounding import arithmetic_of

Conditions = Iterable[Mapping[str, Any]]
STEP = 64.0
"""By how much larger the next aim is, where none is stated."""


def is_learner(program: Program) -> bool:
    """Whether a program is a path of descent: one Repeat of all that it puts out."""
    return any(isinstance(program.steps[place], Repeat) for place in program.outputs)


def bound_for_learner(
    network: Network, program: Program, low: np.ndarray, high: np.ndarray, stated: Conditions, bound: float
) -> tuple[float, str]:
    """What follows for all prompts with rows between low and high, (features + 2,), that keep to the stated conditions,
    and what these rows are: a program does not say it, and a link may have several forms. `bound` is what is aimed
    at."""
    target, sizes = read_descent(program), np.maximum(np.abs(low), np.abs(high)).reshape(-1)
    require(sizes.shape == (target.features + 2,) and not target.flags, "the box of the certificate is for no example")
    entries = [*sizes[: target.features], *([1.0] if target.intercept else [])]
    columns = np.append(sizes[:-2], np.maximum(sizes[-2:], 1.0))

    def given(links: tuple[Link, ...]) -> tuple[Path, Shown, int]:
        box = read_conditions(stated, target, links[0], tuple(map(float, entries)), float(sizes[-1]), network)
        return BoxPath(target, links[0], box, bound), shown_of(target, links[0].form, columns), 2 * box.examples

    found, (link,) = _follows(network, target, float(sizes[-1]), given, bound)
    return found, "(y x, y, 1), labels y being 1 and -1," if link.form == "margin" else "(x, 1, y)"


def bound_for_one_prompt(network: Network, program: Program, prompt: np.ndarray, bound: float | None = None) -> float:
    """What follows for one prompt, (2 examples, features + 2), or as many learners have it.

    bound   what is aimed at; None: the least of a few that can be shown
    """
    require(prompt.ndim == 2 and prompt.dtype.kind == "f", "a prompt is an array (tokens, features) of floats")
    require(bool(np.isfinite(prompt).all()), "a prompt with an entry that is not finite")
    require(bool((prompt.astype(network.dtype) == prompt).all()), f"the prompt is not in {network.dtype}")
    require(network.embed.tokens in (None, len(prompt)), "the network takes another number of examples")
    prompt = np.asarray(prompt, np.float64)
    if bound is not None:
        return _bound_for_prompt(network, program, prompt, bound)
    why, aim = NotVerified("nothing follows for this prompt"), 2 * arithmetic_of(network.dtype).unit
    while aim < 1:
        aim *= STEP
        try:
            follows = _bound_for_prompt(network, program, prompt, aim)
        except NotVerified as error:
            why = error
            continue
        if follows <= aim:
            return follows
    raise why


def _bound_for_prompt(network: Network, program: Program, prompt: np.ndarray, bound: float) -> float:
    target, sizes = read_descent(program), np.maximum(np.abs(prompt).max(axis=0, initial=0.0), 1.0)
    columns = 2 * target.size + 4 + 2 * len(target.flags) if target.flags else target.features + 2
    require(len(prompt) % 2 == 0 < len(prompt) and len(sizes) == columns, "the prompt does not fit the program")

    def given(links: tuple[Link, ...]) -> tuple[Path, Shown, int]:
        rows, shown = rows_of(prompt, shown_of(target, links[0].form, sizes))
        signed = links[0].form != "margin" or (np.abs(prompt[:, -2]) == 1).all()
        require(bool(signed), "an example without its sign")
        return PromptPath(target, links, rows, bound), shown, len(prompt)

    return _follows(network, target, float(np.abs(prompt[:, -1]).max()), given, bound)[0]


def _follows(
    network: Network, target: Descent, labels: float, given: Callable[[tuple[Link, ...]], tuple[Path, Shown, int]],
    bound: float,
) -> tuple[float, tuple[Link, ...]]:  # fmt: skip
    """The bound, for the first form of the link that the stored layers stand for; a link may have several. given: the
    exact path, what rows show, and how many there are at most."""
    why: list[NotVerified] = []
    model = arithmetic_of(network.dtype)
    for links in read_links(target.link, labels, target.flags):
        try:
            path, shown, rows = given(links)
            require_finite(network, shown.sizes, rows, model)
            body = Body(network, target, shown, rows, path.weight, model)
            step = Reading(body, target, links, bound, model).step()
        except NotVerified as error:
            why.append(error)
            continue
        path.read(step, model)
        return distance(step, target, path, bound, model), links
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
    count = examples if network.embed.tokens is None else network.embed.tokens // 2
    require(count <= examples, f"the certificate is for {examples} examples; the network takes {count}")
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
    return Box(entries, y, count, limit, curvature, ends)


ARGUMENTS = {"residual": "s - y", "labelled": "s", "margin": "y s", "both": "s"}
"""By the form of a link, what its argument is called in conditions."""


def number(condition: Mapping[str, Any], name: str) -> float:
    value = condition.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise NotVerified(f"a condition of the certificate has no {name}")
    return float(value)
