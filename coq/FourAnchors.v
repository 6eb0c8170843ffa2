(** The four anchors nearest to a query, at sharpness 2.7 to 2.75: how far their mean is from it. Three or two of them
    at the ends of the lattice. Used in Sharpness.v. *)

From Coq Require Import Reals Lra.
From Interval Require Import Tactic.
Open Scope R_scope.

(** Weights relative to the left anchor of the pair, the query being [x] to the right of it: the right anchor of
    the pair, the next to the left, the next to the right. *)
Definition right_one (c x : R) : R := exp (- (c * (1 - 2 * x))).
Definition left_next (c x : R) : R := exp (- (c * (1 + 2 * x))).
Definition right_next (c x : R) : R := exp (- (c * (4 - 4 * x))).

(** The four anchors; [l] and [r] say whether the outer ones are there. *)
Definition core_moment (c x l r : R) : R :=
  - x + (1 - x) * right_one c x - l * ((1 + x) * left_next c x) + r * ((2 - x) * right_next c x).
Definition core_mass (c x l r : R) : R := 1 + right_one c x + l * left_next c x + r * right_next c x.

Definition core (c K : R) : Prop :=
  forall x l r, 0 <= x <= 1 -> (l = 0 \/ l = 1) -> (r = 0 \/ r = 1) ->
  Rabs (core_moment c x l r) <= K * core_mass c x l r.

(** ** The half of the cell next to the left anchor is enough. *)

Lemma core_mirrored c x l r :
  core_moment c x l r = - right_one c x * core_moment c (1 - x) r l /\
  core_mass c x l r = right_one c x * core_mass c (1 - x) r l.
Proof.
  assert (E1 : right_one c x * right_one c (1 - x) = 1).
  { unfold right_one; rewrite <- exp_plus, <- exp_0; f_equal; ring. }
  assert (E2 : right_next c x = right_one c x * left_next c (1 - x)).
  { unfold right_next, right_one, left_next; rewrite <- exp_plus; f_equal; ring. }
  assert (E3 : left_next c x = right_one c x * right_next c (1 - x)).
  { unfold right_next, right_one, left_next; rewrite <- exp_plus; f_equal; ring. }
  unfold core_moment, core_mass; rewrite E2, E3.
  split.
  - transitivity (- x * (right_one c x * right_one c (1 - x)) + (1 - x) * right_one c x
      - l * ((1 + x) * (right_one c x * right_next c (1 - x)))
      + r * ((2 - x) * (right_one c x * left_next c (1 - x)))); [rewrite E1; ring|ring].
  - transitivity (right_one c x * right_one c (1 - x) + right_one c x
      + l * (right_one c x * right_next c (1 - x)) + r * (right_one c x * left_next c (1 - x)));
      [rewrite E1; ring|ring].
Qed.

Lemma core_from_half c K :
  (forall x l r, 0 <= x <= / 2 -> (l = 0 \/ l = 1) -> (r = 0 \/ r = 1) ->
   Rabs (core_moment c x l r) <= K * core_mass c x l r) -> core c K.
Proof.
  intros H x l r Hx Hl Hr.
  destruct (Rle_or_lt x (/ 2)) as [Hx2|Hx2]; [apply H; assumption || lra|].
  destruct (core_mirrored c x l r) as [-> ->].
  assert (P : 0 < right_one c x) by apply exp_pos.
  rewrite Rabs_mult, Rabs_Ropp, (Rabs_pos_eq (right_one c x)) by lra.
  specialize (H (1 - x) r l ltac:(lra) Hr Hl).
  replace (K * (right_one c x * core_mass c (1 - x) r l))
    with (right_one c x * (K * core_mass c (1 - x) r l)) by ring.
  apply Rmult_le_compat_l; lra.
Qed.

(** ** The inequality, by interval arithmetic. *)

Ltac all_cores c x Hl Hr :=
  unfold core_moment, core_mass, right_one, left_next, right_next;
  destruct Hl as [-> | ->], Hr as [-> | ->];
  rewrite ?Rmult_0_l, ?Rmult_1_l, ?Rplus_0_r, ?Rminus_0_r;
  apply Rabs_le; split; apply Rminus_le;
  interval with (i_bisect x, i_bisect c, i_taylor x, i_degree 6, i_prec 40, i_depth 30).

Lemma core_wide c : 27 / 10 <= c <= 2751 / 1000 -> core c (6395 / 100000).
Proof. intros Hc; apply core_from_half; intros x l r Hx Hl Hr; all_cores c x Hl Hr. Qed.

Lemma core_narrow c : 271 / 100 <= c <= 273 / 100 -> core c (6295 / 100000).
Proof. intros Hc; apply core_from_half; intros x l r Hx Hl Hr; all_cores c x Hl Hr. Qed.
