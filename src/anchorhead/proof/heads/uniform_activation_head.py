"""The paper's anchors as the shape of a neuron: even ones over the range of a truncated linear function, proven.

The query counts spacings from the middle of the range, t = (s - middle) / spacing; keys are (2c k, -c k^2), values k,
for k = -(p-1)/2 ... (p-1)/2, all of which floating point holds exactly.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Part
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.targets.ramp import TruncatedLinear
from anchorhead.proof.arithmetic.arithmetic import arithmetic_of
from anchorhead.proof.heads.activation_head import ActivationHead
from anchorhead.proof.heads.cells import Readout
from anchorhead.proof.heads.ramp import Lattice, prove_ramp
from anchorhead.proof.heads.whole_head import ScalarHead

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
    ends = [(end - lattice.middle) / lattice.spacing for end in interval]
    slack = 1e-6 * (abs(ends[0]) + abs(ends[1]) + abs(lattice.middle / lattice.spacing))
    queries = ends[0] - slack, ends[1] + slack
    target = TruncatedLinear(np.ones((1, 1)), np.zeros(1), *ramp, np.zeros(0), np.zeros(1, int))
    arithmetic = arithmetic_of(dtype)
    # what softmax and sums lose below the smallest normal number is multiplied, too
    lost = np.full(anchors, 4 * anchors * arithmetic.tiny * max(lattice.spacing, 1.0))
    own = ScalarHead.of(part)
    head = replace(own, values=own.values * lattice.spacing, value_error=lost)
    exact, rounding = prove_ramp([head], Readout(lattice.middle, 1), queries, target, lattice, 0.0, arithmetic)
    return ActivationHead(
        activation,
        *interval,
        (part,),
        exact,
        rounding,
        in_scale=lattice.spacing,
        in_shift=lattice.middle,
        out_scale=lattice.spacing,
        out_shift=lattice.middle,
    )
