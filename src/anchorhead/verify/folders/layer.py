"""One layer in the place of a feed-forward sublayer: where its pre-activations lie, and how far its outputs are off.

z = scale (p + e) + shift + r with |p|_2 <= sqrt(d), p perpendicular to (1, …, 1) if centred, |e|_2 <= slack sqrt(d) and
|r_i| <= rounding (|scale_i| sqrt(d) + |shift_i|): what a norm puts out. For a row w of a map, a = w scale and a' its
part perpendicular to (1, …, 1) (or a itself), by Cauchy and Schwarz

    |w . z + b - (w . shift + b)| <= sqrt(d) (|a'| + slack |a|) + |w| . |r|,

and for all rows together |s - centre|_2 <= sqrt(d) (sigma(A') + slack sigma(A)) + the same of r, sigma the largest
singular value. A dot product errs by gamma_(d+1) of its terms' sizes. The head errs by B max(1, |s~|) at the computed
s~, |phi'| <= L and |phi(s)| <= M max(1, |s|), so output o is off by at most

    B S_o + L sum_r |c_or| |s~_r - s_r| + gamma_(n+1) ((M + B) S_o + |d_o|),   S_o >= sum_r |c_or| max(1, |s~_r|),

S_o the smaller of that sum at the ends of the ranges and |c_o|_2 (n + |s~|_2^2)^(1/2). Gated, max(1, |g~|) |u~| stands
for max(1, |s~|), sum_r |c_or| (L |g~ - g| |u~| + M max(1, |g|) |u~ - u|) for the second term, and S_o is also at most
max_r |c_or| (n + |g~|_2^2)^(1/2) |u~|_2. All in float64: sums of at most 10^5 terms of one sign, enlarged by ROOM.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from anchorhead.verify.errors import require
from anchorhead.verify.rounding import Arithmetic

ROOM = 1 + 2e-11
SMALL = 2e-11


@dataclass(frozen=True, eq=False)
class Map:
    weight: np.ndarray
    bias: np.ndarray | None


@dataclass(frozen=True, eq=False)
class Norm:
    scale: np.ndarray
    shift: np.ndarray
    centred: bool
    slack: float
    rounding: float


@dataclass(frozen=True, eq=False)
class Range:
    """|s| and |computed s| at most `magnitude`, both between low and high, |computed s - s| <= rounding, |computed s|_2
    <= length."""

    low: float
    high: float
    magnitude: np.ndarray
    rounding: np.ndarray
    length: float


def range_of(linear: Map, norm: Norm, model: Arithmetic) -> Range:
    weight, d = linear.weight, len(norm.scale)
    require(weight.ndim == 2 and weight.shape[1] == d == len(norm.shift), "a map that does not follow its norm")
    radius = math.sqrt(d) * ROOM
    bias = np.zeros(len(weight)) if linear.bias is None else linear.bias
    require(bias.shape == (len(weight),), "a bias of another length")
    wrong = norm.rounding * (np.abs(norm.scale) * radius + np.abs(norm.shift))
    scaled, size = weight * norm.scale, np.abs(weight)
    seen = scaled - scaled.mean(axis=1, keepdims=True) if norm.centred else scaled
    wide = length(scaled) * ROOM
    centre = weight @ norm.shift + bias
    rows = size @ wrong
    products = radius * (1 + norm.slack) * wide + size @ (np.abs(norm.shift) + wrong) + np.abs(bias)
    away = (radius * (length(seen) + (norm.slack + SMALL) * wide) + rows) * ROOM + SMALL * products
    terms = d + (linear.bias is not None)
    entries = radius * float(np.abs(norm.scale).sum()) + float(np.abs(norm.shift).sum())
    lost = model.tiny * (2 * terms + 2 * size.sum(axis=1) + 2 * entries)
    rounding = (float(model.gamma(terms)) * products + lost) * ROOM
    spectral, whole = largest_singular(seen), largest_singular(scaled) if norm.centred else 0.0
    whole = whole if norm.centred else spectral
    every = length(centre) + radius * (spectral + (norm.slack + SMALL) * whole) + length(rows)
    return Range(
        float((centre - away - rounding).min()),
        float((centre + away + rounding).max()),
        (np.abs(centre) + away + rounding) * ROOM,
        rounding,
        float(every + length(rounding) + SMALL * length(products)) * ROOM,
    )


def length(rows: np.ndarray) -> np.ndarray | np.float64:
    """Those of rows, in units of their largest entries: squares of small numbers are 0 in float64."""
    unit = np.abs(rows).max(axis=-1)
    unit = np.where(unit > 0, unit, 1.0)
    return np.linalg.norm(rows / unit[..., None], axis=-1) * unit


def largest_singular(matrix: np.ndarray) -> float:
    """A number that is not below it: lambda I - A'A has a Cholesky decomposition, which proves it positive semidefinite
    up to (d + 2) u of its trace (Rump), for which there is room; or the trace. In units of the largest entry."""
    unit = float(np.abs(matrix).max())
    if not unit > 0:
        return 0.0
    matrix = matrix / unit
    gram = matrix.T @ matrix
    trace = float(np.trace(gram)) * ROOM
    estimate = float(np.linalg.eigvalsh(gram)[-1])
    for above in (1.001, 1.02, 1.1):
        value = estimate * above
        room = (len(gram) + len(matrix) + 8) * 2.0**-52 * trace
        try:
            np.linalg.cholesky((value - room) * np.eye(len(gram)) - gram)
        except np.linalg.LinAlgError:
            continue
        return math.sqrt(value) * unit * ROOM
    return math.sqrt(trace) * unit * ROOM


def plain_bound(s: Range, down: Map, relative: float, steep: float, growth: float, model: Arithmetic) -> float:
    """The largest error of an output of sum_r c_or phi(s_r) + d_o."""
    most = np.maximum(s.magnitude, 1.0)
    sizes = np.abs(down.weight)
    require(sizes.shape[1] == len(most), "an output map of another width")
    together = math.sqrt(len(most) + s.length**2)
    reached = np.minimum(sizes @ most, length(sizes) * together) * ROOM
    return _added(down, reached, steep * (sizes @ s.rounding), float(most.sum()), relative, growth, model)


def gated_bound(
    g: Range, u: Range, down: Map, relative: float, steep: float, growth: float, lost: float, model: Arithmetic
) -> float:
    """The same for sum_r c_or phi(g_r) u_r + d_o; products with a tiny u lose at most `lost`."""
    most, sizes = np.maximum(g.magnitude, 1.0), np.abs(down.weight)
    require(sizes.shape[1] == len(most) == len(u.magnitude), "an output map of another width")
    together = math.sqrt(len(most) + g.length**2) * u.length
    moved = steep * g.rounding * u.magnitude + growth * most * u.rounding + lost
    reached = np.minimum(sizes @ (most * u.magnitude), sizes.max(axis=1) * together) * ROOM
    return _added(down, reached, sizes @ moved, float((most * u.magnitude).sum()), relative, growth, model)


def _added(
    down: Map,
    reached: np.ndarray,
    moved: np.ndarray,
    together: float,
    relative: float,
    growth: float,
    model: Arithmetic,
) -> float:
    terms = down.weight.shape[1] + (down.bias is not None)
    bias = np.zeros(len(reached)) if down.bias is None else np.abs(down.bias)
    rounded = float(model.gamma(terms)) * ((growth + relative) * reached + bias)
    lost = 4 * model.tiny * (terms + (growth + relative) * together)
    return float((relative * reached + moved + rounded).max() + lost) * ROOM
