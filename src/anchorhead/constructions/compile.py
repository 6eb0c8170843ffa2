"""`ah.compile`: a program in, an attention-only network with its proof out; the one way from programs to networks.

What a program is decides how it is built (KINDS): a body that is run over and over is a learner; functions that are
known by their values are heads, grids or fitted; a softmax mean of constants is a kernel smoother; truncated linear
functions of a number of anchors are the paper's theorems; functions of the entries of an input are heads, neurons and
grids; a chain of affine maps and functions of one variable is a network of neurons. Any other program of a fixed number
of tokens is written out as expressions, if they are small enough.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorhead.constructions.build_request import BuildRequest, Form, Layout, Placement
from anchorhead.constructions.fitting.callables import build_callable
from anchorhead.constructions.functions import OF_HEADS, OF_NEURONS, approximate_expressions
from anchorhead.constructions.kernel_smoother import kernel_smoother
from anchorhead.constructions.learners.descent import build_descent
from anchorhead.constructions.learners.many import build_many
from anchorhead.constructions.mlp import proven_mlp
from anchorhead.constructions.single.certified_head import Head
from anchorhead.constructions.theorems.truncated_linear import truncated
from anchorhead.decimals import beyond_float64
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.language.chain import mlp_of_chain
from anchorhead.language.entries import Entries
from anchorhead.language.forms import ramp_of, smoother_of
from anchorhead.language.of_learners import descent_of, is_learner, many_of
from anchorhead.language.program import Program
from anchorhead.language.steps import Apply, Attend, Opaque, Repeat
from anchorhead.language.symbolic import expressions_of
from anchorhead.language.targets.descent import LearnerLayout
from anchorhead.language.targets.scalar import interval
from anchorhead.language.targets.several import SeveralVariables
from anchorhead.network import Network, Outside
from anchorhead.progress import Progress, progress_line

REACH = 16.0
"""Of the scores of many learners, where no range is given."""


def compile(
    program: Program,
    within: float | None = None,
    *,
    form: Form | None = None,
    layout: Layout | LearnerLayout | None = None,
    placement: Placement = "solved",
    dtype: Any = "float64",
    causal: bool = False,
    prove: bool = True,
    outside: Outside = "warn",
    progress: Progress | bool | None = True,
    anchors: int | None = None,
    heads: int | None = None,
    sharpness: float | None = None,
    max_value: float | None = None,
    max_slope: float | None = None,
    scores: Any = None,
    function: Callable[..., Any] | None = None,
    seed: int = 0,
) -> Network:
    """An attention-only network that is proven within an error of a program, on the box of its input.

    program    what `ah.program` makes, or a composition g @ f of such
    within     the error asked for, in the sup norm over the box, rounding included
    form, layout, placement, dtype, causal, prove, outside   as in ah.approximate and ah.convert
    progress   a line for those who wait, none (False), or a function of a Status: see anchorhead.progress
    anchors, max_value, max_slope   of a function of one variable, as in ah.head
    anchors, heads, sharpness       of truncated linear functions, as in ah.truncated_linear
    layout, scores   of a learner, as in incontext.gradient_descent
    function, seed   of a program that knows a function by its values: that function, and the seed of what is fitted

    returns   a Network with its certificate; NotReached, which holds the best network, where `within` is out of reach

        >>> inner = ah.program("x*y", on={"x": (-1, 1), "y": (-1, 1)})
        >>> outer = ah.program("exp(s)", on={"s": (-1, 1)})
        >>> net = ah.compile(outer @ inner, within=1e-6)
        >>> net.certificate.kind
        'proven'
    """
    if not isinstance(program, Program):
        raise AnchorheadError(f"a {type(program).__name__} is no program: ah.program makes one of it, if it can")
    with progress_line(progress, "compiling") as tell, beyond_float64():
        request = BuildRequest(
            within, dtype, form, layout, placement, causal, prove, outside, tell, anchors, heads, sharpness,
            max_value, max_slope, scores, function, seed,
        )  # fmt: skip
        return compiled(program, request)


def compiled(program: Program, request: BuildRequest) -> Network:
    """The network that is built of a program; what front ends call."""
    made = built(program, request)
    return made.network if isinstance(made, Head) else made


def built(program: Program, request: BuildRequest) -> Network | Head:
    """The same, a function of one variable as the head that it becomes."""
    kind = next(one for one in KINDS if one.fits(program, request))
    request.require_only(kind.words, kind.what)
    return kind.build(program, request)


@dataclass(frozen=True)
class Kind:
    """A kind of program.

    fits    whether a program is one, as it is asked for
    words   of the request that say something of it
    what    why it has no use for others
    """

    fits: Callable[[Program, BuildRequest], bool]
    build: Callable[[Program, BuildRequest], Network | Head]
    words: tuple[str, ...]
    what: str


def _learner(program: Program, request: BuildRequest) -> Network:
    target = descent_of(program, request.layout, request.scores)
    return build_descent(target, _box(program), request)


def _many_learners(program: Program, request: BuildRequest) -> Network:
    low, high = (-REACH, REACH) if request.scores is None else interval(request.scores)
    return build_many(many_of(program, max(-low, high)), request)


def _callable(program: Program, request: BuildRequest) -> Network | Head:
    return build_callable(Entries.of(program), program, request)


def _smoother(program: Program, request: BuildRequest) -> Network:
    return kernel_smoother(smoother_of(program), _box(program), request)


def _truncated(program: Program, request: BuildRequest) -> Network:
    return truncated(ramp_of(program), _box(program), request)


def _network(program: Program, request: BuildRequest) -> Network:
    target = mlp_of_chain(program)
    if target is None:
        raise AnchorheadError("the program is not a feed-forward network")
    return proven_mlp(target, _box(program), request).network


def _functions(program: Program, request: BuildRequest) -> Network | Head:
    found, box = _entries(program), _box(program)
    expressions, names = (found.expressions, found.variables) if found else expressions_of(program)
    shape = program.input.tokens or 1, len(program.features)
    low, high = (tuple(np.broadcast_to(end, shape).ravel()) for end in (box.low, box.high))
    tokens = program.input.tokens if program.token_axis else None
    return approximate_expressions(SeveralVariables(expressions, names, low, high, tokens), program, request)


def _is_many(program: Program) -> bool:
    path = program.steps[program.output]
    return isinstance(path, Repeat) and len(path.carried) == 1


def _has_callables(program: Program) -> bool:
    return any(isinstance(one, Opaque) for step in program.steps if isinstance(step, Apply) for one in step.functions)


def _is_truncated(program: Program, request: BuildRequest) -> bool:
    """Without an error that is asked for they are the theorems'; within one, neurons like others."""
    with suppress(AnchorheadError):
        return request.within is None and ramp_of(program) is not None
    return False


