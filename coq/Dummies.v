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

Lemma leak_from x a : Rmax 1 a <= x -> exp (- (2 * c * x)) / (1 - r) <= leak a.
Proof.
  intros H; pose proof r_small; unfold leak; apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat; lra|].
  apply exp_le. assert (0 <= 2 * c * (x - Rmax 1 a)) by (apply Rmult_le_pos; lra). lra.
Qed.

Lemma r_shifted x : exp (- (2 * c * x)) * (r / (1 - r)) = exp (- (2 * c * (x + 1))) / (1 - r).
Proof.
  unfold r at 1, Rdiv; rewrite <- Rmult_assoc, <- exp_plus; do 2 f_equal; ring.
Qed.

Lemma lack_below y : 0 <= y -> lack (/ 2 - y) <= leak y.
Proof.
  intros Hy; rewrite lack_quotient; set (u := / 2 - y).
  pose proof (W_positive u 0) as P0; pose proof (W_positive u 1) as P1; pose proof (rest_nonneg u) as PR.
  pose proof r_small as Hr.
  assert (B : rest u <= exp (- (2 * c * y)) * (r / (1 - r)) * W u 0).
  { apply Rle_trans with (total m (fun k => exp (- (2 * c * y)) * W u 0 * r ^ S k)).
    - apply total_le; intros k _; pose proof (relative_weight c c_pos y (S k) Hy) as R; fold r in R.
      apply Rle_trans with (1 := R); right; unfold W, u; ring.
    - rewrite total_scale.
      apply Rle_trans with (exp (- (2 * c * y)) * W u 0 * (r / (1 - r))); [|right; ring].
      apply Rmult_le_compat_l; [|apply total_powers].
      apply Rmult_le_pos; [apply Rlt_le, exp_pos|lra]. }
  apply Rle_trans with (exp (- (2 * c * y)) * (r / (1 - r))).
  - set (e := exp (- (2 * c * y)) * (r / (1 - r))) in *.
    assert (Pe : 0 <= e) by (apply (Rmult_le_reg_r (W u 0)); lra).
    apply (Rmult_le_reg_r ((W u 0 + W u 1) * (W u 0 + (W u 1 + rest u)))); [apply Rmult_lt_0_compat; lra|].
    unfold Rdiv; rewrite Rmult_assoc, Rinv_l, Rmult_1_r by (apply Rgt_not_eq, Rmult_lt_0_compat; lra).
    apply Rle_trans with (e * (W u 0 * W u 0)); [|apply Rmult_le_compat_l; [exact Pe|nra]].
    replace (e * (W u 0 * W u 0)) with (W u 0 * (e * W u 0)) by ring. apply Rmult_le_compat_l; lra.
  - rewrite r_shifted; apply leak_from, Rmax_lub; lra.
Qed.

