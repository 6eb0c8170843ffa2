"""Composition: one program after another, as one program."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from anchorhead.errors import AnchorheadError
from anchorhead.language.program import Program
from anchorhead.language.ranges import ranges
from anchorhead.language.steps import Affine, Apply, Attend, Dot, Input, Normalise, Repeat, Step

SLACK = 1e-6
"""Enclosures are so much wider than ranges, relatively. Nothing rests on it: what is composed is proven anew."""


def composed(after: Program, before: Program) -> Program:
    """after(before(x)): refused unless shapes fit and all that `before` puts out lies in the box of `after`."""
    inside = after.input
    out, wanted = before.output_shape, after.shapes[after.inputs[0]]
    if out != wanted and not (wanted.tokens is None and out.width == wanted.width):
        raise AnchorheadError(f"a program that takes {wanted} after one that puts out {out}: shapes must be the same")
    if after.token_axis != before.token_axis and out.tokens != 1:
        raise AnchorheadError("one of the programs has an axis of tokens and the other has none")
    if inside.low is not None and inside.high is not None:
        _require_inside(before, inside)
    entry = after.inputs[0]
    places: dict[int, int] = {entry: before.output}
    steps: list[Step] = list(before.steps)
    names = list(before.names)
    for place, step in enumerate(after.steps):
        if place != entry:
            places[place] = len(steps)
            steps.append(moved(step, places))
            names.append(after.names[place])
    conditions = (*before.conditions, *after.conditions)
    outputs = tuple(places[place] for place in after.outputs)
    title = f"{after.title} after {before.title}" if after.title and before.title else ""
    return Program(tuple(steps), outputs, tuple(names), conditions, before.token_axis, title)


def moved(step: Step, places: dict[int, int]) -> Step:
    """The same step, of quantities that have other places."""
    match step:
        case Input():
            return step
        case Affine():
            return replace(step, terms=tuple(replace(term, step=places[term.step]) for term in step.terms))
        case Apply():
            return replace(step, of=tuple(places[place] for place in step.of))
        case Dot():
            return Dot(places[step.a], places[step.b])
        case Attend():
            queries, keys = (None if place is None else places[place] for place in (step.queries, step.keys))
            return Attend(places[step.values], queries, keys, step.mask)
        case Normalise():
            return replace(step, of=places[step.of])
        case Repeat():
            carried, given = (tuple(places[place] for place in some) for some in (step.carried, step.given))
            return replace(step, carried=carried, given=given)


def _require_inside(before: Program, inside: Input) -> None:
    found = ranges(before)[before.output]
    low, high = np.asarray(inside.low), np.asarray(inside.high)
    slack = SLACK * np.maximum(np.abs(found.low), np.abs(found.high))
    beyond = (found.low < low - slack) | (found.high > high + slack)
    if beyond.any():
        token, feature = map(int, np.argwhere(np.broadcast_to(beyond, found.low.shape))[0])
        ends = [np.broadcast_to(end, found.low.shape)[token, feature] for end in (low, high)]
        raise AnchorheadError(
            f"{inside.features[feature]} of the second program is in [{ends[0]:g}, {ends[1]:g}], and all that is known "
            f"of what the first puts out there is [{found.low[token, feature]:.6g}, {found.high[token, feature]:.6g}]: "
            "give the second a wider on=, or the first a smaller one"
        )
