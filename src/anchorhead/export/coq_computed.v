(* What floating-point arithmetic makes of a softmax head, for every number of anchors.

   Every operation is rounded to nearest, sums and products are added up in any order, with or without fused
   multiply-add, underflow is gradual, and exp is within 4 units in the last place: that is the one hypothesis about the
   machine. Nothing may overflow. *)

(* Sums over lists *)

Definition total (l : list R) : R := fold_right Rplus 0 l.

Definition over (l : list nat) (f : nat -> R) : R := total (map f l).

Lemma total_app l m : total (l ++ m) = total l + total m.
Proof. induction l as [|a l IH]; simpl; [ring|rewrite IH; ring]. Qed.

Lemma total_permutation l m : Permutation l m -> total l = total m.
Proof. induction 1; simpl; lra. Qed.

Lemma over_le l f g : (forall k, In k l -> f k <= g k) -> over l f <= over l g.
Proof.
  unfold over; induction l as [|a l IH]; simpl; intros H; [lra|].
  apply Rplus_le_compat; [apply H; now left|apply IH; intros k Hk; apply H; now right].
Qed.

Lemma over_ext l f g : (forall k, In k l -> f k = g k) -> over l f = over l g.
Proof. intros H; apply Rle_antisym; apply over_le; intros k Hk; rewrite (H k Hk); lra. Qed.

Lemma over_plus l f g : over l (fun k => f k + g k) = over l f + over l g.
Proof. unfold over; induction l as [|a l IH]; simpl; [ring|rewrite IH; ring]. Qed.

Lemma over_scale l c f : over l (fun k => c * f k) = c * over l f.
Proof. unfold over; induction l as [|a l IH]; simpl; [ring|rewrite IH; ring]. Qed.

Lemma over_const l c : over l (fun _ => c) = INR (length l) * c.
Proof.
  unfold over; induction l as [|a l IH]; [simpl; ring|].
  change (c + total (map (fun _ => c) l) = INR (S (length l)) * c). rewrite IH, S_INR; ring.
Qed.

Lemma over_abs l f : Rabs (over l f) <= over l (fun k => Rabs (f k)).
Proof.
  unfold over; induction l as [|a l IH]; simpl; [rewrite Rabs_R0; lra|].
  eapply Rle_trans; [apply Rabs_triang|lra].
Qed.

Lemma over_nonneg l f : (forall k, In k l -> 0 <= f k) -> 0 <= over l f.
Proof. intros H; rewrite <- (Rmult_0_r (INR (length l))), <- over_const; now apply over_le. Qed.

Lemma over_member l f j : In j l -> (forall k, In k l -> 0 <= f k) -> f j <= over l f.
Proof.
  unfold over; induction l as [|a l IH]; simpl; intros Hj H; [easy|].
  assert (0 <= total (map f l)) by (apply (over_nonneg l f); intros; apply H; now right).
  destruct Hj as [<-|Hj]; [lra|].
  assert (f j <= total (map f l)) by (apply IH; [easy|intros; apply H; now right]).
  pose proof (H a (or_introl eq_refl)); lra.
Qed.

Lemma some_member (l : list nat) j : In j l -> (1 <= length l)%nat.
Proof. destruct l; simpl; [easy|lia]. Qed.

(* Rounding to nearest, as its error *)

Section Arithmetic.

Variables (rnd : R -> R) (u eta : R).
Hypothesis u_small : 0 <= u <= 1 / 100.
Hypothesis eta_nonneg : 0 <= eta.
Hypothesis rounds : forall x, Rabs (rnd x - x) <= u * Rabs x + eta.

(* summed terms a: a comes of adding up the terms in some order, each rounded first or not. *)
Inductive summed : list R -> R -> Prop :=
  | exact_term t : summed [t] t
  | rounded_term t : summed [t] (rnd t)
  | added l m a b : summed l a -> summed m b -> summed (l ++ m) (rnd (a + b))
  | reordered l m a : Permutation l m -> summed l a -> summed m a.

Definition growth (n : nat) : R := (1 + u) ^ n - 1.
Definition lost (n : nat) : R := (2 * INR n - 1) * (1 + u) ^ n * eta.

Lemma power_ge_1 n : 1 <= (1 + u) ^ n.
Proof. apply pow_R1_Rle; lra. Qed.

Lemma power_mono n m : (n <= m)%nat -> (1 + u) ^ n <= (1 + u) ^ m.
Proof. intros; apply Rle_pow; [lra|easy]. Qed.

