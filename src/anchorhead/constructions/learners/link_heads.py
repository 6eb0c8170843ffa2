"""The head that stands for a link: two anchors where phi is a sigmoid or tanh, else the solver's on a range; for a link
of two variables a grid."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.single.head import best_head
from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Dtype, Part
from anchorhead.heads.grids.grid import solve_grid
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.heads.solver.straight import best_straight
from anchorhead.language.targets import Expression, ScalarTarget
from anchorhead.lemmas.learners.links import HeadLink
from anchorhead.proof.grids.grid import smooth_on_box
from anchorhead.proof.heads.link_heads import logistic_form

LINE_ANCHORS = {"float64": 6, "float32": 5}
WITHIN = {"float64": 1e-9, "float32": 2e-5}
"""The error that is asked of a solved head, relative to the largest |phi| on its range; if it is out of reach, the
best head with MAX_ANCHORS."""
MAX_ANCHORS = 24
GRID_WITHIN = {"float64": (1e-9, 1e-8, 1e-7, 1e-6), "float32": (1e-5, 1e-4, 1e-3)}
"""The errors that are asked of a grid, one after the other until one is reached with MAX_POINTS."""
MAX_POINTS = 1_024


@lru_cache(maxsize=64)
def link_head(phi: Expression, scores: tuple[float, float], dtype: Dtype) -> HeadLink:
    """The head for the phi of a loss.

    scores   the range of phi's argument, that is of s, s - y or y s as the form says; not needed by a sigmoid or tanh
    """
    return HeadLink(phi, _parts(phi, *scores, dtype), *scores)


@lru_cache(maxsize=16)
def link_grid(link: Expression, scores: tuple[float, float], labels: float, dtype: Dtype) -> GridAtom:
    """The grid for a link g(s, y), s in scores and |y| up to labels: origins and bias 0, moved into its weights."""
    low, high = scores
    box = ((low, -labels), (high, labels))
    smooth_on_box([link], ("s", "y"), *box)

    def values(x: np.ndarray) -> np.ndarray:
        return link.values({"s": x[..., 0], "y": x[..., 1]})

    corners = np.stack(np.meshgrid(np.linspace(low, high, 33), np.linspace(-labels, labels, 33)), axis=-1)
    size = float(np.abs(values(corners)).max())
    failed: AnchorheadError | None = None
    for within in GRID_WITHIN[dtype]:
        try:
            found = solve_grid(values, *box, within * size, dtype, MAX_POINTS)
        except AnchorheadError as error:
            failed = error
            continue
        axes = [
            (slopes, offsets.astype(np.float64) - slopes.astype(np.float64) * float(origin))
            for (slopes, offsets), origin in zip(found.axes, found.origins, strict=True)
        ]
        return GridAtom.of(axes, np.zeros(2), found.values + found.bias, np.zeros(1), dtype)
    raise failed or AnchorheadError(f"no grid was found for the link {link}")


def _parts(phi: Expression, low: float, high: float, dtype: Dtype) -> tuple[Part, ...]:
    logistic = logistic_form(phi)
    if logistic is not None:
        return (Part.of(*logistic.weights(), dtype),)
    line = phi.affine()
    if line is not None:
        reach = max(-low, high)
        (slopes, offsets, values), _ = best_straight(LINE_ANCHORS[dtype], dtype, 0)
        rise, start = float(line[0].get("x", 0)), float(line[1])
        return (Part.of(slopes / reach, offsets, rise * reach * values + start, dtype),)
    return _solved(phi, low, high, dtype)


def _solved(phi: Expression, low: float, high: float, dtype: Dtype) -> tuple[Part, ...]:
    """The solver's head, its origin moved into the offsets and its bias into the values."""
    size = float(np.abs(phi.values({"x": np.linspace(low, high, 257)})).max())
    target = ScalarTarget((phi,), low, high)
    try:
        found = best_head(target, BuildRequest(WITHIN[dtype] * size, dtype)).atom
    except AnchorheadError:
        found = best_head(target, BuildRequest(dtype=dtype, anchors=MAX_ANCHORS)).atom
    parts = []
    for number, part in enumerate(found.parts):
        slopes, offsets, values = part.astype(np.float64)
        shift = float(found.bias[0]) if number == 0 else 0.0
        parts.append(Part.of(slopes, offsets - slopes * found.origin, values + shift, dtype))
    return tuple(parts)
