"""`ah.compile`: a program in, an attention-only network with its proof out.

What a program is decides how it is built: functions of the entries of an input are heads, neurons and grids; a chain of
affine maps and functions of one variable is a network of neurons; a softmax mean of constants is a kernel smoother. Any
other program of a fixed number of tokens is written out as expressions, if they are small enough.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from anchorhead.constructions.approximate import approximate_expressions, check_words
from anchorhead.constructions.build_options import Form, Layout, options_of
from anchorhead.constructions.kernel_smoother import kernel_smoother
from anchorhead.constructions.mlp import proven_mlp
from anchorhead.constructions.single.head import Placement
from anchorhead.decimals import beyond_float64
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.given import checked_within
from anchorhead.heads.atom import Dtype
from anchorhead.language.chain import mlp_of_chain
from anchorhead.language.forms import smoother_of
from anchorhead.language.program import Program
from anchorhead.language.steps import Attend
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
    check_words(form, layout, placement)
    box = _box(program)
    with progress_line(progress, "compiling") as tell, beyond_float64():
        if isinstance(program.steps[program.output], Attend) and not program.token_axis:
            return kernel_smoother(smoother_of(program), box, kind, within, outside)
        within = _required(within)
        network = mlp_of_chain(program)
        if network is not None:
            options = options_of(network, form, layout or "transformer", placement, kind, bool(causal))
            return proven_mlp(network, box, within, options, outside, tell).network
        expressions, names = expressions_of(program)
        tokens = program.input.tokens if program.token_axis else None
        low, high = (tuple(end.reshape(-1)) for end in (box.low, box.high))
        target = SeveralVariables(expressions, names, low, high, tokens)
        return approximate_expressions(
            target, within, kind, form, layout, placement, bool(causal), prove, outside, tell, program
        )


def _required(within: Any) -> float:
    if within is None:
        raise AnchorheadError("within is missing: the error asked for, as in within=1e-4")
    return checked_within(within)


def _box(program: Program) -> Box:
    given = program.input
    if given.low is None or given.high is None:
        raise AnchorheadError("the program has no box of inputs: make it with on=")
    ends = (np.array(given.low), np.array(given.high))
    return Box.of(ends if program.token_axis else tuple(end[0] for end in ends))
