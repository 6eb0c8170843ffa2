(** The paper's single head: p anchors at even distances on [[a, b]], sharpness beta, one head.

    Token i has its own [w_i], [t_i], and asks with the features [(s, 1)], [s = w_i . x_i + t_i]; anchor k
    answers with the key [(2 beta L_k, - beta L_k^2)] and the value [L_k]. Then

        | output - Range_[a,b](w . x + t) | <= (b - a) / p + softmax term

    for every d, p, w, t, x, a, b and beta; from [beta spacing^2 >= 2] on no softmax term is needed. *)

From Coq Require Import Reals Lra Lia.
From Interval Require Import Tactic.
From Anchorhead Require Import Softmax Sums Lattice Tails.
Open Scope R_scope.

Definition dot (d : nat) (w x : nat -> R) : R := total d (fun j => w j * x j).

Definition spacing (a b : R) (p : nat) : R := (b - a) / (INR p - 1).

Definition anchor (a b : R) (p k : nat) : R := a + INR k * spacing a b p.

(** Query [(s, 1)] against the key [(2 beta L, - beta L^2)]. *)
Definition score (beta s L : R) : R := s * (2 * beta * L) + 1 * (- beta * L ^ 2).

Definition single_head (p : nat) (a b beta s : R) : R :=
  attention p (fun k => score beta s (anchor a b p k)) (anchor a b p).

Definition largest (a b : R) : R := Rmax (Rabs a) (Rabs b).

Lemma range_inside a b s : a <= s <= b -> Range a b s = s.
Proof. intros H; unfold Range; rewrite Rmax_right, Rmin_right; lra. Qed.

Lemma range_between a b s : a <= b -> a <= Range a b s <= b.
Proof.
  intros H; unfold Range; split; [|apply Rmin_l].
  apply Rmin_glb; [exact H|apply Rmax_l].
Qed.

Lemma range_follows N : 0 <= N -> follows_within N (Range 0 N).
Proof.
  intros HN; split.
  - intros x y H; unfold Range, Rmin, Rmax.
    destruct (Rle_dec 0 x), (Rle_dec 0 y);
      repeat (match goal with |- context [Rle_dec ?a ?b] => destruct (Rle_dec a b) end); lra.
  - intros x; symmetry; apply range_inside, range_between, HN.
Qed.

Lemma range_affine a D N s : 0 < D ->
  Range a (a + D * N) s = a + D * Range 0 N ((s - a) / D).
Proof.
  intros HD; unfold Range.
  assert (E : Rmax a s = a + D * Rmax 0 ((s - a) / D)).
  { unfold Rmax; destruct (Rle_dec a s), (Rle_dec 0 ((s - a) / D)) as [H|H]; try (field; lra); exfalso.
    - apply H, Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat; lra].
    - assert (0 <= (s - a) / D * D) by (apply Rmult_le_pos; lra).
      replace ((s - a) / D * D) with (s - a) in * by (field; lra). lra. }
  rewrite E; unfold Rmin.
  set (x := Rmax 0 ((s - a) / D)).
  destruct (Rle_dec (a + D * N) (a + D * x)) as [H|H], (Rle_dec N x) as [H'|H']; try reflexivity; exfalso.
  - apply H'. apply (Rmult_le_reg_l D); lra.
  - apply H. apply Rplus_le_compat_l, Rmult_le_compat_l; lra.
Qed.

Section SingleHead.

Variables (p : nat) (a b beta : R).
Hypothesis p_two : (2 <= p)%nat.
Hypothesis a_below_b : a < b.
Hypothesis beta_pos : 0 < beta.

Let D := spacing a b p.
Let c := beta * D ^ 2.

Lemma p_real : 2 <= INR p.
Proof. apply (le_INR 2); exact p_two. Qed.

Lemma D_pos : 0 < D.
Proof. pose proof p_real; unfold D, spacing; apply Rdiv_lt_0_compat; lra. Qed.

Lemma c_pos : 0 < c.
Proof. pose proof D_pos; unfold c; apply Rmult_lt_0_compat; [exact beta_pos|nra]. Qed.

(** In units of the spacing the head is a lattice of anchors. *)
Lemma single_head_lattice s :
  single_head p a b beta s
  = a + D * attention p (bell c ((s - a) / D)) (fun k => Range 0 (INR p - 1) (INR k)).
Proof.
  pose proof D_pos; pose proof p_real.
  rewrite <- attention_affine by lia.
  rewrite <- (attention_gauge p (bell c ((s - a) / D)) (beta * s ^ 2)) by lia.
  unfold single_head; apply attention_ext; intros k Hk.
  - unfold score, bell, anchor, c; fold D; field; lra.
  - rewrite range_inside.
    + unfold anchor; fold D; ring.
    + split; [apply pos_INR|]. replace p with (S (p - 1)) by lia.
      rewrite S_INR. assert (INR k <= INR (p - 1)) by (apply le_INR; lia). lra.
Qed.

Theorem single_head_tails s T : (forall n, (n + 2 <= p)%nat -> tails n c T) ->
  Rabs (single_head p a b beta s - Range a b s) <= D * (/ 2 + T).
Proof.
  intros HT; pose proof D_pos as PD; pose proof p_real.
  rewrite single_head_lattice.
  assert (Eb : b = a + D * (INR p - 1)) by (unfold D, spacing; field; lra).
  replace (Range a b s) with (a + D * Range 0 (INR p - 1) ((s - a) / D))
    by (rewrite <- range_affine, <- Eb by exact PD; reflexivity).
  replace (a + D * attention p (bell c ((s - a) / D)) (fun k => Range 0 (INR p - 1) (INR k))
           - (a + D * Range 0 (INR p - 1) ((s - a) / D)))
    with (D * (attention p (bell c ((s - a) / D)) (fun k => Range 0 (INR p - 1) (INR k))
               - Range 0 (INR p - 1) ((s - a) / D))) by ring.
  rewrite Rabs_mult, (Rabs_pos_eq D) by lra.
  apply Rmult_le_compat_l; [lra|].
  apply lattice_error; [apply c_pos|exact HT|exact p_two|apply range_follows; lra].
