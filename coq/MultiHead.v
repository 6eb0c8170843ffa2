(** The paper's multi-head theorem: n tokens carry n anchors, H heads share [[a, b]].

    Head h owns the slice from [edge h] to [edge (h + 1)]: n - 2 anchors at the centres of its cells, whose values are
    their positions, and a dummy half a cell beyond each end with value 0, except that the first head's lower
    dummy has value a and the last head's upper one has value b. The heads add up, and with
    [delta = (b - a) / ((n - 2) H)]

        | sum of heads - Range_[a,b](w . x + t) | <= delta + softmax term

    for every n, H, d, w, t, x, a, b and beta. From [beta delta^2 >= 2] on the softmax term is
    [max(|a|, |b|) 4 r (2 - r) / (1 - r)^2], [r = exp (- 2 beta delta^2)].

    Why: with the ends of its slice as values of its dummies a head follows [s] clipped to its slice, and these clipped
    lines add up to [s] clipped to [[a, b]], once the inner edges are taken off. Value 0 at the dummies
    does that: an edge is taken off twice, with weights that add up to 1 but for a leak of [exp (- 2 c)]. *)

From Coq Require Import Reals Lra Lia.
From Interval Require Import Tactic.
From Anchorhead Require Import Softmax Sums Lattice Tails SingleHead Slices Dummies FarHeads.
Open Scope R_scope.

Definition cell (n H : nat) (a b : R) : R := (b - a) / (INR (n - 2) * INR H).

Definition edge (n H : nat) (a b : R) (h : nat) : R := a + cell n H a b * (INR h * INR (n - 2)).

Definition position (n H : nat) (a b : R) (h k : nat) : R := edge n H a b h + cell n H a b * (INR k - / 2).

Definition carried (n H : nat) (a b : R) (h k : nat) : R :=
  if Nat.eqb k 0 then (if Nat.eqb h 0 then a else 0)
  else if Nat.eqb k (n - 1) then (if Nat.eqb (S h) H then b else 0)
  else position n H a b h k.

Definition multi_head (n H : nat) (a b beta s : R) : R :=
  total H (fun h => attention n (fun k => score beta s (position n H a b h k)) (carried n H a b h)).

(** ** Clipped lines add up. *)

Lemma range_joined a e b s : a <= e <= b -> Range a e s + (Range e b s - e) = Range a b s.
Proof.
  intros H; unfold Range; destruct (Rle_or_lt s e) as [Hs|Hs].
  - rewrite (Rmax_left e s), (Rmin_right b e) by lra.
    destruct (Rle_or_lt s a); [rewrite Rmax_left by lra|rewrite Rmax_right by lra]; rewrite !Rmin_right; lra.
  - rewrite (Rmax_right e s), (Rmax_right a s), (Rmin_left e s) by lra. lra.
Qed.

Section MultiHead.

Variables (m H' : nat) (a b beta s : R).
Hypothesis m_pos : (1 <= m)%nat.
Hypothesis a_below_b : a < b.
Hypothesis beta_pos : 0 < beta.

Let n := (m + 2)%nat.
Let H := S H'.
Let D := cell n H a b.
Let c := beta * D ^ 2.
Let e := edge n H a b.
Let u h := (s - e h) / D + / 2.

Lemma m_of_n : (n - 2)%nat = m.
Proof. unfold n; lia. Qed.

Lemma m_one : 1 <= INR m.
Proof. apply (le_INR 1); exact m_pos. Qed.

Lemma H_one : 1 <= INR H.
Proof. apply (le_INR 1); unfold H; lia. Qed.

Lemma cell_pos : 0 < D.
Proof.
  pose proof m_one; pose proof H_one; unfold D, cell; rewrite m_of_n.
  apply Rdiv_lt_0_compat; [lra|apply Rmult_lt_0_compat; lra].
Qed.

Lemma sharpness_pos : 0 < c.
Proof. pose proof cell_pos; unfold c; apply Rmult_lt_0_compat; [exact beta_pos|nra]. Qed.

Lemma edge_is h : e h = a + D * (INR h * INR m).
Proof. unfold e, edge; rewrite m_of_n; reflexivity. Qed.

Lemma edge_first : e 0 = a.
Proof. rewrite edge_is; simpl; ring. Qed.

Lemma edge_last : e H = b.
Proof.
  rewrite edge_is; unfold D, cell; rewrite m_of_n; pose proof m_one; pose proof H_one. field; lra.
Qed.

Lemma edge_next h : e (S h) = e h + D * INR m.
Proof. rewrite !edge_is, S_INR; ring. Qed.

Lemma edge_grows h k : (h <= k)%nat -> e h <= e k.
Proof.
  intros Hk; rewrite !edge_is; pose proof cell_pos; pose proof m_one; apply le_INR in Hk.
  assert (0 <= D * ((INR k - INR h) * INR m)) by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]). lra.
