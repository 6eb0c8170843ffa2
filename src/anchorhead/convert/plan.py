"""Sizes of every way to turn a network, or a function, into attention, before anything is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import isroutine
from itertools import islice
from typing import Any

import numpy as np

from anchorhead.constructions.approximate import written_function
from anchorhead.constructions.build_request import BuildRequest, Form, Layout
from anchorhead.constructions.compile import planned
from anchorhead.constructions.planning.plan import Plan
from anchorhead.constructions.single.certified_head import Head
from anchorhead.convert.program import written
from anchorhead.decimals import beyond_float64
from anchorhead.errors import AnchorheadError
from anchorhead.given import checked_within
from anchorhead.language.program import Program
from anchorhead.language.targets import CallableTarget
from anchorhead.language.targets.descent import LearnerLayout
from anchorhead.network.dtypes import dtype_name
from anchorhead.progress import Progress, progress_line

MAX_ERRORS = 1000
"""How many errors may be asked for at once."""


def plan(
    model: Any,
    on: Any = None,
    within: Any = None,
    *,
    tokens: int | None = None,
    features: int | None = None,
    form: Form | None = None,
    layout: Layout | LearnerLayout | None = None,
    dtype: Any = None,
    causal: bool = False,
    activation: str | None = None,
    order: Sequence[str] | None = None,
    output: str | None = None,
    function: Callable[..., Any] | None = None,
    progress: Progress | bool | None = True,
) -> Plan:
    """How large a network would become: of a model, as `ah.convert` builds it; of expressions and callables, as
    `ah.approximate`; of a program, as `ah.compile`, by the same table of kinds.

    model       a network as `ah.convert` takes it: a torch.nn.Sequential, a safetensors file with activation=, an
                ONNX file, an MLP of scikit-learn, a Maxout, a spline, a KernelSmoother; expressions as `ah.approximate`
                takes them, "x*y + sin(z)"; a callable; a program; or a network, head or learner of ours: the program
                that it approximates
    on          the box of inputs: (0, 1), or a pair of arrays with the ends of each input; of expressions, an interval
                for each variable, or (-1, 1) for the only one
    within      the error asked for, or a list of errors; of expressions, 1e-2 to 1e-8 by default; kernel smoothers,
                learners and truncated linear functions have a size without
    tokens      the model's vectors are so many tokens, one after the other; of expressions, with features=, the input
                is (tokens, features)
    form, layout   these alone, in place of all
    dtype       float32 or float64; by default the model's own
    causal      token i's output may depend on tokens up to i only
    activation  what stands between the layers of a safetensors file
    order       of a safetensors file: the names of its layers, first to last, where sorting them is not enough
    output      of an ONNX file: the name of the value at which the network ends; by default its only output
    function    of a program that knows a function by its values: that function
    progress    a line for those who wait, none (False), or a function of a Status: see anchorhead.progress

    A plan takes the passes that building takes, and stops before weights exist: sizes are those of the network that is
    built, and the bound is what a proof will find, nearly; where all of it is rounding, it may be off by a quarter. Of
    expressions, heads are solved for and not proven; `plan.found` says what every term becomes. Where neurons are
    fitted to a callable, nothing is known before, and that is said.
    `print(plan)`, `plan.rows`, `plan.to_csv()`, `plan.to_latex()` and `ah.plot(plan, "plan.png")` show it.

    returns   a Plan: print(plan), plan.rows, plan.found

        >>> plan = ah.plan("x*y", on={"x": (-1, 1), "y": (-1, 1)}, within=[1e-3, 1e-6])
        >>> len(plan.rows) > 1
        True
    """
    with progress_line(progress, "planning") as tell, beyond_float64():
        words = {"activation": activation, "order": order, "output": output}
        program, own, known = _written(model, on, tokens, features, words, function)
        kind = dtype_name(own if dtype is None else dtype)
        request = BuildRequest(
            dtype=kind,
            form=form,
            layout=layout,
            causal=causal,
            progress=tell,
            function=known,
        )
        return planned(program, None if within is None else _withins(within), request)


def _written(
    model: Any, on: Any, tokens: Any, features: Any, words: Mapping[str, Any], function: Any
) -> tuple[Program, str, Any]:
    """The program of what is given, the dtype of its weights, and the function that it knows by its values, if any."""
    if isroutine(model) or isinstance(model, np.ufunc | partial):
        said = [f"{name}={word!r}" for name, word in (*words.items(), ("function", function)) if word is not None]
        if said:
            raise AnchorheadError(f"{', '.join(said)} with a function, which is planned for as it is: leave it out")
        program, target = written_function(model, on, tokens, features, None)
        return program, "float64", target
    program, own = written(model, on, tokens, features, words)
    if function is None and isinstance(model, Head) and isinstance(model.target, CallableTarget):
        return program, own, model.target
    return program, own, function


def _withins(within: Any) -> list[float]:
    try:
        several = [within] if isinstance(within, str) else list(islice(within, MAX_ERRORS + 1))
    except TypeError:  # one number, or an array of no axes
        several = [within]
    if not 1 <= len(several) <= MAX_ERRORS:
        count = "more" if several else "no"
        raise AnchorheadError(f"within holds {count} errors: 1 to {MAX_ERRORS:,} can be planned for at once")
    return [checked_within(one) for one in several]
