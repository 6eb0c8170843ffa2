"""Any continuous function as an attention-only network: name it, say where, say how well.

Expressions are written as a program, and so are callables, of which values are known alone.
"""

from __future__ import annotations

from typing import Any

from anchorhead.constructions.build_request import BuildRequest, Form, Layout, Placement
from anchorhead.constructions.compile import compiled
from anchorhead.constructions.request import Texts, check_counts, entries, intervals, requested
from anchorhead.decimals import beyond_float64
from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.sympy_expressions import without_sympy
from anchorhead.language.of_targets import opaque_program, program_of, program_of_callable
from anchorhead.language.program import Program
from anchorhead.language.targets import CallableTarget
from anchorhead.language.targets.lipschitz import Lipschitz
from anchorhead.language.targets.opaque_several import CallableSeveral
from anchorhead.network import Network, Outside
from anchorhead.progress import Progress, progress_line


def approximate(
    function: Texts,
    on: Any,
    within: float,
    *,
    tokens: int | None = None,
    features: int | None = None,
    form: Form | None = None,
    layout: Layout | None = None,
    placement: Placement = "solved",
    dtype: Any = "float64",
    causal: bool = False,
    prove: bool = True,
    lipschitz: float | tuple[float, ...] | None = None,
    seed: int = 0,
    outside: Outside = "warn",
    progress: Progress | bool | None = True,
) -> Network:
    """An attention-only network that is proven within an error of a function, on a box of inputs.

    function   an expression such as "x*y + sin(z)", or a list of them, one for each output; with tokens=n, a list of
               expressions for each token, in the variables x[i,j]: feature j of token i; or a callable, from
               (batch, inputs) or (batch, tokens, features), in numpy or torch: then measured. Expressions of sympy are
               read as their texts
    on         an interval for each variable, {"x": (-1, 1), "y": (0, 2)}, or (-1, 1) for the only one; with tokens, a
               box such as (0, 1)
    within     the error asked for, in the sup norm over the box, rounding included
    tokens, features   the input is (..., tokens, features), the output (..., tokens, outputs)
    form, layout, placement   as in ah.convert; by default a function of one variable is one head
    causal     with tokens: token i must not depend on later tokens, which is proven of expressions, or refuted; the
               network then cannot see them
    prove      False: leave out the proof of heads over grids, which is the one that may take long; the certificate
               then says "measured"
    lipschitz  of a callable: |f(x) - f(y)| <= lipschitz |x - y| for each output, with which it is proven
    seed       of what is fitted to a callable: of more than four inputs, with a form or layout, or where no grid serves
    progress   a line for those who wait, none (False), or a function of a Status: see anchorhead.progress

    returns   a Network with its certificate; NotReached, which holds the best network, where `within` is out of reach

        >>> net = ah.approximate("x*y", on={"x": (-1, 1), "y": (-1, 1)}, within=1e-6)
        >>> net.certificate.kind, net.certificate.bound <= 1e-6
        ('proven', True)
        >>> bool(abs(net([0.5, -0.5])[0] + 0.25) <= net.certificate.bound)
        True
    """
    function = without_sympy(function)
    with progress_line(progress, "approximating") as tell, beyond_float64():
        program, target = written_function(function, on, tokens, features, lipschitz)
        request = BuildRequest(
            within, dtype, form, layout, placement, causal, prove, outside, tell, function=target, seed=seed
        )
        return compiled(program, request)


def written_function(
    function: Texts, on: Any, tokens: Any, features: Any, lipschitz: Any
) -> tuple[Program, CallableTarget | CallableSeveral | None]:
    """What is to be approximated, and the callable that it knows by its values, if it is one."""
    if not callable(function) or isinstance(function, Expression):
        if lipschitz is not None:
            raise AnchorheadError(
                f"lipschitz={lipschitz!r} is for callables: expressions are proven without; leave it out"
            )
        return program_of(requested(function, on, tokens, features)), None
    check_counts(tokens, features)
    if tokens is not None and features is not None:
        names, box = entries(on, tokens, features)
        low, high = box.low.reshape(-1), box.high.reshape(-1)
    else:
        names, low, high = intervals(on)
        if len(names) == 1:
            one = CallableTarget(function, float(low[0]), float(high[0]), lipschitz)
            known = None if one.lipschitz is None else (float(one.lipschitz),)
            return opaque_program(one.digest, names, None, ((one.low,), (one.high,)), one.outputs, known), one
    known = None if lipschitz is None else Lipschitz.of(lipschitz, len(names))
    target = CallableSeveral(function, low, high, None if tokens is None else int(tokens), names)
    return program_of_callable(target, lipschitz=known), target
