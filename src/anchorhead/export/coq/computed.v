(* What floating-point arithmetic makes of a softmax head, for every number of anchors.

   Every operation is rounded to nearest, sums are added up in any order, with or without fused multiply-add, underflow
   is gradual, and exp is within 4 units in the last place: that is the one hypothesis about the machine. Nothing may
   overflow.

   With logits z_k and weights w_k in exact arithmetic, the computed exponentials are C w_k (1 + t_k) for one C and
   |t_k| <= off_k. So the mean moves by sum w_k t_k (v_k - r) / sum w_k (1 + t_k), since sum w_k (v_k - r) = 0: every
   anchor counts by its weight and by how far its value is from the result, which is near the function. The sum of the
   exponentials, the division and the last sum round as sums of positive numbers do. *)

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
Definition lost (terms roundings : nat) : R := (2 * INR terms - 1) * (1 + u) ^ roundings * eta.

Lemma power_ge_1 n : 1 <= (1 + u) ^ n.
Proof. apply pow_R1_Rle; lra. Qed.

Lemma power_mono n m : (n <= m)%nat -> (1 + u) ^ n <= (1 + u) ^ m.
Proof. intros; apply Rle_pow; [lra|easy]. Qed.

Lemma growth_nonneg n : 0 <= growth n.
Proof. unfold growth. pose proof (power_ge_1 n). lra. Qed.

Lemma lost_nonneg n m : (1 <= n)%nat -> 0 <= lost n m.
Proof.
  intros Hn. unfold lost. assert (1 <= INR n) by (change 1 with (INR 1); now apply le_INR).
  pose proof (power_ge_1 m). apply Rmult_le_pos; [apply Rmult_le_pos; lra|easy].
Qed.

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

(* Terms that round by first roundings; numbers of the dtype by none. *)
Lemma summed_from first l a : summed l a ->
  (forall t, In t l -> Rabs (rnd t - t) <= growth first * Rabs t + eta) ->
  Rabs (a - total l) <= growth (length l - 1 + first) * size l + lost (length l) (length l - 1 + first).
Proof.
  unfold growth, lost. induction 1 as [t|t|l m a b Sl IHl Sm IHm|l m a P S IH]; intros terms.
  - simpl. replace (t - (t + 0)) with 0 by ring. rewrite Rabs_R0. unfold size; simpl.
    pose proof (Rabs_pos t). pose proof (power_ge_1 first). nra.
  - simpl. unfold size; simpl. replace (rnd t - (t + 0)) with (rnd t - t) by ring.
    eapply Rle_trans; [apply terms; now left|]. pose proof (Rabs_pos t). pose proof (power_ge_1 first). nra.
  - specialize (IHl (fun t inside => terms t (in_or_app _ _ _ (or_introl inside)))).
    specialize (IHm (fun t inside => terms t (in_or_app _ _ _ (or_intror inside)))).
    pose proof (summed_some _ _ Sl) as Hl. pose proof (summed_some _ _ Sm) as Hm.
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
    assert (Gl : (1 + u) ^ S (length l - 1 + first) <= (1 + u) ^ (n - 1 + first)) by (apply power_mono; lia).
    assert (Gm : (1 + u) ^ S (length m - 1 + first) <= (1 + u) ^ (n - 1 + first)) by (apply power_mono; lia).
    simpl in Gl, Gm. pose proof (power_ge_1 (n - 1 + first)) as Gn.
    set (A := (1 + u) ^ (length l - 1 + first)) in *. set (B := (1 + u) ^ (length m - 1 + first)) in *.
    set (C := (1 + u) ^ (n - 1 + first)) in *.
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
    assert (1 * eta <= C * eta) by (apply Rmult_le_compat_r; lra).
    rewrite N. replace (total (map Rabs l)) with (size l) by reflexivity.
    replace (total (map Rabs m)) with (size m) by reflexivity. lra.
  - rewrite <- (Permutation_length P), <- (total_permutation _ _ P).
    unfold size. rewrite <- (total_permutation _ _ (Permutation_map Rabs P)). apply IH.
    intros t inside. apply terms. exact (Permutation_in _ P inside).
Qed.

Lemma summed_numbers l a : summed l a -> (forall t, In t l -> rnd t = t) ->
  Rabs (a - total l) <= growth (length l - 1) * size l + lost (length l) (length l - 1).
