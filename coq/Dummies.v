(** Where two slices meet (see Slices.v): the dummies of both heads weigh 1 together, up to [exp (- 2 c)]. *)

From Coq Require Import Reals Lra Lia.
From Anchorhead Require Import Softmax Sums Lattice Tails SingleHead Slices.
Open Scope R_scope.

Section Dummies.

Variables (c : R) (m : nat).
Hypothesis c_pos : 0 < c.

Let r := exp (- (2 * c)).

Lemma r_small : 0 < r < 1.
Proof. now apply r_range. Qed.

Let W u k := exp (bell c u k).
Let rest u := total m (fun k => W u (S (S k))).

Lemma W_positive u k : 0 < W u k.
Proof. apply exp_pos. Qed.

Lemma rest_nonneg u : 0 <= rest u.
Proof. apply total_nonneg; intros; apply Rlt_le, W_positive. Qed.

Lemma low_quotient u : low c m u = W u 0 / (W u 0 + (W u 1 + rest u)).
Proof.
  unfold low, attention; replace (m + 2)%nat with (S (S m)) by lia.
  rewrite !total_first; cbv beta; unfold rest; f_equal.
  rewrite (total_ext m _ (fun _ => 0)) by (intros; unfold is; simpl; ring).
  rewrite total_zero; unfold is, W; simpl; ring.
Qed.

(** What a dummy weighs less than it would against its one neighbour. *)
Definition lack (u : R) : R := / (1 + exp (c * (2 * u - 1))) - low c m u.

Lemma lack_quotient u :
  lack u = W u 0 * rest u / ((W u 0 + W u 1) * (W u 0 + (W u 1 + rest u))).
Proof.
  unfold lack; rewrite low_quotient.
  pose proof (W_positive u 0) as P0; pose proof (W_positive u 1) as P1; pose proof (rest_nonneg u) as PR.
  assert (E : exp (c * (2 * u - 1)) = W u 1 / W u 0).
  { apply (Rmult_eq_reg_r (W u 0)); [|lra]. unfold Rdiv; rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
    unfold W, bell; rewrite <- exp_plus; f_equal; simpl; ring. }
  rewrite E; field; repeat split; lra.
Qed.

Lemma lack_nonneg u : 0 <= lack u.
Proof.
  rewrite lack_quotient.
  pose proof (W_positive u 0) as P0; pose proof (W_positive u 1) as P1; pose proof (rest_nonneg u) as PR.
  apply Rmult_le_pos; [apply Rmult_le_pos; lra|apply Rlt_le, Rinv_0_lt_compat, Rmult_lt_0_compat; lra].
Qed.

Lemma total_powers n : total n (fun k => r ^ S k) <= r / (1 - r).
Proof.
  pose proof r_small as Hr.
  rewrite (total_ext n _ (fun k => r * r ^ k)) by reflexivity.
  rewrite total_scale; apply Rmult_le_compat_l; [lra|apply total_geometric; lra].
Qed.

Definition leak (a : R) : R := exp (- (2 * c * Rmax 1 a)) / (1 - r).

Let rho := r / (1 - r).

Lemma rho_pos : 0 < rho.
Proof. pose proof r_small; unfold rho; apply Rdiv_lt_0_compat; lra. Qed.

(** The lack, without denominators. *)
Lemma lack_share u : lack u * (W u 0 + W u 1) ^ 2 <= W u 0 * rest u.
Proof.
  rewrite lack_quotient.
  pose proof (W_positive u 0) as P0; pose proof (W_positive u 1) as P1; pose proof (rest_nonneg u) as PR.
  set (x := W u 0) in *; set (y := W u 1) in *; set (z := rest u) in *.
  assert (PD : 0 < (x + y) * (x + (y + z))) by (apply Rmult_lt_0_compat; lra).
  apply (Rmult_le_reg_r (x + (y + z))); [lra|].
  replace (x * z / ((x + y) * (x + (y + z))) * (x + y) ^ 2 * (x + (y + z))) with (x * z * (x + y)) by (field; lra).
  apply Rmult_le_compat_l; [apply Rmult_le_pos|]; lra.
Qed.

