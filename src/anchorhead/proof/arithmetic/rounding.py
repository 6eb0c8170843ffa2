"""Rounding, written once: bounds on |what the dtype computes - what exact arithmetic would|.

All functions take and return float64 arrays of magnitudes; `arithmetic` carries the unit round-off u of the dtype.
Those for a softmax are in `heads.softmax_rounding`, because the solver estimates with them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from anchorhead.proof.arithmetic.arithmetic import Arithmetic


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

    Terms that are 0 cost nothing. Of the others, one needs no addition; two need one, with error u |sum|; n in any
    order err by gamma_(n-1) sum |t_j|. A sum below the smallest normal number may become 0.
    """
    products = product_error(terms, exact, arithmetic)
    additions = np.maximum((terms != 0).sum(axis=-1) - 1, 0)
    one = arithmetic.unit * (np.abs(result) + products)
    many = arithmetic.gamma(additions) * (terms.sum(axis=-1) + products)
    summed = np.where(additions == 0, 0.0, np.where(additions == 1, one, many))
    return products + summed + additions * arithmetic.tiny


def product_error(
    terms: Float[np.ndarray, "... n"], exact: Bool[np.ndarray, "... n"], arithmetic: Arithmetic
) -> Float[np.ndarray, "..."]:
    """The errors of products of these sizes, together: u |t_j| where one is not exact; and those below the smallest
    normal number may become 0."""
    lost = ((terms != 0) & (terms < 2 * arithmetic.tiny)).sum(axis=-1)
    return arithmetic.unit * np.where(exact, 0.0, terms).sum(axis=-1) + arithmetic.tiny * lost


def sum_error(terms: Any, size: Any, arithmetic: Arithmetic) -> Float[np.ndarray, "..."]:
    """The error of a sum of so many products, in any order, whose absolute values add up to `size`: gamma_n size, and
    what falls below the smallest normal number."""
    return np.asarray(arithmetic.gamma(terms) * size + terms * arithmetic.tiny)


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
