(** ReLU, truncated linear functions, leaky ReLU and the absolute value, for every slope. *)

From Coq Require Import Reals List Permutation Lra.
From Coquelicot Require Import Coquelicot.
From Anchorhead Require Import Softmax Steep.
Import ListNotations.
Open Scope R_scope.

(** ** A sigmoid of slope [b] as a gate. *)

Theorem gated_line b s : 0 < b -> Rabs (s / (1 + exp (- (b * s))) - Rmax 0 s) <= 2785 / 10000 / b.
Proof.
  intros Hb.
  assert (Hk : 0 + 1 * ((kappa + 0) / b) = 2785 / 10000 / b) by (unfold kappa; field; lra).
  rewrite <- Hk.
  destruct (Rle_or_lt 0 s) as [Hs|Hs].
  - rewrite Rmax_right by lra.
    replace (s / (1 + exp (- (b * s))))
      with ((s + exp (- (b * s)) * 0) / (1 + exp (- (b * s)) * 1)) by (f_equal; ring).
    apply two_groups; try lra; try (rewrite exp_0; lra).
    + replace (s / 1 - s) with 0 by field; rewrite Rabs_R0; lra.
    + replace (0 / 1 - s) with (- s) by field; rewrite Rabs_Ropp, Rabs_pos_eq; lra.
  - rewrite Rmax_left by lra.
    replace (s / (1 + exp (- (b * s))))
      with ((0 + exp (- (b * - s)) * s) / (1 + exp (- (b * - s)) * 1)).
    + apply two_groups; try lra; try (rewrite exp_0; lra).
      * replace (0 / 1 - 0) with 0 by field; rewrite Rabs_R0; lra.
      * replace (s / 1 - 0) with s by field; rewrite Rabs_left; lra.
    + replace (- (b * - s)) with (- - (b * s)) by ring.
      rewrite (exp_Ropp (- (b * s))); pose proof (exp_pos (- (b * s))).
      field; lra.
Qed.

(** ** A line from two keys: [tanh (h s) / h]. *)

Definition line (h : R) : list key := [Key (- h) 0 (- / h); Key h 0 (/ h)].

Lemma line_rate h : 0 < h -> Rabs (/ h - - / h) * Rabs (h - - h) / 4 = 1.
Proof.
  intros Hh; pose proof (Rinv_0_lt_compat h Hh).
  rewrite !Rabs_pos_eq by lra; field; lra.
Qed.

Lemma line_at_0 h : 0 < h -> head (line h) 0 = 0.
Proof.
  intros Hh; unfold line; rewrite two_keys_sigmoid; simpl.
  replace ((h - - h) * 0 + (0 - 0)) with 0 by ring.
  unfold sigmoid; rewrite Ropp_0, exp_0; field; lra.
Qed.

Lemma line_below h s : 0 < h -> Rabs (head (line h) s) <= Rabs s.
Proof.
  intros Hh.
  pose proof (two_keys_lipschitz (Key (- h) 0 (- / h)) (Key h 0 (/ h)) s 0) as H; simpl in H.
  fold (line h) in H; rewrite line_rate, line_at_0, !Rminus_0_r in H by assumption; lra.
Qed.

Lemma line_derive h x : 0 < h -> is_derive (head (line h)) x (1 - (h * head (line h) x) ^ 2).
Proof.
  intros Hh.
  assert (P : 0 < exp (- ((h - - h) * x + (0 - 0)))) by apply exp_pos.
  apply is_derive_ext with
    (fun s => - / h + (/ h - - / h) * sigmoid ((h - - h) * s + (0 - 0))).
  { intros s; unfold line; rewrite two_keys_sigmoid; reflexivity. }
  replace (1 - (h * head (line h) x) ^ 2)
    with ((/ h - - / h) * ((h - - h) * (exp (- ((h - - h) * x + (0 - 0)))
                                         / (1 + exp (- ((h - - h) * x + (0 - 0)))) ^ 2))).
  - auto_derive.
    + eexists; apply sigmoid_derive.
    + rewrite (is_derive_unique _ _ _ (sigmoid_derive _)); ring.
  - unfold line; rewrite two_keys_sigmoid; simpl; unfold sigmoid; field; lra.
Qed.

