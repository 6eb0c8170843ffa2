"""`ah.compile`: a program in, an attention-only network with its proof out.

What a program is decides how it is built: functions of the entries of an input are heads, neurons and grids; a chain of
affine maps and functions of one variable is a network of neurons; a softmax mean of constants is a kernel smoother. Any
other program of a fixed number of tokens is written out as expressions, if they are small enough.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from anchorhead.constructions.build_options import Form, Layout, options_of
from anchorhead.constructions.functions import approximate_expressions, check_words
from anchorhead.constructions.kernel_smoother import kernel_smoother
from anchorhead.constructions.mlp import proven_mlp
from anchorhead.constructions.single.head import Placement
from anchorhead.decimals import beyond_float64
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.given import checked_within
from anchorhead.heads.atom import Dtype
from anchorhead.language.chain import mlp_of_chain
from anchorhead.language.entries import Entries
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.forms import smoother_of
from anchorhead.language.program import Program
from anchorhead.language.steps import Apply, Attend, Opaque, Repeat
from anchorhead.language.symbolic import expressions_of
from anchorhead.language.targets.several import SeveralVariables
from anchorhead.network import Network, Outside
from anchorhead.network.dtypes import dtype_name
from anchorhead.progress import Progress, progress_line


def compile(
    program: Program,
    within: float | None = None,
    *,
    form: Form | None = None,
    layout: Layout | None = None,
    placement: Placement = "solved",
    dtype: Any = "float64",
    causal: bool = False,
    prove: bool = True,
    outside: Outside = "warn",
    progress: Progress | bool | None = True,
) -> Network:
    """An attention-only network that is proven within an error of a program, on the box of its input.

    program    what `ah.program` makes, or a composition g @ f of such
    within     the error asked for, in the sup norm over the box, rounding included
    form, layout, placement, dtype, causal, prove, outside   as in ah.approximate and ah.convert
    progress   a line for those who wait, none (False), or a function of a Status: see anchorhead.progress

    returns   a Network with its certificate; NotReached, which holds the best network, where `within` is out of reach

        >>> inner = ah.program("x*y", on={"x": (-1, 1), "y": (-1, 1)})
        >>> outer = ah.program("exp(s)", on={"s": (-1, 1)})
        >>> net = ah.compile(outer @ inner, within=1e-6)
        >>> net.certificate.kind
        'proven'
    """
    if not isinstance(program, Program):
        raise AnchorheadError(f"a {type(program).__name__} is no program: ah.program makes one of it, if it can")
    kind: Dtype = dtype_name(dtype)  # type: ignore[assignment]
    within = None if within is None else checked_within(within)
    check_words(form, layout, placement)
    words = {"form": form, "layout": layout, "placement": placement, "causal": bool(causal)}
    with progress_line(progress, "compiling") as tell, beyond_float64():
        return compiled(program, within, words, kind, prove, outside, tell)


def compiled(
    program: Program,
    within: float | None,
    words: dict[str, Any],
    dtype: Dtype,
    prove: bool,
    outside: Outside,
    progress: Progress | None,
) -> Network:
    """The same for those who have looked at what was given, and tell how far it is; words: form, layout, placement and
    causal."""
    _require_known(program)
    box = _box(program)
    if isinstance(program.steps[program.output], Attend) and not program.token_axis:
        target = smoother_of(program)
        _refuse(words, "a kernel smoother is one softmax head, exactly")
        return kernel_smoother(target, box, dtype, within, outside)
    if within is None:
        raise AnchorheadError("within is missing: the error asked for, as in within=1e-4")
    written = _written(program)
    network = mlp_of_chain(program) if written is None else None
    if network is not None:
        form, layout, placement, causal = (words[name] for name in ("form", "layout", "placement", "causal"))
        options = options_of(network, form, layout or "transformer", placement, dtype, causal)
        return proven_mlp(network, box, within, options, outside, progress).network
    expressions, names = written or expressions_of(program)
    tokens = program.input.tokens if program.token_axis else None
    low, high = (tuple(np.broadcast_to(end, (len(names),))) for end in (box.low, box.high))
    target = SeveralVariables(expressions, names, low, high, tokens)
    return approximate_expressions(target, program, within, words, dtype, prove, outside, progress)


def _require_known(program: Program) -> None:
    """Refuses what no program alone says enough of."""
    for step in program.steps:
        if isinstance(step, Repeat):
            raise AnchorheadError("the program has a Repeat, as learners have: incontext.gradient_descent builds those")
        if isinstance(step, Apply) and any(isinstance(one, Opaque) for one in step.functions):
            raise AnchorheadError(
                "the program has a function that is known by its values, of which it holds none: give ah.approximate "
                "the callable"
            )


def _written(program: Program) -> tuple[tuple[Expression, ...], tuple[str, ...]] | None:
    """The expressions in entries of the input that a program was written as, and their names."""
    with suppress(AnchorheadError):
        found = Entries.of(program)
        return found.expressions, found.variables
    return None


def _refuse(words: dict[str, Any], why: str) -> None:
    given = [f"{name}={value!r}" for name, value in words.items() if value not in (None, False, "solved")]
    if given:
        raise AnchorheadError(f"{', '.join(given)}: {why}; leave out {', '.join(words)}")


def _box(program: Program) -> Box:
    """Of the input: two numbers where all entries have the same ends."""
    given = program.input
    if given.low is None or given.high is None:
        raise AnchorheadError("the program has no box of inputs: make it with on=")
    ends = (np.array(given.low), np.array(given.high))
    if all((end == end.flat[0]).all() for end in ends):
        return Box.of(tuple(float(end.flat[0]) for end in ends))
    return Box.of(ends if program.token_axis else tuple(end[0] for end in ends))
