(** Steep heads: kinks, for every slope.

    A head with a kink at [s0] has a group of keys for each side of it. Within a group slopes differ
    little; from group to group they differ by a huge [b], and no subdivision of an interval sees the
    width 1/b. So the groups are taken apart. With N, D the sums (moment and mass) of the group that
    rules at [s], and [exp (- (b * t)) * N'], [exp (- (b * t)) * D'] those of the other, [t = |s - s0|],

        (N + exp(-bt) N') / (D + exp(-bt) D') - f

    is at most [e + L (0.2785 + d) / b] if

        |N / D - f| <= e            the ruling group follows the target: no steep slope left,
        |N' / D' - f| <= e + L t    the other leaves it from the kink on, at the rate L,
        D' <= exp d * D             the groups cross at the kink, or nearly so (d = 0 or tiny).

    The three hypotheses have moderate logits only, so that [interval] proves them.

    How to apply it to stored weights (everything is a dyadic rational): on each side of the kink, [kink]
    with the list of the ruling group, the list of the other, [b := -+ (a slope of the other minus a slope of
    the ruling group)], and [s0] the kink. [shift] adds b to all slopes and takes b * s0 from all
    offsets, exactly. On the left side of the kink the other group has the larger slopes: use
    [kink_left], which adds -b. A head with three groups (truncated linear): [two_kinks] on each of its
    three stretches, the crossing of every other group with the ruling one as its own [s0]. Sums
    of heads: [sum_of_heads], [scaled_head], [biased_head] in Softmax.v. *)

From Coq Require Import Reals List Lra.
From Interval Require Import Tactic.
From Anchorhead Require Import Softmax.
Import ListNotations.
Open Scope R_scope.

(** ** The one inequality: [u / (1 + exp u) <= 0.2785]. *)

Definition kappa : R := 2785 / 10000.

Lemma below_kappa u : u <= kappa * (1 + exp u).
Proof.
  set (u0 := ln (10000 / 2785)).
  assert (Hu0 : u0 <= 1 + kappa) by (unfold u0, kappa; interval with (i_prec 40)).
  assert (E0 : exp u0 = 10000 / 2785) by (apply exp_ln; lra).
  pose proof (exp_ineq1_le (u - u0)) as T.
  replace u with (u0 + (u - u0)) at 2 by ring.
  rewrite exp_plus, E0.
  unfold kappa in *; lra.
Qed.

(** A key that is [exp d] times as heavy at the kink moves the maximum by [d]. *)
Lemma steep_term b t d q :
  0 < b -> 0 <= t -> 0 <= d -> 0 <= q <= exp d * exp (- (b * t)) -> t * (q / (1 + q)) <= (kappa + d) / b.
Proof.
  intros Hb Ht Hd [Hq0 Hq].
  assert (Hk : 0 < kappa) by (unfold kappa; lra).
  set (u := b * t - d).
  assert (Eq : exp d * exp (- (b * t)) = / exp u).
  { rewrite <- exp_plus, <- exp_Ropp; f_equal; unfold u; ring. }
  rewrite Eq in Hq.
  pose proof (exp_pos u) as Pu.
  assert (Hw : q / (1 + q) <= / (1 + exp u)).
  { apply (Rmult_le_reg_r ((1 + q) * (1 + exp u))); [nra|].
    replace (q / (1 + q) * ((1 + q) * (1 + exp u))) with (q * (1 + exp u)) by (field; lra).
    replace (/ (1 + exp u) * ((1 + q) * (1 + exp u))) with (1 + q) by (field; lra).
    assert (q * exp u <= 1).
    { rewrite <- (Rinv_l (exp u)) by lra. apply Rmult_le_compat_r; lra. }
    lra. }
  apply (Rmult_le_reg_r (b * (1 + exp u))); [nra|].
  apply Rle_trans with (b * t).
  { replace (t * (q / (1 + q)) * (b * (1 + exp u))) with ((b * t) * ((q / (1 + q)) * (1 + exp u))) by ring.
    rewrite <- (Rmult_1_r (b * t)) at 2.
    apply Rmult_le_compat_l; [nra|].
    apply (Rmult_le_reg_r (/ (1 + exp u))); [apply Rinv_0_lt_compat; lra|].
    rewrite Rmult_assoc, Rinv_r, Rmult_1_r, Rmult_1_l by lra; exact Hw. }
  replace ((kappa + d) / b * (b * (1 + exp u))) with ((kappa + d) * (1 + exp u)) by (field; lra).
  pose proof (below_kappa u) as K.
  replace (b * t) with (u + d) by (unfold u; ring).
  assert (0 <= d * exp u) by nra.
  lra.
