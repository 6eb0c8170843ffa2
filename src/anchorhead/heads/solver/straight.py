"""A straight line as one softmax, in closed form.

With y = e^(h x) and n = q - 1, the [n/n] Padé approximant of log y at y = 1 has the denominator sum_k
C(n,k)^2 y^k (a Legendre polynomial). All its coefficients are positive, so it is a softmax: slopes h (k -
n/2), offsets 2 ln C(n,k), and values from the numerator make

    r(x) = log(y) / h + O(h^(2n)) = x + O(h^(2n)).

Two anchors give tanh(h x / 2) * 2 / h, three cancel the h^2 term, four the h^4 term too. Values grow like
1/h and carry round-off, so the best h is where both errors meet.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize_scalar

from anchorhead.heads.atom import Dtype, softmax
from anchorhead.heads.rounding_estimate import bound_of_arrays

Weights = tuple[Float[np.ndarray, " q"], Float[np.ndarray, " q"], Float[np.ndarray, " q"]]

_X = -np.cos(np.linspace(0, np.pi, 65))


def straight(q: int, h: float) -> Weights:
    """Slopes, offsets and values of a head with q anchors for x on [-1, 1]."""
    n = q - 1
    slopes = h * (np.arange(q) - n / 2)
    offsets = np.array([2 * np.log(comb(n, k)) for k in range(q)])
    w = softmax(_X[:, None] * slopes + offsets)
    odd = (np.eye(q) - np.eye(q)[:, ::-1])[:, n // 2 + 1 :]  # one free value for every positive slope
    free = np.linalg.lstsq(w @ odd, _X, rcond=1e-15)[0]
    return slopes, offsets, odd @ free


@lru_cache(maxsize=256)
def best_straight(q: int, dtype: Dtype, gates: int, max_value: float = np.inf) -> tuple[Weights, float]:
    """The head with the best h for a dtype, and its error on [-1, 1], rounding included.

    `gates` anchors of negligible weight will stand beside these: they lengthen the sums.
    """

    def total(log_h: float) -> float:
        slopes, offsets, values = straight(q, float(np.exp(log_h)))
        idle = np.full(gates, -1e4)
        bound, r = bound_of_arrays(
            np.append(slopes, np.zeros(gates)),
            np.append(offsets, idle),
            np.append(values, np.zeros(gates))[:, None],
            _X,
            dtype,
        )
        error = float((np.abs(r[:, 0] - _X) + bound[:, 0]).max())
        return float(np.log(error * max(1.0, np.abs(values).max() / max_value) ** 8))

    grid = np.linspace(-14, 1, 31)
    start = grid[int(np.argmin([total(g) for g in grid]))]
    found = minimize_scalar(total, bounds=(start - 0.5, start + 0.5), method="bounded", options={"xatol": 1e-2})
    return straight(q, float(np.exp(found.x))), float(np.exp(found.fun))
