(** A softmax head on a scalar, and what holds for every one of them.

    A key is a slope, an offset and a value. At the query [s] it has the weight
    [exp (slope * s + offset)], and the head is the mean of the values under these weights. *)

From Coq Require Import Reals List Permutation Lra.
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

Lemma exp_le x y : x <= y -> exp x <= exp y.
Proof. intros [H|H]; [now apply Rlt_le, exp_increasing|rewrite H; lra]. Qed.

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

(** Another gauge: [g * s + o] is added to all logits of a group of keys. *)
Definition shifted (g o : R) (k : key) : key := Key (slope k + g) (offset k + o) (value k).

Definition shift (g o : R) (keys : list key) : list key := map (shifted g o) keys.

Lemma weight_shifted g o k s : weight k s = exp (- (g * s + o)) * weight (shifted g o k) s.
Proof. unfold weight; rewrite <- exp_plus; f_equal; simpl; ring. Qed.

Lemma mass_shift g o keys s : mass keys s = exp (- (g * s + o)) * mass (shift g o keys) s.
Proof.
  induction keys as [|k rest IH]; simpl; [ring|].
  rewrite IH, (weight_shifted g o k); ring.
Qed.

Lemma moment_shift g o keys s : moment keys s = exp (- (g * s + o)) * moment (shift g o keys) s.
Proof.
  induction keys as [|k rest IH]; simpl; [ring|].
  rewrite IH, (weight_shifted g o k); ring.
Qed.

Lemma shift_some g o keys : keys <> [] -> shift g o keys <> [].
Proof. now destruct keys. Qed.

(** A gauge that all keys share changes nothing. *)
Lemma head_shift g o keys s : keys <> [] -> head keys s = head (shift g o keys) s.
Proof.
  intros H; unfold head.
  rewrite (mass_shift g o keys), (moment_shift g o keys).
  pose proof (mass_pos (shift g o keys) s (shift_some g o keys H)).
  pose proof (exp_pos (- (g * s + o))).
  field; lra.
Qed.

(** Nor does the order of the keys. *)
Lemma head_permutation keys keys' s : Permutation keys keys' -> head keys s = head keys' s.
Proof.
  intros H; unfold head.
  assert (mass keys s = mass keys' s /\ moment keys s = moment keys' s) as [-> ->]; [|reflexivity].
  induction H; simpl; [split; reflexivity|destruct IHPermutation; split; lra|split; ring|].
  destruct IHPermutation1, IHPermutation2; split; congruence.
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
