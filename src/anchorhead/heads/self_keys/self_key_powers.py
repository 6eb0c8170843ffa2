"""A head with its own key as a quotient of two polynomials: one exponential, whatever the number of registers.

All slopes are whole multiples of one step, so with y = e^(rate t), rate = -step or step,

    r(s) = skip s + bias + N / D,     D = sum_k denominator_k y^k
                                      N = sum_k numerator_k y^k + own s y^own_index

where t is s clipped to [low, high], beyond which one key has all the weight, up to less than rounding. Both sums are
evaluated by Horner's rule, from the highest power down to the constant. The sign of the rate makes the own key the
constant term where it has the largest slope: for large s, r = own s / denominator_0, and nothing has been rounded on
the way. Its coefficient is a power of two, so that own s is exact if the own value is 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from anchorhead.errors import AnchorheadError
from anchorhead.heads.arithmetic import arithmetic_of
from anchorhead.heads.atom import Dtype
from anchorhead.heads.self_keys.self_key import SelfKeyHead
from anchorhead.read_only import ReadOnly, read_only

MAX_POWERS = 64
# The own coefficient is 2 to one of these: own s stays a factor 4 below overflow for every s of the dtype, and the more
# powers there are, the more room they need above.
_EXPONENTS = (-2, -30, -60, -80)
_ROOM = 2.0**16  # between the numbers that occur and the ends of the dtype's range
# Of a unit round-off: what a clipped query may leave of the other keys' weights; the first for which nothing overflows.
_SHARES = (2.0**-100, 2.0**-70, 2.0**-50, 2.0**-35, 2.0**-25, 2.0**-18, 2.0**-12)
_LARGER_SHARES = (2.0**-8, 2.0**-4, 1.0, 2.0**4)


@dataclass(frozen=True, eq=False)
class Powers(ReadOnly):
    """The numbers that the powers path computes with, as the dtype stores them.

    rate               y = exp(rate clip(s, low, high))
    denominator        of y^k, k = 0 … n - 1; positive, or 0 where no key has this slope
    numerator          of y^k, without the own key
    own, own_index     the own key adds own s to the coefficient of y^own_index; own = 0 if there is no own key
    skip, bias         r = skip s + bias + N / D
    """

    rate: float
    low: float
    high: float
    denominator: Float[np.ndarray, " n"]
    numerator: Float[np.ndarray, " n"]
    own: float
    own_index: int
    skip: float
    bias: float
    dtype: Dtype

    def __call__(self, s: Any) -> Float[np.ndarray, "..."]:
        """r(s) in the dtype, entry by entry, by Horner's rule without fused operations."""
        kind = np.dtype(self.dtype).type
        s = np.asarray(s, self.dtype)
        y = np.exp(kind(self.rate) * np.clip(s, kind(self.low), kind(self.high)))
        n, d = np.zeros_like(y), np.zeros_like(y)
        for k in reversed(range(len(self.denominator))):
            constant = self.numerator[k] + kind(self.own) * s if k == self.own_index and self.own else self.numerator[k]
            n, d = n * y + constant, d * y + self.denominator[k]
        return (kind(self.skip) * s + kind(self.bias)) + n / d


def powers(head: SelfKeyHead) -> Powers:
    """The head as a quotient of polynomials; an AnchorheadError if its slopes have no common step."""
    slopes, offsets, values = head.keys
    places = _places(head, slopes)
    upwards = head.own is not None and places[-1] == 0 and places.max() > 0
    powers_of = places if upwards else places.max() - places
    rate = head.step if upwards else -head.step
    reference = offsets[-1] if head.own is not None else offsets[powers_of.argmin()]
    exponent, low, high = _room(head, offsets - reference, powers_of, rate)

    coefficients = np.exp(offsets - reference + exponent * math.log(2))
    coefficients[offsets == reference] = 2.0**exponent
    registers = head.registers
    denominator, numerator = np.zeros(powers_of.max() + 1), np.zeros(powers_of.max() + 1)
    np.add.at(denominator, powers_of, coefficients)
    np.add.at(numerator, powers_of[:registers], (coefficients * values)[:registers])
    return Powers(
        rate=rate,
        low=low,
        high=high,
        denominator=_stored(denominator, head.dtype),
        numerator=_stored(numerator, head.dtype),
        own=float(np.dtype(head.dtype).type(coefficients[-1] * values[-1])) if head.own is not None else 0.0,
        own_index=int(powers_of[-1]) if head.own is not None else 0,
        skip=head.skip,
        bias=head.bias,
        dtype=head.dtype,
    )


