"""The proof of a theorem about a head: a lemma for each piece, by CoqInterval's Taylor models, and their sum.

The settings follow from the statement, and others are tried where these do not do (SETTINGS). A sum of values of size
v, good to eps, is accurate to log2(v / eps) bits; it needs these, those that its logits lose, and some for what rounds
on the way. The degree of Taylor models grows with the accuracy: of 5, 8, 12 and 18, 8 was the fastest for sin (37
bits), 12 for hardtanh (51 bits), 5 for softplus (17 bits).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from anchorhead.export.coq.pieces import Piece
from anchorhead.export.coq.terms import dyadic
from anchorhead.heads.atom import Atom, Part

FEWEST_BITS, SPARE_BITS = 50, 20
LEAST_DEGREE, BITS_A_DEGREE = 5, 4.5
DEEPEST = 60
"""How often a piece may be halved."""


@dataclass(frozen=True)
class Settings:
    """How CoqInterval goes about it, where it may not do as it usually does.

    degree    of Taylor models, times the usual; 0: none, intervals alone
    bits      more than usual
    parts     into which every piece is cut
    computed  whether the file is also about what floating point makes of the head, where it can be
    """

    degree: float = 1.0
    bits: int = 0
    parts: int = 1
    computed: bool = True


SETTINGS = (
    Settings(),
    Settings(computed=False),
    Settings(degree=1.6, bits=20),
    Settings(degree=0.7, parts=4),
    Settings(degree=1.6, bits=20, computed=False),
    Settings(degree=0.7, parts=4, computed=False),
    Settings(degree=0.0, parts=8, computed=False),
)
"""In the order in which they are tried: what is fastest differs from head to head."""


def interval_settings(form: Atom, output: int, piece: Piece, error: float, settings: Settings) -> str:
    """CoqInterval's settings for a piece, from the values and the logits of the weights that count there."""
    size, farthest = 1.0 + float(abs(form.bias[output])), 1.0
    reach = max(abs(float(piece.low) - form.origin), abs(float(piece.high) - form.origin))
    for part, gauge, small in zip(form.parts, piece.gauges, piece.negligible, strict=True):
        for anchor in {*range(len(part.slopes))} - {*small}:
            size += abs(float(part.values[anchor, output]))
            for one in (anchor, gauge) if anchor != gauge else ():  # their difference rounds as they do
                farthest = max(farthest, abs(float(part.slopes[one])) * reach, abs(float(part.offsets[one])))
    accuracy = math.log2(size / error)
    bits = max(FEWEST_BITS, math.ceil(accuracy + math.log2(farthest)) + SPARE_BITS) + settings.bits
    degree = round(settings.degree * max(LEAST_DEGREE, accuracy / BITS_A_DEGREE))
    taylor = f"i_taylor x, i_degree {degree}, " if degree else ""
    return f"i_bisect x, {taylor}i_prec {bits}, i_depth {DEEPEST}"


def lemma(name: str, claim: str, piece: Piece, form: Atom, names: tuple[str, str], how: str, prepare: str) -> str:
    """A piece's lemma.

    claim    what holds of x
    names    of the head and the function
    how      CoqInterval's settings
    prepare  what is to be done to the function first
    """
    s = "x" if form.origin == 0 else f"(x - {dyadic(form.origin)})"
    parts = [f"{names[0]}_part_{number + 1}" for number in range(len(form.parts))]
    gauges = [
        f"{dyadic(float(part.slopes[gauge]))} {dyadic(float(part.offsets[gauge]))} {s}"
        for part, gauge in zip(form.parts, piece.gauges, strict=True)
    ]
    still = ", ".join(dict.fromkeys(f"(exp_still {gauge})" for gauge in gauges))
    lines = [
        f"Lemma {name} : forall x, {dyadic(piece.low)} <= x <= {dyadic(piece.high)} -> {claim}.",
        f"Proof. intros x on_the_piece. unfold {names[0]}.",
        *(f"  rewrite (mean_moved {part} {gauge})." for part, gauge in zip(parts, gauges, strict=True)),
        f"  unfold {', '.join(parts)}, mean, moved. cbn [map numerator denominator].",
        f"  rewrite {still}, ?Rplus_0_r, ?Rmult_1_r.",
        f"  {small_weights(form.parts, piece, s)}".rstrip(),
        f"  unfold {names[1]}. {prepare}".rstrip(),
        f"  all: first [impossible | interval with ({how})].\nQed.\n",
    ]
    return "\n".join(lines)


def small_weights(parts: Sequence[Part], piece: Piece, s: str) -> str:
    """Tactics: weights relative to the gauge's that are negligible become variables."""
    small = []
    for part, gauge, few in zip(parts, piece.gauges, piece.negligible, strict=True):
        slope, offset = dyadic(float(part.slopes[gauge])), dyadic(float(part.offsets[gauge]))
        for anchor, most in few.items():
            a, b = dyadic(float(part.slopes[anchor])), dyadic(float(part.offsets[anchor]))
            small.append(f"negligible (({a} - {slope}) * {s} + ({b} - {offset})) {most}%nat.")
    return "\n  ".join(dict.fromkeys(small))


def joined(lemmas: list[tuple[str, Piece]]) -> str:
    """The proof that what holds on every piece holds on all of them together."""
    lines = ["Proof.", "  intros x [above_0 below]."]
    for number, (name, piece) in enumerate(lemmas[:-1]):
        lines.append(
            f"  destruct (Rle_lt_dec x {dyadic(piece.high)}) as [below_{number}|above]; "
            f"[exact ({name} x (conj above_{number} below_{number}))|]."
        )
        lines.append(f"  apply Rlt_le in above. rename above into above_{number + 1}.")
    lines.append(f"  exact ({lemmas[-1][0]} x (conj above_{len(lemmas) - 1} below)).\nQed.\n")
    return "\n".join(lines)
