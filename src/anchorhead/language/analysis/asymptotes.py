"""Activations that are straight lines far out: the lines, and how fast they are reached.

Beyond some T on either side |f(s) - slope s - constant| / max(1, |s|) has a bound that falls with T. It falls because

- f(s) = s phi(s) with phi increasing from 0 to 1 (gelu, silu, mish and the like): on the left |f(s)| / |s| = phi(s), on
  the right |s - f(s)| / |s| = 1 - phi(s), both monotone;
- or f(s) minus its line is monotone and tends to 0 there (softplus, elu, tanh, erf);
- or f is piecewise linear, and T lies beyond its last kink.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flint import arb

from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.precision import precision

_BITS = 256


@dataclass(frozen=True)
class Line:
    """slope s + constant, and a bound on |f(s) - slope s - constant| / max(1, |s|) for all |s| >= T on its side."""

    slope: arb
    constant: arb
    remainder: Callable[[float], arb]


@dataclass(frozen=True)
class Asymptotes:
    left: Line
    right: Line


Numbers = tuple[arb | int, ...]
_GATED = ("gelu", "gelu_tanh", "silu", "mish")
# slope and constant on the left, on the right, and where the last kink is; of the parameters
_LINES: dict[str, Callable[..., Numbers]] = {
    "relu": lambda: (0, 0, 1, 0, 0),
    "leaky_relu": lambda slope: (slope, 0, 1, 0, 0),
    "relu6": lambda: (0, 0, 0, 6, 6),
    "hardtanh": lambda low, high: (0, low, 0, high, abs(low).max(abs(high))),
    "clip": lambda low, high: (0, low, 0, high, abs(low).max(abs(high))),
    "abs": lambda: (-1, 0, 1, 0, 0),
    "hardswish": lambda: (0, 0, 1, 0, 3),
    "hardsigmoid": lambda: (0, 0, 0, 1, 3),
    "soft_threshold": lambda lam: (1, lam, 1, -lam, abs(lam)),
    "variable": lambda: (1, 0, 1, 0, 0),
    "elu": lambda alpha: (0, -alpha, 1, 0, 0),
    "selu": lambda: (0, -_selu()[0] * _selu()[1], _selu()[0], 0, 0),
    "celu": lambda alpha: (0, -alpha, 1, 0, 0),
    "softplus": lambda beta=None: (0, 0, 1, 0, 0),
    "tanh": lambda: (0, -1, 0, 1, 0),
    "sigmoid": lambda: (0, 0, 0, 1, 0),
    "erf": lambda: (0, -1, 0, 1, 0),
    "erfc": lambda: (0, 2, 0, 0, 0),
}


def asymptotes(function: Expression) -> Asymptotes | None:
    """The lines that a function of one variable tends to, or None if it is not one of those known here."""
    if function.op in _GATED and _plain(function):
        return _asymptotes(function, (0, 0, 1, 0, 0), gated=True)
    if gate_factor(function) is not None:
        return _asymptotes(function, (0, 0, 1, 0, 0), gated=True)
    if function.op in _LINES and _plain(function):
        with precision(_BITS):
            return _asymptotes(function, _LINES[function.op](*(arg.ball({}) for arg in function.args[1:])), gated=False)
    if function.op == "div" and function.args[0].op == "softplus" and len(function.variables) == 1:
        return _scaled_softplus(function)
    return None


def gate_factor(function: Expression) -> float | None:
    """b > 0 for x sigmoid(b x), of which b = 1.702 is known as quick_gelu; else None."""
    if function.op != "mul" or len(function.args) != 2:
        return None
    x, gate = function.args if function.args[0].op == "variable" else function.args[::-1]
    if x.op != "variable" or gate.op != "sigmoid":
        return None
    factor = multiple_of(gate.args[0], x)
    return factor if factor is not None and factor > 0 else None


def multiple_of(product: Expression, x: Expression) -> float | None:
    """b for b x, where b is a number; else None."""
    if product is x:
        return 1.0
    if product.op == "mul" and len(product.args) == 2 and x in product.args:
        other = product.args[1] if product.args[0] is x else product.args[0]
        return float(other.data) if other.op == "number" and other.data is not None else None
    return None


def _plain(function: Expression) -> bool:
    return function.op == "variable" or function.args[0].op == "variable"


def _scaled_softplus(function: Expression) -> Asymptotes | None:
    """log(1 + exp(b x)) / b: as softplus."""
    inner, divisor = function.args[0].args[0], function.args[1]
    x = next(arg for arg in (inner, *inner.args) if arg.op == "variable")
    factor = multiple_of(inner, x)
    if factor is None or not factor > 0 or divisor.op != "number" or divisor.data != factor:
        return None
    return _asymptotes(function, (0, 0, 1, 0, 0), gated=False)


def _selu() -> tuple[arb, arb]:
    from anchorhead.language.expressions.named import SELU_ALPHA, SELU_SCALE

    return SELU_SCALE.ball({}), SELU_ALPHA.ball({})


def _asymptotes(function: Expression, numbers: Numbers, gated: bool) -> Asymptotes:
    left_slope, left_constant, right_slope, right_constant, start = (arb(number) for number in numbers)
    return Asymptotes(
        Line(left_slope, left_constant, _remainder(function, left_slope, left_constant, start, -1, gated)),
        Line(right_slope, right_constant, _remainder(function, right_slope, right_constant, start, 1, gated)),
    )


def _remainder(
    function: Expression, slope: arb, constant: arb, start: arb, side: int, gated: bool
) -> Callable[[float], arb]:
    variable = function.variables[0]

    def remainder(distance: float) -> arb:
        with precision(_BITS):
            if not (distance > 0 and arb(distance) >= start):
                return arb.pos_inf()
            s = side * arb(distance)
            off = abs(function.ball({variable: s}) - slope * s - constant)
            return off / abs(s) if gated else off / abs(s).max(arb(1))

    return remainder
