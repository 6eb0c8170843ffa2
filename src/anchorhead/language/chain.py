"""Programs that are chains: affine maps and functions of one variable, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions.build import variable
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.program import Program
from anchorhead.language.steps import Affine, Apply, Step
from anchorhead.language.targets.mlp import IDENTITY, Hidden, Mlp
from anchorhead.language.targets.mlp import Affine as AffineMap


def mlp_of_chain(program: Program) -> Mlp | None:
    """The feed-forward network that a chain is, affine maps in a row kept apart; None for any other program.

    A chain that has one function of several variables, or none at all, is no network: it is left to others.
    """
    for place, step in enumerate(program.steps[1:], start=1):
        shape, before = program.shapes[place], program.shapes[place - 1]
        mapped = isinstance(step, Affine) and (step.terms == () or step.terms[0].weight.ndim == 4 or before.tokens == 1)
        applied = neurons_of(step, before.width) is not None and place > 1 and before.tokens == shape.tokens == 1
        if step.uses != (place - 1,) or not (mapped or applied):
            return None
    if not isinstance(program.steps[-1], Affine) or program.output != len(program.steps) - 1:
        return None
    return mlp_of_pieces(program, program.steps[1:])


def mlp_of_pieces(program: Program, pieces: Sequence[Step | Mlp]) -> Mlp:
    """The network of steps that follow one another, some of which may be networks themselves: neurons that do nothing
    stand between two affine maps."""
    hidden: list[Hidden] = []
    waiting: AffineMap | None = None
    for piece in pieces:
        if isinstance(piece, Apply):
            width = len(piece.which)
            functions = neurons_of(piece, width)
            if functions is None:
                raise AnchorheadError("a function of several variables is no neuron")
            hidden.append(Hidden(waiting or _identity(width), functions, piece.which))
            waiting = None
            continue
        if waiting is not None:
            hidden.append(Hidden(waiting, (IDENTITY,), np.zeros(waiting.outputs, int)))
        if isinstance(piece, Mlp):
            hidden += piece.hidden
            waiting = piece.readout
        elif isinstance(piece, Affine):
            waiting = flat(piece)
        else:
            raise AnchorheadError(f"a {type(piece).__name__} is no layer of neurons")
    given = program.input
    tokens, names = given.tokens if program.token_axis else None, given.entries if all(given.features) else ()
    return Mlp(tuple(hidden), waiting or _identity(hidden[-1].neurons), tokens, program.title, names)


def _identity(width: int) -> AffineMap:
    return AffineMap(np.eye(width), np.zeros(width))


def neurons_of(step: Step, width: int) -> tuple[Expression, ...] | None:
    """The functions, in x, of a step that applies one of one variable to each of so many entries; else None."""
    if not isinstance(step, Apply) or len(step.of) > 1 or len(step.which) != width:
        return None
    found = tuple(_in_x(one) for one in step.functions if isinstance(one, Expression))
    return found if len(found) == len(step.functions) else None


def flat(step: Affine) -> AffineMap:
    """A map of tokens as one of flat vectors."""
    if len(step.terms) != 1:
        raise AnchorheadError(f"an affine map of {len(step.terms)} quantities is none of one")
    (term,) = step.terms
    weight, radius = term.weight, term.radius
    tokens = weight.shape[0] if weight.ndim == 4 else 1
    bias = np.broadcast_to(step.bias, (tokens, step.bias.shape[1])).reshape(-1)
    bias_radius = (
        None
        if step.bias_radius is None
        else np.broadcast_to(step.bias_radius, (tokens, step.bias.shape[1])).reshape(-1)
    )
    if weight.ndim == 4:
        shape = (weight.shape[0] * weight.shape[1], -1)
        weight, radius = weight.reshape(shape), None if radius is None else radius.reshape(shape)
    elif weight.ndim == 3:
        raise AnchorheadError("an affine map with weights of their own at each position is none of one vector")
    return AffineMap(weight, bias, radius, bias_radius)


def _in_x(function: Expression) -> Expression:
    """The same function of x."""
    names = function.variables
    return function if not names or names == ("x",) else function.substitute({names[0]: variable("x")})
