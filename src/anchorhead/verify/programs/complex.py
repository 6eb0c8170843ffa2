"""Expressions over complex balls, and how large an expression is around a real interval.

    COMPLEX   acb: the result holds the analytic continuation of f, and where it is finite there is one.

Lemma. Let closed sets cover a connected set around real points, and let the rules give something finite on each of
them. Then f, as it is at the real points, has one analytic continuation to the whole, and it is what the rules hold.
Proof. Roots and logarithms are not finite where a ball meets their cut, quotients where the divisor may be 0; all other
operations are entire. A switch takes a side by real parts: one if a < b on all of a closed set, the other if a >= b on
all of it, and nothing else is finite. No point is on both sides, so sets with the one and those with the other do not
meet: one kind is missing, for the whole is connected.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from flint import acb, arb

from anchorhead.verify.programs.numbers import BALLS, POINTS, decided

UNKNOWN = acb(arb.nan(), arb.nan())


def _where(relation: str, a: Any, b: Any, then: Any, other: Any) -> Any:
    side = decided(relation, acb(a).real, acb(b).real)
    return UNKNOWN if side is None else then if side else other


def _extreme(*args: Any, largest: bool) -> Any:
    return reduce(lambda a, b: _where("<", a, b, *((b, a) if largest else (a, b))), args)


def _power(n: int, a: Any) -> Any:
    """Squares by those of both parts, which stay tight where balls are wide."""
    if n < 0:
        return 1 / _power(-n, a)
    if n < 2:
        return a if n else acb(1)
    if n % 2:
        return a * _power(n - 1, a)
    root = acb(_power(n // 2, a))
    real, imaginary = (BALLS["integer_power"](2, part) for part in (root.real, root.imag))
    return acb(real - imaginary, 2 * root.real * root.imag)


def _sigmoid(a: Any) -> Any:
    """By the exponential that is small, so that wide balls stay tight."""
    negative = acb(a).real.mid() < 0
    power = (a if negative else -a).exp()
    return (power if negative else 1) / (1 + power)


def _softplus(a: Any) -> Any:
    """log(1 + e^a), which is a + log(1 + e^-a) wherever the imaginary part is less than pi."""
    a = acb(a)
    if a.real.mid() > 0 and abs(a.imag) < arb.pi():
        return a + (1 + (-a).exp()).log(analytic=True)
    return (1 + a.exp()).log(analytic=True)


COMPLEX: dict[str, Callable[..., Any]] = {
    **{op: POINTS[op] for op in ("pi", "e", "add", "mul", "neg", "div")},
    **{op: lambda a, op=op: getattr(a, op)() for op in ("exp", "expm1", "sin", "cos", "tanh", "erf", "erfc")},
    "integer_power": _power,
    "power": lambda a, b: (b * acb(a).log(analytic=True)).exp(),
    "log": lambda a: acb(a).log(analytic=True),
    "log1p": lambda a: (1 + acb(a)).log(analytic=True),
    "sqrt": lambda a: acb(a).sqrt(analytic=True),
    "sigmoid": _sigmoid,
    "softplus": _softplus,
    "abs": lambda a: _where("<", a, arb(0), -a, a),
    "min": lambda *args: _extreme(*args, largest=False),
    "max": lambda *args: _extreme(*args, largest=True),
    "where": _where,
}
