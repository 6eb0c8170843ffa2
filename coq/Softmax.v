(** A softmax head on a scalar, and what holds for every one of them.

    A key is a slope, an offset and a value. At the query [s] it has the weight
    [exp (slope * s + offset)], and the head is the mean of the values under these weights. *)

From Coq Require Import Reals List Lra.
Import ListNotations.
Open Scope R_scope.

Record key := Key { slope : R; offset : R; value : R }.

Definition weight (k : key) (s : R) : R := exp (slope k * s + offset k).

Fixpoint mass (keys : list key) (s : R) : R :=
  match keys with [] => 0 | k :: rest => weight k s + mass rest s end.

Fixpoint moment (keys : list key) (s : R) : R :=
  match keys with [] => 0 | k :: rest => value k * weight k s + moment rest s end.

Definition head (keys : list key) (s : R) : R := moment keys s / mass keys s.

(** [Range a b s] is [s] clipped to [[a, b]]. *)
Definition Range (a b s : R) : R := Rmin b (Rmax a s).

Lemma weight_pos k s : 0 < weight k s.
Proof. apply exp_pos. Qed.

Lemma mass_nonneg keys s : 0 <= mass keys s.
Proof.
  induction keys as [|k rest IH]; simpl; [lra|].
  pose proof (weight_pos k s); lra.
Qed.

Lemma mass_pos keys s : keys <> [] -> 0 < mass keys s.
Proof.
  destruct keys as [|k rest]; [easy|intros _; simpl].
  pose proof (weight_pos k s); pose proof (mass_nonneg rest s); lra.
Qed.

Lemma mass_app left right s : mass (left ++ right) s = mass left s + mass right s.
Proof. induction left as [|k rest IH]; simpl; [ring|rewrite IH; ring]. Qed.

Lemma moment_app left right s : moment (left ++ right) s = moment left s + moment right s.
Proof. induction left as [|k rest IH]; simpl; [ring|rewrite IH; ring]. Qed.

(** Another gauge: all logits of a group of keys are changed by [b * (s - s0)]. *)
Definition shifted (b s0 : R) (k : key) : key := Key (slope k + b) (offset k - b * s0) (value k).

Definition shift (b s0 : R) (keys : list key) : list key := map (shifted b s0) keys.

Lemma weight_shifted b s0 k s : weight k s = exp (- (b * (s - s0))) * weight (shifted b s0 k) s.
Proof. unfold weight; rewrite <- exp_plus; f_equal; simpl; ring. Qed.

Lemma mass_shift b s0 keys s : mass keys s = exp (- (b * (s - s0))) * mass (shift b s0 keys) s.
Proof.
  induction keys as [|k rest IH]; simpl; [ring|].
  rewrite IH, (weight_shifted b s0 k); ring.
Qed.

Lemma moment_shift b s0 keys s : moment keys s = exp (- (b * (s - s0))) * moment (shift b s0 keys) s.
Proof.
  induction keys as [|k rest IH]; simpl; [ring|].
  rewrite IH, (weight_shifted b s0 k); ring.
Qed.

(** A gauge that all keys share changes nothing. *)
Lemma head_shift b s0 keys s : keys <> [] -> head keys s = head (shift b s0 keys) s.
Proof.
  intros H; unfold head.
  rewrite (mass_shift b s0 keys), (moment_shift b s0 keys).
  assert (0 < mass (shift b s0 keys) s) by (apply mass_pos; destruct keys; easy).
  pose proof (exp_pos (- (b * (s - s0)))).
  field; lra.
Qed.

(** Heads add up, and so do their errors. *)
Lemma sum_of_heads r1 r2 f1 f2 e1 e2 :
  Rabs (r1 - f1) <= e1 -> Rabs (r2 - f2) <= e2 -> Rabs (r1 + r2 - (f1 + f2)) <= e1 + e2.
Proof.
  intros H1 H2.
  replace (r1 + r2 - (f1 + f2)) with ((r1 - f1) + (r2 - f2)) by ring.
  eapply Rle_trans; [apply Rabs_triang|lra].
Qed.

Lemma scaled_head c r f e : Rabs (r - f) <= e -> Rabs (c * r - c * f) <= Rabs c * e.
Proof.
  intros H; rewrite <- Rmult_minus_distr_l, Rabs_mult.
  apply Rmult_le_compat_l; [apply Rabs_pos|exact H].
Qed.

Lemma biased_head c r f e : Rabs (r - (f - c)) <= e -> Rabs (r + c - f) <= e.
Proof. intros H; now replace (r + c - f) with (r - (f - c)) by ring. Qed.
