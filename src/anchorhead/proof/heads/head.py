"""The error of a head on a scalar: exact arithmetic against the target, and the dtype against exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from flint import acb
from jaxtyping import Float

from anchorhead.certificate import Certificate, Worst
from anchorhead.conditions import AssumedLipschitz
from anchorhead.domain import interval_text
from anchorhead.effort import Effort
from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Part
from anchorhead.language.targets import CallableTarget, Expression, ScalarTarget
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic
from anchorhead.proof.enclosures.analytic import Piece, Proof, prove_outputs, prove_sup
from anchorhead.proof.enclosures.balls import BallHead, largest_jump
from anchorhead.proof.enclosures.lipschitz import prove_sup_lipschitz
from anchorhead.proof.enclosures.supremum import Supremum
from anchorhead.proof.heads.head_rounding import head_rounding
from anchorhead.proof.statement import Statement
from anchorhead.terms import Term

METHOD = (
    "for every s of the dtype: difference of target and head bounded on Bernstein ellipses with complex balls, "
    "rounding on cells"
)
METHOD_FROM_VALUES = "for every s of the dtype: values on a grid, rounding on cells"


@dataclass(frozen=True)
class HeadBound:
    """exact: |target - head| in exact arithmetic, of which `found` was seen; rounding: |computed - head|."""

    exact: float
    rounding: float
    found: float
    at: float

    @property
    def total(self) -> float:
        return (self.exact + self.rounding) * UP

    def terms(self) -> tuple[Term, Term]:
        return Term("approximation", self.exact), Term("rounding", self.rounding, "softmaxes")

    def statement(self, target: ScalarTarget | CallableTarget) -> Statement:
        known = isinstance(target, ScalarTarget)
        return Statement(
            total=self.total,
            terms=self.terms(),
            method=METHOD if known else METHOD_FROM_VALUES,
            target=target_words(target),
            conditions=() if known or target.lipschitz is None else (AssumedLipschitz((float(target.lipschitz),)),),
            worst=None if math.isnan(self.at) else Worst(self.found, (self.at,)),  # none where nothing was off
        )


def head_errors(certificate: Certificate) -> tuple[float, float]:
    """In exact arithmetic, and of rounding, as the certificate of a head says."""
    exact, rounding = certificate.term("approximation", of=""), certificate.term("rounding", of="softmaxes")
    if exact is None or rounding is None:
        raise AnchorheadError(f"the certificate for {certificate.target} is not that of a head on a scalar")
    return exact.amount, rounding.amount


def target_words(target: ScalarTarget | CallableTarget) -> str:
    return f"{target.name} on {interval_text(target.low, target.high)}"


def prove_head(
    parts: Sequence[Part],
    origin: float,
    bias: Float[np.ndarray, " m"],
    target: ScalarTarget | CallableTarget,
    arithmetic: Arithmetic,
    effort: Effort | None = None,
) -> HeadBound:
    """A bound for every s of the dtype on the target's interval.

    An opaque target needs its Lipschitz constant; its values are taken as exact up to 2 ulp of float64.
    """
    rounding = head_rounding(parts, origin, bias, target.low, target.high, arithmetic, effort=effort)
    proof = prove_exact(parts, origin, bias, target, floor=rounding / 50, effort=effort)
    return HeadBound(proof.bound, rounding, proof.found, proof.at)


def prove_exact(
    parts: Sequence[Part],
    origin: float,
    bias: Float[np.ndarray, " m"],
    target: ScalarTarget | CallableTarget,
    floor: float,
    effort: Effort | None = None,
) -> Proof:
    """A bound on |target - head| in exact arithmetic, within 2% of the largest value found, or at most `floor`."""
    low, high = target.low, target.high
    if isinstance(target, ScalarTarget):
        jump = largest_jump(target.pieces)
        return prove_sup(parts, origin, bias, _pieces(target), low, high, floor=floor, effort=effort, jump=jump)
    if target.lipschitz is None:
        raise AnchorheadError("nothing can be proven of an opaque function: give lipschitz=, a bound on its slope")
    noise = 4e-16 * float(np.abs(target.values(np.linspace(low, high, 1001))).max())
    return prove_sup_lipschitz(
        parts, origin, bias, target.values, target.lipschitz, low, high, f_error=noise, floor=floor
    )


def prove_relative(head: BallHead, target: ScalarTarget, floor: float) -> Proof:
    """A bound on |f(s) - r(s)| / max(1, |s|) for every s of the target's interval, within 2% of what was found, or at
    most `floor`."""
    jump, ends = largest_jump(target.pieces), (target.low, target.high)
    return prove_outputs([head], _pieces(target), *ends, Supremum(0.02, floor), jump, relative=True)


def _pieces(target: ScalarTarget) -> list[list[Piece]]:
    """The pieces of each function, as enclosures."""
    return [
        [
            (piece.left, piece.right, ExpressionOnBalls(piece.expressions[k], target.variable))
            for piece in target.pieces.pieces
        ]
        for k in range(target.outputs)
    ]


@dataclass(frozen=True)
class ExpressionOnBalls:
    """On real balls the real enclosure, which reaches singular ends such as the square root's at 0."""

    expression: Expression
    variable: str

    def __call__(self, z: acb) -> acb:
        if z.imag == 0:
            return acb(self.expression.ball({self.variable: z.real}))
        return self.expression.complex_ball({self.variable: z})

    @property
    def operations(self) -> int:
        """What a value takes."""
        return len(self.expression.program)
