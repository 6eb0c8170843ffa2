(** Anchors on the integers 0, ..., p - 1, sharpness [c], and values that follow a function [phi] which is clipped
    to what the anchors span: the softmax mean follows [phi], for every p, c and query.

    Near the query lie two anchors, m and m + 1. Their mean alone is at most half the step of [phi] away, whatever
    the sharpness: the nearer one weighs more. All others lie further out, with weights
    [exp (- c (i^2 + 2 i x))] relative to the one of the pair that lies between. *)

From Coq Require Import Reals Lra Lia.
From Anchorhead Require Import Softmax Sums.
Open Scope R_scope.

Definition bell (c u : R) (k : nat) : R := - (c * (u - INR k) ^ 2).

(** What n anchors on one side of the pair add, from the j-th on, if the query is [x] away from that side's anchor
    of the pair, relative to it. *)
Definition tail (j n : nat) (c x : R) : R :=
  total n (fun i => (x + INR (j + i)) * exp (- (c * (INR (j + i) ^ 2 + 2 * INR (j + i) * x)))).

(** [tails n c T]: all that n anchors on one side can add. *)
Definition tails (n : nat) (c T : R) : Prop := forall x, 0 <= x <= 1 -> tail 1 n c x <= T.

(** Nondecreasing, no steeper than 1, and constant outside [[0, N]]. *)
Definition follows_within (N : R) (phi : R -> R) : Prop :=
  (forall x y, x <= y -> 0 <= phi y - phi x <= y - x) /\
  (forall x, phi x = phi (Range 0 N x)).

Lemma quotient_le num den lead K : 0 < lead -> lead <= den -> Rabs num <= K * lead -> Rabs (num / den) <= K.
Proof.
  intros Hl Hd H. pose proof (Rabs_pos num).
  assert (0 <= K) by (apply (Rmult_le_reg_r lead); lra).
  unfold Rdiv; rewrite Rabs_mult, (Rabs_pos_eq (/ den)) by (apply Rlt_le, Rinv_0_lt_compat; lra).
  apply (Rmult_le_reg_r den); [lra|]. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra. nra.
Qed.

Section Sides.

Variables (c u w : R) (phi : R -> R).
Hypothesis c_pos : 0 < c.
Hypothesis phi_monotone : forall x y, x <= y -> 0 <= phi y - phi x <= y - x.

Let W k := exp (bell c u k).

Lemma W_pos k : 0 < W k.
Proof. apply exp_pos. Qed.

Lemma W_ratio k j : W k = exp (c * (INR j - INR k) * (INR k + INR j - 2 * u)) * W j.
Proof. unfold W, bell; rewrite <- exp_plus; f_equal; ring. Qed.

(** One anchor, [i] further out than the anchor [k] of the pair. *)
Lemma side_term k x i far d : 0 <= x -> 0 <= i -> 0 <= d <= x + i ->
  far <= - (c * (i ^ 2 + 2 * i * x)) ->
  exp far * W k * d <= W k * ((x + i) * exp (- (c * (i ^ 2 + 2 * i * x)))).
Proof.
  intros Hx Hi Hd Hf; pose proof (W_pos k); apply exp_le in Hf; pose proof (exp_pos far).
  replace (exp far * W k * d) with (W k * (d * exp far)) by ring.
  apply Rmult_le_compat_l; [lra|apply Rmult_le_compat; lra].
Qed.

Lemma left_sum j n m : (n + j = m + 1)%nat -> (1 <= j)%nat -> INR m <= w -> ((0 < n)%nat -> w <= u) ->
  total n (fun k => W k * Rabs (phi (INR k) - phi w)) <= W m * tail j n c (w - INR m).
Proof.
  intros Hj Hj1 Hw Hu; rewrite total_reverse; unfold tail; rewrite <- total_scale.
  apply total_le; intros i Hi; specialize (Hu ltac:(lia)).
  assert (E : INR (n - 1 - i) = INR m - INR (j + i)).
  { replace (n - 1 - i)%nat with (m - (j + i))%nat by lia; apply minus_INR; lia. }
  pose proof (pos_INR (j + i)) as P; set (x := INR (j + i)) in *.
  rewrite (W_ratio _ m), E.
  apply side_term; try lra.
  - split; [apply Rabs_pos|].
    pose proof (phi_monotone (INR m - x) w ltac:(lra)); rewrite Rabs_left1 by lra; lra.
  - assert (0 <= c * x * (u - w)) by (apply Rmult_le_pos; [nra|lra]). lra.
Qed.

Lemma right_sum j n m : (1 <= j)%nat -> w <= INR m -> ((0 < n)%nat -> u <= w) ->
  total n (fun i => W (m + j + i) * Rabs (phi (INR (m + j + i)) - phi w)) <= W m * tail j n c (INR m - w).
