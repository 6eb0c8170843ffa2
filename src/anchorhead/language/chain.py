"""Programs that are chains: affine maps and functions of one variable, one after the other."""

from __future__ import annotations

import numpy as np

from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions.build import variable
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.program import Program
from anchorhead.language.steps import Affine, Apply
from anchorhead.language.targets.mlp import IDENTITY, Hidden, Mlp
from anchorhead.language.targets.mlp import Affine as AffineMap


def mlp_of_chain(program: Program) -> Mlp | None:
    """The feed-forward network that a chain is, affine maps in a row kept apart; None for any other program.

    A chain that has one function of several variables, or none at all, is no network: it is left to others.
    """
    given = program.input
    tokens = given.tokens if program.token_axis else None
    hidden: list[Hidden] = []
    waiting: AffineMap | None = None
    for place, step in enumerate(program.steps[1:], start=1):
        if step.uses != (place - 1,):
            return None
        if isinstance(step, Affine):
            if step.terms[0].weight.ndim != 4 and program.shapes[place - 1].tokens != 1:
                return None
            if waiting is not None:
                hidden.append(Hidden(waiting, (IDENTITY,), np.zeros(waiting.outputs, int)))
            waiting = flat(step)
        elif isinstance(step, Apply) and all(isinstance(one, Expression) for one in step.functions):
            width = program.shapes[place - 1].width
            if waiting is None or width != len(step.which) or program.shapes[place].tokens != 1:
                return None
            functions = tuple(_in_x(one) for one in step.functions if isinstance(one, Expression))
            hidden.append(Hidden(waiting, functions, step.which))
            waiting = None
        else:
            return None
    if waiting is None or program.output != len(program.steps) - 1:
        return None
    return Mlp(tuple(hidden), waiting, tokens, program.title, given.entries if all(given.features) else ())


def flat(step: Affine) -> AffineMap:
    """A map of tokens as one of flat vectors."""
    if len(step.terms) != 1:
        raise AnchorheadError(f"an affine map of {len(step.terms)} quantities is none of one")
    (term,) = step.terms
    weight, radius = term.weight, term.radius
    if weight.ndim == 4:
        shape = (weight.shape[0] * weight.shape[1], -1)
        weight, radius = weight.reshape(shape), None if radius is None else radius.reshape(shape)
    elif weight.ndim == 3:
        raise AnchorheadError("an affine map with weights of their own at each position is none of one vector")
    bias_radius = None if step.bias_radius is None else step.bias_radius.reshape(-1)
    return AffineMap(weight, step.bias.reshape(-1), radius, bias_radius)


def _in_x(function: Expression) -> Expression:
    """The same function of x."""
    names = function.variables
    return function if not names or names == ("x",) else function.substitute({names[0]: variable("x")})
