(** One of the paper's heads: m anchors at cell centres and a dummy half a cell beyond each end.

    In units of a cell the keys are 0, ..., m + 1, and the slice is [[1/2, m + 1/2]]. Two facts: with the ends of
    the slice as the values of its dummies such a head follows [s] clipped to its slice, and the more so the further away
    [s] is; and where two slices meet, the dummies of both heads weigh 1 together, up to [exp (- 2 c)]. *)

From Coq Require Import Reals Lra Lia.
From Anchorhead Require Import Softmax Sums Lattice Tails SingleHead.
Open Scope R_scope.

Lemma attention_reverse p z v :
  attention p z v = attention p (fun k => z (p - 1 - k)%nat) (fun k => v (p - 1 - k)%nat).
Proof.
  unfold attention.
  rewrite (total_reverse p (fun k => exp (z k) * v k)), (total_reverse p (fun k => exp (z k))); reflexivity.
Qed.

(** [0.5 + 1.5 q + 2.5 q^2 + ...] *)
Lemma total_half_geometric n q : 0 <= q < 1 ->
  total n (fun k => (INR k + / 2) * q ^ k) <= (1 + q) / (2 * (1 - q) ^ 2).
Proof.
  intros Hq.
  assert (E : total n (fun k => (INR k + / 2) * q ^ k)
              = (1 + q) / (2 * (1 - q) ^ 2) - (INR n * (1 - q) + (1 + q) / 2) * q ^ n / (1 - q) ^ 2).
  { induction n as [|n IH]; [simpl; field; lra|].
    cbn [total]; rewrite IH, !S_INR; change (q ^ S n) with (q * q ^ n); field; lra. }
  rewrite E; assert (0 <= (INR n * (1 - q) + (1 + q) / 2) * q ^ n / (1 - q) ^ 2); [|lra].
  pose proof (pos_INR n); pose proof (pow_le q n (proj1 Hq)).
  apply Rmult_le_pos; [apply Rmult_le_pos; nra|apply Rlt_le, Rinv_0_lt_compat; nra].
Qed.

Section Slice.

Variables (c : R) (m : nat).
Hypothesis c_pos : 0 < c.

Definition slice (x : R) : R := Range (/ 2) (INR m + / 2) x.
Definition soft_slice (u : R) : R := attention (m + 2) (bell c u) (fun k => slice (INR k)).

(** The weights of the dummies. *)
Definition is (j k : nat) : R := if Nat.eqb j k then 1 else 0.
Definition low (u : R) : R := attention (m + 2) (bell c u) (is 0).
Definition high (u : R) : R := attention (m + 2) (bell c u) (is (m + 1)).

Let r := exp (- (2 * c)).

Lemma r_range : 0 < r < 1.
Proof. apply q_range; lra. Qed.

Lemma m_nonneg : 0 <= INR m.
Proof. apply pos_INR. Qed.

Lemma slice_cases x :
  (x <= / 2 /\ slice x = / 2) \/ (/ 2 <= x <= INR m + / 2 /\ slice x = x)
  \/ (INR m + / 2 <= x /\ slice x = INR m + / 2).
Proof.
  pose proof m_nonneg; unfold slice, Range.
  destruct (Rle_or_lt x (/ 2)); [left|right; destruct (Rle_or_lt x (INR m + / 2)); [left|right]].
  - rewrite Rmax_left, Rmin_right by lra; lra.
  - rewrite Rmax_right, Rmin_right by lra; lra.
  - rewrite Rmax_right, Rmin_left by lra; lra.
Qed.

(** ** Left and right are alike. *)

Lemma bell_mirrored u k : (k < m + 2)%nat -> bell c (INR m + 1 - u) (m + 2 - 1 - k) = bell c u k.
Proof.
  intros Hk; unfold bell.
  replace (m + 2 - 1 - k)%nat with (m + 1 - k)%nat by lia.
  rewrite minus_INR, plus_INR by lia; simpl INR; ring.
Qed.

Lemma slice_mirrored x : slice (INR m + 1 - x) = INR m + 1 - slice x.
Proof.
  pose proof m_nonneg; pose proof (slice_cases x); pose proof (slice_cases (INR m + 1 - x)); lra.
Qed.

