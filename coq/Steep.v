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

    How to apply it to stored weights (everything is a dyadic rational, so all gauges are exact): on each
    side of the kink use [kink] with the list of the ruling group and its gauge, the list of the other and
    its gauge, [t := s - s0] or [t := s0 - s], and [b > 0] such that the gauges differ by [b t]. A gauge [g s + o]
    is added to all logits of a group by [shift g o]. With slopes about [-A] left of the kink and about 0
    right of it:

        right of s0: ruling = flat group, g = o = 0;  other = steep group, g1 = A, o1 = - A s0;
                     b = A, t = s - s0
        left of s0:  ruling = steep group, g = A, o = - A s0;  other = flat group, g1 = o1 = 0;
                     b = A, t = s0 - s.

    A head with three groups (truncated linear): [two_kinks] on each of its three stretches, every other group
    with its own [b], [t]. Groups of two keys fulfil the second hypothesis by [two_keys_leave], groups
    of one key by [one_key]; the order of keys is mended by [head_permutation]; sums of heads: [sum_of_heads],
    [scaled_head], [biased_head] in Softmax.v. *)

From Coq Require Import Reals List Lra.
From Coquelicot Require Import Coquelicot.
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

Lemma mass_regauge g o g1 o1 keys s :
  mass (shift g o keys) s = exp (- ((g1 - g) * s + (o1 - o))) * mass (shift g1 o1 keys) s.
Proof.
  apply (Rmult_eq_reg_l (exp (- (g * s + o)))); [|apply Rgt_not_eq, exp_pos].
  rewrite <- mass_shift, <- Rmult_assoc, <- exp_plus.
  replace (- (g * s + o) + - ((g1 - g) * s + (o1 - o))) with (- (g1 * s + o1)) by ring.
  apply mass_shift.
Qed.

Lemma moment_regauge g o g1 o1 keys s :
  moment (shift g o keys) s = exp (- ((g1 - g) * s + (o1 - o))) * moment (shift g1 o1 keys) s.
Proof.
  apply (Rmult_eq_reg_l (exp (- (g * s + o)))); [|apply Rgt_not_eq, exp_pos].
  rewrite <- moment_shift, <- Rmult_assoc, <- exp_plus.
  replace (- (g * s + o) + - ((g1 - g) * s + (o1 - o))) with (- (g1 * s + o1)) by ring.
  apply moment_shift.
Qed.

(** [ruling] and [rest] are seen in gauges of their own, [g s + o] and [g1 s + o1], in which their logits are
    moderate; [b t] is what these differ by. *)
Theorem kink ruling rest g o g1 o1 b t s f e L d :
  ruling <> [] -> rest <> [] -> 0 < b -> 0 <= t -> 0 <= d -> 0 <= L ->
  (g1 - g) * s + (o1 - o) = b * t ->
  Rabs (head (shift g o ruling) s - f) <= e ->
  Rabs (head (shift g1 o1 rest) s - f) <= e + L * t ->
  mass (shift g1 o1 rest) s <= exp d * mass (shift g o ruling) s ->
  Rabs (head (ruling ++ rest) s - f) <= e + L * ((kappa + d) / b).
Proof.
  intros H0 H1 Hb Ht Hd HL G A B C.
  assert (Hm : 0 < mass (shift g o ruling) s) by now apply mass_pos, shift_some.
  assert (Hm1 : 0 < mass (shift g1 o1 rest) s) by now apply mass_pos, shift_some.
  rewrite (head_shift g o) by now destruct ruling.
  unfold head at 1, shift at 1 2; rewrite !map_app, moment_app, mass_app.
  change (map (shifted g o)) with (shift g o).
  rewrite (moment_regauge g o g1 o1 rest), (mass_regauge g o g1 o1 rest), G.
  now apply two_groups.
Qed.

(** Two other groups, each in a gauge of its own. *)
Theorem two_kinks ruling one two g o g1 o1 g2 o2 b1 b2 t1 t2 s f e L1 L2 d1 d2 :
  ruling <> [] -> one <> [] -> two <> [] -> 0 < b1 -> 0 < b2 -> 0 <= t1 -> 0 <= t2 ->
  0 <= d1 -> 0 <= d2 -> 0 <= L1 -> 0 <= L2 ->
  (g1 - g) * s + (o1 - o) = b1 * t1 ->
  (g2 - g) * s + (o2 - o) = b2 * t2 ->
  Rabs (head (shift g o ruling) s - f) <= e ->
  Rabs (head (shift g1 o1 one) s - f) <= e + L1 * t1 ->
  Rabs (head (shift g2 o2 two) s - f) <= e + L2 * t2 ->
  mass (shift g1 o1 one) s <= exp d1 * mass (shift g o ruling) s ->
  mass (shift g2 o2 two) s <= exp d2 * mass (shift g o ruling) s ->
  Rabs (head (ruling ++ one ++ two) s - f) <= e + L1 * ((kappa + d1) / b1) + L2 * ((kappa + d2) / b2).
