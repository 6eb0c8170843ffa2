(** Selection: if all keys but those near enough are outweighed by one key, attention is near enough, too.

    And finite nets of a box, whose points are the keys that select. *)

From Coq Require Import Reals ZArith Lra Lia.
From Anchorhead Require Import Softmax Sums Lattice Slices.
Open Scope R_scope.

Lemma term_le_total n f k : (forall j, (j < n)%nat -> 0 <= f j) -> (k < n)%nat -> f k <= total n f.
Proof.
  intros Hf Hk; replace n with (k + (1 + (n - 1 - k)))%nat by lia.
  rewrite !total_app; simpl (total 1 _); rewrite Nat.add_0_r.
  assert (0 <= total k f) by (apply total_nonneg; intros; apply Hf; lia).
  assert (0 <= total (n - 1 - k) (fun j => f (k + (1 + j))%nat)) by (apply total_nonneg; intros; apply Hf; lia).
  lra.
Qed.

Lemma total_const n x : total n (fun _ => x) = INR n * x.
Proof. induction n as [|n IH]; [simpl; ring|]. cbn [total]; rewrite IH, S_INR; ring. Qed.

(** A mean lies between its values. *)
Lemma attention_between p z v lo hi :
  (0 < p)%nat -> (forall k, (k < p)%nat -> lo <= v k <= hi) -> lo <= attention p z v <= hi.
Proof.
  intros Hp Hv; pose proof (softmax_mass p z Hp) as P; unfold attention.
  assert (A : lo * total p (fun k => exp (z k)) <= total p (fun k => exp (z k) * v k)).
  { rewrite <- total_scale; apply total_le; intros k Hk; pose proof (exp_pos (z k)); pose proof (Hv k Hk); nra. }
  assert (B : total p (fun k => exp (z k) * v k) <= hi * total p (fun k => exp (z k))).
  { rewrite <- total_scale; apply total_le; intros k Hk; pose proof (exp_pos (z k)); pose proof (Hv k Hk); nra. }
  set (S := total p (fun k => exp (z k))) in *; set (N := total p (fun k => exp (z k) * v k)) in *.
  split; apply (Rmult_le_reg_r S); try exact P; unfold Rdiv; rewrite Rmult_assoc, Rinv_l, Rmult_1_r; lra.
Qed.

(** Keys either carry a value within [e] of [f], or weigh at most [exp (- L)] of the key [best]. *)
Theorem selection p z v f e M L best :
  (best < p)%nat -> 0 <= e -> 0 <= M ->
  (forall k, (k < p)%nat -> Rabs (v k - f) <= M) ->
  (forall k, (k < p)%nat -> Rabs (v k - f) <= e \/ z k <= z best - L) ->
  Rabs (attention p z v - f) <= e + M * (INR p * exp (- L)).
Proof.
  intros Hb He HM Hall Hk.
  assert (Hp : (0 < p)%nat) by lia.
  rewrite attention_minus by exact Hp.
  set (S := total p (fun k => exp (z k))).
  assert (P : 0 < S) by now apply softmax_mass.
  assert (PB : exp (z best) <= S).
  { apply (term_le_total p (fun k => exp (z k))); [intros; apply Rlt_le, exp_pos|exact Hb]. }
  apply quotient_le with S; [exact P|lra|].
  eapply Rle_trans; [apply total_abs|].
  apply Rle_trans with (total p (fun k => e * exp (z k) + M * exp (- L) * exp (z best))).
  - apply total_le; intros k Hkp.
    rewrite Rabs_mult, (Rabs_pos_eq (exp (z k))) by apply Rlt_le, exp_pos.
    pose proof (exp_pos (z k)); pose proof (exp_pos (- L)); pose proof (exp_pos (z best)).
    destruct (Hk k Hkp) as [HN|HN].
    + assert (0 <= M * exp (- L) * exp (z best)) by (apply Rmult_le_pos; [apply Rmult_le_pos; lra|lra]). nra.
    + assert (exp (z k) <= exp (- L) * exp (z best)) by (rewrite <- exp_plus; apply exp_le; lra).
      pose proof (Hall k Hkp); pose proof (Rabs_pos (v k - f)).
      assert (exp (z k) * Rabs (v k - f) <= exp (- L) * exp (z best) * M) by (apply Rmult_le_compat; lra).
      assert (0 <= e * exp (z k)) by (apply Rmult_le_pos; lra). lra.
  - rewrite total_plus, total_scale, total_const; fold S.
    assert (0 <= INR p * (M * exp (- L))).
    { apply Rmult_le_pos; [apply pos_INR|apply Rmult_le_pos; [lra|apply Rlt_le, exp_pos]]. }
    assert (INR p * (M * exp (- L)) * exp (z best) <= INR p * (M * exp (- L)) * S)
      by (apply Rmult_le_compat_l; lra).
    lra.