Proof.
  intros S numbers. pose proof (summed_from 0 l a S) as H. rewrite Nat.add_0_r in H. apply H.
  intros t inside. rewrite (numbers t inside). replace (t - t) with 0 by ring. rewrite Rabs_R0.
  unfold growth. simpl. lra.
Qed.

Lemma summed_error l a : summed l a -> Rabs (a - total l) <= growth (length l) * size l + lost (length l) (length l).
Proof.
  intros S. pose proof (summed_from 1 l a S) as H.
  replace (length l - 1 + 1)%nat with (length l) in H by (pose proof (summed_some l a S); lia).
  apply H. intros t _. unfold growth. replace ((1 + u) ^ 1 - 1) with u by ring. apply rounds.
Qed.

(* A head *)

Section Head.

Variables (keys : list nat) (slope offset value : nat -> R) (s : R).

Definition logit (k : nat) : R := slope k * s + offset k.
Definition attention : R := over keys (fun k => value k * exp (logit k)) / over keys (fun k => exp (logit k)).

(* All that is computed: logits, the largest of them, exponentials, their sum, weights, and the result. An
   exponential is a number of the dtype, and y may be off by allowed y. *)
Record evaluated (allowed : R -> R) (z e q : nat -> R) (top mass result : R) : Prop := {
  logits : forall k, In k keys -> exists product,
    (product = slope k * s \/ product = rnd (slope k * s)) /\ z k = rnd (product + offset k);
  attained : exists j, In j keys /\ top = z j;
  largest : forall k, In k keys -> z k <= top;
  exponentials : forall k, In k keys ->
    rnd (e k) = e k /\ Rabs (e k - exp (rnd (z k - top))) <= allowed (exp (rnd (z k - top)));
  masses : summed (map e keys) mass;
  weights : forall k, In k keys -> q k = rnd (e k / mass);
  results : summed (map (fun k => value k * q k) keys) result }.

Variables (allowed : R -> R) (kappa tiny : R) (z e q : nat -> R) (top mass result : R).
Hypothesis computed : evaluated allowed z e q top mass result.
Hypothesis allowed_little : forall y, 0 < y -> allowed y <= kappa * y + tiny.
Hypothesis kappa_small : 0 <= kappa <= 1.
Hypothesis tiny_nonneg : 0 <= tiny.

(* Logits are taken relative to a line, which is about the largest: with their errors, all are below it + beyond. *)
Variables (steep high beyond : R).

Definition base : R := steep * s + high.
Definition relative (k : nat) : R := (slope k - steep) * s + (offset k - high).
Definition wrong (k : nat) : R := u * ((1 + u) * Rabs (slope k * s) + Rabs (logit k)) + 3 * eta.
Definition moved_by (k : nat) : R := wrong k + u * (beyond - relative k + wrong k) + eta.
Hypothesis below : forall k, In k keys -> relative k + wrong k <= beyond.
Hypothesis beyond_small : beyond <= 1 / 2.
Hypothesis moved_small : forall k, In k keys -> moved_by k <= 1 / 2.

(* How far an exponential may be off, relatively: so much or more. *)
Variable off : nat -> R.
Hypothesis off_enough : forall k, In k keys ->
  (moved_by k + 2 * (moved_by k * moved_by k)) * (1 + kappa) + kappa <= off k.

(* What attention is near. *)
Variables (goal eps : R).
Hypothesis near : Rabs (attention - goal) <= eps.

Definition portion (k : nat) : R := exp (relative k).
Definition apart (k : nat) : R := Rabs (value k - goal) + eps.
Definition shifted : R := over keys (fun k => (portion k * off k + 2 * tiny) * apart k).
Definition present : R := over keys (fun k => portion k * (1 - off k) - 2 * tiny).
Definition large : R := over keys (fun k => (portion k * (1 + off k) + 2 * tiny) * Rabs (value k)).
Definition count : nat := length keys.
Definition mass_error : R :=
  growth (count - 1) + 8 * (growth (count - 1) * (2 * INR count * tiny) + lost count (count - 1)).
Definition little : R := (1 + growth count) * eta * over keys (fun k => Rabs (value k)) + lost count count.

(* Shares of the result and of the sizes of its terms that sums and divisions may lose. *)
Variables (of_result of_terms underflow : R).
Hypothesis mass_error_small : mass_error <= 1 / 2.
Hypothesis result_share : mass_error / (1 - mass_error) <= of_result.
Hypothesis terms_share : growth (count + 1) / (1 - mass_error) <= of_terms.
Hypothesis underflow_share : little <= underflow.
Hypothesis enough : 1 / 4 <= present.

