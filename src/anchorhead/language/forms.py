"""Programs of a form that a construction knows: what the form is of, read off the steps; all else is refused."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.language.chain import mlp_of_chain
from anchorhead.language.entries import Entries, require_same
from anchorhead.language.expressions.expression import Expression, postorder
from anchorhead.language.of_targets import program_of
from anchorhead.language.program import Program
from anchorhead.language.several import SeveralVariables
from anchorhead.language.steps import Affine, Apply, Attend
from anchorhead.language.symbolic import expressions_of
from anchorhead.language.targets.kernel_smoother import KernelSmoother
from anchorhead.language.targets.mlp import Mlp
from anchorhead.language.targets.ramp import TruncatedLinear
from anchorhead.language.targets.scalar import ScalarTarget


def box_of(program: Program) -> Box:
    """Of the input, which has one: two numbers where all entries have the same ends; of any number of tokens, one's."""
    given = program.input
    if given.low is None or given.high is None:
        raise AnchorheadError("the program has no box of inputs: make it with on=")
    ends = (np.array(given.low), np.array(given.high))
    if all((end == end.flat[0]).all() for end in ends):
        return Box.of(tuple(float(end.flat[0]) for end in ends))
    return Box.of(ends if program.token_axis and given.tokens else tuple(end[0] for end in ends))


def functions_of(program: Program) -> SeveralVariables | None:
    """The functions of the entries of the input that a program was written as, if it was."""
    with suppress(AnchorheadError):
        found = Entries.of(program)
        return SeveralVariables(found.expressions, found.variables, found.low, found.high, found.tokens)
    return None


def functions_written_out(program: Program) -> SeveralVariables:
    """Any program of a fixed number of tokens as functions of the entries of its input, if they are small enough."""
    expressions, names = expressions_of(program)
    box, shape = box_of(program), (program.input.tokens or 1, len(program.features))
    low, high = (tuple(np.broadcast_to(end, shape).ravel()) for end in (box.low, box.high))
    return SeveralVariables(expressions, names, low, high, shape[0] if program.token_axis else None)


def scalar_of(program: Program) -> ScalarTarget:
    """The functions of one variable that a program is."""
    found = Entries.of(program)
    if len(found.variables) != 1:
        raise AnchorheadError("the program is not one of a single variable")
    return ScalarTarget(found.expressions, found.low[0], found.high[0])


def mlp_of(program: Program) -> Mlp:
    """The feed-forward network that a program is."""
    target = mlp_of_chain(program)
    if target is None:
        raise AnchorheadError("the program is not a feed-forward network")
    return target


def ramp_of(program: Program) -> TruncatedLinear:
    """The truncated linear functions that a program is: an affine map s, then where(s <= switch, cut or 0, …)."""
    affine, apply = program.steps[1:] if len(program.steps) == 3 else (None, None)
    if not isinstance(affine, Affine) or not isinstance(apply, Apply) or affine.terms[0].weight.ndim != 3:
        raise AnchorheadError("the program is not one of truncated linear functions")
    functions = [function for function in apply.functions if isinstance(function, Expression)]
    cuts = [node for one in functions for node in postorder(one) if node.op == "clip"]
    if not cuts or len(functions) < len(apply.functions):
        raise AnchorheadError("the program is not one of truncated linear functions")
    low, high = (float(arg.data or 0.0) for arg in cuts[0].args[1:3])
    chains = [_chain(functions[k], cuts[0]) for k in apply.which]
    features = np.array([own for _, own in chains]).argmax(axis=0)
    weight, bias = affine.terms[0].weight, affine.bias
    target = TruncatedLinear(weight[:, 0].copy(), bias[:, 0].copy(), low, high, np.array(chains[0][0]), features)
    require_same(program, program_of(target), "one of truncated linear functions")
    return target


def _chain(function: Expression, cut: Expression) -> tuple[list[float], list[bool]]:
    """The switches of where(s <= switch, this, else the rest), and on which pieces the function is the cut."""
    switches, own = [], []
    while function.op == "where":
        _, at, then, function = function.args
        switches.append(float(at.data or 0.0))
        own.append(then is cut)
    return switches, [*own, function is cut]


def smoother_of(program: Program) -> KernelSmoother:
    """The kernel smoother that a program is; amplitudes that are all 1 are none."""
    named = {name: step for name, step in zip(program.names, program.steps, strict=True) if isinstance(step, Affine)}
    if not isinstance(program.steps[program.output], Attend) or not {"c", "b", "a", "responses"} <= named.keys():
        raise AnchorheadError("the program is not a kernel smoother, the one softmax mean that can be compiled")
    centres, width, amplitudes, responses = (named[name].bias for name in ("c", "b", "a", "responses"))
    plain = None if (amplitudes == 1).all() else amplitudes[:, 0]
    target = KernelSmoother(centres, responses, width[0], plain)
    require_same(program, program_of(target), "a kernel smoother")
    return target