Qed.

(** ** Groups of keys. *)

(** Ruling group [N/D], one other group [N'/D'] at the distance [t] from where they cross. *)
Lemma two_groups f e N D N' D' L b t d :
  0 < D -> 0 < D' -> 0 < b -> 0 <= t -> 0 <= d -> 0 <= L ->
  Rabs (N / D - f) <= e ->
  Rabs (N' / D' - f) <= e + L * t ->
  D' <= exp d * D ->
  Rabs ((N + exp (- (b * t)) * N') / (D + exp (- (b * t)) * D') - f) <= e + L * ((kappa + d) / b).
Proof.
  intros HD HD' Hb Ht Hd HL H H' Hdd.
  set (E := exp (- (b * t))); pose proof (exp_pos (- (b * t))) as PE; fold E in PE.
  set (q := E * D' / D).
  assert (Hq : 0 <= q <= exp d * E).
  { unfold q; split.
    - apply Rlt_le, Rdiv_lt_0_compat; nra.
    - apply (Rmult_le_reg_r D); [lra|]. unfold Rdiv.
      rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
      replace (exp d * E * D) with (E * (exp d * D)) by ring.
      apply Rmult_le_compat_l; lra. }
  assert (Eq : (N + E * N') / (D + E * D') - f
               = (N / D - f) * (1 / (1 + q)) + (N' / D' - f) * (q / (1 + q))).
  { unfold q; field; repeat split; try lra; nra. }
  rewrite Eq.
  pose proof (steep_term b t d q Hb Ht Hd Hq) as T.
  assert (P1 : 0 <= 1 / (1 + q)) by (apply Rlt_le, Rdiv_lt_0_compat; lra).
  assert (P2 : 0 <= q / (1 + q)).
  { apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat; lra]. }
  assert (S : 1 / (1 + q) + q / (1 + q) = 1) by (field; lra).
  eapply Rle_trans; [apply Rabs_triang|].
  rewrite !Rabs_mult, (Rabs_pos_eq (1 / (1 + q))), (Rabs_pos_eq (q / (1 + q))) by assumption.
  apply Rle_trans with (e * (1 / (1 + q)) + (e + L * t) * (q / (1 + q))).
  { apply Rplus_le_compat; apply Rmult_le_compat_r; assumption. }
  replace (e * (1 / (1 + q)) + (e + L * t) * (q / (1 + q)))
    with (e * (1 / (1 + q) + q / (1 + q)) + L * (t * (q / (1 + q)))) by ring.
  rewrite S. apply Rplus_le_compat; [lra|apply Rmult_le_compat_l; assumption].
Qed.

(** Two other groups, each with its own crossing. *)
Lemma three_groups f e N D N1 D1 N2 D2 L1 L2 b1 b2 t1 t2 d1 d2 :
  0 < D -> 0 < D1 -> 0 < D2 -> 0 < b1 -> 0 < b2 -> 0 <= t1 -> 0 <= t2 -> 0 <= d1 -> 0 <= d2 ->
  0 <= L1 -> 0 <= L2 ->
  Rabs (N / D - f) <= e ->
  Rabs (N1 / D1 - f) <= e + L1 * t1 ->
  Rabs (N2 / D2 - f) <= e + L2 * t2 ->
  D1 <= exp d1 * D -> D2 <= exp d2 * D ->
  Rabs ((N + exp (- (b1 * t1)) * N1 + exp (- (b2 * t2)) * N2)
        / (D + exp (- (b1 * t1)) * D1 + exp (- (b2 * t2)) * D2) - f)
  <= e + L1 * ((kappa + d1) / b1) + L2 * ((kappa + d2) / b2).
Proof.
  intros HD HD1 HD2 Hb1 Hb2 Ht1 Ht2 Hd1 Hd2 HL1 HL2 H H1 H2 C1 C2.
  pose proof (exp_pos (- (b1 * t1))) as P1.
  set (E1 := exp (- (b1 * t1))) in *.
  pose proof (two_groups f e N D N1 D1 L1 b1 t1 d1 HD HD1 Hb1 Ht1 Hd1 HL1 H H1 C1) as T.
  fold E1 in T.
  assert (K1 : 0 <= L1 * ((kappa + d1) / b1)).
  { apply Rmult_le_pos; [lra|]. apply Rlt_le, Rdiv_lt_0_compat; unfold kappa; lra. }
  assert (0 < E1 * D1) by (apply Rmult_lt_0_compat; assumption).
  apply two_groups; try assumption; try lra.
  apply Rle_trans with (1 := C2). pose proof (exp_pos d2).
  apply Rmult_le_compat_l; lra.