(* All of it in one sum, each exponential and each distance once. *)
Definition anchor_error (k : nat) : R := (1 + of_result) * apart k + of_terms * Rabs (value k).
Definition errors : R :=
  over keys (fun k => (portion k * off k + 2 * tiny) * anchor_error k + portion k * (of_terms * Rabs (value k))).
Definition head_error : R := errors / present + of_result * (Rabs goal + eps) + underflow.

Lemma errors_are : errors = (1 + of_result) * shifted + of_terms * large.
Proof.
  unfold errors, shifted, large. rewrite <- !over_scale, <- over_plus. apply over_ext. intros k _.
  unfold anchor_error. ring.
Qed.

Lemma relative_logit k : relative k = logit k - base.
Proof. unfold relative, logit, base. ring. Qed.

Lemma wrong_nonneg k : 0 <= wrong k.
Proof.
  unfold wrong. pose proof (Rabs_pos (slope k * s)). pose proof (Rabs_pos (logit k)).
  assert (0 <= (1 + u) * Rabs (slope k * s)) by (apply Rmult_le_pos; lra).
  assert (0 <= u * ((1 + u) * Rabs (slope k * s) + Rabs (logit k))) by (apply Rmult_le_pos; lra). lra.
Qed.

Lemma logit_close k : In k keys -> Rabs (z k - logit k) <= wrong k.
Proof.
  intros Hk. destruct (logits _ _ _ _ _ _ _ computed k Hk) as [product [how ->]].
  assert (P : Rabs (product - slope k * s) <= u * Rabs (slope k * s) + eta).
  { destruct how as [-> | ->]; [|apply rounds]. replace (slope k * s - slope k * s) with 0 by ring. rewrite Rabs_R0.
    assert (0 <= u * Rabs (slope k * s)) by (apply Rmult_le_pos; [lra|apply Rabs_pos]). lra. }
  pose proof (rounds (product + offset k)) as S. unfold wrong.
  assert (B : Rabs (product + offset k) <= Rabs (product - slope k * s) + Rabs (logit k)).
  { unfold logit. replace (product + offset k) with ((product - slope k * s) + (slope k * s + offset k)) by ring.
    apply Rabs_triang. }
  replace (rnd (product + offset k) - logit k)
    with ((rnd (product + offset k) - (product + offset k)) + (product - slope k * s)) by (unfold logit; ring).
  eapply Rle_trans; [apply Rabs_triang|].
  set (p := Rabs (product - slope k * s)) in *. set (a := Rabs (slope k * s)) in *.
  set (l := Rabs (logit k)) in *.
  assert (u * Rabs (product + offset k) <= u * (p + l)) by (apply Rmult_le_compat_l; lra).
  assert (u * p <= u * (u * a + eta)) by (apply Rmult_le_compat_l; lra).
  assert (u * eta <= 1 * eta) by (apply Rmult_le_compat_r; lra). lra.
Qed.

Lemma top_low : top <= base + beyond.
Proof.
  destruct (attained _ _ _ _ _ _ _ computed) as [j [Hj Etop]]. pose proof (logit_close j Hj) as C.
  pose proof (below j Hj) as B. rewrite relative_logit in B. rewrite Etop. revert C. unfold Rabs. destruct Rcase_abs; lra.
Qed.

Lemma keys_some : (1 <= count)%nat.
Proof. destruct (attained _ _ _ _ _ _ _ computed) as [j [Hj _]]. exact (some_member keys j Hj). Qed.

Lemma exp_le a b : a <= b -> exp a <= exp b.
Proof. intros [H|H]; [now apply Rlt_le, exp_increasing|rewrite H; lra]. Qed.

(* exponentials are common portion_k (1 + t_k), |t_k| <= off_k *)
Definition common : R := exp (base - top).

Lemma common_large : 1 / 2 <= common.
Proof. unfold common. pose proof (exp_ineq1_le (base - top)). pose proof top_low. lra. Qed.

Lemma tiny_twice : tiny <= common * (2 * tiny).
Proof.
  pose proof common_large. assert (1 / 2 * (2 * tiny) <= common * (2 * tiny)) by (apply Rmult_le_compat_r; lra). lra.
Qed.

Lemma moved_nonneg k : In k keys -> 0 <= moved_by k.
Proof.
  intros Hk. unfold moved_by. pose proof (wrong_nonneg k). pose proof (below k Hk).
  assert (0 <= u * (beyond - relative k + wrong k)) by (apply Rmult_le_pos; lra). lra.
