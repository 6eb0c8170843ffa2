"""The paper's uniform anchors, estimated: sizes and errors by formula, at any number of anchors.

A sketch stands where a shape would. Only its two outermost anchors are written down; they have the largest slopes,
offsets and values, which is all that bounds ask for. With K = (p - 1)/2, u the unit round-off, and queries q in
spacings,

    logits err by        Lambda = u c (3 K^2 + 24 K) + rounding of exp      (|2 k q| + |2 k q - k^2| for |q| <= K + 6),
    what is read by      exp(Lambda) (exp(Lambda) - 1) / 2 + gamma_(2p) K   spacings, and the sum with the middle;

for |q| > K + 6 one anchor has all the weight. Anchors more than 5 cells away weigh less than exp(-80), so the error of
the lattice itself is, for more anchors than a dozen, that of a dozen: less than LATTICE spacings.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np

from anchorhead.constructions.single.activation_heads import MAX_UNIFORM, ActivationHeads, uniform_anchors
from anchorhead.constructions.single.head import MAX_EVEN
from anchorhead.heads.atom import Dtype, Part
from anchorhead.language.expressions.expression import Expression
from anchorhead.proof.arithmetic.arithmetic import Arithmetic, arithmetic_of
from anchorhead.proof.enclosures.ranges import range_of, slope_bound
from anchorhead.proof.heads.activation_head import ActivationHead
from anchorhead.proof.heads.uniform_activation_head import SHARPNESS, ramp_of

LATTICE = 0.064
"""sup |r - ramp| of evenly spaced anchors with c = SHARPNESS, in spacings; a test proves it up to a dozen anchors."""
SHARPEST = 12.0
"""The largest c that `heads.uniform` tries for functions that are no ramps."""
GENEROUS = 1.25


@dataclass(frozen=True, eq=False)
class UniformEstimate(ActivationHead):
    """A shape of `count` anchors, of which the outermost two are written down.

    beta     the paper's inverse temperature: c / spacing^2
    refused  why it cannot be built, or nothing
    """

    count: int = 0
    beta: float = 0.0
    refused: str = ""

    @property
    def lengths(self) -> tuple[int, ...]:
        return (self.count,)


class UniformEstimates(ActivationHeads):
    """Estimates in place of `ActivationHeads` of uniform placement: nothing is solved or proven."""

    def __init__(self, dtype: Dtype) -> None:
        super().__init__(dtype, "uniform")

    def _even(self, activation: Expression, low: float, high: float, error: float) -> ActivationHead:
        return uniform_estimate(activation, low, high, error, self.dtype)


def uniform_estimate(activation: Expression, low: float, high: float, error: float, dtype: Dtype) -> UniformEstimate:
    """What would be built for this error on [low, high], or more."""
    ramp = ramp_of(activation, low, high)
    if ramp is None:
        return _values(activation, low, high, error)
    span = ramp[1] - ramp[0]
    count = uniform_anchors(span, error)
    spacing, middle, arithmetic = span / (count - 1), ramp[0] + span / 2, arithmetic_of(dtype)
    k = (count - 1) / 2 * np.array([-1.0, 1.0])
    query = 16 * arithmetic.unit * (abs(low) + abs(high) + abs(middle))
    return UniformEstimate(
        activation,
        low,
        high,
        (Part.of(2 * SHARPNESS * k, -SHARPNESS * k**2, k, "float64"),),
        LATTICE * _widest(error, count) + 16 * 2.0**-53 * (abs(ramp[0]) + abs(ramp[1])),
        spacing * _lattice_rounding(count, arithmetic) + query,
        in_scale=spacing,
        in_shift=middle,
        out_scale=spacing,
        out_shift=middle,
        count=count,
        beta=SHARPNESS / spacing**2,
        refused=_refused(count, dtype),
    )


def _widest(error: float, count: int) -> float:
    """The widest spacing that p anchors may have, or one less: ranges of later layers depend on earlier errors."""
    return error * ((count - 1) / (count - 2) if count > 3 else 2.0)


def _lattice_rounding(anchors: int, arithmetic: Arithmetic) -> float:
    """How far the dtype's reading of p even anchors may be off, in spacings."""
    u, k = arithmetic.unit, (anchors - 1) / 2
    logit = SHARPNESS * (3 * k**2 + 24 * k)
    error = min(u * logit + arithmetic.exp_error + 64 * u, 300.0)
    moved = 0.51 * np.exp(error) * np.expm1(error)
    summed = 2 * anchors * u / max(1 - 2 * anchors * u, 1e-3) * (k + 1)
    return GENEROUS * float(min(moved + summed + 4 * u * (k + 1), 2 * k))


def _values(activation: Expression, low: float, high: float, error: float) -> UniformEstimate:
    """Values of phi at even anchors: |r - phi| <= L spacing, so that p = 1 + L (b - a) / error will do.

    `head` proves what it builds within the error, rounding included.
    """
    slope = max(slope_bound(activation, low, high), 1e-300)
    count = max(2, 1 + ceil(slope * (high - low) / error))
    spacing = (high - low) / (count - 1)
    largest = max(float(np.abs(end).max()) for end in range_of(activation, np.array([low]), np.array([high])))
    origin = 0.0 if low <= 0 <= high else (low + high) / 2
    away, sharp = np.array([low, high]) - origin, SHARPEST / spacing**2
    part = Part.of(2 * sharp * away, -sharp * away**2, [largest, -largest], "float64")
    refused = (
        f"perhaps not built: by their slope more than {MAX_EVEN} anchors, and no more are" if count > MAX_EVEN else ""
    )
    return UniformEstimate(
        activation, low, high, (part,), error, 0.0,
        in_shift=origin, count=count, beta=SHARPNESS / spacing**2, refused=refused,
    )  # fmt: skip


def _refused(count: int, dtype: Dtype) -> str:
    """Offsets c k^2 = 11/4 k^2 are to be exact: 11 times the largest odd square must fit the dtype's digits."""
    k = (count - 1) // 2
    odd = count - 1 if count % 2 == 0 else k - (k + 1) % 2
    if 11 * odd**2 >= 2 ** (24 if dtype == "float32" else 53):
        return f"not built: more anchors than {dtype} keys can tell apart"
    return f"not built above {MAX_UNIFORM:,} anchors" if count > MAX_UNIFORM else ""
