"""The theorem about what is computed, where the bound leaves room for rounding: for every x at once, by sizes alone.

With products at most P, logits at most L and values at most V in size over the whole interval, exponentials are off by
a part o of about u (2 P + 4 L + 8), and the mean by about 2 V o. That takes no pieces and hardly any of Coq's time, but
is far more than the certificate's rounding for large values or steep slopes: then computed.py weighs every anchor
where it counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from anchorhead.export.coq.computed import FLOATS, Names, Rounding, Shares, above
from anchorhead.export.coq.pieces import Piece
from anchorhead.export.coq.terms import decimal, dyadic
from anchorhead.heads.atom import Atom, Part
from anchorhead.language.targets import ScalarTarget

WIDER = Fraction(1025, 1024)
"""For CoqInterval, whose own numbers round, too."""
TO_ROUNDING = 0.5
"""The part of what the bound leaves beside the error in exact arithmetic that rounding may take."""


@dataclass(frozen=True)
class Anywhere(Rounding):
    """By sizes alone.

    sizes     of products, logits and values, at most
    most      how far logits may be off
    part_off  o, how far exponentials may be, relatively
    """

    sizes: tuple[Fraction, Fraction, Fraction]
    most: Fraction
    part_off: Fraction

    @classmethod
    def of(cls, form: Atom, output: int, target: ScalarTarget, dtype: str) -> Anywhere | None:
        """None for what computed.py does not know either, and where logits are off by too much."""
        if len(form.parts) != 1 or form.origin != 0 or dtype not in FLOATS:
            return None
        emin, bits = FLOATS[dtype]
        u, eta = Fraction(1, 2**bits), Fraction(2) ** (emin - 1)
        whole = form.parts[0]
        part = Part(whole.slopes, whole.offsets, whole.values[:, [output]])
        lines = [(Fraction(float(a)), Fraction(float(b))) for a, b in zip(part.slopes, part.offsets, strict=True)]
        ends = Fraction(target.low), Fraction(target.high)
        largest = (
            max(abs(a * x) for a, _ in lines for x in ends),
            max(abs(a * x + b) for a, b in lines for x in ends),
            max(abs(Fraction(float(v))) for v in part.values[:, 0]),
        )
        products, logits, values = (above(size * WIDER) for size in largest)
        wrong = u * ((1 + u) * products + logits) + 3 * eta
        most = above((wrong + u * (2 * wrong + 2 * logits) + eta) * WIDER)
        off = (most + 2 * most * most) * (1 + 8 * u) + 8 * u + 2 * len(lines) * 8 * eta
        if most > Fraction(1, 2) or off * WIDER > Fraction(1, 5):
            return None
        shares = Shares.of(part.values[:, 0], u, eta)
        bias = Fraction(float(form.bias[output]))
        return cls(dtype, part, bias, shares, (products, logits, values), most, above(off * WIDER))

    def left(self, bound: float, exact: float) -> float | None:
        u, values, o, shares = Fraction(1, 2 ** FLOATS[self.dtype][1]), self.sizes[2], self.part_off, self.shares
        moved = ((1 + shares.of_result) * 2 * o + shares.of_terms * (1 + o)) / (1 - o) + shares.of_result
        rounding = values * moved + shares.underflow
        if self.bias:  # goal and result are at most so large, and what is near the one is near the other
            rounding = (1 + u) * rounding + u * (2 * Fraction(bound) + values + abs(self.bias)) + shares.underflow
        kept = float(rounding * WIDER)
        return kept if kept <= TO_ROUNDING * (bound - exact) else None

    def proof(self, names: Names, eps: tuple[int, int], prepare: Callable[[Piece], str]) -> list[str]:
        emin, bits = FLOATS[self.dtype]
        part, anchors, suffix = names.part, len(self.part.slopes), names.suffix
        words = " ".join(map(dyadic, (*self.sizes, self.most, self.part_off)))
        settings = f"({emin}) {bits} {part} {dyadic(self.sizes[0])} {dyadic(self.sizes[1])} {dyadic(self.most)}"
        biased, bias = ("_biased", f"{dyadic(self.bias)} ") if self.bias else ("", "")
        goal = f"(f{suffix} x)"
        return [
            f"Lemma settings{suffix} : settings_hold {settings} {dyadic(self.part_off)}",
            f"  {dyadic(self.shares.of_result)} {dyadic(self.shares.of_terms)}.",
            f"Proof. settings_of {part} {anchors}%nat {anchors}%Z. Qed.\n",
            f"Lemma computed_everywhere{suffix} : forall x, {names.inside} -> computed_at{suffix} x.",
            "Proof.",
            "  intros x inside choice z e q top mass result _ computed. eapply Rle_trans.",
            f"  {{ apply (computed_anywhere{biased} ({emin}) {bits} choice eq_refl {part} {words} {self.shares.words}",
            f"      settings{suffix} shares{suffix} x z e q top mass result computed",
            f"      ltac:(clear computed; all_sizes {part}) {bias}{goal} {decimal(*eps)} (near{suffix} x inside)). }}",
            "  clear computed. unfold anywhere, unit_of, least_of. interval with (i_prec 150).\nQed.\n",
        ]
