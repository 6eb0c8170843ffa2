"""Heads of the shipped tables in the verifier's own terms, and their functions."""

from __future__ import annotations

from anchorhead.heads.self_keys.gate import GateHead
from anchorhead.heads.self_keys.self_key import SelfKeyHead
from anchorhead.heads.self_keys.self_key_powers import powers
from anchorhead.language.expressions.parser import parse
from anchorhead.verify.programs.expressions import Expression, read_expression
from anchorhead.verify.self_keys.gate import GatePart
from anchorhead.verify.self_keys.head import Quotient, SelfKey

TEXTS = {"linear": "x", "quick_gelu": "x*sigmoid(1.702*x)"}


def function_of(name: str) -> Expression:
    return read_expression(parse(TEXTS.get(name, f"{name}(x)")).to_json())


def self_key_of(head: SelfKeyHead) -> tuple[SelfKey, Quotient | None]:
    slopes, offsets, values = (column.tolist() for column in head.keys)
    key = SelfKey(slopes, offsets, values, head.own is not None, head.skip, head.bias)
    if not head.step:
        return key, None
    made = powers(head)
    numerator, denominator = ([float(x) for x in column] for column in (made.numerator, made.denominator))
    return key, Quotient(made.rate, made.low, made.high, numerator, denominator, made.own, made.own_index)


def gate_of(head: GateHead) -> list[GatePart]:
    return [
        GatePart([float(x) for x in part.slopes], [float(x) for x in part.offsets], float(part.factor))
        for part in head.parts
    ]
