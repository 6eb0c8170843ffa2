"""The soft threshold at the end of a step: S(w) = w - clip(w, -tau, tau), a head for each entry of w that is shrunk.

The skip carries w, and a head subtracts what it reads from registers: logits affine in its entry of w, so it is a
scalar head (scalar.py), compared with clip on all w that a path may reach. clip moves by no more than tau does, so the
head is compared with the float next to tau. S brings points no further apart, so its own error adds to that of the
step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from anchorhead.verify.errors import require
from anchorhead.verify.grammar import Attention
from anchorhead.verify.learners.average import MANY
from anchorhead.verify.learners.reading import Reading, read_part
from anchorhead.verify.learners.tokens import Live, exact_rows
from anchorhead.verify.programs.expressions import Expression
from anchorhead.verify.rounding import SLACK, Arithmetic
from anchorhead.verify.scalar import Claim, Part, prove, silent


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


def read_clip(reading: Reading, layer: Attention, after: Live, aim: float, model: Arithmetic) -> Clip:
    """The last layer of a step as soft thresholds."""
    target, tokens = reading.target, reading.tokens
    parts: list[Part] = []
    taus: list[tuple[float, float]] = []
    state = tokens.state
    shrunk = {feature: tau for feature, tau in zip(reading.w, target.thresholds, strict=True) if tau is not None}
    skip = layer.skip.on_features()[reading.w]  # type: ignore[union-attr]
    moved = exact_rows(skip, state, "w in the skip of the threshold")
    require(bool((moved == state[reading.w]).all()), "the skip of the threshold changes w")
    for head in range(layer.heads):
        (written,) = np.nonzero(layer.output[head][reading.w].any(axis=1))
        require(len(written) == 1, "a head of the threshold does not shrink one entry of w")
        feature = reading.w[written[0]]
        output = layer.output[head][feature]
        require(feature in shrunk and output.shape == (1,) and output[0] == -1.0, "a threshold is not subtracted")
        tau = shrunk.pop(feature)
        parts.append(read_part(reading, layer, head, ("state", state, 1 + feature), "a threshold", model))
        middle = float(tau)
        taus.append((middle, float(abs(tau - Fraction(middle))) * SLACK))
    require(not shrunk, "an entry of w is not shrunk")
    reading.passed(layer, after, {"state": set(reading.w)})
    return Clip(tuple(parts), tuple(taus), aim)
