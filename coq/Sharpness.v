(** At sharpness 2.7 to 2.75 the single head is within 0.064 spacings, with 2.71 to 2.73 within 0.063, for every
    number of anchors and every query. The largest error at 2.75 is 0.0636 spacings.

    The four anchors nearest to the query decide (three or two at the ends): one inequality on [[0, 1]], which
    [interval] proves. All others add less than 0.00005. *)

From Coq Require Import Reals Lra Lia.
From Interval Require Import Tactic.
From Anchorhead Require Import Softmax Sums Lattice Tails SingleHead FourAnchors.
Open Scope R_scope.

Section Inside.

Variables (c u K T : R) (m r : nat).
Hypothesis c_half : / 2 <= c.
Hypothesis K_core : core c K.
Hypothesis T_tail : forall n x, 0 <= x -> tail 2 n c x <= T.
Hypothesis in_cell : INR m <= u <= INR m + 1.

Let W k := exp (bell c u k).
Let F k := W k * (INR k - u).
Let x := u - INR m.

Lemma c_positive : 0 < c.
Proof. lra. Qed.

Lemma identity_monotone (y z : R) : y <= z -> 0 <= z - y <= z - y.
Proof. lra. Qed.

Lemma F_abs k : Rabs (F k) = W k * Rabs (INR k - u).
Proof. unfold F; rewrite Rabs_mult, (Rabs_pos_eq (W k)); [reflexivity|apply Rlt_le, exp_pos]. Qed.

Lemma W_relative k : W k = exp (- (c * (INR k - INR m) * (INR k - INR m - 2 * x))) * W m.
Proof. unfold W, bell, x; rewrite <- exp_plus; f_equal; ring. Qed.

Lemma left_split : exists l, (l = 0 \/ l = 1) /\
  Rabs (total m F + l * ((1 + x) * left_next c x) * W m) <= T * W m /\
  l * left_next c x * W m <= total m W.
Proof.
  assert (PW : 0 < W m) by apply exp_pos.
  assert (PT : 0 <= T) by exact (T_tail O 0 (Rle_refl 0)).
  destruct (Nat.eq_dec m 0) as [Em|Em].
  - exists 0; split; [now left|].
    assert (Z : forall f, total m f = 0) by (intros; now rewrite Em).
    rewrite !Z; split; [|lra].
    replace (0 + _) with 0 by ring; rewrite Rabs_R0; nra.
  - exists 1; split; [now right|].
    pose (n := (m - 1)%nat).
    assert (En : INR n = INR m - 1) by (unfold n; rewrite minus_INR by lia; reflexivity).
    assert (S1 : forall f, total m f = total n f + f n)
      by (intros; replace m with (S n) at 1 by (unfold n; lia); reflexivity).
    assert (E : W n = left_next c x * W m).
    { rewrite (W_relative n), En; unfold left_next; do 2 f_equal; ring. }
    rewrite !S1; split.
    + assert (EF : F n = - ((1 + x) * left_next c x * W m)).
      { unfold F; rewrite E, En; unfold x; ring. }
      rewrite EF.
      replace (total n F + - ((1 + x) * left_next c x * W m) + 1 * ((1 + x) * left_next c x) * W m)
        with (total n F) by ring.
      eapply Rle_trans; [apply total_abs|].
      rewrite (total_ext n _ (fun k => W k * Rabs (INR k - u))) by (intros; apply F_abs).
      eapply Rle_trans.
      * apply (left_sum c u u (fun y => y) c_positive identity_monotone 2 n m);
          unfold n; lia || lra || (intros; lra).
      * rewrite Rmult_comm; apply Rmult_le_compat_r; [lra|apply T_tail; lra].
    + rewrite E.
      assert (0 <= total n W) by (apply total_nonneg; intros; apply Rlt_le, exp_pos). lra.
Qed.

Lemma right_split : exists l, (l = 0 \/ l = 1) /\
  Rabs (total r (fun i => F (m + 2 + i)) - l * ((2 - x) * right_next c x) * W m) <= T * W (m + 1) /\
  l * right_next c x * W m <= total r (fun i => W (m + 2 + i)).