Qed.

Lemma edge_small h : (h <= H)%nat -> Rabs (e h) <= largest a b.
Proof.
  intros Hh; pose proof (edge_grows 0 h ltac:(lia)) as A; pose proof (edge_grows h H Hh) as B.
  rewrite edge_first in A; rewrite edge_last in B; unfold largest.
  pose proof (Rmax_l (Rabs a) (Rabs b)); pose proof (Rmax_r (Rabs a) (Rabs b)).
  pose proof (Rle_abs b); pose proof (Rle_abs (- a)) as N; rewrite Rabs_Ropp in N.
  apply Rabs_le; lra.
Qed.

Lemma u_next h : u (S h) = u h - INR m.
Proof. unfold u; rewrite edge_next; pose proof cell_pos; field; lra. Qed.

Lemma u_is h : u h = u 0 - INR h * INR m.
Proof. induction h as [|h IH]; [simpl; ring|rewrite u_next, IH, S_INR; ring]. Qed.

Lemma slice_is_range h : e h + D * (slice m (u h) - / 2) = Range (e h) (e (S h)) s.
Proof.
  pose proof cell_pos as PD; pose proof m_one.
  assert (Es : s = e h + D * (u h - / 2)) by (unfold u; field; lra).
  assert (EN := edge_next h).
  pose proof (slice_cases m (u h)) as C.
  assert (PDm : 0 <= D * INR m) by (apply Rmult_le_pos; lra).
  assert (Mono : forall x y, x <= y -> D * x <= D * y) by (intros; apply Rmult_le_compat_l; lra).
  unfold Range; destruct C as [[L E]|[[L E]|[L E]]]; rewrite E.
  - pose proof (Mono (u h) (/ 2) L). rewrite Rmax_left, Rmin_right by lra. lra.
  - pose proof (Mono (/ 2) (u h) ltac:(lra)). pose proof (Mono (u h) (INR m + / 2) ltac:(lra)).
    rewrite Rmax_right, Rmin_right by lra. lra.
  - pose proof (Mono (INR m + / 2) (u h) L). rewrite Rmax_right, Rmin_left by lra. lra.
Qed.

Lemma ranges_add_up k : total (S k) (fun h => Range (e h) (e (S h)) s) - total k (fun g => e (S g))
                        = Range a (e (S k)) s.
Proof.
  induction k as [|k IH]; [simpl; rewrite edge_first; ring|].
  pose proof (edge_grows 0 (S k) ltac:(lia)) as A; pose proof (edge_grows (S k) (S (S k)) ltac:(lia)) as B.
  rewrite edge_first in A.
  rewrite <- (range_joined a (e (S k)) (e (S (S k)))) by lra.
  rewrite <- IH; cbn [total]; ring.
Qed.

(** ** One head. *)

Let taken_low h := if Nat.eqb h 0 then 0 else e h.
Let taken_high h := if Nat.eqb (S h) H then 0 else e (S h).

Lemma carried_is h k : (k < n)%nat ->
  carried n H a b h k
  = e h + D * (slice m (INR k) - / 2) + (0 + - taken_low h * is 0 k + (0 + - taken_high h * is (m + 1) k)).
Proof.
  intros Hk; pose proof m_one; unfold carried, is, taken_low, taken_high, n in *.
  pose proof (slice_cases m (INR k)) as C.
  assert (Ek : (m + 2 - 1)%nat = (m + 1)%nat) by lia; rewrite Ek.
  destruct (Nat.eqb_spec k 0) as [->|K0].
  - replace (Nat.eqb (m + 1) 0) with false by (symmetry; apply Nat.eqb_neq; lia).
    simpl (Nat.eqb 0 0). simpl (INR 0) in C |- *.
    assert (E : slice m 0 = / 2) by lra; rewrite E.
    destruct (Nat.eqb_spec h 0) as [->|]; [rewrite edge_first|]; ring.
  - replace (Nat.eqb 0 k) with false by (symmetry; apply Nat.eqb_neq; lia).
    destruct (Nat.eqb_spec k (m + 1)) as [->|K1].
    + rewrite Nat.eqb_refl. rewrite plus_INR in C |- *; simpl (INR 1) in C |- *.
      assert (E : slice m (INR m + 1) = INR m + / 2) by lra; rewrite E.
      pose proof (edge_next h) as EN.
      destruct (Nat.eqb_spec (S h) H) as [EH|]; [rewrite EH, edge_last in EN|]; lra.
    + replace (Nat.eqb (m + 1) k) with false by (symmetry; apply Nat.eqb_neq; lia).
      assert (1 <= INR k) by (apply (le_INR 1); lia).
      assert (INR k <= INR m) by (apply le_INR; lia).
      assert (E : slice m (INR k) = INR k) by lra; rewrite E.
      change (position (m + 2) H a b h k) with (e h + D * (INR k - / 2)). ring.
