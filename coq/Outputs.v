(** The single head with a map G from anchors to output features: anchor k carries its value to the feature [G k].

    Where the nearest anchor changes, so may the feature, and both outputs are about half, whatever the sharpness.
    So the query keeps a distance tau from midpoints between anchors. Then the nearest anchor [k] decides:

        | output_o - Range_[a,b](s) [o = G k] | <= (b - a) / p + max(|a|, |b|) eps0,
        eps0 = 4 theta / (1 - theta exp (- 2 c)),  theta = exp (- 2 beta spacing tau),  c = beta spacing^2. *)

From Coq Require Import Reals Lra Lia.
From Anchorhead Require Import Softmax Sums Lattice Tails SingleHead Slices.
Open Scope R_scope.

Definition head_with_outputs (p : nat) (a b beta : R) (G : nat -> nat) (s : R) (o : nat) : R :=
  attention p (fun k => score beta s (anchor a b p k)) (fun k => anchor a b p k * is o (G k)).

(** [near p k u t]: the query [u], in spacings, is nearest to anchor k, and [t] away from where that changes. *)
Definition near (p k : nat) (u t : R) : Prop :=
  ((0 < k)%nat -> INR k - / 2 + t <= u) /\ ((k + 1 < p)%nat -> u <= INR k + / 2 - t).

Section Others.

Variables (c u t : R) (p k : nat).
Hypothesis c_pos : 0 < c.
Hypothesis t_nonneg : 0 <= t.
Hypothesis k_anchor : (k < p)%nat.
Hypothesis k_near : near p k u t.

Let theta := exp (- (2 * c * t)).
Let r := exp (- (2 * c)).
Let W j := exp (bell c u j).

Lemma theta_range : 0 < theta <= 1.
Proof.
  unfold theta; split; [apply exp_pos|]. rewrite <- exp_0; apply exp_le.
  assert (0 <= 2 * c * t) by (apply Rmult_le_pos; lra). lra.
Qed.

Lemma theta_r : 0 <= theta * r < 1.
Proof.
  pose proof theta_range; pose proof (q_range (2 * c) ltac:(lra)) as Hr; fold r in Hr.
  split; [apply Rmult_le_pos; lra|nra].
Qed.

(** The anchor i + 1 steps away, [v] being how far the query lies on its side. *)
Lemma other_weight i v z : v <= / 2 - t -> z = - (c * (INR (S i) ^ 2 - 2 * INR (S i) * v)) ->
  exp z <= theta * (theta * r) ^ i.
Proof.
  intros Hv ->; rewrite Rpow_mult_distr; unfold theta, r; rewrite <- !exp_pow, <- !exp_plus; apply exp_le.
  rewrite S_INR; pose proof (pos_INR i) as Pi.
  assert (0 <= c * ((INR i + 1) * (/ 2 - t - v))) by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]).
  assert (Q : 0 <= INR i * (INR i - 1)).
  { destruct i as [|i]; [simpl; lra|]. rewrite S_INR; pose proof (pos_INR i); nra. }
  assert (0 <= c * (INR i * (INR i - 1))) by (apply Rmult_le_pos; lra). lra.
Qed.

Lemma others_left : total k W <= theta / (1 - theta * r) * W k.
Proof.
  pose proof theta_range; pose proof theta_r.
  destruct (Nat.eq_dec k 0) as [->|Hk].
  { simpl; apply Rmult_le_pos; [apply Rlt_le, Rdiv_lt_0_compat; lra|apply Rlt_le, exp_pos]. }
  rewrite total_reverse.
  apply Rle_trans with (total k (fun i => theta * W k * (theta * r) ^ i)).
  - apply total_le; intros i Hi.
    apply Rle_trans with (theta * (theta * r) ^ i * W k); [|right; ring].
    unfold W; rewrite (W_ratio c u (k - 1 - i) k); apply Rmult_le_compat_r; [apply Rlt_le, exp_pos|].
    apply (other_weight i (INR k - u)).
    + destruct k_near as [A _]; specialize (A ltac:(lia)); lra.
    + replace (k - 1 - i)%nat with (k - S i)%nat by lia; rewrite minus_INR by lia; ring.
  - rewrite total_scale; unfold Rdiv; rewrite Rmult_assoc, (Rmult_comm (W k)), <- Rmult_assoc.
    apply Rmult_le_compat_r; [apply Rlt_le, exp_pos|].
    apply Rmult_le_compat_l; [lra|apply total_geometric; lra].
Qed.