Proof.
  assert (PW : 0 < W (m + 1)) by apply exp_pos.
  assert (E1 : INR (m + 1) = INR m + 1) by (rewrite plus_INR; simpl; ring).
  destruct r as [|n] eqn:Er.
  - exists 0; split; [now left|split].
    + simpl; replace (0 - _) with 0 by ring; rewrite Rabs_R0.
      assert (PT : 0 <= T) by exact (T_tail O 0 (Rle_refl 0)). nra.
    + simpl; lra.
  - exists 1; split; [now right|].
    rewrite !total_first, Nat.add_0_r.
    assert (E2 : INR (m + 2) = INR m + 2) by (rewrite plus_INR; simpl; ring).
    assert (E : W (m + 2) = right_next c x * W m).
    { rewrite (W_relative (m + 2)); unfold right_next; do 2 f_equal; rewrite E2; ring. }
    split.
    + assert (EF : F (m + 2) = (2 - x) * right_next c x * W m).
      { unfold F; rewrite E, E2; unfold x; ring. }
      rewrite EF.
      match goal with |- Rabs (?a + ?t - ?b) <= _ => replace (a + t - b) with t by ring end.
      eapply Rle_trans; [apply total_abs|].
      rewrite (total_ext n _ (fun i => W (m + 1 + 2 + i) * Rabs (INR (m + 1 + 2 + i) - u))).
      2: { intros k _; rewrite F_abs; replace (m + 1 + 2 + k)%nat with (m + 2 + S k)%nat by lia; reflexivity. }
      eapply Rle_trans.
      * apply (right_sum c u u (fun y => y) c_positive identity_monotone 2 n (m + 1));
          rewrite ?E1; lia || lra || (intros; lra).
      * rewrite Rmult_comm; apply Rmult_le_compat_r; [lra|apply T_tail; lra].
    + rewrite E.
      assert (0 <= total n (fun k => W (m + 2 + S k))) by (apply total_nonneg; intros; apply Rlt_le, exp_pos).
      lra.
Qed.

Lemma inside_error : Rabs (attention (m + (2 + r)) (bell c u) INR - u) <= K + T.
Proof.
  rewrite attention_minus by lia.
  change (Rabs (total (m + (2 + r)) F / total (m + (2 + r)) W) <= K + T).
  assert (L : forall f, total (m + (2 + r)) f
                        = total m f + (f m + f (m + 1)%nat + total r (fun i => f (m + 2 + i)%nat))).
  { intros f; rewrite !total_app; simpl; rewrite Nat.add_0_r, Rplus_0_l.
    do 2 f_equal. apply total_ext; intros; f_equal; lia. }
  rewrite !L.
  destruct left_split as [l [Hl [SL ML]]]; destruct right_split as [h [Hh [SR MR]]].
  assert (E1 : INR (m + 1) = INR m + 1) by (rewrite plus_INR; simpl; ring).
  assert (EW : W (m + 1) = right_one c x * W m).
  { rewrite (W_relative (m + 1)); unfold right_one; do 2 f_equal; rewrite E1; ring. }
  assert (F0 : F m = - x * W m) by (unfold F, x; ring).
  assert (F1 : F (m + 1) = (1 - x) * right_one c x * W m) by (unfold F; rewrite EW, E1; unfold x; ring).
  assert (P0 : 0 < W m) by apply exp_pos. assert (P1 : 0 < W (m + 1)) by apply exp_pos.
  pose proof (K_core x l h ltac:(unfold x; lra) Hl Hh) as C.
  assert (PT : 0 <= T) by exact (T_tail O 0 (Rle_refl 0)).
  assert (Pl : 0 <= l * left_next c x).
  { apply Rmult_le_pos; [destruct Hl; lra|apply Rlt_le, exp_pos]. }
  assert (Ph : 0 <= h * right_next c x).
  { apply Rmult_le_pos; [destruct Hh; lra|apply Rlt_le, exp_pos]. }
  apply quotient_le with (core_mass c x l h * W m).
  - apply Rmult_lt_0_compat; [|exact P0]. unfold core_mass. pose proof (exp_pos (- (c * (1 - 2 * x)))).
    unfold right_one; lra.
  - unfold core_mass; rewrite EW; lra.
  - set (A := total m F + l * ((1 + x) * left_next c x) * W m) in *.
    set (B := total r (fun i => F (m + 2 + i)) - h * ((2 - x) * right_next c x) * W m) in *.
    replace (total m F + (F m + F (m + 1) + total r (fun i => F (m + 2 + i))))
      with (core_moment c x l h * W m + (A + B)) by (unfold A, B, core_moment; rewrite F0, F1; ring).
    eapply Rle_trans; [apply Rabs_triang|].
    rewrite Rabs_mult, (Rabs_pos_eq (W m)) by lra.
    assert (Rabs (core_moment c x l h) * W m <= K * core_mass c x l h * W m) by (apply Rmult_le_compat_r; lra).
    pose proof (Rabs_triang A B).
    assert (T * W m + T * W (m + 1) <= T * (core_mass c x l h * W m)).
    { rewrite <- Rmult_plus_distr_l; apply Rmult_le_compat_l; [exact PT|].
      unfold core_mass; rewrite EW. nra. }
    lra.
