(** The single head needs no softmax term from sharpness 1 on.

    Below 2 the pair of anchors around the query errs towards its middle, and so do not the anchors beyond the nearer
    of the pair: the two errors have opposite signs, and the larger one counts alone. *)

From Coq Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
From Interval Require Import Tactic.
From Anchorhead Require Import Softmax Sums Lattice Tails SingleHead.
Open Scope R_scope.

Lemma towards_the_middle y : 0 <= y -> (1 - y) * exp y <= (1 + y) * exp (- y).
Proof.
  intros Hy.
  set (f y := (1 + y) * exp (- y) - (1 - y) * exp y).
  assert (Df : forall x, is_derive f x (x * (exp x - exp (- x)))) by (intros x; unfold f; auto_derive; [easy|ring]).
  destruct (MVT_gen f 0 y (fun x => x * (exp x - exp (- x)))) as [z [Hz E]].
  - intros x _; apply Df.
  - intros x _; apply continuity_pt_filterlim, (ex_derive_continuous f); eexists; apply Df.
  - rewrite Rmin_left, Rmax_right in Hz by lra.
    assert (F0 : f 0 = 0) by (unfold f; rewrite Ropp_0, exp_0; ring).
    rewrite F0, !Rminus_0_r in E.
    assert (exp (- z) <= exp z) by (apply exp_le; lra).
    assert (0 <= z * (exp z - exp (- z)) * y) by (apply Rmult_le_pos; [apply Rmult_le_pos|]; lra).
    unfold f in E; lra.
Qed.

(** The mean of the pair lies on the far side of a query that is nearer to the left anchor. *)
Lemma pair_leans c x : 0 < c <= 2 -> 0 <= x <= / 2 -> x <= (1 - x) * exp (- (c * (1 - 2 * x))).
Proof.
  intros Hc Hx; pose proof (towards_the_middle (1 - 2 * x) ltac:(lra)) as T.
  set (y := 1 - 2 * x) in *.
  apply Rle_trans with ((1 - x) * exp (- (2 * y))).
  - replace (exp (- (2 * y))) with (exp (- y) * / exp y) by (rewrite <- exp_Ropp, <- exp_plus; f_equal; ring).
    pose proof (exp_pos y). apply (Rmult_le_reg_r (2 * exp y)); [lra|].
    replace ((1 - x) * (exp (- y) * / exp y) * (2 * exp y)) with (2 * (1 - x) * exp (- y)) by (field; lra).
    replace (2 * (1 - x)) with (1 + y) by (unfold y; ring).
    replace (x * (2 * exp y)) with ((1 - y) * exp y) by (unfold y; ring). exact T.
  - apply Rmult_le_compat_l; [lra|apply exp_le].
    assert (0 <= (2 - c) * y) by (apply Rmult_le_pos; unfold y; lra). lra.
Qed.

