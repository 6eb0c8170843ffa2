"""Heads of two keys as sigmoids, which the evaluation "direct" computes where a file says so: how far they are off.

A file stores them among its series: the keys of the head, and numbers of the dtype with which it hands on, as a read,

    y = shift + scale sigmoid(x),   x = rate t + lead,   sigmoid(x) = 1 / (1 + exp(-x)), exp within 4 ulp,

each operation rounded, fused or not. With the keys sorted by slope, a = a_2 - a_1 > 0 and g = g_2 - g_1,

    r(t) = v_1 + (v_2 - v_1) sigmoid(a t + g).

Lemma. |y - r(t)| <= error for every t of [low, high].

Proof. Before it is rounded, x is off a t + g by at most A |t| + B (`tilt` and `slid`): A has |rate - a| and a rounding
of the product, unless rate is a power of two, and B is |lead - g|. Unless lead is 0, the sum is off by u of itself.
|t| <= (|a t + g| + |g|) / a. Since sigmoid' <= 1/4, |x| sigmoid'(x) < 0.224 and |(log sigmoid')'| <= 1, where x moves
by no more than m this moves the sigmoid by at most e^m (A (0.224 + |g| / 4) / a + B / 4 + 0.224 u). With e = exp(-x),
off by a factor 1 + d, 1 + e is off by one of 1 + (1 - sigmoid) d, and two roundings follow: with s = sigmoid these are
s (1 - s) d + 2u s <= (d + 2u)^2 / 4d, but for products of roundings. Where e overflows both are below tiny.
scale s + shift is off v_1 + (v_2 - v_1) s by no more than it is where s is 0 or 1. Keys of the head that are left out
weigh less than e^-SILENT.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from anchorhead.verify.errors import require
from anchorhead.verify.rounding import SLACK, Arithmetic, power_of_two

Keys = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Slopes, offsets and values."""


@dataclass(frozen=True)
class TwoKeys:
    """See above; keys: two triples of a slope, an offset and a value."""

    keys: tuple[tuple[float, ...], ...]
    rate: float
    lead: float
    scale: float
    shift: float

    def read(self, keys: Keys, low: float, high: float, model: Arithmetic, softmax: bool) -> tuple[float, float, None]:
        """The lemma's error for a head of these keys, and a bound on |y|; it is one of its softmax, always."""
        first, second = ([Fraction(x) for x in one] for one in self.keys)
        a, g, _ = (y - x for x, y in zip(first, second, strict=True))
        u, most = model.unit * SLACK, max(abs(low), abs(high))
        product, scaled = (~power_of_two(np.array([self.rate, self.scale]))).astype(float).tolist()
        summed = u * (self.lead != 0)
        tilt = (_apart(self.rate, a) + product * u * abs(self.rate)) * (1 + u)
        slid = _apart(self.lead, g) * (1 + u) + 4 * model.tiny
        moved = tilt * most + slid + summed * (float(a) * most + abs(float(g)))
        require(moved < 1, "direct: a sigmoid whose logit is lost")
        sigmoid = math.exp(moved) * (tilt * (0.224 + abs(float(g)) / 4) / float(a) + slid / 4 + summed * 0.224)
        d = math.expm1(model.exp_error)
        sigmoid += (d + 2 * u) ** 2 / (4 * d) * (1 + 32 * u) + 4 * model.tiny
        ends = max(_apart(self.shift, first[2]), _apart(Fraction(self.scale) + Fraction(self.shift), second[2]))
        size = float(max(abs(first[2]), abs(second[2])))
        error = abs(self.scale) * (sigmoid + scaled * u * (1 + sigmoid)) + ends + 4 * model.tiny * (1 + size)
        error = (error + u * (size + error)) * SLACK**4
        require(abs(self.scale) + abs(self.shift) + size < model.largest / 4, f"direct: overflow in {model.dtype}")
        return error, (size + error) * SLACK, None


def _apart(number: Any, exact: Fraction) -> float:
    return abs(float(Fraction(number) - exact)) * SLACK


def read_two_keys(row: dict[str, Any], keys: tuple[tuple[float, ...], ...], dtype: str) -> TwoKeys:
    """As a file stores it, with its keys."""
    numbers = [float(row[name]) for name in ("rate", "lead", "scale", "shift")]
    require(bool(np.isfinite(numbers).all()), "two keys of numbers that are none")
    fits = len(keys) == 2 and keys[0][0] != keys[1][0]
    require(fits, "two keys that are not two, or of one slope")  # a head whose slopes are all 0 is looked at no further
    held = all(float(np.dtype(dtype).type(one)) == one for one in numbers)
    require(held, f"two keys with numbers that are none of {dtype}")
    return TwoKeys(keys, *numbers)
