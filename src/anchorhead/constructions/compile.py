"""`ah.compile`: a program in, an attention-only network with its proof out; the one way from programs to networks.

What a program is decides how it is built, and how `ah.plan` plans it (KINDS): a body that is run over and over is a
learner; functions that are known by their values are heads, grids or fitted; a softmax mean of constants is a kernel
smoother; truncated linear functions of a number of anchors are the paper's theorems; functions of the entries of an
input are heads, neurons and grids; a chain of affine maps and functions of one variable is a network of neurons. Any
other program of a fixed number of tokens is written out as expressions, if they are small enough; else it is stacked,
if it is cut somewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from anchorhead.constructions.build_request import BuildRequest, Form, Layout, Placement
from anchorhead.constructions.fitting.callables import build_callable
from anchorhead.constructions.kernel_smoother import kernel_smoother
from anchorhead.constructions.learners.descent import build_descent
from anchorhead.constructions.learners.many import build_many
from anchorhead.constructions.passes.functions import OF_HEADS, OF_NEURONS, approximate_expressions
from anchorhead.constructions.passes.run import proven_mlp
from anchorhead.constructions.passes.stacked import Stack, build_stack, stack_of
from anchorhead.constructions.planning.plan import Plan
from anchorhead.constructions.planning.plan_callables import plan_callable
from anchorhead.constructions.planning.plan_expressions import plan_expressions
from anchorhead.constructions.planning.plan_networks import plan_network, plan_stack
from anchorhead.constructions.planning.plan_written import plan_descent, plan_many, plan_smoother, plan_truncated
from anchorhead.constructions.single.certified_head import Head
from anchorhead.constructions.theorems.truncated_linear import truncated
from anchorhead.decimals import beyond_float64
from anchorhead.errors import AnchorheadError
from anchorhead.language.chain import mlp_of_chain
from anchorhead.language.entries import Entries
from anchorhead.language.forms import box_of, functions_of, functions_written_out, ramp_of, smoother_of
from anchorhead.language.of_learners import descent_of, many_of
from anchorhead.language.program import Program
from anchorhead.language.several import SeveralVariables
from anchorhead.language.steps import Apply, Attend, Opaque, Repeat
from anchorhead.language.targets.descent import Descent, LearnerLayout
from anchorhead.language.targets.kernel_smoother import KernelSmoother
from anchorhead.language.targets.many_learners import ManyLearners
from anchorhead.language.targets.mlp import Mlp
from anchorhead.language.targets.ramp import TruncatedLinear
from anchorhead.language.targets.scalar import interval
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
    kind, target = _read(program, request)
    return kind.build(target, program, request)


def planned(program: Program, withins: Sequence[float] | None, request: BuildRequest) -> Plan:
    """How large the network of a program becomes within each of these errors; none: as `ah.compile` has it without."""
    kind, target = _read(program, replace(request, within=None if withins is None else max(withins)))
    return kind.plan(target, program, withins, request)


def _read(program: Program, request: BuildRequest) -> tuple[Kind, Any]:
    """The first kind that a program is of, and what it is then."""
    for kind in KINDS:
        target = kind.read(program, request)
        if target is not None:
            request.require_only(kind.words, kind.what)
            return kind, target
    raise TypeError("the last kind takes any program")


@dataclass(frozen=True)
class Kind:
    """A kind of program.

    read    what a program of this kind is of; None for others
    build   makes a network of that
    plan    says how large the network becomes within some errors, and makes none
    words   of the request that say something of it
    what    why it has no use for others
    """

    read: Callable[[Program, BuildRequest], Any]
    build: Callable[[Any, Program, BuildRequest], Network | Head]
    plan: Callable[[Any, Program, Sequence[float] | None, BuildRequest], Plan]
    words: tuple[str, ...]
    what: str


def _learner(program: Program, request: BuildRequest) -> Descent | None:
    path = program.steps[program.output]
    one = isinstance(path, Repeat) and len(path.carried) > 1
    return descent_of(program, request.layout, request.scores) if one else None


def _many_learners(program: Program, request: BuildRequest) -> ManyLearners | None:
    if not isinstance(program.steps[program.output], Repeat):
        return None
    low, high = (-REACH, REACH) if request.scores is None else interval(request.scores)
    return many_of(program, max(-low, high))


def _callable(program: Program, _: BuildRequest) -> Entries | None:
    functions = [one for step in program.steps if isinstance(step, Apply) for one in step.functions]
    return Entries.of(program) if any(isinstance(one, Opaque) for one in functions) else None


def _smoother(program: Program, _: BuildRequest) -> KernelSmoother | None:
    attends = isinstance(program.steps[program.output], Attend) and not program.token_axis
    return smoother_of(program) if attends else None


def _truncated(program: Program, request: BuildRequest) -> TruncatedLinear | None:
    """Without an error that is asked for they are the theorems'; within one, neurons like others."""
    with suppress(AnchorheadError):
        return ramp_of(program) if request.within is None else None
    return None


def _functions(program: Program, _: BuildRequest) -> SeveralVariables | None:
    return functions_of(program)


def _chain(program: Program, _: BuildRequest) -> Mlp | None:
    return mlp_of_chain(program)


def _network(target: Mlp, program: Program, request: BuildRequest) -> Network:
    return proven_mlp(target, box_of(program), request).network


def _small(program: Program, _: BuildRequest) -> SeveralVariables | None:
    with suppress(AnchorheadError):
        return functions_written_out(program)
    return None


def _stack(program: Program, _: BuildRequest) -> Stack | None:
    return stack_of(program)


def _any(program: Program, _: BuildRequest) -> SeveralVariables:
    return functions_written_out(program)  # which says what stands against it


LEARNER = "a learner is built as its layout says"
MANY = "many learners have one layout, and certificates for prompts"
VALUES = "values are all that is known of a callable"
SMOOTHER = "a kernel smoother is one softmax head, exactly"
THEOREMS = "the paper's theorems say how heads are built"
FUNCTIONS = "functions are heads, neurons and grids"
CHAIN = "a network of neurons is built of heads for each of them"
STACK = "programs one after the other are built as one network of neurons"
OF_FUNCTIONS = (*OF_NEURONS, *OF_HEADS)

KINDS = (
    Kind(_learner, build_descent, plan_descent, ("within", "layout", "scores"), LEARNER),
    Kind(_many_learners, build_many, plan_many, ("scores",), MANY),
    Kind(_callable, build_callable, plan_callable, (*OF_FUNCTIONS, "function"), VALUES),
    Kind(_smoother, kernel_smoother, plan_smoother, ("within",), SMOOTHER),
    Kind(_truncated, truncated, plan_truncated, ("anchors", "heads", "sharpness"), THEOREMS),
    Kind(_functions, approximate_expressions, plan_expressions, OF_FUNCTIONS, FUNCTIONS),
    Kind(_chain, _network, plan_network, OF_NEURONS, CHAIN),
    Kind(_small, approximate_expressions, plan_expressions, OF_FUNCTIONS, FUNCTIONS),
    Kind(_stack, build_stack, plan_stack, OF_NEURONS, STACK),
    Kind(_any, approximate_expressions, plan_expressions, OF_FUNCTIONS, FUNCTIONS),
)
"""All kinds of programs that are built, in the order in which they are asked; the last takes what others do not."""
