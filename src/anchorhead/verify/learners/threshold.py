"""The layer of a soft threshold at the end of a step, a head for each entry of w that is shrunk.

Tokens hold slope, offset and value of a clip. The state sees itself and all registers and asks with (w_j, 1): what it
reads is a softmax on one number w_j. The skip keeps w, and a head subtracts what it reads: S(w) = w - clip(w, -tau,
tau). The softmax is compared with clip on all w that a path may reach. clip moves by no more than tau does, so it is
compared with the float next to tau. S brings points no further apart, so its own error adds to that of the step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from anchorhead.verify.learners.average import MANY
from anchorhead.verify.programs.expressions import Expression
from anchorhead.verify.rounding import SLACK, Arithmetic
from anchorhead.verify.scalar.cells import prove
from anchorhead.verify.scalar.part import Claim, Part, silent


@dataclass(frozen=True, eq=False)
class Clip:
    """A softmax on one number for each of so many entries of w, and tau: as a float, and how far it may be off.

    aim   an error of a head that is good enough, so that no more work is done
    """

    part: Part
    tau: float
    off: float
    entries: int
    aim: float

    def error(self, reach: float, model: Arithmetic) -> float:
        """How long S(w) is wrong by for |w| <= reach, with the last subtraction."""
        step = 2.0 ** (8 * math.ceil(math.log2(max(reach, 2.0**-20)) / 8))  # few different proofs
        total = math.sqrt(self.entries) * (self._proven(step, model) + self.off)
        return (total + model.unit * (reach + total) + MANY * 4 * model.tiny) * SLACK

    @lru_cache(maxsize=256)  # noqa: B019
    def _proven(self, reach: float, model: Arithmetic) -> float:
        intervals = [(-reach, reach)]
        near = self.part.only(np.flatnonzero(~silent(self.part, intervals, model)))
        ends = ("number", -self.tau, ()), ("number", self.tau, ())
        claim = Claim(Expression.of((("variable", "x", ()), *ends, ("clip", None, (0, 1, 2)))), 1.0, 0.0, 1.0, 0.0)
        return prove([near], claim, intervals, model, self.aim).total
