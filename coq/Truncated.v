(** A truncated linear function, [s] clipped to [-1, 1], from four keys, for every slope: slopes -A, -h, h, A,
    offsets -A, 0, 0, -A, values -1, -1/h, 1/h, 1. *)

From Coq Require Import Reals List Permutation Lra.
From Interval Require Import Tactic.
From Anchorhead Require Import Softmax Steep Kinks.
Import ListNotations.
Open Scope R_scope.

Definition lower (A : R) : list key := [Key (- A) (- A) (-1)].
Definition upper (A : R) : list key := [Key A (- A) 1].
Definition four_keys (A h : R) : list key := lower A ++ line h ++ upper A.

Definition four_error (A h : R) : R := h ^ 2 / 3 + (kappa + (ln 2 + h)) / (A - h) + kappa / A.

Lemma lower_mass A s : mass (shift A A (lower A)) s = 1.
Proof.
  simpl; unfold weight; simpl; replace ((- A + A) * s + (- A + A)) with 0 by ring; rewrite exp_0; ring.
Qed.

Lemma upper_mass A s : mass (shift (- A) A (upper A)) s = 1.
Proof.
  simpl; unfold weight; simpl; replace ((A + - A) * s + (- A + A)) with 0 by ring; rewrite exp_0; ring.
Qed.

Lemma line_at_gauge_0 h s : mass (shift 0 0 (line h)) s = mass (line h) s.
Proof.
  rewrite (mass_shift 0 0 (line h)); replace (- (0 * s + 0)) with 0 by ring; rewrite exp_0; ring.
Qed.

Lemma line_mass_beyond h s g : 0 < h -> 0 <= g * s -> Rabs g = h ->
  mass (shift (- g) h (line h)) s <= exp (ln 2 + h).
Proof.
  intros Hh Hg E; rewrite exp_plus, exp_ln by lra.
  simpl; unfold weight; simpl.
  assert (g = h \/ g = - h) as [->| ->].
  { unfold Rabs in E; destruct (Rcase_abs g); lra. }
  - assert (exp ((- h + - h) * s + (0 + h)) <= exp h) by (apply exp_le; nra).
    assert (exp ((h + - h) * s + (0 + h)) <= exp h) by (apply exp_le; nra). lra.
  - assert (exp ((- h + - - h) * s + (0 + h)) <= exp h) by (apply exp_le; nra).
    assert (exp ((h + - - h) * s + (0 + h)) <= exp h) by (apply exp_le; nra). lra.
Qed.

Lemma line_leaves h s f0 : 0 < h -> Rabs f0 = 1 ->
  Rabs (head (line h) s - f0) <= h ^ 2 / 3 + 1 * Rabs (s - f0).
Proof.
  intros Hh Hf; unfold line; apply two_keys_leave with f0.
  - fold (line h); pose proof (line_error h f0 Hh) as H; rewrite Hf in H; lra.
  - simpl; rewrite line_rate, !Rminus_diag_eq, Rabs_R0 by easy; lra.
Qed.

Lemma four_middle A h s : 0 < h < A -> -1 <= s <= 1 -> Rabs (head (four_keys A h) s - s) <= four_error A h.
Proof.
  intros [Hh HA] Hs.
  unfold four_keys; rewrite (head_permutation _ (line h ++ lower A ++ upper A)) by apply Permutation_app_swap_app.
  apply Rle_trans with (h ^ 2 / 3 + 1 * ((kappa + 0) / A) + 1 * ((kappa + 0) / A)).
  - apply (two_kinks (line h) (lower A) (upper A) 0 0 A A (- A) A A A (s + 1) (1 - s)); try easy; try lra.
    + rewrite <- head_shift by easy. pose proof (line_error h s Hh) as H.
      assert (Rabs s ^ 3 <= 1 ^ 3) by (apply pow_incr; split; [apply Rabs_pos|now apply Rabs_le]).
      pose proof (pow2_ge_0 h). apply Rle_trans with (1 := H). nra.
    + rewrite <- head_shift by easy; unfold lower; rewrite one_key; simpl value.
      pose proof (pow2_ge_0 h); apply Rabs_le; lra.
    + rewrite <- head_shift by easy; unfold upper; rewrite one_key; simpl value.
      pose proof (pow2_ge_0 h); apply Rabs_le; lra.
    + rewrite exp_0, lower_mass, line_at_gauge_0; pose proof (line_mass h s); lra.
    + rewrite exp_0, upper_mass, line_at_gauge_0; pose proof (line_mass h s); lra.
  - unfold four_error. rewrite Rplus_0_r, !Rmult_1_l.
    assert (kappa / A <= (kappa + (ln 2 + h)) / (A - h)); [|lra].
    assert (0 <= ln 2) by (interval with (i_prec 30)). unfold kappa in *.
    apply Rmult_le_compat; try lra; [apply Rlt_le, Rinv_0_lt_compat; lra|apply Rinv_le_contravar; lra].
