(** Sums over all heads of what heads far away still add: they fall off geometrically, however many there are. *)

From Coq Require Import Reals Lra Lia.
From Anchorhead Require Import Softmax Sums Lattice Tails SingleHead Slices Dummies.
Open Scope R_scope.

Section Far.

Variables (c : R) (m : nat).
Hypothesis c_pos : 0 < c.
Hypothesis m_pos : (1 <= m)%nat.

Let r := exp (- (2 * c)).
Let M := INR m.

Lemma M_one : 1 <= M.
Proof. apply (le_INR 1); exact m_pos. Qed.

Lemma r_between : 0 < r < 1.
Proof. now apply r_range. Qed.

Lemma powers n : total n (fun k => r ^ S k) <= r / (1 - r).
Proof. now apply total_powers. Qed.

Lemma power_of_distance y k : 0 <= y -> exp (- (2 * c * (y + INR k * M))) <= r ^ k.
Proof.
  intros Hy; unfold r; rewrite <- exp_pow; apply exp_le.
  pose proof M_one; pose proof (pos_INR k).
  assert (0 <= 2 * c * y) by (apply Rmult_le_pos; lra).
  assert (0 <= 2 * c * (INR k * (M - 1))) by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]).
  lra.
Qed.

(** ** Leaks. *)

Let one_sided z := if Rle_dec 0 z then leak c z else 0.
Let leaks := (r + r / (1 - r)) / (1 - r).

Lemma leak_pos x : 0 < leak c x.
Proof.
  unfold leak; pose proof r_between; apply Rdiv_lt_0_compat; [apply exp_pos|unfold r in *; lra].
Qed.

Lemma leak_at_most y k : INR k <= y -> leak c y <= r ^ Nat.max 1 k / (1 - r).
Proof.
  intros Hk; unfold leak; fold r; pose proof r_between.
  apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat; lra|].
  unfold r; rewrite <- exp_pow; apply exp_le.
  assert (INR (Nat.max 1 k) <= Rmax 1 y).
  { destruct (Nat.max_spec 1 k) as [[_ ->]|[_ ->]];
      [apply Rle_trans with (1 := Hk), Rmax_r|simpl; apply Rmax_l]. }
  assert (0 <= 2 * c * (Rmax 1 y - INR (Nat.max 1 k))) by (apply Rmult_le_pos; lra). lra.
Qed.

Lemma leaks_one_sided n Y : total n (fun k => one_sided (Y + INR k * M)) <= leaks.
Proof.
  pose proof r_between as Hr; pose proof M_one as HM.
  assert (PR : 0 < r / (1 - r)) by (apply Rdiv_lt_0_compat; lra).
  assert (PL : 0 <= leaks) by (unfold leaks; apply Rlt_le, Rdiv_lt_0_compat; lra).
  revert Y; induction n as [|n IH]; intros Y; [exact PL|].
  rewrite total_first; simpl (INR 0); rewrite Rmult_0_l, Rplus_0_r.
  unfold one_sided at 1; destruct (Rle_dec 0 Y) as [HY|HY].
  - assert (F : leak c Y <= r / (1 - r)).
    { apply Rle_trans with (1 := leak_at_most Y 0 HY). simpl; rewrite Rmult_1_r; lra. }
    assert (G : total n (fun k => one_sided (Y + INR (S k) * M)) <= / (1 - r) * (r / (1 - r))).
    { apply Rle_trans with (/ (1 - r) * total n (fun k => r ^ S k)).
      - rewrite <- total_scale; apply total_le; intros k _.
        rewrite (Rmult_comm (/ (1 - r))); unfold one_sided; destruct (Rle_dec 0 (Y + INR (S k) * M)).
        + apply (leak_at_most (Y + INR (S k) * M) (S k)).
          pose proof (pos_INR (S k)). assert (0 <= INR (S k) * (M - 1)) by (apply Rmult_le_pos; lra). lra.
        + apply Rmult_le_pos; [apply pow_le; lra|apply Rlt_le, Rinv_0_lt_compat; lra].
      - apply Rmult_le_compat_l; [apply Rlt_le, Rinv_0_lt_compat; lra|apply powers]. }
    replace leaks with (r / (1 - r) + / (1 - r) * (r / (1 - r))) by (unfold leaks; field; lra). lra.
  - rewrite Rplus_0_l.
    rewrite (total_ext n _ (fun k => one_sided (Y + M + INR k * M))); [apply IH|].
    intros k _; f_equal; rewrite S_INR; ring.
Qed.

