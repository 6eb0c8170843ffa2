"""Numbers and the comparison of two programs broken in one place, and which test notices."""

from __future__ import annotations

from .mutations import Mutation

DIFFERS = "equality: what differs is said to differ"
PARTED = "equality: programs that begin alike are compared from where they part"
UNDEFINED = "numbers: nothing is known where a function may be undefined"

# fmt: off
NUMBERS = (
    Mutation("programs/expressions.py", "read_expression", "op not in _PARAMETERS or", "True or",
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
    Mutation("equality/algebra.py", "Algebra.exp", "factor *= arb(0, off.upper()).exp()", "factor *= 1",
             f"{DIFFERS} (an exponential, stretched)"),
    Mutation("equality/algebra.py", "Algebra._about_one", "arb(1, (off / least).upper())", "arb(1)",
             f"{DIFFERS} (a logarithm)"),
    Mutation("equality/algebra.py", "Algebra._root", "p * most ** (p - 1) * off", "0 * off",
             f"{DIFFERS} (a large power of a sum)"),
    Mutation("equality/algebra.py", "Algebra._root", "off**p", "0 * off", f"{DIFFERS} (a root of a sum)"),
    Mutation("equality/algebra.py", "Algebra._root_of", "arb(0, off.upper()).exp()", "arb(1)",
             "equality: asinh of what is nearly the same differs"),
    Mutation("equality/algebra.py", "Algebra._as_root", "self.scaled(b, arb(r.range.sign))", "b",
             f"{DIFFERS} (a maximum of a negative root)"),
    Mutation("equality/algebra.py", "Algebra._halved", "(high, high)] if steady else", "(high, high)] if True else",
             "equality: a logarithm of what is negative inside is refused"),
    Mutation("equality/algebra.py", "Algebra.function", "off * LIPSCHITZ[name]", "0 * off",
             f"{DIFFERS} (a sine, stretched)"),
    Mutation("equality/algebra.py", "Algebra.power", "int(p.unique_fmpz())", "int(float(p))",
             f"{DIFFERS} (a positive exponent that no float64 is)"),
    Mutation("equality/algebra.py", "Algebra.power", "sign if n is not None and n % 2 else 1", "1",
             f"{DIFFERS} (the reciprocal of a negative sum)"),
    Mutation("equality/compare.py", "_bound", "algebra.minus(a, b)", "algebra.minus(a, a)", f"{DIFFERS} (a sum)"),
    Mutation("equality/compare.py", "_same", "all(np.array_equal(*pair) for pair in arrays)", "True",
             f"{PARTED} (a weight)"),
    Mutation("equality/compare.py", "_same", "np.array_equal(a.which, b.which)", "True", f"{PARTED} (a function)"),
    Mutation("equality/compare.py", "_same", "exact and", "", f"{PARTED} (a number within a radius)"),
    Mutation("equality/compare.py", "_same", "(a.functions, a.of, a.arguments) == (b.functions, b.of, b.arguments)",
             "a.functions == b.functions", f"{PARTED} (another quantity)"),
    Mutation("equality/compare.py", "_alike", "of >= place for one", "True for one", f"{PARTED} (what comes before)"),
    Mutation("equality/compare.py", "difference", "Range(arb(a), arb(b)) for", "Range(arb(a), arb(a)) for",
             f"{PARTED} (one end)"),
    Mutation("equality/polynomials.py", "Polynomials.made", "sums[m].abs_upper() * self.known(m)[0].most", "arb(0)",
             f"{DIFFERS} (a sum)"),
    Mutation("equality/polynomials.py", "Polynomials.scaled", "factor.rad() * a.range.most", "arb(0)",
             f"{DIFFERS} (an exponential that is a sum)"),
    Mutation("equality/polynomials.py", "Polynomials.off_by", "arb(0, error.upper())", "arb(0)",
             f"{DIFFERS} (a sine, stretched)"),
    Mutation("equality/polynomials.py", "Polynomials.count", "self.done > MAX_WORK", "False",
             "equality: small files are refused before they take long (a power)"),
    Mutation("programs/entries.py", "_affine", 'rules["number"](w, e)', 'rules["number"](w)',
             "equality: numbers that may be elsewhere in a radius are not taken as they are written (weight)"),
    Mutation("programs/entries.py", "_affine", 'rules["number"](bias, off)', 'rules["number"](bias)',
             "equality: numbers that may be elsewhere in a radius are not taken as they are written (bias)"),
    Mutation("programs/expressions.py", "read_expression", "nodes == ASINH.nodes", "len(nodes) == 12",
             f"{DIFFERS} (nearly asinh)"),
)
# fmt: on
