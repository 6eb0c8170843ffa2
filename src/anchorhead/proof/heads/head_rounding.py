"""How far a dtype's evaluation of a head on a scalar may be from exact arithmetic, over a whole interval.

The head is a sum of softmaxes, r(s) = bias + sum over parts of sum_k v_k softmax_k(a_k t + g_k), t = s - origin, with
weights that the dtype stores exactly. What a softmax does on a cell (proof.heads.on_cells) makes the bound of
proof.arithmetic.rounding at a point one for the cell. Cells are halved until the largest bound of a cell is close to
the largest bound at a point. A rounding of s - origin moves all logits by a_k t u; what they share changes no softmax,
so |a_k - A| t u remains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
from jaxtyping import Float

from anchorhead.effort import Effort
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic
from anchorhead.proof.arithmetic.rounding import logit_error, softmax_read_error
from anchorhead.proof.enclosures.analytic import lipschitz_bound
from anchorhead.proof.enclosures.balls import Part
from anchorhead.proof.heads.on_cells import softmax_on_cells

ROUNDS, LOOSE, MAX_CELLS = 60, 0.02, 40_000
FEW, ROUGHLY = 64, 0.3
"""Beyond so many anchors the steepest slope of a head, which takes their square, is bounded this roughly."""


@dataclass(frozen=True, eq=False)
class Wrong:
    """Errors of logits: the query moved by at most `moved`, and then each logit by at most its entry of `logits`."""

    logits: Float[np.ndarray, " p"]
    moved: float


def ways_to_be_wrong(part: Part, errors: Float[np.ndarray, " p"]) -> list[Wrong]:
    """Errors of logits as they are, or with that of the steepest anchor on either side taken for one of the query.

    The logit of anchor j is right for another query, at most e = error_j / |a_j| away; the others then err by their own
    error and |a_k| e. A steep anchor's error, which matters most, is so exchanged for a small one.
    """
    slopes = np.asarray(part.slopes, np.float64)
    ways = [Wrong(errors, 0.0)]
    for steepest in {int(slopes.argmin()), int(slopes.argmax())}:
        if slopes[steepest] != 0:
            moved = float(errors[steepest] / abs(slopes[steepest])) * (1 + 1e-12)
            rest = errors + np.abs(slopes) * moved * (1 + 1e-12)
            rest[steepest] = 0.0
            ways.append(Wrong(rest, moved))
    return ways


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
    if logit_errors is None:
        none = [Wrong(np.zeros(len(part.slopes)), 0.0) for part in parts]
        return _sup(parts, none, speeds, origin != 0, bias, ends, arithmetic)
    ways = [ways_to_be_wrong(part, errors) for part, errors in zip(parts, logit_errors, strict=True)]
    worst = 0.0
    for left, right in pairwise(_cuts(parts, *ends)):
        bounds = []
        for wrong in product(*ways):
            moved = max(way.moved for way in wrong)
            shifts = sum(speed * way.moved for speed, way in zip(speeds, wrong, strict=True))
            found = _sup(parts, wrong, speeds, origin != 0, bias, (left - moved, right + moved), arithmetic)
            bounds.append(found + shifts * UP)
        worst = max(worst, min(bounds))
    return worst


def _cuts(parts: Sequence[Part], low: float, high: float) -> list[float]:
    """The ends, and where the steepest anchors of the first part meet: on either side another one matters."""
    slopes, offsets = (np.asarray(array, np.float64) for array in (parts[0].slopes, parts[0].offsets))
    first, last = int(slopes.argmin()), int(slopes.argmax())
    if slopes[first] == slopes[last]:
        return [low, high]
    meet = float(-(offsets[last] - offsets[first]) / (slopes[last] - slopes[first]))
    return [low, meet, high] if low < meet < high else [low, high]


def _sup(
    parts: Sequence[Part],
    wrong: Sequence[Wrong],
    speeds: Sequence[float],
    shifted: bool,
    bias: Float[np.ndarray, " m"],
    ends: tuple[float, float],
    arithmetic: Arithmetic,
) -> float:
    """The largest bound of a cell, where cells are halved until it is close to the largest bound at a point."""
    left, right = first_cells(parts, *ends)
    return largest_on_cells(
        lambda a, b: _cell_bound(parts, wrong, speeds, shifted, bias, a, b, arithmetic),
        left,
        right,
    )


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
        slopes, offsets = part.slopes.astype(np.float64), part.offsets.astype(np.float64)
        steps = np.diff(slopes)
        crossings = -np.diff(offsets)[steps > 0] / steps[steps > 0]
        reach = np.concatenate([[0.0], np.geomspace(0.1 / max(np.ptp(slopes), 1e-300), high - low, 24)])
        nodes += [(crossings[:, None] + sign * reach).ravel() for sign in (-1, 1)]
    cuts = np.unique(np.clip(np.concatenate(nodes), low, high))
    return cuts[:-1], cuts[1:]


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _cell_bound(
    parts: Sequence[Part],
    wrong: Sequence[Wrong],
    speeds: Sequence[float],
    shifted: bool,
    bias: Float[np.ndarray, " m"],
    left: Float[np.ndarray, " cells"],
    right: Float[np.ndarray, " cells"],
    arithmetic: Arithmetic,
) -> Float[np.ndarray, " cells"]:
    """The bound on each cell, for the worst output; infinite where it overflows."""
    worst = np.zeros(len(left))
    for output, shift in enumerate(bias.astype(np.float64)):
        total, size = np.zeros(len(left)), np.full(len(left), abs(shift))
        for part, off, speed in zip(parts, wrong, speeds, strict=True):
            error, reach = _part_bound(part, off.logits, speed, output, shifted, left, right, arithmetic)
            total, size = total + error, size + reach
        additions = len(parts) - 1 + int(shift != 0)
        worst = np.maximum(worst, total + arithmetic.gamma(additions) * (size + total))
    return np.where(np.isnan(worst), np.inf, worst * UP)


def _part_bound(
    part: Part,
    wrong: Float[np.ndarray, " p"],
    speed: float,
    output: int,
    shifted: bool,
    left: Float[np.ndarray, " cells"],
    right: Float[np.ndarray, " cells"],
    arithmetic: Arithmetic,
) -> tuple[Float[np.ndarray, " cells"], Float[np.ndarray, " cells"]]:
    """The rounding of one softmax on each cell, and a bound on |its output|."""
    slopes, offsets, values = (np.asarray(a, np.float64) for a in (part.slopes, part.offsets, part.values[:, output]))
    on = softmax_on_cells(slopes, offsets, values, speed, left, right)
    lean = on.size[:, None] * on.leaning if shifted else 0.0
    errors = wrong + logit_error(np.abs(slopes), on.size[:, None], on.logits, lean, arithmetic)
    nothing = np.zeros_like(on.weights)
    error = softmax_read_error(on.weights, on.gaps, errors, on.deviation, on.result, on.values, nothing, arithmetic)
    return error, (on.weights * on.values).sum(axis=1)