Qed.

(** Some sharpness makes any leak small enough. *)
Lemma sharp_enough A e : 0 <= A -> 0 < e -> A * exp (- (A / e)) <= e.
Proof.
  intros HA He; pose proof (exp_ineq1_le (A / e)) as E.
  assert (0 <= A / e) by (apply Rmult_le_pos; [exact HA|apply Rlt_le, Rinv_0_lt_compat, He]).
  rewrite exp_Ropp; set (x := exp (A / e)) in *.
  apply (Rmult_le_reg_r x); [lra|]. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  assert (A = e * (A / e)) by (field; lra). nra.
Qed.

(** ** Finite nets of a box. *)

Lemma net_of_interval lo hi h : lo <= hi -> 0 < h ->
  exists (P : nat) (t : nat -> R),
    (forall k, lo <= t k <= hi) /\ forall x, lo <= x <= hi -> exists k, (k < P)%nat /\ Rabs (x - t k) <= h.
Proof.
  intros Hl Hh.
  assert (exists Q, (hi - lo) / h <= INR Q) as [Q HQ].
  { exists (Z.to_nat (up ((hi - lo) / h))); destruct (archimed ((hi - lo) / h)) as [U _].
    assert (0 <= (hi - lo) / h) by (apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat, Hh]).
    rewrite INR_IZR_INZ, Z2Nat.id by (apply le_IZR; lra). lra. }
  exists (S Q), (fun k => Rmin hi (lo + INR k * h)); split.
  - intros k; split; [apply Rmin_glb; [exact Hl|pose proof (pos_INR k); nra]|apply Rmin_l].
  - intros x Hx.
    assert (C : 0 <= (x - lo) / h <= INR Q + 1).
    { split; [apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat, Hh]|].
      apply Rle_trans with ((hi - lo) / h); [|lra].
      apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat, Hh|lra]. }
    destruct (find_cell Q _ C) as [k [Hk Hc]]; exists k; split; [lia|].
    set (y := (x - lo) / h) in *; assert (Ex : x = lo + y * h) by (unfold y; field; lra).
    assert (A : INR k * h <= y * h) by (apply Rmult_le_compat_r; lra).
    assert (B : y * h <= (INR k + 1) * h) by (apply Rmult_le_compat_r; lra).
    rewrite Rmin_right by lra. apply Rabs_le; lra.
Qed.

Theorem net_of_box N lo hi h : lo <= hi -> 0 < h ->
  exists (P : nat) (V : nat -> nat -> R),
    (forall v k, lo <= V v k <= hi) /\
    forall x : nat -> R, (forall k, (k < N)%nat -> lo <= x k <= hi) ->
    exists v, (v < P)%nat /\ forall k, (k < N)%nat -> Rabs (x k - V v k) <= h.
Proof.
  intros Hl Hh; destruct (net_of_interval lo hi h Hl Hh) as [Q [t [Ht Hnet]]].
  induction N as [|N [P [V [HV IH]]]].
  - exists 1%nat, (fun _ _ => lo); split; [intros; lra|].
    intros x _; exists O; split; [lia|intros; lia].
  - exists (P * Q)%nat, (fun v k => if Nat.eqb k N then t (v mod Q)%nat else V (v / Q)%nat k); split.
    + intros v k; destruct (Nat.eqb k N); [apply Ht|apply HV].
    + intros x Hx.
      destruct (IH x ltac:(intros; apply Hx; lia)) as [v [Hv Hvx]].
      destruct (Hnet (x N) (Hx N ltac:(lia))) as [j [Hj Hjx]].
      exists (v * Q + j)%nat; split; [nia|].
      assert (D : ((v * Q + j) / Q = v)%nat).
      { rewrite Nat.div_add_l by lia; rewrite Nat.div_small; lia. }
      assert (M : ((v * Q + j) mod Q = j)%nat).
      { rewrite Nat.add_comm, Nat.mod_add by lia; apply Nat.mod_small; lia. }
      intros k Hk; rewrite D, M; destruct (Nat.eqb_spec k N) as [->|]; [exact Hjx|apply Hvx; lia].
Qed.