Proof.
  intros H0 H1 H2 Hb1 Hb2 Ht1 Ht2 Hd1 Hd2 HL1 HL2 G1 G2 A B1 B2 C1 C2.
  assert (Hm : 0 < mass (shift g o ruling) s) by now apply mass_pos, shift_some.
  assert (Hm1 : 0 < mass (shift g1 o1 one) s) by now apply mass_pos, shift_some.
  assert (Hm2 : 0 < mass (shift g2 o2 two) s) by now apply mass_pos, shift_some.
  rewrite (head_shift g o) by now destruct ruling.
  unfold head at 1, shift at 1 2; rewrite !map_app, !moment_app, !mass_app.
  change (map (shifted g o)) with (shift g o).
  rewrite (moment_regauge g o g1 o1 one), (mass_regauge g o g1 o1 one), G1.
  rewrite (moment_regauge g o g2 o2 two), (mass_regauge g o g2 o2 two), G2.
  rewrite <- !Rplus_assoc.
  now apply three_groups.
Qed.

(** ** How fast a group of two keys leaves a target. *)

Definition sigmoid (x : R) : R := / (1 + exp (- x)).

Lemma sigmoid_derive x : is_derive sigmoid x (exp (- x) / (1 + exp (- x)) ^ 2).
Proof.
  unfold sigmoid; pose proof (exp_pos (- x)); auto_derive; [lra|field; lra].
Qed.

Lemma sigmoid_lipschitz x y : Rabs (sigmoid x - sigmoid y) <= / 4 * Rabs (x - y).
Proof.
  destruct (MVT_gen sigmoid y x (fun u => exp (- u) / (1 + exp (- u)) ^ 2)) as [c [_ Hc]].
  - intros u _; apply sigmoid_derive.
  - intros u _; apply continuity_pt_filterlim, (ex_derive_continuous sigmoid).
    eexists; apply sigmoid_derive.
  - rewrite Hc, Rabs_mult; apply Rmult_le_compat_r; [apply Rabs_pos|cbv beta].
    pose proof (exp_pos (- c)) as P; set (E := exp (- c)) in *.
    rewrite Rabs_pos_eq.
    + apply (Rmult_le_reg_r ((1 + E) ^ 2)); [nra|].
      replace (E / (1 + E) ^ 2 * (1 + E) ^ 2) with E by (field; lra). pose proof (pow2_ge_0 (1 - E)); lra.
    + apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat; nra].
Qed.

Lemma two_keys_sigmoid k1 k2 s :
  head [k1; k2] s
  = value k1 + (value k2 - value k1) * sigmoid ((slope k2 - slope k1) * s + (offset k2 - offset k1)).
Proof.
  unfold head, sigmoid; simpl; unfold weight.
  replace (slope k1 * s + offset k1)
    with ((slope k2 * s + offset k2) + - ((slope k2 - slope k1) * s + (offset k2 - offset k1))) by ring.
  rewrite exp_plus.
  set (E := exp (slope k2 * s + offset k2)); set (F := exp (- _)).
  assert (0 < E) by apply exp_pos; assert (0 < F) by apply exp_pos.
  field; nra.
Qed.

(** With slopes -h, h and values -1/h, 1/h the rate is 1. *)
Theorem two_keys_lipschitz k1 k2 s s0 :
  Rabs (head [k1; k2] s - head [k1; k2] s0)
  <= Rabs (value k2 - value k1) * Rabs (slope k2 - slope k1) / 4 * Rabs (s - s0).
Proof.
  rewrite !two_keys_sigmoid.
  set (z := (slope k2 - slope k1) * s + (offset k2 - offset k1)).
  set (z0 := (slope k2 - slope k1) * s0 + (offset k2 - offset k1)).
  replace (value k1 + (value k2 - value k1) * sigmoid z
           - (value k1 + (value k2 - value k1) * sigmoid z0))
    with ((value k2 - value k1) * (sigmoid z - sigmoid z0)) by ring.
  rewrite Rabs_mult.
  pose proof (sigmoid_lipschitz z z0) as H.
  replace (z - z0) with ((slope k2 - slope k1) * (s - s0)) in H by (unfold z, z0; ring).
  rewrite Rabs_mult in H.
  pose proof (Rabs_pos (value k2 - value k1)) as P.
  pose proof (Rmult_le_compat_l _ _ _ P H). lra.
Qed.

(** Two keys leave a target [g] that is L-Lipschitz from the kink on: what [kink] asks of the other group. *)
Theorem two_keys_leave k1 k2 s s0 f f0 e L :
  Rabs (head [k1; k2] s0 - f0) <= e ->
  Rabs (f - f0) <= (L - Rabs (value k2 - value k1) * Rabs (slope k2 - slope k1) / 4) * Rabs (s - s0) ->
  Rabs (head [k1; k2] s - f) <= e + L * Rabs (s - s0).
Proof.
  intros H0 Hf.
  replace (head [k1; k2] s - f)
    with ((head [k1; k2] s - head [k1; k2] s0) + ((head [k1; k2] s0 - f0) + (f0 - f))) by ring.
  pose proof (two_keys_lipschitz k1 k2 s s0).
  rewrite (Rabs_minus_sym f) in Hf.
  eapply Rle_trans; [apply Rabs_triang|].
  pose proof (Rabs_triang (head [k1; k2] s0 - f0) (f0 - f)). lra.
Qed.

(** A group of one key has its value everywhere. *)
Lemma one_key k s : head [k] s = value k.
Proof.
  unfold head; simpl; rewrite !Rplus_0_r.
  pose proof (weight_pos k s); field; lra.
Qed.
