"""The proof of a theorem about a head: a lemma for each piece, by CoqInterval's Taylor models, and their sum.

The settings follow from the statement. Sums of p values of size v, good to eps, need log2(p v / eps) bits, and some for
what rounds on the way; Taylor models of degree 8 were the fastest from 1e-4 to 1e-10, of degree 5 above.
"""

from __future__ import annotations

import math

from anchorhead.export.coq_pieces import Piece
from anchorhead.export.coq_terms import dyadic
from anchorhead.proof.head_form import HeadForm

SPARE_BITS = 20
DEEPEST = 60


def bits(form: HeadForm, output: int, piece: Piece, error: float) -> int:
    """The precision in bits: values and logits of the weights that count, against the error."""
    size, farthest = 1.0 + float(abs(form.bias[output])), 1.0
    for part, gauge, small in zip(form.parts, piece.gauges, piece.negligible, strict=True):
        for anchor in {*range(len(part.slopes))} - {*small}:
            size += abs(float(part.values[anchor, output]))
            reach = max(abs(float(piece.low) - form.origin), abs(float(piece.high) - form.origin))
            for one in (anchor, gauge) if anchor != gauge else ():  # their difference rounds as they do
                farthest = max(farthest, abs(float(part.slopes[one])) * reach, abs(float(part.offsets[one])))
    return max(50, math.ceil(math.log2(size / error) + math.log2(farthest)) + SPARE_BITS)


def settings(form: HeadForm, output: int, piece: Piece, error: float) -> str:
    """CoqInterval's settings for a piece."""
    degree = 8 if error < 1e-4 else 5
    return f"i_bisect x, i_taylor x, i_prec {bits(form, output, piece, error)}, i_degree {degree}, i_depth {DEEPEST}"


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