Qed.

End Inside.

(** ** Queries beyond the ends. *)

Section Beyond.

Variables (c u K : R) (n : nat).
Hypothesis c_pos : 0 < c.
Hypothesis K_small : K <= 1.
Hypothesis K_ends : exp (- c) / (1 - exp (- c) ^ 3) ^ 2 <= K * (1 + exp (- c)).

Let W k := exp (bell c u k).

Lemma one_weighs_little heavy light T :
  0 < heavy -> 0 < light -> light <= exp (- c) * heavy -> T <= / (1 - exp (- c) ^ 3) ^ 2 - 1 ->
  light * (1 + T) <= K * (heavy + light).
Proof.
  intros Hh Hl Hq HT; pose proof (q_range c c_pos) as Q; set (q := exp (- c)) in *.
  assert (P : 1 <= / (1 - q ^ 3) ^ 2).
  { assert (0 <= q ^ 3 < 1) by (apply pow_lt_1_compat; [lra|lia]).
    rewrite <- Rinv_1; apply Rinv_le_contravar; nra. }
  unfold Rdiv in K_ends.
  set (G := / (1 - q ^ 3) ^ 2) in *.
  apply Rle_trans with (light * G); [apply Rmult_le_compat_l; lra|].
  assert (light * (G - K) <= q * heavy * (G - K)) by (apply Rmult_le_compat_r; lra).
  assert (heavy * (q * G) <= heavy * (K * (1 + q))) by (apply Rmult_le_compat_l; lra).
  lra.
Qed.

Lemma below_error : u <= 0 -> Rabs (attention (2 + n) (bell c u) INR - 0) <= K.
Proof.
  intros Hu; rewrite attention_minus by lia.
  assert (E1 : W 1 <= exp (- c) * W 0).
  { unfold W, bell; rewrite <- exp_plus; apply exp_le; simpl INR.
    assert (0 <= c * - u) by (apply Rmult_le_pos; lra). lra. }
  rewrite !total_app; simpl (total 2 _).
  change (fun k => exp (bell c u (2 + k))) with (fun k => W (2 + k)).
  fold (W 0) (W 1).
  assert (P0 : 0 < W 0) by apply exp_pos; assert (P1 : 0 < W 1) by apply exp_pos.
  assert (PM : 0 <= total n (fun k => W (2 + k))) by (apply total_nonneg; intros; apply Rlt_le, exp_pos).
  apply quotient_le with (W 0 + W 1); [lra|lra|].
  pose proof (right_sum c u 0 (fun y => y) c_pos identity_monotone 1 n 1 ltac:(lia) ltac:(simpl; lra) ltac:(lra)) as S.
  replace (INR 1 - 0) with 1 in S by (simpl; ring).
  pose proof (tail_from_beyond n c c_pos) as HT.
  pose proof (one_weighs_little (W 0) (W 1) _ P0 P1 E1 HT) as H.
  eapply Rle_trans; [|exact H].
  rewrite Rmult_plus_distr_l.
  eapply Rle_trans; [apply Rabs_triang|].
  apply Rplus_le_compat.
  - simpl INR; replace (0 + W 0 * (0 - 0) + W 1 * (1 - 0)) with (W 1 * 1) by ring; rewrite Rabs_pos_eq; lra.
  - eapply Rle_trans; [apply total_abs|]. eapply Rle_trans; [|exact S].
    apply total_le; intros k _; rewrite Rabs_mult, (Rabs_pos_eq (exp _)) by apply Rlt_le, exp_pos.
    apply Rle_refl.
