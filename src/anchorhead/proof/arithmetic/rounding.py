"""Rounding, written once: bounds on |what the dtype computes - what exact arithmetic would|.

All functions take and return float64 arrays of magnitudes; `arithmetic` carries the unit round-off u of the dtype.
Those for a softmax are in `heads.softmax_rounding`, because the solver estimates with them.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from anchorhead.heads.softmax_rounding import logit_error, softmax_read_error
from anchorhead.proof.arithmetic.arithmetic import Arithmetic

__all__ = ["affine_error", "constant_dot_error", "dot_error", "exact_factor", "logit_error", "softmax_read_error"]


def exact_factor(a: np.ndarray | np.floating | float) -> Bool[np.ndarray, "..."]:
    """Whether a product with this factor is exact: 0 and powers of two (underflow aside)."""
    mantissa, _ = np.frexp(a)
    return np.asarray((a == 0) | (np.abs(mantissa) == 0.5))


def dot_error(
    terms: Float[np.ndarray, "... n"],
    exact: Bool[np.ndarray, "... n"],
    result: Float[np.ndarray, "..."],
    arithmetic: Arithmetic,
) -> Float[np.ndarray, "..."]:
    """The error of sum_j t_j, t_j = a_j b_j, from |t_j|, whether each product is exact, and |sum|.

    A product that is not exact errs by u |t_j|. Terms that are 0 cost nothing. Of the others, one needs no addition;
    two need one, with error u |sum|; n in any order err by gamma_(n-1) sum |t_j|. What falls below the smallest normal
    number may become 0: a product that is so small, or a sum.
    """
    u = arithmetic.unit
    products = u * np.where(exact, 0.0, terms).sum(axis=-1)
    count = (terms != 0).sum(axis=-1)
    two = u * (np.abs(result) + products)
    many = arithmetic.gamma(np.maximum(count - 1, 0)) * (terms.sum(axis=-1) + products)
    lost = arithmetic.tiny * (((terms != 0) & (terms < 2 * arithmetic.tiny)).sum(axis=-1) + np.maximum(count - 1, 0))
    return products + np.where(count <= 1, 0.0, np.where(count == 2, two, many)) + lost


def constant_dot_error(
    weight: Float[np.ndarray, "rows features"], x: Float[np.ndarray, "tokens features"], arithmetic: Arithmetic
) -> Float[np.ndarray, "tokens rows"]:
    """`dot_error` of W x for vectors of constants: nothing for rows that pick one of them by a power of two."""
    sizes, vectors = np.abs(weight), np.abs(x)
    smallest = [float(array[array > 0].min(initial=np.inf)) for array in (sizes, vectors)]
    added = (vectors > 0).astype(float) @ (sizes > 0).T.astype(float) > 1
    rounded = np.where(exact_factor(vectors), 0.0, 1.0) @ np.where(exact_factor(sizes), 0.0, 1.0).T > 0
    looked_at = (added | rounded).any(axis=0) | (smallest[0] * smallest[1] < 2 * arithmetic.tiny)
    error = np.zeros(added.shape)
    for row in np.flatnonzero(looked_at):
        terms = x * weight[row]
        exact = exact_factor(x) | exact_factor(weight[row])
        if arithmetic.dtype == "float32":
            exact |= terms.astype(np.float32) == terms
        error[:, row] = dot_error(np.abs(terms), exact, terms.sum(axis=1), arithmetic)
    return error


def affine_error(
    weight: Float[np.ndarray, "... outputs inputs"],
    bias: Float[np.ndarray, "... outputs"] | None,
    size: Float[np.ndarray, "... inputs"],
    arithmetic: Arithmetic,
) -> Float[np.ndarray, "... outputs"]:
    """The rounding of W x + b, in any order, for |x| <= size: gamma_n (|W| |x| + |b|), n terms that are not 0."""
    reach = np.einsum("...oi,...i->...o", np.abs(weight), size)
    terms = (weight != 0).sum(axis=-1)
    if bias is not None:
        reach, terms = reach + np.abs(bias), terms + 1
    return arithmetic.gamma(terms) * reach + terms * arithmetic.tiny
