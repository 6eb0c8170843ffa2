"""Heads with their own key for smooth activations: slopes in even steps, offsets and values solved for.

With slopes 0, step, …, m step (the own key last) all exponentials are powers of y = e^(step s), and

    R(s) = (sum_{k<m} c_k v_k y^k + value s y^m) / (sum_{k<m} c_k y^k + y^m)

is rational in y, with s in the top coefficient. It is fitted as rational functions are (Sanathanan and Koerner):
multiply by the denominator, divide by the last one found, and solve a linear problem for the c_k and the c_k v_k, again
and again. Errors count relative to max(1, |s|), and Lawson's weights level them. Coefficients c_k that come out below 0
are started anew. The value of the register of least slope is the limit on the left.

What is found is rounded to the dtype: offsets first, then values one by one, those that are left solved for again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.linalg import lstsq

from anchorhead.heads.arithmetic import arithmetic_of
from anchorhead.heads.atom import Dtype, softmax
from anchorhead.heads.self_keys.self_key import Own, SelfKeyHead
from anchorhead.heads.softmax_rounding import logit_error, softmax_read_error

STEPS = tuple(k / 16 for k in (4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 22, 24, 26, 28, 32, 36, 40))
_CURVATURES = (0.1, 0.2, 0.4, 0.6)  # of the first offsets, as a function of k
_ROUNDS = 45
_LEVEL_FROM = 8  # rounds before Lawson's weights set in
_LEAST_WEIGHT = 1e-4

Points = Float[np.ndarray, " points"]
Array = Float[np.ndarray, "..."]


@dataclass(frozen=True, eq=False)
class Problem:
    """f on points from -far to far, the factor of s in the own value, and the limit of f - skip s on the left."""

    s: Points
    f: Points
    own: float
    limit: float

    @classmethod
    def of(cls, function: Callable[[Points], Points], far: float, own: float, limit: float) -> Problem:
        even = np.cos(np.linspace(0, np.pi, 320))
        s = np.unique(np.concatenate([far * even, far / 2.2 * even, far / 6 * even, np.linspace(-1.6, 1.6, 161)]))
        return cls(s, function(s), own, limit)

    @property
    def scale(self) -> Points:
        return 1 / np.maximum(1, np.abs(self.s))


@dataclass(frozen=True, eq=False)
class Fit:
    """m registers with slopes 0, step, …, and the own key with slope m step and offset 0; error: the largest seen."""

    step: float
    offsets: Float[np.ndarray, " m"]
    values: Float[np.ndarray, " m"]
    error: float


def fits(problem: Problem, registers: int, steps: Sequence[float] = STEPS) -> list[Fit]:
    """The best fit for every step that has one, the best first."""
    found = []
    for step in steps:
        tries = [fit for curvature in _CURVATURES if (fit := _fit(problem, registers, step, curvature)) is not None]
        found += [min(tries, key=lambda fit: fit.error)] if tries else []
    return sorted(found, key=lambda fit: fit.error)


def _fit(problem: Problem, m: int, step: float, curvature: float) -> Fit | None:
    """Linearised fits, each divided by the denominator of the one before, from offsets that are a parabola in k."""
    k = np.arange(m + 1)
    logits = problem.s[:, None] * (k * step)
    offsets = curvature * k * (m - k) * step
    offsets[m] = 0.0
    level = np.ones_like(problem.s)
    beyond = problem.own * problem.s - problem.f
    best: Fit | None = None
    for round_ in range(_ROUNDS):
        powers = np.exp(logits + offsets - (logits + offsets).max(axis=1, keepdims=True))
        weight = problem.scale * np.sqrt(level) / powers.sum(axis=1)
        columns = np.concatenate([powers[:, 1:m], (problem.limit - problem.f)[:, None] * powers[:, :m]], axis=1)
        found = _least_squares(columns * weight[:, None], -beyond * powers[:, m] * weight)
        above, c = np.concatenate([[0.0], found[: m - 1]]), found[m - 1 :]
        below = powers[:, :m] @ c + powers[:, m]
        error = (
            powers[:, :m] @ above + (problem.limit - problem.f) * (powers[:, :m] @ c) + beyond * powers[:, m]
        ) / below
        error, largest = error * problem.scale, float(np.abs(error * problem.scale).max())
        if (c > 0).all() and (below > 0).all() and (best is None or largest < best.error):
            best = Fit(step, offsets[:m] + np.log(c), problem.limit + above / c, largest)
        offsets[:m] += np.clip(np.log(np.where(c > 1e-6, c, 0.3)), -2, 2)
        if round_ > _LEVEL_FROM and np.isfinite(largest) and largest > 0:
            level = level * (np.abs(error) / largest + _LEAST_WEIGHT)
            level /= level.mean()
    return best


def _least_squares(matrix: Float[np.ndarray, "points n"], right: Points) -> Float[np.ndarray, " n"]:
    """Least squares with columns scaled to length 1."""
    length = np.linalg.norm(matrix, axis=0) + 1e-300
    found: Array = lstsq(matrix / length, right, cond=1e-15, lapack_driver="gelsy", check_finite=False)[0]  # type: ignore[index]
    return found / length


def head_of(fit: Fit, problem: Problem, name: str, dtype: Dtype, skip: float = 0.0) -> SelfKeyHead:
    """The head that a dtype stores, in the gauge that rounds least; nothing is proven of it yet."""
    m = len(fit.values)
    slopes, offsets = fit.step * np.arange(m + 1), np.append(fit.offsets, 0.0)
    turned, raised = min(_gauges(m, offsets), key=lambda gauge: _estimate(fit, slopes, offsets, problem, gauge, dtype))
    slopes = slopes - turned * fit.step
    offsets = (offsets - raised).astype(dtype).astype(np.float64)
    values = _rounded_values(problem, slopes, offsets, fit.values, dtype)
    own = Own(float(slopes[m]), float(offsets[m]), problem.own)
    keys = [np.asarray(column, dtype) for column in (slopes[:m], offsets[:m], values)]
    line = (skip, 0.0, fit.step, -np.inf, np.inf, dtype, np.inf, np.inf)
    return SelfKeyHead(name, keys[0], keys[1], keys[2], own, *line)


def _gauges(m: int, offsets: Float[np.ndarray, " keys"]) -> Iterator[tuple[int, float]]:
    """Whole steps that may be taken off all slopes, and numbers off all offsets."""
    for turned in range(m + 1):
        for raised in np.linspace(offsets.min(), offsets.max(), 9):
            yield turned, float(raised)


def _estimate(
    fit: Fit, slopes: Array, offsets: Array, problem: Problem, gauge: tuple[int, float], dtype: Dtype
) -> float:
    """The rounding of the softmax at some points, by the formula of heads.softmax_rounding."""
    slopes, offsets, s = slopes - gauge[0] * fit.step, offsets - gauge[1], problem.s[::8]
    arithmetic = arithmetic_of(dtype)
    logits = s[:, None] * slopes + offsets
    values = np.concatenate([np.broadcast_to(fit.values, (len(s), len(fit.values))), problem.own * s[:, None]], axis=1)
    weights = softmax(logits)
    result = (weights * values).sum(axis=1)
    error = softmax_read_error(
        weights,
        logits.max(axis=1, keepdims=True) - logits,
        logit_error(np.abs(slopes), np.abs(s)[:, None], np.abs(logits), 0.0, arithmetic),
        np.abs(values - result[:, None]),
        np.abs(result),
        np.abs(values),
        np.zeros_like(values),
        arithmetic,
    )
    return float((error * problem.scale[::8]).max())


def _rounded_values(problem: Problem, slopes: Array, offsets: Array, start: Array, dtype: Dtype) -> Array:
    """Values rounded one by one, the heaviest first; after each, those left are solved for again."""
    weights = softmax(problem.s[:, None] * slopes + offsets)
    m = len(start)
    columns, wanted = weights[:, :m], problem.f - problem.own * problem.s * weights[:, m]
    level = np.ones_like(problem.s)
    values, free = start.copy(), np.arange(m) > 0
    values[0] = float(np.dtype(dtype).type(start[0]))
    for k in [None, *(1 + np.argsort(-columns[:, 1:].max(axis=0)))]:
        if k is not None:
            values[k], free[k] = float(np.dtype(dtype).type(values[k])), False
        for _ in range(12 if free.any() else 0):
            scale = problem.scale * np.sqrt(level)
            left = (wanted - columns @ values) * scale
            values[free] += _least_squares(columns[:, free] * scale[:, None], left)
            error = np.abs(wanted - columns @ values) * problem.scale
            level = level * (error / max(error.max(), 1e-300) + 1e-2)
            level /= level.mean()
    return values
