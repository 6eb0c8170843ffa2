(** What the anchors further out than the pair around the query can add (see Lattice.v), in closed form, with
    [q = exp (- c)]. *)

From Coq Require Import Reals Lra Lia.
From Anchorhead Require Import Softmax Sums Lattice.
Open Scope R_scope.

Lemma q_range c : 0 < c -> 0 < exp (- c) < 1.
Proof. intros H; split; [apply exp_pos|rewrite <- exp_0; apply exp_increasing; lra]. Qed.

Lemma tails_any n c : 0 < c -> tails n c (exp (- c) * (2 - exp (- c)) / (1 - exp (- c)) ^ 2).
Proof.
  intros Hc x Hx; unfold tail; pose proof (q_range c Hc) as Hq; set (q := exp (- c)) in *.
  apply Rle_trans with (total n (fun i => INR (S (S i)) * q ^ S i)).
  - apply total_le; intros i _; change (1 + i)%nat with (S i).
    pose proof (lt_0_INR (S i) ltac:(lia)) as P.
    assert (1 <= INR (S i)) by (rewrite S_INR; pose proof (pos_INR i); lra).
    rewrite (S_INR (S i)); unfold q; rewrite <- exp_pow.
    assert (exp (- (c * (INR (S i) ^ 2 + 2 * INR (S i) * x))) <= exp (- c * INR (S i))).
    { apply exp_le. assert (0 <= c * INR (S i) * (INR (S i) - 1 + 2 * x)) by (apply Rmult_le_pos; nra). lra. }
    apply Rmult_le_compat; [lra|apply Rlt_le, exp_pos|lra|assumption].
  - assert (G : total (S n) (fun k => INR (S k) * q ^ k) <= / (1 - q) ^ 2)
      by (apply total_arithmetic_geometric; lra).
    rewrite total_first in G.
    replace (q * (2 - q) / (1 - q) ^ 2) with (/ (1 - q) ^ 2 - 1) by (field; lra).
    simpl (INR 1) in G; simpl (q ^ 0) in G; lra.
Qed.

(** From [c = 1/2] on, what an anchor adds is largest if the query stands on the anchor of the pair. *)
Lemma tail_term c k x : / 2 <= c -> 1 <= k -> 0 <= x ->
  (x + k) * exp (- (c * (k ^ 2 + 2 * k * x))) <= k * exp (- (c * k ^ 2)).
Proof.
  intros Hc Pk Hx.
  replace (- (c * (k ^ 2 + 2 * k * x))) with (- (c * k ^ 2) + - (2 * c * k * x)) by ring.
  rewrite exp_plus, (exp_Ropp (2 * c * k * x)).
  pose proof (exp_ineq1_le (2 * c * k * x)) as T.
  assert (B : x + k <= k * exp (2 * c * k * x)).
  { assert (0 <= k * x) by (apply Rmult_le_pos; lra).
    assert (0 <= (2 * c - 1) * (k * x)) by (apply Rmult_le_pos; lra).
    assert (0 <= (k - 1) * (k * x)) by (apply Rmult_le_pos; lra).
    assert (k * (1 + k * x) <= k * exp (2 * c * k * x)) by (apply Rmult_le_compat_l; lra).
    assert (0 <= (k - 1) * x) by (apply Rmult_le_pos; lra). lra. }
  set (e := exp (2 * c * k * x)) in *. assert (0 < e) by apply exp_pos.
  set (f := exp (- (c * k ^ 2))); assert (0 < f) by apply exp_pos.
  apply (Rmult_le_reg_r e); [lra|].
  replace ((x + k) * (f * / e) * e) with ((x + k) * f) by (field; lra).
  replace (k * f * e) with ((k * e) * f) by ring.
  apply Rmult_le_compat_r; lra.
Qed.