Lemma lack_gate u : lack u * W u 1 <= W u 0.
Proof.
  rewrite lack_quotient.
  pose proof (W_positive u 0) as P0; pose proof (W_positive u 1) as P1; pose proof (rest_nonneg u) as PR.
  set (x := W u 0) in *; set (y := W u 1) in *; set (z := rest u) in *.
  assert (PD : 0 < (x + y) * (x + (y + z))) by (apply Rmult_lt_0_compat; lra).
  apply (Rmult_le_reg_r ((x + y) * (x + (y + z)))); [exact PD|].
  replace (x * z / ((x + y) * (x + (y + z))) * y * ((x + y) * (x + (y + z)))) with (x * (y * z)) by (field; lra).
  apply Rmult_le_compat_l; [lra|nra].
Qed.

Lemma quadratic k : 0 <= INR k * (INR k - 1).
Proof. destruct k as [|k]; [simpl; lra|]. rewrite S_INR; pose proof (pos_INR k); nra. Qed.

Lemma rest_below y : 0 <= y -> rest (/ 2 - y) <= exp (- (2 * c * y)) ^ 2 * rho * W (/ 2 - y) 0.
Proof.
  intros Hy; set (u := / 2 - y); pose proof (W_positive u 0) as P0.
  apply Rle_trans with (total m (fun k => exp (- (2 * c * y)) ^ 2 * W u 0 * r ^ S k)).
  - apply total_le; intros k _; unfold W, bell, r; rewrite <- !exp_pow, <- !exp_plus; apply exp_le.
    rewrite !S_INR; simpl (INR 0); simpl (INR 2); pose proof (pos_INR k) as Pk; pose proof (quadratic k) as Q.
    assert (0 <= c * (INR k * (INR k - 1))) by (apply Rmult_le_pos; lra).
    assert (0 <= c * (INR k * y)) by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]).
    assert (0 <= c * INR k) by (apply Rmult_le_pos; lra).
    unfold u; lra.
  - rewrite total_scale.
    apply Rle_trans with (exp (- (2 * c * y)) ^ 2 * W u 0 * rho); [|right; ring].
    apply Rmult_le_compat_l; [|apply total_powers].
    apply Rmult_le_pos; [apply pow2_ge_0|lra].
Qed.

Lemma rest_above y : 0 <= y <= 1 -> W (/ 2 + y) 0 * rest (/ 2 + y) <= rho * W (/ 2 + y) 1 ^ 2.
Proof.
  intros Hy; set (u := / 2 + y); unfold rest; rewrite <- total_scale.
  apply Rle_trans with (total m (fun k => W u 1 ^ 2 * r ^ S k)).
  - apply total_le; intros k _; unfold W, bell, r; rewrite <- !exp_pow, <- !exp_plus; apply exp_le.
    rewrite !S_INR; simpl (INR 0); simpl (INR 2); pose proof (pos_INR k) as Pk; pose proof (quadratic k) as Q.
    assert (0 <= c * (INR k * (INR k - 1))) by (apply Rmult_le_pos; lra).
    assert (0 <= c * (INR k * (1 - y))) by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]).
    unfold u; lra.
  - rewrite total_scale, Rmult_comm; apply Rmult_le_compat_r; [apply pow2_ge_0|apply total_powers].
Qed.

(** Above the edge the lower head's dummy is what the upper head's first cell is, and the other way round. *)
Lemma weights_swapped z :
  W (/ 2 - z) 0 = W (/ 2 + z) 1 /\ W (/ 2 - z) 1 = W (/ 2 + z) 0 /\
  W (/ 2 + z) 0 = exp (- (2 * c * z)) * W (/ 2 + z) 1.
Proof.
  unfold W, bell; simpl (INR 0); simpl (INR 1); repeat split; rewrite <- ?exp_plus; f_equal; field.
Qed.

(** Both lacks within a cell of the edge, and further away. *)
Lemma lacks_near z : 0 <= z <= 1 -> lack (/ 2 + z) + lack (/ 2 - z) <= rho.
Proof.
  intros Hz; destruct (weights_swapped z) as [E1 [E2 E3]].
  pose proof (lack_share (/ 2 + z)) as A; pose proof (lack_share (/ 2 - z)) as B.
  pose proof (rest_above z Hz) as RA; pose proof (rest_below z (proj1 Hz)) as RB.
  pose proof (W_positive (/ 2 + z) 0) as PX; pose proof (W_positive (/ 2 + z) 1) as PY; pose proof rho_pos.
  rewrite E1, E2 in B; rewrite E1 in RB.
  set (X := W (/ 2 + z) 0) in *; set (Y := W (/ 2 + z) 1) in *; set (e := exp (- (2 * c * z))) in *.
  assert (Y * rest (/ 2 - z) <= Y * (e ^ 2 * rho * Y)) by (apply Rmult_le_compat_l; lra).
  assert (EX : Y * (e ^ 2 * rho * Y) = rho * X ^ 2) by (rewrite E3; ring).
  apply (Rmult_le_reg_r ((X + Y) ^ 2)); [nra|].
  assert (0 <= rho * (X * Y)) by (apply Rmult_le_pos; [lra|nra]).
  rewrite Rmult_plus_distr_r. rewrite (Rplus_comm Y X) in B. lra.