Lemma summed_some l a : summed l a -> (1 <= length l)%nat.
Proof.
  induction 1; simpl; try lia; [rewrite app_length; lia|].
  match goal with P : Permutation _ _ |- _ => rewrite <- (Permutation_length P) end; easy.
Qed.

Definition size (l : list R) : R := total (map Rabs l).

Lemma size_nonneg l : 0 <= size l.
Proof. unfold size; induction l as [|a l IH]; simpl; [lra|pose proof (Rabs_pos a); lra]. Qed.

Lemma total_size l : Rabs (total l) <= size l.
Proof.
  unfold size; induction l as [|a l IH]; simpl; [rewrite Rabs_R0; lra|].
  eapply Rle_trans; [apply Rabs_triang|lra].
Qed.

Theorem summed_error l a : summed l a ->
  Rabs (a - total l) <= growth (length l) * size l + lost (length l).
Proof.
  unfold growth, lost. induction 1 as [t|t|l m a b Sl IHl Sm IHm|l m a P S IH].
  - simpl. replace (t - (t + 0)) with 0 by ring. rewrite Rabs_R0. unfold size; simpl.
    pose proof (Rabs_pos t). nra.
  - simpl. unfold size; simpl. replace (rnd t - (t + 0)) with (rnd t - t) by ring.
    eapply Rle_trans; [apply rounds|]. pose proof (Rabs_pos t). nra.
  - pose proof (summed_some _ _ Sl) as Hl. pose proof (summed_some _ _ Sm) as Hm.
    pose proof (total_size l). pose proof (total_size m). pose proof (size_nonneg l). pose proof (size_nonneg m).
    rewrite app_length, total_app. unfold size in *. rewrite map_app, total_app. fold (size l) (size m) in *.
    set (x := a - total l) in *. set (y := b - total m) in *.
    assert (R1 : Rabs (rnd (a + b) - (total l + total m)) <=
                 (1 + u) * (Rabs x + Rabs y) + u * (size l + size m) + eta).
    { replace (rnd (a + b) - (total l + total m)) with ((rnd (a + b) - (a + b)) + (x + y)) by (unfold x, y; ring).
      pose proof (rounds (a + b)) as H3.
      assert (H4 : Rabs (a + b) <= (Rabs x + Rabs y) + (size l + size m)).
      { replace (a + b) with ((x + y) + (total l + total m)) by (unfold x, y; ring).
        eapply Rle_trans; [apply Rabs_triang|].
        pose proof (Rabs_triang x y). pose proof (Rabs_triang (total l) (total m)). lra. }
      eapply Rle_trans; [apply Rabs_triang|]. pose proof (Rabs_triang x y).
      assert (u * Rabs (a + b) <= u * ((Rabs x + Rabs y) + (size l + size m))) by (apply Rmult_le_compat_l; lra).
      lra. }
    eapply Rle_trans; [exact R1|clear R1].
    set (n := (length l + length m)%nat) in *.
    assert (Gl : (1 + u) ^ S (length l) <= (1 + u) ^ n) by (apply power_mono; lia).
    assert (Gm : (1 + u) ^ S (length m) <= (1 + u) ^ n) by (apply power_mono; lia).
    simpl in Gl, Gm. pose proof (power_ge_1 n) as Gn.
    set (A := (1 + u) ^ length l) in *. set (B := (1 + u) ^ length m) in *. set (C := (1 + u) ^ n) in *.
    assert (N : INR n = INR (length l) + INR (length m)) by (unfold n; apply plus_INR).
    assert (1 <= INR (length l)) by (change 1 with (INR 1); now apply le_INR).
    assert (1 <= INR (length m)) by (change 1 with (INR 1); now apply le_INR).
    assert (X : (1 + u) * Rabs x <= (C - (1 + u)) * size l + (2 * INR (length l) - 1) * C * eta).
    { apply Rle_trans with ((1 + u) * ((A - 1) * size l + (2 * INR (length l) - 1) * A * eta)).
      - apply Rmult_le_compat_l; lra.
      - replace ((1 + u) * ((A - 1) * size l + (2 * INR (length l) - 1) * A * eta))
          with (((1 + u) * A - (1 + u)) * size l + (2 * INR (length l) - 1) * ((1 + u) * A) * eta) by ring.
        apply Rplus_le_compat; [apply Rmult_le_compat_r; lra|].
        apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_l; lra. }
    assert (Y : (1 + u) * Rabs y <= (C - (1 + u)) * size m + (2 * INR (length m) - 1) * C * eta).
    { apply Rle_trans with ((1 + u) * ((B - 1) * size m + (2 * INR (length m) - 1) * B * eta)).
      - apply Rmult_le_compat_l; lra.
      - replace ((1 + u) * ((B - 1) * size m + (2 * INR (length m) - 1) * B * eta))
          with (((1 + u) * B - (1 + u)) * size m + (2 * INR (length m) - 1) * ((1 + u) * B) * eta) by ring.
        apply Rplus_le_compat; [apply Rmult_le_compat_r; lra|].
        apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_l; lra. }
    assert (eta <= C * eta) by nra.
    rewrite N. replace (total (map Rabs l)) with (size l) by reflexivity.
    replace (total (map Rabs m)) with (size m) by reflexivity. nra.
  - rewrite <- (Permutation_length P), <- (total_permutation _ _ P).
    unfold size. rewrite <- (total_permutation _ _ (Permutation_map Rabs P)). exact IH.
