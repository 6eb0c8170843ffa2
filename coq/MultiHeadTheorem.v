(** The multi-head theorem in closed form. See MultiHead.v for the heads and for why it holds. *)

From Coq Require Import Reals Lra Lia.
From Interval Require Import Tactic.
From Anchorhead Require Import Softmax Sums Lattice Tails SingleHead Slices Dummies FarHeads MultiHead.
Open Scope R_scope.

(** Cells by which the heads together may miss beyond 3/4, with [q = exp (- c)]: tends to 0 as c grows. *)
Definition excess (q : R) : R :=
  q * (2 - q) / (1 - q) ^ 2
  + ((1 + q ^ 2) / (2 * (1 - q ^ 2) ^ 2) - / 2) * (1 + q)
  + q / (2 * (1 + q))
  + (1 + q ^ 2) / (1 - q ^ 2) ^ 3 * q ^ 2.

(** What the dummies leave of the inner edges. *)
Definition leakage (q : R) : R := 4 * q ^ 2 * (2 - q ^ 2) / (1 - q ^ 2) ^ 2.

Lemma square_of_q c : exp (- (2 * c)) = exp (- c) ^ 2.
Proof. rewrite <- exp_pow; f_equal; simpl; ring. Qed.

Lemma smear_bound_closed c T : 0 < c ->
  let q := exp (- c) in
  smear_bound c T
  = 3 / 4 + T + ((1 + q ^ 2) / (2 * (1 - q ^ 2) ^ 2) - / 2) * (1 + q) + q / (2 * (1 + q))
    + (1 + q ^ 2) / (1 - q ^ 2) ^ 3 * q ^ 2.
Proof.
  intros Hc q; pose proof (q_range c Hc) as Hq; fold q in Hq.
  unfold smear_bound, smear, far, reach; rewrite square_of_q.
  replace (2 * c * / 2) with c by field.
  replace (exp c) with (/ q) by (unfold q; rewrite exp_Ropp, Rinv_inv; reflexivity).
  fold q; assert (0 < q ^ 2 < 1) by nra.
  field; repeat split; nra.
Qed.

Lemma leakage_closed c :
  4 * exp (- (2 * c)) * (2 - exp (- (2 * c))) / (1 - exp (- (2 * c))) ^ 2 = leakage (exp (- c)).
Proof. rewrite square_of_q; reflexivity. Qed.

Section Theorems.

Variables (n H : nat) (a b beta s : R).
Hypothesis n_three : (3 <= n)%nat.
Hypothesis H_some : (1 <= H)%nat.
Hypothesis a_below_b : a < b.
Hypothesis beta_pos : 0 < beta.

Let D := cell n H a b.
Let c := beta * D ^ 2.
Let q := exp (- c).

Lemma c_above_0 : 0 < c.
Proof.
  pose proof (sharpness_pos (n - 2) (H - 1) a b beta ltac:(lia) a_below_b beta_pos) as P.
  replace (n - 2 + 2)%nat with n in P by lia; replace (S (H - 1)) with H in P by lia; exact P.
Qed.

Lemma error_for T : 0 <= T -> (forall k, (k <= n - 2)%nat -> tails k c T) ->
  Rabs (multi_head n H a b beta s - Range a b s) <= D * smear_bound c T + largest a b * leakage q.
Proof.
  intros PT HT.
  pose proof (multi_head_error (n - 2) (H - 1) a b beta s ltac:(lia) a_below_b beta_pos T) as E.
  replace (n - 2 + 2)%nat with n in E by lia; replace (S (H - 1)) with H in E by lia.
  unfold q; rewrite <- leakage_closed; now apply E.
Qed.

End Theorems.

(** ** For every sharpness. *)

Theorem multi_head_theorem d (w x : nat -> R) t n H a b beta :
  (3 <= n)%nat -> (1 <= H)%nat -> a < b -> 0 < beta ->
  let s := dot d w x + t in
  let q := exp (- (beta * cell n H a b ^ 2)) in
  Rabs (multi_head n H a b beta s - Range a b s)
  <= (b - a) / (INR (n - 2) * INR H)
     + largest a b * (2 * excess q / (INR (n - 2) * INR H) + leakage q).
