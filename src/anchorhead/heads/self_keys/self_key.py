"""Heads in which the token is an anchor itself: its own key stands beside the registers', its value is its own s.

    r(s) = skip s + bias + (own_value s e^z + sum_k v_k e^(z_k)) / (e^z + sum_k e^(z_k)),
    z_k = slopes_k s + offsets_k,   z = own_slope s + own_offset

The mask is "self+registers". Where the own key has the largest slope and the register of the least slope the value 0,
r(s) tends to s on the right and to 0 on the left, as gelu and its like do: the error, relative to max(1, |s|), is small
on the whole line, no range is needed, and rounding is relative to |s| too. silu (own slope 1 against one register of
value 0) is exact; relu errs by 0.28 / own_slope.

If all slopes are whole multiples of one step, all exponentials are powers of one: with y = e^(step s) the softmax is a
quotient of polynomials in y with positive denominator (`powers`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from anchorhead.heads.atom import Dtype, softmax
from anchorhead.read_only import ReadOnly


@dataclass(frozen=True, eq=False)
class Own:
    """The token's own key: its logit is slope s + offset, its value is value times s."""

    slope: float
    offset: float
    value: float


@dataclass(frozen=True, eq=False)
class SelfKeyHead(ReadOnly):
    """One softmax over p registers and, unless `own` is None, the token itself.

    slopes, offsets, values   of the registers, as the dtype stores them
    step                      all slopes are whole multiples of it, exactly; 0 where they are not
    low, high                 where the bounds hold; infinite for the whole line
    exact, rounding           proven bounds on |function - r| and |computed r - r|, divided by max(1, |s|)
    """

    function: str
    slopes: Float[np.ndarray, " p"]
    offsets: Float[np.ndarray, " p"]
    values: Float[np.ndarray, " p"]
    own: Own | None
    skip: float
    bias: float
    step: float
    low: float
    high: float
    dtype: Dtype
    exact: float
    rounding: float

    @property
    def registers(self) -> int:
        return len(self.slopes)

    @property
    def anchors(self) -> int:
        return self.registers + (self.own is not None)

    @property
    def keys(self) -> tuple[Float[np.ndarray, " keys"], Float[np.ndarray, " keys"], Float[np.ndarray, " keys"]]:
        """Slopes, offsets and values in float64, of the registers and, last, of the own key (its value times s)."""
        columns = [np.asarray(column, np.float64) for column in (self.slopes, self.offsets, self.values)]
        if self.own is not None:
            own = (self.own.slope, self.own.offset, self.own.value)
            columns = [np.append(column, number) for column, number in zip(columns, own, strict=True)]
        return columns[0], columns[1], columns[2]

    @property
    def bound(self) -> float:
        """|function - computed r| <= bound max(1, |s|) for every s of the dtype in [low, high]."""
        return (self.exact + self.rounding) * (1 + 1e-15)

    def __call__(self, s: Any) -> Float[np.ndarray, "..."]:
        """r(s) in float64, entry by entry, by the formula above: for study and tests."""
        s = np.asarray(s, np.float64)
        slopes, offsets, values = self.keys
        read = softmax(s[..., None] * slopes + offsets) * values
        if self.own is not None:
            read[..., -1] *= s
        return self.skip * s + self.bias + read.sum(axis=-1)