Qed.

(** ** The same for heads. *)

(** To the right of the kink at [s0]: [rest] has slopes smaller by about [b]. *)
Theorem kink ruling rest b s0 s f e L d :
  ruling <> [] -> rest <> [] -> 0 < b -> s0 <= s -> 0 <= d -> 0 <= L ->
  Rabs (head ruling s - f) <= e ->
  Rabs (head (shift b s0 rest) s - f) <= e + L * (s - s0) ->
  mass (shift b s0 rest) s <= exp d * mass ruling s ->
  Rabs (head (ruling ++ rest) s - f) <= e + L * ((kappa + d) / b).
Proof.
  intros H1 H2 Hb Hs Hd HL A B C.
  unfold head at 1. rewrite moment_app, mass_app, (moment_shift b s0 rest), (mass_shift b s0 rest).
  apply two_groups; try assumption; try lra.
  - now apply mass_pos.
  - apply mass_pos; destruct rest; easy.
Qed.

Lemma shift_left_distance b s0 s : exp (- (- b * (s - s0))) = exp (- (b * (s0 - s))).
Proof. f_equal; ring. Qed.

(** To the left of the kink at [s0]: [rest] has slopes larger by about [b]. *)
Theorem kink_left ruling rest b s0 s f e L d :
  ruling <> [] -> rest <> [] -> 0 < b -> s <= s0 -> 0 <= d -> 0 <= L ->
  Rabs (head ruling s - f) <= e ->
  Rabs (head (shift (- b) s0 rest) s - f) <= e + L * (s0 - s) ->
  mass (shift (- b) s0 rest) s <= exp d * mass ruling s ->
  Rabs (head (ruling ++ rest) s - f) <= e + L * ((kappa + d) / b).
Proof.
  intros H1 H2 Hb Hs Hd HL A B C.
  unfold head at 1. rewrite moment_app, mass_app, (moment_shift (- b) s0 rest), (mass_shift (- b) s0 rest).
  rewrite shift_left_distance.
  apply two_groups; try assumption; try lra.
  - now apply mass_pos.
  - apply mass_pos; destruct rest; easy.
Qed.

(** The order of keys does not matter. *)
Lemma head_swap left right s : head (left ++ right) s = head (right ++ left) s.
Proof. unfold head; rewrite !mass_app, !moment_app; f_equal; ring. Qed.

(** Two other groups. [side] is [1] where a group has the smaller slopes ([s0 <= s]) and [-1] where it has
    the larger ones ([s <= s0]). *)
Theorem two_kinks ruling one two side1 side2 b1 b2 s1 s2 s f e L1 L2 d1 d2 :
  ruling <> [] -> one <> [] -> two <> [] -> 0 < b1 -> 0 < b2 ->
  0 <= side1 * (s - s1) -> 0 <= side2 * (s - s2) -> 0 <= d1 -> 0 <= d2 -> 0 <= L1 -> 0 <= L2 ->
  Rabs (head ruling s - f) <= e ->
  Rabs (head (shift (side1 * b1) s1 one) s - f) <= e + L1 * (side1 * (s - s1)) ->
  Rabs (head (shift (side2 * b2) s2 two) s - f) <= e + L2 * (side2 * (s - s2)) ->
  mass (shift (side1 * b1) s1 one) s <= exp d1 * mass ruling s ->
  mass (shift (side2 * b2) s2 two) s <= exp d2 * mass ruling s ->
  Rabs (head (ruling ++ one ++ two) s - f) <= e + L1 * ((kappa + d1) / b1) + L2 * ((kappa + d2) / b2).
Proof.
  intros H0 H1 H2 Hb1 Hb2 T1 T2 Hd1 Hd2 HL1 HL2 A B1 B2 C1 C2.
  unfold head at 1. rewrite !moment_app, !mass_app.
  rewrite (moment_shift (side1 * b1) s1 one), (mass_shift (side1 * b1) s1 one).
  rewrite (moment_shift (side2 * b2) s2 two), (mass_shift (side2 * b2) s2 two).
  replace (side1 * b1 * (s - s1)) with (b1 * (side1 * (s - s1))) by ring.
  replace (side2 * b2 * (s - s2)) with (b2 * (side2 * (s - s2))) by ring.
  rewrite <- !Rplus_assoc.
  apply three_groups; try assumption.
  - now apply mass_pos.
  - apply mass_pos; destruct one; easy.
  - apply mass_pos; destruct two; easy.
Qed.
