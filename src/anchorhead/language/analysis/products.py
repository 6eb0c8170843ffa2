"""Products as differences of squares, both factors brought to one size by powers of two, which round nothing.

    a b  =  u v ((a/u + b/v)^2 - (a/u - b/v)^2)/4,         a b  =  (a - c)(b - d) + d a + c b - c d

Without u and v the smaller factor drowns in the squares of the larger: 1e8 times 1e-8 is 1, and the squares are 1e16.
Without c and d so do factors that vary little in what they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, frexp, isfinite, ldexp, log2

Ends = tuple[float, float]
GAIN = 8.0
"""Factors are centred before they are multiplied where that makes the squares so many times smaller: it costs a head
that carries the linear part."""
USUAL = 64
"""Factors of one size are not scaled where that is 2^-64 to 2^64: (x + y)^2 may stand elsewhere in the function."""


@dataclass(frozen=True)
class Scales:
    """c, d, u and v, of a product of two factors."""

    centres: tuple[float, float]
    units: tuple[float, float]

    @property
    def factor(self) -> float:
        """u v / 4."""
        return self.units[0] * self.units[1] / 4


def scales(a: Ends, b: Ends, centred: bool = True) -> Scales:
    """Of factors that stay between these ends; where it pays, centred."""
    centres = (0.0, 0.0)
    if centred and _size(a) * _size(b) > GAIN * (a[1] - a[0]) * (b[1] - b[0]) / 4:
        centres = coarse(a[0] / 2 + a[1] / 2), coarse(b[0] / 2 + b[1] / 2)
    sizes = [_size((low - c, high - c)) for (low, high), c in zip((a, b), centres, strict=True)]
    return Scales(centres, _units(*sizes))


def _size(ends: Ends) -> float:
    return max(map(abs, ends))


def _units(a: float, b: float) -> tuple[float, float]:
    """Powers of two that leave one size no more than twice the other; 1 where they need not, or cannot, be scaled."""
    if not (a > 0 and b > 0 and isfinite(a) and isfinite(b)):
        return 1.0, 1.0
    own, apart = frexp(b)[1], int(log2(a) - log2(b))
    if (apart == 0 and abs(own) <= USUAL) or not max(abs(own), abs(own + apart), abs(2 * own + apart)) < 1000:
        return 1.0, 1.0
    return ldexp(1.0, own + apart), ldexp(1.0, own)


def coarse(value: float, digits: int = 10) -> float:
    """The number with so many binary digits."""
    mantissa, exponent = frexp(value)
    return ldexp(round(ldexp(mantissa, digits)), exponent - digits)


def power_of_two(size: float) -> float:
    """The least power of two that is no smaller."""
    return 2.0 ** ceil(log2(size)) if size > 0 else 1.0
