"""The proof of a theorem about a head: a lemma for each piece, by CoqInterval's Taylor models, and their sum.

The settings follow from the statement. A sum of values of size v, good to eps, is accurate to log2(v / eps) bits; it
needs these, those that its logits lose, and some for what rounds on the way. The degree of Taylor models grows with the
accuracy: of 5, 8, 12 and 18, 8 was the fastest for sin (37 bits), 12 for hardtanh (51 bits), 5 for softplus (17 bits).
"""

from __future__ import annotations

import math

from anchorhead.export.coq_pieces import Piece
from anchorhead.export.coq_terms import dyadic
from anchorhead.proof.head_form import HeadForm

FEWEST_BITS, SPARE_BITS = 50, 20
LEAST_DEGREE, BITS_A_DEGREE = 5, 4.5
DEEPEST = 60
"""How often a piece may be halved."""


def settings(form: HeadForm, output: int, piece: Piece, error: float) -> str:
    """CoqInterval's settings for a piece, from the values and the logits of the weights that count there."""
    size, farthest = 1.0 + float(abs(form.bias[output])), 1.0
    reach = max(abs(float(piece.low) - form.origin), abs(float(piece.high) - form.origin))
    for part, gauge, small in zip(form.parts, piece.gauges, piece.negligible, strict=True):
        for anchor in {*range(len(part.slopes))} - {*small}:
            size += abs(float(part.values[anchor, output]))
            for one in (anchor, gauge) if anchor != gauge else ():  # their difference rounds as they do
                farthest = max(farthest, abs(float(part.slopes[one])) * reach, abs(float(part.offsets[one])))
    accuracy = math.log2(size / error)
    bits = max(FEWEST_BITS, math.ceil(accuracy + math.log2(farthest)) + SPARE_BITS)
    degree = max(LEAST_DEGREE, round(accuracy / BITS_A_DEGREE))
    return f"i_bisect x, i_taylor x, i_prec {bits}, i_degree {degree}, i_depth {DEEPEST}"


def lemma(name: str, claim: str, piece: Piece, form: HeadForm, names: tuple[str, str], how: str, prepare: str) -> str:
    """A piece's lemma.

    claim    what holds of x
    names    of the head and the function
    how      CoqInterval's settings
    prepare  what is to be done to the function first
    """
    s = "x" if form.origin == 0 else f"(x - {dyadic(form.origin)})"
    lines = [
        f"Lemma {name} : forall x, {dyadic(piece.low)} <= x <= {dyadic(piece.high)} -> {claim}.",
        f"Proof. intros x on_the_piece. unfold {names[0]}.",
    ]
    parts = [f"{names[0]}_part_{number + 1}" for number in range(len(form.parts))]
    small, still = [], []
    for name_of_part, part, gauge, few in zip(parts, form.parts, piece.gauges, piece.negligible, strict=True):
        slope, offset = dyadic(float(part.slopes[gauge])), dyadic(float(part.offsets[gauge]))
        lines.append(f"  rewrite (mean_moved {name_of_part} {slope} {offset} {s}).")
        still.append(f"(exp_still {slope} {offset} {s})")
        for anchor, most in few.items():
            a, b = dyadic(float(part.slopes[anchor])), dyadic(float(part.offsets[anchor]))
            small.append(f"  negligible (({a} - {slope}) * {s} + ({b} - {offset})) {most}%nat.")
    lines += [
        f"  unfold {', '.join(parts)}, mean, moved. cbn [map numerator denominator].",
        f"  rewrite {', '.join(dict.fromkeys(still))}, ?Rplus_0_r, ?Rmult_1_r.",
        *dict.fromkeys(small),
    ]
    lines.append(f"  unfold {names[1]}. {prepare}".rstrip())
    lines.append(f"  all: first [impossible | interval with ({how})].\nQed.\n")
    return "\n".join(lines)


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