Lemma leak_both_sides z : leak c (Rabs z) <= one_sided z + one_sided (- z).
Proof.
  unfold one_sided; destruct (Rle_dec 0 z), (Rle_dec 0 (- z)); try lra.
  - rewrite Rabs_pos_eq by assumption; pose proof (leak_pos (- z)); lra.
  - rewrite Rabs_pos_eq by assumption; lra.
  - rewrite Rabs_left by lra; lra.
Qed.

Lemma leak_sum n Z : total n (fun k => 2 * leak c (Rabs (Z - INR k * M))) <= 4 * r * (2 - r) / (1 - r) ^ 2.
Proof.
  pose proof r_between as Hr.
  rewrite total_scale.
  replace (4 * r * (2 - r) / (1 - r) ^ 2) with (2 * (leaks + leaks)) by (unfold leaks; field; lra).
  apply Rmult_le_compat_l; [lra|].
  apply Rle_trans with
    (total n (fun k => one_sided (Z - INR k * M)) + total n (fun k => one_sided (- Z + INR k * M))).
  - rewrite <- total_plus; apply total_le; intros k _.
    replace (- Z + INR k * M) with (- (Z - INR k * M)) by ring; apply leak_both_sides.
  - apply Rplus_le_compat; [|apply leaks_one_sided].
    rewrite total_reverse.
    rewrite (total_ext n _ (fun k => one_sided (Z - INR (n - 1) * M + INR k * M))); [apply leaks_one_sided|].
    intros k Hk; f_equal; rewrite minus_INR by lia; ring.
Qed.

(** ** Smear. *)

Lemma reach_half : / 2 <= reach c.
Proof.
  pose proof r_between as Hr; unfold reach; fold r.
  apply (Rmult_le_reg_r (2 * (1 - r) ^ 2)); [nra|].
  replace ((1 + r) / (2 * (1 - r) ^ 2) * (2 * (1 - r) ^ 2)) with (1 + r) by (field; nra). nra.
Qed.

Lemma smear_nonneg y : 0 <= smear c y.
Proof.
  pose proof reach_half; pose proof (exp_pos (2 * c * y)); pose proof (exp_pos (- (2 * c * y))).
  unfold smear; apply Rplus_le_le_0_compat.
  - apply Rlt_le, Rdiv_lt_0_compat; lra.
  - apply Rmult_le_pos; lra.
Qed.

Lemma smear_decreasing x y : x <= y -> smear c y <= smear c x.
Proof.
  intros Hxy; pose proof reach_half; pose proof (exp_pos (2 * c * x)).
  assert (exp (2 * c * x) <= exp (2 * c * y)) by (apply exp_le, Rmult_le_compat_l; lra).
  assert (exp (- (2 * c * y)) <= exp (- (2 * c * x)))
    by (apply exp_le, Ropp_le_contravar, Rmult_le_compat_l; lra).
  unfold smear; apply Rplus_le_compat.
  - apply Rmult_le_compat_l; [lra|apply Rinv_le_contravar; lra].
  - apply Rmult_le_compat_l; lra.
Qed.

Lemma smear_at_0 : smear c 0 = reach c - / 4.
Proof. unfold smear; rewrite Rmult_0_r, Ropp_0, exp_0; field. Qed.

Lemma smear_far y : smear c y <= reach c * exp (- (2 * c * y)).
Proof.
  unfold smear; rewrite exp_Ropp; pose proof (exp_pos (2 * c * y)) as P; set (e := exp (2 * c * y)) in *.
  assert (/ 2 / (1 + e) <= / 2 * / e) by (apply Rmult_le_compat_l; [lra|apply Rinv_le_contravar; lra]).
  lra.
Qed.

Definition far : R := reach c * (r / (1 - r)).

Lemma smear_sum n y : 0 <= y -> total n (fun k => smear c (y + INR k * M)) <= smear c y + far.
Proof.
  intros Hy; pose proof reach_half; pose proof r_between as Hr.
  assert (PF : 0 <= far).
  { unfold far; apply Rmult_le_pos; [lra|apply Rlt_le, Rdiv_lt_0_compat; lra]. }
  destruct n as [|n]; [simpl; pose proof (smear_nonneg y); lra|].
  rewrite total_first; simpl (INR 0); rewrite Rmult_0_l, Rplus_0_r.
  apply Rplus_le_compat_l.
  apply Rle_trans with (reach c * total n (fun k => r ^ S k)).
  - rewrite <- total_scale; apply total_le; intros k _.
    apply Rle_trans with (1 := smear_far _). apply Rmult_le_compat_l; [lra|now apply power_of_distance].
  - unfold far; apply Rmult_le_compat_l; [lra|apply powers].
Qed.

End Far.

(** All heads together, [T] being what the head that owns the query may add to half a cell. *)
Definition smear_bound (c T : R) : R := / 2 + T + (reach c - / 4) + smear c (/ 2) + 2 * far c.
