"""Heads of two keys as sigmoids (network.direct.two_keys): the numbers of the dtype that are closest, and how far off.

In exact arithmetic the head is v_1 + (v_2 - v_1) sigmoid(x), x = a t + g with the differences a of slopes and g of
offsets. With d = sup |computed x - x| sigmoid'(x), where |t| <= (|x| + |g|) / a, sigmoid' <= 1/4, |x| sigmoid' < 0.224,

    |computed sigmoid - sigmoid(x)|  <=  d + E sigmoid (1 - sigmoid) + 2 u sigmoid  <=  d + (E + 2u)^2 / 4E,

since 1 + e^-x errs by E (1 - sigmoid) of itself where e^-x errs by E; products with powers of two, and sums with 0,
round nothing. Powers of two that are a few units away may be better than the closest numbers.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np

from anchorhead.network.direct import TwoKeys
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic, arithmetic_of

UNITS = 8
"""By which a power of two may be off."""
Keys = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Slopes, offsets and values, in float64."""


def two_keys(keys: Keys, reach: float, dtype: str) -> tuple[TwoKeys, float] | None:
    """The sigmoid of a head for |t| <= reach, and how far what it reads may be off; None: other keys than two."""
    if len(keys[0]) != 2 or keys[0][0] == keys[0][1]:
        return None
    (a, g, v), model = ([Fraction(x) for x in one.tolist()] for one in keys), arithmetic_of(dtype)
    rates, leads, scales = (_near(one[1] - one[0], dtype) for one in (a, g, v))
    shift = float(v[0])
    slopes, offsets, values = (tuple(one.tolist()) for one in keys)
    every = [TwoKeys(slopes, offsets, values, *numbers, shift) for numbers in product(rates, leads, scales)]
    return min(((one, _error(one, reach, model)) for one in every), key=lambda pair: pair[1])


def _near(exact: Fraction, dtype: str) -> list[float]:
    """The closest number of the dtype, and a power of two, or 0, that is as good as that."""
    number, unit = float(np.dtype(dtype).type(float(exact))), arithmetic_of(dtype).unit
    rounder = float(np.sign(number)) * 2.0 ** float(np.round(np.log2(abs(number)))) if number else 0.0
    found = [number, rounder] if abs(rounder - number) <= UNITS * unit * abs(number) else [number]
    return [*found, 0.0] if abs(number) <= unit else found


def _error(found: TwoKeys, reach: float, model: Arithmetic) -> float:
    (a, g, v), u = ([Fraction(x) for x in one] for one in (found.slopes, found.offsets, found.values)), model.unit
    slope, offset, rise = (float(one[1] - one[0]) for one in (a, g, v))
    tilt = _off(found.rate, a[1] - a[0]) + _rounds(found.rate) * u * abs(found.rate)
    moved, summed = _off(found.lead, g[1] - g[0]) + 4 * model.tiny, u * (found.lead != 0)
    if not tilt * reach + moved + summed * (abs(slope) * reach + abs(offset)) < 1e-3:
        return np.inf
    d = (tilt * (0.224 + abs(offset) / 4) / abs(slope) + moved / 4 + 0.224 * summed) * 1.002
    sigmoid = d + (model.exp_error + 2 * u) ** 2 / (4 * model.exp_error) * (1 + 1e-4) + 4 * model.tiny
    most = max(abs(float(one)) for one in v)
    apart = max(_off(found.shift, v[0]), _off(Fraction(found.scale) + Fraction(found.shift), v[1]))
    read = abs(rise) * (1 + 1e-4) * (sigmoid + _rounds(found.scale) * u) + apart + 4 * model.tiny * (1 + most)
    return (read + u * (most + read)) * UP


def _rounds(factor: float) -> int:
    return int(abs(np.frexp(factor)[0]) != 0.5)


def _off(number: float | Fraction, exact: Fraction) -> float:
    return abs(float(Fraction(number) - exact)) * UP
