"""Sizes of every way to turn a network, or a function, into attention, before anything is built."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from anchorhead.constructions.build_request import BuildRequest, Form, Layout
from anchorhead.constructions.planning.plan import Plan, plan_network
from anchorhead.constructions.planning.plan_expressions import USUAL, plan_expressions
from anchorhead.convert.program import written
from anchorhead.decimals import beyond_float64
from anchorhead.errors import AnchorheadError
from anchorhead.given import checked_within
from anchorhead.language.chain import mlp_of_chain
from anchorhead.language.forms import box_of, functions_of, functions_written_out
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
    layout: Layout | None = None,
    dtype: Any = None,
    causal: bool = False,
    activation: str | None = None,
    order: Sequence[str] | None = None,
    output: str | None = None,
    progress: Progress | bool | None = True,
) -> Plan:
    """How large a network would become: of a model, as `ah.convert` builds it, or of expressions, as `ah.approximate`.

    model       a network as `ah.convert` takes it: a torch.nn.Sequential, a safetensors file with activation=, an
                ONNX file, an MLP of scikit-learn, a Maxout, a spline; expressions as `ah.approximate` takes them,
                "x*y + sin(z)"; or a program
    on          the box of inputs: (0, 1), or a pair of arrays with the ends of each input; of expressions, an interval
                for each variable, or (-1, 1) for the only one
    within      the error asked for, or a list of errors; of expressions, 1e-2 to 1e-8 by default
    tokens      the model's vectors are so many tokens, one after the other; of expressions, with features=, the input
                is (tokens, features)
    form, layout   of expressions: these alone
    dtype       float32 or float64; by default the model's own
    causal      token i's output may depend on tokens up to i only
    activation  what stands between the layers of a safetensors file
    order       of a safetensors file: the names of its layers, first to last, where sorting them is not enough
    output      of an ONNX file: the name of the value at which the network ends; by default its only output
    progress    a line for those who wait, none (False), or a function of a Status: see anchorhead.progress

    A plan takes the passes that building takes, and stops before weights exist: sizes are those of the network that is
    built, and the bound is what a proof is foreseen to find, nearly; where all of it is rounding, it may be off by a
    quarter. Of expressions, heads are solved for and not proven; `plan.found` says what every term becomes.
    `print(plan)`, `plan.rows`, `plan.to_csv()`, `plan.to_latex()` and `ah.plot(plan, "plan.png")` show it.

    returns   a Plan: print(plan), plan.rows, plan.found

        >>> plan = ah.plan("x*y", on={"x": (-1, 1), "y": (-1, 1)}, within=[1e-3, 1e-6])
        >>> len(plan.rows) > 1
        True
    """
    with progress_line(progress, "planning") as tell, beyond_float64():
        words = {"activation": activation, "order": order, "output": output}
        program, own = written(model, on, tokens, features, words)
        kind = dtype_name(own if dtype is None else dtype)
        request = BuildRequest(dtype=kind, form=form, layout=layout, causal=causal, progress=tell)
        functions = functions_of(program)
        network = mlp_of_chain(program) if functions is None else None
        if network is None:
            target = functions or functions_written_out(program)
            return plan_expressions(target, list(USUAL) if within is None else _withins(within), request)
        request.require_only(("causal",), "of a network, all forms and layouts are planned")
        return plan_network(network, box_of(program), _withins(within), request)


def _withins(within: Any) -> list[float]:
    if within is None:
        raise AnchorheadError("within is missing: the error asked for, or several, as in within=[1e-2, 1e-4]")
    try:
        several = [within] if isinstance(within, str) else list(islice(within, MAX_ERRORS + 1))
    except TypeError:  # one number, or an array of no axes
        several = [within]
    if not 1 <= len(several) <= MAX_ERRORS:
        count = "more" if several else "no"
        raise AnchorheadError(f"within holds {count} errors: 1 to {MAX_ERRORS:,} can be planned for at once")
    return [checked_within(one) for one in several]