Theorem line_error h s : 0 < h -> Rabs (head (line h) s - s) <= h ^ 2 * Rabs s ^ 3 / 3.
Proof.
  intros Hh.
  set (g x := head (line h) x - x + h ^ 2 * x ^ 3 / 3).
  assert (Dg : forall x, is_derive g x (h ^ 2 * (x ^ 2 - head (line h) x ^ 2))).
  { intros x; unfold g; auto_derive; [eexists; now apply line_derive|].
    replace (Derive (fun u : R => head (line h) u) x) with (1 - (h * head (line h) x) ^ 2)
      by (symmetry; apply is_derive_unique; now apply line_derive).
    field. }
  destruct (MVT_gen g 0 s (fun x => h ^ 2 * (x ^ 2 - head (line h) x ^ 2))) as [c [_ E]].
  - intros x _; apply Dg.
  - intros x _; apply continuity_pt_filterlim, (ex_derive_continuous g); eexists; apply Dg.
  - assert (G0 : g 0 = 0) by (unfold g; rewrite line_at_0 by assumption; field).
    rewrite G0, !Rminus_0_r in E; unfold g in E.
    assert (P : 0 <= h ^ 2 * (c ^ 2 - head (line h) c ^ 2)).
    { apply Rmult_le_pos; [apply pow2_ge_0|].
      pose proof (pow_maj_Rabs (Rabs c) (head (line h) c) 2 (line_below h c Hh)) as M.
      rewrite pow2_abs in M; lra. }
    set (k := h ^ 2 * (c ^ 2 - head (line h) c ^ 2)) in *.
    pose proof (line_below h s Hh) as B.
    destruct (Rle_or_lt 0 s) as [Hs|Hs].
    + rewrite (Rabs_pos_eq s) in * by lra.
      apply Rabs_le_between in B. apply Rabs_le.
      assert (0 <= k * s) by now apply Rmult_le_pos.
      assert (0 <= h ^ 2 * s ^ 3 / 3).
      { assert (0 <= h ^ 2) by apply pow2_ge_0. assert (0 <= s ^ 3) by now apply pow_le. nra. }
      lra.
    + rewrite (Rabs_left s) in * by lra.
      apply Rabs_le_between in B. apply Rabs_le.
      assert (0 <= k * - s) by (apply Rmult_le_pos; lra).
      replace (h ^ 2 * (- s) ^ 3 / 3) with (- (h ^ 2 * s ^ 3 / 3)) by field.
      assert (0 <= h ^ 2 * (- s) ^ 3 / 3).
      { assert (0 <= h ^ 2) by apply pow2_ge_0. assert (0 <= (- s) ^ 3) by (apply pow_le; lra). nra. }
      replace (h ^ 2 * (- s) ^ 3 / 3) with (- (h ^ 2 * s ^ 3 / 3)) in * by field.
      lra.
Qed.

(** ** ReLU: three keys, slopes -A, -h, h. *)

Definition three_keys (A h : R) : list key := line h ++ [Key (- A) (ln 2) 0].

(** [cosh (h s) >= 1]: at the kink the steep key is as heavy as the line, elsewhere lighter. *)
Lemma line_mass h s : 2 <= mass (line h) s.
Proof.
  unfold line; simpl; unfold weight; simpl.
  replace (- h * s + 0) with (- (h * s)) by ring; replace (h * s + 0) with (h * s) by ring.
  pose proof (exp_pos (h * s)) as P; rewrite exp_Ropp; set (E := exp (h * s)) in *.
  assert (I : E * / E = 1) by (apply Rinv_r; lra).
  pose proof (pow2_ge_0 (E - 1)).
  apply (Rmult_le_reg_r E); [lra|]. nra.
Qed.

Lemma line_mass_left h s : 0 < h -> s <= 0 -> mass (line h) s <= 2 * exp (- (h * s)).
Proof.
  intros Hh Hs; unfold line; simpl; unfold weight; simpl.
  replace (- h * s + 0) with (- (h * s)) by ring; replace (h * s + 0) with (h * s) by ring.
  assert (exp (h * s) <= exp (- (h * s))) by (apply exp_le; nra).
  lra.
Qed.

Lemma steep_mass A s : mass (shift A 0 [Key (- A) (ln 2) 0]) s = 2.
Proof.
  simpl; unfold weight; simpl.
  replace ((- A + A) * s + (ln 2 + 0)) with (ln 2) by ring; rewrite exp_ln; lra.
Qed.

Theorem relu_three_keys A h s : 0 < h < A ->
  Rabs (head (three_keys A h) s - Rmax 0 s) <= h ^ 2 * Rabs s ^ 3 / 3 + 2785 / 10000 / (A - h).
