"""The soft threshold at the end of a learner's step: one more attention layer, a head for each entry of w.

    S(w) = sign(w) max(|w| - tau, 0) = w - clip(w, -tau, tau),    tau = rate threshold

The skip carries w, and each head subtracts a clip: a softmax on registers that all heads share, with slopes a_k,
offsets g_k and values v_k. Every state asks the registers alone: its own key, like those of registers that serve other
layers, is out of reach by its offset. With momentum, v is the step that w made, so what is subtracted from w is
subtracted from v too. Where columns have scales t_j, their thresholds are tau t_j: those heads ask with w_j / t_j, and
subtract t_j times what they read.

*What is proven.* Up to twice tau to either side the softmax is compared with the clip as any head is with its target
(proof.heads.head). Beyond, the steepest anchor e must have taken over (proof.arithmetic.silence): what is read from
there on is v_e, and the clip is tau; likewise below.

S brings points no further apart, |S(a) - S(b)| <= |a - b|, so a step followed by S errs by no more than the step and S
do: errors of steps add up as they do without. Not so with momentum: S takes off some entries of w and v what it leaves
to others, and the products of such steps with those of momentum have no bound that is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from flint import acb, arb
from jaxtyping import Float

from anchorhead.errors import CertificateError
from anchorhead.heads.atom import Part
from anchorhead.language.expressions.precision import precision
from anchorhead.language.targets.descent import Descent
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic, arithmetic_of
from anchorhead.proof.arithmetic.silence import takes_over
from anchorhead.proof.enclosures.analytic import prove_sup
from anchorhead.proof.enclosures.balls import upper
from anchorhead.proof.heads.head_rounding import head_rounding
from anchorhead.proof.remembered import remembered

UNKNOWN = (
    "with momentum and a threshold at once errors of the steps are multiplied by products of matrices for which no "
    "bound is known"
)


class NotKnown(CertificateError):
    """No proof is known for such a learner: what is said of it can only be measured."""


@dataclass(frozen=True)
class ClipError:
    """exact: |softmax - clip| in exact arithmetic; rounding: |computed - softmax|. For every w."""

    exact: float
    rounding: float

    def after(
        self, w: Float[np.ndarray, " weights"], target: Descent, model: Arithmetic
    ) -> Float[np.ndarray, " weights"]:
        """What S gets wrong, entry by entry, for |entries| <= w, with the subtraction; nothing in the intercept."""
        total = self.exact + self.rounding
        return (total + model.unit * UP * (w + total) + model.tiny) * target.penalised


def require_known(target: Descent) -> None:
    """NotKnown where no proofs of such learners are known."""
    if target.scales is not None:
        raise NotKnown(f"{target}: penalties that differ from entry to entry are not proven; give columns one scale")
    if target.momentum and target.threshold:
        raise NotKnown(f"{target}: {UNKNOWN}")


def largest_clipped(clip: Part) -> float:
    """|w| for which no logit of the clip overflows."""
    steepest = float(np.abs(clip.slopes).max())
    return float(np.finfo(clip.slopes.dtype).max) / (8 * steepest) if steepest else float("inf")


@remembered(64)
def clip_error(clip: Part, rate: float, threshold: float) -> ClipError:
    """What S gets wrong in one entry of w with these anchors, as they are stored, the last subtraction left out."""
    model, part = arithmetic_of(clip.slopes.dtype.name), Part.of(*clip.astype(np.float64), "float64")
    with precision(256):
        tau = arb(rate) * arb(threshold)
        reach = upper(2 * tau)
        pieces = [(arb(-reach), -tau, _constant(-tau)), (-tau, tau, _itself), (tau, arb(reach), _constant(tau))]
    rounding = head_rounding([part], 0.0, np.zeros(1), -reach, reach, model)
    inside = prove_sup([part], 0.0, 0.0, [pieces], -reach, reach, floor=rounding / 50).bound
    if not (part.slopes[0] <= 0 <= part.slopes[-1]):
        raise CertificateError("the threshold has no anchor on one side: there others come within reach")
    if not all(takes_over(part.slopes, part.offsets, side, reach, model) for side in (-1, 1)):
        raise CertificateError("beyond the kinks of the threshold more than one anchor has weight")
    ends = part.values[0, 0], part.values[-1, 0]
    with precision(256):
        outside = max(upper(abs(arb(float(ends[0])) + tau)), upper(abs(arb(float(ends[1])) - tau)))
    vanished = 4 * len(part) * model.tiny * (1 + float(np.abs(part.values).max()))
    return ClipError(max(inside, outside), max(rounding, vanished))


def _constant(level: arb) -> object:
    return lambda z: z * 0 + level


def _itself(z: acb) -> acb:
    return z
