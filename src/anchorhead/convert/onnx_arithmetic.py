"""Arithmetic of ONNX entry by entry: with constants, between functions of the same entries, and named functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from anchorhead.convert.onnx_functions import FUNCTIONS, clipped, real
from anchorhead.convert.onnx_maps import UNIT, Map
from anchorhead.convert.onnx_model import Node
from anchorhead.convert.onnx_shapes import Given, Inputs, Operation, moved, value
from anchorhead.convert.onnx_values import Line, Tape, Value, checked_size
from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions import build
from anchorhead.language.expressions.build import ZERO, make, number
from anchorhead.language.expressions.underflow import LEAST
from anchorhead.language.targets.mlp import IDENTITY

MAX_SLOPES = 10_000
NO_END = (float(np.finfo(np.float32).max), float(np.finfo(np.float64).max), np.inf)
"""What files write where they mean none."""


def add(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
    return [plus(tape, value(inputs, 0), value(inputs, 1))]


def sub(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
    less = value(inputs, 1)
    less = np.asarray(-less) if isinstance(less, np.ndarray) else tape.lined(less, Line(Fraction(-1)))
    return [plus(tape, value(inputs, 0), less)]


def mul(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
    return [times(tape, value(inputs, 0), value(inputs, 1))]


def div(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
    top, bottom = value(inputs, 0), value(inputs, 1)
    if isinstance(bottom, np.ndarray):
        if not np.all(bottom):
            raise AnchorheadError("it divides by 0")
        if isinstance(top, np.ndarray):
            whole_numbers = top.dtype.kind in "iu" and bottom.dtype.kind in "iu"
            return [_constants(tape, top, bottom, _truncated if whole_numbers else np.true_divide)]
        if bottom.size == 1 and len(bottom.shape) <= len(top.shape):
            return [tape.lined(top, Line(1 / _fraction(bottom)))]
        factor = 1.0 / floats(bottom)
        return [_rows(tape, top, factor, np.maximum(np.abs(factor) * 2 * UNIT, LEAST))]
    if isinstance(top, np.ndarray):
        if top.size != 1:
            raise AnchorheadError("it divides different constants by what depends on the input: only one is supported")
        above = number(_single(top))
        return [tape.applied(bottom, lambda x: ZERO if above is ZERO else build.div(above, x))]
    return [_combined(tape, top, bottom, build.div, "quotient")]


def _truncated(top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    """Whole numbers divided, towards 0 as ONNX says."""
    down = np.floor_divide(top, bottom)
    return down + ((down < 0) & (down * bottom != top))


def neg(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
    x = value(inputs, 0)
    return [-x if isinstance(x, np.ndarray) else tape.lined(x, Line(Fraction(-1)))]


def power(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
    x, exponent = value(inputs, 0), value(inputs, 1)
    if not isinstance(exponent, np.ndarray) or exponent.size != 1 or len(exponent.shape) > len(x.shape):
        raise AnchorheadError("its exponent is not one constant")
    return [_applied(tape, x, lambda z: build.power(z, number(_single(exponent))))]


def clip(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
    ends = [
        real(node, name, 0.0) if name in node.attributes else _scalar(inputs, place)
        for place, name in ((1, "min"), (2, "max"))
    ]
    low = None if ends[0] is None or -ends[0] in NO_END else ends[0]
    high = None if ends[1] is None or ends[1] in NO_END else ends[1]
    if low is not None and high is not None and not low < high:
        raise AnchorheadError(f"its min {low:g} is not below its max {high:g}")
    return [_applied(tape, value(inputs, 0), lambda x: clipped(x, low, high))]


def extreme(op: str) -> Operation:
    """Max or Min of one value and constants."""

    def operation(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
        given = [value(inputs, place) for place in range(len(inputs))]
        values = [one for one in given if isinstance(one, Value)]
        constants = [one for one in given if isinstance(one, np.ndarray)]
        if len(values) != 1 or any(one.size != 1 or one.ndim > len(values[0].shape) for one in constants):
            raise AnchorheadError("of its inputs one must depend on the input, and the others be single constants")
        ends = tuple(number(_single(one)) for one in constants)
        return [tape.applied(values[0], lambda x: make(op, (x, *ends)))]

    return operation


def prelus(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
    x, slope = value(inputs, 0), value(inputs, 1)
    if not isinstance(x, Value) or not isinstance(slope, np.ndarray):
        raise AnchorheadError("only constant slopes are supported")
    slopes, which = np.unique(_spread(floats(slope), x.shape), return_inverse=True)
    if len(slopes) > MAX_SLOPES:
        raise AnchorheadError(f"it has {len(slopes):,} different slopes: at most {MAX_SLOPES:,} are supported")
    functions = [lambda z, slope=slope: make("leaky_relu", (z, number(float(slope)))) for slope in slopes]
    if len(functions) == 1:
        return [tape.applied(x, functions[0])]
    inside = tape.affine(x)
    source = tape.source(inside, tuple(function(IDENTITY) for function in functions), which.reshape(-1))
    return [Value(x.shape, Map.identity(source, inside.size))]


def function(op: str) -> Operation:
    return lambda tape, node, inputs: [_applied(tape, value(inputs, 0), FUNCTIONS[op](node))]


def _value_first(one: Given, two: Given) -> tuple[Value, Given]:
    """The two with a constant, if there is one, behind."""
    if isinstance(one, np.ndarray):
        one, two = two, one
    if not isinstance(one, Value):
        raise AnchorheadError("nothing in it depends on the input")
    return one, two


def plus(tape: Tape, one: Given, two: Given) -> Given:
    """one + two, as numpy adds."""
    if isinstance(one, np.ndarray) and isinstance(two, np.ndarray):
        return _constants(tape, one, two, np.add)
    one, two = _value_first(one, two)
    if isinstance(two, np.ndarray):
        if two.size == 1 and two.ndim <= len(one.shape):
            return tape.lined(one, Line(shift=_fraction(two)))
        whole_value = _widened(tape, one, two.shape)
        shift, none = _spread(floats(two), whole_value.shape), np.zeros(whole_value.affine.size)
        return tape.rows(whole_value, np.ones(none.shape), shift, (none, none))
    left, right = _widened(tape, one, two.shape), _widened(tape, two, one.shape)
    same = left.core is right.core and left.inner == right.inner
    both = None if same else tape.combined(left, right, build.add)
    return tape.plus(left, right) if both is None else both


def times(tape: Tape, one: Given, two: Given) -> Given:
    """one times two, entry by entry."""
    if isinstance(one, np.ndarray) and isinstance(two, np.ndarray):
        return _constants(tape, one, two, np.multiply)
    one, two = _value_first(one, two)
    if isinstance(two, np.ndarray):
        if two.size == 1 and two.ndim <= len(one.shape):
            return tape.lined(one, Line(_fraction(two)))
        return _rows(tape, one, floats(two), np.zeros(two.shape))
    return _combined(tape, one, two, build.mul, "product")


def _combined(tape: Tape, one: Value, two: Value, function: Callable[..., object], what: str) -> Value:
    made = tape.combined(one, two, function)  # type: ignore[arg-type]
    if made is None:
        raise AnchorheadError(
            f"it is a {what} of two values that depend on the input, and not on the same entries: only functions of "
            "one variable can be converted"
        )
    return made


def _rows(tape: Tape, one: Value, factor: np.ndarray, error: np.ndarray) -> Value:
    whole_value = _widened(tape, one, factor.shape)
    factors, errors = _spread(factor, whole_value.shape), _spread(error, whole_value.shape)
    none = np.zeros(factors.shape)
    return tape.rows(whole_value, factors, none, (errors, none))


def _applied(tape: Tape, x: Given, made: Callable[..., object]) -> Given:
    if isinstance(x, Value):
        return tape.applied(x, made)  # type: ignore[arg-type]
    tape.work.spend(100 * x.size)
    expression = made(build.variable("x"))
    found = expression.values({"x": floats(x)}) if getattr(expression, "variables", ()) else np.full(x.shape, np.nan)  # type: ignore[attr-defined]
    if not np.isfinite(found).all():
        raise AnchorheadError("it makes a constant that is not finite")
    return np.asarray(found, dtype=np.float64)


def _constants(tape: Tape, one: np.ndarray, two: np.ndarray, function: Callable[..., np.ndarray]) -> np.ndarray:
    """Arithmetic of constants: whole numbers stay whole, floats are taken as float64 rounds them."""
    try:
        shape = np.broadcast_shapes(one.shape, two.shape)
    except ValueError as error:
        raise AnchorheadError(f"arrays of shapes {one.shape} and {two.shape} do not fit together") from error
    checked_size(shape)
    tape.work.spend(math.prod(shape))
    exact = one.dtype.kind in "iu" and two.dtype.kind in "iu"
    with np.errstate(all="ignore"):
        return np.asarray(function(*((one, two) if exact else (floats(one), floats(two)))))


def _widened(tape: Tape, one: Value, shape: tuple[int, ...]) -> Value:
    """The value, repeated along the axes that another array has."""
    try:
        whole_shape = np.broadcast_shapes(one.shape, shape)
    except ValueError as error:
        raise AnchorheadError(f"arrays of shapes {one.shape} and {shape} do not fit together") from error
    if whole_shape == one.shape:
        return one
    made = moved(tape, one, lambda a: np.broadcast_to(a, whole_shape), math.prod(whole_shape))
    if not isinstance(made, Value):
        raise AnchorheadError("it has no value to repeat")
    return made


def _spread(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    try:
        return np.broadcast_to(array, shape).reshape(-1)
    except ValueError as error:
        raise AnchorheadError(f"an array of shape {array.shape} does not fit one of shape {shape}") from error


def floats(array: np.ndarray) -> np.ndarray:
    """A constant in float64, refused unless all numbers are finite."""
    wide = array.astype(np.float64)
    if not np.isfinite(wide).all():
        raise AnchorheadError("it has a constant that is not finite")
    return wide


def _fraction(array: np.ndarray) -> Fraction:
    return Fraction(_single(array))


def _single(array: np.ndarray) -> float:
    """The one number that a constant holds."""
    return float(floats(array).ravel()[0])


def _scalar(inputs: Inputs, place: int) -> float | None:
    given = inputs[place] if place < len(inputs) else None
    if given is None:
        return None
    if not isinstance(given, np.ndarray) or given.size != 1:
        raise AnchorheadError(f"its input {place} is not one constant")
    return float(given.ravel()[0])
