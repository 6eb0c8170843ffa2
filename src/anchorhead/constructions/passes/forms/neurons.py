"""Functions of one quantity, each brought to the scale of its own range before it becomes a head.

    exp(z) = e^c exp(z - c)          log(z) = log(s z) - log(s)          z^p = s^-p (s z)^p          f(z) = f(c + r t)

Then neurons of one function have ranges around the same place and can share a head, and the shipped heads serve most of
them. c and s have few digits, so that what is multiplied by them stays exact; r is a power of two.
"""

from __future__ import annotations

from math import sqrt

from flint import arb

from anchorhead.constructions.passes.forms.quantities import Combination, Quantities
from anchorhead.constructions.passes.forms.roots import ASINH
from anchorhead.errors import NotDefined
from anchorhead.language.analysis.products import coarse, power_of_two
from anchorhead.language.analysis.ridges import X, split_constant
from anchorhead.language.expressions import build
from anchorhead.language.expressions.expression import Expression
from anchorhead.proof.heads.activation_head import degree_of

EXP, LOG, RELU, SQUARE, RECIPROCAL = (build.make(op, (X,)) for op in ("exp", "log", "relu", "square", "reciprocal"))
OFF_CENTRE = 4.0
"""A range that lies so many times its width from 0 is brought to 0."""


def neuron(quantities: Quantities, function: Expression, of: Combination) -> Combination:
    """function(of), constant factors taken out, on a range of size 1 where that can be."""
    scale, function = split_constant(function)
    form = function.affine()
    if form is not None:
        return (of * form[0].get("x", arb(0)) + form[1]) * arb(scale)
    if not of.coefficients:
        return quantities.apply(function, of) * arb(scale)
    return _on_its_own_scale(quantities, function, of) * arb(scale)


def _on_its_own_scale(quantities: Quantities, function: Expression, of: Combination) -> Combination:
    low, high = quantities.range(of)
    if function.op == "div" and function.args[1] is X and not function.args[0].variables:
        return neuron(quantities, RECIPROCAL, of) * function.args[0].ball({})
    plain = bool(function.args) and function.args[0] is X and not any(arg.variables for arg in function.args[1:])
    power = power_of(function) if plain and function.op != "square" else None  # heads know that squares scale
    if plain and function.op == "exp":
        shift = arb(coarse((low + high) / 2))
        return quantities.apply(function, of + -shift) * shift.exp()
    if plain and (function.op == "log" or power is not None):
        if low <= 0 and (high >= 0 or function.op == "log"):
            _require_defined(function, low, high)
            size = arb(1 / power_of_two(max(abs(low), abs(high))))
        else:
            size = arb(coarse(1 / (sqrt(abs(low)) * sqrt(abs(high)))))
        scaled = quantities.apply(function, of * size)
        return scaled * size ** -power[1] if power is not None else scaled + -size.log()
    far = min(abs(low), abs(high)) > OFF_CENTRE * (high - low) and low * high > 0
    if far and degree_of(function) is None and function is not ASINH:  # which the verifier knows as it is
        middle, unit = coarse((low + high) / 2, 20), power_of_two(0.51 * (high - low))
        scaled = X if unit == 1 else build.mul(build.number(unit), X)
        inside = build.add(build.number(middle), scaled)
        return quantities.apply(function.substitute({"x": inside}), (of + arb(-middle)) * arb(1 / unit))
    return quantities.apply(function, of)


def power_of(node: Expression) -> tuple[Expression, arb] | None:
    """a and p with node = a^p, p constant."""
    match node.op:
        case "integer_power":
            return node.args[0], arb(int(node.data or 0))
        case "square" | "sqrt" | "reciprocal":
            return node.args[0], {"square": arb(2), "sqrt": arb(0.5), "reciprocal": arb(-1)}[node.op]
        case "power" if not node.args[1].variables:
            return node.args[0], node.args[1].ball({})
    return None


def _require_defined(function: Expression, low: float, high: float) -> None:
    negative = function.op == "integer_power" and int(function.data or 0) < 0
    power = power_of(function) if function.op == "power" else None
    from_0_on = power is not None and low >= 0 and power[1] > 0
    if negative or (function.op in ("log", "power", "reciprocal") and not from_0_on):
        raise NotDefined(
            f"a part of the function, {function}, is needed for x in [{low:.6g}, {high:.6g}], the bounds on its "
            "argument: choose a smaller box, or write the function in another way"
        )
