(** A ReLU network with one hidden layer, neurons replaced by heads of three keys: as close as one likes on a box,
    all neurons with one shape of head. *)

From Coq Require Import Reals List Lra Lia.
From Anchorhead Require Import Softmax Steep Kinks Sums SingleHead Select.
Open Scope R_scope.

Definition pre_activation (d : nat) (w : nat -> nat -> R) (t x : nat -> R) (r : nat) : R := dot d (w r) x + t r.

Definition relu_network (N d : nat) (c t : nat -> R) (w : nat -> nat -> R) (x : nat -> R) : R :=
  total N (fun r => c r * Rmax 0 (pre_activation d w t x r)).

Definition head_network (N d : nat) (A h : R) (c t : nat -> R) (w : nat -> nat -> R) (x : nat -> R) : R :=
  total N (fun r => c r * head (three_keys A h) (pre_activation d w t x r)).

(** Errors of neurons add up with the weights of the read-out. *)
Lemma network_error N d A h c t w x S : 0 < h < A ->
  (forall r, (r < N)%nat -> Rabs (pre_activation d w t x r) <= S) ->
  Rabs (head_network N d A h c t w x - relu_network N d c t w x)
  <= total N (fun r => Rabs (c r)) * (h ^ 2 * S ^ 3 / 3 + 2785 / 10000 / (A - h)).
Proof.
  intros Hh HS.
  replace (head_network N d A h c t w x - relu_network N d c t w x)
    with (total N (fun r => c r * (head (three_keys A h) (pre_activation d w t x r)
                                   - Rmax 0 (pre_activation d w t x r)))).
  - eapply Rle_trans; [apply total_abs|].
    rewrite (Rmult_comm (total N _)), <- total_scale; apply total_le; intros r Hr.
    rewrite Rabs_mult, Rmult_comm; apply Rmult_le_compat_r; [apply Rabs_pos|].
    eapply Rle_trans; [now apply relu_three_keys|]. apply Rplus_le_compat_r.
    assert (Rabs (pre_activation d w t x r) ^ 3 <= S ^ 3)
      by (apply pow_incr; split; [apply Rabs_pos|now apply HS]).
    assert (0 <= h ^ 2) by apply pow2_ge_0.
    assert (h ^ 2 * Rabs (pre_activation d w t x r) ^ 3 <= h ^ 2 * S ^ 3) by (apply Rmult_le_compat_l; lra).
    lra.
  - unfold head_network, relu_network.
    rewrite (total_ext N _ (fun r => c r * head (three_keys A h) (pre_activation d w t x r)
                                     + -1 * (c r * Rmax 0 (pre_activation d w t x r)))) by (intros; ring).
    rewrite total_plus, total_scale; ring.
Qed.

(** Pre-activations are bounded on a box. *)
Lemma pre_activations_bounded N d w t B : 0 <= B ->
  exists S, 0 <= S /\ forall x, (forall j, (j < d)%nat -> Rabs (x j) <= B) ->
  forall r, (r < N)%nat -> Rabs (pre_activation d w t x r) <= S.
Proof.
  intros HB.
  set (size r := total d (fun j => Rabs (w r j) * B) + Rabs (t r)).
  assert (Ps : forall r, 0 <= size r).
  { intros r; unfold size; apply Rplus_le_le_0_compat; [|apply Rabs_pos].
    apply total_nonneg; intros; apply Rmult_le_pos; [apply Rabs_pos|exact HB]. }
  exists (total N size); split; [apply total_nonneg; intros; apply Ps|].
  intros x Hx r Hr; apply Rle_trans with (size r); [|now apply term_le_total].
  unfold pre_activation, dot, size; eapply Rle_trans; [apply Rabs_triang|].
  apply Rplus_le_compat_r; eapply Rle_trans; [apply total_abs|].
  apply total_le; intros j Hj; rewrite Rabs_mult; apply Rmult_le_compat_l; [apply Rabs_pos|now apply Hx].
Qed.

Theorem relu_network_theorem N d c t w B eps : 0 <= B -> 0 < eps ->
  exists A h, 0 < h < A /\
  forall x, (forall j, (j < d)%nat -> Rabs (x j) <= B) ->
  Rabs (head_network N d A h c t w x - relu_network N d c t w x) <= eps.
Proof.
  intros HB He; destruct (pre_activations_bounded N d w t B HB) as [S [HS Hpre]].
  set (C := total N (fun r => Rabs (c r))).
  assert (PC : 0 <= C) by (apply total_nonneg; intros; apply Rabs_pos).
  set (V := C * S ^ 3); assert (PV : 0 <= V) by (apply Rmult_le_pos; [exact PC|apply pow_le, HS]).
  set (h := eps / (2 * (V + 1) + eps)).
  assert (Hh : 0 < h) by (unfold h; apply Rdiv_lt_0_compat; lra).
  assert (Eh : h * (2 * (V + 1) + eps) = eps) by (unfold h; field; lra).
  assert (Hh1 : h <= 1) by nra.
  assert (HV : V * h ^ 2 <= eps / 2).
  { assert (h ^ 2 <= h) by nra. assert (V * h ^ 2 <= V * h) by (apply Rmult_le_compat_l; lra). nra. }
  set (g := C / eps + 1).
  assert (Pg : 0 < g).
  { unfold g; assert (0 <= C / eps) by (apply Rmult_le_pos; [exact PC|apply Rlt_le, Rinv_0_lt_compat, He]). lra. }
  assert (HC : C * (2785 / 10000 / g) <= eps / 2).
  { apply (Rmult_le_reg_r g); [exact Pg|].
    replace (C * (2785 / 10000 / g) * g) with (C * (2785 / 10000)) by (field; lra).
    replace (eps / 2 * g) with (C / 2 + eps / 2) by (unfold g; field; lra). lra. }
  exists (h + g), h; split; [lra|].
  intros x Hx; eapply Rle_trans; [apply (network_error N d (h + g) h c t w x S); [lra|now apply Hpre]|].
  fold C; replace (h + g - h) with g by ring.
  rewrite Rmult_plus_distr_l.
  replace (C * (h ^ 2 * S ^ 3 / 3)) with (V * h ^ 2 / 3) by (unfold V; field).
  assert (0 <= V * h ^ 2) by (apply Rmult_le_pos; [exact PV|apply pow2_ge_0]). lra.
Qed.
