(** Finite sums, and attention as a mean under softmax weights. *)

From Coq Require Import Reals Lra Lia.
From Anchorhead Require Import Softmax.
Open Scope R_scope.

(** [total n f] is [f 0 + ... + f (n - 1)]. *)
Fixpoint total (n : nat) (f : nat -> R) : R :=
  match n with O => 0 | S m => total m f + f m end.

Lemma total_ext n f g : (forall k, (k < n)%nat -> f k = g k) -> total n f = total n g.
Proof.
  induction n as [|n IH]; intros H; simpl; [reflexivity|].
  rewrite IH, H by (try intros; try apply H; lia); reflexivity.
Qed.

Lemma total_le n f g : (forall k, (k < n)%nat -> f k <= g k) -> total n f <= total n g.
Proof.
  induction n as [|n IH]; intros H; simpl; [lra|].
  apply Rplus_le_compat; [apply IH; intros; apply H; lia|apply H; lia].
Qed.

Lemma total_zero n : total n (fun _ => 0) = 0.
Proof. induction n as [|n IH]; simpl; [|rewrite IH]; lra. Qed.

Lemma total_nonneg n f : (forall k, (k < n)%nat -> 0 <= f k) -> 0 <= total n f.
Proof. intros H; rewrite <- (total_zero n); now apply total_le. Qed.

Lemma total_pos n f : (0 < n)%nat -> (forall k, 0 < f k) -> 0 < total n f.
Proof.
  intros Hn H; destruct n as [|n]; [lia|simpl].
  pose proof (H n). assert (0 <= total n f) by (apply total_nonneg; intros; now apply Rlt_le). lra.
Qed.

Lemma total_plus n f g : total n (fun k => f k + g k) = total n f + total n g.
Proof. induction n as [|n IH]; simpl; [|rewrite IH]; lra. Qed.

Lemma total_scale n c f : total n (fun k => c * f k) = c * total n f.
Proof. induction n as [|n IH]; simpl; [|rewrite IH]; lra. Qed.

Lemma total_abs n f : Rabs (total n f) <= total n (fun k => Rabs (f k)).
Proof.
  induction n as [|n IH]; simpl; [rewrite Rabs_R0; lra|].
  eapply Rle_trans; [apply Rabs_triang|lra].
Qed.

Lemma total_app m n f : total (m + n) f = total m f + total n (fun k => f (m + k)%nat).
Proof.
  induction n as [|n IH]; simpl; [rewrite Nat.add_0_r; lra|].
  rewrite Nat.add_succ_r; simpl; rewrite IH; lra.
Qed.

Lemma total_first n f : total (S n) f = f O + total n (fun k => f (S k)).
Proof. change (S n) with (1 + n)%nat; rewrite total_app; simpl; lra. Qed.

Lemma total_reverse n f : total n f = total n (fun k => f (n - 1 - k)%nat).
Proof.
  revert f; induction n as [|n IH]; intros f; [reflexivity|].
  rewrite (total_first n (fun k => f (S n - 1 - k)%nat)); simpl.
  rewrite IH, Rplus_comm; f_equal; [f_equal; lia|].
  apply total_ext; intros; f_equal; lia.
Qed.

(** ** Geometric sums. *)

Lemma total_geometric n q : 0 <= q < 1 -> total n (fun k => q ^ k) <= / (1 - q).
Proof.
  intros Hq.
  assert (E : total n (fun k => q ^ k) = / (1 - q) - q ^ n / (1 - q)).
  { induction n as [|n IH]; simpl; [|rewrite IH]; field; lra. }
  rewrite E; assert (0 <= q ^ n / (1 - q)); [|lra].
  apply Rmult_le_pos; [apply pow_le; lra|apply Rlt_le, Rinv_0_lt_compat; lra].
Qed.

