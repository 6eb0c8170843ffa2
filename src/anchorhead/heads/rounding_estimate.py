"""How far a dtype's evaluation of an atom may lie from exact arithmetic, point by point.

For one softmax with logits z = alpha t + gamma, t = s - origin, and unit round-off u (any order of
summation, FMA or not, exp within kappa ulp, underflow gradual or flushed):

    D = max z - z,   w = softmax z,   r = sum_k w_k v_k
    Delta_k  = u |alpha_k t| + u (1+u) |z_k|                             the logit
    Lambda_k = Delta_k + u (D_k + Delta_k + max Delta) + 2 kappa u / (1 - 2 kappa u)     its exponential, as
    a factor A = sum w_k (e^Lambda_k - 1) |v_k - r| / (1 - sum w_k (e^Lambda_k - 1)) B = sum_{k!=j} om_k
    |v_k - r| / max(w_j, 1 - sum_{k!=j} om_k),  j = argmax w,  om_k = w_k (e^(Lambda_k + Lambda_j) - 1) P =
    min(A, B),  Wt = sum w|v| + sum_{k!=j} om_k ||v_k| - sum w|v|| / (B's denominator) error <= P +
    (gamma_{p+1} Wt + gamma_{p-1} (|r| + P)) / (1 - gamma_{p-1}) + 4 p tiny max|v|

A subtraction t = fl(s - origin) that is not exact moves every logit by alpha_k t u; a shift that all logits
share changes no softmax, so it adds u |t| |alpha_k - sum w alpha| to Delta_k. It is exact for s/2 <= origin
<= 2s (Sterbenz).
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from anchorhead.heads.atom import Arrays, Atom, Dtype, Part

KAPPA = 4.0  # ulp of exp, as the arithmetic model of our certificates has it
TINY = {"float32": float(np.finfo(np.float32).tiny), "float64": float(np.finfo(np.float64).tiny)}
UNIT = {"float32": 2.0**-24, "float64": 2.0**-53}


def gamma(n: int, u: float) -> float:
    """gamma_n = n u / (1 - n u), the factor of n roundings in a row."""
    return n * u / (1 - n * u)


def rounding_bound(
    part: Part, s: Float[np.ndarray, " n"], dtype: Dtype, origin: float = 0.0, kappa: float = KAPPA
) -> Float[np.ndarray, "n m"]:
    """The bound above for one part at the points s."""
    return bound_of_arrays(*part.astype(np.float64), s, dtype, origin, kappa)[0]


def rounding(atom: Atom, s: Float[np.ndarray, " n"], kappa: float = KAPPA) -> Float[np.ndarray, "n m"]:
    """The bound for all parts of an atom, and for adding them and the bias."""
    arrays = [part.astype(np.float64) for part in atom.parts]
    return total_bound(arrays, atom.bias.astype(np.float64), s, atom.dtype, atom.origin, kappa)


def total_bound(
    arrays: list[Arrays],
    bias: Float[np.ndarray, " m"],
    s: Float[np.ndarray, " n"],
    dtype: Dtype,
    origin: float,
    kappa: float = KAPPA,
) -> Float[np.ndarray, "n m"]:
    """sum_parts bound + gamma_{a} sum |terms|, a the number of additions (one addition: 1.01 u |result|)."""
    u = UNIT[dtype]
    total = np.zeros((len(s), len(bias)))
    result, size = total + bias, total + np.abs(bias)
    for slopes, offsets, values in arrays:
        bound, r = bound_of_arrays(slopes, offsets, values, s, dtype, origin, kappa)
        total += bound
        result += r
        size += np.abs(r) + bound
    additions = len(arrays) - 1 + bool(np.any(bias))
    if additions <= 0:
        return total
    return total + (1.01 * u * (np.abs(result) + total) if additions == 1 else gamma(additions, u) * size)


def bound_of_arrays(
    slopes: Float[np.ndarray, " p"],
    offsets: Float[np.ndarray, " p"],
    values: Float[np.ndarray, "p m"],
    s: Float[np.ndarray, " n"],
    dtype: Dtype,
    origin: float = 0.0,
    kappa: float = KAPPA,
) -> tuple[Float[np.ndarray, "n m"], Float[np.ndarray, "n m"]]:
    """The bound for weights given as float64 arrays, and r(s) itself."""
    u, p = UNIT[dtype], len(slopes)
    t = s - origin
    product = t[:, None] * slopes
    z = product + offsets
    gap = z.max(axis=1, keepdims=True) - z
    logw = -gap - np.log(np.exp(-gap).sum(axis=1, keepdims=True))
    w = np.exp(logw)
    r = w @ values

    delta = u * (1 + 2 * u) * np.abs(product) + u * (1 + 2 * u) * np.abs(z) + 2 * TINY[dtype]
    if origin != 0.0:
        inexact = (s * origin <= 0) | (np.abs(s) > 2 * abs(origin)) | (2 * np.abs(s) < abs(origin))
        spread = np.abs(slopes - (w @ slopes)[:, None])
        delta += np.where(inexact, u * np.abs(t), 0.0)[:, None] * spread
    lam = delta + u * (gap + delta + delta.max(axis=1, keepdims=True)) + 2 * kappa * u / (1 - 2 * kappa * u)

    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        bound = _of_factors(w, logw, lam, values, r, u)
    bound = np.where(np.isnan(bound), np.inf, bound)
    return bound + 4 * p * TINY[dtype] * np.abs(values).max(axis=0), r


def _of_factors(
    w: np.ndarray, logw: np.ndarray, lam: np.ndarray, values: np.ndarray, r: np.ndarray, u: float
) -> Float[np.ndarray, "n m"]:
    """P + (gamma_{p+1} Wt + gamma_{p-1} (|r| + P)) / (1 - gamma_{p-1})."""
    rows, j, p = np.arange(len(w)), np.argmax(w, axis=1), w.shape[1]
    away = np.abs(values[None] - r[:, None, :])
    grown = _grown(w, logw, lam)
    left = 1 - grown.sum(axis=1)
    a = np.where((left > 0)[:, None], np.einsum("nk,nkm->nm", grown, away) / left[:, None], np.inf)

    om = _grown(w, logw, lam + lam[rows, j][:, None])
    om[rows, j] = 0.0
    base = np.maximum(w[rows, j], 1 - om.sum(axis=1))[:, None]
    b = np.einsum("nk,nkm->nm", om, away) / base
    size = np.abs(values)
    mean = w @ size
    weight = mean + np.einsum("nk,nkm->nm", om, np.abs(size[None] - mean[:, None, :])) / base

    change = np.fmin(a, b)
    few, many = gamma(max(p - 1, 0), u), gamma(p + 1, u)
    return change + (many * weight + few * (np.abs(r) + change)) / (1 - few)


def _grown(w: np.ndarray, logw: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """w (e^lam - 1), from log w where e^lam may overflow."""
    return np.where(lam > 1, np.exp(logw + lam) - w, w * np.expm1(np.minimum(lam, 1.0)))