Proof.
  intros [Hh HA].
  assert (L0 : 0 <= h ^ 2 * Rabs s ^ 3 / 3).
  { assert (0 <= h ^ 2) by apply pow2_ge_0. assert (0 <= Rabs s ^ 3) by apply pow_le, Rabs_pos. nra. }
  destruct (Rle_or_lt 0 s) as [Hs|Hs].
  - rewrite Rmax_right by lra.
    apply Rle_trans with (h ^ 2 * Rabs s ^ 3 / 3 + 1 * ((kappa + 0) / A)).
    + apply (kink (line h) [Key (- A) (ln 2) 0] 0 0 A 0 A s); try easy; try lra.
      * rewrite <- head_shift by easy; now apply line_error.
      * rewrite <- head_shift, one_key by easy; simpl.
        replace (0 - s) with (- s) by ring; rewrite Rabs_Ropp, (Rabs_pos_eq s) in * by lra; lra.
      * rewrite exp_0, Rmult_1_l, steep_mass.
        pose proof (line_mass h s) as M; rewrite (mass_shift 0 0) in M.
        replace (- (0 * s + 0)) with 0 in M by ring; rewrite exp_0 in M; lra.
    + apply Rplus_le_compat_l; unfold kappa. rewrite Rplus_0_r, Rmult_1_l.
      apply Rmult_le_compat_l; [lra|apply Rinv_le_contravar; lra].
  - rewrite Rmax_left by lra.
    unfold three_keys; rewrite (head_permutation _ ([Key (- A) (ln 2) 0] ++ line h)) by apply Permutation_app_comm.
    apply Rle_trans with (h ^ 2 * Rabs s ^ 3 / 3 + 1 * ((kappa + 0) / (A - h))).
    + apply (kink [Key (- A) (ln 2) 0] (line h) A 0 h 0 (A - h) (- s)); try easy; try lra.
      * rewrite <- head_shift, one_key by easy; simpl. rewrite Rminus_0_r, Rabs_R0; lra.
      * rewrite <- head_shift, Rminus_0_r by easy. pose proof (line_below h s Hh) as B.
        rewrite (Rabs_left s Hs) in B. lra.
      * rewrite exp_0, Rmult_1_l.
        pose proof (line_mass_left h s Hh (Rlt_le _ _ Hs)) as M; rewrite (mass_shift h 0) in M.
        rewrite Rplus_0_r in M.
        apply (Rmult_le_reg_l (exp (- (h * s)))); [apply exp_pos|].
        rewrite steep_mass; lra.
    + unfold kappa; rewrite Rplus_0_r, Rmult_1_l; lra.
Qed.

(** ** Sums of heads: leaky ReLU and the absolute value. *)

Definition mirrored (keys : list key) : list key := map (fun k => Key (- slope k) (offset k) (value k)) keys.

Lemma head_mirrored keys s : head (mirrored keys) s = head keys (- s).
Proof.
  unfold head; f_equal; induction keys as [|k rest IH]; simpl; try reflexivity;
    rewrite IH; unfold weight; simpl; replace (- slope k * s) with (slope k * - s) by ring; reflexivity.
Qed.

(** [leaky c s] is s on the right and [c s] on the left: ReLU minus c times the mirrored ReLU. *)
Theorem leaky_six_keys A h c s : 0 < h < A ->
  Rabs (head (three_keys A h) s + (- c) * head (mirrored (three_keys A h)) s
        - (Rmax 0 s + (- c) * Rmax 0 (- s)))
  <= (1 + Rabs c) * (h ^ 2 * Rabs s ^ 3 / 3 + 2785 / 10000 / (A - h)).
Proof.
  intros H; rewrite head_mirrored.
  pose proof (relu_three_keys A h s H) as E1; pose proof (relu_three_keys A h (- s) H) as E2.
  rewrite Rabs_Ropp in E2.
  pose proof (sum_of_heads _ _ _ _ _ _ E1 (scaled_head (- c) _ _ _ E2)) as S.
  rewrite Rabs_Ropp in S; lra.
Qed.

Theorem abs_six_keys A h s : 0 < h < A ->
  Rabs (head (three_keys A h) s + head (mirrored (three_keys A h)) s - Rabs s)
  <= 2 * (h ^ 2 * Rabs s ^ 3 / 3 + 2785 / 10000 / (A - h)).
Proof.
  intros H; pose proof (leaky_six_keys A h (-1) s H) as L.
  replace (Rmax 0 s + - -1 * Rmax 0 (- s)) with (Rabs s) in L.
  - rewrite (Rabs_left (-1)) in L by lra. replace (1 + - -1) with 2 in L by ring.
    replace (- -1) with 1 in L by ring; rewrite Rmult_1_l in L; exact L.
  - unfold Rmax, Rabs; destruct (Rcase_abs s), (Rle_dec 0 s), (Rle_dec 0 (- s)); lra.
Qed.