def _entries(program: Program) -> Entries | None:
    """The functions of the entries of the input that a program was written as."""
    with suppress(AnchorheadError):
        return Entries.of(program)
    return None


KINDS = (
    Kind(
        lambda program, _: is_learner(program) and not _is_many(program),
        _learner,
        ("within", "layout", "scores"),
        "a learner is built as its layout says",
    ),
    Kind(
        lambda program, _: is_learner(program),
        _many_learners,
        ("scores",),
        "many learners of one network have one layout, and certificates for prompts",
    ),
    Kind(
        lambda program, _: _has_callables(program),
        _callable,
        (*OF_NEURONS, *OF_HEADS, "function"),
        "a function that is known by its values is a head, a grid, or fitted",
    ),
    Kind(
        lambda program, _: isinstance(program.steps[program.output], Attend) and not program.token_axis,
        _smoother,
        ("within",),
        "a kernel smoother is one softmax head, exactly",
    ),
    Kind(_is_truncated, _truncated, ("anchors", "heads", "sharpness"), "the paper's theorems say how heads are built"),
    Kind(
        lambda program, _: _entries(program) is None and mlp_of_chain(program) is not None,
        _network,
        OF_NEURONS,
        "a network of neurons is built of heads for each of them",
    ),
    Kind(
        lambda program, _: True,
        _functions,
        (*OF_NEURONS, *OF_HEADS),
        "functions of the entries of an input are heads, neurons and grids",
    ),
)
"""All kinds of programs that are built, in the order in which they are asked; the last takes what others do not."""


def _box(program: Program) -> Box:
    """Of the input: two numbers where all entries have the same ends, and one token's where all tokens have."""
    given = program.input
    if given.low is None or given.high is None:
        raise AnchorheadError("the program has no box of inputs: make it with on=")
    ends = (np.array(given.low), np.array(given.high))
    if is_learner(program):
        return Box.of(tuple(end[0] for end in ends))
    if all((end == end.flat[0]).all() for end in ends):
        return Box.of(tuple(float(end.flat[0]) for end in ends))
    return Box.of(ends if program.token_axis else tuple(end[0] for end in ends))
