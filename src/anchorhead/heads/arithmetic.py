"""The model of floating-point arithmetic that bounds on rounding allow for.

A network in dtype float32 or float64 is assumed to be computed with
  - sums and dot products in any order, with or without fused multiply-add, each operation rounded to nearest;
  - exp within `EXP_ULPS` units in the last place, softmax as exp(z - max z) divided by its sum, sigmoid as
    1 / (1 + exp(-z));
  - gradual underflow or flush to zero;
  - no reduced-precision products (no TF32, no bfloat16 passes).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

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

    def gamma(self, n: Any) -> Any:
        """gamma_n = n u / (1 - n u), the relative error of n roundings in a row: a number, or an array of them.

        It is below 1 wherever it is given, since bounds divide by 1 - gamma_n.
        """
        most = float(n if isinstance(n, int | float) else np.max(n, initial=0.0))
        if not 2 * most * self.unit < 1:
            raise AnchorheadError(
                f"sums of {most:.3g} terms have no rounding bound in {self.dtype}, which takes fewer than "
                f"{0.5 / self.unit:.3g}: use {'float64' if self.dtype == 'float32' else 'fewer terms'}"
            )
        return n * self.unit / (1 - n * self.unit)

    def __str__(self) -> str:
        return (
            f"{self.dtype}, round to nearest, sums in any order, exp within {EXP_ULPS} ulp, "
            "underflow gradual or to zero, no reduced-precision products"
        )


FLOAT32 = Arithmetic("float32", 2.0**-24, 2.0**-126)
FLOAT64 = Arithmetic("float64", 2.0**-53, 2.0**-1022)
_MODELS = {model.dtype: model for model in (FLOAT32, FLOAT64)}


def arithmetic_of(dtype: str) -> Arithmetic:
    if dtype not in _MODELS:
        raise AnchorheadError(f"dtype {dtype!r} is not certified: float32 and float64 are")
    return _MODELS[dtype]