Qed.

Lemma off_nonneg k : In k keys -> 0 <= off k.
Proof.
  intros Hk. pose proof (off_enough k Hk). pose proof (moved_nonneg k Hk) as M.
  assert (0 <= moved_by k * moved_by k) by (apply Rmult_le_pos; lra).
  assert (0 <= (moved_by k + 2 * (moved_by k * moved_by k)) * (1 + kappa)) by (apply Rmult_le_pos; lra). lra.
Qed.

Lemma exp_near m t : 0 <= m <= 1 / 2 -> Rabs t <= m -> Rabs (exp t - 1) <= m + 2 * (m * m).
Proof.
  intros Hm Ht. assert (T : - m <= t <= m) by (revert Ht; unfold Rabs; destruct Rcase_abs; lra).
  pose proof (exp_ineq1_le t) as Low. pose proof (exp_ineq1_le (- t)) as High. rewrite exp_Ropp in High.
  pose proof (exp_pos t) as P.
  assert (U : exp t * (1 - t) <= 1).
  { apply Rle_trans with (exp t * / exp t); [apply Rmult_le_compat_l; lra|right; apply Rinv_r; lra]. }
  assert (0 <= m * m) by (apply Rmult_le_pos; lra).
  apply Rabs_le. split; [lra|].
  assert (V : exp t * (1 - m) <= 1) by (apply Rle_trans with (exp t * (1 - t)); [apply Rmult_le_compat_l; lra|exact U]).
  assert (exp t <= 1 + m + 2 * (m * m)); [|lra].
  apply Rmult_le_reg_r with (1 - m); [lra|]. apply Rle_trans with 1; [exact V|].
  assert (0 <= m * m * (1 - 2 * m)) by (apply Rmult_le_pos; lra). lra.
Qed.

Lemma portion_pos k : 0 < portion k.
Proof. apply exp_pos. Qed.

Lemma exponential_close k : In k keys ->
  Rabs (e k - common * portion k) <= off k * (common * portion k) + tiny.
Proof.
  intros Hk. pose proof (logit_close k Hk) as Ck. destruct (exponentials _ _ _ _ _ _ _ computed k Hk) as [_ E].
  pose proof (largest _ _ _ _ _ _ _ computed k Hk) as Top. pose proof top_low as Low.
  pose proof (rounds (z k - top)) as Rd. rewrite (Rabs_left1 (z k - top)) in Rd by lra.
  set (d := rnd (z k - top)) in *. set (t := d - (logit k - top)). set (y := common * portion k).
  assert (B : - (z k - top) <= beyond - relative k + wrong k).
  { rewrite relative_logit. revert Ck. unfold Rabs. destruct Rcase_abs; lra. }
  assert (T : Rabs t <= moved_by k).
  { unfold t, moved_by. replace (d - (logit k - top)) with ((d - (z k - top)) + (z k - logit k)) by ring.
    eapply Rle_trans; [apply Rabs_triang|].
    assert (u * - (z k - top) <= u * (beyond - relative k + wrong k)) by (apply Rmult_le_compat_l; lra). lra. }
  assert (D : exp d = y * exp t).
  { unfold y, common, portion. rewrite relative_logit, <- !exp_plus. f_equal. unfold t. ring. }
  assert (P : 0 < y) by (apply Rmult_lt_0_compat; apply exp_pos).
  pose proof (exp_near (moved_by k) t (conj (moved_nonneg k Hk) (moved_small k Hk)) T) as N.
  set (m := moved_by k + 2 * (moved_by k * moved_by k)) in *.
  assert (U : exp t <= 1 + m) by (revert N; unfold Rabs; destruct Rcase_abs; lra).
  replace (e k - y) with ((e k - exp d) + y * (exp t - 1)) by (rewrite D; ring).
  eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_mult, (Rabs_pos_eq y) by lra.
  apply Rle_trans with ((m * (1 + kappa) + kappa) * y + tiny);
    [|apply Rplus_le_compat_r, Rmult_le_compat_r; [lra|exact (off_enough k Hk)]].
  apply Rle_trans with (kappa * (y * (1 + m)) + tiny + y * m).
  - apply Rplus_le_compat; [|apply Rmult_le_compat_l; lra].
    eapply Rle_trans; [exact E|]. eapply Rle_trans; [apply allowed_little, exp_pos|].
    apply Rplus_le_compat_r, Rmult_le_compat_l; [lra|]. rewrite D. apply Rmult_le_compat_l; lra.
  - right. ring.
