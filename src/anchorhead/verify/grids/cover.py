"""A softmax over a grid against a function of which values and a Lipschitz constant are known.

Lemma. On a cell |x_j - c_j| <= h_j, for L(h) = L |h|_2 or sum_j L_j h_j,

    |f - r| <= |f(c) - r(c)| + L(h) + sum_j |d_j r(c)| h_j + 1/2 sum_jl h_j h_l sup |d_j d_l r|.

Proof. f moves by at most L(h), r by Taylor's theorem. Along one axis w_k' = w_k (a_k - A), A = sum w a, A' the variance
V of the slopes, so w_k'' = w_k ((a_k - A)^2 - V); weights of different axes are factors of their own. With U_k >= w_k
on the cell (`upper_weights`), |a_k - A| <= |a_k - A(c)| + h V and V <= sum U (a - A(c))^2,

    sup |d_j^2 r| <= sum_k U_k ((a_k - A)^2 + V) |v_k - v'|,
    sup |d_j d_l r| <= sum_k U_k |a_k - A| |b_k - B| |v_k - v'|

for any constant v', which derivatives of sum_k w_k v_k = v' + sum_k w_k (v_k - v') do not see. All sums over anchors
are contractions, one axis after the other.

Along one axis, on a cell [a, b] of width w with D = f(b) - f(a), f is between the cones of slope L at both ends, and no
further than (L^2 w^2 - D^2) / (2 L w) from its chord. So as well, with the chord's middle m = (f(a) + f(b)) / 2,

    |f - r| <= |m - r(c)| + |D / w - r'(c)| h + h^2 / 2 sup |r''| + (L w - D^2 / (L w)) / 2,

which needs few cells where f is as steep as L allows.

Values of f are taken as right to VALUE_ERROR of themselves: an assumption.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.grids.head import Grid
from anchorhead.verify.grids.polynomial import contract
from anchorhead.verify.grids.rounding import grid_rounding, upper_weights
from anchorhead.verify.grids.uniform import UP, VALUE_ERROR
from anchorhead.verify.rounding import OWN_UNIT, Arithmetic
from anchorhead.verify.scalar import Part, Softmax

FIRST = 64
"""Cells of an interval to begin with."""
MAX_CELLS = 2_000_000
CHUNK = 1 << 16
CONTRADICTED = "values of the function contradict its constant: {}"
Values = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Lipschitz:
    """|f(x) - f(y)| <= L |x - y|_2, or with a constant for each axis sum_j L_j |x_j - y_j|."""

    constants: tuple[float, ...]
    euclidean: bool

    def over(self, step: np.ndarray) -> np.ndarray:
        """How much f may change over steps (..., d)."""
        if self.euclidean:
            return self.constants[0] * np.sqrt((step**2).sum(axis=-1)) * UP
        return (np.abs(step) * np.array(self.constants)).sum(axis=-1) * UP

    def __str__(self) -> str:
        if self.euclidean:
            return f"|f(x) - f(y)| <= {self.constants[0]:g} |x - y|"
        return f"|f(x) - f(y)| <= sum of L_j |x_j - y_j|, L = ({', '.join(f'{one:g}' for one in self.constants)})"


def cover_bound(
    grid: Grid,
    function: Values,
    shift: float,
    lipschitz: Lipschitz,
    low: Sequence[float],
    high: Sequence[float],
    model: Arithmetic,
    counts: Sequence[int],
    enough: float,
) -> float:
    """A bound on |computed r - (f + shift)| for every x of the box, f (n, d) -> (n,), from so many cells along each
    axis, or more of them while it is not enough and that helps."""
    grid.check()
    rounding = float(grid_rounding(grid, low, high, model, 0.0)[1].max())
    best = math.inf
    while math.prod(counts) <= MAX_CELLS and not best * UP <= enough:
        found, seen = _on_box(grid, function, shift, lipschitz, low, high, counts)
        found += rounding
        if not found < 0.98 * best or seen > enough:
            best = min(best, found)
            break
        best, counts = found, [2 * count for count in counts]
    require(best < math.inf, f"a grid compared in {math.prod(counts):,} cells: at most {MAX_CELLS:,}")
    return best * UP


def interval_bound(
    part: Part,
    origin: float,
    function: Values,
    shift: float,
    lipschitz: Lipschitz,
    ends: tuple[float, float],
    enough: float,
) -> float:
    """Along one axis, for a head on t = fl(x - origin), of which the part's `lean` says how far it is off: cells are
    halved until each is good enough, and the rounding of each is that of a scalar head."""
    grid = Grid([(part.slopes, part.offsets)], np.array([origin]), part.values[:, None], np.zeros(1))
    softmax = Softmax(part, [(ends[0] - origin, ends[1] - origin)], part.model)
    cuts = np.linspace(*ends, FIRST + 1)
    left, right, worst, spent = cuts[:-1], cuts[1:], 0.0, 0
    anchors = len(part.slopes)
    while len(left):
        spent += len(left)
        require(spent <= MAX_CELLS, f"a head of {anchors} anchors takes more than {MAX_CELLS:,} values of a function")
        bounds = []
        for some in np.array_split(np.stack([left, right], 1), -(-len(left) * anchors // CHUNK)):
            # between the cuts of cells that need not touch, every other cell is one of them
            wrong, moved, centre, half = _on_cells(grid, function, shift, lipschitz, [some.reshape(-1)], 2)
            bound = np.minimum(wrong + moved, _by_chords(grid, function, shift, lipschitz, some)) * UP
            good = np.flatnonzero(bound <= enough)
            if len(good):
                nothing = np.zeros(len(good))
                rounded = softmax.rounding(centre[good] - origin, half[good, 0], moved[good], None, nothing)[0]
                bound[good] = (bound[good] + rounded[:, 0]) * UP
            bounds.append(bound)
        bound = np.concatenate(bounds)
        wide, middle = bound > enough, left / 2 + right / 2
        require(bool(((left < middle) & (middle < right))[wide].all()), f"a head of {anchors} anchors has no bound")
        worst = max(worst, float(bound[~wide].max(initial=0.0)))
        both = np.stack([left[wide], middle[wide], middle[wide], right[wide]], 1).reshape(-1, 2)
        left, right = both[:, 0], both[:, 1]
    return worst * UP


def _by_chords(grid: Grid, function: Values, shift: float, lipschitz: Lipschitz, ends: np.ndarray) -> np.ndarray:
    """The bound by chords on cells (n, 2) of an interval."""
    axis = _axis(grid, 0, ends.reshape(-1), 2)
    values, size = grid.values[:, 0], np.abs(grid.values[:, 0])
    off = axis.off + 8 * (len(values) + 17) * OWN_UNIT
    left, right = function(ends.reshape(-1, 1)).reshape(-1, 2).T
    uncertain = (2 * VALUE_ERROR + 8 * OWN_UNIT) * (np.maximum(np.abs(left), np.abs(right)) + abs(shift))
    width, rise = ends[:, 1] - ends[:, 0], right - left
    steepest = float(lipschitz.over(np.ones((1, 1)))[0])
    most = steepest * width * UP + 1e-300
    if (np.abs(rise) > most + 2 * uncertain).any():
        raise NotVerified(CONTRADICTED.format(lipschitz))
    cone = (most - np.maximum(np.abs(rise) - uncertain, 0.0) ** 2 / most).clip(0.0) / 2
    middle = np.abs((left + right) / 2 + shift - axis.weights @ values) + (axis.weights * off) @ size * UP
    middle += uncertain + 8 * OWN_UNIT * steepest * np.abs(ends).max()  # the centre is rounded
    slope = (axis.weights * axis.lean) @ values
    slope_off = (axis.weights * (axis.wide * off + axis.lean_off)) @ size * UP
    turned = (np.abs(rise / width - slope) + slope_off + 4 * OWN_UNIT * steepest + uncertain / width) * axis.half
    apart = np.abs(values - (values.max() / 2 + values.min() / 2)) * UP
    bend = (axis.upper * (axis.wide**2 + axis.variance)) @ apart
    return (middle + turned + bend * axis.half**2 / 2 * UP + cone) * UP


def _on_box(
    grid: Grid,
    function: Values,
    shift: float,
    lipschitz: Lipschitz,
    low: Sequence[float],
    high: Sequence[float],
    counts: Sequence[int],
) -> tuple[float, float]:
    """The bound, and the largest difference that was seen."""
    cuts = [np.linspace(a, b, n + 1) for a, b, n in zip(low, high, counts, strict=True)]
    rows = max(1, CHUNK // math.prod(counts[1:]))
    parts = ([cuts[0][first : first + rows + 1], *cuts[1:]] for first in range(0, counts[0], rows))
    worst = seen = 0.0
    for part in parts:
        wrong, moved, _, half = _on_cells(grid, function, shift, lipschitz, part, 1)
        worst = max(worst, float((wrong + moved).max()))
        seen = max(seen, float((wrong - UP * lipschitz.over(half)).max()))
    return worst, seen


def _on_cells(
    grid: Grid, function: Values, shift: float, lipschitz: Lipschitz, cuts: list[np.ndarray], every: int
) -> tuple[np.ndarray, ...]:
    """The lemma on the cells between cuts, or on every other of them: tensors (cells_1, …, cells_d) of what is wrong at
    the centre or f moves by, and of what r moves by; centres and half widths (…, d)."""
    d = len(cuts)
    axes = [_axis(grid, j, one, every) for j, one in enumerate(cuts)]
    places = np.stack(np.meshgrid(*(axis.centre for axis in axes), indexing="ij"), axis=-1)
    half = np.stack(np.meshgrid(*(axis.half for axis in axes), indexing="ij"), axis=-1)
    truth = function(places.reshape(-1, d)).reshape(places.shape[:-1])
    _require_constant(truth, places, lipschitz)
    values, weights, upper = grid.values[..., 0], [a.weights for a in axes], [a.upper for a in axes]
    size, apart = np.abs(values), np.abs(values - (values.max() / 2 + values.min() / 2)) * UP
    own = 8 * (sum(grid.values.shape) + 16) * OWN_UNIT
    lost = sum(float(axis.off.max()) for axis in axes) + own
    require(lost < 1, "keys of a grid that float64 cannot hold")
    there = contract(size, weights) * own
    for j, axis in enumerate(axes):
        there = there + contract(size, _with(weights, {j: axis.weights * axis.off}))
    there = there * (1 + 2 * lost)  # for errors of several axes at once
    wrong = np.abs(truth + shift - contract(values, weights)) + there
    wrong = wrong + VALUE_ERROR * np.abs(truth) + 4 * OWN_UNIT * (np.abs(truth) + abs(shift))
    moved = np.zeros(truth.shape)
    for j, axis in enumerate(axes):
        slope = np.abs(contract(values, _with(weights, {j: axis.weights * axis.lean})))
        off = axis.off + (lost - float(axis.off.max()))
        leaning = axis.weights * (axis.wide * off + axis.lean_off)
        slope = slope + contract(size, _with(weights, {j: leaning})) * (1 + 2 * lost)
        moved = moved + slope * half[..., j]
        bend = contract(apart, _with(upper, {j: axis.upper * (axis.wide**2 + axis.variance)}))
        moved = moved + bend * half[..., j] ** 2 / 2 * UP
        for i in range(j):
            both = {j: axis.upper * axis.wide, i: axes[i].upper * axes[i].wide}
            moved = moved + contract(apart, _with(upper, both)) * half[..., j] * half[..., i] * UP
    return (wrong + lipschitz.over(half)) * UP, moved * UP, places, half


@dataclass(frozen=True, eq=False)
class _Axis:
    """Of cells (n,) and anchors: lean = a - A(c), up to lean_off; wide >= |a - A| and variance >= V on the cell."""

    centre: np.ndarray
    half: np.ndarray
    weights: np.ndarray
    upper: np.ndarray
    off: np.ndarray
    lean: np.ndarray
    lean_off: np.ndarray
    wide: np.ndarray
    variance: np.ndarray


def _axis(grid: Grid, j: int, cuts: np.ndarray, every: int) -> _Axis:
    slopes = grid.axes[j][0]
    centre, half, w, upper, _, off = (one[::every] for one in upper_weights(grid, j, cuts))
    steep = slopes - slopes[w.argmax(axis=1)][:, None]  # what all slopes share is no error of a - A
    lean = steep - (w * steep).sum(axis=1, keepdims=True)
    lean_off = (w * (off + (len(slopes) + 8) * OWN_UNIT) * np.abs(steep)).sum(axis=1, keepdims=True) * UP
    lean_off = lean_off + 4 * OWN_UNIT * np.abs(steep)
    variance = (upper * (np.abs(lean) + lean_off) ** 2).sum(axis=1, keepdims=True) * UP
    wide = np.abs(lean) + lean_off + half * variance
    return _Axis(centre[:, 0], half[:, 0], w, upper, off, lean, lean_off, wide, variance)


def _with(matrices: list[np.ndarray], changed: dict[int, np.ndarray]) -> list[np.ndarray]:
    return [changed.get(j, one) for j, one in enumerate(matrices)]


def _require_constant(values: np.ndarray, places: np.ndarray, lipschitz: Lipschitz) -> None:
    """Refuses a constant that values at neighbouring places contradict."""
    for axis in range(values.ndim):
        steps, gaps = np.diff(places, axis=axis), np.abs(np.diff(values, axis=axis))
        if (gaps > lipschitz.over(steps) + 8 * VALUE_ERROR * np.abs(values).max()).any():
            raise NotVerified(CONTRADICTED.format(lipschitz))