(** Anchors beyond the farther one of the pair. *)
Lemma tail_beyond_half n c y : 1 <= c -> / 2 <= y <= 1 -> tail 1 n c y <= / 3.
Proof.
  intros Hc Hy; unfold tail.
  assert (Hq : 0 < exp (- c) <= 3679 / 10000).
  { split; [apply exp_pos|]. apply Rle_trans with (exp (- 1)); [apply exp_le; lra|interval with (i_prec 40)]. }
  set (q := exp (- c)) in *.
  assert (Hq4 : 0 <= q ^ 4 < 1) by (apply pow_lt_1_compat; [lra|lia]).
  assert (G : total (S n) (fun k => INR (S k) * (q ^ 4) ^ k) <= / (1 - q ^ 4) ^ 2)
    by now apply total_arithmetic_geometric.
  rewrite total_first in G; simpl (INR 1) in G; simpl (_ ^ 0) in G.
  apply Rle_trans with (q ^ 2 * total n (fun i => INR (S (S i)) * (q ^ 4) ^ i)).
  - rewrite <- total_scale; apply total_le; intros i _; change (1 + i)%nat with (S i).
    assert (E : q ^ 2 * (q ^ 4) ^ i = exp (- (c * (4 * INR (S i) - 2)))).
    { rewrite <- pow_mult, <- pow_add; unfold q; rewrite <- exp_pow; f_equal.
      rewrite (S_INR i), plus_INR, mult_INR; simpl; ring. }
    replace (q ^ 2 * (INR (S (S i)) * (q ^ 4) ^ i)) with (INR (S (S i)) * (q ^ 2 * (q ^ 4) ^ i)) by ring.
    rewrite E, (S_INR (S i)). pose proof (pos_INR i).
    assert (Ek : INR (S i) = INR i + 1) by apply S_INR; set (k := INR (S i)) in *.
    apply Rmult_le_compat; [lra|apply Rlt_le, exp_pos|lra|]. apply exp_le.
    assert (0 <= c * (k * (y - / 2))) by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]).
    assert (Q : 0 <= (k - 1) * (k - 2)).
    { rewrite Ek; destruct i as [|i]; [simpl; lra|]. rewrite S_INR; pose proof (pos_INR i); nra. }
    assert (0 <= c * ((k - 1) * (k - 2))) by (apply Rmult_le_pos; lra). lra.
  - assert (G2 : q ^ 4 * total n (fun i => INR (S (S i)) * (q ^ 4) ^ i) <= / (1 - q ^ 4) ^ 2 - 1).
    { rewrite <- total_scale.
      rewrite (total_ext n (fun k => q ^ 4 * (INR (S (S k)) * (q ^ 4) ^ k))
                 (fun k => INR (S (S k)) * (q ^ 4) ^ S k))
        by (intros; change ((q ^ 4) ^ S k) with (q ^ 4 * (q ^ 4) ^ k); ring).
      lra. }
    assert (P4 : 0 < q ^ 4) by (apply pow_lt; lra).
    apply (Rmult_le_reg_l (q ^ 4)); [exact P4|].
    apply Rle_trans with (q ^ 2 * (/ (1 - q ^ 4) ^ 2 - 1)).
    { replace (q ^ 4 * (q ^ 2 * total n (fun i => INR (S (S i)) * (q ^ 4) ^ i)))
        with (q ^ 2 * (q ^ 4 * total n (fun i => INR (S (S i)) * (q ^ 4) ^ i))) by ring.
      apply Rmult_le_compat_l; [apply pow2_ge_0|exact G2]. }
    replace (q ^ 2 * (/ (1 - q ^ 4) ^ 2 - 1)) with (q ^ 4 * (q ^ 2 * ((2 - q ^ 4) / (1 - q ^ 4) ^ 2))) by (field; lra).
    apply Rmult_le_compat_l; [lra|]. clearbody q; clear G G2 P4 Hq4; interval with (i_bisect q, i_prec 40).
Qed.

Section Pair.

Variables (c u w : R) (m n : nat).
Hypothesis c_range : 1 <= c <= 2.
Hypothesis in_cell : INR m <= w <= INR m + 1.
Hypothesis anchors_left : (0 < m)%nat -> w <= u.
Hypothesis anchors_right : (0 < n)%nat -> u <= w.
Hypothesis left_end : w < u -> w = INR m + 1.
Hypothesis right_end : u < w -> w = INR m.

Let W k := exp (bell c u k).
Let F k := W k * (INR k - w).

Lemma positive : 0 < c.
Proof. lra. Qed.

Lemma same_distance (y z : R) : y <= z -> 0 <= z - y <= z - y.
Proof. lra. Qed.

Lemma F_absolute k : Rabs (F k) = W k * Rabs (INR k - w).
Proof. unfold F; rewrite Rabs_mult, (Rabs_pos_eq (W k)); [reflexivity|apply Rlt_le, exp_pos]. Qed.