def _places(head: SelfKeyHead, slopes: Float[np.ndarray, " keys"]) -> np.ndarray:
    """The whole numbers n_k with slopes_k = least slope + n_k step."""
    if not head.step > 0:
        raise AnchorheadError(f"the slopes of this head for {head.function} have no common step: it has no powers")
    places = np.round(slopes / head.step)
    if not (places * head.step == slopes).all():
        raise AnchorheadError(f"step={head.step!r} does not divide the slopes {slopes.tolist()}: give step=0")
    places = (places - places.min()).astype(int)
    if places.max() > MAX_POWERS:
        raise AnchorheadError(f"{places.max()} powers, at most {MAX_POWERS} are computed: give step=0")
    return places


def _room(
    head: SelfKeyHead, logs: Float[np.ndarray, " keys"], powers_of: np.ndarray, rate: float
) -> tuple[int, float, float]:
    """The exponent of the own coefficient, and the ends of the query, for which nothing leaves the dtype's range."""
    slopes, offsets, values = head.keys
    for shares in (_SHARES, _LARGER_SHARES):
        for exponent in _EXPONENTS:
            shifted = logs + exponent * math.log(2)
            ends = []
            for side in (-1, 1):
                tried = (_limit(head, slopes, offsets, values, side, share) for share in shares)
                ends += [end for end in tried if _fits(head.dtype, shifted, values, powers_of, rate * end)][:1]
            if len(ends) == 2:
                return exponent, ends[0], ends[1]
    raise AnchorheadError(f"the powers of this head for {head.function} leave the range of {head.dtype}: give step=0")


def _limit(
    head: SelfKeyHead,
    slopes: Float[np.ndarray, " keys"],
    offsets: Float[np.ndarray, " keys"],
    values: Float[np.ndarray, " keys"],
    side: int,
    share: float,
) -> float:
    """Where on this side all keys but the steepest have lost their weight: a dyadic number with few bits."""
    top = int((side * slopes).argmax())
    fall, start = np.abs(slopes - slopes[top]), offsets - offsets[top]
    others = fall > 0
    if not others.any():
        return float(side)
    away = np.maximum(np.abs(values) + abs(values[top]), 1e-300)[others] * others.sum()
    goal = math.log(share * arithmetic_of(head.dtype).unit)
    needed = float(((start[others] + np.log(away) - goal) / fall[others]).max())
    needed = max(needed, 1 / float(fall.max()))
    scale = 2.0 ** (math.frexp(abs(needed))[1] - 6)
    return side * math.ceil(needed / scale) * scale


def _fits(
    dtype: Dtype,
    logs: Float[np.ndarray, " keys"],
    values: Float[np.ndarray, " keys"],
    powers_of: np.ndarray,
    exponent: float,
) -> bool:
    """Whether all coefficients, and all powers and sums at y = e^exponent, keep away from overflow and underflow."""
    info, room = np.finfo(dtype), math.log(_ROOM)
    largest = logs + powers_of * max(exponent, 0.0) + np.log1p(np.abs(values)) + math.log(len(logs))
    top, bottom = math.log(float(info.max)) - room, math.log(float(info.tiny)) + room
    return bool(largest.max() <= top and logs.min() >= bottom and exponent >= bottom)


def _stored(array: Float[np.ndarray, " n"], dtype: Dtype) -> Float[np.ndarray, " n"]:
    return read_only(array.astype(dtype))