Lemma total_arithmetic_geometric n q : 0 <= q < 1 -> total n (fun k => INR (S k) * q ^ k) <= / (1 - q) ^ 2.
Proof.
  intros Hq.
  assert (E : total n (fun k => INR (S k) * q ^ k)
              = / (1 - q) ^ 2 - (1 + INR n * (1 - q)) * q ^ n / (1 - q) ^ 2).
  { induction n as [|n IH]; [simpl; field; lra|].
    cbn [total]; rewrite IH, !S_INR; change (q ^ S n) with (q * q ^ n); field; lra. }
  rewrite E; assert (0 <= (1 + INR n * (1 - q)) * q ^ n / (1 - q) ^ 2); [|lra].
  pose proof (pos_INR n); pose proof (pow_le q n (proj1 Hq)).
  apply Rmult_le_pos; [apply Rmult_le_pos; nra|apply Rlt_le, Rinv_0_lt_compat; nra].
Qed.

Lemma exp_pow x n : exp (x * INR n) = exp x ^ n.
Proof.
  induction n as [|n IH]; [simpl; now rewrite Rmult_0_r, exp_0|].
  rewrite S_INR, Rmult_plus_distr_l, exp_plus, IH, Rmult_1_r; simpl; ring.
Qed.

(** ** Attention. *)

(** The mean of the values [v] of [p] keys under the softmax of their logits [z]. *)
Definition attention (p : nat) (z v : nat -> R) : R :=
  total p (fun k => exp (z k) * v k) / total p (fun k => exp (z k)).

Lemma softmax_mass p z : (0 < p)%nat -> 0 < total p (fun k => exp (z k)).
Proof. intros H; apply total_pos; [exact H|intros; apply exp_pos]. Qed.

Lemma attention_ext p z z' v v' :
  (forall k, (k < p)%nat -> z k = z' k) -> (forall k, (k < p)%nat -> v k = v' k) ->
  attention p z v = attention p z' v'.
Proof.
  intros Hz Hv; unfold attention.
  rewrite (total_ext p (fun k => exp (z k) * v k) (fun k => exp (z' k) * v' k)) by (intros; now rewrite Hz, Hv).
  now rewrite (total_ext p (fun k => exp (z k)) (fun k => exp (z' k))) by (intros; now rewrite Hz).
Qed.

(** What all logits share changes nothing. *)
Lemma attention_gauge p z t v : (0 < p)%nat -> attention p (fun k => t + z k) v = attention p z v.
Proof.
  intros Hp; unfold attention; pose proof (softmax_mass p z Hp); pose proof (exp_pos t).
  rewrite (total_ext p (fun k => exp (t + z k) * v k) (fun k => exp t * (exp (z k) * v k))),
    (total_ext p (fun k => exp (t + z k)) (fun k => exp t * exp (z k)));
    try (intros; rewrite exp_plus; ring).
  rewrite !total_scale; field; lra.
Qed.

Lemma attention_affine p z c d v : (0 < p)%nat ->
  attention p z (fun k => c + d * v k) = c + d * attention p z v.
Proof.
  intros Hp; unfold attention; pose proof (softmax_mass p z Hp).
  rewrite (total_ext p (fun k => exp (z k) * (c + d * v k)) (fun k => c * exp (z k) + d * (exp (z k) * v k)))
    by (intros; ring).
  rewrite total_plus, !total_scale; field; lra.
Qed.

Lemma attention_plus p z v v' : (0 < p)%nat ->
  attention p z (fun k => v k + v' k) = attention p z v + attention p z v'.
Proof.
  intros Hp; unfold attention; pose proof (softmax_mass p z Hp).
  rewrite (total_ext p (fun k => exp (z k) * (v k + v' k)) (fun k => exp (z k) * v k + exp (z k) * v' k))
    by (intros; ring).
  rewrite total_plus; field; lra.
Qed.

(** The difference from any number is a mean of differences. *)
Lemma attention_minus p z v f : (0 < p)%nat ->
  attention p z v - f = total p (fun k => exp (z k) * (v k - f)) / total p (fun k => exp (z k)).
Proof.
  intros Hp.
  replace (attention p z v - f) with (- f + 1 * attention p z v) by ring.
  rewrite <- attention_affine by exact Hp; unfold attention; f_equal; apply total_ext; intros; ring.
Qed.