Lemma left_signed : - (W m * tail 1 m c (w - INR m)) <= total m F <= 0.
Proof.
  split.
  - pose proof (total_abs m F) as A.
    rewrite (total_ext m (fun k => Rabs (F k)) (fun k => W k * Rabs (INR k - w))) in A by (intros; apply F_absolute).
    pose proof (left_sum c u w (fun y => y) positive same_distance 1 m m
                  ltac:(lia) ltac:(lia) ltac:(lra) anchors_left) as B.
    pose proof (Rle_abs (- total m F)) as N; rewrite Rabs_Ropp in N. unfold W in *; lra.
  - rewrite <- (total_zero m); apply total_le; intros k Hk; unfold F.
    assert (INR k <= INR m) by (apply le_INR; lia). assert (0 < W k) by apply exp_pos. nra.
Qed.

Lemma right_signed : 0 <= total n (fun i => F (m + 2 + i)) <= W (m + 1) * tail 1 n c (INR m + 1 - w).
Proof.
  assert (E1 : INR (m + 1) = INR m + 1) by (rewrite plus_INR; simpl; ring).
  split.
  - apply total_nonneg; intros k _; unfold F.
    rewrite !plus_INR; simpl (INR 2); pose proof (pos_INR k). apply Rmult_le_pos; [apply Rlt_le, exp_pos|lra].
  - eapply Rle_trans; [apply Rle_abs|]. eapply Rle_trans; [apply total_abs|].
    rewrite (total_ext n _ (fun i => W (m + 1 + 1 + i) * Rabs (INR (m + 1 + 1 + i) - w))).
    2: { intros k _; rewrite F_absolute; replace (m + 1 + 1 + k)%nat with (m + 2 + k)%nat by lia; reflexivity. }
    rewrite <- E1.
    apply (right_sum c u w (fun y => y) positive same_distance 1 n (m + 1)); rewrite ?E1; lia || lra || assumption.
Qed.

