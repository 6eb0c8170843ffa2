(** A worked example of Steep.v: the head that the library stores for [relu] on [-1, 1] in float64, three keys of
    which the steepest has the slope -3.6e11, is within 1.82e-11 of it. What an exported file does. *)

From Coq Require Import Reals List Permutation Lra.
From Interval Require Import Tactic.
From Anchorhead Require Import Softmax Steep.
Import ListNotations.
Open Scope R_scope.

Definition steep : list key :=
  [Key (-1477039207372559 / 4096) (3121657385008453 / 4503599627370496)
       (5044673348918475 / 309485009821345068724781056)].

Definition flat : list key :=
  [Key (-2992245582585577 / 73786976294838206464) (2992245582585577 / 147573952589676412928)
       (-1694546603451207 / 68719476736);
   Key (2992245582585577 / 73786976294838206464) (-2992245582585577 / 147573952589676412928)
       (1694615322927943 / 68719476736)].

Definition stored : list key := steep ++ flat.

Definition A : R := 1477039207372559 / 4096.

Ltac written_out := unfold head, shift, flat, steep; simpl; unfold weight; simpl.

Lemma flat_follows s : 0 <= s <= 1 -> Rabs (head flat s - s) <= 174 / 10 ^ 13.
Proof.
  intros Hs; written_out.
  interval with (i_bisect s, i_taylor s, i_prec 100, i_degree 8).
Qed.

Lemma right_of_the_kink s : 0 <= s <= 1 -> Rabs (head stored s - s) <= 182 / 10 ^ 13.
Proof.
  intros Hs.
  rewrite (head_permutation stored (flat ++ steep)) by apply Permutation_app_comm.
  eapply Rle_trans.
  - apply (kink flat steep 0 0 A 0 A s s s (174 / 10 ^ 13) 1 (1 / 100000)); try easy; unfold A; try lra.
    + rewrite <- head_shift by easy; now apply flat_follows.
    + unfold shift, steep; simpl map; rewrite one_key; simpl value; apply Rabs_le; lra.
    + written_out; apply Rminus_le; interval with (i_bisect s, i_taylor s, i_prec 80).
  - unfold kappa, A; interval with (i_prec 80).
Qed.

Lemma left_of_the_kink s : -1 <= s <= 0 -> Rabs (head stored s - 0) <= 182 / 10 ^ 13.
Proof.
  intros Hs.
  eapply Rle_trans.
  - apply (kink steep flat A 0 0 0 A (- s) s 0 (174 / 10 ^ 13) (1001 / 1000) (1 / 10000));
      try easy; unfold A; try lra.
    + unfold shift, steep; simpl map; rewrite one_key; simpl value; apply Rabs_le; lra.
    + rewrite <- head_shift by easy.
      replace (- s) with (Rabs (s - 0)) by (rewrite Rabs_left1; lra).
      apply two_keys_leave with 0.
      * written_out; interval with (i_prec 100).
      * simpl; rewrite (Rabs_left1 (s - 0)) by lra; interval with (i_prec 80).
    + written_out; apply Rminus_le; interval with (i_bisect s, i_taylor s, i_prec 80).
  - unfold kappa, A; interval with (i_prec 80).
Qed.

Theorem stored_relu s : -1 <= s <= 1 -> Rabs (head stored s - Rmax 0 s) <= 182 / 10 ^ 13.
Proof.
  intros Hs; destruct (Rle_or_lt 0 s).
  - rewrite Rmax_right by lra; apply right_of_the_kink; lra.
  - rewrite Rmax_left by lra; apply left_of_the_kink; lra.
Qed.
