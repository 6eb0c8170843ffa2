"""Sizes of every way to turn a network into attention, before anything is built."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from anchorhead.constructions.head import Progress
from anchorhead.constructions.plan import Plan
from anchorhead.constructions.plan import plan as planned
from anchorhead.convert.convert import checked_within, read
from anchorhead.convert.splines import spline_target
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.network.dtypes import dtype_name
from anchorhead.targets.mlp import Mlp

MOST = 1000
"""How many errors may be asked for at once."""


def plan(
    model: Any,
    on: Any = None,
    within: Any = None,
    *,
    tokens: int | None = None,
    dtype: Any = None,
    causal: bool = False,
    activation: str | None = None,
    progress: Progress | None = None,
) -> Plan:
    """How large the networks would become that `ah.convert` builds of a model, in every form, layout and placement.

    model       a network as `ah.convert` takes it: a torch.nn.Sequential, a safetensors file with activation=, a
                Maxout, a spline of straight pieces
    on          the box of inputs: (0, 1), or a pair of arrays with the ends of each input
    within      the error asked for, or a list of errors
    tokens      the model's vectors are so many tokens, one after the other
    dtype       float32 or float64; by default the model's own
    causal      token i's output may depend on tokens up to i only
    progress    called with (anchors, error) where a head is not at hand and has to be solved for

    Layers, heads, anchors, parameters, logits and multiply-adds are upper bounds that building never exceeds, and so is
    the bound. `print(plan)`, `plan.to_csv()`, `plan.to_latex()` and `ah.plot(plan, "plan.png")` show it.
    """
    target, own = read(model, tokens, activation)
    if not isinstance(target, Mlp):
        raise AnchorheadError(
            f"a {type(model).__name__} becomes one head, whose size ah.convert says: plans are for networks"
        )
    if on is None and type(model).__module__.startswith("scipy.interpolate"):
        on = spline_target(model)[1]
    if on is None:
        raise AnchorheadError("on is missing: the box of inputs, as in on=(0, 1)")
    return planned(target, Box.of(on), _withins(within), dtype_name(own if dtype is None else dtype), causal, progress)  # type: ignore[arg-type]


def _withins(within: Any) -> list[float]:
    if within is None:
        raise AnchorheadError("within is missing: the error asked for, or several, as in within=[1e-2, 1e-4]")
    several = isinstance(within, Iterable) and not isinstance(within, str)
    withins = [checked_within(one) for one in (within if several else [within])]
    if not 1 <= len(withins) <= MOST:
        raise AnchorheadError(f"within holds {len(withins):,} errors: 1 to {MOST:,} can be planned for at once")
    return withins
