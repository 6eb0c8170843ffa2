"""The error of a head over a tensor grid: exact arithmetic against the target, and the dtype against exact arithmetic.

Let g = f - r on a box, and I_j g the polynomial of degree n_j in x_j that agrees with g at cos(k pi / n_j).

1. g - I_1 … I_d g = sum_j I_1 … I_(j-1) (g - I_j g), so |g - I_1 … I_d g| <= sum_j e_j prod_{l < j} L_l, where e_j
   bounds |f - I_j f| (grid_target) plus |r - I_j r| (grid_head), and L = 1 + (2/pi) ln(n + 1) the Lebesgue constant of
   interpolation at cos(k pi / n).
2. With values that are off by at most e, the polynomial p through them obeys |I_1 … I_d g - p| <= e prod_j L_j.
3. sup |p| follows from values on a finer grid (grid_polynomial).

Together:  sup |g| <= sup |p| + e prod_j L_j + sum_j e_j prod_{l < j} L_l.

Where ellipses cannot be found or degrees are too high, the box is halved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from flint import arb

from anchorhead.effort import Effort
from anchorhead.errors import AnchorheadError
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.language.expressions.complex_balls import resolve
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.precision import FLOAT64_BITS, precision
from anchorhead.progress import Progress, at_its_pace
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic
from anchorhead.proof.enclosures.operations import PER_ANCHOR
from anchorhead.proof.grids.grid_head import (
    MAX_COEFFICIENTS,
    PRECISION,
    WIDE,
    chebyshev_points,
    expansion,
    head_on_grid,
    rounded,
    weights,
)
from anchorhead.proof.grids.grid_polynomial import largest_on_box
from anchorhead.proof.grids.grid_rounding import prove_grid_rounding
from anchorhead.proof.grids.grid_target import AnalyticTarget
from anchorhead.proof.grids.grid_work import Work
from anchorhead.proof.grids.proven_grid import ProvenGrid
from anchorhead.terms import Term

METHOD = (
    "for every x of the box: difference of target and head interpolated at Chebyshev points, remainders bounded on "
    "Bernstein ellipses with complex balls; rounding on cells"
)
MAX_NODES = 2_500_000
"""Of a box, times outputs: beyond, it is halved."""
TIGHT = 0.01
"""The share of the largest difference that remainders may add to the bound."""
_HALVINGS = 40
_USUAL = 3.3
"""About the Lebesgue constant of the degrees that occur: only to share errors out."""
PROVING = "proving (Ctrl-C keeps the network, unproven)"
OPERATIONS = 20_000_000
"""On balls (proof.enclosures.operations), of one proof: about so many microseconds."""
# the operations that a value of a polynomial takes, in floats; a ball that becomes a float; a ball within an array
_PER_VALUE, _PER_BALL, _IN_ARRAYS = 0.02, 2.0, 0.25


def prove_grid(
    atom: GridAtom,
    expressions: Sequence[Expression],
    variables: Sequence[str],
    low: Sequence[float],
    high: Sequence[float],
    arithmetic: Arithmetic,
    effort: Effort | None = None,
    progress: Progress | None = None,
) -> ProvenGrid:
    """A bound on |computed head - target| for every x of the box from low to high, in every output.

    Raises where the target is not analytic around the box, and TooLong where it takes more than the effort.
    `progress` is told the share that is done and about how many seconds are left.
    """
    start, stop = (np.asarray(end, np.float64).reshape(-1) for end in (low, high))
    if not len(start) == len(stop) == len(variables) == atom.variables or len(expressions) != atom.outputs:
        raise AnchorheadError(
            f"a grid of {atom.variables} variables and {atom.outputs} outputs, a target of {len(expressions)} "
            f"functions of {len(variables)} variables on {len(start)} intervals: the numbers must agree"
        )
    if not (np.isfinite(start).all() and np.isfinite(stop).all() and (start <= stop).all()):
        raise AnchorheadError(
            f"low={list(start)}, high={list(stop)} is not a box: give finite ends, the lower ones first"
        )
    rounding = prove_grid_rounding(atom, start, stop, arithmetic)
    work = Work(effort or Effort(OPERATIONS), None if progress is None else at_its_pace(progress, PROVING))
    smooth = smooth_on_box(expressions, variables, start.tolist(), stop.tolist())
    exact = _Exact(atom, AnalyticTarget(smooth, variables, work.spend), work, rounding / 20)
    exact.cover(start, stop)
    return ProvenGrid(atom, start, stop, (Term("approximation", exact.bound),), rounding, METHOD, exact.found, exact.at)


@precision(FLOAT64_BITS)
def smooth_on_box(
    expressions: Sequence[Expression],
    variables: Sequence[str],
    low: Sequence[float],
    high: Sequence[float],
    ways: str = "",
) -> list[Expression]:
    """The expressions without switches that they are on the box; refuses those that have a kink in it.

    ways  what else a caller can do with a kink, for the refusal
    """
    box = {name: arb(float(a)).union(arb(float(b))) for name, a, b in zip(variables, low, high, strict=True)}
    result = []
    for expression in expressions:
        unknown = set(expression.variables) - set(variables)
        if unknown:
            raise AnchorheadError(f"{expression} depends on {', '.join(sorted(unknown))}, not a variable of the grid")
        try:
            result.append(resolve(expression, box) if expression.has_switches else expression)
        except AnchorheadError as error:
            raise AnchorheadError(
                f"{expression} has a kink inside the box (abs, min, max, where): a kink in several variables cannot go "
                f"to a solved grid. Ways out: {ways}a smooth function such as softplus; a box on one side of the kink; "
                "a sum of functions of one linear combination each"
            ) from error
    return result


class _Exact:
    """sup |target - head| over boxes, one after the other.

    bound    |g| <= bound on all of them      found, at    a lower bound of |g| at a point: the largest value seen
    """

    def __init__(self, atom: GridAtom, target: AnalyticTarget, work: Work, floor: float) -> None:
        self.atom, self.target, self.work, self.floor = atom, target, work, floor
        self.bound, self.found, self.at = 0.0, 0.0, tuple(float(x) for x in atom.origins)

    def cover(self, low: np.ndarray, high: np.ndarray) -> None:
        stack = [(low, high, 1.0)]
        while stack:
            low, high, share = stack.pop()
            if self._box(low, high, share):
                continue
            if share < 0.5**_HALVINGS:
                raise self._not_analytic(low, high)
            stack += self._halves(low, high, share)
        self.work.done(1.0, 0.0)

    def _halves(self, low: np.ndarray, high: np.ndarray, share: float) -> list[tuple[np.ndarray, np.ndarray, float]]:
        longest = int(self._tail_lengths(low, high).argmax())
        middle = low[longest] / 2 + high[longest] / 2
        below, above = high.copy(), low.copy()
        below[longest] = above[longest] = middle
        return [(above, high, share / 2), (low, below, share / 2)]

    def _tail_lengths(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Which axis to halve: the longest, as compared with the whole of the head's reach along it."""
        spans = [float(np.ptp(slopes.astype(np.float64))) for slopes, _ in self.atom.axes]
        return (high - low) * np.maximum(spans, 1e-3 * max(max(spans), 1e-300))

    def _not_analytic(self, low: np.ndarray, high: np.ndarray) -> AnchorheadError:
        where = ", ".join(
            f"{name} = {a / 2 + b / 2:.6g}" for name, a, b in zip(self.target.variables, low, high, strict=True)
        )
        return AnchorheadError(
            f"nothing is proven near {where}: the function is singular there, or too steep. Functions of several "
            "variables must be analytic around the whole box: choose a box that keeps away from the place, or leave "
            "the proof out, prove=False"
        )

    def _box(self, low: np.ndarray, high: np.ndarray, share: float) -> bool:
        """Bounds |g| on one box, such a share of the whole; False if it should be halved."""
        scale, seen = self._sampled(low, high)
        d, goal = len(low), TIGHT * max(seen, self.found, self.floor, 1e-14 * scale, 1e-290)
        # wide enough that the ellipses of the rounded box contain those of the box
        centre, half = low / 2 + high / 2, (high - low) / 2 * UP + 1e-15 * np.maximum(abs(low), abs(high))
        degrees: list[int] = []
        lebesgue, remainder = 1.0, np.zeros(self.atom.outputs)
        for j in range(d):
            allowed = goal / (2 * d * _USUAL**j)
            head = expansion(self.atom, j, float(low[j]), float(high[j]), allowed / 40)
            self.work.spend(self._tail_operations(j, MAX_COEFFICIENTS if head is None else len(head.table)))
            if head is None:
                return False
            n = head.degree(allowed)
            target = self.target.tail(j, centre.tolist(), half.tolist(), scale, allowed, n)
            if target is None:
                return False
            n = max(n, target.degree(allowed))
            degrees.append(n)
            if math.prod(n + 1 for n in degrees) * self.atom.outputs > MAX_NODES:
                return False
            remainder = remainder + (head[n] + target[n]) * lebesgue * UP
            lebesgue *= (1 + 2 / math.pi * math.log(n + 1)) * UP
        self._bound_box(low, high, share, tuple(degrees), lebesgue, remainder * UP)
        return True

    def _tail_operations(self, axis: int, coefficients: int) -> float:
        """Weights at so many points, and from each to each coefficient."""
        return self.atom.sides[axis] * coefficients * (PER_ANCHOR + coefficients / 40)

    def _sampled(self, low: np.ndarray, high: np.ndarray) -> tuple[float, float]:
        """About the largest |f| and |f - r| on a box: only to know what accuracy is worth."""
        few = {1: 33, 2: 17, 3: 9, 4: 6}[len(low)]
        axes = [np.linspace(a, b, few) for a, b in zip(low, high, strict=True)]
        x = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(low))
        at = dict(zip(self.target.variables, x.T, strict=True))
        f = np.stack([expression.values(at) for expression in self.target.expressions], axis=-1)
        finite = f[np.isfinite(f)]
        gap = np.abs(self.atom.exact(x).astype(np.float64) - f)
        gap = gap[np.isfinite(gap)]
        return float(np.abs(finite).max(initial=1e-300)), float(gap.max(initial=0.0))

    def _bound_box(
        self,
        low: np.ndarray,
        high: np.ndarray,
        share: float,
        degrees: tuple[int, ...],
        lebesgue: float,
        remainder: np.ndarray,
    ) -> None:
        """Steps 2 and 3, from values at the nodes."""
        with precision(PRECISION):
            nodes = [chebyshev_points(float(a), float(b), n) for a, b, n in zip(low, high, degrees, strict=True)]
            matrices = [
                rounded(weights(*axis, float(origin), points), WIDE)
                for axis, origin, points in zip(self.atom.axes, self.atom.origins, nodes, strict=True)
            ]
        head, head_error = head_on_grid(self.atom, matrices)
        gaps, target_error = np.empty(head.shape), np.zeros(len(head))
        with precision(72):
            for balls, part in self.target.on_grid(nodes):
                f, radius = (np.asarray(array, np.float64) for array in (_FLOATS(balls), _RADII(balls)))
                gaps[:, part] = (f - head[:, part]).astype(np.float64)
                off = radius + 2.0**-52 * np.abs(f) + 2.0**-51 * np.abs(gaps[:, part])
                np.maximum(target_error, off.reshape(len(off), -1).max(axis=1) * UP + 1e-300, out=target_error)
                operations = f.size * _PER_BALL + f[0].size * _IN_ARRAYS * self.target.operations
                self.work.done(share * f[0].size / head[0].size, operations)
        if not (np.isfinite(gaps).all() and np.isfinite(target_error).all()):
            raise self._not_analytic(low, high)
        errors = (head_error + target_error) * UP
        for gap, error, rest in zip(gaps, errors, remainder, strict=True):
            more = error * lebesgue + rest
            largest = largest_on_box(gap, degrees, self.bound / UP - more)
            self.work.spend(_PER_VALUE * largest.points)
            self.bound = max(self.bound, float(largest.bound + more) * UP)
            place = np.unravel_index(np.abs(gap).argmax(), gap.shape)
            at_node = tuple(float(axis[int(i)].mid()) for axis, i in zip(nodes, place, strict=True))
            between = tuple(float(x) for x in low / 2 + high / 2 + (high / 2 - low / 2) * np.array(largest.at))
            for found, at in ((abs(gap[place]) - error, at_node), (largest.found - more, between)):
                if found > self.found:
                    self.found, self.at = float(found), at


_FLOATS = np.frompyfunc(float, 1, 1)
_RADII = np.frompyfunc(lambda ball: float(ball.rad()), 1, 1)
