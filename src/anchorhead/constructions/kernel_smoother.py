"""Kernel smoothers are softmax heads: the weights are written down, and nothing errs but rounding.

The centres are anchors. Token k carries anchor k, as features (slopes, offset, responses), the input token anchor 0;
the query is (x - origin, 1). lemmas.kernel derives the slopes and offsets, and why shifts that all
anchors share change nothing. Three such freedoms keep the numbers, and so their rounding, small: the origin is the
middle of the box, slopes and offsets are centred, and responses are stored less the middle of their range, which the
bias adds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.layouts.feature_names import outputs_called
from anchorhead.decimals import round_up
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
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
    if target.centres.size > MAX_NUMBERS:
        raise AnchorheadError(
            f"{target.anchors:,} centres of {target.inputs} features: at most {MAX_NUMBERS:,} numbers in all; "
            "use fewer centres"
        )
    inner = box.broadcast_to((target.inputs,))
    require_model(kind)
    network = _network(target, inner, kind)
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


def _network(target: KernelSmoother, box: Box, kind: str) -> Network:
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
        middle = (target.responses.max(axis=0) / 2 + target.responses.min(axis=0) / 2).astype(to)
        values = (target.responses - middle.astype(np.float64)).astype(to)
    most = float(np.finfo(kind).max) / 8
    if not all((np.abs(array) <= most).all() for array in (origin, slopes, offsets, middle, values)):
        raise AnchorheadError(f"the {target} has slopes, offsets or responses beyond {kind}: rescale it")
    queries = np.zeros((target.anchors, d + 1), kind)
    queries[0, :d], queries[:, d] = -origin, 1
    tokens = np.concatenate([queries, slopes, offsets[:, None], values], axis=1)
    width = tokens.shape[1]
    weight = np.eye(width, d, dtype=kind)
    pick = np.eye(width, dtype=kind)
    names = (
        *(f"input {j} less its middle" for j in range(d)),
        "one",
        *(f"slope {j}" for j in range(d)),
        "offset",
        *(f"response {i}" for i in range(m)),
    )
    embed = Embed(weight, tokens[0], registers=tokens[1:] if len(tokens) > 1 else None, tokens=1, features=names)
    attention = Attention(
        pick[None, : d + 1],
        pick[None, d + 1 : 2 * d + 2],
        pick[None, 2 * d + 2 :],
        np.eye(m, dtype=kind)[None],
        bias=middle if middle.any() else None,
        features=outputs_called(m),
        labels=("averages the responses near the input",),
    )
    return Network([embed, attention], token_axis=False)


def _centred(exact: list[Any]) -> np.ndarray:
    """The numbers less the middle of their range, rounded once."""
    middle = (max(exact) + min(exact)) / 2
    return np.array([float(one - middle) for one in exact])