Qed.

Lemma one_head h :
  attention n (fun k => score beta s (position n H a b h k)) (carried n H a b h)
  = e h + D * (soft_slice c m (u h) - / 2) - taken_low h * low c m (u h) - taken_high h * high c m (u h).
Proof.
  assert (Hn : (0 < n)%nat) by (unfold n; lia).
  rewrite (attention_ext n _ (fun k => beta * s ^ 2 + bell c (u h) k) _
             (fun k => (e h - D * / 2 + D * slice m (INR k))
                       + ((0 + - taken_low h * is 0 k) + (0 + - taken_high h * is (m + 1) k)))).
  - rewrite attention_gauge by exact Hn.
    rewrite (attention_plus n _ (fun k => e h - D * / 2 + D * slice m (INR k))) by exact Hn.
    rewrite (attention_plus n _ (fun k => 0 + - taken_low h * is 0 k)) by exact Hn.
    rewrite (attention_affine n _ (e h - D * / 2) D (fun k => slice m (INR k))) by exact Hn.
    rewrite !(attention_affine n _ 0) by exact Hn.
    unfold soft_slice, low, high; fold n; ring.
  - intros k Hk; unfold score, position, bell, c, u; fold e D; pose proof cell_pos; field; lra.
  - intros k Hk; rewrite carried_is by exact Hk; ring.
Qed.

(** ** All heads. *)

Lemma all_heads :
  multi_head n H a b beta s - Range a b s
  = D * total H (fun h => soft_slice c m (u h) - slice m (u h))
    + total H' (fun g => e (S g) * (1 - low c m (u (S g)) - high c m (u g))).
