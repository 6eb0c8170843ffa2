"""Targets that turn round many times: anchors placed by how the target bends, values solved; keys stay where they are.

A search over all keys has no valley to follow where a target has many turns, and takes the longer the more anchors it
has. Anchors that lie as densely as the target bends do well there by themselves: neighbours cross half-way, at one
sharpness c, a few anchors stand beyond either end,

    slope steps 2c / gap_k,   crossings (L_k + L_{k+1}) / 2,   values by least squares.

With c well below 1 every weight reaches over several neighbours, and once there are three anchors for two turns the
error falls geometrically: sin(50 x) on [-1, 1] errs by 3e-4 with 48 anchors, 6e-6 with 64, 3e-9 with 96.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from jaxtyping import Float

from anchorhead.heads.atom import Dtype
from anchorhead.heads.gauge import Caps
from anchorhead.heads.solver.keys import Keys
from anchorhead.heads.solver.problem import Problem
from anchorhead.heads.solver.projection import Fit, Loss, Samples, even, fitted
from anchorhead.heads.solver.single import Ladder, Solution
from anchorhead.heads.solver.starts import spread

MANY_TURNS = 10
"""From here on a search over all keys finds next to nothing."""
_MOST = 384
_GROWTH, _LEAP, _NOTHING = 1.06, 1.15, 0.5  # from one rung to the next, and where that errs by so much of the scale
_SHARPNESS, _BENT = (0.1, 0.25, 0.5), (0.0, 0.5, 0.8)
_FEW_BEYOND, _SHARE_BEYOND = (2, 4), 0.05  # of the anchors, beyond either end
_PATIENCE = 16  # rungs without gain
# the work of a rung, about what was measured: of a fit for each sample and square of anchors, and of storing it for
# each sample and anchor
_FITTED, _STORED = 6e-4 * len(_SHARPNESS) * len(_BENT) * 3, 3.0


class Placed(Ladder):
    """Softmaxes with placed anchors; a rung between two that are tried is the smaller of them."""

    def rungs(self, top: int) -> Iterator[int]:
        """One anchor, a constant; then from where the target's turns can be followed on."""
        yield self.fewest
        count = self._first
        while count <= min(top, self.most):
            yield count
            nothing = super().estimate(count).total > _NOTHING * self.problem.scale
            count = max(count + 1, int((_LEAP if nothing else _GROWTH) * count))

    def ruled_out(self, aim: float) -> bool:
        """Whether rounding alone is more than the aim, from the first rung on."""
        return self.floor(self._first, aim) > aim

    @property
    def most(self) -> int:
        return _MOST

    @property
    def patience(self) -> int:
        return _PATIENCE

    @cached_property
    def _first(self) -> int:
        return max(12, self.problem.turns + 4)

    def work(self, anchors: int) -> float:
        if self._is_constant(anchors) or anchors in self._fits:
            return 0.0
        return self._samples(anchors).f.size * anchors * (_FITTED * anchors + _STORED)

    def solution(self, anchors: int) -> Solution:
        """The sketch: there is nothing to add to it."""
        return self.estimate(anchors)

    def estimate(self, anchors: int) -> Solution:
        return super().estimate(max(rung for rung in self.rungs(anchors)))

    def outlook(self, anchors: int) -> float:
        return self.estimate(anchors).total

    def fits(self, p: int) -> list[Fit]:
        if p not in self._fits:
            samples = self._samples(p)
            self.effort.spend(self.work(p))
            beyond = sorted({*_FEW_BEYOND, int(_SHARE_BEYOND * p)})
            keys = [_placed(samples, p, *choice) for choice in product(_SHARPNESS, _BENT, beyond)]
            found = fitted(keys, Loss(samples, even(samples), self._ridge, p))
            self._fits[p] = sorted(found, key=lambda fit: fit.error)[:1]
        return self._fits[p]


def ladder_of(problem: Problem, dtype: Dtype, caps: Caps, **more: Any) -> Ladder:
    """The search for single softmaxes that suits a problem."""
    return (Placed if problem.turns > MANY_TURNS else Ladder)(problem, dtype, caps, **more)


def _placed(samples: Samples, p: int, c: float, bent: float, beyond: int) -> Keys:
    places = spread(samples, p - 2 * beyond, bent)
    left, right = places[1] - places[0], places[-1] - places[-2]
    places = np.concatenate([places[0] - left * _counts(beyond)[::-1], places, places[-1] + right * _counts(beyond)])
    return Keys(np.log(2 * c / np.diff(places)), (places[1:] + places[:-1]) / 2)


def _counts(beyond: int) -> Float[np.ndarray, " beyond"]:
    return np.arange(1.0, beyond + 1)
