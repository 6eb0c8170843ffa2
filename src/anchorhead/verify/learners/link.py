"""The link of a loss: between what it stays, and how steep it is.

Slopes are enclosures of difference quotients along x, across kinks too (functions.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np
from flint import arb

from anchorhead.verify.balls import above, below, hull, precision
from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.functions import quotients
from anchorhead.verify.learners.form import by_flag, line_of, phi_of
from anchorhead.verify.programs.expressions import Expression

FINE, COARSE = 1e-7, 3e-3
"""Cells are halved until their slopes are this close, relatively, to one that is met: of all, and of a part."""
MAX_CELLS = 20_000
STRIPS = 16
"""Of the labels, where a link depends on them."""
FARTHEST = 2.0**20
"""Arguments beyond this are not followed."""


@dataclass(frozen=True)
class Link:
    """phi in x, and in y for the form "both", where |y| <= labels; line: slope and constant, where it is a line in x
    that rises."""

    form: str
    phi: Expression
    line: tuple[Fraction, Fraction] | None
    labels: float = 0.0

    @property
    def strips(self) -> list[tuple[float, float]]:
        """Of y; one point where phi does not depend on it."""
        cuts = np.linspace(-self.labels, self.labels, STRIPS + 1).tolist()
        return list(pairwise(cuts)) if self.form == "both" else [(0.0, 0.0)]

    @property
    def coarse(self) -> float:
        """How close slopes of a part need be; those of a strip of labels are taken as they are."""
        return math.inf if self.form == "both" else COARSE


def read_links(g: Expression, labels: float, flags: Sequence[str] = ()) -> list[tuple[Link, ...]]:
    """The forms that a link has, and that of two variables last. With flags, rows of each have a link of their own:
    g(s, a, b) = phi(s - a) - b, this flag being 1 and the others 0."""
    if flags:
        found = [phi_of(one, "residual", "a") for one in by_flag(g, flags)]
        require(None not in found, "a link is not phi(s - a) - b")
        return [tuple(Link("residual", phi, line_of(phi)) for phi in found if phi is not None)]
    forms = [(form, phi_of(g, form)) for form in ("residual", "labelled", "margin")]
    links = [(Link(form, phi, line_of(phi)),) for form, phi in forms if phi is not None]
    both = phi_of(g, "both")
    return links + ([(Link("both", both, None, labels),)] if both is not None else [])


@cache
def slopes(
    link: Link, low: float, high: float, fine: float = FINE, enough: tuple[float, float] | None = None
) -> tuple[float, float]:
    """Between what difference quotients on [low, high] lie, close to the least and the largest that are met; or no
    closer than is enough."""
    with precision(96, 4):
        waiting = [((arb(low), arb(high)), (arb(c), arb(d))) for c, d in link.strips]
        cells, least, most, met = 0, np.inf, -np.inf, (np.inf, -np.inf)
        while waiting:
            (a, b), (c, d) = waiting.pop()
            cells += 1
            if cells > MAX_CELLS:
                raise NotVerified(f"the slopes of {link.phi} are not bounded within {MAX_CELLS} cells")
            found = quotients(link.phi, "x", a, b, {"y": c.union(d)})
            middle, centre = ((a + b) / 2).mid(), ((c + d) / 2).mid()
            here = quotients(link.phi, "x", middle, middle, {"y": centre})
            met = min(met[0], above(here)), max(met[1], below(here))
            room = fine * max(abs(met[0]), abs(met[1]), 1e-300)
            goal = enough or met
            done = below(found) >= min(met[0], goal[0]) - room and above(found) <= max(met[1], goal[1]) + room
            shares = float(b - a) / max(high - low, 1e-300), float(d - c) / (2 * link.labels or 1.0)
            if done or max(shares) < 1e-12:
                least, most = min(least, below(found)), max(most, above(found))
            elif shares[0] >= shares[1]:
                waiting += [((a, middle), (c, d)), ((middle, b), (c, d))]
            else:
                waiting += [((a, b), (c, centre)), ((a, b), (centre, d))]
        if not most - least < np.inf:
            raise NotVerified(f"{link.phi} has no slope on [{low}, {high}]")
        return least, most


def between(link: Link, low: float, high: float) -> tuple[float, float]:
    """Between what phi stays on [low, high]: by balls, cell by cell."""
    with precision():
        cells = [hull(float(a), float(b)) for a, b in pairwise(cuts(low, high))]
        found = [_on_cell(link, cell, hull(*strip)) for cell in cells for strip in link.strips]
    if not all(one.is_finite() for one in found):
        raise NotVerified(f"{link.phi} is not finite on [{low:g}, {high:g}]")
    return min(map(below, found)), max(map(above, found))


def _on_cell(link: Link, x: arb, y: arb) -> arb:
    """As of a point, which is fast; where that has no bounds, as of ranges."""
    found = link.phi.point({"x": x, "y": y})
    return found if found.is_finite() else link.phi.ball({"x": x, "y": y})


EDGES = np.concatenate([np.arange(1, 8) / 64, 2.0 ** (np.arange(-24, 160) / 8)])


def cuts(low: float, high: float) -> np.ndarray:
    """Cells that grow in width with their distance from 0."""
    return np.unique(np.clip(np.concatenate([-EDGES[::-1], [0.0], EDGES, [low, high]]), low, high))