Qed.

Lemma lacks_far z : 1 <= z -> lack (/ 2 + z) + lack (/ 2 - z) <= exp (- (2 * c * z)) / (1 - r).
Proof.
  intros Hz; destruct (weights_swapped z) as [E1 [E2 E3]].
  pose proof (lack_gate (/ 2 + z)) as A; pose proof (lack_share (/ 2 - z)) as B.
  pose proof (rest_below z ltac:(lra)) as RB; pose proof (lack_nonneg (/ 2 - z)) as PL.
  pose proof (W_positive (/ 2 + z) 0) as PX; pose proof (W_positive (/ 2 + z) 1) as PY.
  pose proof rho_pos; pose proof r_small.
  assert (Her : exp (- (2 * c * z)) <= r).
  { unfold r; apply exp_le. assert (0 <= 2 * c * (z - 1)) by (apply Rmult_le_pos; lra). lra. }
  assert (He : 0 < exp (- (2 * c * z))) by apply exp_pos.
  rewrite E1, E2 in B; rewrite E1 in RB.
  set (X := W (/ 2 + z) 0) in *; set (Y := W (/ 2 + z) 1) in *; set (e := exp (- (2 * c * z))) in *.
  assert (LA : lack (/ 2 + z) <= e) by (apply (Rmult_le_reg_r Y); lra).
  assert (LB : lack (/ 2 - z) <= e ^ 2 * rho).
  { apply (Rmult_le_reg_r (Y ^ 2)); [nra|].
    apply Rle_trans with (lack (/ 2 - z) * (Y + X) ^ 2); [apply Rmult_le_compat_l; [exact PL|nra]|].
    apply Rle_trans with (1 := B).
    apply Rle_trans with (Y * (e ^ 2 * rho * Y)); [apply Rmult_le_compat_l; lra|right; ring]. }
  apply Rle_trans with (e + e ^ 2 * rho); [lra|].
  apply (Rmult_le_reg_r (1 - r)); [lra|].
  replace (e / (1 - r) * (1 - r)) with e by (field; lra).
  replace ((e + e ^ 2 * rho) * (1 - r)) with (e * (1 - r + e * r)) by (unfold rho; field; lra).
  rewrite <- (Rmult_1_r e) at 3; apply Rmult_le_compat_l; [lra|nra].
Qed.

(** The dummies of both heads, the query being [z] above the edge between their slices. *)
Theorem dummies_weigh_one z : 0 <= 1 - low c m (/ 2 + z) - high c m (INR m + / 2 + z) <= leak (Rabs z).
Proof.
  rewrite high_mirrored; replace (INR m + 1 - (INR m + / 2 + z)) with (/ 2 - z) by field.
  assert (E : 1 - low c m (/ 2 + z) - low c m (/ 2 - z) = lack (/ 2 + z) + lack (/ 2 - z)).
  { unfold lack; replace (c * (2 * (/ 2 + z) - 1)) with (2 * c * z) by field.
    replace (c * (2 * (/ 2 - z) - 1)) with (- (2 * c * z)) by field.
    rewrite exp_Ropp; pose proof (exp_pos (2 * c * z)); field; lra. }
  rewrite E; pose proof (lack_nonneg (/ 2 + z)); pose proof (lack_nonneg (/ 2 - z)).
  split; [lra|].
  assert (L : forall y, 0 <= y -> lack (/ 2 + y) + lack (/ 2 - y) <= leak y).
  { intros y Hy; unfold leak; destruct (Rle_or_lt y 1) as [H1|H1].
    - rewrite Rmax_left, Rmult_1_r by lra; apply lacks_near; lra.
    - rewrite Rmax_right by lra; apply lacks_far; lra. }
  destruct (Rle_or_lt 0 z) as [Hz|Hz].
  - rewrite Rabs_pos_eq by lra; now apply L.
  - rewrite Rabs_left by lra; pose proof (L (- z) ltac:(lra)) as A.
    replace (/ 2 + - z) with (/ 2 - z) in A by ring; replace (/ 2 - - z) with (/ 2 + z) in A by ring. lra.
Qed.

End Dummies.