Lemma others_right : total (p - 1 - k) (fun i => W (k + S i)) <= theta / (1 - theta * r) * W k.
Proof.
  pose proof theta_range; pose proof theta_r.
  destruct (Nat.eq_dec (p - 1 - k) 0) as [->|Hk].
  { simpl; apply Rmult_le_pos; [apply Rlt_le, Rdiv_lt_0_compat; lra|apply Rlt_le, exp_pos]. }
  apply Rle_trans with (total (p - 1 - k) (fun i => theta * W k * (theta * r) ^ i)).
  - apply total_le; intros i Hi.
    apply Rle_trans with (theta * (theta * r) ^ i * W k); [|right; ring].
    unfold W; rewrite (W_ratio c u (k + S i) k); apply Rmult_le_compat_r; [apply Rlt_le, exp_pos|].
    apply (other_weight i (u - INR k)).
    + destruct k_near as [_ A]; specialize (A ltac:(lia)); lra.
    + rewrite plus_INR; ring.
  - rewrite total_scale; unfold Rdiv; rewrite Rmult_assoc, (Rmult_comm (W k)), <- Rmult_assoc.
    apply Rmult_le_compat_r; [apply Rlt_le, exp_pos|].
    apply Rmult_le_compat_l; [lra|apply total_geometric; lra].
Qed.