Lemma soft_slice_mirrored u : soft_slice (INR m + 1 - u) = INR m + 1 - soft_slice u.
Proof.
  unfold soft_slice; rewrite attention_reverse.
  replace (INR m + 1 - attention (m + 2) (bell c u) (fun k => slice (INR k)))
    with (INR m + 1 + -1 * attention (m + 2) (bell c u) (fun k => slice (INR k))) by ring.
  rewrite <- attention_affine by lia.
  apply attention_ext; intros k Hk; [now apply bell_mirrored|].
  replace (m + 2 - 1 - k)%nat with (m + 1 - k)%nat by lia.
  rewrite minus_INR, plus_INR by lia; simpl (INR 1); rewrite slice_mirrored; ring.
Qed.

Lemma high_mirrored u : high u = low (INR m + 1 - u).
Proof.
  unfold high, low; rewrite (attention_reverse _ (bell c (INR m + 1 - u))).
  apply attention_ext; intros k Hk; [now rewrite bell_mirrored|].
  unfold is; destruct (Nat.eqb_spec (m + 1) k), (Nat.eqb_spec 0 (m + 2 - 1 - k)); reflexivity || lia.
Qed.

(** ** Below and above the slice. *)

(** The k-th key against the lower dummy, if the query is [y] below the slice. *)
Lemma relative_weight y k : 0 <= y ->
  exp (bell c (/ 2 - y) (S k)) <= exp (- (2 * c * y)) * r ^ k * exp (bell c (/ 2 - y) 0).
Proof.
  intros Hy; unfold r, bell; rewrite <- exp_pow, <- !exp_plus; apply exp_le.
  rewrite S_INR; simpl (INR 0); pose proof (pos_INR k) as Pk.
  assert (0 <= c * (INR k * y)) by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]).
  assert (Q : 0 <= INR k * (INR k - 1)).
  { destruct k as [|k]; [simpl; lra|]. rewrite S_INR; pose proof (pos_INR k); nra. }
  assert (0 <= c * (INR k * (INR k - 1))) by (apply Rmult_le_pos; lra). lra.
Qed.

Definition reach : R := (1 + r) / (2 * (1 - r) ^ 2).

(** What a head that is [y] away still adds. *)
Definition smear (y : R) : R := / 2 / (1 + exp (2 * c * y)) + (reach - / 2) * exp (- (2 * c * y)).

Lemma slice_step k : 0 <= slice (INR (S k)) - / 2 <= INR k + / 2.
Proof.
  pose proof m_nonneg; pose proof (pos_INR k); pose proof (slice_cases (INR (S k))).
  rewrite S_INR in *; lra.
Qed.

Lemma slice_below x : x <= / 2 -> slice x = / 2.
Proof. intros H; pose proof m_nonneg; pose proof (slice_cases x); lra. Qed.

