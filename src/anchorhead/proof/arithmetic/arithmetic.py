"""The model of arithmetic that proofs allow for (heads.arithmetic), and a test of it on the machine at hand."""

from __future__ import annotations

from functools import cache

import flint
import numpy as np
import torch

from anchorhead.decimals import UP
from anchorhead.errors import AnchorheadError
from anchorhead.heads.arithmetic import EXP_ULPS, FLOAT32, FLOAT64, Arithmetic, arithmetic_of
from anchorhead.language.expressions.precision import precision

__all__ = ["EXP_ULPS", "FLOAT32", "FLOAT64", "UP", "Arithmetic", "arithmetic_of", "exp_ulps_here", "require_model"]


@cache
@precision(128)
def exp_ulps_here(dtype: str) -> float:
    """The largest error of exp, in ulps, that softmax shows on this machine, at a few thousand points.

    In a softmax of (0, z, z', ...) with all z far below 0 the sum rounds to 1, so the weights are the exponentials;
    along a last axis and along a first, for which torch has code of its own. So is a sigmoid, but for the rounding of
    one over it.
    """
    kind = getattr(torch, dtype)
    lowest = -80.0 if dtype == "float32" else -700.0
    z = torch.linspace(lowest, -45.0, 15 * 128, dtype=kind).reshape(128, 15)
    logits = torch.cat([torch.zeros_like(z[:, :1]), z], dim=1)
    last, first = torch.softmax(logits, dim=1), torch.softmax(logits.T.contiguous(), dim=0).T
    found_here = [one.double().numpy().ravel() for one in (last[:, 1:], first[:, 1:], torch.sigmoid(z))]
    mantissa = 24 if dtype == "float32" else 53
    worst = 0.0
    for point, *both in zip(z.double().numpy().ravel(), *found_here, strict=True):
        exact = flint.arb(float(point)).exp()
        ulp = 2.0 ** (np.frexp(float(exact.mid()))[1] - mantissa)
        worst = max(worst, *(float(abs((flint.arb(float(found)) - exact) / ulp).upper()) for found in both))
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