(** Any values: the nearest anchor's, up to twice the largest times the weight of all others. *)
Lemma nearest_decides (v : nat -> R) M : (forall j, (j < p)%nat -> Rabs (v j) <= M) ->
  Rabs (attention p (bell c u) v - v k) <= 2 * M * (2 * theta / (1 - theta * r)).
Proof.
  intros Hv; pose proof theta_range; pose proof theta_r.
  rewrite attention_minus by lia.
  change (Rabs (total p (fun j => W j * (v j - v k)) / total p W) <= 2 * M * (2 * theta / (1 - theta * r))).
  assert (L : forall f, total p f = total k f + (f k + total (p - 1 - k) (fun i => f (k + S i)%nat))).
  { intros f; replace p with (k + (1 + (p - 1 - k)))%nat at 1 by lia.
    rewrite !total_app; simpl (total 1 _); rewrite Nat.add_0_r, Rplus_0_l; reflexivity. }
  assert (PW : forall j, 0 < W j) by (intros; apply exp_pos).
  assert (PM : 0 <= M) by (apply Rle_trans with (2 := Hv k k_anchor), Rabs_pos).
  assert (PL : 0 <= total k W) by (apply total_nonneg; intros; apply Rlt_le, PW).
  assert (PR : 0 <= total (p - 1 - k) (fun i => W (k + S i))) by (apply total_nonneg; intros; apply Rlt_le, PW).
  assert (T : forall j, (j < p)%nat -> Rabs (W j * (v j - v k)) <= 2 * M * W j).
  { intros j Hj; rewrite Rabs_mult, (Rabs_pos_eq (W j)), Rmult_comm by apply Rlt_le, PW.
    apply Rmult_le_compat_r; [apply Rlt_le, PW|].
    unfold Rminus; eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp.
    pose proof (Hv j Hj); pose proof (Hv k k_anchor); lra. }
  pose proof (PW k) as PK.
  apply quotient_le with (W k); [exact PK|rewrite L; lra|].
  rewrite L, Rminus_diag_eq, Rmult_0_r, Rplus_0_l by reflexivity.
  eapply Rle_trans; [apply Rabs_triang|].
  assert (SL : Rabs (total k (fun j => W j * (v j - v k))) <= 2 * M * total k W).
  { eapply Rle_trans; [apply total_abs|]. rewrite <- total_scale; apply total_le; intros j Hj; apply T; lia. }
  assert (SR : Rabs (total (p - 1 - k) (fun i => W (k + S i) * (v (k + S i)%nat - v k)))
               <= 2 * M * total (p - 1 - k) (fun i => W (k + S i))).
  { eapply Rle_trans; [apply total_abs|]. rewrite <- total_scale; apply total_le; intros j Hj; apply T; lia. }
  pose proof others_left as OL; pose proof others_right as OR.
  assert (2 * M * total k W <= 2 * M * (theta / (1 - theta * r) * W k)) by (apply Rmult_le_compat_l; lra).
  assert (2 * M * total (p - 1 - k) (fun i => W (k + S i)) <= 2 * M * (theta / (1 - theta * r) * W k))
    by (apply Rmult_le_compat_l; lra).
  replace (2 * M * (2 * theta / (1 - theta * r)) * W k)
    with (2 * M * (theta / (1 - theta * r) * W k) + 2 * M * (theta / (1 - theta * r) * W k)) by (field; lra).
  lra.
Qed.

Lemma nearest_is_near : Rabs (INR k - Range 0 (INR p - 1) u) <= / 2.
Proof.
  assert (Kp : INR k <= INR p - 1).
  { assert (INR (S k) <= INR p) by (apply le_INR; lia). rewrite S_INR in *; lra. }
  pose proof (pos_INR k); destruct k_near as [A B]; unfold Range.
  assert (A' : INR k - / 2 <= Rmax 0 u).
  { destruct (Nat.eq_dec k 0) as [->|]; [simpl; pose proof (Rmax_l 0 u); lra|].
    specialize (A ltac:(lia)); pose proof (Rmax_r 0 u); lra. }
  assert (B' : Rmin (INR p - 1) (Rmax 0 u) <= INR k + / 2).
  { destruct (Nat.eq_dec (k + 1) p) as [E|].
    - rewrite <- E, plus_INR; simpl (INR 1). pose proof (Rmin_l (INR k + 1 - 1) (Rmax 0 u)); lra.
    - specialize (B ltac:(lia)). eapply Rle_trans; [apply Rmin_r|apply Rmax_lub; lra]. }
  assert (INR k - / 2 <= Rmin (INR p - 1) (Rmax 0 u)) by (apply Rmin_glb; lra).
  apply Rabs_le; lra.
Qed.

End Others.

Theorem single_head_outputs d (w x : nat -> R) shift p a b beta (G : nat -> nat) o k tau :
  (2 <= p)%nat -> a < b -> 0 < beta -> (k < p)%nat -> 0 <= tau ->
  let D := spacing a b p in
  let s := dot d w x + shift in
  let theta := exp (- (2 * beta * D * tau)) in
  near p k ((s - a) / D) (tau / D) ->
  Rabs (head_with_outputs p a b beta G s o - Range a b s * is o (G k))
  <= (b - a) / INR p + largest a b * (4 * theta / (1 - theta * exp (- (2 * (beta * D ^ 2))))).
Proof.
  intros Hp Hab Hb Hk Htau D s theta Hnear.
  pose proof (D_pos p a b Hp Hab) as PD; fold D in PD.
  pose proof (c_pos p a b beta Hp Hab Hb) as Hc; fold D in Hc.
  pose proof (p_real p Hp) as P.
  set (u := (s - a) / D) in *; set (c := beta * D ^ 2) in *.
  assert (Et : theta = exp (- (2 * c * (tau / D)))) by (unfold theta, c; f_equal; field; lra).
  assert (Ht : 0 <= tau / D) by (apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat, PD]).
  assert (EH : head_with_outputs p a b beta G s o
               = attention p (bell c u) (fun j => anchor a b p j * is o (G j))).
  { unfold head_with_outputs.
    rewrite <- (attention_gauge p (bell c u) (beta * s ^ 2)) by lia.
    apply attention_ext; [|reflexivity]. intros j _; unfold score, bell, anchor, c, u; fold D; field; lra. }
  assert (I : forall j, 0 <= is o j <= 1) by (intros; unfold is; destruct (Nat.eqb o j); lra).
  assert (A : forall j, (j < p)%nat -> Rabs (anchor a b p j) <= largest a b).
  { intros j Hj; unfold anchor; fold D; unfold largest.
    assert (INR (S j) <= INR p) by (apply le_INR; lia). rewrite S_INR in *; pose proof (pos_INR j).
    assert (Eb : b = a + (INR p - 1) * D) by (unfold D, spacing; field; lra).
    assert (0 <= INR j * D) by (apply Rmult_le_pos; lra).
    assert (INR j * D <= (INR p - 1) * D) by (apply Rmult_le_compat_r; lra).
    pose proof (Rmax_l (Rabs a) (Rabs b)); pose proof (Rmax_r (Rabs a) (Rabs b)).
    pose proof (Rle_abs b); pose proof (Rle_abs (- a)) as N; rewrite Rabs_Ropp in N. apply Rabs_le; lra. }
  pose proof (nearest_decides c u (tau / D) p k Hc Ht Hk Hnear (fun j => anchor a b p j * is o (G j))
                (largest a b)) as ND; cbv beta in ND; rewrite <- Et in ND.
  rewrite EH.
  replace (attention p (bell c u) (fun j => anchor a b p j * is o (G j)) - Range a b s * is o (G k))
    with ((attention p (bell c u) (fun j => anchor a b p j * is o (G j)) - anchor a b p k * is o (G k))
          + (anchor a b p k - Range a b s) * is o (G k)) by ring.
  eapply Rle_trans; [apply Rabs_triang|].
  rewrite Rplus_comm; apply Rplus_le_compat.
  - rewrite Rabs_mult, (Rabs_pos_eq (is o (G k))) by apply I.
    apply Rle_trans with (Rabs (anchor a b p k - Range a b s) * 1).
    { apply Rmult_le_compat_l; [apply Rabs_pos|apply I]. }
    rewrite Rmult_1_r.
    apply Rle_trans with (D / 2); [|now apply half_spacing].
    assert (ER : Range a b s = a + D * Range 0 (INR p - 1) u).
    { unfold u; rewrite <- range_affine by exact PD.
      replace (a + D * (INR p - 1)) with b by (unfold D, spacing; field; lra); reflexivity. }
    rewrite ER; unfold anchor; fold D.
    replace (a + INR k * D - (a + D * Range 0 (INR p - 1) u)) with (D * (INR k - Range 0 (INR p - 1) u)) by ring.
    rewrite Rabs_mult, (Rabs_pos_eq D) by lra; apply Rmult_le_compat_l; [lra|].
    apply (nearest_is_near u (tau / D)); assumption.
  - eapply Rle_trans; [apply ND|right; field].
    + intros j Hj; rewrite Rabs_mult, (Rabs_pos_eq (is o (G j))) by apply I.
      apply Rle_trans with (Rabs (anchor a b p j) * 1); [|rewrite Rmult_1_r; now apply A].
      apply Rmult_le_compat_l; [apply Rabs_pos|apply I].
    + pose proof (theta_r c (tau / D) Hc Ht) as TR; rewrite <- Et in TR; lra.
Qed.
