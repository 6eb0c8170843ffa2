(* An anchor is (slope, offset, value); a softmax over anchors is the mean of their values. *)
Definition anchor := (R * R * R)%type.

Fixpoint numerator (anchors : list anchor) (s : R) : R :=
  match anchors with
  | nil => 0
  | (slope, offset, value) :: others => value * exp (slope * s + offset) + numerator others s
  end.

Fixpoint denominator (anchors : list anchor) (s : R) : R :=
  match anchors with
  | nil => 0
  | (slope, offset, _) :: others => exp (slope * s + offset) + denominator others s
  end.

Definition mean (anchors : list anchor) (s : R) : R := numerator anchors s / denominator anchors s.

(* A number taken from all slopes, or from all offsets, changes no mean. *)
Definition moved (c d : R) : list anchor -> list anchor :=
  map (fun '(slope, offset, value) => (slope - c, offset - d, value)).

Lemma logit_moved : forall a b c d s, exp ((a - c) * s + (b - d)) = exp (- (c * s + d)) * exp (a * s + b).
Proof. intros. rewrite <- exp_plus. f_equal. ring. Qed.

Lemma numerator_moved : forall anchors c d s,
  numerator (moved c d anchors) s = exp (- (c * s + d)) * numerator anchors s.
Proof.
  intros anchors c d s. induction anchors as [|[[a b] v] others IH]; simpl; [ring|]. rewrite IH, logit_moved. ring.
Qed.

Lemma denominator_moved : forall anchors c d s,
  denominator (moved c d anchors) s = exp (- (c * s + d)) * denominator anchors s.
Proof.
  intros anchors c d s. induction anchors as [|[[a b] v] others IH]; simpl; [ring|]. rewrite IH, logit_moved. ring.
Qed.

Lemma mean_moved : forall anchors c d s, mean anchors s = mean (moved c d anchors) s.
Proof.
  intros anchors c d s.
  unfold mean, Rdiv. rewrite numerator_moved, denominator_moved, Rinv_mult.
  assert (positive : exp (- (c * s + d)) <> 0) by (apply Rgt_not_eq, exp_pos).
  set (scale := exp (- (c * s + d))) in *. set (below := / denominator anchors s).
  field. exact positive.
Qed.

Lemma exp_still : forall c d s, exp ((c - c) * s + (d - d)) = 1.
Proof. intros. rewrite <- exp_0. f_equal. ring. Qed.

(* A weight that is at most 2^-bits becomes a variable. *)
Ltac negligible logit bits :=
  let small := fresh "small" in
  assert (small : 0 <= exp logit <= / 2 ^ bits) by
    (split; [apply Rlt_le, exp_pos | interval with (i_prec 60)]);
  revert small; generalize (exp logit); intros ? small.