Proof.
  unfold multi_head; rewrite (total_ext H _ _ (fun h _ => one_head h)).
  assert (ER : Range a b s = Range a (e (S H')) s) by (unfold H in *; fold H; now rewrite edge_last).
  rewrite ER, <- ranges_add_up; fold H.
  rewrite (total_ext H (fun h => Range (e h) (e (S h)) s) (fun h => e h + D * (slice m (u h) - / 2)))
    by (intros; now rewrite slice_is_range).
  rewrite <- total_scale.
  rewrite (total_ext H (fun h => e h + D * (soft_slice c m (u h) - / 2) - taken_low h * low c m (u h)
                                - taken_high h * high c m (u h))
             (fun h => (e h + D * (slice m (u h) - / 2)) + D * (soft_slice c m (u h) - slice m (u h))
                       + (-1 * (taken_low h * low c m (u h)) + -1 * (taken_high h * high c m (u h)))))
    by (intros; ring).
  rewrite !total_plus, !total_scale.
  assert (L : total H (fun h => taken_low h * low c m (u h)) = total H' (fun g => e (S g) * low c m (u (S g)))).
  { unfold H; rewrite total_first; unfold taken_low; simpl; ring. }
  assert (U : total H (fun h => taken_high h * high c m (u h)) = total H' (fun g => e (S g) * high c m (u g))).
  { unfold H; cbn [total]; unfold taken_high at 2; rewrite Nat.eqb_refl, Rmult_0_l, Rplus_0_r.
    apply total_ext; intros g Hg; unfold taken_high.
    replace (Nat.eqb (S g) H) with false by (symmetry; apply Nat.eqb_neq; unfold H; lia). reflexivity. }
  rewrite L, U.
  rewrite (total_ext H' (fun g => e (S g) * (1 - low c m (u (S g)) - high c m (u g)))
             (fun g => e (S g) + (-1 * (e (S g) * low c m (u (S g))) + -1 * (e (S g) * high c m (u g)))))
    by (intros; ring).
  rewrite !total_plus, !total_scale; ring.
Qed.

(** ** The leak at the inner edges. *)

Lemma leak_total :
  Rabs (total H' (fun g => e (S g) * (1 - low c m (u (S g)) - high c m (u g))))
  <= largest a b * (4 * exp (- (2 * c)) * (2 - exp (- (2 * c))) / (1 - exp (- (2 * c))) ^ 2).
Proof.
  pose proof sharpness_pos as Hc.
  assert (PM : 0 <= largest a b) by (apply Rle_trans with (1 := Rabs_pos a), Rmax_l).
  eapply Rle_trans; [apply total_abs|].
  apply Rle_trans with (largest a b * total H' (fun g => 2 * leak c (Rabs (u 1 - / 2 - INR g * INR m)))).
  - rewrite <- total_scale; apply total_le; intros g Hg.
    rewrite Rabs_mult.
    pose proof (dummies_weigh_one c m Hc (u (S g) - / 2)) as W.
    replace (/ 2 + (u (S g) - / 2)) with (u (S g)) in W by ring.
    replace (INR m + / 2 + (u (S g) - / 2)) with (u g) in W by (rewrite u_next; ring).
    rewrite (Rabs_pos_eq (1 - _ - _)) by lra.
    replace (u 1 - / 2 - INR g * INR m) with (u (S g) - / 2) by (rewrite (u_is 1), (u_is (S g)), S_INR; simpl; ring).
    apply Rmult_le_compat; [apply Rabs_pos|lra|apply edge_small; unfold H; lia|lra].
  - apply Rmult_le_compat_l; [exact PM|now apply leak_sum].
Qed.

(** ** The smear of the heads. *)

Let error h := Rabs (soft_slice c m (u h) - slice m (u h)).
Let below_each := reach c - / 4.

Lemma error_above h : u h <= / 2 -> error h <= smear c (/ 2 - u h).
Proof.
  intros Hu; unfold error; pose proof (smear_below c m sharpness_pos (/ 2 - u h) ltac:(lra)) as S.
  replace (/ 2 - (/ 2 - u h)) with (u h) in S by ring; exact S.
Qed.

Lemma error_below h : INR m + / 2 <= u h -> error h <= smear c (u h - (INR m + / 2)).
Proof.
  intros Hu; unfold error; pose proof (smear_above c m sharpness_pos (u h - (INR m + / 2)) ltac:(lra)) as S.
  replace (INR m + / 2 + (u h - (INR m + / 2))) with (u h) in S by ring; exact S.
Qed.

(** Heads whose slices lie above the query, from the h-th on. *)
Lemma errors_above h k : u h <= / 2 -> total k (fun j => error (h + j)) <= smear c (/ 2 - u h) + far c.
Proof.
  intros Hu; pose proof m_one.
  eapply Rle_trans; [|apply (smear_sum c m sharpness_pos m_pos k); lra].
  apply total_le; intros j _.
  assert (E : u (h + j) = u h - INR j * INR m) by (rewrite (u_is (h + j)), (u_is h), plus_INR; ring).
  assert (0 <= INR j * INR m) by (apply Rmult_le_pos; [apply pos_INR|lra]).
  eapply Rle_trans; [apply error_above; lra|]. right; f_equal; rewrite E; ring.
Qed.

(** Heads whose slices lie below it, down from the h-th. *)
Lemma errors_below h : INR m + / 2 <= u h ->
  total (S h) error <= smear c (u h - (INR m + / 2)) + far c.
Proof.
  intros Hu; pose proof m_one; rewrite total_reverse.
  eapply Rle_trans; [|apply (smear_sum c m sharpness_pos m_pos (S h)); lra].
  apply total_le; intros j Hj.
  assert (E : u (S h - 1 - j) = u h + INR j * INR m).
  { rewrite (u_is (S h - 1 - j)), (u_is h). replace (S h - 1 - j)%nat with (h - j)%nat by lia.
    rewrite minus_INR by lia; ring. }
  assert (0 <= INR j * INR m) by (apply Rmult_le_pos; [apply pos_INR|lra]).
  eapply Rle_trans; [apply error_below; lra|]. right; f_equal; rewrite E; ring.
Qed.

Lemma far_nonneg : 0 <= far c.
Proof.
  pose proof (smear_sum c m sharpness_pos m_pos 1 0 (Rle_refl 0)) as S; simpl in S.
  rewrite Rmult_0_l, Rplus_0_r in S. lra.
Qed.

Lemma smear_start y : 0 <= y -> smear c y <= reach c - / 4.
Proof. intros Hy; rewrite <- smear_at_0; now apply (smear_decreasing c sharpness_pos). Qed.

Lemma smear_total T : 0 <= T -> (forall k, (k <= m)%nat -> tails k c T) -> total H error <= smear_bound c T.
Proof.
  intros PT HT; pose proof m_one as M1; pose proof far_nonneg as PF.
  pose proof (smear_nonneg c sharpness_pos (/ 2)) as PS.
  unfold smear_bound.
  destruct (Rle_or_lt (u 0) (/ 2)) as [HA|HA]; [|destruct (Rle_or_lt (INR m + / 2) (u H')) as [HB|HB]].
  - pose proof (errors_above 0 H HA) as E; simpl (0 + _)%nat in E.
    pose proof (smear_start (/ 2 - u 0) ltac:(lra)). change (fun j => error j) with error in E. lra.
  - pose proof (errors_below H' HB) as E. fold H in E.
    pose proof (smear_start (u H' - (INR m + / 2)) ltac:(lra)). lra.
  - rewrite u_is in HB.
    destruct (find_cell H' ((u 0 - / 2) / INR m)) as [h [Hh Hx]].
    { split; [apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat; lra]|].
      apply (Rmult_le_reg_r (INR m)); [lra|]. unfold Rdiv; rewrite Rmult_assoc, Rinv_l; lra. }
    assert (Hu : / 2 <= u h <= INR m + / 2).
    { rewrite u_is. set (x := (u 0 - / 2) / INR m) in *.
      replace (u 0) with (/ 2 + x * INR m) by (unfold x; field; lra).
      assert (0 <= (x - INR h) * INR m) by (apply Rmult_le_pos; lra).
      assert (0 <= (INR h + 1 - x) * INR m) by (apply Rmult_le_pos; lra). lra. }
    replace H with (h + (1 + (H' - h)))%nat by (unfold H; lia).
    rewrite !total_app; simpl (total 1 _); rewrite Nat.add_0_r, Rplus_0_l.
    assert (W : error h <= / 2 + T).
    { apply smear_within; [exact sharpness_pos|exact m_pos|exact HT]. }
    assert (B : total h error <= smear c (u h - / 2) + far c).
    { destruct h as [|g]; [simpl; pose proof (smear_nonneg c sharpness_pos (u 0 - / 2)); lra|].
      rewrite u_next in Hu |- *.
      pose proof (errors_below g ltac:(lra)) as E.
      replace (u g - INR m - / 2) with (u g - (INR m + / 2)) by ring; exact E. }
    assert (A : total (H' - h) (fun k => error (h + (1 + k))) <= smear c (INR m + / 2 - u h) + far c).
    { pose proof (errors_above (S h) (H' - h)) as E; rewrite u_next in E. specialize (E ltac:(lra)).
      replace (/ 2 - (u h - INR m)) with (INR m + / 2 - u h) in E by ring.
      eapply Rle_trans; [|exact E]. right; apply total_ext; intros k _; f_equal; lia. }
    assert (P : smear c (u h - / 2) + smear c (INR m + / 2 - u h) <= reach c - / 4 + smear c (/ 2)).
    { destruct (Rle_or_lt (/ 2) (u h - / 2)).
      - pose proof (smear_decreasing c sharpness_pos (/ 2) (u h - / 2) ltac:(lra)).
        pose proof (smear_start (INR m + / 2 - u h) ltac:(lra)). lra.
      - pose proof (smear_decreasing c sharpness_pos (/ 2) (INR m + / 2 - u h) ltac:(lra)).
        pose proof (smear_start (u h - / 2) ltac:(lra)). lra. }
    lra.
Qed.

Lemma multi_head_error T : 0 <= T -> (forall k, (k <= m)%nat -> tails k c T) ->
  Rabs (multi_head n H a b beta s - Range a b s)
  <= D * smear_bound c T
     + largest a b * (4 * exp (- (2 * c)) * (2 - exp (- (2 * c))) / (1 - exp (- (2 * c))) ^ 2).
Proof.
  intros PT HT; rewrite all_heads; pose proof cell_pos.
  eapply Rle_trans; [apply Rabs_triang|].
  apply Rplus_le_compat; [|apply leak_total].
  rewrite Rabs_mult, (Rabs_pos_eq D) by lra.
  apply Rmult_le_compat_l; [lra|].
  eapply Rle_trans; [apply total_abs|now apply smear_total].
Qed.

End MultiHead.