Lemma lack_above y : 0 <= y -> lack (/ 2 + y) <= leak y.
Proof.
  intros Hy; rewrite lack_quotient; set (u := / 2 + y).
  pose proof (W_positive u 0) as P0; pose proof (W_positive u 1) as P1; pose proof (rest_nonneg u) as PR.
  pose proof r_small as Hr.
  destruct (Rle_or_lt y 1) as [H1|H1].
  - assert (B : W u 0 * rest u <= r / (1 - r) * (W u 1 * W u 1)).
    { unfold rest; rewrite <- total_scale.
      apply Rle_trans with (total m (fun k => W u 1 * W u 1 * r ^ S k)).
      - apply total_le; intros k _; unfold W, bell, r; rewrite <- exp_pow, <- !exp_plus; apply exp_le.
        rewrite !S_INR; simpl (INR 0); pose proof (pos_INR k) as Pk.
        assert (Q : 0 <= INR k * (INR k - 1)).
        { destruct k as [|k]; [simpl; lra|]. rewrite S_INR; pose proof (pos_INR k); nra. }
        assert (0 <= c * (INR k * (INR k - 1))) by (apply Rmult_le_pos; lra).
        assert (0 <= c * (INR k * (1 - y))) by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]).
        unfold u; lra.
      - rewrite total_scale, Rmult_comm; apply Rmult_le_compat_r; [nra|apply total_powers]. }
    apply Rle_trans with (r / (1 - r)).
    + set (e := r / (1 - r)) in *.
      assert (Pe : 0 <= e) by (apply Rlt_le, Rdiv_lt_0_compat; lra).
      apply (Rmult_le_reg_r ((W u 0 + W u 1) * (W u 0 + (W u 1 + rest u)))); [apply Rmult_lt_0_compat; lra|].
      unfold Rdiv; rewrite Rmult_assoc, Rinv_l, Rmult_1_r by (apply Rgt_not_eq, Rmult_lt_0_compat; lra).
      apply Rle_trans with (1 := B). apply Rmult_le_compat_l; [exact Pe|nra].
    + pose proof (leak_from 1 y) as L. rewrite Rmult_1_r in L; fold r in L; apply L.
      apply Rmax_lub; lra.
  - apply Rle_trans with (exp (- (2 * c * y))).
    + assert (E : W u 0 = exp (- (2 * c * y)) * W u 1).
      { unfold W, bell, u; rewrite <- exp_plus; f_equal; simpl; field. }
      set (e := exp (- (2 * c * y))) in *. assert (Pe : 0 < e) by apply exp_pos.
      apply (Rmult_le_reg_r ((W u 0 + W u 1) * (W u 0 + (W u 1 + rest u)))); [apply Rmult_lt_0_compat; lra|].
      unfold Rdiv; rewrite Rmult_assoc, Rinv_l, Rmult_1_r by (apply Rgt_not_eq, Rmult_lt_0_compat; lra).
      rewrite E at 1; rewrite Rmult_assoc. apply Rmult_le_compat_l; [lra|].
      apply Rmult_le_compat; lra.
    + apply Rle_trans with (exp (- (2 * c * y)) / (1 - r)); [|apply leak_from, Rmax_lub; lra].
      pose proof (exp_pos (- (2 * c * y))) as Pe.
      set (e := exp (- (2 * c * y))) in *.
      apply (Rmult_le_reg_r (1 - r)); [lra|]. replace (e / (1 - r) * (1 - r)) with e by (field; lra). nra.
Qed.

(** The dummies of both heads, the query being [z] above the edge between their slices. *)
Theorem dummies_weigh_one z : 0 <= 1 - low c m (/ 2 + z) - high c m (INR m + / 2 + z) <= 2 * leak (Rabs z).
Proof.
  rewrite high_mirrored; replace (INR m + 1 - (INR m + / 2 + z)) with (/ 2 - z) by field.
  assert (E : 1 - low c m (/ 2 + z) - low c m (/ 2 - z) = lack (/ 2 + z) + lack (/ 2 - z)).
  { unfold lack; replace (c * (2 * (/ 2 + z) - 1)) with (2 * c * z) by field.
    replace (c * (2 * (/ 2 - z) - 1)) with (- (2 * c * z)) by field.
    rewrite exp_Ropp; pose proof (exp_pos (2 * c * z)); field; lra. }
  rewrite E; pose proof (lack_nonneg (/ 2 + z)); pose proof (lack_nonneg (/ 2 - z)).
  split; [lra|].
  destruct (Rle_or_lt 0 z) as [Hz|Hz].
  - rewrite Rabs_pos_eq by lra; pose proof (lack_above z Hz); pose proof (lack_below z Hz); lra.
  - rewrite Rabs_left by lra.
    pose proof (lack_above (- z) ltac:(lra)) as A; pose proof (lack_below (- z) ltac:(lra)) as B.
    replace (/ 2 + - z) with (/ 2 - z) in A by ring; replace (/ 2 - - z) with (/ 2 + z) in B by ring. lra.
Qed.

End Dummies.
