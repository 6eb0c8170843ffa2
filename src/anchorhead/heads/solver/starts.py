"""Where the search for keys begins.

With equal slope steps h the head is a rational function of e^(h x) whose denominator has positive
coefficients. For *any* fixed slopes the best numerator and denominator solve a linear problem, iterated
with the last denominator as a weight (Sanathanan and Koerner) and with coefficients kept positive (non-
negative least squares):

    min over c >= 0, n of  sum_i |f_i sum_k c_k w_k(x_i) - sum_k n_k w_k(x_i)|^2,    then  offsets += log c.

So the only thing to guess is the slopes: a range and a warp.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float
from scipy.optimize import nnls

from anchorhead.heads.atom import softmax
from anchorhead.heads.solver.keys import Keys
from anchorhead.heads.solver.projection import Samples

_ROUNDS = 10
_PULL = 1e3  # how firmly the coefficients of the denominator are held to a mean of 1


def positive_rational(slopes: Float[np.ndarray, " p"], offsets: Float[np.ndarray, " p"], samples: Samples) -> Keys:
    """The offsets for these slopes that gave the smallest mean square error."""
    best, chosen, p = np.inf, offsets, len(slopes)
    for _ in range(_ROUNDS):
        w = softmax(samples.x[:, None] * slopes + offsets)
        basis, _ = np.linalg.qr(w)
        residual = samples.f - basis @ (basis.T @ samples.f)
        error = float(np.sqrt((residual**2).mean()))
        if error < best:
            best, chosen = error, offsets
        if error < 1e-14:
            break
        columns = (samples.f[:, :, None] * w[:, None, :]).transpose(1, 0, 2)
        columns = (columns - basis @ (basis.T @ columns)).reshape(-1, p) / (error * np.sqrt(samples.f.size))
        matrix = np.concatenate([columns, np.full((1, p), _PULL)])
        goal = np.zeros(len(matrix))
        goal[-1] = _PULL * p
        try:
            c, _ = nnls(matrix, goal)
        except RuntimeError:
            break
        offsets = offsets + np.log(np.maximum(c, 1e-3 * c.max()))
    return Keys.of_weights(slopes, chosen)


def spread(samples: Samples, count: int, mix: float) -> Float[np.ndarray, " count"]:
    """Points of [-1, 1] by the quantiles of sqrt|f''|, mixed with an even density; mix = 0 is even."""
    x, f = samples.x, samples.f
    bend = np.abs(np.diff(np.diff(f, axis=0) / np.diff(x)[:, None], axis=0)).max(axis=1)
    width = (x[2:] - x[:-2]) / 2
    mass = np.sqrt(bend * width)
    mass = np.concatenate([[0.0], mass, [0.0]])
    mass = mass / max(mass.sum(), 1e-300)
    even = np.gradient(x) / 2
    total = np.concatenate(
        [[0.0], np.cumsum(mix * (mass[1:] + mass[:-1]) / 2 + (1 - mix) * (even[1:] + even[:-1]) / 2)]
    )
    return np.interp(np.linspace(0, total[-1], count), total, x)


def starts(samples: Samples, p: int) -> Iterator[Keys]:
    """Slopes of every range from gentle to as steep as the target's features, even or warped; and nearly
    none at all.

    As slopes shrink to 0, p anchors tend to the polynomials of degree p - 1.
    """
    grid = np.linspace(-1, 1, p)
    warped = np.sinh(2 * grid) / np.sinh(2)
    for mix, shape in ((0.0, grid), (0.7, warped)):
        anchors = spread(samples, p, mix)
        sharpest = 400.0 / max(float(np.diff(anchors).min()) * (p - 1) / 2, 1e-9)
        for reach in np.geomspace(1.0, sharpest, 8 if p <= 8 else 4):
            yield positive_rational(reach / 2 * shape, _offsets(reach / 2 * shape, anchors), samples)
    if p <= 6:
        for reach in (0.3, 0.1, 0.03, 0.01):
            yield positive_rational(reach / 2 * grid, _offsets(reach / 2 * grid, grid), samples)
    if p in (3, 4):
        yield from bends(samples, p)


def bends(samples: Samples, p: int) -> Iterator[Keys]:
    """A straight line that turns into another at the place where the target turns most: slopes (-A), -A,
    -h, +h.

    An anchor makes a constant side, a pair of nearly equal slopes a straight one.
    """
    x, f = samples.x, samples.f
    turn = np.abs(np.diff(np.diff(f, axis=0) / np.diff(x)[:, None], axis=0)).max(axis=1)
    mass = np.cumsum(turn) / max(turn.sum(), 1e-300)
    low, place, high = x[1 + np.searchsorted(mass, (0.25, 0.5, 0.75)).clip(max=len(turn) - 1)]
    for sharp in (1.5, 5.0):
        steep = sharp / max(high - low, 1e-12)
        for h in (0.03, 0.001):
            pair, tops = np.array([-h, h]), np.zeros(2)
            if p == 4:
                slopes, logs = np.concatenate([pair - steep, pair]), np.zeros(4)
                yield Keys.of_weights(slopes, logs - slopes * place)
                continue
            for side in (-steep, steep):
                order = (0, 1, 2) if side < 0 else (1, 2, 0)
                slopes = np.array([side, *pair])[list(order)]
                logs = np.array([np.log(2), *tops])[list(order)]
                yield Keys.of_weights(slopes, logs - slopes * place)


def splits(keys: Keys) -> Iterator[Keys]:
    """The same function with one anchor more: anchor k becomes two of half its weight, their slopes a
    little apart.
    """
    slopes, offsets = keys.weights()
    steps = np.concatenate([[keys.steps[0]], keys.steps, [keys.steps[-1]]])
    for k in range(len(slopes)):
        apart = 0.3 * min(steps[k], steps[k + 1]) / 2
        # both halves cross where the anchor is heaviest: midway between its two crossings
        edges = np.concatenate([[-1.0], keys.crossings, [1.0]])
        middle = (np.clip(edges[k], -1, 1) + np.clip(edges[k + 1], -1, 1)) / 2
        pair = np.array([-apart, apart])
        yield Keys.of_weights(
            np.concatenate([slopes[:k], slopes[k] + pair, slopes[k + 1 :]]),
            np.concatenate([offsets[:k], offsets[k] - np.log(2) - pair * middle, offsets[k + 1 :]]),
        )


def _offsets(slopes: np.ndarray, anchors: np.ndarray) -> np.ndarray:
    """Neighbours cross half-way between their anchors."""
    return np.concatenate([[0.0], -np.cumsum(np.diff(slopes) * (anchors[1:] + anchors[:-1]) / 2)])