Proof.
  intros Hj1 Hw Hu; unfold tail; rewrite <- total_scale.
  apply total_le; intros i Hi; specialize (Hu ltac:(lia)).
  assert (E : INR (m + j + i) = INR m + INR (j + i)) by (rewrite <- Nat.add_assoc; apply plus_INR).
  pose proof (pos_INR (j + i)) as P; set (x := INR (j + i)) in *.
  rewrite (W_ratio _ m), E.
  apply side_term; try lra.
  - split; [apply Rabs_pos|].
    pose proof (phi_monotone w (INR m + x) ltac:(lra)); rewrite Rabs_pos_eq by lra; lra.
  - assert (0 <= c * x * (w - u)) by (apply Rmult_le_pos; [nra|lra]). lra.
Qed.

End Sides.

Section Pair.

Variables (c u T g : R) (m r : nat) (phi : R -> R).

(** The query, clipped to the cell of the pair. *)
Variable w : R.

Hypothesis c_pos : 0 < c.
Hypothesis T_left : tails m c T.
Hypothesis T_right : tails r c T.
Hypothesis phi_monotone : forall x y, x <= y -> 0 <= phi y - phi x <= y - x.
Hypothesis in_cell : INR m <= w <= INR m + 1.
Hypothesis anchors_left : (0 < m)%nat -> w <= u.
Hypothesis anchors_right : (0 < r)%nat -> u <= w.
Hypothesis near_left : u <= INR m + / 2 -> w <= INR m + / 2.
Hypothesis near_right : INR m + / 2 <= u -> INR m + / 2 <= w.
Hypothesis pair_gap : phi (INR m + 1) - phi (INR m) <= g.
Hypothesis half_gap_left : w <= INR m + / 2 -> phi w - phi (INR m) <= g / 2.
Hypothesis half_gap_right : INR m + / 2 <= w -> phi (INR m + 1) - phi w <= g / 2.

Let p := (m + (2 + r))%nat.
Let W k := exp (bell c u k).

Lemma pair_sum :
  Rabs (W m * (phi (INR m) - phi w) + W (m + 1) * (phi (INR m + 1) - phi w)) <= g / 2 * (W m + W (m + 1)).
Proof.
  pose proof (phi_monotone (INR m) w ltac:(lra)) as A.
  pose proof (phi_monotone w (INR m + 1) ltac:(lra)) as B.
  assert (0 < W m) by apply W_pos; assert (0 < W (m + 1)) by apply W_pos.
  assert (E : INR (m + 1) = INR m + 1) by (rewrite plus_INR; simpl; ring).
  destruct (Rle_or_lt u (INR m + / 2)) as [H1|H1].
  - assert (W (m + 1) <= W m).
    { unfold W, bell; apply exp_le; rewrite E. nra. }
    pose proof (half_gap_left (near_left H1)).
    apply Rabs_le; nra.
  - assert (W m <= W (m + 1)).
    { unfold W, bell; apply exp_le; rewrite E. nra. }
    pose proof (half_gap_right (near_right (Rlt_le _ _ H1))).
    apply Rabs_le; nra.
Qed.

Theorem pair_error : Rabs (attention p (bell c u) (fun k => phi (INR k)) - phi w) <= g / 2 + T.
Proof.
  assert (Hp : (0 < p)%nat) by (unfold p; lia).
  rewrite attention_minus by exact Hp.
  set (F k := W k * (phi (INR k) - phi w)).
  change (Rabs (total p F / total p W) <= g / 2 + T).
  assert (L : forall f, total p f = total m f + (f m + f (m + 1)%nat + total r (fun i => f (m + 2 + i)%nat))).
  { intros f; unfold p; rewrite !total_app; simpl; rewrite Nat.add_0_r, Rplus_0_l.
    do 2 f_equal. apply total_ext; intros; f_equal; lia. }
  assert (E : INR (m + 1) = INR m + 1) by (rewrite plus_INR; simpl; ring).
  assert (A : forall k, Rabs (F k) = W k * Rabs (phi (INR k) - phi w)).
  { intros k; unfold F; rewrite Rabs_mult, (Rabs_pos_eq (W k)); [reflexivity|apply Rlt_le, W_pos]. }
  assert (SL : Rabs (total m F) <= T * W m).
  { eapply Rle_trans; [apply total_abs|].
    rewrite (total_ext m _ (fun k => W k * Rabs (phi (INR k) - phi w))) by (intros; apply A).
    eapply Rle_trans; [apply (left_sum c u w phi c_pos phi_monotone 1 m m); lia || lra || assumption|].
    rewrite (Rmult_comm T); apply Rmult_le_compat_l; [apply Rlt_le, W_pos|apply T_left; lra]. }
  assert (SR : Rabs (total r (fun i => F (m + 2 + i)%nat)) <= T * W (m + 1)).
  { eapply Rle_trans; [apply total_abs|].
    rewrite (total_ext r _ (fun i => W (m + 2 + i) * Rabs (phi (INR (m + 2 + i)) - phi w)))
      by (intros; apply A).
    rewrite (total_ext r _ (fun i => W (m + 1 + 1 + i) * Rabs (phi (INR (m + 1 + 1 + i)) - phi w)))
      by (intros k _; replace (m + 1 + 1 + k)%nat with (m + 2 + k)%nat by lia; reflexivity).
    eapply Rle_trans; [apply (right_sum c u w phi c_pos phi_monotone 1 r (m + 1)); rewrite ?E; lia || lra || assumption|].
    rewrite E, (Rmult_comm T); apply Rmult_le_compat_l; [apply Rlt_le, W_pos|apply T_right; lra]. }
  pose proof pair_sum as SP; rewrite <- E in SP; fold (F m) (F (m + 1)%nat) in SP.
  assert (ML : 0 <= total m W) by (apply total_nonneg; intros; apply Rlt_le, W_pos).
  assert (MR : 0 <= total r (fun i => W (m + 2 + i))) by (apply total_nonneg; intros; apply Rlt_le, W_pos).
  assert (P0 : 0 < W m) by apply W_pos; assert (P1 : 0 < W (m + 1)) by apply W_pos.
  assert (PG : 0 <= g) by (pose proof (phi_monotone (INR m) (INR m + 1) ltac:(lra)); lra).
  apply quotient_le with (W m + W (m + 1)); [lra|rewrite L; lra|].
  rewrite L.
  eapply Rle_trans; [apply Rabs_triang|].
  eapply Rle_trans; [apply Rplus_le_compat_l, Rabs_triang|]. lra.