Qed.

(* A head *)

Section Head.

Variables (keys : list nat) (slope offset value : nat -> R) (s : R).

Definition logit (k : nat) : R := slope k * s + offset k.
Definition attention : R := over keys (fun k => value k * exp (logit k)) / over keys (fun k => exp (logit k)).

(* All that is computed: logits, the largest of them, exponentials, their sum, weights, and the result. An
   exponential y may be off by allowed y. *)
Record evaluated (allowed : R -> R) (z e q : nat -> R) (top mass result : R) : Prop := {
  logits : forall k, In k keys -> summed [slope k * s; offset k] (z k);
  largest : exists j, In j keys /\ top = z j;
  exponentials : forall k, In k keys ->
    Rabs (e k - exp (rnd (z k - top))) <= allowed (exp (rnd (z k - top)));
  masses : summed (map e keys) mass;
  weights : forall k, In k keys -> q k = rnd (e k / mass);
  results : summed (map (fun k => value k * q k) keys) result }.

Variables (allowed : R -> R) (kappa tiny : R) (z e q : nat -> R) (top mass result : R).
Hypothesis computed : evaluated allowed z e q top mass result.
Hypothesis allowed_little : forall y, 0 < y -> allowed y <= kappa * y + tiny.
Hypothesis kappa_nonneg : 0 <= kappa.
Hypothesis tiny_nonneg : 0 <= tiny.

(* Bounds of what goes in. *)
Variables (Z V : R).
Hypothesis Z_bounds : forall k, In k keys -> Rabs (slope k * s) + Rabs (offset k) <= Z.
Hypothesis V_bounds : forall k, In k keys -> Rabs (value k) <= V.

Definition count : nat := length keys.
Definition logit_error : R := growth 2 * Z + lost 2.
Definition moved_by : R := logit_error + u * (2 * Z + 2 * logit_error) + eta.
Definition factor : R := exp moved_by * (1 + kappa) - 1.
Definition mass_error : R :=
  growth count * (1 + factor) + factor + 2 * (growth count * (INR count * tiny) + INR count * tiny + lost count).
Definition quotient_error : R := (factor + mass_error + 2 * INR count * tiny) / (1 - mass_error).
Definition weight_error : R := quotient_error + u * (1 + quotient_error) + INR count * eta.
Definition head_error : R := V * weight_error + growth count * (V * (1 + weight_error)) + lost count.

Hypothesis logit_error_small : logit_error <= 1 / 2.
Hypothesis mass_error_small : mass_error <= 1 / 2.

Lemma growth_nonneg n : 0 <= growth n.
Proof. unfold growth. pose proof (power_ge_1 n). lra. Qed.

Lemma lost_nonneg n : (1 <= n)%nat -> 0 <= lost n.
Proof.
  intros Hn. unfold lost. assert (1 <= INR n) by (change 1 with (INR 1); now apply le_INR).
  pose proof (power_ge_1 n). apply Rmult_le_pos; [apply Rmult_le_pos; lra|easy].
Qed.

Lemma keys_some : (1 <= count)%nat.
Proof.
  destruct (largest _ _ _ _ _ _ _ computed) as [j [Hj _]]. exact (some_member keys j Hj).
Qed.

Lemma Z_nonneg : 0 <= Z.
Proof.
  destruct (largest _ _ _ _ _ _ _ computed) as [j [Hj _]]. pose proof (Z_bounds j Hj).
  pose proof (Rabs_pos (slope j * s)). pose proof (Rabs_pos (offset j)). lra.
