"""Averages over the examples of a prompt by which the error of a step is bounded: see proof.descent.descent_squared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from anchorhead.proof.arithmetic.arithmetic import UP

Weights = Float[np.ndarray, " weights"]
Examples = Float[np.ndarray, " n"]


@dataclass(frozen=True)
class Moments:
    """Bounds on averages over the examples of a prompt, at the weights where a step begins.

    x, xr, xr3, xr5   mean |x_j|, mean |x_j||r|, mean |x_j||r|^3, mean |x_j||r|^5, for each entry of w
    r2, r4, most      mean r^2, mean r^4, max |r|
    terms             max_i |w|.|x_i| + |y_i|
    w, v              |w_j| and |v_j|
    examples          how many there are
    e, most_e         mean e, max e, where r itself is known to the heads only up to e
    xe                mean |x_j| e, for each entry of w
    """

    x: Weights
    xr: Weights
    xr3: Weights
    xr5: Weights
    r2: float
    r4: float
    most: float
    terms: float
    w: Weights
    v: Weights
    examples: int
    e: float = 0.0
    most_e: float = 0.0
    xe: Weights | float = 0.0

    @classmethod
    def of(
        cls,
        size: Float[np.ndarray, "n weights"],
        r: Examples,
        w: Weights,
        v: Weights,
        terms: float | None = None,
        wrong: Examples | None = None,
    ) -> Moments:
        """Of a prompt with |x_ij| <= size_ij and |r_i| <= r_i.

        terms   as above; max |r| where not given
        wrong   e_i; none: r is known
        """
        n, r2, e = len(size), r * r, np.zeros(len(r)) if wrong is None else wrong
        means = [UP * (size.T @ power) / n for power in (np.ones(n), r, r * r2, r * r2 * r2)]
        most = UP * float(r.max())
        return cls(
            *means,
            r2=UP * float(r2.mean()),
            r4=UP * float((r2 * r2).mean()),
            most=most,
            terms=most if terms is None else UP * terms,
            w=w,
            v=v,
            examples=n,
            e=UP * float(e.mean()),
            most_e=UP * float(e.max()),
            xe=UP * (size.T @ e) / n,
        )

    @classmethod
    def in_box(
        cls, x: Weights, rms: float, most: float, terms: float, w: float, v: float, examples: int, wrong: float = 0.0
    ) -> Moments:
        """Of every prompt with |x_ij| <= x_j, mean r^2 <= rms^2 and |r_i| <= most, known up to `wrong`."""
        rms, most = np.float64(rms), np.float64(most)  # whose powers become infinite where Python's raise
        return cls(
            x=x,
            xr=x * rms,
            xr3=x * most * rms**2,
            xr5=x * most**3 * rms**2,
            r2=rms**2,
            r4=most**2 * rms**2,
            most=most,
            terms=terms,
            w=np.full_like(x, w),
            v=np.full_like(x, v),
            examples=examples,
            e=wrong,
            most_e=wrong,
            xe=x * wrong,
        )
