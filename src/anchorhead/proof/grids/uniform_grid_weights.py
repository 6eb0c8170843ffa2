"""How far from x the anchors are that a softmax along one axis picks, in the mean: bounds for every x of an interval.

Anchors k = 0 … p - 1 stand at places a_k, increasing, with weights w_k(x) = softmax_k(slopes_k (x - origin) +
offsets_k). Slopes increase as well, so that P(K >= k) increases in x and P(K <= k) decreases (monotone likelihood
ratio). Between neighbouring places, a_i <= x <= a_(i+1), for q = 1 and 2,

    E|a_K - x|^q = P(K <= i) (x - a_i)^q + P(K > i) (a_(i+1) - x)^q
                 + sum_{k < i} P(K <= k) ((x - a_k)^q - (x - a_(k+1))^q)
                 + sum_{k > i+1} P(K >= k) ((a_k - x)^q - (a_(k-1) - x)^q).

On a cell [b, c] within, the first line is linear in P and convex in x, so that it is largest at a corner; the other
sums are at most what P(K <= k) at b and P(K >= k) at c give, with the differences at the end where they are larger. For
even places and keys (2 beta a, -beta a^2) the first line is at most half a spacing: the other two are the softmax's
tail. Anchors far from x are counted by their largest weight alone, so that the cost is linear in p.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import softmax
from anchorhead.proof.arithmetic.affine_forms import own_error
from anchorhead.proof.arithmetic.arithmetic import FLOAT64, UP

REACH = 3
"""Blocks of how many anchor cells to either side are told apart: 0, 1 and 2."""
_PARTS, _CELLS, _BEYOND = 16, 64, 12
"""A cell between anchors is cut into so many; so many cells are worked at once, with so many anchors beyond them."""


@dataclass(frozen=True)
class AxisSpread:
    """For every x of the interval: E|a - x| <= first, E(a - x)^2 <= second, and with x in the cell [a_i, a_(i+1)]
    P(K < i - R or K > i + 1 + R) <= outside[R]. spacing: the longest cell."""

    spacing: float
    first: float
    second: float
    outside: tuple[float, ...]


def axis_spread(
    slopes: Float[np.ndarray, " p"],
    offsets: Float[np.ndarray, " p"],
    origin: float,
    places: Float[np.ndarray, " p"],
    low: float,
    high: float,
) -> AxisSpread:
    """Bounds for x in [low, high]; the first and the last place are its ends, or the only one is within it."""
    slopes, offsets = (np.asarray(array, np.float64) for array in (slopes, offsets))
    p = len(places)
    if p == 1:
        away = max(high - places[0], places[0] - low) * UP
        return AxisSpread(2 * away, away, away**2 * UP, (0.0,) * REACH)
    if not (np.diff(slopes) > 0).all() or not (np.diff(places) > 0).all() or (places[0], places[-1]) != (low, high):
        raise AnchorheadError("anchors along an axis are not in order: their slopes must increase from end to end")
    cuts = finer(places, _PARTS)
    found, outside = np.zeros(2), np.zeros(REACH)
    for cell in range(0, p - 1, _CELLS):
        x = cuts[cell * _PARTS : min(cell + _CELLS, p - 1) * _PARTS + 1]
        window = slice(max(0, cell - _BEYOND), min(p, cell + _CELLS + 1 + _BEYOND))
        own = cell - window.start + np.arange(len(x) - 1) // _PARTS
        below, above, noise = _masses(slopes[window], offsets[window], origin, x)
        mass, *rest = _beyond(slopes, offsets, origin, places, x, window, cell)
        for power in (1, 2):
            inside = float(_moments(x, own, places[window], below, above, power).max())
            found[power - 1] = max(found[power - 1], inside * (1 + noise) + rest[power - 1])
        outside = np.maximum(outside, _outside(own, below, above) * (1 + noise) + mass)
    spacing = float(np.diff(places).max()) * UP
    first, second = (found * UP).tolist()
    return AxisSpread(spacing, first, second, tuple(np.minimum(outside * UP + 1e-300, 1.0).tolist()))


def finer(cuts: Float[np.ndarray, " n"], parts: int) -> Float[np.ndarray, " fine"]:
    """The cuts, and others between them, so that every cell is cut into so many parts."""
    inner = (cuts[:-1, None] + np.diff(cuts)[:, None] * (np.arange(parts) / parts)).clip(None, cuts[1:, None])
    return np.append(inner.reshape(-1), cuts[-1])


def _beyond(
    slopes: np.ndarray, offsets: np.ndarray, origin: float, places: np.ndarray, x: np.ndarray, window: slice, cell: int
) -> Float[np.ndarray, "3"]:
    """What anchors outside a window add to P(K = k), E|a - x| and E(a - x)^2, for x between the first and last cut.

    w_k / w_l decreases in x for k < l: on the left it is largest at the first cut, on the right at the last.
    """
    last = min(cell + _CELLS, len(slopes) - 1)
    total = np.zeros(3)
    for near, end, far in ((cell, x[0], slice(0, window.start)), (last, x[-1], slice(window.stop, None))):
        t = end - origin
        z = (slopes[far] - slopes[near]) * t + (offsets[far] - offsets[near])
        noise = 1e-12 + 16 * FLOAT64.unit * (abs(t) * np.abs(slopes).max() + np.abs(offsets).max())
        away = np.maximum(np.abs(places[far] - x[0]), np.abs(places[far] - x[-1]))
        w = np.exp(np.minimum(z + noise, 0.0)) * UP  # no weight is above 1
        total += [w.sum(), (w * away).sum(), (w * away**2).sum()]
    return total * UP


def _masses(
    slopes: np.ndarray, offsets: np.ndarray, origin: float, x: Float[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, "n p"], Float[np.ndarray, "n p"], float]:
    """P(K <= k) and P(K >= k) at points, among these anchors, and how far they may be off, relatively."""
    t = x[:, None] - origin
    z = t * slopes + offsets
    noise = 4e-12 + 64 * FLOAT64.unit * float((np.abs(t * slopes) + np.abs(offsets)).max())
    w = softmax(z) + 1e-300
    return np.cumsum(w, axis=1), np.cumsum(w[:, ::-1], axis=1)[:, ::-1], noise + own_error(16 * len(slopes))


def _moments(
    x: Float[np.ndarray, " cuts"], own: np.ndarray, places: np.ndarray, below: np.ndarray, above: np.ndarray, power: int
) -> Float[np.ndarray, " n"]:
    """Upper bounds on E|a - x|^q on the cells between cuts x, cell c between the places own[c] and own[c] + 1."""
    left, right = places[own], places[own + 1]
    rows, near = np.arange(len(own)), np.zeros(len(own))
    for end in (x[:-1], x[1:]):
        for row in (rows, rows + 1):
            lower, upper = (np.maximum(gap, 0) ** power for gap in (end - left, right - end))
            near = np.maximum(near, below[row, own] * lower + above[row, own + 1] * upper)
    k = np.arange(len(places))
    far = np.abs(x[1:, None] - places) ** power
    steps = np.where(k[:-1] < own[:, None], far[:, :-1] - far[:, 1:], 0.0)
    tail = (below[:-1, :-1] * steps).sum(axis=1)
    far = np.abs(places - x[:-1, None]) ** power
    steps = np.where(k[1:] > own[:, None] + 1, far[:, 1:] - far[:, :-1], 0.0)
    return near + tail + (above[1:, 1:] * steps).sum(axis=1)


def _outside(own: np.ndarray, below: np.ndarray, above: np.ndarray) -> Float[np.ndarray, " reach"]:
    """The largest P(K < i - R) + P(K > i + 1 + R) on the cells, for each R."""
    rows, last, found = np.arange(len(own)), below.shape[1] - 1, []
    for reach in range(REACH):
        low, high = own - reach - 1, own + reach + 2
        under = np.where(low >= 0, below[rows, np.maximum(low, 0)], 0.0)
        over = np.where(high <= last, above[rows + 1, np.minimum(high, last)], 0.0)
        found.append((under + over).max())
    return np.array(found)
