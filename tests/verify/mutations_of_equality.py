"""Numbers and the comparison of two programs broken in one place, and which test notices."""

from __future__ import annotations

from .mutations import Mutation

DIFFERS = "equality: what differs is said to differ"
UNDEFINED = "numbers: nothing is known where a function may be undefined"

# fmt: off
NUMBERS = (
    Mutation("programs/expressions.py", "read_expression", "op in _PARAMETERS and", "False and",
             "numbers: a parameter that varies is refused"),
    Mutation("programs/numbers.py", "Range.sign", "if self.high < 0 else 0", "if self.high < 0 else 1",
             "equality: the reciprocal of a square that may be 0 is refused"),
    Mutation("programs/numbers.py", "_integer_power", "n and n % 2 == 0 and not a.sign", "False",
             "equality: the reciprocal of a square that may be 0 is refused"),
    Mutation("programs/numbers.py", "_power", "if a.low >= 0 and b.low > 0", "if b.low > 0", f"{UNDEFINED} (a power)"),
    Mutation("programs/numbers.py", "_monotone", "if a.known else UNKNOWN", "", f"{UNDEFINED} (tanh of a logarithm)"),
    Mutation("programs/numbers.py", "_wave", "(a.ball,) if turns else a", "a",
             "numbers: random functions stay in their ranges (0)"),
    Mutation("programs/numbers.py", "_extreme", "if all(a.known for a in args) else UNKNOWN", "",
             f"{UNDEFINED} (a logarithm, clipped)"),
    Mutation("programs/numbers.py", "_where", "not (a.known and b.known)", "False", f"{UNDEFINED} (a switch)"),
    Mutation("programs/numbers.py", "_where", "other if never else then.united(other)", "other",
             "numbers: random functions stay in their ranges (0)"),
)
EQUALITY = (
    Mutation("equality/algebra.py", "Algebra.maximum", "k * off + lost", "lost",
             f"{DIFFERS} (a maximum with a number)"),
    Mutation("equality/algebra.py", "Algebra.where", "change.is_zero() and", "",
             f"{DIFFERS} (a switch that moves)"),
    Mutation("equality/asinh.py", "_sums", "[*(Counter(side[2]) - both).elements()]",
             "[one for one in side[2] if one not in both]", f"{DIFFERS} (asinh, added twice)"),
    Mutation("equality/asinh.py", "_sums", "Counter(u[2]) & Counter(w[2])",
             "Counter({one: n for one, n in Counter(u[2]).items() if one in w[2]})",
             f"{DIFFERS} (half of asinh, added twice)"),
    Mutation("equality/compare.py", "_balls", "arb(*pair)", "arb(pair[0])",
             "equality: numbers that may be elsewhere in a radius are not taken as they are written (weight)"),
    Mutation("equality/polynomials.py", "Polynomials.add", "terms[m].abs_upper() * self.largest(m)", "arb(0)",
             f"{DIFFERS} (a sum)"),
    Mutation("equality/polynomials.py", "Polynomials.mul", "b.range.most * a.error", "0 * a.error",
             f"{DIFFERS} (a product)"),
    Mutation("equality/powers.py", "Powers.exp", "wrong.upper().expm1()", "arb(0)", f"{DIFFERS} (an exponential)"),
    Mutation("equality/powers.py", "Powers.log", "off_by(2 * wrong)", "off_by(0 * wrong)",
             f"{DIFFERS} (a logarithm)"),
    Mutation("equality/powers.py", "Powers.power", "(1 - wrong) ** -abs(n) - 1", "0 * wrong",
             f"{DIFFERS} (a reciprocal)"),
    Mutation("equality/powers.py", "Powers.root", " and b.error.is_zero()\n", "\n",
             f"{DIFFERS} (an exponent that moves)"),
    Mutation("equality/powers.py", "Powers.function", "off * LIPSCHITZ[name]", "0 * off", f"{DIFFERS} (a sine)"),
    Mutation("equality/powers.py", "Powers.general_power",
             "self.power(a, _whole(exponent)) if few else self.root(a, b)",
             "self.power(a, int(float(exponent)))",
             f"{DIFFERS} (an exponent that no float64 is)"),
    Mutation("equality/values.py", "Value.off_by", "self.error + error", "self.error", f"{DIFFERS} (an exponential)"),
    Mutation("equality/work.py", "Work.count", "self.done > MOST", "False",
             "equality: small files are refused before they take long (a power)"),
)
# fmt: on
