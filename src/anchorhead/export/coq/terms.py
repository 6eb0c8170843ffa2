"""Numbers and expressions as terms of Coq's real numbers."""

from __future__ import annotations

from fractions import Fraction

from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions.expression import postorder
from anchorhead.language.targets import Expression

LONGEST = 50_000
"""Characters of a function's definition: a part that occurs often is written often."""
FUNCTIONS = {
    "exp": "exp", "expm1": "expm1", "log": "ln", "log1p": "log1p", "sqrt": "sqrt", "sin": "sin", "cos": "cos",
    "tanh": "tanh", "sigmoid": "sigmoid", "softplus": "softplus", "erf": "erf", "erfc": "erfc", "abs": "Rabs",
}  # fmt: skip
"""Core operations of one argument, by the names that Coq's library or our preamble has for them."""
FROM_THE_INTEGRAL = ("erf", "erfc")
"""What coq-interval does not know, and an integral defines."""
DECISIONS = {"<": "Rlt_dec", "<=": "Rle_dec"}


def dyadic(value: float | Fraction) -> str:
    """An exact dyadic rational: `3`, `(-5 / 2 ^ 3)`, `(3 * 2 ^ 70)`."""
    number = Fraction(value)
    if number.denominator & (number.denominator - 1):
        raise ValueError(f"{number} is not a dyadic rational")
    mantissa, exponent = number.numerator, 1 - number.denominator.bit_length()
    trailing = (mantissa & -mantissa).bit_length() - 1 if mantissa else 0
    if exponent == 0 and abs(mantissa) >= 2**60 and trailing:
        mantissa, exponent = mantissa >> trailing, trailing
    if exponent == 0:
        return str(mantissa) if mantissa >= 0 else f"({mantissa})"
    return f"({mantissa} / 2 ^ {-exponent})" if exponent < 0 else f"({mantissa} * 2 ^ {exponent})"


def decimal(digits: int, exponent: int) -> str:
    """digits times 10^exponent."""
    return f"({digits} / 10 ^ {-exponent})" if exponent < 0 else str(digits * 10**exponent)


def term(root: Expression) -> str:
    """An expression of one variable, in core operations, as a term in x."""
    done: dict[Expression, str] = {}
    for node in postorder(root):
        done[node] = _write(node, [done[arg] for arg in node.args])
        if len(done[node]) > LONGEST:
            raise AnchorheadError(
                f"the function takes more than {LONGEST:,} characters where parts that occur often are written often: "
                "Coq's file would be too long; give a shorter expression"
            )
    return done[root]


def _write(node: Expression, args: list[str]) -> str:
    match node.op:
        case "number":
            return dyadic(float(node.data or 0))
        case "variable":
            return "x"
        case "pi":
            return "PI"
        case "e":
            return "(exp 1)"
        case "add":
            return f"({' + '.join(args)})"
        case "mul":
            return f"({' * '.join(args)})"
        case "neg":
            return f"(- {args[0]})"
        case "div":
            return f"({args[0]} / {args[1]})"
        case "integer_power":
            power = int(node.data or 0)
            return f"({args[0]} ^ {power})" if power >= 0 else f"(/ ({args[0]} ^ {-power}))"
        case "power":
            return f"(Rpower {args[0]} {args[1]})"
        case "min" | "max":
            words = args[0]
            for arg in args[1:]:
                words = f"(R{node.op} {words} {arg})"
            return words
        case "where":
            return f"(if {DECISIONS[str(node.data)]} {args[0]} {args[1]} then {args[2]} else {args[3]})"
        case name if name in FUNCTIONS:
            return f"({FUNCTIONS[name]} {args[0]})"
        case name:
            raise AnchorheadError(
                f"{name} cannot be exported to Coq: known there are sums, products, quotients, powers, min, max, where "
                f"and {', '.join(FUNCTIONS)}"
            )
