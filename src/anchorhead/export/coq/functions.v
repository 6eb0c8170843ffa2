(* Functions that are not in Coq's library, and forms that coq-interval encloses well. *)
Definition expm1 (x : R) : R := exp x - 1.
Definition log1p (x : R) : R := ln (1 + x).
Definition sigmoid (x : R) : R := / (1 + exp (- x)).
Definition softplus (x : R) : R := ln (1 + exp x).

Lemma tanh_by_exp : forall x, tanh x = 1 - 2 / (exp (2 * x) + 1).
Proof.
  intros x. unfold tanh, sinh, cosh. replace (2 * x) with (x + x) by ring. rewrite exp_plus, exp_Ropp.
  pose proof (exp_pos x). field. split; apply Rgt_not_eq; nra.
Qed.

Lemma tanh_softplus : forall x, tanh (softplus x) = 1 - 2 / ((1 + exp x) ^ 2 + 1).
Proof.
  intros x. rewrite tanh_by_exp. unfold softplus.
  replace (2 * ln (1 + exp x)) with (ln (1 + exp x) + ln (1 + exp x)) by ring.
  rewrite exp_plus, exp_ln by (pose proof (exp_pos x); lra). do 3 f_equal. ring.
Qed.

Lemma max_by_abs : forall a b, Rmax a b = (a + b + Rabs (a - b)) / 2.
Proof. intros. unfold Rmax, Rabs. destruct (Rle_dec a b), (Rcase_abs (a - b)); lra. Qed.

Lemma min_by_abs : forall a b, Rmin a b = (a + b - Rabs (a - b)) / 2.
Proof. intros. unfold Rmin, Rabs. destruct (Rle_dec a b), (Rcase_abs (a - b)); lra. Qed.

(* Both sides of every condition that is left; what holds of x on a side is known there. *)
Ltac decide_conditions :=
  repeat match goal with
  | |- context [if Rlt_dec ?a ?b then _ else _] =>
      let side := fresh "side" in destruct (Rlt_dec a b) as [side|side]; [|apply Rnot_lt_le in side]
  | |- context [if Rle_dec ?a ?b then _ else _] =>
      let side := fresh "side" in destruct (Rle_dec a b) as [side|side]; [|apply Rnot_le_lt in side]
  end.

(* A side on which nothing of the piece lies. *)
Ltac impossible :=
  match goal with
  | on_the_piece : _ <= ?x <= _, side : ?a < ?b |- _ =>
      exfalso; apply (Rlt_not_le _ _ side); interval with (i_bisect x, i_prec 60)
  | on_the_piece : _ <= ?x <= _, side : ?a <= ?b |- _ =>
      exfalso; apply (Rle_not_lt _ _ side); interval with (i_bisect x, i_prec 60)
  end.
