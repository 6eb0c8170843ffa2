"""The soft threshold at the end of a step: S(w) = w - clip(w, -tau, tau), a head for each entry of w that is shrunk.

The skip carries w, and a head subtracts what it reads from registers: logits affine in its entry of w, so it is a
scalar head (scalar.py), compared with clip on all w that a path may reach. clip moves by no more than tau does, so the
head is compared with the float next to tau. S brings points no further apart, so its own error adds to that of the
step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from anchorhead.verify.learners.average import MANY
from anchorhead.verify.programs.expressions import Expression
from anchorhead.verify.rounding import SLACK, Arithmetic
from anchorhead.verify.scalar.cells import Claim, prove
from anchorhead.verify.scalar.part import Part, silent


@dataclass(frozen=True, eq=False)
class Clip:
    """The heads as softmaxes on one number, and the tau of each, as a float and how far it may be off.

    aim   an error of a head that is good enough, so that no more work is done
    """

    parts: tuple[Part, ...]
    taus: tuple[tuple[float, float], ...]
    aim: float

    def error(self, reach: float, model: Arithmetic) -> float:
        """How long S(w) is wrong by for |w| <= reach, with the last subtraction."""
        step = 2.0 ** (8 * math.ceil(math.log2(max(reach, 2.0**-20)) / 8))  # few different proofs
        each = [self._each(number, step, model) for number in range(len(self.parts))]
        total = math.sqrt(sum(one * one for one in each))
        return (total + model.unit * (reach + total) + MANY * 4 * model.tiny) * SLACK

    @lru_cache(maxsize=256)  # noqa: B019
    def _each(self, number: int, reach: float, model: Arithmetic) -> float:
        part, (tau, off) = self.parts[number], self.taus[number]
        for other in range(number):
            if self.parts[other].key() == part.key() and self.taus[other] == (tau, off):
                return self._each(other, reach, model)
        return _proven(part, tau, reach, self.aim, model) + off


def _proven(part: Part, tau: float, reach: float, aim: float, model: Arithmetic) -> float:
    intervals = [(-reach, reach)]
    near = part.only(np.flatnonzero(~silent(part, intervals, model)))
    nodes = (
        ("variable", "x", ()), ("number", -tau, ()), ("number", tau, ()), ("clip", None, (0, 1, 2)),
    )  # fmt: skip
    return prove([near], Claim(Expression.of(nodes), 1.0, 0.0, 1.0, 0.0), intervals, model, aim).total