Qed.

(* Their sum *)
Definition exponentials_sum : R := over keys e.

Lemma sum_large : common * present <= exponentials_sum.
Proof.
  unfold present, exponentials_sum. rewrite <- over_scale. apply over_le. intros k Hk.
  pose proof (exponential_close k Hk) as E. pose proof common_large as C.
  pose proof tiny_twice.
  revert E. unfold Rabs. destruct Rcase_abs; lra.
Qed.

Lemma sum_positive : 1 / 8 <= exponentials_sum.
Proof.
  pose proof sum_large. pose proof common_large.
  assert (1 / 2 * (1 / 4) <= common * present) by (apply Rmult_le_compat; lra). lra.
Qed.

Lemma size_over (f : nat -> R) : size (map f keys) = over keys (fun k => Rabs (f k)).
Proof. unfold size, over. now rewrite map_map. Qed.

Lemma sizes_of_exponentials : over keys (fun k => Rabs (e k)) <= exponentials_sum + 2 * INR count * tiny.
Proof.
  apply Rle_trans with (over keys (fun k => e k + 2 * tiny)).
  - apply over_le. intros k Hk. pose proof (exponential_close k Hk) as E. pose proof (off_nonneg k Hk).
    pose proof (moved_small k Hk). pose proof common_large as C. pose proof (portion_pos k).
    destruct (exponentials _ _ _ _ _ _ _ computed k Hk) as [_ F].
    assert (Positive : - tiny <= e k).
    { destruct (Rle_lt_dec (- tiny) (e k)) as [easy_|negative]; [exact easy_|exfalso].
      (* an exponential that is off by more than itself *)
      pose proof (exp_pos (rnd (z k - top))) as P. pose proof (allowed_little _ P) as A.
      assert (kappa * exp (rnd (z k - top)) <= 1 * exp (rnd (z k - top))) by (apply Rmult_le_compat_r; lra).
      revert F. unfold Rabs. destruct Rcase_abs; lra. }
    unfold Rabs. destruct Rcase_abs; lra.
  - rewrite over_plus, over_const. unfold exponentials_sum, count. right. ring.
Qed.

Lemma mass_close : Rabs (mass - exponentials_sum) <= mass_error * exponentials_sum.
Proof.
  pose proof (summed_numbers _ _ (masses _ _ _ _ _ _ _ computed)) as S.
  rewrite map_length, size_over in S. fold count in S. fold (over keys e) in S. fold exponentials_sum in S.
  pose proof sizes_of_exponentials as Z. pose proof sum_positive as L. pose proof keys_some as K.
  pose proof (growth_nonneg (count - 1)) as G. pose proof (lost_nonneg count (count - 1) K) as Lo.
  pose proof (pos_INR count) as C.
  eapply Rle_trans.
  { apply S. intros t inside. apply in_map_iff in inside. destruct inside as [k [<- Hk]].
    exact (proj1 (exponentials _ _ _ _ _ _ _ computed k Hk)). }
  set (g := growth (count - 1)) in *. unfold mass_error. fold g.
  set (w := g * (2 * INR count * tiny) + lost count (count - 1)).
  assert (W : 0 <= w).
  { unfold w. apply Rplus_le_le_0_compat; [|easy]. apply Rmult_le_pos; [easy|]. apply Rmult_le_pos; lra. }
  assert (g * over keys (fun k => Rabs (e k)) <= g * (exponentials_sum + 2 * INR count * tiny))
    by (apply Rmult_le_compat_l; easy).
  assert (w * 1 <= w * (8 * exponentials_sum)) by (apply Rmult_le_compat_l; lra). unfold w in *. lra.
Qed.

Lemma mass_error_nonneg : 0 <= mass_error.
Proof.
  pose proof mass_close as C. pose proof sum_positive. pose proof (Rabs_pos (mass - exponentials_sum)).
  destruct (Rle_lt_dec 0 mass_error); [easy|].
  assert (0 < - mass_error * exponentials_sum) by (apply Rmult_lt_0_compat; lra). lra.
Qed.

Lemma mass_low : (1 - mass_error) * exponentials_sum <= mass.
Proof. pose proof mass_close as C. revert C. unfold Rabs. destruct Rcase_abs; lra. Qed.