Qed.

Lemma V_nonneg : 0 <= V.
Proof.
  destruct (largest _ _ _ _ _ _ _ computed) as [j [Hj _]]. pose proof (V_bounds j Hj).
  pose proof (Rabs_pos (value j)). lra.
Qed.

Lemma logit_error_nonneg : 0 <= logit_error.
Proof.
  unfold logit_error. pose proof (growth_nonneg 2). pose proof (lost_nonneg 2 ltac:(lia)). pose proof Z_nonneg. nra.
Qed.

Lemma logit_close k : In k keys -> Rabs (z k - logit k) <= logit_error.
Proof.
  intros Hk. pose proof (summed_error _ _ (logits _ _ _ _ _ _ _ computed k Hk)) as H.
  unfold size in H; simpl in H. rewrite !Rplus_0_r in H. unfold logit, logit_error.
  eapply Rle_trans; [exact H|]. apply Rplus_le_compat_r, Rmult_le_compat_l; [apply growth_nonneg|now apply Z_bounds].
Qed.

Lemma logit_bounded k : In k keys -> Rabs (logit k) <= Z.
Proof. intros Hk. eapply Rle_trans; [apply Rabs_triang|now apply Z_bounds]. Qed.

Lemma exp_near t : Rabs (exp t - 1) <= exp (Rabs t) - 1.
Proof.
  unfold Rabs at 2. destruct (Rcase_abs t) as [H|H].
  - assert (exp t <= 1) by (rewrite <- exp_0; apply Rlt_le, exp_increasing; lra).
    rewrite Rabs_left1 by lra. pose proof (exp_pos t). rewrite exp_Ropp.
    assert (exp t * / exp t = 1) by (apply Rinv_r; lra). nra.
  - assert (1 <= exp t).
    { destruct (Rle_lt_or_eq_dec 0 t ltac:(lra)) as [L|E].
      - rewrite <- exp_0; apply Rlt_le, exp_increasing; lra.
      - rewrite <- E, exp_0; lra. }
    rewrite Rabs_right by lra. lra.
Qed.

Definition true_exp (k : nat) : R := exp (logit k - top).

Lemma exp_le a b : a <= b -> exp a <= exp b.
Proof. intros [H|H]; [now apply Rlt_le, exp_increasing|rewrite H; lra]. Qed.

Lemma factor_nonneg : 0 <= factor.
Proof.
  unfold factor, moved_by. pose proof logit_error_nonneg. pose proof Z_nonneg.
  assert (0 <= logit_error + u * (2 * Z + 2 * logit_error) + eta) by nra.
  pose proof (exp_ineq1_le (logit_error + u * (2 * Z + 2 * logit_error) + eta)). nra.
Qed.

Lemma exponential_close k : In k keys -> Rabs (e k - true_exp k) <= factor * true_exp k + tiny.
Proof.
  intros Hk. destruct (largest _ _ _ _ _ _ _ computed) as [j [Hj Etop]].
  pose proof (logit_close k Hk) as Ck. pose proof (logit_close j Hj) as Cj.
  pose proof (logit_bounded k Hk). pose proof (logit_bounded j Hj).
  pose proof (exponentials _ _ _ _ _ _ _ computed k Hk) as E.
  pose proof (rounds (z k - top)) as Rd.
  set (d := rnd (z k - top)) in *.
  set (t := d - (logit k - top)).
  assert (T : Rabs t <= moved_by).
  { assert (B : Rabs (z k - top) <= 2 * Z + 2 * logit_error).
    { rewrite Etop. replace (z k - z j) with ((z k - logit k) + logit k - ((z j - logit j) + logit j)) by ring.
      revert Ck Cj H H0. unfold Rabs. repeat destruct Rcase_abs; lra. }
    unfold t, moved_by. replace (d - (logit k - top)) with ((d - (z k - top)) + (z k - logit k)) by ring.
    eapply Rle_trans; [apply Rabs_triang|].
    assert (u * Rabs (z k - top) <= u * (2 * Z + 2 * logit_error)) by (apply Rmult_le_compat_l; lra). lra. }
  assert (D : exp d = true_exp k * exp t).
  { unfold true_exp. rewrite <- exp_plus. f_equal. unfold t. ring. }
  assert (P : 0 < true_exp k) by apply exp_pos.
  assert (N : Rabs (exp t - 1) <= exp moved_by - 1).
  { eapply Rle_trans; [apply exp_near|]. pose proof (exp_le _ _ T). lra. }
  assert (U : exp t <= exp moved_by).
  { apply exp_le. eapply Rle_trans; [apply Rle_abs|exact T]. }
  replace (e k - true_exp k) with ((e k - exp d) + true_exp k * (exp t - 1)) by (rewrite D; ring).
  eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_mult, (Rabs_pos_eq (true_exp k)) by lra.
  apply Rle_trans with (kappa * (true_exp k * exp moved_by) + tiny + true_exp k * (exp moved_by - 1)).
  - apply Rplus_le_compat.
    + eapply Rle_trans; [exact E|]. eapply Rle_trans; [apply allowed_little, exp_pos|].
      apply Rplus_le_compat_r, Rmult_le_compat_l; [easy|]. rewrite D.
      apply Rmult_le_compat_l; lra.
    + apply Rmult_le_compat_l; lra.
  - unfold factor. right. ring.
