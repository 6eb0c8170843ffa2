"""Heads of the shipped tables in the verifier's own terms, and their functions."""

from __future__ import annotations

import numpy as np
from flint import arb

from anchorhead.heads.self_keys.gate import GateHead
from anchorhead.heads.self_keys.self_key import SelfKeyHead
from anchorhead.heads.self_keys.self_key_powers import powers
from anchorhead.language.expressions.parser import parse
from anchorhead.verify.balls import coefficient, exact, precision
from anchorhead.verify.programs.expressions import Expression, read_expression
from anchorhead.verify.scalar.cells import Straight, _Proof
from anchorhead.verify.scalar.part import Claim
from anchorhead.verify.scalar.softmax import ORDER, Softmax
from anchorhead.verify.self_keys.gate import GatePart
from anchorhead.verify.self_keys.powers import Quotient
from anchorhead.verify.self_keys.self_key import SelfKey

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


def read_at(softmax: Softmax, x: float) -> arb:
    """What a softmax reads in exact arithmetic, but for keys that weigh less than e^-90."""
    (keys, _), = softmax.windows(np.array([x]), np.zeros(1))  # fmt: skip
    found = softmax.series(arb(x), arb(0), keys, 1)
    return coefficient(found, 0) + softmax.v[keys[0]] + softmax.own[keys[0]] * x


def rounding_on(softmaxes: list[Softmax], low: float, high: float, straight: Straight | None = None) -> float:
    """The largest rounding of a head on an interval, over max(1, |s|)."""
    with precision(cap=ORDER + 1):
        claim = Claim(None, 1.0, 0.0, 1.0, 0.0)
        proof = _Proof(softmaxes, claim, [(low, high)], 0.0, straight or Straight())
        ((_, cell),) = proof._cells([(exact(low), exact(high), 0)])
        assert cell is not None
        _, rounding, _ = proof._rounding([cell], cell.middle[None], cell.edge[None])
        return float(rounding.max())