Qed.

Lemma above_error : INR n + 1 <= u -> Rabs (attention (n + 2) (bell c u) INR - (INR n + 1)) <= K.
Proof.
  intros Hu; rewrite attention_minus by lia.
  assert (En : INR (n + 1) = INR n + 1) by (rewrite plus_INR; simpl; ring).
  assert (E1 : W n <= exp (- c) * W (n + 1)).
  { unfold W, bell; rewrite <- exp_plus, En; apply exp_le.
    assert (0 <= c * (u - (INR n + 1))) by (apply Rmult_le_pos; lra). lra. }
  rewrite !total_app; simpl (total 2 _).
  change (total n (fun k => exp (bell c u k))) with (total n W).
  rewrite !Nat.add_0_r, !Rplus_0_l; fold (W n) (W (n + 1)).
  assert (P0 : 0 < W n) by apply exp_pos; assert (P1 : 0 < W (n + 1)) by apply exp_pos.
  assert (PM : 0 <= total n W) by (apply total_nonneg; intros; apply Rlt_le, exp_pos).
  apply quotient_le with (W (n + 1) + W n); [lra|lra|].
  pose proof (left_sum c u (INR n + 1) (fun y => y) c_pos identity_monotone 1 n n
                ltac:(lia) ltac:(lia) ltac:(lra) ltac:(lra)) as S.
  replace (INR n + 1 - INR n) with 1 in S by ring.
  pose proof (tail_from_beyond n c c_pos) as HT.
  pose proof (one_weighs_little (W (n + 1)) (W n) _ P1 P0 E1 HT) as H.
  eapply Rle_trans; [|exact H].
  eapply Rle_trans; [apply Rabs_triang|].
  rewrite Rmult_plus_distr_l, (Rplus_comm (W n * 1)).
  apply Rplus_le_compat.
  - eapply Rle_trans; [apply total_abs|]. eapply Rle_trans; [|exact S].
    apply total_le; intros k _; rewrite Rabs_mult, (Rabs_pos_eq (exp _)) by apply Rlt_le, exp_pos.
    apply Rle_refl.
  - rewrite En; replace (W n * (INR n - (INR n + 1)) + W (n + 1) * (INR n + 1 - (INR n + 1))) with (- (W n * 1)) by ring.
    rewrite Rabs_Ropp, Rabs_pos_eq; lra.
Qed.

End Beyond.

(** ** The head. *)

Theorem single_head_fine p a b beta s K T :
  (2 <= p)%nat -> a < b -> 0 < beta ->
  let D := spacing a b p in
  let c := beta * D ^ 2 in
  / 2 <= c -> core c K -> 2 * exp (- c) ^ 4 / (1 - exp (- c) ^ 5) ^ 2 <= T -> K + T <= 1 ->
  exp (- c) / (1 - exp (- c) ^ 3) ^ 2 <= (K + T) * (1 + exp (- c)) ->
  Rabs (single_head p a b beta s - Range a b s) <= D * (K + T).
