"""Programs one after the other, as one network of neurons: what compositions of formulas and networks are.

A program is cut wherever all that comes later reads one quantity. Between two cuts stands an affine map, a function of
one variable for each entry, or a formula of the entries of the quantity before it, which is written as neurons in every
form that is known (`simplify`), on the ranges of its arguments. All of these, stacked, are one network, for which
errors are shared out and proven as for any other; nothing is written out as expressions of the inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.passes.functions import first_that_reaches, forms_in_order
from anchorhead.constructions.passes.run import proven_mlp
from anchorhead.errors import AnchorheadError
from anchorhead.language.chain import mlp_of_pieces, neurons_of
from anchorhead.language.compose import moved
from anchorhead.language.forms import box_of, functions_written_out
from anchorhead.language.program import Program
from anchorhead.language.ranges import Range, ranges
from anchorhead.language.several import SeveralVariables
from anchorhead.language.steps import Affine, Input, Step
from anchorhead.language.targets.mlp import Mlp
from anchorhead.network import Network


class Stack(NamedTuple):
    """Steps of a program that follow one another, and what is written out of it: formulas in place of several steps."""

    program: Program
    pieces: tuple[Step | SeveralVariables, ...]


def stack_of(program: Program) -> Stack | None:
    """The pieces of a program that is cut somewhere; None for others."""
    shapes = program.shapes
    if any(shape.tokens is None for shape in shapes):
        return None
    cuts = [p for p in range(program.output) if all(of >= p for s in program.steps[p + 1 :] for of in s.uses)]
    if program.inputs != (0,) or len(cuts) < 2 or program.output != len(program.steps) - 1:
        return None
    found, pieces = ranges(program), list[Step | SeveralVariables]()
    for start, end in pairwise([*cuts, program.output]):
        step = program.steps[end]
        plain = end == start + 1 and (isinstance(step, Affine) or neurons_of(step, shapes[start].width) is not None)
        if plain and (shapes[start].tokens == shapes[end].tokens == 1 or _across(step)):
            pieces.append(step)
        else:
            pieces.append(functions_written_out(_between(program, start, end, found[start])))
    return Stack(program, tuple(pieces))


def build_stack(stack: Stack, program: Program, request: BuildRequest) -> Network:
    """The network of the first of all forms that reaches the error."""

    def proven(mlp: Mlp) -> Network:
        return proven_mlp(mlp, box_of(program), request).network.written_as(program)

    return first_that_reaches(stack_forms(stack, request), proven)


def _across(step: Step) -> bool:
    return isinstance(step, Affine) and len(step.terms) == 1 and step.terms[0].weight.ndim == 4


def _between(program: Program, start: int, end: int, known: Range) -> Program:
    """What leads from one quantity to another, as a program of its own."""
    shape = program.shapes[start]
    if not known.known:
        raise AnchorheadError(f"{program.name(start)} of the program has no range that is known: give it a smaller on=")
    names = tuple(f"x{j}" for j in range(shape.width))
    low, high = (np.broadcast_to(end, (shape.tokens or 1, shape.width)) for end in (known.low, known.high))
    places = {place: place - start for place in range(start, end + 1)}
    steps = (moved(step, places) for step in program.steps[start + 1 : end + 1])
    given = Input(names, low, high, tokens=shape.tokens)
    return Program((given, *steps), (end - start,), token_axis=shape.tokens != 1 or program.shapes[end].tokens != 1)


def stack_forms(stack: Stack, request: BuildRequest) -> Iterator[Mlp]:
    """The stack as one network, with each formula in its first form, in its second, and so on."""
    known = [
        forms_in_order(piece, request.error, request.dtype) if isinstance(piece, SeveralVariables) else [piece]
        for piece in stack.pieces
    ]
    for number in range(max(map(len, known))):
        yield mlp_of_pieces(stack.program, [forms[min(number, len(forms) - 1)] for forms in known])
