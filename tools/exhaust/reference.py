"""What a head should give: a function in float64 on any device, for all inputs, and in Arb's balls, for the worst ones.

Float64 has 29 bits more than float32, so that an error of a float32 head is known to eight digits from float64 alone.
How far float64 is off itself (`noise`) is measured against Arb at a sample of inputs, and taken four times as large, as
in a hunt; inputs that come within it of the largest error, or of the bound, are judged by Arb.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, reduce
from typing import Any

import torch
from flint import arb
from torch import Tensor

from anchorhead.language.expressions.expression import Data, Expression
from anchorhead.language.expressions.precision import precision
from anchorhead.proof.search.hunt import MARGIN
from anchorhead.proof.search.hunt_claim import PRECISION
from tools.exhaust.floats import Inputs, floats_at

SAMPLE = 512
"""Inputs at which float64 is held against Arb."""


def values(function: Expression, x: Tensor) -> Tensor:
    """f(x) in float64 at every entry of x, by the formulas of targets.numeric."""
    x = x.double()
    results: list[Tensor] = []
    for op, data, places in function.program:
        args = [results[place] for place in places]
        if op in ("number", "pi", "e"):
            constant = {"pi": math.pi, "e": math.e}.get(op, data)
            results.append(torch.tensor(constant, dtype=torch.float64, device=x.device))
        else:
            results.append(x if op == "variable" else _RULES[op](data, *args))
    return results[-1].expand(x.shape)


def ball(function: Expression, x: float) -> arb:
    """An enclosure of f(x); to be used within `precision(PRECISION)`."""
    return function.ball(dict.fromkeys(function.variables, arb(x)))


@cache
def noise(function: Expression, inputs: Inputs, relative: bool, device: torch.device) -> float:
    """Four times the largest |float64 - f(x)| at a sample of the inputs, both ends included; relative to max(1, |x|),
    or absolute."""
    first, last = inputs.stretches[0][0], sum(inputs.stretches[-1]) - 1
    places = torch.tensor([first + k * (last - first) // (SAMPLE - 1) for k in range(SAMPLE)])
    sample = floats_at(places, inputs.dtype).double()
    computed = values(function, sample.to(device)).cpu()
    worst = 0.0
    with precision(PRECISION):
        for point, value in zip(sample.tolist(), computed.tolist(), strict=True):
            error = float((arb(value) - ball(function, point)).abs_upper())
            worst = max(worst, error / max(1.0, abs(point)) if relative else error)
    return MARGIN * worst


def _sigmoid(_: Data, x: Tensor) -> Tensor:
    small = torch.exp(-x.abs())
    return torch.where(x >= 0, 1.0, small) / (1 + small)


def _named(name: str) -> Callable[[Data, Tensor], Tensor]:
    function = getattr(torch, name)
    return lambda _, a: function(a)


def _where(relation: Data, a: Tensor, b: Tensor, then: Tensor, other: Tensor) -> Tensor:
    return torch.where(a < b if relation == "<" else a <= b, then, other)


_RULES: dict[str, Callable[..., Any]] = {
    "add": lambda _, *terms: reduce(torch.add, terms),
    "mul": lambda _, *factors: reduce(torch.mul, factors),
    "neg": lambda _, a: torch.neg(a),
    "div": lambda _, a, b: torch.div(a, b),
    "integer_power": lambda n, a: torch.pow(a, float(n)),
    "power": lambda _, a, b: torch.pow(a, b),
    "sigmoid": _sigmoid,
    "softplus": lambda _, a: torch.logaddexp(torch.zeros_like(a), a),
    "erfc": lambda _, a: torch.special.erfc(a),
    "min": lambda _, *args: reduce(torch.minimum, args),
    "max": lambda _, *args: reduce(torch.maximum, args),
    "where": _where,
    **{name: _named(name) for name in ("exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tanh", "erf", "abs")},
}
