"""Sizes of every way to turn a network, or a function, into attention, before anything is built."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from anchorhead.constructions.build_request import Form, Layout
from anchorhead.constructions.planning.plan import Plan
from anchorhead.constructions.planning.plan import plan as planned
from anchorhead.constructions.planning.plan_expressions import USUAL, plan_expressions
from anchorhead.constructions.request import requested
from anchorhead.convert.models import read
from anchorhead.convert.splines import spline_target
from anchorhead.decimals import beyond_float64
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.given import checked_within
from anchorhead.language.expressions.sympy_expressions import without_sympy
from anchorhead.language.targets.mlp import Mlp
from anchorhead.language.targets.spec import is_expression
from anchorhead.network.dtypes import dtype_name
from anchorhead.progress import Progress, progress_line

MOST = 1000
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
                ONNX file, an MLP of scikit-learn, a Maxout, a spline of straight pieces; or expressions as
                `ah.approximate` takes them, "x*y + sin(z)"
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

    Of a model, layers, heads, anchors, parameters, logits and multiply-adds are upper bounds that building never
    exceeds, and so is the bound. Of expressions, they are what solving finds, without a proof; `plan.found` says what
    every term becomes. `print(plan)`, `plan.rows`, `plan.to_csv()`, `plan.to_latex()` and `ah.plot(plan, "plan.png")`
    show it.

    returns   a Plan: print(plan), plan.rows, plan.found

        >>> plan = ah.plan("x*y", on={"x": (-1, 1), "y": (-1, 1)}, within=[1e-3, 1e-6])
        >>> len(plan.rows) > 1
        True
    """
    with progress_line(progress, "planning") as tell, beyond_float64():
        model = without_sympy(model)
        if is_expression(model):
            for name, word in (("activation", activation), ("order", order), ("output", output)):
                if word is not None:
                    raise AnchorheadError(f"{name}={word!r} is for files, not for expressions")
            target = requested(model, on, tokens, features)
            errors = list(USUAL) if within is None else _withins(within)
            kind = dtype_name("float64" if dtype is None else dtype)
            return plan_expressions(target, errors, kind, form, layout, causal, tell)
        words = {"features": features, "form": form, "layout": layout}
        given = [f"{name}={value!r}" for name, value in words.items() if value is not None]
        if given:
            raise AnchorheadError(f"{', '.join(given)}: of a model, all forms and layouts are planned; leave it out")
        target, own = read(model, tokens, activation, output, order)
        if not isinstance(target, Mlp):
            raise AnchorheadError(
                f"a {type(model).__name__} becomes one head, whose size ah.convert says: plans are for networks"
            )
        if on is None and type(model).__module__.startswith("scipy.interpolate"):
            on = spline_target(model)[1]
        if on is None:
            raise AnchorheadError("on is missing: the box of inputs, as in on=(0, 1)")
        return planned(target, Box.of(on), _withins(within), dtype_name(own if dtype is None else dtype), causal, tell)


def _withins(within: Any) -> list[float]:
    if within is None:
        raise AnchorheadError("within is missing: the error asked for, or several, as in within=[1e-2, 1e-4]")
    try:
        several = [within] if isinstance(within, str) else list(islice(within, MOST + 1))
    except TypeError:  # one number, or an array of no axes
        several = [within]
    if not 1 <= len(several) <= MOST:
        count = "more" if several else "no"
        raise AnchorheadError(f"within holds {count} errors: 1 to {MOST:,} can be planned for at once")
    return [checked_within(one) for one in several]
