"""The theorem about what is computed: a head's value in floating point is within the certificate's bound of the target.

The lemma in coq_computed.v holds for every head and every number of anchors: with |slope x| + |offset| <= Z and |value|
<= V it bounds the rounding by about V u (17 + 2 p + 8 Z). That is coarser than the certificate, which weighs every
anchor where it counts. So the theorem is stated where the coarse bound, too, has room beside the error in exact
arithmetic; steep heads, and those that rounding limits, have none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from anchorhead.export.coq_terms import decimal, dyadic
from anchorhead.proof.head_form import HeadForm

FLOATS = {"float64": (-1074, 53), "float32": (-149, 24)}
"""The smallest exponent of a bit, and the bits, of each dtype."""
SLACK = 1 + 1e-9


@dataclass(frozen=True)
class Rounding:
    """What goes into the lemma: Z, V and the bound that comes of them."""

    dtype: str
    anchors: int
    largest_logit: Fraction
    largest_value: Fraction
    bound: float

    @classmethod
    def of(cls, form: HeadForm, output: int, low: float, high: float, dtype: str) -> Rounding | None:
        """None for sums of heads, and for heads with an origin or a bias: the lemma does not know them."""
        if len(form.parts) != 1 or form.origin != 0 or form.bias[output] != 0 or dtype not in FLOATS:
            return None
        part, reach = form.parts[0], max(abs(Fraction(low)), abs(Fraction(high)))
        logit = max(
            abs(Fraction(float(a))) * reach + abs(Fraction(float(b)))
            for a, b in zip(part.slopes, part.offsets, strict=True)
        )
        value = max(abs(Fraction(float(v))) for v in part.values[:, output])
        # a dyadic number of few digits above each
        logit, value = (Fraction(math.floor(one * 256) + 1, 256) for one in (logit, value))
        bound = _bound(float(logit), float(value), len(part.slopes), *FLOATS[dtype])
        return None if bound is None else cls(dtype, len(part.slopes), logit, value, bound)


def _bound(logit: float, value: float, anchors: int, emin: int, bits: int) -> float | None:
    """head_error of coq_computed.v; None where the lemma's conditions do not hold."""
    u, eta = 2.0**-bits, 2.0 ** (emin - 1) if emin > -1000 else 0.0

    def growth(n: int) -> float:
        return math.expm1(n * math.log1p(u))

    def lost(n: int) -> float:
        return (2 * n - 1) * (1 + u) ** n * eta

    tiny = 8 * eta
    logit_error = growth(2) * logit + lost(2)
    moved = logit_error + u * (2 * logit + 2 * logit_error) + eta
    if logit_error > 0.4 or moved > 0.4:
        return None
    factor = math.expm1(moved) * (1 + 8 * u) + 8 * u
    p = anchors
    mass = growth(p) * (1 + factor) + factor + 2 * (growth(p) * p * tiny + p * tiny + lost(p))
    if mass > 0.4:
        return None
    quotient = (factor + mass + 2 * p * tiny) / (1 - mass)
    weight = quotient + u * (1 + quotient) + p * eta
    return (value * weight + growth(p) * value * (1 + weight) + lost(p)) * SLACK


def theorem(rounding: Rounding, suffix: str, low: float, high: float, eps: tuple[int, int], bound: float) -> str:
    """The statement and its proof, from the one about exact arithmetic."""
    emin, bits = FLOATS[rounding.dtype]
    head, f, part = f"head{suffix}", f"f{suffix}", f"head{suffix}_part_1"
    floats, u, eta = f"({emin}) {bits}", f"(powerRZ 2 (-{bits}))", f"(powerRZ 2 ({emin - 1}))"
    total = f"({dyadic(bound)} - {decimal(*eps)})"
    logit, value = dyadic(rounding.largest_logit), dyadic(rounding.largest_value)
    numbers = (
        f"change (count (keys_of {part})) with {rounding.anchors}%nat; rewrite ?INR_IZR_INZ; "
        f"change (Z.of_nat {rounding.anchors}) with {rounding.anchors}%Z; change (Z.of_nat 2) with 2%Z; "
        "interval with (i_prec 150)"
    )
    return f"""(* As {rounding.dtype} computes it, with exp within 4 units in the last place. *)
Theorem computed_within{suffix} : forall choice x z e q top mass result,
  {dyadic(low)} <= x <= {dyadic(high)} ->
  evaluated (fl {floats} choice) (keys_of {part}) (slope_of {part}) (offset_of {part}) (value_of {part}) x
    (four_ulp {floats}) z e q top mass result ->
  Rabs (result - {f} x) <= {dyadic(bound)}.
Proof.
  intros choice x z e q top mass result inside computed.
  assert (rounding : Rabs (result - {head} x) <= {total}).
  {{ unfold {head}. rewrite <- attention_is_mean.
    apply Rle_trans with (head_error {u} {eta} (keys_of {part}) (8 * {u}) (8 * {eta}) {logit} {value}).
    - apply (head_close (fl {floats} choice) {u} {eta}) with (allowed := four_ulp {floats})
        (z := z) (e := e) (q := q) (top := top) (mass := mass).
      + split; interval with (i_prec 60).
      + interval with (i_prec 60).
      + apply fl_rounds; reflexivity.
      + exact computed.
      + apply four_ulp_little; reflexivity.
      + interval with (i_prec 60).
      + interval with (i_prec 60).
      + apply (all_keys {part} (fun a => Rabs (fst (fst a) * x) + Rabs (snd (fst a)) <= {logit})).
        unfold {part}. for_each_anchor.
      + apply (all_keys {part} (fun a => Rabs (snd a) <= {value})).
        unfold {part}. for_each_anchor.
      + unfold logit_error, growth, lost; {numbers}.
      + unfold mass_error, factor, moved_by, logit_error, growth, lost; {numbers}.
    - unfold head_error, weight_error, quotient_error, mass_error, factor, moved_by, logit_error, growth, lost;
      {numbers}. }}
  pose proof (within{suffix} x inside) as exact. revert exact rounding. unfold Rabs. repeat destruct Rcase_abs; lra.
Qed.
"""
