"""Kernel smoothers are softmax heads: the weights are written down, and nothing errs but rounding.

The centres are anchors. Token k carries anchor k, as features (slopes, offset, responses), the input token anchor 0;
the query is (x - origin, 1). lemmas.kernel derives the slopes and offsets, and why shifts that all
anchors share change nothing. Three such freedoms keep the numbers, and so their rounding, small: the origin is the
middle of the box, slopes and offsets are centred, and responses are stored less the middle of their range, which the
bias adds.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float

from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.layouts.draft import Draft
from anchorhead.constructions.layouts.feature_names import outputs_called
from anchorhead.decimals import round_up
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Dtype
from anchorhead.language.forms import box_of
from anchorhead.language.program import Program
from anchorhead.language.targets.kernel_smoother import KernelSmoother
from anchorhead.lemmas.kernel import METHOD, Smoothed, exact_logits
from anchorhead.lemmas.prove import prove_functions
from anchorhead.network import Attention, Embed, Network
from anchorhead.network.derivation import Derivation, Entry
from anchorhead.proof.arithmetic.arithmetic import require_model
from anchorhead.proof.statement import Statement
from anchorhead.terms import Term

MAX_NUMBERS = 1_000_000
"""How many numbers the centres may have in all: weights are worked out in rational arithmetic."""


def kernel_smoother(target: KernelSmoother, program: Program, request: BuildRequest) -> Network:
    """A head with an anchor for each centre, (..., d) to (..., m), with its certificate: within an error that is asked
    for, if one is, the bound being rounding alone."""
    kind, within, box = request.dtype, request.within, box_of(program)
    inner = box.broadcast_to((target.inputs,))
    network = Network([draft.made(kind) for draft in smoother_drafts(target, inner, kind)], token_axis=False)
    bound = prove_functions(network, Smoothed(target), inner)
    if within is not None and not round_up(bound.total) <= within:
        raise AnchorheadError(
            f"within={within:g} is not reached by the {target} in {kind}: its rounding is proven to stay within "
            f"{round_up(bound.total):g}. What would help: {'float64, ' if kind == 'float32' else ''}a larger error, a "
            "smaller box, a larger bandwidth"
        )
    entry = Entry(1, "kernel", str(target), 1, target.anchors, None, 0.0, bound.total, (program.output,))
    stored, computed = bound.worst
    terms = Term("rounding", stored, "stored weights"), Term("rounding", computed, "inputs and softmax")
    certificate = Statement(bound.total, terms, METHOD, str(target)).certificate(box, kind, within)
    return network.with_(
        program=program,
        derivation=Derivation("kernel smoother", entries=(entry,)),
        certificate=certificate,
        outside=request.outside,
    )


def smoother_drafts(target: KernelSmoother, box: Box, kind: Dtype) -> list[Draft]:
    """The two layers of a smoother, before their weights exist."""
    if target.centres.size > MAX_NUMBERS:
        raise AnchorheadError(
            f"{target.anchors:,} centres of {target.inputs} features: at most {MAX_NUMBERS:,} numbers in all; "
            "use fewer centres"
        )
    require_model(kind)
    d, m, p = target.inputs, target.outputs, target.anchors
    width, middle = 2 * d + 2 + m, _middle(target, kind)
    embed = {"weight": (width, d), "bias": (width,), **({"registers": (p - 1, width)} if p > 1 else {})}
    reads = {**dict.fromkeys(("query", "key"), (1, d + 1, width)), "value": (1, m, width), "output": (1, m, m)}
    reads |= {"bias": (m,)} if middle.any() else {}
    return [
        Draft(Embed, embed, partial(_fill_embed, target, box, kind)),
        Draft(Attention, reads, partial(_fill_attention, target, middle)),
    ]


def _middle(target: KernelSmoother, kind: Dtype) -> Float[np.ndarray, " m"]:
    """Of the responses."""
    with np.errstate(over="ignore", invalid="ignore"):
        return (target.responses.max(axis=0) / 2 + target.responses.min(axis=0) / 2).astype(kind)


def _fill_embed(
    target: KernelSmoother, box: Box, kind: Dtype, weight: np.ndarray, bias: np.ndarray, registers: Any = None
) -> dict[str, Any]:
    d, m = target.inputs, target.outputs
    to = np.dtype(kind).type
    origin = (box.low / 2 + box.high / 2).astype(kind)
    exact_slopes, exact_offsets = exact_logits(target, origin)
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            slopes = np.stack([_centred([row[j] for row in exact_slopes]) for j in range(d)], axis=1).astype(to)
            offsets = _centred(exact_offsets).astype(to)
        except OverflowError as error:
            raise AnchorheadError(f"the {target} has logits beyond float64: use a larger bandwidth") from error
        middle = _middle(target, kind)
        values = (target.responses - middle.astype(np.float64)).astype(to)
    most = float(np.finfo(kind).max) / 8
    if not all((np.abs(array) <= most).all() for array in (origin, slopes, offsets, middle, values)):
        raise AnchorheadError(f"the {target} has slopes, offsets or responses beyond {kind}: rescale it")
    queries = np.zeros((target.anchors, d + 1), kind)
    queries[0, :d], queries[:, d] = -origin, 1
    tokens = np.concatenate([queries, slopes, offsets[:, None], values], axis=1)
    weight[:d], bias[:] = np.eye(d), tokens[0]
    if registers is not None:
        registers[:] = tokens[1:]
    names = (
        *(f"input {j} less its middle" for j in range(d)),
        "one",
        *(f"slope {j}" for j in range(d)),
        "offset",
        *(f"response {i}" for i in range(m)),
    )
    return {"tokens": 1, "features": names}


def _fill_attention(
    target: KernelSmoother,
    middle: Float[np.ndarray, " m"],
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    output: np.ndarray,
    bias: Any = None,
) -> dict[str, Any]:
    d, m = target.inputs, target.outputs
    pick = np.eye(query.shape[-1])
    query[0], key[0], value[0] = pick[: d + 1], pick[d + 1 : 2 * d + 2], pick[2 * d + 2 :]
    output[0] = np.eye(m)
    if bias is not None:
        bias[:] = middle
    return {"features": outputs_called(m), "labels": ("averages the responses near the input",)}


def _centred(exact: list[Any]) -> np.ndarray:
    """The numbers less the middle of their range, rounded once."""
    middle = (max(exact) + min(exact)) / 2
    return np.array([float(one - middle) for one in exact])
