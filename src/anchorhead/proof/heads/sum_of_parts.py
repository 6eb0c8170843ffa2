"""The error of a network of several parts: those of the parts, and the rounding of their sums.

Output o is the sum over the parts p that have a share in it. If each is within e_po of its function, and |computed| at
most s_po, then the sum, in any order, is within

    sum_p e_po + gamma_(k-1) sum_p s_po,      k the number of parts with a share in o.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from flint import arb
from jaxtyping import Float

from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.proof.arithmetic.affine_forms import Sources, own_error
from anchorhead.proof.arithmetic.arithmetic import Arithmetic
from anchorhead.proof.enclosures.balls import upper
from anchorhead.proof.heads.neurons import Layer
from anchorhead.proof.statement import Statement
from anchorhead.targets.analysis.summands import GridPart
from anchorhead.targets.expressions.expression import Expression
from anchorhead.targets.expressions.precision import precision
from anchorhead.targets.mlp import Mlp, merged

SUMS = "rounding of the sums of the parts"


@dataclass(frozen=True, eq=False)
class Stated:
    """What is stated of one part: a grid, or the neurons (part: None)."""

    part: GridPart | None
    sides: tuple[int, ...]
    terms: Mapping[str, float]
    method: str


def parts_statement(stated: Sequence[Stated], total: float, sums: float, target: str) -> Statement:
    """The whole network's bound, from those of its parts."""
    terms = {f"{one.part or 'neurons'}: {name}": value for one in stated for name, value in one.terms.items()}
    methods = [
        f"neurons, {one.method}" if one.part is None else f"{one.part}, {' x '.join(map(str, one.sides))} anchors"
        for one in stated
    ]
    method = f"parts side by side, each with a bound of its own: {'; '.join(methods)}"
    return Statement(total, {**terms, SUMS: sums}, method, target, more=1.0)


@dataclass(frozen=True, eq=False)
class Share:
    """A part's error and a bound on its exact value, for each of all outputs; 0 where it has no share."""

    error: Float[np.ndarray, " outputs"]
    size: Float[np.ndarray, " outputs"]


def total_error(shares: Sequence[Share], arithmetic: Arithmetic) -> tuple[float, float]:
    """The largest error of any output, and the part of it that the sums round."""
    errors = np.sum([share.error for share in shares], axis=0)
    sizes = np.sum([share.size + share.error for share in shares], axis=0)
    terms = np.maximum(np.sum([share.size + share.error > 0 for share in shares], axis=0) - 1, 0)
    sums = arithmetic.gamma(terms) * sizes * (1 + 1e-12)
    worst = int((errors + sums).argmax())
    return float((errors + sums)[worst]) * (1 + 1e-12), float(sums[worst])


def network_share(target: Mlp, low: np.ndarray, high: np.ndarray, error: np.ndarray | float) -> Share:
    """The share of the neurons, their size by intervals, layer by layer."""
    hidden, readout = merged(target)
    sources = Sources(np.asarray(low, np.float64).reshape(-1), np.asarray(high, np.float64).reshape(-1))
    for affine, layer in hidden:
        sources = Layer(affine, layer.activations, layer.which).exact(sources)[2]
    weight_error, bias_error = readout.errors
    weight, bias = np.abs(readout.weight) + weight_error, np.abs(readout.bias) + bias_error
    size = (weight @ sources.size + bias) * (1 + own_error(weight.shape[1]))
    return Share(np.broadcast_to(np.asarray(error, np.float64), size.shape), size)


def grid_share(
    part: GridPart, atom: GridAtom, low: Sequence[float], high: Sequence[float], error: float, outputs: int
) -> Share:
    """The share of a grid: a mean of its values, so no larger than they are; nor than its function can be."""
    errors, sizes = np.zeros(outputs), np.zeros(outputs)
    with precision(64):
        box = {name: arb(a).union(arb(b)) for name, a, b in zip(part.variables, low, high, strict=True)}
    for number, output in enumerate(part.outputs):
        largest = float(np.abs(atom.values[..., number]).max()) + abs(float(atom.bias[number])) + error
        errors[output], sizes[output] = error, min(largest * (1 + 1e-12), _largest(part.expressions[output], box))
    return Share(errors, sizes)


def _largest(expression: Expression, box: dict[str, arb]) -> float:
    with precision(64):
        ball = expression.ball(box)
        return upper(abs(ball)) if ball.is_finite() else np.inf