Proof.
  intros Hp Hab Hb D c Hc HK HT H1 HE.
  pose proof (D_pos p a b Hp Hab) as PD; fold D in PD. pose proof (p_real p Hp) as P.
  assert (P' : INR p = INR (p - 2) + 2).
  { replace p with (p - 2 + 2)%nat at 1 by lia; rewrite plus_INR; simpl; ring. }
  set (u := (s - a) / D).
  assert (EH : single_head p a b beta s = a + D * attention p (bell c u) INR).
  { rewrite (single_head_lattice p a b beta Hp Hab). do 2 f_equal.
    apply attention_ext; [reflexivity|]. intros k Hk; apply range_inside; split; [apply pos_INR|].
    rewrite P'. assert (INR k <= INR (S (p - 2))) by (apply le_INR; lia). rewrite S_INR in *; lra. }
  assert (Eb : b = a + D * (INR p - 1)) by (unfold D, spacing; field; lra).
  assert (ER : Range a b s = a + D * Range 0 (INR p - 1) u).
  { unfold u; rewrite <- range_affine by exact PD; rewrite <- Eb; reflexivity. }
  rewrite EH, ER.
  match goal with |- Rabs (a + D * ?x - (a + D * ?y)) <= _ =>
    replace (a + D * x - (a + D * y)) with (D * (x - y)) by ring end.
  rewrite Rabs_mult, (Rabs_pos_eq D) by lra. apply Rmult_le_compat_l; [lra|].
  unfold Range; destruct (Rle_or_lt u 0) as [Hu|Hu]; [|destruct (Rle_or_lt (INR p - 1) u) as [Hu'|Hu']].
  - rewrite Rmax_left, Rmin_right by lra. replace p with (2 + (p - 2))%nat by lia.
    apply below_error; assumption || lra.
  - rewrite Rmax_right, Rmin_left by lra.
    replace (INR p - 1) with (INR (p - 2) + 1) by lra. replace p with (p - 2 + 2)%nat at 1 by lia.
    apply above_error; assumption || lra.
  - rewrite Rmax_right, Rmin_right by lra.
    destruct (find_cell (p - 2) u ltac:(lra)) as [m [Hm Hcell]].
    replace p with (m + (2 + (p - 2 - m)))%nat by lia.
    apply inside_error; try assumption.
    intros n x Hx; eapply Rle_trans; [now apply tail_from_second|exact HT].
Qed.

(** Sharpness 2.7 to 2.75 (and what rounding adds to it): 0.064 spacings. *)
Theorem single_head_064 d (w x : nat -> R) t p a b beta :
  (2 <= p)%nat -> a < b -> 27 / 10 <= beta * spacing a b p ^ 2 <= 2751 / 1000 ->
  let s := dot d w x + t in
  Rabs (single_head p a b beta s - Range a b s) <= 64 / 1000 * spacing a b p.
Proof.
  intros Hp Hab Hc s; pose proof (D_pos p a b Hp Hab) as PD.
  assert (Hb : 0 < beta) by (apply (Rmult_lt_reg_r (spacing a b p ^ 2)); [nra|lra]).
  replace (64 / 1000 * spacing a b p) with (spacing a b p * (6395 / 100000 + 5 / 100000)) by field.
  apply single_head_fine; try assumption; try lra; [now apply core_wide| |];
    set (c := beta * spacing a b p ^ 2) in *; apply Rminus_le; interval with (i_bisect c, i_prec 40).
Qed.

(** Sharpness 2.71 to 2.73: 0.063 spacings. *)
Theorem single_head_063 d (w x : nat -> R) t p a b beta :
  (2 <= p)%nat -> a < b -> 271 / 100 <= beta * spacing a b p ^ 2 <= 273 / 100 ->
  let s := dot d w x + t in
  Rabs (single_head p a b beta s - Range a b s) <= 63 / 1000 * spacing a b p.
Proof.
  intros Hp Hab Hc s; pose proof (D_pos p a b Hp Hab) as PD.
  assert (Hb : 0 < beta) by (apply (Rmult_lt_reg_r (spacing a b p ^ 2)); [nra|lra]).
  replace (63 / 1000 * spacing a b p) with (spacing a b p * (6295 / 100000 + 5 / 100000)) by field.
  apply single_head_fine; try assumption; try lra; [now apply core_narrow| |];
    set (c := beta * spacing a b p ^ 2) in *; apply Rminus_le; interval with (i_bisect c, i_prec 40).
Qed.
