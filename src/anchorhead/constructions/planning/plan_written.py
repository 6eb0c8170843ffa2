"""Sizes of networks that are written at once, whatever the error: kernel smoothers, the paper's theorems, learners.

What building spends time on is the sharpness, which no size depends on, and the proof. A smoother's layers are counted
as they are drafted; the layers of theorems and learners are written for a sharpness that nobody chose, and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.kernel_smoother import smoother_drafts
from anchorhead.constructions.layouts.draft import counted
from anchorhead.constructions.learners.descent import outlined
from anchorhead.constructions.learners.networks import many_network
from anchorhead.constructions.planning.plan import Plan, check_request, row_of
from anchorhead.constructions.theorems.truncated_linear import written_out
from anchorhead.decimals import counted as counted_words
from anchorhead.domain import Box
from anchorhead.language.forms import box_of
from anchorhead.language.program import Program
from anchorhead.language.targets.descent import Descent
from anchorhead.language.targets.kernel_smoother import KernelSmoother
from anchorhead.language.targets.many_learners import ManyLearners
from anchorhead.language.targets.ramp import TruncatedLinear
from anchorhead.network import Attention, Network, Repeat
from anchorhead.proof.arithmetic.arithmetic import require_model

ROUNDING = "exact but for rounding, which is bounded when it is built"
CHOSEN = "the bound is known when it is built, and beta chosen"


def plan_smoother(
    target: KernelSmoother, program: Program, withins: Sequence[float] | None, request: BuildRequest
) -> Plan:
    """One head, exactly: an anchor for each centre."""
    box, anchors = box_of(program), target.anchors
    drafts = smoother_drafts(target, box.broadcast_to((target.inputs,)), request.dtype)
    size = counted(drafts, 1)
    sizes = {"anchors": anchors, "keys": size.keys, "layers": size.layers, "heads": size.heads}
    sizes |= {"parameters": size.parameters, "multiply_adds": size.multiply_adds}
    return _plan(str(target), box, withins, request, sizes, ROUNDING, placement="given")


def plan_truncated(
    target: TruncatedLinear, program: Program, withins: Sequence[float] | None, request: BuildRequest
) -> Plan:
    """The layer of one of the two theorems."""
    found = written_out(target, request)
    sizes = {**_sizes(found.build(1.0)), "anchors": found.count if request.heads is None else len(target.w)}
    return _plan(str(target), box_of(program), withins, request, sizes, CHOSEN, placement="uniform")


def plan_descent(target: Descent, program: Program, withins: Sequence[float] | None, request: BuildRequest) -> Plan:
    """A learner in its layout."""
    sizes = _sizes(outlined(target, program, request))
    return _learner(target, box_of(program), withins, request, sizes, target.layout)


def plan_many(target: ManyLearners, _: Program, withins: Sequence[float] | None, request: BuildRequest) -> Plan:
    """Many learners in one network, which has certificates for prompts and none for a box."""
    return _learner(target, None, withins, request, _sizes(many_network(target, request.dtype)), "transformer")


def _learner(
    target: Descent | ManyLearners,
    on: Box | None,
    withins: Sequence[float] | None,
    request: BuildRequest,
    sizes: dict[str, Any],
    layout: str,
) -> Plan:
    steps = counted_words(target.steps, "step")
    note = f"the layers of a step are stored once and run for {steps}; the bound is known when it is built"
    return _plan(str(target), on, withins, request, sizes, note, form="learner", layout=layout)


def _plan(
    name: str,
    on: Box | None,
    withins: Sequence[float] | None,
    request: BuildRequest,
    sizes: dict[str, Any],
    note: str,
    **words: Any,
) -> Plan:
    """The same sizes for every error that is asked for, or for none."""
    require_model(request.dtype)
    errors = [None] if withins is None else check_request(withins, request.dtype)
    rows = [row_of(replace(request, within=within), None, sizes, True, note, **words) for within in errors]
    return Plan(name, on, request.dtype, tuple(rows))


def _sizes(network: Network) -> dict[str, int]:
    """What is stored; layers that are run over and over are stored once."""
    layers = [one for layer in network.layers for one in (layer.layers if isinstance(layer, Repeat) else (layer,))]
    heads = sum(one.heads for one in layers if isinstance(one, Attention))
    return {"layers": len(network.layers), "heads": heads, "parameters": network.parameters}
