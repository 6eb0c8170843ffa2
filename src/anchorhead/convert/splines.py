"""Splines of scipy as targets: polylines as networks of ReLUs, splines of higher degree as expressions.

What counts are the coefficients of the PPoly, float64 numbers, in exact arithmetic: on [x_i, x_(i+1)]

    f(x) = sum_j c[j, i] (x - x_i)**(k - 1 - j)

A BSpline is the PPoly that scipy makes of it. Coefficients are rounded, so neighbouring pieces miss each other at
their knot by some ulps. Such a jump is part of the function; `language.analysis.pieces` finds it again and counts it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.interpolate import BSpline, PPoly

from anchorhead.errors import AnchorheadError
from anchorhead.given import require_finite
from anchorhead.language.expressions import build
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.parser import parse
from anchorhead.language.targets.mlp import IDENTITY, Affine, Hidden, Mlp

MEET = Fraction(1, 10**13)
"""What two pieces may differ by at a knot, relative to 1 + |f|: as much as `language.analysis.pieces` lets pass."""
X = build.variable("x")


def spline_target(spline: Any) -> tuple[Mlp | Expression, tuple[float, float]]:
    """What a PPoly (CubicSpline, PchipInterpolator, ...) or a BSpline computes, and the interval between its end knots.

    Pieces that are all linear become an Mlp with one layer of ReLUs, others an Expression in x. The Mlp is the
    continuous polyline that starts at f(x_0) and has the PPoly's slopes, exactly; from the PPoly it differs by the
    jumps at the knots so far, which are refused if they add up to more than rounding explains.
    """
    x, c = _pieces(_piecewise(spline))
    drift = _jumps(x, c)
    interval = float(x[0]), float(x[-1])
    if len(c) > 2:
        return _expression(x, c), interval
    size = 1 + max(abs(Fraction(value)) for value in c[-1].tolist())
    if abs(drift) > MEET * size:
        raise AnchorheadError(
            f"the spline's pieces miss each other by {float(drift):.3g} in all: networks are continuous; rescale x, or "
            "give a spline with fewer knots"
        )
    return _polyline(x, c), interval


def _piecewise(spline: Any) -> PPoly:
    if not isinstance(spline, PPoly | BSpline):
        raise AnchorheadError(
            f"{type(spline).__name__} is not a spline that can be converted: PPoly (CubicSpline, PchipInterpolator, "
            "Akima1DInterpolator, ...) and BSpline of scipy.interpolate are; make_interp_spline makes one"
        )
    if spline.c.ndim != (2 if isinstance(spline, PPoly) else 1):
        raise AnchorheadError(
            f"the spline has coefficients of shape {spline.c.shape}, so vectors or arrays as values: make one spline "
            "for each of their entries"
        )
    if spline.extrapolate == "periodic":
        raise AnchorheadError(
            "the spline has extrapolate='periodic': heads know intervals only; set extrapolate=True to convert one "
            "period"
        )
    if np.iscomplexobj(spline.c):
        raise AnchorheadError("the spline has complex coefficients: make one of its real and one of its imaginary part")
    for name in ("x" if isinstance(spline, PPoly) else "t", "c"):
        require_finite(getattr(spline, name), f"the spline's {name} has")
    if isinstance(spline, PPoly):
        return spline
    whole = PPoly.from_spline(spline)
    inner = slice(spline.k, len(spline.t) - spline.k)  # beyond these knots the basis is incomplete
    return PPoly.construct_fast(whole.c[:, inner.start : inner.stop - 1], whole.x[inner])


def _pieces(spline: PPoly) -> tuple[Float[np.ndarray, " knots"], Float[np.ndarray, "order pieces"]]:
    """Knots and coefficients without empty pieces and without powers that never occur; at least those of a line."""
    x, c = np.asarray(spline.x, np.float64), np.asarray(spline.c, np.float64)
    if (np.diff(x) < 0).any():
        raise AnchorheadError("the knots of the spline descend: give them in ascending order")
    kept = np.diff(x) > 0
    if not kept.any():
        raise AnchorheadError("the spline has no piece of positive length: give it two different knots at least")
    x, c = np.append(x[:-1][kept], x[-1]), c[:, kept]
    c = np.concatenate([np.zeros((max(2 - len(c), 0), c.shape[1])), c])
    needed = np.flatnonzero((c != 0).any(axis=1))
    first = min(int(needed[0]) if len(needed) else len(c), len(c) - 2)
    return x, c[first:]


def _jumps(x: Float[np.ndarray, " knots"], c: Float[np.ndarray, "order pieces"]) -> Fraction:
    """The largest sum of jumps at the knots up to any place, exactly; raises if one is more than rounding explains."""
    knots = [Fraction(knot) for knot in x.tolist()]
    total, largest = Fraction(0), Fraction(0)
    for i in range(c.shape[1] - 1):
        left = Fraction(0)
        for coefficient in c[:, i].tolist():
            left = left * (knots[i + 1] - knots[i]) + Fraction(coefficient)
        jump = Fraction(float(c[-1, i + 1])) - left
        if abs(jump) > MEET * (1 + abs(left)):
            raise AnchorheadError(
                f"the spline jumps by {float(jump):.3g} at its knot x = {x[i + 1]:.12g}: heads approximate continuous "
                "functions; take out the jump, or convert the parts to either side"
            )
        total += jump
        largest = max(largest, abs(total))
    return largest


def _expression(x: Float[np.ndarray, " knots"], c: Float[np.ndarray, "order pieces"]) -> Expression:
    """A balanced tree of where(x < knot, left, right) over polynomials: its depth is the logarithm of the pieces."""

    def between(first: int, last: int) -> Expression:
        if last - first == 1:
            return _polynomial(float(x[first]), c[:, first].tolist())
        middle = (first + last) // 2
        return build.where("<", X, build.number(float(x[middle])), between(first, middle), between(middle, last))

    pieces = c.shape[1]
    try:
        return build.check_size(between(0, pieces))
    except AnchorheadError as error:
        raise AnchorheadError(
            f"the spline of degree {len(c) - 1} has {pieces} pieces: {error}. Give a spline with fewer knots, or "
            "convert it in parts"
        ) from error


def _polynomial(knot: float, coefficients: list[float]) -> Expression:
    """((c_0 s + c_1) s + ...) + c_d with s = x - knot; powers in front that do not occur are left out."""
    s = build.sub(X, build.number(knot)) if knot else X
    first = next((place for place, value in enumerate(coefficients) if value), len(coefficients) - 1)
    value = build.number(coefficients[first])
    for coefficient in coefficients[first + 1 :]:
        value = build.mul(value, s)
        value = build.add(value, build.number(coefficient)) if coefficient else value
    return value


def _polyline(x: Float[np.ndarray, " knots"], c: Float[np.ndarray, "2 pieces"]) -> Mlp:
    """f(x_0) + sum_i s_i (relu(x - x_i) - relu(x - x_(i+1))), which runs with slope s_i from x_i to x_(i+1).

    The differences of ReLUs are a layer of their own, with weights 1 and -1: multiplied out, their weights would be
    s_i - s_(i-1), which float64 cannot hold. The last piece needs no end, as none is claimed beyond it.
    """
    pieces = c.shape[1]
    ramps = Hidden.of(np.ones((pieces, 1)), -x[:-1], parse("relu(x)"))
    differences = np.eye(pieces) - np.eye(pieces, k=1)
    lengths = Hidden.of(differences, np.zeros(pieces), IDENTITY)
    return Mlp((ramps, lengths), Affine(c[:1], c[1, :1]))
