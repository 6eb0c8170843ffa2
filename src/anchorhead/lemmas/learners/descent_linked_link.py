"""What the layer *link* gets wrong (incontext.linked): the head in place of phi, at a score that is itself wrong.

The head's error holds at the score that was written, and phi moves by at most |written - z| times its steepest slope
between that and the argument z.

The head's rounding is bounded on the range where it serves. Where that is the whole line, beyond some T the anchor with
the steepest slope e has taken over: for s >= T the gap

    (a_e - a_k) s + g_e - g_k,    less what rounding may take off it, 8 u ((|a_e| + |a_k|) s + |g_e| + |g_k|),

is so large that weights of others are exactly 0, and grows with s. What is read is then v_e; likewise below -T.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from anchorhead.heads.atom import Part
from anchorhead.lemmas.learners.link_reading import facts_of, head_values, reading_error
from anchorhead.lemmas.learners.score import Written
from anchorhead.lemmas.learners.transformer import LinkedStep
from anchorhead.lemmas.learners.transformer import read as read_form
from anchorhead.network import Network
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic
from anchorhead.proof.arithmetic.silence import SILENT
from anchorhead.proof.heads.link_heads import LinkFacts
from anchorhead.proof.heads.link_slopes import Slopes, slopes_of
from anchorhead.targets.descent import Descent

FARTHEST = 2.0**40


@dataclass(frozen=True, eq=False)
class LinkError:
    """By how much links are wrong in all, and by rounding."""

    total: Float[np.ndarray, " n"]
    rounding: Float[np.ndarray, " n"]


@dataclass(frozen=True, eq=False)
class Known:
    """A step as it is stored, and what is proven of its link.

    straight   whether phi is a straight line that does not fall: the second derivative is then the same along the path,
               and not below 0
    """

    step: LinkedStep
    facts: LinkFacts
    slopes: Slopes
    straight: bool
    labelled: bool

    def head_rounding(self, model: Arithmetic) -> float:
        """Of the head at every score in its range."""
        ends, beyond = [], 0.0
        for side, end in ((-1, self.facts.low), (1, self.facts.high)):
            if math.isinf(end):
                end = side * max(_taken_over_from(part, side, model) for part in self.step.held)
                settled = sum(_last_value(part, side) for part in self.step.held)
                beyond = max(beyond, float(model.gamma(len(self.step.held) + 4)) * settled)
            ends.append(end)
        if not (math.isfinite(ends[0]) and math.isfinite(ends[1])):
            return math.inf
        return max(beyond, reading_error(self.step.held, ends[0], ends[1], 0.0, 0, model)) * UP

    def link_error(
        self, low: Float[np.ndarray, " n"], high: Float[np.ndarray, " n"], at: Written, labels: float, model: Arithmetic
    ) -> LinkError:
        """For arguments in [low_i, high_i], what is written for them, and |y| <= labels."""
        steep = steepest(self.slopes.between(np.minimum(low, at.low), np.maximum(high, at.high)))
        rounding = self.head_rounding(model)
        rounding = (rounding + 2.1 * model.unit * (self.facts.size + self.facts.error + rounding + labels)) * UP
        rounding = rounding + 4 * model.tiny
        return LinkError(steep * at.wrong * UP + self.facts.error + rounding, steep * at.rounding * UP + rounding)

    def values(self, z: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """The link in float64, by its head."""
        return head_values(self.step.held, z) - (y if self.labelled else 0.0)


def read(network: Network, target: Descent) -> Known:
    """The step, if the network is one of incontext.linked for this target; CertificateError otherwise."""
    step, phi = read_form(network, target), target.loss.link
    low, high = target.scores or (-math.inf, math.inf)
    facts = facts_of(step.held, phi, low, high)
    return Known(
        step,
        facts,
        slopes_of(phi, facts),
        phi.affine() is not None and facts.least >= 0,
        target.loss.form == "phi(s) - y",
    )


def steepest(bounds: tuple[np.ndarray, np.ndarray]) -> Float[np.ndarray, " n"]:
    return np.maximum(np.abs(bounds[0]), np.abs(bounds[1]))


def _taken_over_from(part: Part, side: int, model: Arithmetic) -> float:
    """T, a power of two; infinite if no anchor takes over."""
    slopes, offsets = part.slopes.astype(np.float64), part.offsets.astype(np.float64)
    last = int(np.argmax(side * slopes))
    others = np.arange(len(slopes)) != last
    rise = side * (slopes[last] - slopes)[others]
    start = (offsets[last] - offsets)[others]
    lost = 8 * model.unit * (np.abs(slopes[last]) + np.abs(slopes))[others]
    lost_start = 8 * model.unit * (np.abs(offsets[last]) + np.abs(offsets))[others]
    if not (rise > 2 * lost).all():
        return math.inf
    T = 1.0
    while T <= FARTHEST:
        if ((rise - lost) * T + start - lost_start >= 2 * SILENT).all():
            return T
        T *= 2
    return math.inf


def _last_value(part: Part, side: int) -> float:
    return float(abs(np.ravel(part.values)[int(np.argmax(side * part.slopes.astype(np.float64)))]))