Proof.
  intros Hn HH Hab Hb s q.
  pose proof (c_above_0 n H a b beta Hn HH Hab Hb) as Hc.
  pose proof (q_range _ Hc) as Hq; fold q in Hq.
  assert (PT : 0 <= q * (2 - q) / (1 - q) ^ 2).
  { apply Rmult_le_pos; [nra|apply Rlt_le, Rinv_0_lt_compat; nra]. }
  pose proof (error_for n H a b beta s Hn HH Hab Hb _ PT (fun k _ => tails_any k _ Hc)) as E; fold q in E.
  rewrite (smear_bound_closed _ _ Hc) in E; fold q in E.
  assert (PN : 0 < INR (n - 2) * INR H).
  { apply Rmult_lt_0_compat; apply lt_0_INR; lia. }
  set (N := INR (n - 2) * INR H) in *.
  apply Rle_trans with (1 := E).
  rewrite (Rmult_plus_distr_l (largest a b)), <- Rplus_assoc; apply Rplus_le_compat_r.
  match goal with |- _ * ?e <= _ => replace e with (3 / 4 + excess q) by (unfold excess; ring) end.
  unfold cell; fold N.
  pose proof (width_below_largest a b) as W.
  assert (PX : 0 <= excess q).
  { unfold excess; assert (Q2 : 0 < q ^ 2 < 1) by nra.
    assert (0 <= q / (2 * (1 + q))) by (apply Rlt_le, Rdiv_lt_0_compat; lra).
    assert (0 <= (1 + q ^ 2) / (1 - q ^ 2) ^ 3 * q ^ 2).
    { apply Rmult_le_pos; [apply Rlt_le, Rdiv_lt_0_compat; [lra|apply pow_lt; lra]|lra]. }
    assert (0 <= ((1 + q ^ 2) / (2 * (1 - q ^ 2) ^ 2) - / 2) * (1 + q)).
    { apply Rmult_le_pos; [|lra]. set (r := q ^ 2) in *.
      assert (P2 : 0 < 2 * (1 - r) ^ 2) by nra.
      apply (Rmult_le_reg_r (2 * (1 - r) ^ 2)); [exact P2|].
      replace (((1 + r) / (2 * (1 - r) ^ 2) - / 2) * (2 * (1 - r) ^ 2)) with (1 + r - (1 - r) ^ 2) by (field; lra).
      nra. }
    lra. }
  replace ((b - a) / N * (3 / 4 + excess q)) with ((b - a) / N * (3 / 4) + (b - a) * (excess q / N)) by (field; lra).
  replace (largest a b * (2 * excess q / N)) with (2 * largest a b * (excess q / N)) by (field; lra).
  apply Rplus_le_compat.
  - assert (0 < (b - a) / N) by (apply Rdiv_lt_0_compat; lra). lra.
  - apply Rmult_le_compat_r; [|exact W].
    apply Rmult_le_pos; [exact PX|apply Rlt_le, Rinv_0_lt_compat, PN].
Qed.

(** ** From sharpness 2 on: one cell and the leak. *)

Theorem multi_head_sharp d (w x : nat -> R) t n H a b beta :
  (3 <= n)%nat -> (1 <= H)%nat -> a < b -> 2 <= beta * cell n H a b ^ 2 ->
  let s := dot d w x + t in
  let q := exp (- (beta * cell n H a b ^ 2)) in
  Rabs (multi_head n H a b beta s - Range a b s)
  <= (b - a) / (INR (n - 2) * INR H) + largest a b * leakage q.
Proof.
  intros Hn HH Hab Hc2 s q.
  assert (PN : 0 < INR (n - 2) * INR H) by (apply Rmult_lt_0_compat; apply lt_0_INR; lia).
  assert (PD : 0 < cell n H a b) by (unfold cell; apply Rdiv_lt_0_compat; lra).
  assert (Hb : 0 < beta) by (apply (Rmult_lt_reg_r (cell n H a b ^ 2)); [nra|lra]).
  pose proof (c_above_0 n H a b beta Hn HH Hab Hb) as Hc.
  assert (Hq : 0 <= q <= 13534 / 100000).
  { split; [apply Rlt_le, exp_pos|]. apply Rle_trans with (exp (- 2)); [apply exp_le; lra|interval with (i_prec 40)]. }
  assert (PT : 0 <= q / (1 - q ^ 3) ^ 2) by (interval with (i_prec 40)).
  assert (Hh : / 2 <= beta * cell n H a b ^ 2) by lra.
  pose proof (error_for n H a b beta s Hn HH Hab Hb _ PT (fun k _ => tails_sharp k _ Hh)) as E; fold q in E.
  rewrite (smear_bound_closed _ _ Hc) in E; fold q in E.
  apply Rle_trans with (1 := E); apply Rplus_le_compat_r.
  change ((b - a) / (INR (n - 2) * INR H)) with (cell n H a b).
  rewrite <- (Rmult_1_r (cell n H a b)) at 2; apply Rmult_le_compat_l; [lra|].
  clearbody q; interval with (i_bisect q, i_prec 40).