Lemma mass_positive : 0 < mass.
Proof.
  pose proof mass_low. pose proof sum_positive.
  assert (0 < (1 - mass_error) * exponentials_sum) by (apply Rmult_lt_0_compat; lra). lra.
Qed.

(* The mean by the computed exponentials *)
Definition mean_of_computed : R := over keys (fun k => value k * e k) / exponentials_sum.

Lemma centred : over keys (fun k => portion k * (value k - attention)) = 0.
Proof.
  assert (P : 0 < over keys (fun k => exp (logit k))).
  { destruct (attained _ _ _ _ _ _ _ computed) as [j [Hj _]].
    apply Rlt_le_trans with (exp (logit j)); [apply exp_pos|].
    apply (over_member keys (fun k => exp (logit k)) j Hj). intros. apply Rlt_le, exp_pos. }
  rewrite (over_ext keys _ (fun k => exp (- base) * (value k * exp (logit k)) + (- (exp (- base) * attention)) * exp (logit k))).
  - rewrite over_plus, !over_scale. unfold attention. field. lra.
  - intros k _. unfold portion. rewrite relative_logit. unfold Rminus. rewrite exp_plus. ring.
Qed.

Lemma apart_large k : Rabs (value k - attention) <= apart k.
Proof.
  unfold apart. replace (value k - attention) with ((value k - goal) + (goal - attention)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. rewrite (Rabs_minus_sym goal). lra.
Qed.

Lemma mean_close : Rabs (mean_of_computed - attention) <= shifted / present.
Proof.
  pose proof sum_large as L. pose proof sum_positive as Pos. pose proof common_large as C.
  assert (E : mean_of_computed - attention = over keys (fun k => e k * (value k - attention)) / exponentials_sum).
  { unfold mean_of_computed.
    rewrite (over_ext keys (fun k => e k * (value k - attention)) (fun k => value k * e k + - attention * e k))
      by (intros; ring).
    rewrite over_plus, over_scale. fold exponentials_sum. field. lra. }
  rewrite E. clear E. unfold Rdiv. rewrite Rabs_mult, (Rabs_pos_eq (/ exponentials_sum))
    by (apply Rlt_le, Rinv_0_lt_compat; lra).
  assert (N : Rabs (over keys (fun k => e k * (value k - attention))) <= common * shifted).
  { rewrite (over_ext keys _ (fun k => (e k - common * portion k) * (value k - attention)
                                       + common * (portion k * (value k - attention)))) by (intros; ring).
    rewrite over_plus, over_scale, centred, Rmult_0_r, Rplus_0_r.
    eapply Rle_trans; [apply over_abs|]. unfold shifted. rewrite <- over_scale. apply over_le. intros k Hk.
    rewrite Rabs_mult. pose proof (exponential_close k Hk) as Ek. pose proof (apart_large k) as A.
    apply Rle_trans with ((off k * (common * portion k) + tiny) * apart k).
    - apply Rmult_le_compat; try apply Rabs_pos; easy.
    - assert (0 <= apart k) by (eapply Rle_trans; [apply Rabs_pos|exact A]).
      pose proof tiny_twice.
      replace (common * ((portion k * off k + 2 * tiny) * apart k))
        with ((off k * (common * portion k) + common * (2 * tiny)) * apart k) by ring.
      apply Rmult_le_compat_r; lra. }
  assert (0 < common * present) by (apply Rmult_lt_0_compat; lra).
  apply Rle_trans with (common * shifted * / (common * present)).
  - apply Rmult_le_compat; [apply Rabs_pos|apply Rlt_le, Rinv_0_lt_compat; lra|exact N|].
    apply Rinv_le_contravar; lra.
  - right. field. lra.
Qed.

Lemma terms_bounded : over keys (fun k => Rabs (value k) * (Rabs (e k) / mass)) <= large / present / (1 - mass_error).
Proof.
  pose proof sum_large as L. pose proof mass_low as Low. pose proof mass_positive as Pm. pose proof common_large as C.
  assert (N : over keys (fun k => Rabs (value k) * Rabs (e k)) <= common * large).
  { unfold large. rewrite <- over_scale. apply over_le. intros k Hk. pose proof (exponential_close k Hk) as E.
    pose proof (portion_pos k) as P. assert (0 < common * portion k) by (apply Rmult_lt_0_compat; lra).
    pose proof tiny_twice.
    assert (B : Rabs (e k) <= common * (portion k * (1 + off k) + 2 * tiny)).
    { replace (e k) with ((e k - common * portion k) + common * portion k) by ring.
      eapply Rle_trans; [apply Rabs_triang|]. rewrite (Rabs_pos_eq (common * portion k)) by lra. lra. }
    replace (common * ((portion k * (1 + off k) + 2 * tiny) * Rabs (value k)))
      with (Rabs (value k) * (common * (portion k * (1 + off k) + 2 * tiny))) by ring.
    apply Rmult_le_compat_l; [apply Rabs_pos|exact B]. }
  rewrite (over_ext keys _ (fun k => / mass * (Rabs (value k) * Rabs (e k)))) by (intros; unfold Rdiv; ring).
  rewrite over_scale. assert (0 < common * present) by (apply Rmult_lt_0_compat; lra).
  assert (M : (1 - mass_error) * (common * present) <= mass).
  { eapply Rle_trans; [|exact Low]. apply Rmult_le_compat_l; lra. }
  assert (0 < (1 - mass_error) * (common * present)) by (apply Rmult_lt_0_compat; lra).
  apply Rle_trans with (/ ((1 - mass_error) * (common * present)) * (common * large)).
  - apply Rmult_le_compat; [apply Rlt_le, Rinv_0_lt_compat; lra| |apply Rinv_le_contravar; lra|exact N].
    apply over_nonneg. intros. apply Rmult_le_pos; apply Rabs_pos.
  - right. field. lra.
Qed.

Lemma large_nonneg : 0 <= large / present.
Proof.
  unfold large. apply Rmult_le_pos; [|apply Rlt_le, Rinv_0_lt_compat; lra]. apply over_nonneg. intros k Hk.
  pose proof (off_nonneg k Hk). pose proof (portion_pos k). apply Rmult_le_pos; [|apply Rabs_pos].
  assert (0 <= portion k * (1 + off k)) by (apply Rmult_le_pos; lra). lra.
Qed.

Lemma reading_close : Rabs (over keys (fun k => value k * (e k / mass)) - mean_of_computed)
  <= of_result * (Rabs goal + eps + shifted / present).
Proof.
  pose proof mass_close as C. pose proof mass_low as Low. pose proof mass_positive as P. pose proof sum_positive as S.
  pose proof mass_error_nonneg as M. pose proof mean_close as Mc.
  assert (size_of_mean : Rabs mean_of_computed <= Rabs goal + eps + shifted / present).
  { replace mean_of_computed with ((mean_of_computed - attention) + ((attention - goal) + goal)) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. pose proof (Rabs_triang (attention - goal) goal). lra. }
  assert (E : over keys (fun k => value k * (e k / mass)) - mean_of_computed
              = mean_of_computed * ((exponentials_sum - mass) / mass)).
  { rewrite (over_ext keys _ (fun k => / mass * (value k * e k))) by (intros; unfold Rdiv; ring).
    rewrite over_scale. unfold mean_of_computed. field. lra. }
  rewrite E, Rabs_mult, Rmult_comm.
  apply Rmult_le_compat; try apply Rabs_pos; [|exact size_of_mean].
  eapply Rle_trans; [|exact result_share].
  unfold Rdiv at 1. rewrite Rabs_mult, (Rabs_pos_eq (/ mass)) by (apply Rlt_le, Rinv_0_lt_compat; lra).
  rewrite Rabs_minus_sym.
  assert (0 < (1 - mass_error) * exponentials_sum) by (apply Rmult_lt_0_compat; lra).
  apply Rle_trans with (mass_error * exponentials_sum * / ((1 - mass_error) * exponentials_sum)).
  - apply Rmult_le_compat; [apply Rabs_pos|apply Rlt_le, Rinv_0_lt_compat; lra|exact C|apply Rinv_le_contravar; lra].
  - right. field. lra.
Qed.

Lemma quotient_close k : In k keys -> Rabs (q k - e k / mass) <= u * (Rabs (e k) / mass) + eta.
Proof.
  intros Hk. rewrite (weights _ _ _ _ _ _ _ computed k Hk). eapply Rle_trans; [apply rounds|].
  pose proof mass_positive. right. unfold Rdiv. rewrite Rabs_mult, (Rabs_pos_eq (/ mass)); [easy|].
  apply Rlt_le, Rinv_0_lt_compat. lra.
Qed.

(* The computed value is near that of exact arithmetic. *)
Theorem head_close : Rabs (result - attention) <= head_error.
Proof.
  pose proof (summed_error _ _ (results _ _ _ _ _ _ _ computed)) as S.
  rewrite map_length, size_over in S. fold count in S. fold (over keys (fun k => value k * q k)) in S.
  pose proof mean_close as Mc. pose proof reading_close as Rc. pose proof terms_bounded as T.
  pose proof (growth_nonneg count) as G. pose proof mass_positive as P. pose proof mass_error_nonneg as Mn.
  set (terms := over keys (fun k => Rabs (value k) * (Rabs (e k) / mass))) in *.
  set (sizes := over keys (fun k => Rabs (value k))).
  assert (D : Rabs (over keys (fun k => value k * q k) - over keys (fun k => value k * (e k / mass))) <= u * terms + eta * sizes).
  { replace (over keys (fun k => value k * q k) - over keys (fun k => value k * (e k / mass)))
      with (over keys (fun k => value k * (q k - e k / mass))).
    - eapply Rle_trans; [apply over_abs|]. unfold terms, sizes. rewrite <- !over_scale, <- over_plus.
      apply over_le. intros k Hk. rewrite Rabs_mult. pose proof (quotient_close k Hk). pose proof (Rabs_pos (value k)).
      apply Rle_trans with (Rabs (value k) * (u * (Rabs (e k) / mass) + eta)); [apply Rmult_le_compat_l; easy|right; ring].
    - rewrite (over_ext keys _ (fun k => value k * q k + -1 * (value k * (e k / mass)))) by (intros; ring).
      rewrite over_plus, over_scale. ring. }
  assert (Z : over keys (fun k => Rabs (value k * q k)) <= (1 + u) * terms + eta * sizes).
  { unfold terms, sizes. rewrite <- !over_scale, <- over_plus. apply over_le. intros k Hk.
    rewrite Rabs_mult. pose proof (quotient_close k Hk) as Q. pose proof (Rabs_pos (value k)).
    assert (Rabs (q k) <= (1 + u) * (Rabs (e k) / mass) + eta).
    { replace (q k) with ((q k - e k / mass) + e k / mass) by ring. eapply Rle_trans; [apply Rabs_triang|].
      assert (Rabs (e k / mass) = Rabs (e k) / mass).
      { unfold Rdiv. rewrite Rabs_mult, (Rabs_pos_eq (/ mass)); [easy|]. apply Rlt_le, Rinv_0_lt_compat. lra. }
      lra. }
    apply Rle_trans with (Rabs (value k) * ((1 + u) * (Rabs (e k) / mass) + eta)); [apply Rmult_le_compat_l; easy|right; ring]. }
  assert (F : growth (count + 1) * terms <= of_terms * (large / present)).
  { pose proof large_nonneg as Ln. pose proof (growth_nonneg (count + 1)) as Gn.
    apply Rle_trans with (growth (count + 1) * (large / present / (1 - mass_error))).
    - apply Rmult_le_compat_l; easy.
    - replace (growth (count + 1) * (large / present / (1 - mass_error)))
        with (growth (count + 1) / (1 - mass_error) * (large / present)) by (field; split; lra).
      apply Rmult_le_compat_r; easy. }
  assert (N : growth (count + 1) = u + growth count * (1 + u)).
  { unfold growth. rewrite Nat.add_1_r. simpl. ring. }
  rewrite N in F. unfold head_error.
  replace (result - attention) with
    ((result - over keys (fun k => value k * q k))
     + ((over keys (fun k => value k * q k) - over keys (fun k => value k * (e k / mass)))
        + ((over keys (fun k => value k * (e k / mass)) - mean_of_computed) + (mean_of_computed - attention)))) by ring.
  set (first := result - _) in *. set (second := _ - over keys (fun k => value k * (e k / mass))) in *.
  set (third := _ - mean_of_computed) in *. set (fourth := mean_of_computed - attention) in *.
  pose proof (Rabs_triang first (second + (third + fourth))). pose proof (Rabs_triang second (third + fourth)).
  pose proof (Rabs_triang third fourth).
  assert (growth count * over keys (fun k => Rabs (value k * q k)) <= growth count * ((1 + u) * terms + eta * sizes))
    by (apply Rmult_le_compat_l; easy).
  pose proof underflow_share as W. unfold little in W. fold sizes in W.
  replace (errors / present) with ((1 + of_result) * (shifted / present) + of_terms * (large / present))
    by (rewrite errors_are; field; lra).
  lra.
Qed.

End Head.

End Arithmetic.
