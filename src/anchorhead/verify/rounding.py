"""The model of floating-point arithmetic, which is an assumption, and what follows from it, each written once.

A network in float32 or float64 is computed with

  - inputs that are numbers of the dtype, those below the smallest normal number perhaps taken for 0;
  - fl(a op b) = (a op b)(1 + d) + e with |d| <= u, and |e| <= tiny where the result is below the smallest normal number
    (underflow gradual or to zero); sums and dot products in any order, with or without fused multiply-add;
  - softmax as exp(z - max z) divided by the sum of these, exp within 4 units in the last place; sigmoid as
    1 / (1 + exp(-z));
  - no reduced-precision products.

All functions take and give float64 arrays of magnitudes. What float64 itself loses while they are computed is covered
by SLACK, a relative allowance that every bound is multiplied by before it leaves this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorhead.verify.errors import NotVerified, require

EXP_ULPS = 4
OWN_UNIT = 2.0**-53
"""Unit round-off of the float64 in which the verifier itself computes."""
SLACK = 1 + 1e-12
"""More than a chain of some thousand float64 operations on numbers of one sign loses."""
SILENT = 800.0
"""exp of minus this is 0 in float32 and float64, however it underflows."""
UNDERFLOW = 1e-300
"""More than what exp may lose in float64."""
LARGE, STEPS = 0.25, 2
"""For weights that move: from which error of the heaviest logit on others are also taken relative to it; and how many
steps of Newton's method there are."""
FOLDED = 2.0**40
"""What the evaluation "direct" multiplies weights by is at most this, and at least one over it."""


@dataclass(frozen=True)
class Arithmetic:
    """unit: relative error u of one rounding. tiny: the smallest normal number. largest: the largest finite one.
    direct: whether networks may be computed as `direct` says, too."""

    dtype: str
    unit: float
    tiny: float
    largest: float
    direct: bool = False

    @property
    def exp_error(self) -> float:
        """|log(computed exp / exp)| is at most this: an ulp is at most 2u."""
        return 2 * EXP_ULPS * self.unit / (1 - 2 * EXP_ULPS * self.unit)

    def gamma(self, n: Any) -> Any:
        """gamma_n = n u / (1 - n u): the relative error of n roundings in a row."""
        require(bool(np.all(2 * np.asarray(n) * self.unit < 1)), f"sums of {np.max(n)} terms have no rounding bound")
        return n * self.unit / (1 - n * self.unit)

    def __str__(self) -> str:
        return (
            f"{self.dtype}, round to nearest, sums in any order, exp within {EXP_ULPS} ulp, underflow gradual or to "
            f"zero, no reduced-precision products; inputs are numbers of {self.dtype}, to which a call rounds others"
            + "; or 'direct': the same with heads by their series, folded into maps, or sigmoids, and constants summed "
            "before" * self.direct
        )


MODELS = {
    "float32": Arithmetic("float32", 2.0**-24, 2.0**-126, float(np.finfo(np.float32).max)),
    "float64": Arithmetic("float64", 2.0**-53, 2.0**-1022, float(np.finfo(np.float64).max)),
}


def arithmetic_of(dtype: str) -> Arithmetic:
    if dtype not in MODELS:
        raise NotVerified(f"dtype {dtype!r}: float32 and float64 are modelled")
    return MODELS[dtype]


def own_error(terms: Any) -> Any:
    """The relative error of a sum of so many products in the verifier's own float64, of the sum of absolute values."""
    return 2 * (np.asarray(terms, np.float64) + 4) * OWN_UNIT


def power_of_two(a: np.ndarray) -> np.ndarray:
    """Whether a product with this factor rounds nothing (underflow aside): 0 and powers of two."""
    mantissa, _ = np.frexp(a)
    return np.asarray((a == 0) | (np.abs(mantissa) == 0.5))


def dot_error(
    products: np.ndarray, exact: np.ndarray, count: np.ndarray, result: np.ndarray, model: Arithmetic
) -> np.ndarray:
    """|computed sum_j a_j b_j - sum_j a_j b_j| from sums over j.

    products   sum |a_j b_j|               exact    the part of it of products that round nothing
    count      how many terms are not 0    result   a bound on |sum_j a_j b_j|

    A product errs by u times itself unless it is exact. One term needs no addition. Two need one: u |sum|. n terms in
    any order err by gamma_(n-1) of the sum of the computed products. Every operation may lose `tiny` to underflow.
    """
    count = np.asarray(count, np.float64)
    rounded = model.unit * np.maximum(products - exact, 0.0)
    two = model.unit * (np.minimum(result, products) + rounded)
    many = model.gamma(np.maximum(count - 1, 0)) * (products + rounded)
    added = np.where(count <= 1, 0.0, np.where(count == 2, two, many))
    return (rounded + added) * SLACK + 2 * count * model.tiny


def softmax_log_error(logit_error: np.ndarray, gap: np.ndarray, model: Arithmetic) -> np.ndarray:
    """Lambda_k: the computed exponentials are C exp(z_k + lambda_k), one C for all k, with |lambda_k| <= Lambda_k.

    logit_error   bounds Delta_k on |computed z_k - z_k|        gap   bounds on max z - z_k

    Subtracting the largest computed logit rounds once: u (gap_k + Delta_k + max Delta), and tiny; exp adds its own.
    """
    largest = logit_error.max(axis=-1, keepdims=True)
    return (logit_error + model.unit * (gap + logit_error + largest) + model.exp_error + 2 * model.tiny) * SLACK


