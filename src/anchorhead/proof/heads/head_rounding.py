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
from anchorhead.heads.atom import Part
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic
from anchorhead.proof.enclosures.analytic import lipschitz_bound
from anchorhead.proof.enclosures.balls import crossings
from anchorhead.proof.heads.on_cells import Cells, softmax_on_cells

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
            moved = float(errors[steepest] / abs(slopes[steepest])) * UP
            rest = errors + np.abs(slopes) * moved * UP
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
    speeds = tuple(
        lipschitz_bound([part], low, high, origin, 0.02 if len(part.slopes) <= FEW else ROUGHLY, effort)
        for part in parts
    )
    head = _Head(tuple(parts), speeds, origin != 0, bias.astype(np.float64), arithmetic)
    if logit_errors is None:
        return head.sup([Wrong(np.zeros(len(part.slopes)), 0.0) for part in parts], *ends)
    ways = [ways_to_be_wrong(part, errors) for part, errors in zip(parts, logit_errors, strict=True)]
    worst = 0.0
    for left, right in pairwise(_cuts(parts, *ends)):
        bounds = []
        for wrong in product(*ways):
            moved = max(way.moved for way in wrong)
            shifts = sum(speed * way.moved for speed, way in zip(speeds, wrong, strict=True))
            bounds.append(head.sup(wrong, left - moved, right + moved) + shifts * UP)
        worst = max(worst, min(bounds))
    return worst


def _cuts(parts: Sequence[Part], low: float, high: float) -> list[float]:
    """The ends, and where the steepest anchors of the first part meet: on either side another one matters."""
    slopes, offsets, _ = parts[0].astype(np.float64)
    first, last = int(slopes.argmin()), int(slopes.argmax())
    if slopes[first] == slopes[last]:
        return [low, high]
    meet = float(-(offsets[last] - offsets[first]) / (slopes[last] - slopes[first]))
    return [low, meet, high] if low < meet < high else [low, high]


@dataclass(frozen=True, eq=False)
class _Head:
    """shifted: whether s - origin rounds; speeds: of each part a bound on |dr/dt|."""

    parts: tuple[Part, ...]
    speeds: tuple[float, ...]
    shifted: bool
    bias: Float[np.ndarray, " m"]
    arithmetic: Arithmetic

    def sup(self, wrong: Sequence[Wrong], low: float, high: float) -> float:
        """The largest bound of a cell, where cells are halved until it is close to the largest bound at a point."""
        return largest_on_cells(lambda a, b: self._on_cells(wrong, a, b), *first_cells(self.parts, low, high))

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def _on_cells(self, wrong: Sequence[Wrong], left: Cells, right: Cells) -> Cells:
        """The bound on each cell, for the worst output; infinite where it overflows."""
        worst = np.zeros(len(left))
        for output, shift in enumerate(self.bias):
            total, size = np.zeros(len(left)), np.full(len(left), abs(shift))
            for part, off, speed in zip(self.parts, wrong, self.speeds, strict=True):
                slopes, offsets, values = part.astype(np.float64)
                on = softmax_on_cells(slopes, offsets, values[:, output], speed, left, right)
                total = total + on.rounding(self.arithmetic, off.logits, self.shifted)
                size = size + (on.weights * on.values).sum(axis=1)
            additions = len(self.parts) - 1 + int(shift != 0)
            worst = np.maximum(worst, total + self.arithmetic.gamma(additions) * (size + total))
        return np.where(np.isnan(worst), np.inf, worst * UP)


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
