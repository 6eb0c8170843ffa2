"""How far a dtype's evaluation of a head on a scalar may be from exact arithmetic, over a whole interval.

The head is a sum of softmaxes, r(s) = bias + sum over parts of sum_k v_k softmax_k(a_k t + g_k), t = s - origin, with
weights that the dtype stores exactly. What a softmax does on a cell (proof.heads.on_cells) makes the bound of
proof.arithmetic.rounding at a point one for the cell. Cells are halved until the largest bound of a cell is close to
the largest bound at a point. A rounding of s - origin moves all logits by a_k t u; what they share changes no softmax,
so |a_k - A| t u remains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float

from anchorhead.effort import Effort
from anchorhead.heads.atom import Part
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic
from anchorhead.proof.enclosures.analytic import lipschitz_bound
from anchorhead.proof.enclosures.balls import crossings
from anchorhead.proof.heads.on_cells import Cells, softmax_on_cells

ROUNDS, LOOSE, MAX_CELLS = 60, 0.02, 40_000
FEW, ROUGHLY = 64, 0.3
"""Beyond so many anchors the steepest slope of a head, which takes their square, is bounded this roughly."""


def head_rounding(
    parts: Sequence[Part],
    origin: float,
    bias: Float[np.ndarray, " m"],
    low: float,
    high: float,
    arithmetic: Arithmetic,
    logit_errors: Sequence[Float[np.ndarray, " p"]] | None = None,
    effort: Effort | None = None,
) -> float:
    """A bound on |computed r(s) - r(s)| for every s of the dtype in [low, high], in every output.

    `logit_errors` bound, for each part and anchor, by how much logits may be wrong beyond the rounding of a t + g.
    """
    ends = np.nextafter(low - origin, -np.inf), np.nextafter(high - origin, np.inf)
    speeds = [
        lipschitz_bound([part], low, high, origin, 0.02 if len(part.slopes) <= FEW else ROUGHLY, effort)
        for part in parts
    ]
    wrong = [np.zeros(len(part)) for part in parts] if logit_errors is None else logit_errors
    columns = [part.astype(np.float64) for part in parts]

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def on_cells(left: Cells, right: Cells) -> Cells:
        """The bound on each cell, for the worst output; infinite where it overflows."""
        worst = np.zeros(len(left))
        for output, shift in enumerate(bias.astype(np.float64)):
            total, size = np.zeros(len(left)), np.full(len(left), abs(shift))
            for (slopes, offsets, values), off, speed in zip(columns, wrong, speeds, strict=True):
                on = softmax_on_cells(slopes, offsets, values[:, output], speed, left, right)
                total = total + on.rounding(arithmetic, off, shifted=origin != 0)
                size = size + (on.weights * on.values).sum(axis=1)
            additions = len(parts) - 1 + int(shift != 0)
            worst = np.maximum(worst, total + arithmetic.gamma(additions) * (size + total))
        return np.where(np.isnan(worst), np.inf, worst * UP)

    return largest_on_cells(on_cells, *first_cells(parts, *ends))


def largest_on_cells(
    bound_on: Callable[[np.ndarray, np.ndarray], np.ndarray],
    left: Float[np.ndarray, " cells"],
    right: Float[np.ndarray, " cells"],
) -> float:
    """The largest of bound_on(left, right), cells halved until it is close to the largest at a point."""
    sup = floor = 0.0
    for _ in range(ROUNDS):
        bound = bound_on(left, right)
        centre = (left + right) / 2
        floor = max(floor, float(bound_on(centre, centre).max()))
        loose = (bound > (1 + LOOSE) * floor) & (centre > left) & (centre < right)
        sup = max(sup, float(bound[~loose].max(initial=0.0)))
        if not loose.any() or loose.sum() > MAX_CELLS:
            return max(sup, float(bound.max()))
        left, right = (np.concatenate(ends) for ends in ((left[loose], centre[loose]), (centre[loose], right[loose])))
    return max(sup, float(bound_on(left, right).max()))


def first_cells(
    parts: Sequence[Part], low: float, high: float
) -> tuple[Float[np.ndarray, " cells"], Float[np.ndarray, " cells"]]:
    """Cells of t = s - origin that narrow geometrically towards the crossings of neighbouring anchors."""
    nodes = [np.linspace(low, high, 33), np.array([0.0])]
    for part in parts:
        steepest = max(float(np.ptp(part.slopes.astype(np.float64))), 1e-300)
        reach = np.concatenate([[0.0], np.geomspace(0.1 / steepest, high - low, 24)])
        nodes += [(crossings(part)[:, None] + sign * reach).ravel() for sign in (-1, 1)]
    cuts = np.unique(np.clip(np.concatenate(nodes), low, high))
    return cuts[:-1], cuts[1:]
