"""The paper's placement: anchors L_k evenly over the domain, one sharpness c, the target's values at them.

With beta = c / spacing^2:   slopes 2 beta L_k,   offsets -beta L_k^2,   values f(L_k).
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Atom, Dtype, Part
from anchorhead.heads.solver.measure import estimate
from anchorhead.heads.solver.problem import Function, Problem
from anchorhead.heads.solver.single import Solution

_RANGE = (0.3, 12.0)  # of c: below, weights spread beyond neighbours; above, the head is a staircase


def uniform(
    f: Function,
    low: float,
    high: float,
    anchors: int,
    dtype: Dtype = "float64",
    kinks: tuple[float, ...] = (),
    c: float | None = None,
) -> Solution:
    """Even anchors with the given sharpness, or with the best one found."""
    if anchors < 2:
        raise AnchorheadError(f"anchors={anchors!r}: even anchors at both ends of the domain are at least 2")
    problem = Problem.of(f, kinks, low, high)
    origin = 0.0 if abs(problem.mid) <= problem.half else problem.mid
    places = np.linspace(problem.low, problem.high, anchors)
    values = problem.at(places)
    away = places - float(np.dtype(dtype).type(origin))
    spacing = np.float64((problem.high - problem.low) / (anchors - 1))  # whose square may overflow, or be 0

    def atom(c: float) -> Atom:
        beta = c / spacing**2
        part = Part.of(2 * beta * away, -beta * away**2, values, dtype)
        return Atom.of((part,), origin, np.zeros(values.shape[1]), dtype)

    if c is None:
        found = minimize_scalar(
            lambda log_c: estimate(atom(float(np.exp(log_c))), problem, 200, zooms=0).total,
            bounds=tuple(np.log(_RANGE)),
            method="bounded",
            options={"xatol": 0.02},
        )
        c = float(np.exp(found.x))
    head = atom(c)
    return Solution(head, estimate(head, problem))
