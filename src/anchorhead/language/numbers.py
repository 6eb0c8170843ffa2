"""The numbers that programs are run over: floats, fractions, real and complex balls; language.symbolic has expressions.

One interpreter serves them all (language.interpret); what differs from one kind of number to the next is here: how a
written constant becomes one, what a function does to an array of them, and the exponential and root that softmaxes and
norms need.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

import numpy as np
from flint import acb, arb

from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions.expression import ARITHMETIC, Expression, Rules

Array = np.ndarray


@runtime_checkable
class Numbers(Protocol):
    """One kind of number, in arrays."""

    def constant(self, values: Array, radius: Array | None) -> Array:
        """What is written in a program: values, and how far from them the numbers may be that are meant."""
        ...

    def function(self, expression: Expression, at: Mapping[str, Array]) -> Array:
        """An expression, entry by entry of arrays of one shape."""
        ...

    def softmax_mean(self, logits: Array, values: Array) -> Array:
        """Means of values (..., keys, features), weighed by the softmax of logits (..., queries, keys)."""
        ...

    def sqrt(self, a: Array) -> Array: ...


class Floats:
    """Extended precision where the machine has it, but for functions that bend, which are float64; without radii."""

    def constant(self, values: Array, radius: Array | None) -> Array:
        return values.astype(np.longdouble)

    def function(self, expression: Expression, at: Mapping[str, Array]) -> Array:
        plain = len(expression.args) == 1 and expression.args[0].op == "variable"
        if expression.op == "variable":
            return at[str(expression.data)]
        if plain and expression.op in ("relu", "abs"):
            z = at[str(expression.args[0].data)]
            return np.maximum(z, 0) if expression.op == "relu" else np.abs(z)
        return np.asarray(expression.values(at)).astype(np.longdouble)

    def softmax_mean(self, logits: Array, values: Array) -> Array:
        weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return weights / weights.sum(axis=-1, keepdims=True) @ values

    def sqrt(self, a: Array) -> Array:
        return np.sqrt(a)


class Fractions:
    """Exact rationals: affine steps, products, means, and functions made of + - * / whole powers and switches."""

    def constant(self, values: Array, radius: Array | None) -> Array:
        if radius is not None:
            raise AnchorheadError("a number that is not written exactly has no fraction: use balls")
        return each(lambda v: Fraction(float(v)), values)

    def function(self, expression: Expression, at: Mapping[str, Array]) -> Array:
        return entries(lambda point: expression.evaluated(point, _EXACT, "need not be a fraction: use balls"), at)

    def softmax_mean(self, logits: Array, values: Array) -> Array:
        raise AnchorheadError("a softmax of fractions is no fraction: use balls")

    def sqrt(self, a: Array) -> Array:
        raise AnchorheadError("a root of a fraction need not be a fraction: use balls")


class Balls:
    """Real balls, in Arb at the precision that holds around them: enclosures of all that is meant."""

    def constant(self, values: Array, radius: Array | None) -> Array:
        if radius is None:
            return each(lambda v: arb(float(v)), values)
        return each(lambda v, r: arb(float(v), float(r)), values, radius)

    def function(self, expression: Expression, at: Mapping[str, Array]) -> Array:
        return entries(expression.ball, at)

    def softmax_mean(self, logits: Array, values: Array) -> Array:
        """1 / sum_j exp(z_j - z_k): no quotient of two large balls, and within [0, 1] whatever the logits."""
        inverse = [each(_exp, logits - logits[..., k : k + 1]).sum(axis=-1) for k in range(logits.shape[-1])]
        return np.stack([each(_share, one) for one in inverse], axis=-1) @ values

    def sqrt(self, a: Array) -> Array:
        return each(lambda ball: ball.sqrt(), a)


class ComplexBalls:
    """Complex balls around real boxes, for what is analytic there; `branch` says which side of a switch is meant."""

    def __init__(self, branch: Mapping[str, arb] | None = None) -> None:
        self.branch = branch

    def constant(self, values: Array, radius: Array | None) -> Array:
        return each(acb, Balls().constant(values, radius))

    def function(self, expression: Expression, at: Mapping[str, Array]) -> Array:
        return entries(lambda point: expression.complex_ball(point, self.branch), at)

    def softmax_mean(self, logits: Array, values: Array) -> Array:
        weights = each(lambda z: z.exp(), logits - logits[..., :1])
        return weights / weights.sum(axis=-1, keepdims=True) @ values

    def sqrt(self, a: Array) -> Array:
        return each(lambda ball: ball.sqrt(), a)


def each(function: Callable[..., Any], *arrays: Array) -> Array:
    """A function at every entry of arrays that broadcast."""
    return np.asarray(np.frompyfunc(function, len(arrays), 1)(*arrays), dtype=object)


def entries(function: Callable[[dict[str, Any]], Any], at: Mapping[str, Array]) -> Array:
    """A function of one point, at every entry."""
    return each(lambda *point: function(dict(zip(at, point, strict=True))), *at.values())


def _exp(z: arb) -> arb:
    return z.lower().exp().union(z.upper().exp()) if z.is_finite() else arb(0).union(arb.pos_inf())


def _share(total: arb) -> arb:
    """1 / total for a sum that holds exp(0) = 1: between 0 and 1."""
    low, high = total.lower(), total.upper()
    most = 1 / low if low > 1 else arb(1)
    return most.union(1 / high if high.is_finite() else arb(0))


_EXACT: Rules = {
    **ARITHMETIC,
    "number": lambda value: Fraction(float(value)),
    "integer_power": lambda n, a: a ** int(n),
    "abs": lambda _, a: abs(a),
    "min": lambda _, *args: min(args),
    "max": lambda _, *args: max(args),
    "where": lambda relation, a, b, then, other: then if (a < b if relation == "<" else a <= b) else other,
}
