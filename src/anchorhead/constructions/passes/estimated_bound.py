"""What a proof will find, before weights exist: its lemma, put to the neurons instead of to a network.

However tokens, registers and heads are laid out, their numbers are those of a few affine maps: inputs are centred,
asked for, read and mixed. `lemmas.walk` reads these maps from the stored weights; here they are followed as if they
were stored, once for all layouts. Where neurons are groups of one softmax, outputs add up weights of anchors instead of
what heads read, and these longer sums round more.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.layouts.neurons import Laid
from anchorhead.lemmas import scalar_head
from anchorhead.lemmas.output import OutputBound, compared
from anchorhead.network import Embed
from anchorhead.proof.arithmetic.affine_forms import Diagonal, Sources, embedded, mapped, own_error
from anchorhead.proof.arithmetic.arithmetic import Arithmetic, arithmetic_of
from anchorhead.proof.arithmetic.rounding import sum_error
from anchorhead.proof.heads.activation_head import ActivationHead
from anchorhead.proof.heads.weight_sums import MANY, weight_sums


@np.errstate(over="ignore", invalid="ignore")  # of heads of which nothing is known all bounds are infinite
def estimated_bound(laid: Laid, sources: Sources, request: BuildRequest) -> OutputBound:
    """About what `lemmas.prove.prove_mlp` will find for a network of these neurons."""
    arithmetic, middle = arithmetic_of(request.dtype), laid.middle
    centring = Embed(np.ones((1, 1)), -middle[:, None], tokens=len(middle))  # each input as if it were a token
    x = Diagonal(embedded(centring, sources.apart(), arithmetic)[0])
    reads = None
    for layer in laid.layers:
        weight, bias = (one.astype(request.dtype) for one in (layer.weight, layer.bias))
        query, exactly = (
            mapped(weight, bias, given, sources, arithmetic) for given in (x, Diagonal(x.each.unrounded()))
        )
        # the parts of a neuron ask with sums of their own, twice what one rounds by from one another
        reads, sources = scalar_head.bound(layer, query, sources, 2 * exactly.rounding[0])
        x = reads.apart(sources, arithmetic, 1)
    weight, bias = (one.astype(request.dtype).astype(np.float64) for one in (laid.weight, laid.bias))
    more: Float[np.ndarray, " outputs"] | float = 0.0
    if reads is None:
        y = mapped(weight, bias, x, sources, arithmetic)
    else:
        if request.form == "attention-softmax":
            reads, more = replace(reads, reach=np.zeros_like(reads.reach)), _long_sums(laid, arithmetic)
        y = reads.combined(scalar_head.Others.bias(bias), weight, sources, arithmetic)
    bound = compared(y, laid.readout, sources)
    rounding = bound.rounding + more
    return replace(bound, rounding=np.where(np.isnan(rounding), np.inf, rounding))  # weights that overflow the dtype


def _long_sums(laid: Laid, arithmetic: Arithmetic) -> Float[np.ndarray, " outputs"]:
    """What sum_k w_k v_k rounds by, for each output, and the v_k, which hold the readout's weights."""
    layer, weight = laid.layers[-1], np.abs(laid.weight)
    sizes = np.array([_value_sum(shape, arithmetic) for shape in layer.shapes])[layer.which]
    anchors = np.array([shape.anchors for shape in layer.shapes])[layer.which]
    size = weight @ sizes + np.abs(laid.bias)
    terms = (weight != 0) @ anchors + 1
    if 2 * arithmetic.unit * terms.max() >= 1:
        return np.full(len(size), np.inf)  # so long a sum has no bound
    return sum_error(terms, size, arithmetic) + (2 * arithmetic.unit + own_error(1)) * size


def _value_sum(shape: ActivationHead, arithmetic: Arithmetic) -> float:
    """A bound on sum_k w_k |v_k|, all parts together; of many anchors not more is known than the largest value."""
    if max(shape.lengths) > MANY:
        return sum(float(np.abs(part.values).max()) for part in shape.parts)
    return sum(weight_sums(shape, arithmetic))