Qed.

(** ** Sharp enough for the range: one cell, and nothing else. *)

Theorem multi_head_one_cell d (w x : nat -> R) t n H a b beta :
  (3 <= n)%nat -> (1 <= H)%nat -> a < b -> 3 <= beta * cell n H a b ^ 2 ->
  50 * largest a b / cell n H a b <= exp (2 * (beta * cell n H a b ^ 2)) ->
  let s := dot d w x + t in
  Rabs (multi_head n H a b beta s - Range a b s) <= (b - a) / (INR (n - 2) * INR H).
Proof.
  intros Hn HH Hab Hc3 Hsharp s.
  assert (PN : 0 < INR (n - 2) * INR H) by (apply Rmult_lt_0_compat; apply lt_0_INR; lia).
  assert (PD : 0 < cell n H a b) by (unfold cell; apply Rdiv_lt_0_compat; lra).
  assert (Hb : 0 < beta) by (apply (Rmult_lt_reg_r (cell n H a b ^ 2)); [nra|lra]).
  pose proof (c_above_0 n H a b beta Hn HH Hab Hb) as Hc.
  assert (Hh : / 2 <= beta * cell n H a b ^ 2) by lra.
  change ((b - a) / (INR (n - 2) * INR H)) with (cell n H a b).
  set (c := beta * cell n H a b ^ 2) in *; set (q := exp (- c)).
  assert (Hq : 0 <= q <= 4979 / 100000).
  { split; [apply Rlt_le, exp_pos|]. apply Rle_trans with (exp (- 3)); [apply exp_le; lra|interval with (i_prec 40)]. }
  assert (PT : 0 <= q / (1 - q ^ 3) ^ 2) by (interval with (i_prec 40)).
  pose proof (error_for n H a b beta s Hn HH Hab Hb _ PT (fun k _ => tails_sharp k _ Hh)) as E; fold c q in E.
  rewrite (smear_bound_closed _ _ Hc) in E; fold q in E.
  apply Rle_trans with (1 := E).
  assert (PM : 0 <= largest a b) by (apply Rle_trans with (1 := Rabs_pos a), Rmax_l).
  assert (Q2 : largest a b * (50 * q ^ 2) <= cell n H a b).
  { unfold q; rewrite <- square_of_q, exp_Ropp; pose proof (exp_pos (2 * c)) as P.
    apply (Rmult_le_reg_r (exp (2 * c) / cell n H a b)); [apply Rdiv_lt_0_compat; lra|].
    replace (largest a b * (50 * / exp (2 * c)) * (exp (2 * c) / cell n H a b))
      with (50 * largest a b / cell n H a b) by (field; lra).
    replace (cell n H a b * (exp (2 * c) / cell n H a b)) with (exp (2 * c)) by (field; lra).
    exact Hsharp. }
  assert (LK : leakage q <= 162 / 1000 * (50 * q ^ 2)).
  { unfold leakage.
    apply Rle_trans with (q ^ 2 * (4 * (2 - q ^ 2) / (1 - q ^ 2) ^ 2)).
    - right; field; apply Rgt_not_eq; clearbody q; interval with (i_prec 40).
    - replace (162 / 1000 * (50 * q ^ 2)) with (q ^ 2 * (81 / 10)) by field.
      apply Rmult_le_compat_l; [apply pow2_ge_0|clearbody q; interval with (i_prec 40)]. }
  assert (LM : largest a b * leakage q <= 162 / 1000 * cell n H a b).
  { apply Rle_trans with (largest a b * (162 / 1000 * (50 * q ^ 2))); [now apply Rmult_le_compat_l|lra]. }
  match goal with |- _ * ?e + _ <= _ => assert (S : e <= 838 / 1000) end.
  { clearbody q; interval with (i_bisect q, i_prec 40). }
  match goal with |- _ * ?e + _ <= _ => set (smeared := e) in * end.
  assert (cell n H a b * smeared <= cell n H a b * (838 / 1000)) by (apply Rmult_le_compat_l; lra).
  lra.
