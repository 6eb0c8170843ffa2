"""A softmax over a grid against a function that need not be smooth, cell by cell.

Lemma. On a cell of widths w_j let I interpolate along each axis, linearly between the corners. Then

    |r - f| <= max |r - f| at the corners + sum_j w_j^2 / 8 sup |d_j^2 r| + sup |f - I f|.

Proof. r - f - I (r - f) is (r - I r) - (f - I f), what is interpolated is never larger than at a corner, and r - I r is
sum_j I_1 … I_(j-1) (r - I_j r), of which |r - I_j r| <= w_j^2 / 8 sup |d_j^2 r| (`rounding.bends`).

What is known of f at corners and on cells, the caller says (`functions`). A box is looked at in some cells; the
smallest box around those on which the bound does not follow is halved, along the axis that adds most.
"""

from __future__ import annotations

import numpy as np

from anchorhead.verify.errors import NotVerified
from anchorhead.verify.grids.functions import Known
from anchorhead.verify.grids.head import Box, Grid, Unsettled, halves
from anchorhead.verify.grids.polynomial import contract
from anchorhead.verify.grids.rounding import UP, bends, log_weights, on_cells
from anchorhead.verify.rounding import OWN_UNIT, Arithmetic

CELLS = {1: 4096, 2: 200, 3: 24, 4: 10}
"""Of a box, along each of so many axes."""
LOOKS = {1: 1000, 2: 100, 3: 100, 4: 100}
"""Boxes of cells, at most."""


def cover(grid: Grid, known: Known, box: Box, model: Arithmetic, stated: float) -> int:
    """The number of boxes that it took to show |computed r - f| <= stated; raises NotVerified where that does not
    follow, and Unsettled where it takes more."""
    grid.check()
    waiting, looked, looks = [box], 0, LOOKS[len(box)]
    while waiting:
        box = waiting.pop()
        looked += 1
        if looked > looks:
            raise Unsettled(f"the bound {stated:.6g} on a grid does not follow within {looks:,} boxes of cells")
        cuts = [np.linspace(a, b, 1 + (CELLS[len(box)] if a < b else 1)) for a, b in box]
        bound, least, along = _on_cells(grid, known, model, cuts)
        if not least <= stated:
            raise NotVerified(f"a bound of {stated:.6g} does not follow on a grid: it is off by {least:.6g}")
        wide = ~(bound <= stated)
        if wide.any():
            axis = int(along[np.unravel_index(int(np.where(wide, bound, 0.0).argmax()), bound.shape)].argmax())
            left = [
                (float(cut[n.min()]), float(cut[n.max() + 1])) for cut, n in zip(cuts, np.nonzero(wide), strict=True)
            ]
            waiting += halves(left, axis)
    return looked


def _on_cells(
    grid: Grid, known: Known, model: Arithmetic, cuts: list[np.ndarray]
) -> tuple[np.ndarray, float, np.ndarray]:
    """The lemma with the rounding, the least that an error surely is at a corner, and what each axis adds."""
    truth, unsure, spreads = known(cuts)
    logs = [log_weights(grid, j, cut) for j, cut in enumerate(cuts)]
    weights, size = [np.exp(log_w) for log_w, _ in logs], np.abs(grid.values)
    read, most = contract(grid.values, weights), contract(size, [np.exp(log_w + off) + 1e-300 for log_w, off in logs])
    own = 8 * (sum(size.shape) + 17) * OWN_UNIT
    unsure = unsure + most - contract(size, weights) + own * most + 4 * OWN_UNIT * np.abs(truth)
    away = np.abs(truth - read)
    least, corner = float((away - unsure * UP).max()), (away + unsure) * UP
    for axis in range(len(cuts)):
        corner = np.maximum(*(np.delete(corner, end, axis) for end in (0, -1)))
    totals = [one.sum(axis=-1) for one in spreads]
    best = np.choose(np.argmin(totals, axis=0)[..., None], spreads)
    along = best + bends(grid, cuts)
    return (corner + along.sum(axis=-1)) * UP + on_cells(grid, cuts, model), least, along