Lemma tails_sharp n c : / 2 <= c -> tails n c (exp (- c) / (1 - exp (- c) ^ 3) ^ 2).
Proof.
  intros Hc x Hx; unfold tail; pose proof (q_range c ltac:(lra)) as Hq; set (q := exp (- c)) in *.
  assert (Hq3 : 0 <= q ^ 3 < 1) by (simpl; nra).
  apply Rle_trans with (total n (fun i => q * (INR (S i) * (q ^ 3) ^ i))).
  - apply total_le; intros i _; change (1 + i)%nat with (S i).
    set (k := INR (S i)).
    assert (Pk : 1 <= k) by (unfold k; rewrite S_INR; pose proof (pos_INR i); lra).
    assert (E : q * (q ^ 3) ^ i = exp (- (c * (3 * k - 2)))).
    { rewrite <- pow_mult. change (q * q ^ (3 * i)) with (q ^ S (3 * i)); unfold q; rewrite <- exp_pow.
      f_equal; unfold k; rewrite !S_INR, mult_INR; simpl; ring. }
    replace (q * (k * (q ^ 3) ^ i)) with (k * (q * (q ^ 3) ^ i)) by ring; rewrite E.
    eapply Rle_trans; [apply tail_term; lra|].
    apply Rmult_le_compat_l; [lra|]. apply exp_le.
    assert (0 <= (k - 1) * (k - 2)); [|assert (0 <= c * ((k - 1) * (k - 2))) by (apply Rmult_le_pos; lra); lra].
    unfold k; rewrite S_INR; destruct i as [|i]; [simpl; lra|].
    rewrite S_INR; pose proof (pos_INR i); nra.
  - rewrite total_scale. unfold Rdiv. apply Rmult_le_compat_l; [lra|].
    now apply total_arithmetic_geometric.
Qed.

(** The same without the nearest anchor of the side. *)
Lemma tail_from_second n c x : / 2 <= c -> 0 <= x ->
  tail 2 n c x <= 2 * exp (- c) ^ 4 / (1 - exp (- c) ^ 5) ^ 2.
Proof.
  intros Hc Hx; unfold tail; pose proof (q_range c ltac:(lra)) as Hq; set (q := exp (- c)) in *.
  assert (Hq5 : 0 <= q ^ 5 < 1) by (apply pow_lt_1_compat; [lra|lia]).
  assert (Hq4 : 0 <= q ^ 4) by (apply pow_le; lra).
  apply Rle_trans with (total n (fun i => 2 * q ^ 4 * (INR (S i) * (q ^ 5) ^ i))).
  - apply total_le; intros i _.
    set (k := INR (2 + i)).
    assert (Ek : k = INR i + 2) by (unfold k; rewrite plus_INR; simpl; ring).
    pose proof (pos_INR i) as Pi.
    assert (E : q ^ 4 * (q ^ 5) ^ i = exp (- (c * (5 * k - 6)))).
    { rewrite <- pow_mult, <- pow_add; unfold q; rewrite <- exp_pow.
      f_equal; rewrite Ek, plus_INR, mult_INR; simpl; ring. }
    replace (2 * q ^ 4 * (INR (S i) * (q ^ 5) ^ i)) with (2 * INR (S i) * (q ^ 4 * (q ^ 5) ^ i)) by ring; rewrite E.
    eapply Rle_trans; [apply tail_term; lra|].
    apply Rmult_le_compat; [lra|apply Rlt_le, exp_pos|rewrite S_INR; lra|]. apply exp_le.
    assert (0 <= (k - 2) * (k - 3)); [|assert (0 <= c * ((k - 2) * (k - 3))) by (apply Rmult_le_pos; lra); lra].
    rewrite Ek; destruct i as [|i]; [simpl; lra|].
    rewrite S_INR; pose proof (pos_INR i); nra.
  - rewrite total_scale. unfold Rdiv. apply Rmult_le_compat_l; [lra|].
    now apply total_arithmetic_geometric.
Qed.

(** The query stands on the far anchor of the pair, or beyond. *)
Lemma tail_from_beyond n c : 0 < c -> tail 1 n c 1 <= / (1 - exp (- c) ^ 3) ^ 2 - 1.
Proof.
  intros Hc; unfold tail; pose proof (q_range c Hc) as Hq; set (q := exp (- c)) in *.
  assert (Hq3 : 0 <= q ^ 3 < 1) by (simpl; nra).
  assert (G : total (S n) (fun k => INR (S k) * (q ^ 3) ^ k) <= / (1 - q ^ 3) ^ 2)
    by now apply total_arithmetic_geometric.
  rewrite total_first in G.
  apply Rle_trans with (total n (fun i => INR (S (S i)) * (q ^ 3) ^ S i)).
  - apply total_le; intros i _; change (1 + i)%nat with (S i).
    rewrite (S_INR (S i)), Rplus_comm. set (k := INR (S i)).
    assert (Pk : 1 <= k) by (unfold k; rewrite S_INR; pose proof (pos_INR i); lra).
    apply Rmult_le_compat_l; [lra|].
    rewrite <- pow_mult; unfold q; rewrite <- exp_pow; apply exp_le.
    rewrite mult_INR; fold k; replace (INR 3) with 3 by (simpl; ring).
    assert (0 <= c * (k * (k - 1))) by (apply Rmult_le_pos; nra). lra.
  - simpl (INR 1) in G; simpl (_ ^ 0) in G; lra.
Qed.
