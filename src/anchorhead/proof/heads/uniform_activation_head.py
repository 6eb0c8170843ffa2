"""The paper's anchors as the shape of a neuron: even ones over the range of a truncated linear function, proven.

The query counts spacings from the middle of the range, t = (s - middle) / spacing; keys are (2c k, -c k^2), values k,
for k = -(p-1)/2 ... (p-1)/2, all of which floating point holds exactly. The bound is that of the single-head theorem's
own network on one token.
"""

from __future__ import annotations

import numpy as np

from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Part
from anchorhead.network import Attention, Embed, Network
from anchorhead.proof.heads.activation_head import ActivationHead
from anchorhead.proof.heads.ramp import Lattice, prove_ramp
from anchorhead.proof.heads.scalar_form import QUERY
from anchorhead.targets.expressions.expression import Expression
from anchorhead.targets.ramp import TruncatedLinear

SHARPNESS = 2.75
"""c = beta spacing^2: about the best, and of few bits, so that keys are exact."""


def ramp_of(activation: Expression, low: float, high: float) -> tuple[float, float] | None:
    """The two ends between which the activation is x, and beyond which it is constant, cut to [low, high]."""
    match activation.op:
        case "relu":
            ends = (0.0, max(high, 0.0))
        case "relu6":
            ends = (0.0, min(max(high, 0.0), 6.0))
        case "hardtanh" if all(arg.op == "number" for arg in activation.args[1:]):
            lower, upper = (float(arg.values({})) for arg in activation.args[1:])
            ends = (max(low, lower), min(high, upper))
        case _:
            return None
    if activation.args[0].op != "variable" or not ends[0] < ends[1]:
        return None
    return ends


def prove_uniform(
    activation: Expression, interval: tuple[float, float], ramp: tuple[float, float], anchors: int, dtype: str
) -> ActivationHead:
    """p even anchors for an activation that is x on `ramp` and constant on the rest of `interval`."""
    lattice = Lattice(ramp[0] + (ramp[1] - ramp[0]) / 2, (ramp[1] - ramp[0]) / (anchors - 1))
    k = np.arange(anchors) - (anchors - 1) / 2
    part = Part.of(2 * SHARPNESS * k, -SHARPNESS * k**2, k, dtype)  # type: ignore[arg-type]
    if not np.array_equal(part.offsets.astype(np.float64), -SHARPNESS * k**2):
        raise AnchorheadError(
            f"{anchors:,} uniform anchors are more than {dtype} keys can tell apart: use float64 or a larger within"
        )
    target = TruncatedLinear(np.ones((1, 1)), np.zeros(1), *ramp, np.zeros(0), np.zeros(1, int))
    bound = prove_ramp(_one_token(part, lattice, dtype), target, Box.of(interval), lattice)
    return ActivationHead(
        activation,
        *interval,
        (part,),
        bound.approximation,
        bound.head_rounding + bound.query_rounding,
        in_scale=lattice.spacing,
        in_shift=lattice.middle,
        out_scale=lattice.spacing,
        out_shift=lattice.middle,
    )


def _one_token(part: Part, lattice: Lattice, dtype: str) -> Network:
    """The theorem's head on one token: it carries the query and the first anchor, registers the others."""
    table = np.stack([np.zeros(len(part)), np.ones(len(part)), part.slopes, part.offsets, part.values[:, 0]], axis=1)
    table[0, 0] = -lattice.middle / lattice.spacing
    weight = np.zeros((5, 1))
    weight[0] = 1 / lattice.spacing
    pick = np.eye(5)
    arrays = [pick[None, :2], pick[None, 2:4], pick[None, 4:], np.full((1, 1, 1), lattice.spacing)]
    query, key, value, output = (array.astype(dtype) for array in arrays)
    return Network(
        [
            Embed(
                weight.astype(dtype),
                table[0].astype(dtype),
                registers=table[1:].astype(dtype),
                tokens=1,
                features=(QUERY, "one", "slope", "offset", "value"),
            ),
            Attention(query, key, value, output, bias=np.array([lattice.middle], dtype)),
        ]
    )