Lemma smear_below y : 0 <= y -> Rabs (soft_slice (/ 2 - y) - slice (/ 2 - y)) <= smear y.
Proof.
  intros Hy; rewrite (slice_below (/ 2 - y)) by lra.
  unfold soft_slice; rewrite attention_minus by lia.
  set (u := / 2 - y); set (W k := exp (bell c u k)).
  change (Rabs (total (m + 2) (fun k => W k * (slice (INR k) - / 2)) / total (m + 2) W) <= smear y).
  replace (m + 2)%nat with (S (S m)) by lia.
  rewrite !total_first; cbv beta.
  assert (P : forall k, 0 < W k) by (intros; apply exp_pos).
  assert (PM : 0 <= total m (fun k => W (S (S k)))) by (apply total_nonneg; intros; apply Rlt_le, P).
  pose proof r_range as Hr. pose proof (P O) as P0; pose proof (P 1%nat) as P1.
  assert (E1 : W 1%nat = / exp (2 * c * y) * W O).
  { unfold W, bell, u; rewrite <- exp_Ropp, <- exp_plus; f_equal; simpl; field. }
  assert (Z : slice (INR 0) = / 2) by (apply slice_below; simpl; lra).
  rewrite Z, Rminus_diag_eq, Rmult_0_r, Rplus_0_l by reflexivity.
  assert (B1 : 0 <= W 1%nat * (slice (INR 1) - / 2) <= W 1%nat * / 2).
  { pose proof (slice_step 0) as SS; simpl (INR 0) in SS. split; [apply Rmult_le_pos; lra|].
    apply Rmult_le_compat_l; lra. }
  assert (B2 : 0 <= total m (fun k => W (S (S k)) * (slice (INR (S (S k))) - / 2))
               <= (reach - / 2) * exp (- (2 * c * y)) * W O).
  { split.
    - apply total_nonneg; intros k _; apply Rmult_le_pos; [apply Rlt_le, P|apply slice_step].
    - apply Rle_trans with (total m (fun k => exp (- (2 * c * y)) * W O * ((INR (S k) + / 2) * r ^ S k))).
      + apply total_le; intros k _.
        pose proof (relative_weight y (S k) Hy) as R; fold u in R; fold (W (S (S k))) (W O) in R.
        pose proof (slice_step (S k)) as SS.
        apply Rle_trans with (W (S (S k)) * (INR (S k) + / 2)).
        { apply Rmult_le_compat_l; [apply Rlt_le, P|lra]. }
        apply Rle_trans with (exp (- (2 * c * y)) * r ^ S k * W O * (INR (S k) + / 2)); [|right; ring].
        apply Rmult_le_compat_r; [pose proof (pos_INR (S k)); lra|exact R].
      + rewrite total_scale.
        pose proof (total_half_geometric (S m) r ltac:(lra)) as G; rewrite total_first in G.
        simpl (INR 0) in G; simpl (r ^ 0) in G; fold reach in G.
        assert (PX : 0 < exp (- (2 * c * y))) by apply exp_pos.
        apply Rle_trans with (exp (- (2 * c * y)) * W O * (reach - / 2)); [|right; ring].
        apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|lra]. }
  assert (PE : 0 < exp (2 * c * y)) by apply exp_pos.
  set (t1 := W 1%nat * (slice (INR 1) - / 2)) in *.
  set (t2 := total m (fun k => W (S (S k)) * (slice (INR (S (S k))) - / 2))) in *.
  rewrite Rabs_pos_eq.
  2: { apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat; lra]. }
  unfold smear, Rdiv; rewrite Rmult_plus_distr_r; apply Rplus_le_compat.
  - apply Rle_trans with (W 1%nat * / 2 * / (W O + W 1%nat)).
    + apply Rmult_le_compat; [lra|apply Rlt_le, Rinv_0_lt_compat; lra|lra|].
      apply Rinv_le_contravar; lra.
    + assert (0 < exp (2 * c * y) * W O) by (apply Rmult_lt_0_compat; lra).
      right; rewrite E1; field; repeat split; lra.
  - apply Rle_trans with ((reach - / 2) * exp (- (2 * c * y)) * W O * / W O).
    + apply Rmult_le_compat; [lra|apply Rlt_le, Rinv_0_lt_compat; lra|lra|].
      apply Rinv_le_contravar; lra.
    + right; field; lra.
Qed.

Lemma smear_above y : 0 <= y ->
  Rabs (soft_slice (INR m + / 2 + y) - slice (INR m + / 2 + y)) <= smear y.
Proof.
  intros Hy; replace (INR m + / 2 + y) with (INR m + 1 - (/ 2 - y)) by field.
  rewrite soft_slice_mirrored, slice_mirrored.
  replace (INR m + 1 - soft_slice (/ 2 - y) - (INR m + 1 - slice (/ 2 - y)))
    with (- (soft_slice (/ 2 - y) - slice (/ 2 - y))) by ring.
  rewrite Rabs_Ropp; now apply smear_below.
Qed.

Lemma smear_within u T : (1 <= m)%nat -> (forall n, (n <= m)%nat -> tails n c T) ->
  Rabs (soft_slice u - slice u) <= / 2 + T.
Proof.
  intros Hm HT; apply lattice_error; [exact c_pos| |lia|].
  - intros n Hn; apply HT; lia.
  - pose proof m_nonneg; assert (1 <= INR m) by (apply (le_INR 1); exact Hm).
    split.
    + intros x y Hxy; pose proof (slice_cases x); pose proof (slice_cases y); lra.
    + intros x; rewrite plus_INR; simpl (INR 2); set (w := Range 0 (INR m + (1 + 1) - 1) x).
      pose proof (slice_cases x); pose proof (slice_cases w).
      destruct (Rle_or_lt x 0); [|destruct (Rle_or_lt x (INR m + 1))].
      * assert (w = 0) by (unfold w, Range; rewrite Rmax_left, Rmin_right; lra). lra.
      * assert (w = x) by (unfold w, Range; rewrite Rmax_right, Rmin_right; lra). lra.
      * assert (w = INR m + 1) by (unfold w, Range; rewrite Rmax_right, Rmin_left; lra). lra.
Qed.

End Slice.
