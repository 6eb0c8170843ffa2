"""The model of floating-point arithmetic that proofs allow for, and a test of it on the machine at hand.

A network in dtype float32 or float64 is assumed to be computed with
  - sums and dot products in any order, with or without fused multiply-add, each operation rounded to nearest;
  - exp within `EXP_ULPS` units in the last place, softmax as exp(z - max z) divided by its sum;
  - gradual underflow or flush to zero;
  - no reduced-precision products (no TF32, no bfloat16 passes).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import flint
import numpy as np
import torch

from anchorhead.errors import AnchorheadError

EXP_ULPS = 4


@dataclass(frozen=True)
class Arithmetic:
    """unit: the relative error of one rounding, u. tiny: the smallest normal number."""

    dtype: str
    unit: float
    tiny: float

    @property
    def exp_error(self) -> float:
        """|log(computed exp / exp)| is at most this: an ulp is at most 2u."""
        return 2 * EXP_ULPS * self.unit / (1 - 2 * EXP_ULPS * self.unit)

    def gamma(self, n: int | np.ndarray) -> float | np.ndarray:
        """gamma_n = n u / (1 - n u), the relative error of n roundings in a row."""
        return n * self.unit / (1 - n * self.unit)

    def __str__(self) -> str:
        return (
            f"{self.dtype}, round to nearest, sums in any order, exp within {EXP_ULPS} ulp, "
            "underflow gradual or to zero, no reduced-precision products"
        )


FLOAT32 = Arithmetic("float32", 2.0**-24, 2.0**-126)
FLOAT64 = Arithmetic("float64", 2.0**-53, 2.0**-1022)


def arithmetic_of(dtype: str) -> Arithmetic:
    models = {model.dtype: model for model in (FLOAT32, FLOAT64)}
    if dtype not in models:
        raise AnchorheadError(f"dtype {dtype!r} is not certified: float32 and float64 are")
    return models[dtype]


@cache
def exp_ulps_here(dtype: str, device: str = "cpu") -> float:
    """The largest error of exp, in ulps, that softmax shows on this machine, at a few thousand points.

    In a softmax of (0, z, z', ...) with all z far below 0 the sum rounds to 1, so the weights are the exponentials.
    """
    kind = getattr(torch, dtype)
    lowest = -80.0 if dtype == "float32" else -700.0
    z = torch.linspace(lowest, -45.0, 15 * 128, dtype=kind, device=device).reshape(128, 15)
    weights = torch.softmax(torch.cat([torch.zeros_like(z[:, :1]), z], dim=1), dim=1)[:, 1:].cpu().double().numpy()
    mantissa = 24 if dtype == "float32" else 53
    worst = 0.0
    for point, found in zip(z.cpu().double().numpy().ravel(), weights.ravel(), strict=True):
        exact = flint.arb(float(point)).exp()
        ulp = 2.0 ** (np.frexp(float(exact.mid()))[1] - mantissa)
        worst = max(worst, float(abs((flint.arb(float(found)) - exact) / ulp).upper()))
    return worst


def require_model(dtype: str) -> Arithmetic:
    """The model for a dtype, after a test that this machine's softmax keeps to it."""
    model = arithmetic_of(dtype)
    if exp_ulps_here(dtype) > EXP_ULPS:
        raise AnchorheadError(
            f"this machine's {dtype} exp errs by {exp_ulps_here(dtype):.1f} ulp, more than the {EXP_ULPS} that a proof "
            "allows for: nothing can be proven for it here"
        )
    return model