Qed.

Lemma half_spacing : D / 2 <= (b - a) / INR p.
Proof.
  pose proof p_real; unfold D, spacing.
  replace ((b - a) / (INR p - 1) / 2) with ((b - a) * / (2 * (INR p - 1))) by (field; lra).
  apply Rmult_le_compat_l; [lra|apply Rinv_le_contravar; lra].
Qed.

Lemma width_below_largest : b - a <= 2 * largest a b.
Proof.
  unfold largest; pose proof (Rmax_l (Rabs a) (Rabs b)); pose proof (Rmax_r (Rabs a) (Rabs b)).
  pose proof (Rle_abs b); pose proof (Rle_abs (- a)) as Ha; rewrite Rabs_Ropp in Ha; lra.
Qed.

End SingleHead.

(** ** The theorem, for every sharpness. *)

Definition softmax_term (q : R) : R := 2 * q * (2 - q) / (1 - q) ^ 2.

Theorem single_head_theorem d (w x : nat -> R) t p a b beta :
  (2 <= p)%nat -> a < b -> 0 < beta ->
  let s := dot d w x + t in
  let q := exp (- (beta * spacing a b p ^ 2)) in
  Rabs (single_head p a b beta s - Range a b s)
  <= (b - a) / INR p + largest a b * (softmax_term q / (INR p - 1)).
Proof.
  intros Hp Hab Hb s q.
  pose proof (c_pos p a b beta Hp Hab Hb) as Hc.
  pose proof (p_real p Hp) as P.
  pose proof (single_head_tails p a b beta Hp Hab Hb s _ (fun n _ => tails_any n _ Hc)) as H; fold q in H.
  pose proof (q_range _ Hc) as Hq; fold q in Hq.
  pose proof (half_spacing p a b Hp Hab) as HD.
  pose proof (width_below_largest a b) as HW.
  set (T := q * (2 - q) / (1 - q) ^ 2) in *.
  assert (PT : 0 <= T).
  { unfold T; apply Rmult_le_pos; [nra|apply Rlt_le, Rinv_0_lt_compat; nra]. }
  apply Rle_trans with (1 := H).
  rewrite Rmult_plus_distr_l; apply Rplus_le_compat; [lra|].
  replace (softmax_term q) with (2 * T) by (unfold softmax_term, T; field; lra).
  unfold spacing.
  replace ((b - a) / (INR p - 1) * T) with ((b - a) * (T / (INR p - 1))) by (field; lra).
  replace (largest a b * (2 * T / (INR p - 1))) with ((2 * largest a b) * (T / (INR p - 1))) by (field; lra).
  apply Rmult_le_compat_r; [|exact HW].
  apply Rmult_le_pos; [exact PT|apply Rlt_le, Rinv_0_lt_compat; lra].
Qed.

(** ** No softmax term from sharpness 2 on. *)

Lemma tails_from_two c : 2 <= c -> exp (- c) / (1 - exp (- c) ^ 3) ^ 2 <= / 6.
Proof.
  intros Hc.
  assert (Hq : 0 < exp (- c) <= 136 / 1000).
  { split; [apply exp_pos|]. apply Rle_trans with (exp (- 2)); [apply exp_le; lra|interval with (i_prec 30)]. }
  set (q := exp (- c)) in *; interval with (i_prec 30).
Qed.

Theorem single_head_sharp d (w x : nat -> R) t p a b beta :
  (2 <= p)%nat -> a < b -> 2 <= beta * spacing a b p ^ 2 ->
  let s := dot d w x + t in
  Rabs (single_head p a b beta s - Range a b s) <= (b - a) / INR p.
Proof.
  intros Hp Hab Hc s.
  pose proof (p_real p Hp) as P. pose proof (D_pos p a b Hp Hab) as PD.
  assert (Hb : 0 < beta).
  { apply (Rmult_lt_reg_r (spacing a b p ^ 2)); [nra|lra]. }
  destruct (Nat.eq_dec p 2) as [E|E].
  - apply Rle_trans with (spacing a b p * (/ 2 + 0)).
    + apply single_head_tails; try assumption.
      intros n Hn y _; replace n with O by lia; unfold tail; simpl; lra.
    + pose proof (half_spacing p a b Hp Hab); lra.
  - set (c := beta * spacing a b p ^ 2) in *.
    apply Rle_trans with (spacing a b p * (/ 2 + exp (- c) / (1 - exp (- c) ^ 3) ^ 2)).
    + apply single_head_tails; try assumption.
      intros n _; apply tails_sharp; lra.
    + assert (P3 : 3 <= INR p) by (replace 3 with (INR 3) by (simpl; ring); apply le_INR; lia).
      assert (T : exp (- c) / (1 - exp (- c) ^ 3) ^ 2 <= / 6) by now apply tails_from_two.
      apply Rle_trans with (spacing a b p * (2 / 3)).
      * apply Rmult_le_compat_l; lra.
      * unfold spacing.
        replace ((b - a) / (INR p - 1) * (2 / 3)) with ((b - a) * / ((INR p - 1) * (3 / 2))) by (field; lra).
        apply Rmult_le_compat_l; [lra|apply Rinv_le_contravar; lra].
Qed.
