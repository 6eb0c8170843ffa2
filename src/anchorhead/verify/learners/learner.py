"""Learners: networks whose forward pass is gradient descent on the examples of a prompt.

A prompt of n examples (x_i, y_i) is 2n tokens (x_i, 1, y_i) and their negatives, in any order, but in the layout
*sequence* first all examples, then all negatives; for a loss of the margin, y phi(y s) with labels 1 and -1, (y_i x_i,
y_i, 1) and their negatives; many learners have rows that say which loss, rate, penalty and start (`_shown`), and
certificates for one prompt alone. A certificate for a box bounds |w_t - exact w_t| at all steps, for every prompt with
entries in the box that keeps to its conditions; one for a prompt, for that one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.grammar import Network
from anchorhead.verify.grammar import Repeat as Layers
from anchorhead.verify.learners.box import Box, BoxPath
from anchorhead.verify.learners.direct import read_direct
from anchorhead.verify.learners.finite import require_finite
from anchorhead.verify.learners.link import Link, read_links
from anchorhead.verify.learners.many import read_many
from anchorhead.verify.learners.prompt import PromptPath, Rows
from anchorhead.verify.learners.sequence import read_sequence
from anchorhead.verify.learners.step import Step, distance
from anchorhead.verify.learners.target import Descent, read_descent
from anchorhead.verify.learners.transformer import read_transformer
from anchorhead.verify.learners.written import Given
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
) -> tuple[float, str]:
    """What follows for all prompts with rows between low and high, (features + 2,), that keep to the stated conditions,
    and what these rows are: a program does not say it, and a link may have several forms. `bound` is what is aimed
    at."""
    target, model = read_descent(program), arithmetic_of(network.dtype)
    sizes = np.maximum(np.abs(low), np.abs(high)).reshape(-1)
    require(sizes.shape == (target.features + 2,) and not target.flags, "the box of the certificate is for no example")
    entries = [*sizes[: target.features], *([1.0] if target.intercept else [])]
    (link,), step = _first(network, target, float(sizes[-1]), 0.0, bound, model)
    box = read_conditions(stated, target, link, tuple(map(float, entries)), float(sizes[-1]), network)
    require_finite(network, np.append(sizes[:-2], np.maximum(sizes[-2:], 1.0)), 2 * box.examples, model)
    shown = "(y x, y, 1), labels y being 1 and -1," if link.form == "margin" else "(x, 1, y)"
    return distance(step, target, BoxPath(step, target, link, box, bound, model), bound, model), shown


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
    target, model = read_descent(program), arithmetic_of(network.dtype)
    up, down = np.array_split(prompt, 2)
    columns = 2 * target.size + 4 + 2 * len(target.flags) if target.flags else target.features + 2
    fits = up.shape == down.shape == (len(up), columns) and len(up) > bool(target.flags)
    require(fits, "the prompt does not fit the program")
    require_finite(network, np.maximum(np.abs(prompt).max(axis=0), 1.0), len(prompt), model)
    labels, off = (float(np.abs(up[:, column]).max()) for column in (-1, 2 * target.size if target.flags else -1))
    links, step = _first(network, target, labels, off, bound, model)
    rows = _rows_of_many(up, down, target) if target.flags else _rows_of_one(up, down, target.size, links[0].form)
    return distance(step, target, PromptPath(step, target, links, rows, bound, model), bound, model)


def _first(
    network: Network, target: Descent, labels: float, off: float, bound: float, model: Arithmetic
) -> tuple[tuple[Link, ...], Step]:
    """For the first form of the link that the stored weights stand for; a link may have several. off: how much is
    taken off scores at most."""
    why: list[NotVerified] = []
    for links in read_links(target.link, labels, target.flags):
        try:
            return links, _read_step(Given(network, target, links, bound, model), off)
        except NotVerified as error:
            why.append(error)
    raise why[0]


def _read_step(given: Given, off: float) -> Step:
    """The step of a network, by its layout."""
    if given.target.flags:
        return read_many(given, off)
    if given.network.output == "register":
        return read_sequence(given)
    repeat = given.network.layers[-2] if len(given.network.layers) > 1 else None
    alone = isinstance(repeat, Layers) and len(repeat.layers) == 1 + given.target.shrinks
    return read_direct(given) if alone else read_transformer(given)


def _rows_of_one(up: np.ndarray, down: np.ndarray, size: int, form: str) -> Rows:
    """The rows of a learner whose link has this form, and their negatives."""
    require(bool((up == -down).all()), "the second half of a prompt is not its negative")
    A, y, none = up[:, :size], up[:, -1], np.zeros(len(up))
    signed = (y == 1) & (np.abs(up[:, -2]) == 1) if form == "margin" else up[:, -2] == 1
    require(bool(signed.all()), "an example without its sign")
    a, b = (y if form == one else none for one in ("residual", "labelled"))
    return Rows(A, A, a, b, none if form == "margin" else y, np.zeros(len(up), int), np.zeros(size))


def _rows_of_many(up: np.ndarray, down: np.ndarray, target: Descent) -> Rows:
    """The rows, and their negatives, as many learners have them."""
    size, count = target.size, 2 * len(target.flags)
    first = 2 * size + 2
    flags, start, other = up[:, first:-2], up[:, -2], up[:, -1]
    which, example = flags.argmax(axis=1), other == 0
    own = np.eye(count)[which] * example[:, None]
    good = (up[:, :first] == -down[:, :first]).all() and (start == -down[:, -2]).all() and (other == down[:, -1]).all()
    good = good and (flags == own).all() and (which % 2 == 0).all() and (start == other).all() and start.sum() == 1
    good = good and (down[:, first:-2] == np.roll(own, 1, axis=1)).all() and set(other) <= {0.0, 1.0}
    require(bool(good), "the prompt is none of many learners")
    x, v, (a, b) = up[example, :size], up[example, size : 2 * size], up[example, 2 * size : first].T
    begin = up[~example][0]
    require(not begin[:size].any() and not begin[2 * size : first].any(), "the row of the start is more than a start")
    return Rows(x, v, a, b, b, which[example] // 2, begin[size : 2 * size])


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