Qed.

(** ** As the library builds it: values counted from the middle of the range, which is added afterwards. *)

Definition middle (a b : R) : R := (a + b) / 2.

Definition centred_multi_head (n H : nat) (a b beta s : R) : R :=
  middle a b + multi_head n H (a - middle a b) (b - middle a b) beta (s - middle a b).

Lemma range_moved a b s mid : Range (a - mid) (b - mid) (s - mid) = Range a b s - mid.
Proof.
  unfold Range; destruct (Rle_or_lt s a) as [Ha|Ha].
  - rewrite !Rmax_left by lra.
    destruct (Rle_or_lt a b); [rewrite !Rmin_right by lra|rewrite !Rmin_left by lra]; reflexivity.
  - rewrite !Rmax_right by lra.
    destruct (Rle_or_lt s b); [rewrite !Rmin_right by lra|rewrite !Rmin_left by lra]; reflexivity.
Qed.

Lemma largest_centred a b : a < b -> largest (a - middle a b) (b - middle a b) = (b - a) / 2.
Proof.
  intros H; unfold largest, middle.
  rewrite Rabs_left, Rabs_pos_eq, Rmax_left by lra. field.
Qed.

Lemma cell_moved n H a b mid : cell n H (a - mid) (b - mid) = cell n H a b.
Proof. unfold cell; f_equal; ring. Qed.

Lemma centred_error d (w x : nat -> R) t n H a b beta :
  let mid := middle a b in
  Rabs (centred_multi_head n H a b beta (dot d w x + t) - Range a b (dot d w x + t))
  = Rabs (multi_head n H (a - mid) (b - mid) beta (dot d w x + (t - mid))
          - Range (a - mid) (b - mid) (dot d w x + (t - mid))).
Proof.
  intros mid; replace (dot d w x + (t - mid)) with (dot d w x + t - mid) by ring.
  rewrite range_moved; unfold centred_multi_head; fold mid; f_equal; ring.
Qed.

Theorem centred_multi_head_sharp d (w x : nat -> R) t n H a b beta :
  (3 <= n)%nat -> (1 <= H)%nat -> a < b -> 2 <= beta * cell n H a b ^ 2 ->
  let s := dot d w x + t in
  let q := exp (- (beta * cell n H a b ^ 2)) in
  Rabs (centred_multi_head n H a b beta s - Range a b s)
  <= (b - a) / (INR (n - 2) * INR H) + (b - a) / 2 * leakage q.
Proof.
  intros Hn HH Hab Hc s q; unfold s; rewrite centred_error.
  rewrite <- (largest_centred a b Hab).
  change ((b - a) / (INR (n - 2) * INR H)) with (cell n H a b); unfold q.
  rewrite <- (cell_moved n H a b (middle a b)) in Hc |- *.
  apply multi_head_sharp; [exact Hn|exact HH|lra|exact Hc].
Qed.

(** Here the sharpness that is enough depends on the number of cells alone. *)
Theorem centred_multi_head_one_cell d (w x : nat -> R) t n H a b beta :
  (3 <= n)%nat -> (1 <= H)%nat -> a < b -> 3 <= beta * cell n H a b ^ 2 ->
  25 * (INR (n - 2) * INR H) <= exp (2 * (beta * cell n H a b ^ 2)) ->
  let s := dot d w x + t in
  Rabs (centred_multi_head n H a b beta s - Range a b s) <= (b - a) / (INR (n - 2) * INR H).
Proof.
  intros Hn HH Hab Hc Hsharp s; unfold s; rewrite centred_error.
  assert (PN : 0 < INR (n - 2) * INR H) by (apply Rmult_lt_0_compat; apply lt_0_INR; lia).
  assert (E : 50 * ((b - a) / 2) / cell n H a b = 25 * (INR (n - 2) * INR H)).
  { unfold cell; field; repeat split; lra || (apply not_0_INR; lia). }
  rewrite <- E, <- (largest_centred a b Hab) in Hsharp.
  change ((b - a) / (INR (n - 2) * INR H)) with (cell n H a b).
  rewrite <- (cell_moved n H a b (middle a b)) in Hc, Hsharp |- *.
  apply multi_head_one_cell; [exact Hn|exact HH|lra|exact Hc|exact Hsharp].
Qed.