Lemma moderate_error : Rabs (attention (m + (2 + n)) (bell c u) INR - w) <= 2 / 3.
Proof.
  rewrite attention_minus by lia.
  change (Rabs (total (m + (2 + n)) F / total (m + (2 + n)) W) <= 2 / 3).
  assert (L : forall f, total (m + (2 + n)) f
                        = total m f + (f m + f (m + 1)%nat + total n (fun i => f (m + 2 + i)%nat))).
  { intros f; rewrite !total_app; simpl; rewrite Nat.add_0_r, Rplus_0_l.
    do 2 f_equal. apply total_ext; intros; f_equal; lia. }
  assert (P0 : 0 < W m) by apply exp_pos; assert (P1 : 0 < W (m + 1)) by apply exp_pos.
  assert (ML : 0 <= total m W) by (apply total_nonneg; intros; apply Rlt_le, exp_pos).
  assert (MR : 0 <= total n (fun i => W (m + 2 + i))) by (apply total_nonneg; intros; apply Rlt_le, exp_pos).
  apply quotient_le with (W m + W (m + 1)); [lra|rewrite L; lra|].
  rewrite L; pose proof left_signed as SL; pose proof right_signed as SR.
  assert (E1 : INR (m + 1) = INR m + 1) by (rewrite plus_INR; simpl; ring).
  assert (R1 : W (m + 1) = exp (- (c * (1 - 2 * (u - INR m)))) * W m).
  { unfold W, bell; rewrite <- exp_plus, E1; f_equal; ring. }
  assert (R0 : W m = exp (- (c * (1 - 2 * (INR m + 1 - u)))) * W (m + 1)).
  { unfold W, bell; rewrite <- exp_plus, E1; f_equal; ring. }
  assert (EF : F m + F (m + 1) = (1 - (w - INR m)) * W (m + 1) - (w - INR m) * W m) by (unfold F; rewrite E1; ring).
  set (x := w - INR m) in *.
  assert (T : forall k y, 0 <= y <= 1 -> tail 1 k c y <= 45 / 100).
  { intros k y Hy; eapply Rle_trans; [apply tails_sharp; lra|].
    assert (0 < exp (- c) <= 3679 / 10000).
    { split; [apply exp_pos|]. apply Rle_trans with (exp (- 1)); [apply exp_le; lra|interval with (i_prec 40)]. }
    set (q := exp (- c)) in *; clearbody q; interval with (i_prec 40). }
  set (tl := tail 1 m c x) in *; set (tr := tail 1 n c (INR m + 1 - w)) in *.
  assert (Hl : tl <= 45 / 100) by (apply T; unfold x; lra).
  assert (Hr : tr <= 45 / 100) by (apply T; lra).
  destruct (Rle_or_lt u (INR m + / 2)) as [Hu|Hu].
  - assert (Hx : 0 <= x <= / 2).
    { unfold x; destruct (Rle_or_lt w u); [lra|]. rewrite right_end by assumption; lra. }
    assert (W10 : W (m + 1) <= W m).
    { rewrite R1; rewrite <- (Rmult_1_l (W m)) at 2; apply Rmult_le_compat_r; [lra|].
      apply Rle_trans with (exp 0); [apply exp_le|rewrite exp_0; lra].
      assert (0 <= c * (1 - 2 * (u - INR m))) by (apply Rmult_le_pos; lra). lra. }
    assert (Pair : 0 <= F m + F (m + 1)).
    { rewrite EF; destruct (Rle_or_lt w u) as [Hw|Hw].
      - assert (w = u) by (destruct Hw as [Hw|Hw]; [pose proof (left_end Hw); unfold x in Hx; lra|exact Hw]).
        assert (Ex : u - INR m = x) by (unfold x; lra). rewrite Ex in R1.
        pose proof (pair_leans c x ltac:(lra) Hx) as Lean. rewrite R1. nra.
      - assert (x = 0) by (unfold x; rewrite right_end by assumption; ring). nra. }
    assert (Hr3 : tr <= / 3) by (apply tail_beyond_half; unfold x in Hx; lra).
    assert (F m + F (m + 1) <= / 2 * (W m + W (m + 1))) by (rewrite EF; nra).
    assert (W m * tl <= W m * (45 / 100)) by (apply Rmult_le_compat_l; lra).
    assert (W (m + 1) * tr <= W (m + 1) * / 3) by (apply Rmult_le_compat_l; lra).
    apply Rabs_le; lra.
  - assert (Hx : / 2 <= x <= 1).
    { unfold x; destruct (Rle_or_lt u w); [lra|]. rewrite left_end by assumption; lra. }
    assert (W01 : W m <= W (m + 1)).
    { rewrite R0; rewrite <- (Rmult_1_l (W (m + 1))) at 2; apply Rmult_le_compat_r; [lra|].
      apply Rle_trans with (exp 0); [apply exp_le|rewrite exp_0; lra].
      assert (0 <= c * (1 - 2 * (INR m + 1 - u))) by (apply Rmult_le_pos; lra). lra. }
    assert (Pair : F m + F (m + 1) <= 0).
    { rewrite EF; destruct (Rle_or_lt u w) as [Hw|Hw].
      - assert (w = u) by (destruct Hw as [Hw|Hw]; [pose proof (right_end Hw); unfold x in Hx; lra|lra]).
        assert (Ex : INR m + 1 - u = 1 - x) by (unfold x; lra). rewrite Ex in R0.
        pose proof (pair_leans c (1 - x) ltac:(lra) ltac:(lra)) as Lean. rewrite R0. nra.
      - assert (x = 1) by (unfold x; rewrite left_end by assumption; ring). nra. }
    assert (Hl3 : tl <= / 3) by (apply tail_beyond_half; lra).
    assert (- (/ 2 * (W m + W (m + 1))) <= F m + F (m + 1)) by (rewrite EF; nra).
    assert (W m * tl <= W m * / 3) by (apply Rmult_le_compat_l; lra).
    assert (W (m + 1) * tr <= W (m + 1) * (45 / 100)) by (apply Rmult_le_compat_l; lra).
    apply Rabs_le; lra.