Qed.

Lemma four_right A h s : 0 < h < A -> 1 <= s -> Rabs (head (four_keys A h) s - 1) <= four_error A h.
Proof.
  intros [Hh HA] Hs.
  assert (P : Permutation (four_keys A h) (upper A ++ line h ++ lower A)).
  { unfold four_keys; rewrite Permutation_app_comm, <- app_assoc, Permutation_app_swap_app; reflexivity. }
  rewrite (head_permutation _ _ s P).
  assert (0 <= ln 2) by (interval with (i_prec 30)). pose proof (pow2_ge_0 h).
  apply Rle_trans with (h ^ 2 / 3 + 1 * ((kappa + (ln 2 + h)) / (A - h)) + 2 * ((kappa + 0) / (2 * A))).
  - apply (two_kinks (upper A) (line h) (lower A) (- A) A (- h) h A A (A - h) (2 * A) (s - 1) s);
      try easy; try lra.
    + rewrite <- head_shift by easy; unfold upper; rewrite one_key; simpl value; apply Rabs_le; lra.
    + rewrite <- head_shift by easy. pose proof (line_leaves h s 1 Hh Rabs_R1) as H1.
      rewrite (Rabs_pos_eq (s - 1)) in H1 by lra; exact H1.
    + rewrite <- head_shift by easy; unfold lower; rewrite one_key; simpl value; apply Rabs_le; lra.
    + rewrite upper_mass, Rmult_1_r; apply line_mass_beyond; [lra|nra|apply Rabs_pos_eq; lra].
    + rewrite exp_0, upper_mass, lower_mass; lra.
  - unfold four_error. right; field; lra.
Qed.

Lemma four_left A h s : 0 < h < A -> s <= -1 -> Rabs (head (four_keys A h) s - -1) <= four_error A h.
Proof.
  intros [Hh HA] Hs.
  assert (0 <= ln 2) by (interval with (i_prec 30)). pose proof (pow2_ge_0 h).
  apply Rle_trans with (h ^ 2 / 3 + 1 * ((kappa + (ln 2 + h)) / (A - h)) + 2 * ((kappa + 0) / (2 * A))).
  - apply (two_kinks (lower A) (line h) (upper A) A A h h (- A) A (A - h) (2 * A) (-1 - s) (- s));
      try easy; try lra.
    + rewrite <- head_shift by easy; unfold lower; rewrite one_key; simpl value; apply Rabs_le; lra.
    + rewrite <- head_shift by easy.
      assert (E : Rabs (-1) = 1) by (rewrite Rabs_left; lra).
      pose proof (line_leaves h s (-1) Hh E) as H1.
      rewrite (Rabs_left1 (s - -1)) in H1 by lra; lra.
    + rewrite <- head_shift by easy; unfold upper; rewrite one_key; simpl value; apply Rabs_le; lra.
    + rewrite lower_mass, Rmult_1_r. replace (shift h h (line h)) with (shift (- - h) h (line h)) by (f_equal; ring).
      apply line_mass_beyond; [lra|nra|rewrite Rabs_Ropp; apply Rabs_pos_eq; lra].
    + rewrite exp_0, upper_mass, lower_mass; lra.
  - unfold four_error. right; field; lra.
Qed.

Theorem truncated_four_keys A h s : 0 < h < A ->
  Rabs (head (four_keys A h) s - Range (-1) 1 s)
  <= h ^ 2 / 3 + (2785 / 10000 + ln 2 + h) / (A - h) + 2785 / 10000 / A.
Proof.
  intros H.
  replace (h ^ 2 / 3 + (2785 / 10000 + ln 2 + h) / (A - h) + 2785 / 10000 / A) with (four_error A h)
    by (unfold four_error, kappa; now rewrite <- (Rplus_assoc (2785 / 10000))).
  unfold Range.
  destruct (Rle_or_lt s (-1)); [|destruct (Rle_or_lt s 1)].
  - rewrite Rmax_left, Rmin_right by lra; now apply four_left.
  - rewrite Rmax_right, Rmin_right by lra; apply four_middle; [easy|lra].
  - rewrite Rmax_right, Rmin_left by lra; apply four_right; [easy|lra].
Qed.