Qed.

End Pair.

(** ** Any query. *)

Lemma find_cell n x : 0 <= x <= INR n + 1 -> exists m, (m <= n)%nat /\ INR m <= x <= INR m + 1.
Proof.
  induction n as [|n IH]; intros H.
  - exists O; simpl in *; split; [lia|lra].
  - rewrite S_INR in H. destruct (Rle_or_lt x (INR n + 1)) as [Hx|Hx].
    + destruct IH as [m [Hm Hx']]; [lra|]. exists m; split; [lia|exact Hx'].
    + exists (S n); rewrite S_INR; split; [lia|lra].
Qed.

Theorem lattice_error c T p phi u :
  0 < c -> (forall n, (n + 2 <= p)%nat -> tails n c T) -> (2 <= p)%nat -> follows_within (INR p - 1) phi ->
  Rabs (attention p (bell c u) (fun k => phi (INR k)) - phi u) <= / 2 + T.
Proof.
  intros Hc HT Hp [Hmono Hconst].
  set (n := (p - 2)%nat).
  assert (En : INR p = INR n + 2).
  { replace p with (n + 2)%nat by (unfold n; lia); rewrite plus_INR; simpl; ring. }
  rewrite (Hconst u).
  set (w := Range 0 (INR p - 1) u).
  assert (Pn : 0 <= INR n) by apply pos_INR.
  assert (Hw : 0 <= w <= INR n + 1).
  { unfold w, Range; split; [apply Rmin_glb; [lra|apply Rmax_l]|rewrite En; apply Rle_trans with (1 := Rmin_l _ _); lra]. }
  destruct (find_cell n w Hw) as [m [Hm Hcell]].
  replace p with (m + (2 + (n - m)))%nat by (unfold n; lia).
  replace (/ 2 + T) with (1 / 2 + T) by field.
  assert (Hmn : INR m <= INR n) by now apply le_INR.
  pose proof (pos_INR m) as Pm.
  assert (Wl : 0 < w -> w <= u).
  { unfold w, Range; intros H. apply Rle_trans with (1 := Rmin_r _ _).
    destruct (Rle_or_lt u 0); [|rewrite Rmax_right; lra].
    rewrite Rmax_left in H by lra. apply Rlt_not_le in H; destruct H; apply Rmin_r. }
  assert (Wr : w < INR n + 1 -> u <= w).
  { unfold w, Range; intros H. destruct (Rle_or_lt (INR p - 1) (Rmax 0 u)) as [H1|H1].
    - rewrite Rmin_left in H by lra. lra.
    - rewrite Rmin_right by lra; apply Rmax_r. }
  apply pair_error; try assumption; try (apply HT; unfold n in *; lia).
  - intros H; apply Wl. pose proof (lt_0_INR m H). assert (1 <= INR m) by (apply (le_INR 1); lia). lra.
  - intros H; apply Wr. assert (INR m + 1 <= INR n) by (rewrite <- S_INR; apply le_INR; lia). lra.
  - intros H; destruct (Rle_or_lt w 0); [lra|]. specialize (Wl H0). lra.
  - intros H; destruct (Rle_or_lt (INR n + 1) w); [lra|]. specialize (Wr H0). lra.
  - pose proof (Hmono (INR m) (INR m + 1)). lra.
  - intros H. pose proof (Hmono (INR m) w). lra.
  - intros H. pose proof (Hmono w (INR m + 1)). lra.
Qed.
