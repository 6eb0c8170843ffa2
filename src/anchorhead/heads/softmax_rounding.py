"""The rounding of a softmax on logits z = alpha t + gamma, t = s - origin, and of what it reads.

In any order of summation, with FMA or without, exp within some ulps, underflow gradual or flushed. The solver takes
these bounds at points, a proof on cells, with bounds on what goes in. All arrays are float64.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from anchorhead.heads.arithmetic import Arithmetic

ABOVE_UP = 1 + 1e-6
"""More than float64 loses while these bounds are computed, and more than UP: what proofs find is held against them."""


def logit_error(
    steepness: Float[np.ndarray, "... #p"],
    query: Float[np.ndarray, "... #p"],
    logit: Float[np.ndarray, "... p"],
    lean: Float[np.ndarray, "... p"] | float,
    arithmetic: Arithmetic,
) -> Float[np.ndarray, "... p"]:
    """Delta_k = u (|alpha_k t| + |z_k| + |t| |alpha_k - A|) + 4 tiny (1 + |alpha_k|), a bound on |computed z_k - z_k|.

    steepness   |alpha_k|      query   bounds on |t|      logit   bounds on |z_k|      lean   on |t| |alpha_k - A|

    The third part is for t = fl(s - origin), where that is not exact: it moves every logit by alpha_k t u, and what all
    logits share changes no softmax, so their mean A = sum w alpha may be taken off. The last one is for numbers below
    the smallest normal one, that may become 0: s itself, s - origin, the product, the sum and its distance from the
    largest logit.
    """
    rounded = arithmetic.unit * (steepness * query + logit + lean) * ABOVE_UP
    return rounded + 4 * arithmetic.tiny * (1 + steepness)


def exponent_error(
    gaps: Float[np.ndarray, "... p"],
    logit_error: Float[np.ndarray, "... p"],
    top_error: Float[np.ndarray, "... #p"],
    arithmetic: Arithmetic,
) -> Float[np.ndarray, "... p"]:
    """Lambda_k = Delta_k + u (gap_k + Delta_k + D) + exp_error: computed exponentials are C e^(z_k + lambda_k) with
    |lambda_k| <= Lambda_k and one C for all k.

    The largest computed logit, which is within D (`top_error`) of the largest logit, is subtracted, which rounds once,
    and exp adds its own error. gaps: upper bounds on max z - z_k.
    """
    return logit_error + arithmetic.unit * (gaps + logit_error + top_error) + arithmetic.exp_error


def softmax_read_error(
    weights: Float[np.ndarray, "... p"],
    gaps: Float[np.ndarray, "... p"],
    logit_error: Float[np.ndarray, "... p"],
    deviation: Float[np.ndarray, "... p"],
    result: Float[np.ndarray, "..."],
    values: Float[np.ndarray, "... p"],
    value_error: Float[np.ndarray, "... #p"],
    arithmetic: Arithmetic,
    copies: int = 1,
) -> Float[np.ndarray, "..."]:
    """The error of r = sum_k w_k v_k, w = softmax(z), as the dtype computes it; `copies` tokens carry each anchor.

    weights      upper bounds on w_k                         gaps         upper bounds on max z - z_k
    logit_error  bounds Delta_k on |computed z_k - z_k|      deviation    bounds on |v_k - r|
    values       |v_k|                                       value_error  bounds on |computed v_k - v_k|
    result       a bound on |r|

    Proof. The exponentials are e_k = C w_k exp(lambda_k) with |lambda_k| <= Lambda_k and one C for all k
    (`exponent_error`, with D = max Delta). Exact division of these e_k by their sum would give r~ with
    r~ - r = sum w_k (exp lambda_k - 1)(v_k - r) / sum w_k exp lambda_k, because sum w_k (v_k - r) = 0; by Jensen the
    denominator is at least exp(-sum w_k Lambda_k). The sum of the e_k is common to all weights and errs relatively by
    gamma_(p-1), which moves r~ by gamma_(p-1) |r~|; each weight adds a division and its place in a dot product of p
    terms, gamma_(p+1) in all. Exponentials below the smallest normal number are off by less than it.

    A factor that all exponentials share changes nothing, so the argument holds as well with lambda_k - lambda_j, where
    j is the heaviest anchor: its error is then 0 and the others' Lambda_k + Lambda_j. The smaller of the two is taken.

    Anchors that are left out, because their weights add up to at most eps, cost no more than 3 eps max |v|: adding x to
    a sum rounds by at most |x|, so a term that is small moves no other term by more than itself.
    """
    p = weights.shape[-1] * copies
    log_error = exponent_error(gaps, logit_error, logit_error.max(axis=-1, keepdims=True), arithmetic)
    heaviest = weights == weights.max(axis=-1, keepdims=True)
    relative = np.where(heaviest, 0.0, log_error + (log_error * heaviest).max(axis=-1, keepdims=True))
    # two anchors of the same weight: only one of them can be the reference
    relative = np.where(heaviest.sum(axis=-1, keepdims=True) > 1, log_error, relative)
    bounds = [_moved(weights, error, deviation, values + value_error, value_error) for error in (log_error, relative)]
    moved, size, wrong_values = (np.minimum(one, two) for one, two in zip(*bounds, strict=True))
    summed = arithmetic.gamma(p + 1) * size + arithmetic.gamma(p - 1) * (result + moved + wrong_values)
    summed = summed / (1 - arithmetic.gamma(p))
    underflow = 4 * p * arithmetic.tiny * (values + value_error + 1).max(axis=-1)
    return moved + summed + wrong_values + underflow


def _moved(
    weights: Float[np.ndarray, "... p"],
    log_error: Float[np.ndarray, "... p"],
    *terms: Float[np.ndarray, "... #p"],
) -> tuple[Float[np.ndarray, "..."], ...]:
    """sum w (exp Lambda - 1) a for the first of the terms, sum w exp(Lambda) a for others, over exp(-sum w Lambda)."""
    weights = np.maximum(weights, 1e-300)  # what underflows here may not do so once multiplied
    grown = np.exp(np.minimum(np.log(weights) + log_error, 700.0))
    change = np.where(log_error < 1, weights * np.expm1(np.minimum(log_error, 1.0)), grown)
    denominator = np.exp(-np.minimum((weights * log_error).sum(axis=-1), 700.0))
    return tuple(
        (factor * term).sum(axis=-1) / denominator for factor, term in zip((change, grown, grown), terms, strict=True)
    )