Qed.

End Pair.

Theorem single_head_moderate d (w x : nat -> R) t p a b beta :
  (2 <= p)%nat -> a < b -> 1 <= beta * spacing a b p ^ 2 ->
  let s := dot d w x + t in
  Rabs (single_head p a b beta s - Range a b s) <= (b - a) / INR p.
Proof.
  intros Hp Hab Hc s; pose proof (p_real p Hp) as P; pose proof (D_pos p a b Hp Hab) as PD.
  destruct (Rle_or_lt 2 (beta * spacing a b p ^ 2)) as [Hc2|Hc2]; [now apply single_head_sharp|].
  assert (Hb : 0 < beta) by (apply (Rmult_lt_reg_r (spacing a b p ^ 2)); [nra|lra]).
  destruct (Nat.eq_dec p 2) as [E2|E2].
  - apply Rle_trans with (spacing a b p * (/ 2 + 0)).
    + apply single_head_tails; try assumption.
      intros n Hn y _; replace n with O by lia; unfold tail; simpl; lra.
    + pose proof (half_spacing p a b Hp Hab); lra.
  - assert (P3 : 3 <= INR p) by (replace 3 with (INR 3) by (simpl; ring); apply le_INR; lia).
    apply Rle_trans with (spacing a b p * (2 / 3)).
    + rewrite (single_head_in_spacings p a b beta Hp Hab); apply Rmult_le_compat_l; [lra|].
      set (u := (s - a) / spacing a b p); set (c := beta * spacing a b p ^ 2) in *.
      assert (P' : INR p = INR (p - 2) + 2).
      { replace p with (p - 2 + 2)%nat at 1 by lia; rewrite plus_INR; simpl; ring. }
      pose proof (range_between 0 (INR p - 1) u ltac:(lra)) as Hw; set (v := Range 0 (INR p - 1) u) in *.
      assert (Below : v < u -> v = INR p - 1).
      { unfold v, Range; intros H; destruct (Rle_or_lt (INR p - 1) (Rmax 0 u)); [now rewrite Rmin_left|].
        rewrite Rmin_right in H by lra; pose proof (Rmax_r 0 u); lra. }
      assert (Above : u < v -> v = 0).
      { unfold v, Range; intros H; destruct (Rle_or_lt u 0); [rewrite Rmax_left, Rmin_right; lra|].
        rewrite Rmax_right in H by lra; pose proof (Rmin_r (INR p - 1) u); lra. }
      destruct (find_cell (p - 2) v ltac:(lra)) as [m [Hm Hcell]].
      assert (Hmp : INR m <= INR (p - 2)) by now apply le_INR.
      pose proof (pos_INR m).
      replace p with (m + (2 + (p - 2 - m)))%nat at 1 by lia.
      apply moderate_error; [lra|lra| | | |].
      * intros Hm0; apply Rnot_lt_le; intros H'; specialize (Above H'). pose proof (lt_0_INR m Hm0); lra.
      * intros Hr; apply Rnot_lt_le; intros H'; specialize (Below H').
        assert (INR m + 1 <= INR (p - 2)) by (rewrite <- S_INR; apply le_INR; lia). lra.
      * intros H'; specialize (Below H'); lra.
      * intros H'; specialize (Above H'); lra.
    + unfold spacing.
      replace ((b - a) / (INR p - 1) * (2 / 3)) with ((b - a) * / ((INR p - 1) * (3 / 2))) by (field; lra).
      apply Rmult_le_compat_l; [lra|apply Rinv_le_contravar; lra].
Qed.
