"""A softmax over a tensor grid of anchors against a function of up to four variables that is analytic around a box.

Claim: for every x of the dtype in a box |computed r(x) - f(x)| <= stated.

On a box let I_j interpolate along x_j at n_j Chebyshev points. Then, for f and for r,

    |g - I_1 … I_d g| <= sum_j |I_1| … |I_(j-1)| sup |g - I_j g|,      |I| <= 1 + (2/pi) ln n.

Lemma. If |g| <= M on the ellipse of parameter rho around an interval, |g - I g| <= 4 M rho^(1 - n) / (rho - 1) for n
points. Proof. Chebyshev coefficients are at most 2 M rho^(-k), and interpolation takes T_k, k >= n, to 0 or to plus or
minus one of lower degree, and keeps all below.

For r that is made sharper (`head`). |f| is bounded in complex balls (`programs.complex`), on a rectangle around the
upper half of the ellipse, times the real intervals of the other axes: at conjugate points f is conjugate. The rectangle
is cut in parts until what balls know is not much more than what is met at their middles.

The interpolant of r - f is a polynomial that is known from values at points, and bounded (`polynomial`); it, the rests
and the rounding on the box (`rounding`) have to add up to no more than what is stated. Boxes on which that is not shown
are halved; first of all those on which r or f is not smooth enough, so that it is known early if it takes too many.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from flint import acb

from anchorhead.verify.balls import above, hull, precision
from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.grids.functions import on_tensor
from anchorhead.verify.grids.head import Box, Grid, Unsettled, halves, shown
from anchorhead.verify.grids.polynomial import chebyshev_points, from_values, largest, product
from anchorhead.verify.grids.rounding import grid_rounding
from anchorhead.verify.programs.complex import COMPLEX
from anchorhead.verify.programs.expressions import Expression, evaluated
from anchorhead.verify.rounding import OWN_UNIT, SLACK, Arithmetic

MAX_POINTS, MAX_NODES = 120, 1_000_000
"""Along an axis, and of a box."""
MAX_BOXES, MAX_OPERATIONS = 128, 40_000_000
"""Operations: those of the function, on balls."""
RHOS = (1.1, 1.25, 1.5, 1.8, 2.2, 2.7, 3.4, 4.5, 6.0, 9.0, 15.0, 30.0)
PARTS, SMALLEST, LARGE = 1_000, 1e-4, 8.0
"""Of a rectangle, so many and no smaller than this share of a side; a bound on one may be so many times what is met."""
REST = 0.002
"""Of what is stated: what each kind of rest may add."""
WIDER = 1 + 1e-12


def verify_grid(
    grid: Grid, function: Expression, variables: Sequence[str], box: Box, model: Arithmetic, stated: float
) -> int:
    """The number of boxes that it took; raises NotVerified where the bound does not follow."""
    grid.check()
    low, high = zip(*box, strict=True)
    with precision():
        cuts, rounding = grid_rounding(grid, low, high, model, 0.02 * stated)
        require(float(rounding.min()) < stated, f"a bound of {stated:.6g} on a grid whose rounding alone is larger")
        return _Proof(grid, function, list(variables), cuts, rounding, stated).cover(box)


@dataclass(eq=False)
class _Proof:
    grid: Grid
    function: Expression
    variables: list[str]
    cuts: list[np.ndarray]
    rounding: np.ndarray
    stated: float
    boxes: int = 0
    operations: int = 0
    _heads: dict[tuple[int, tuple[float, float]], np.ndarray] = field(default_factory=dict)

    def cover(self, box: Box) -> int:
        waiting = self._smooth(box)
        while waiting:
            box, counts, rest = waiting.pop()
            worst = self._unproven(box, counts, rest)
            if worst is not None:
                waiting += [one for half in halves(box, worst) for one in self._smooth(half)]
        return self.boxes

    def _smooth(self, box: Box) -> list[tuple[Box, list[int], float]]:
        """The box in parts on which interpolation, at so many points along each axis, leaves at most a small rest."""
        waiting, found = [box], []
        while waiting:
            box = waiting.pop(0)  # the widest: what is hopeless is seen before there is work
            self.boxes += 1
            self._spend(0)
            counts, rest, worst = self._counts(box)
            if counts is None:
                waiting += halves(box, worst)
            else:
                found.append((box, counts, rest))
                self._spend(math.prod(counts))
        return found

    def _spend(self, values: int) -> None:
        """Of what there is for so many values of the function."""
        self.operations += values * len(self.function.nodes)
        if self.boxes > MAX_BOXES or self.operations > MAX_OPERATIONS:
            raise Unsettled(f"a grid that takes more than {MAX_BOXES:,} boxes or {MAX_OPERATIONS:,} operations")

    def _counts(self, box: Box) -> tuple[list[int] | None, float, int]:
        """How many points along each axis, and the rest of the interpolation; or None and the axis to halve."""
        norm, rest, counts = 1.0, 0.0, []
        for j, side in enumerate(box):
            allowed = REST * self.stated / len(box) / norm
            if (j, side) not in self._heads:
                self._heads[j, side] = self.grid.interpolation_errors(j, *side, allowed / 40, MAX_POINTS)
            heads = self._heads[j, side]
            least = np.flatnonzero(heads <= allowed / 2)
            n, error = self._points(box, j, allowed / 2, int(least[0])) if len(least) else (MAX_POINTS + 1, 0.0)
            if n > MAX_POINTS:
                return None, math.inf, j
            counts.append(n)
            rest += norm * float(heads[n] + error) * SLACK
            norm *= _norm(n)
        return (counts if math.prod(counts) <= MAX_NODES else None), rest, int(np.argmax(counts))

    def _points(self, box: Box, j: int, allowed: float, least: int) -> tuple[int, float]:
        """How many points, at least so many, for f along an axis, and what interpolation leaves: by ever larger
        ellipses, until the least will do, or more points would be needed."""
        best = 10**9, math.inf
        for rho in RHOS:
            scale = 4 * self._size(box, j, rho) / (rho - 1) * SLACK
            if scale == math.inf:
                break
            n = max(least, 1 + math.ceil(math.log(max(scale / allowed, 1.0)) / math.log(rho)))
            if n > best[0]:
                break
            best = n, scale * rho ** (1 - n) * SLACK
            if n == least:
                break
        return best

    def _size(self, box: Box, j: int, rho: float) -> float:
        """A bound on |f| on the ellipse along an axis; infinite where none is found."""
        low, high = box[j]
        centre, half = low / 2 + high / 2, (high / 2 - low / 2) * WIDER + 1e-15 * max(abs(low), abs(high))
        reach, top = half * (rho + 1 / rho) / 2 * WIDER, half * (rho - 1 / rho) / 2 * WIDER
        whole = [*box[:j], (centre - reach, centre + reach), *box[j + 1 :], (0.0, top)]
        waiting, met, most = [whole], 0.0, 0.0
        for _ in range(PARTS):
            if not waiting:
                return most
            part = waiting.pop()
            bound, middles = self._on(part, j), [(a / 2 + b / 2, a / 2 + b / 2) for a, b in part]
            if not bound <= LARGE * met:
                met = max(met, self._on(middles, j))
            if bound <= LARGE * met < math.inf:
                most = max(most, bound)
                continue
            # what matters is halved: the side without which the least is left, of several the longest
            left = [self._on([*part[:i], one, *part[i + 1 :]], j) for i, one in enumerate(middles)]
            shares = [(b - a) / (d - c or 1.0) for (a, b), (c, d) in zip(part, whole, strict=True)]
            i = min(range(len(part)), key=lambda i: (left[i], -shares[i]))
            if shares[i] < SMALLEST:
                break
            waiting += halves(part, i)
        return math.inf

    def _on(self, part: Box, j: int) -> float:
        """A bound on |f| where x_j has these real parts and, the last side, these imaginary ones."""
        self._spend(1)
        *real, imaginary = (hull(*side) for side in part)
        at = {name: acb(ball) for name, ball in zip(self.variables, real, strict=True)}
        at[self.variables[j]] = acb(real[j], imaginary)
        found = acb(evaluated(self.function, at, COMPLEX))
        return above(found.abs_upper()) if found.is_finite() else math.inf

    def _unproven(self, box: Box, counts: list[int], rest: float) -> int | None:
        """Nothing, if the bound follows on the box; else the axis along which to halve it. Raises where it is hopeless:
        what is met at a point, and the rests and the smallest rounding, are more than what is stated."""
        axes = [chebyshev_points(*side, n) for side, n in zip(box, counts, strict=True)]
        weights = [self.grid.weights(j, axis) for j, axis in enumerate(axes)]
        read, off = product(self.grid.values, weights, REST * self.stated / 8)
        truth, more = on_tensor(self.function, self.variables, axes)
        p, error = from_values(read - truth)
        unsure = float((off + more + 2 * OWN_UNIT * (np.abs(read) + np.abs(truth))).max())
        error += rest + unsure * math.prod(map(_norm, counts))
        cells = tuple(_touching(cuts, *one) for cuts, one in zip(self.cuts, box, strict=True))
        rounding = self.rounding[cells]
        met, bound, worst = largest(p, self.stated - (error + float(rounding.max())) * SLACK)
        least = met + error + float(rounding.min())
        if not least <= self.stated:
            raise NotVerified(f"a bound of {self.stated:.6g} on a grid: near {shown(box)} only {least:.6g} is shown")
        if (bound + error + float(rounding.max())) * SLACK <= self.stated:
            return None
        shares = [np.ptp(side) / (np.ptp(cuts) or 1.0) for side, cuts in zip(box, self.cuts, strict=True)]
        return worst if bound - met > np.ptp(rounding) else int(np.argmax(shares))


def _norm(n: int) -> float:
    return 1 + 2 / math.pi * math.log(n) + 1e-9


def _touching(cuts: np.ndarray, low: float, high: float) -> slice:
    """The cells that touch an interval."""
    first = int(np.searchsorted(cuts, low, side="left")) - 1
    last = int(np.searchsorted(cuts, high, side="right"))
    return slice(max(0, first), min(len(cuts) - 1, max(last, 1)))