def softmax_read_error(
    log_weights: np.ndarray,
    log_error: np.ndarray,
    away: tuple[np.ndarray, np.ndarray],
    value_error: float | np.ndarray,
    values: np.ndarray,
    result: np.ndarray,
    count: int | np.ndarray,
    model: Arithmetic,
    keys: int | None = None,
    terms: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """|computed sum_k w_k v_k - r|, r = sum_k w_k v_k with w = softmax(z), and a bound on sum_k |computed w_k v_k|.

    log_weights   upper bounds on log w_k            log_error     Lambda_k, of softmax_log_error
    away          between what v_k - r lies          value_error   how far v_k may be off
    values        bounds on |v_k|                    result        a bound on |r|
    count         how many keys these are
    keys          how many there are with those that are left out because they weigh next to nothing; by default none
    terms         how many keys hold anything: the others' values are no numbers but nothing; by default all do

    Lemma. Let w~ be in proportion to w_k e^(lambda_k), |lambda_k| <= Lambda_k. Then sum w~_k v_k <= r + b for all such
    lambda if and only if, with d_k = v_k - r,

        sum_k w_k (e^(Lambda_k) - 1) (d_k - b)+  +  sum_k w_k (1 - e^(-Lambda_k)) (b - d_k)+  <=  b.

    Proof. sum w~ v <= r + b says sum w_k e^(lambda_k) (d_k - b) <= 0. The left side is largest at lambda_k = Lambda_k
    where d_k > b and -Lambda_k elsewhere; take sum w_k (d_k - b) = -b off. The left side of the lemma may be replaced
    by any bound on it (`_moved`). For the other side, change the signs of d.
    A factor common to all exponentials changes nothing, so lambda_k - lambda_j may take the place of lambda_k, for the
    heaviest key j: then its own error is 0 and the others' at most Lambda_k + Lambda_j. Where Lambda_j is LARGE, the
    smaller of the two bounds is taken.
    Then: the sum of the exponentials errs relatively by gamma_(p-1), the same for all weights; a division and a place
    in a dot product of n terms add gamma_(n+1) to each term; what underflows is below tiny, four times a key.
    Keys that are left out count for nothing in p: adding B to a number A of the dtype, in whatever order, rounds to
    nearest, and A itself is |B| away, so that it errs by at most |B|. Whoever leaves keys out adds their weights, four
    times, times the largest |v|.
    """
    moved, size = _moved_and_size(log_weights, log_error, away, value_error, values)
    heaviest = log_weights.argmax(axis=-1)[..., None]
    reference = np.take_along_axis(log_error, heaviest, axis=-1)
    if (reference > LARGE).any():
        relative = log_error + reference
        np.put_along_axis(relative, heaviest, 0.0, axis=-1)
        again = _moved_and_size(log_weights, relative, away, value_error, values)
        moved, size = np.minimum(moved, again[0]), np.minimum(size, again[1])
    held = count if terms is None else terms
    with np.errstate(all="ignore"):  # what is no number becomes infinite
        sums = model.gamma(held + 1) * size + model.gamma(np.maximum(count - 1, 0)) * (result + moved)
        lost = 4 * (count if keys is None else keys) * model.tiny * (values.max(axis=-1, initial=0.0) + 1)
        error = moved + sums / (1 - model.gamma(count)) + lost
        error = np.where(np.isnan(error), np.inf, error)
    return error * SLACK, (size * (1 + 4 * model.gamma(held + 1)) + lost) * SLACK


def _moved_and_size(
    log_weights: np.ndarray,
    error: np.ndarray,
    away: tuple[np.ndarray, np.ndarray],
    value_error: float | np.ndarray,
    values: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds on |sum w~_k v~_k - r| and on sum w~_k |v~_k|, v~_k being off by value_error, for |lambda_k| <= error."""
    low, high = away
    with np.errstate(all="ignore"):  # what is not finite, or no number, becomes infinite
        share = -np.expm1(-error)
        weights, raised = (np.exp(one) + UNDERFLOW for one in (log_weights, log_weights + error))
        grown, shrunk = raised * share, weights * share
        kept = 1 - shrunk.sum(axis=-1) * SLACK
        heavy = np.minimum(raised / kept[..., None], 1.0)  # no w~_k is above 1
        moved = np.maximum(_moved(grown, shrunk, low, high, kept), _moved(grown, shrunk, -high, -low, kept))
        found = moved + (heavy * value_error).sum(axis=-1), (heavy * (values + value_error)).sum(axis=-1)
        return tuple(np.where((kept > 1e-3) & ~np.isnan(one), one, np.inf) for one in found)  # type: ignore[return-value]


def _moved(grown: np.ndarray, shrunk: np.ndarray, low: np.ndarray, high: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """b of the lemma, a little more: for d_k between low and high, grown >= w_k (e^(Lambda_k) - 1) and shrunk >= w_k
    (1 - e^(-Lambda_k)), which add up to at most 1 - kept.

    A key's term is convex in d_k, so largest at low or at high. The left side less b is convex in b, with slopes of
    at most -kept everywhere: Newton's steps from 0 stay below its zero, which is no further than it is there over kept.
    """
    b = np.zeros(low.shape[:-1])
    for left in reversed(range(STEPS + 1)):
        rising, falling = shrunk * (b[..., None] - low), grown * (high - b[..., None])
        excess = np.maximum(np.maximum(rising, falling).sum(axis=-1) * SLACK - b, 0.0)
        b = b + excess / (1 - np.where(rising > falling, shrunk, -grown).sum(axis=-1) if left else kept)
    return b * SLACK
