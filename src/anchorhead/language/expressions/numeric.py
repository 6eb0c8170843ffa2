"""Values of an expression in float64, over arrays.

Each core operation in the form that keeps its accuracy in the tails. Where a part overflows on the way to a
finite value (exp(x)/(1 + exp(x)) at 1000), the point is evaluated again in Arb and rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np
from flint import arb

from anchorhead.language.expressions.expression import ARITHMETIC, Array, Data, Expression, Rules
from anchorhead.language.expressions.precision import precision

Number = Array | np.float64


def values(expression: Expression, at: Mapping[str, Any]) -> Array:
    """f(x) at every x; the arrays in `at` broadcast. NaN or infinite where f is undefined or too large."""
    points = {name: np.asarray(point, dtype=np.float64) for name, point in at.items()}
    with np.errstate(all="ignore"):
        found = expression.evaluated(points, _RULES)
    shape = np.broadcast_shapes(*(point.shape for point in points.values()))
    result = np.array(np.broadcast_to(found, shape), dtype=np.float64)
    return _mend(expression, points, result)


def _mend(expression: Expression, points: Mapping[str, Array], result: Array) -> Array:
    broken = np.flatnonzero(~np.isfinite(result))
    if not broken.size:
        return result
    spread = {name: np.broadcast_to(points[name], result.shape).ravel() for name in expression.variables}
    flat = result.reshape(-1)
    with precision(160):
        for index in broken:
            ball = expression.ball({name: arb(float(point[index])) for name, point in spread.items()})
            if ball.is_finite() and (ball.is_zero() or ball.rel_accuracy_bits() > 60 or ball.abs_upper() < 5e-324):
                flat[index] = float(ball.mid())
    return result


def _sigmoid(_: Data, x: Number) -> Number:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1 + small)


def _each(function: Callable[[float], float]) -> Callable[[Data, Array], Array]:
    def rule(_: Data, x: Array) -> Array:
        x = np.asarray(x, dtype=np.float64)
        return np.fromiter(map(function, x.ravel().tolist()), np.float64, x.size).reshape(x.shape)

    return rule


def _where(relation: Data, a: Number, b: Number, then: Number, other: Number) -> Array:
    return np.where(a < b if relation == "<" else a <= b, then, other)


_RULES: Rules = {
    **ARITHMETIC,
    "number": lambda value: np.float64(value),
    "pi": lambda _: np.float64(math.pi),
    "e": lambda _: np.float64(math.e),
    "integer_power": lambda n, a: np.power(a, float(n)),
    "power": lambda _, a, b: np.power(a, b),
    "exp": lambda _, a: np.exp(a),
    "expm1": lambda _, a: np.expm1(a),
    "log": lambda _, a: np.log(a),
    "log1p": lambda _, a: np.log1p(a),
    "sqrt": lambda _, a: np.sqrt(a),
    "sin": lambda _, a: np.sin(a),
    "cos": lambda _, a: np.cos(a),
    "tanh": lambda _, a: np.tanh(a),
    "sigmoid": _sigmoid,
    "softplus": lambda _, a: np.logaddexp(0.0, a),
    "erf": _each(math.erf),
    "erfc": _each(math.erfc),
    "abs": lambda _, a: np.abs(a),
    "min": lambda _, *args: reduce(np.minimum, args),
    "max": lambda _, *args: reduce(np.maximum, args),
    "where": _where,
}