Qed.

Definition true_mass : R := over keys true_exp.

Lemma true_mass_large : 1 / 2 <= true_mass.
Proof.
  destruct (largest _ _ _ _ _ _ _ computed) as [j [Hj Etop]].
  assert (L : 1 / 2 <= true_exp j).
  { unfold true_exp. rewrite Etop. pose proof (exp_ineq1_le (logit j - z j)). pose proof (logit_close j Hj) as C.
    rewrite Rabs_minus_sym in C. revert C. unfold Rabs. destruct Rcase_abs; lra. }
  eapply Rle_trans; [exact L|]. apply (over_member keys true_exp j Hj). intros. apply Rlt_le, exp_pos.
Qed.

Lemma exponentials_close : over keys (fun k => Rabs (e k - true_exp k)) <= factor * true_mass + INR count * tiny.
Proof.
  eapply Rle_trans; [apply over_le; intros k Hk; now apply exponential_close|].
  rewrite over_plus, over_scale, over_const. apply Rle_refl.
Qed.

Lemma size_over (f : nat -> R) : size (map f keys) = over keys (fun k => Rabs (f k)).
Proof. unfold size, over. now rewrite map_map. Qed.

Lemma mass_close : Rabs (mass - true_mass) <= mass_error * true_mass.
Proof.
  pose proof (summed_error _ _ (masses _ _ _ _ _ _ _ computed)) as S.
  rewrite map_length, size_over in S. fold count in S. fold (over keys e) in S.
  pose proof exponentials_close as C. pose proof true_mass_large as L. pose proof keys_some as K.
  pose proof (growth_nonneg count) as G. pose proof (lost_nonneg count K) as Lo. pose proof factor_nonneg as F.
  assert (Sz : over keys (fun k => Rabs (e k)) <= (1 + factor) * true_mass + INR count * tiny).
  { apply Rle_trans with (over keys (fun k => Rabs (e k - true_exp k) + true_exp k)).
    - apply over_le. intros k _. replace (e k) with ((e k - true_exp k) + true_exp k) at 1 by ring.
      eapply Rle_trans; [apply Rabs_triang|]. rewrite (Rabs_pos_eq (true_exp k)) by (apply Rlt_le, exp_pos). lra.
    - rewrite over_plus. fold true_mass. lra. }
  assert (Dif : Rabs (over keys e - true_mass) <= factor * true_mass + INR count * tiny).
  { replace (over keys e - true_mass) with (over keys (fun k => e k - true_exp k)).
    - eapply Rle_trans; [apply over_abs|exact C].
    - unfold true_mass. replace (over keys (fun k => e k - true_exp k)) with (over keys (fun k => e k + -1 * true_exp k)).
      + rewrite over_plus, over_scale. ring.
      + apply over_ext. intros. ring. }
  replace (mass - true_mass) with ((mass - over keys e) + (over keys e - true_mass)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. unfold mass_error.
  assert (growth count * over keys (fun k => Rabs (e k)) <= growth count * ((1 + factor) * true_mass + INR count * tiny))
    by (apply Rmult_le_compat_l; easy).
  pose proof (pos_INR count) as PI. set (w := growth count * (INR count * tiny) + INR count * tiny + lost count).
  assert (W : 0 <= w).
  { unfold w. apply Rplus_le_le_0_compat; [apply Rplus_le_le_0_compat|easy]; repeat apply Rmult_le_pos; easy. }
  assert (w <= 2 * w * true_mass) by nra. unfold w in *. nra.
Qed.

Definition true_weight (k : nat) : R := true_exp k / true_mass.

Lemma weights_sum : over keys true_weight = 1.
Proof.
  pose proof true_mass_large. unfold true_weight.
  rewrite (over_ext keys _ (fun k => / true_mass * true_exp k)) by (intros; unfold Rdiv; ring).
  rewrite over_scale. fold true_mass. apply Rinv_l. lra.
Qed.

Lemma true_weight_nonneg k : 0 <= true_weight k.
Proof.
  pose proof true_mass_large. apply Rlt_le, Rdiv_lt_0_compat; [apply exp_pos|lra].
Qed.

Lemma mass_error_nonneg : 0 <= mass_error.
Proof.
  pose proof mass_close as C. pose proof true_mass_large. pose proof (Rabs_pos (mass - true_mass)).
  destruct (Rle_lt_dec 0 mass_error); [easy|nra].
Qed.

Lemma quotient_close k : In k keys ->
  Rabs (e k / mass - true_weight k) <= ((factor + mass_error) * true_weight k + 2 * tiny) / (1 - mass_error).
Proof.
  intros Hk. pose proof mass_close as C. pose proof true_mass_large as L. pose proof mass_error_nonneg as M.
  pose proof (exponential_close k Hk) as E. assert (P : 0 < true_exp k) by apply exp_pos.
  assert (Lm : (1 - mass_error) * true_mass <= mass).
  { revert C. unfold Rabs. destruct Rcase_abs; nra. }
  assert (0 < (1 - mass_error) * true_mass) by (apply Rmult_lt_0_compat; lra).
  assert (Pm : 0 < mass) by lra.
  replace (e k / mass - true_weight k)
    with (((e k - true_exp k) - true_weight k * (mass - true_mass)) / mass)
    by (unfold true_weight; field; lra).
  unfold Rdiv at 1. rewrite Rabs_mult, (Rabs_pos_eq (/ mass)) by (apply Rlt_le, Rinv_0_lt_compat; lra).
  assert (W : true_exp k = true_weight k * true_mass) by (unfold true_weight; field; lra).
  assert (T : Rabs (e k - true_exp k - true_weight k * (mass - true_mass))
              <= ((factor + mass_error) * true_weight k + 2 * tiny) * true_mass).
  { unfold Rminus at 1. eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp, Rabs_mult.
    pose proof (true_weight_nonneg k) as Wn. rewrite (Rabs_pos_eq (true_weight k)) by easy.
    assert (true_weight k * Rabs (mass - true_mass) <= true_weight k * (mass_error * true_mass))
      by (apply Rmult_le_compat_l; easy).
    rewrite W in E at 2. assert (tiny <= 2 * tiny * true_mass) by nra. lra. }
  apply Rle_trans with (((factor + mass_error) * true_weight k + 2 * tiny) * true_mass * / ((1 - mass_error) * true_mass)).
  - apply Rmult_le_compat; [apply Rabs_pos|apply Rlt_le, Rinv_0_lt_compat; lra|exact T|].
    apply Rinv_le_contravar; lra.
  - right. field. lra.
Qed.

Lemma quotients_close : over keys (fun k => Rabs (e k / mass - true_weight k)) <= quotient_error.
Proof.
  eapply Rle_trans; [apply over_le; intros k Hk; now apply quotient_close|].
  rewrite (over_ext keys _ (fun k => / (1 - mass_error) * ((factor + mass_error) * true_weight k + 2 * tiny)))
    by (intros; unfold Rdiv; ring).
  rewrite over_scale, over_plus, over_scale, over_const, weights_sum. fold count. unfold quotient_error, Rdiv. right. ring.
Qed.

Lemma weights_close : over keys (fun k => Rabs (q k - true_weight k)) <= weight_error.
Proof.
  pose proof quotients_close as Q. unfold weight_error.
  apply Rle_trans with (over keys (fun k =>
    Rabs (e k / mass - true_weight k) + (u * (Rabs (e k / mass - true_weight k) + true_weight k) + eta))).
  - apply over_le. intros k Hk. rewrite (weights _ _ _ _ _ _ _ computed k Hk).
    pose proof (rounds (e k / mass)) as Rd. set (y := e k / mass) in *.
    replace (rnd y - true_weight k) with ((rnd y - y) + (y - true_weight k)) by ring.
    eapply Rle_trans; [apply Rabs_triang|].
    assert (Rabs y <= Rabs (y - true_weight k) + true_weight k).
    { replace y with ((y - true_weight k) + true_weight k) at 1 by ring. eapply Rle_trans; [apply Rabs_triang|].
      rewrite (Rabs_pos_eq (true_weight k)) by apply true_weight_nonneg. lra. }
    assert (u * Rabs y <= u * (Rabs (y - true_weight k) + true_weight k)) by (apply Rmult_le_compat_l; lra). lra.
  - rewrite over_plus, over_plus, over_scale, over_plus, over_const, weights_sum. fold count.
    assert (u * (over keys (fun k => Rabs (e k / mass - true_weight k)) + 1) <= u * (quotient_error + 1))
      by (apply Rmult_le_compat_l; lra). lra.
Qed.

Lemma attention_by_weights : attention = over keys (fun k => value k * true_weight k).
Proof.
  pose proof true_mass_large as L. unfold attention.
  assert (T : over keys (fun k => exp (logit k)) = exp top * true_mass).
  { unfold true_mass. rewrite <- over_scale. apply over_ext. intros k _. unfold true_exp. rewrite <- exp_plus.
    f_equal. ring. }
  assert (N : over keys (fun k => value k * exp (logit k)) = exp top * true_mass * over keys (fun k => value k * true_weight k)).
  { rewrite <- over_scale. apply over_ext. intros k _. unfold true_weight, true_exp.
    replace (logit k) with (top + (logit k - top)) at 1 by ring. rewrite exp_plus. field. lra. }
  rewrite T, N. pose proof (exp_pos top). field. split; lra.
Qed.

(* The computed value is near that of exact arithmetic. *)
Theorem head_close : Rabs (result - attention) <= head_error.
Proof.
  rewrite attention_by_weights. pose proof weights_close as W. pose proof V_nonneg as Vn. pose proof keys_some as K.
  pose proof (summed_error _ _ (results _ _ _ _ _ _ _ computed)) as S.
  rewrite map_length, size_over in S. fold count in S. fold (over keys (fun k => value k * q k)) in S.
  pose proof (growth_nonneg count) as G.
  assert (Sz : over keys (fun k => Rabs (value k * q k)) <= V * (1 + weight_error)).
  { apply Rle_trans with (over keys (fun k => V * (Rabs (q k - true_weight k) + true_weight k))).
    - apply over_le. intros k Hk. rewrite Rabs_mult. apply Rmult_le_compat; try apply Rabs_pos; [now apply V_bounds|].
      replace (q k) with ((q k - true_weight k) + true_weight k) at 1 by ring. eapply Rle_trans; [apply Rabs_triang|].
      rewrite (Rabs_pos_eq (true_weight k)) by apply true_weight_nonneg. lra.
    - rewrite over_scale, over_plus, weights_sum. apply Rmult_le_compat_l; lra. }
  assert (Dif : Rabs (over keys (fun k => value k * q k) - over keys (fun k => value k * true_weight k)) <= V * weight_error).
  { replace (over keys (fun k => value k * q k) - over keys (fun k => value k * true_weight k))
      with (over keys (fun k => value k * (q k - true_weight k))).
    - eapply Rle_trans; [apply over_abs|].
      apply Rle_trans with (over keys (fun k => V * Rabs (q k - true_weight k))).
      + apply over_le. intros k Hk. rewrite Rabs_mult. apply Rmult_le_compat_r; [apply Rabs_pos|now apply V_bounds].
      + rewrite over_scale. apply Rmult_le_compat_l; easy.
    - rewrite (over_ext keys _ (fun k => value k * q k + -1 * (value k * true_weight k))) by (intros; ring).
      rewrite over_plus, over_scale. ring. }
  replace (result - over keys (fun k => value k * true_weight k))
    with ((result - over keys (fun k => value k * q k))
          + (over keys (fun k => value k * q k) - over keys (fun k => value k * true_weight k))) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. unfold head_error.
  assert (growth count * over keys (fun k => Rabs (value k * q k)) <= growth count * (V * (1 + weight_error)))
    by (apply Rmult_le_compat_l; easy).
  lra.
Qed.

End Head.

End Arithmetic.

(* The anchors of a list, by number. *)
Definition slope_of (anchors : list anchor) (k : nat) : R := fst (fst (nth k anchors (0, 0, 0))).
Definition offset_of (anchors : list anchor) (k : nat) : R := snd (fst (nth k anchors (0, 0, 0))).
Definition value_of (anchors : list anchor) (k : nat) : R := snd (nth k anchors (0, 0, 0)).
Definition keys_of (anchors : list anchor) : list nat := seq 0 (length anchors).

Lemma over_keys_of anchors (g : anchor -> R) :
  over (keys_of anchors) (fun k => g (nth k anchors (0, 0, 0))) = total (map g anchors).
Proof.
  unfold over, keys_of. f_equal. induction anchors as [|a others IH]; [easy|].
  simpl. f_equal. rewrite <- seq_shift, map_map. exact IH.
Qed.

Lemma attention_is_mean anchors s :
  attention (keys_of anchors) (slope_of anchors) (offset_of anchors) (value_of anchors) s = mean anchors s.
Proof.
  unfold attention, mean, logit, slope_of, offset_of, value_of.
  rewrite (over_keys_of anchors (fun a => snd a * exp (fst (fst a) * s + snd (fst a)))).
  rewrite (over_keys_of anchors (fun a => exp (fst (fst a) * s + snd (fst a)))).
  f_equal.
  - induction anchors as [|[[a b] v] others IH]; simpl; [easy|now rewrite IH].
  - f_equal. induction anchors as [|[[a b] v] others IH]; simpl; [easy|now rewrite IH].
Qed.

Lemma all_keys anchors (holds : anchor -> Prop) : List.Forall holds anchors ->
  forall k, In k (keys_of anchors) -> holds (nth k anchors (0, 0, 0)).
Proof.
  intros all k inside. apply in_seq in inside. rewrite List.Forall_forall in all. apply all, nth_In. lia.
Qed.

Ltac for_each_anchor :=
  repeat apply List.Forall_cons; try apply List.Forall_nil; cbn [fst snd]; interval with (i_prec 60).

(* Floating-point numbers of so many bits, and of exponents from emin on. *)
Section Floats.

Variables (emin prec : Z) (choice : Z -> bool).
Hypothesis some_bits : (0 < prec)%Z.

Definition fl : R -> R := round radix2 (FLT_exp emin prec) (Znearest choice).
Definition four_ulp (y : R) : R := 4 * ulp radix2 (FLT_exp emin prec) y.

Lemma bpow_2 i : bpow radix2 i = powerRZ 2 i.
Proof. apply bpow_powerRZ. Qed.

Lemma half_power i : / 2 * powerRZ 2 i = powerRZ 2 (i - 1).
Proof. unfold Z.sub. rewrite powerRZ_add by lra. simpl. field. Qed.

Lemma fl_rounds x : Rabs (fl x - x) <= powerRZ 2 (- prec) * Rabs x + powerRZ 2 (emin - 1).
Proof.
  destruct (error_N_FLT radix2 emin prec some_bits choice x) as [eps [eta [small [lost [_ equal]]]]].
  unfold fl. rewrite equal. replace (x * (1 + eps) + eta - x) with (eps * x + eta) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_mult.
  rewrite bpow_2, half_power in small, lost. replace (- prec + 1 - 1)%Z with (- prec)%Z in small by ring.
  apply Rplus_le_compat; [|easy]. apply Rmult_le_compat_r; [apply Rabs_pos|easy].
Qed.

Lemma four_ulp_little y : 0 < y -> four_ulp y <= 8 * powerRZ 2 (- prec) * y + 8 * powerRZ 2 (emin - 1).
Proof.
  intros positive. unfold four_ulp.
  assert (here : powerRZ 2 (1 - prec) = 2 * powerRZ 2 (- prec)).
  { unfold Z.sub. rewrite powerRZ_add by lra. simpl. ring. }
  assert (there : powerRZ 2 emin = 2 * powerRZ 2 (emin - 1)) by (rewrite <- half_power; field).
  assert (0 < powerRZ 2 (- prec)) by (apply powerRZ_lt; lra).
  assert (0 < powerRZ 2 (emin - 1)) by (apply powerRZ_lt; lra).
  destruct (Rle_lt_dec (bpow radix2 (emin + prec - 1)) y) as [normal|small].
  - pose proof (ulp_FLT_le radix2 emin prec y) as bound. rewrite Rabs_pos_eq in bound by lra.
    specialize (bound normal). rewrite bpow_2, here in bound. nra.
  - rewrite (@ulp_FLT_small radix2 emin prec some_bits).
    + rewrite bpow_2, there. nra.
    + rewrite Rabs_pos_eq by lra. eapply Rlt_trans; [exact small|]. apply bpow_lt. lia.
Qed.

End Floats.
