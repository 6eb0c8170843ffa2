"""Reads back what a file of Coq states: its weights as exact rationals, and its function as numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction

FUNCTIONS: dict[str, Callable[..., float]] = {
    "exp": math.exp, "expm1": math.expm1, "ln": math.log, "log1p": math.log1p, "sqrt": math.sqrt, "sin": math.sin,
    "cos": math.cos, "tanh": math.tanh, "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "softplus": lambda x: math.log1p(math.exp(x)), "erf": math.erf, "erfc": math.erfc, "Rabs": abs, "Rmax": max,
    "Rmin": min, "Rpower": pow,
}  # fmt: skip
NUMBER = r"\(?(-?\d+)(?: ([/*]) 2 \^ (\d+))?\)?"


def rational(text: str) -> Fraction:
    """A number as the exporter writes it."""
    mantissa, operation, exponent = re.fullmatch(NUMBER, text.strip()).groups()  # type: ignore[union-attr]
    power = Fraction(2) ** int(exponent or 0)
    return Fraction(int(mantissa)) / power if operation == "/" else Fraction(int(mantissa)) * power


def anchors(text: str, part: int) -> list[tuple[Fraction, ...]]:
    """Slope, offset and value of every anchor of a softmax."""
    listed = re.search(rf"Definition head_part_{part} : list anchor := \[(.*?)\]\.", text, re.DOTALL)
    assert listed
    rows = [row.strip()[1:-1].split(", ") for row in listed[1].split(";")]
    return [tuple(map(rational, row)) for row in rows]


def statement(text: str) -> tuple[Fraction, Fraction, Fraction]:
    """The theorem's interval and error."""
    found = re.search(r"Theorem within : forall x, (.*) <= x <= (.*) -> Rabs \(head x - f x\) <= (.*)\.\n", text)
    assert found
    digits, _, exponent = found[3].strip("()").partition(" / 10 ^ ")
    return rational(found[1]), rational(found[2]), Fraction(int(digits), 10 ** int(exponent or 0))


def function(text: str) -> Callable[[float], float]:
    """f, evaluated from its text alone."""
    found = re.search(r"Definition f \(x : R\) : R := (.*)\.\n", text)
    assert found
    tokens = re.findall(r"<=|[()+*/^<-]|[\w.]+", found[1])

    def value(x: float) -> float:
        rest = list(tokens)
        answer = _term(rest, x)
        assert not rest
        return answer

    return value


def _term(rest: list[str], x: float) -> float:
    token = rest.pop(0)
    if token != "(":
        return x if token == "x" else math.pi if token == "PI" else float(token)
    answer = _inside(rest, x)
    assert rest.pop(0) == ")"
    return answer


def _inside(rest: list[str], x: float) -> float:
    """What stands in brackets: a sign, a reciprocal, a condition, a function of its arguments, or one kind of sum."""
    if rest[0] in "-/":
        return -_term(rest, x) if rest.pop(0) == "-" else 1 / _term(rest, x)
    if rest[0] == "if":
        return _condition(rest, x)
    if rest[0] in FUNCTIONS:
        called, arguments = FUNCTIONS[rest.pop(0)], []
        while rest[0] != ")":
            arguments.append(_term(rest, x))
        return called(*arguments)
    answer = _term(rest, x)
    while rest[0] != ")":
        operation, other = rest.pop(0), _term(rest, x)
        if rest[0] == "^":  # a / 2 ^ k, a * 2 ^ k
            rest.pop(0)
            other **= _term(rest, x)
        answer = {"+": answer + other, "*": answer * other}.get(operation) if operation in "+*" else (
            answer / other if operation == "/" else answer**other
        )  # fmt: skip
    return answer


def _condition(rest: list[str], x: float) -> float:
    _, decision = rest.pop(0), rest.pop(0)
    a, b = _term(rest, x), _term(rest, x)
    assert rest.pop(0) == "then"
    then = _term(rest, x)
    assert rest.pop(0) == "else"
    other = _term(rest, x)
    return then if {"Rlt_dec": a < b, "Rle_dec": a <= b}[decision] else other
