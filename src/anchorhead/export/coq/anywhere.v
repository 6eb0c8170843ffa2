(* What floating point makes of a head whose bound leaves room for it: for every x at once, by nothing but sizes.

   Relative to the largest logit all others are at most 0. If logits are at most `logits_to` in size, values at most
   `values_to`, and exponentials off by a part o, the mean moves by at most 2 values_to o / (1 - o), whatever x is. *)

Lemma some_largest (f : nat -> R) (l : list nat) : (1 <= length l)%nat ->
  exists j, In j l /\ forall k, In k l -> f k <= f j.
Proof.
  induction l as [|a l IH]; simpl; intros some; [lia|].
  destruct l as [|b l']; [exists a; split; [now left|intros k [<-|[]]; lra]|].
  destruct IH as [j [inside best]]; [simpl; lia|].
  destruct (Rle_lt_dec (f a) (f j)) as [less|more].
  - exists j. split; [now right|]. intros k [<-|there]; [easy|now apply best].
  - exists a. split; [now left|]. intros k [<-|there]; [lra|]. pose proof (best k there). lra.
Qed.

Lemma over_bounded l f g most : (forall k, In k l -> 0 <= g k) -> (forall k, In k l -> Rabs (f k) <= most) ->
  Rabs (over l (fun k => f k * g k)) <= most * over l g.
Proof.
  intros positive small. rewrite <- over_scale. eapply Rle_trans; [apply over_abs|]. apply over_le. intros k Hk.
  rewrite Rabs_mult, (Rabs_pos_eq (g k)) by now apply positive.
  apply Rmult_le_compat_r; [now apply positive|now apply small].
Qed.

Section Anywhere.

Variables (rnd : R -> R) (u eta : R).
Hypothesis u_small : 0 <= u <= 1 / 100.
Hypothesis eta_nonneg : 0 <= eta.
Hypothesis rounds : forall x, Rabs (rnd x - x) <= u * Rabs x + eta.
Variables (keys : list nat) (slope offset value : nat -> R) (s : R).
Variables (allowed : R -> R) (kappa tiny : R) (z e q : nat -> R) (top mass result : R).
Hypothesis computed : evaluated rnd keys slope offset value s allowed z e q top mass result.
Hypothesis allowed_little : forall y, 0 < y -> allowed y <= kappa * y + tiny.
Hypothesis kappa_small : 0 <= kappa <= 1.
Hypothesis tiny_nonneg : 0 <= tiny.

(* Sizes; how far logits are off; how far exponentials are, with what underflow makes of their sum. *)
Variables (products_to logits_to values_to most o : R).
Hypothesis sizes : forall k, In k keys -> Rabs (slope k * s) <= products_to /\
  Rabs (slope k * s + offset k) <= logits_to /\ Rabs (value k) <= values_to.
Definition wrong_to : R := u * ((1 + u) * products_to + logits_to) + 3 * eta.
Hypothesis moved : wrong_to + u * (wrong_to + 2 * logits_to + wrong_to) + eta <= most.
Hypothesis most_small : most <= 1 / 2.
Hypothesis o_enough : (most + 2 * (most * most)) * (1 + kappa) + kappa + 2 * INR (length keys) * tiny <= o.
Hypothesis o_small : o <= 1 / 4.

Variables (of_result of_terms underflow : R).
Hypothesis shares_nonneg : 0 <= of_result /\ 0 <= of_terms.
Hypothesis mass_error_small : mass_error u eta keys tiny <= 1 / 2.
Hypothesis result_share : mass_error u eta keys tiny / (1 - mass_error u eta keys tiny) <= of_result.
Hypothesis terms_share : growth u (count keys + 1) / (1 - mass_error u eta keys tiny) <= of_terms.
Hypothesis underflow_share : little u eta keys value <= underflow.

Definition anywhere : R :=
  values_to * (((1 + of_result) * 2 * o + of_terms * (1 + o)) / (1 - o) + of_result) + underflow.

Lemma attention_bounded : Rabs (attention keys slope offset value s) <= values_to.
Proof.
  destruct (attained _ _ _ _ _ _ _ _ _ _ _ _ _ computed) as [j [Hj _]].
  unfold attention. set (d := over keys (fun k => exp (logit slope offset s k))).
  assert (D : 0 < d).
  { apply Rlt_le_trans with (exp (logit slope offset s j)); [apply exp_pos|].
    apply (over_member keys (fun k => exp (logit slope offset s k)) j Hj). intros. apply Rlt_le, exp_pos. }
  unfold Rdiv. rewrite Rabs_mult, (Rabs_pos_eq (/ d)) by (apply Rlt_le, Rinv_0_lt_compat; easy).
  apply Rmult_le_reg_r with d; [easy|]. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  apply over_bounded; [intros; apply Rlt_le, exp_pos|]. intros k Hk. apply (sizes k Hk).
Qed.

Lemma head_anywhere : Rabs (result - attention keys slope offset value s) <= anywhere.
Proof.
  assert (some : (1 <= length keys)%nat).
  { destruct (attained _ _ _ _ _ _ _ _ _ _ _ _ _ computed) as [j [Hj _]]. exact (some_member keys j Hj). }
  destruct (some_largest (logit slope offset s) keys some) as [j [Hj best]].
  assert (V : 0 <= values_to).
  { destruct (sizes j Hj) as [_ [_ Hv]]. eapply Rle_trans; [apply Rabs_pos|exact Hv]. }
  assert (L : 0 <= logits_to).
  { destruct (sizes j Hj) as [_ [Hv _]]. eapply Rle_trans; [apply Rabs_pos|exact Hv]. }
  assert (P : 0 <= products_to).
  { destruct (sizes j Hj) as [Hv _]. eapply Rle_trans; [apply Rabs_pos|exact Hv]. }
  assert (W : 0 <= wrong_to).
  { unfold wrong_to. assert (0 <= (1 + u) * products_to) by (apply Rmult_le_pos; lra).
    assert (0 <= u * ((1 + u) * products_to + logits_to)) by (apply Rmult_le_pos; lra). lra. }
  assert (wrong_small : forall k, In k keys -> wrong u eta slope offset s k <= wrong_to).
  { intros k Hk. destruct (sizes k Hk) as [Hp [Hl _]]. unfold wrong, wrong_to, logit.
    apply Rplus_le_compat_r, Rmult_le_compat_l; [lra|]. apply Rplus_le_compat; [|easy].
    apply Rmult_le_compat_l; lra. }
  assert (rel : forall k, relative slope offset s (slope j) (offset j) k = logit slope offset s k - logit slope offset s j).
  { intros k. unfold relative, logit. ring. }
  assert (rel_low : forall k, In k keys -> - (2 * logits_to) <= relative slope offset s (slope j) (offset j) k <= 0).
  { intros k Hk. rewrite rel. destruct (sizes k Hk) as [_ [Hl _]]. destruct (sizes j Hj) as [_ [Hl' _]].
    pose proof (best k Hk). unfold logit in *. apply Rabs_le_inv in Hl; apply Rabs_le_inv in Hl'. lra. }
  assert (moved_k : forall k, In k keys ->
    moved_by u eta slope offset s (slope j) (offset j) wrong_to k <= most).
  { intros k Hk. unfold moved_by. pose proof (wrong_small k Hk). pose proof (rel_low k Hk).
    assert (u * (wrong_to - relative slope offset s (slope j) (offset j) k + wrong u eta slope offset s k)
      <= u * (wrong_to + 2 * logits_to + wrong_to)) by (apply Rmult_le_compat_l; lra). lra. }
  assert (moved_0 : forall k, In k keys -> 0 <= moved_by u eta slope offset s (slope j) (offset j) wrong_to k).
  { intros k Hk. unfold moved_by. pose proof (wrong_nonneg u eta u_small eta_nonneg slope offset s k).
    pose proof (rel_low k Hk).
    assert (0 <= u * (wrong_to - relative slope offset s (slope j) (offset j) k + wrong u eta slope offset s k))
      by (apply Rmult_le_pos; lra). lra. }
  set (n := INR (length keys)) in *.
  assert (N : 0 <= 2 * n * tiny).
  { apply Rmult_le_pos; [|easy]. pose proof (pos_INR (length keys)). unfold n. lra. }
  set (off := o - 2 * n * tiny) in *.
  assert (most_0 : 0 <= most) by (eapply Rle_trans; [exact (moved_0 j Hj)|exact (moved_k j Hj)]).
  assert (off_0 : 0 <= off).
  { unfold off. assert (0 <= most * most) by (apply Rmult_le_pos; lra).
    assert (0 <= (most + 2 * (most * most)) * (1 + kappa)) by (apply Rmult_le_pos; lra). lra. }
  set (portions := over keys (portion slope offset s (slope j) (offset j))).
  assert (S : 1 <= portions).
  { unfold portions. apply Rle_trans with (portion slope offset s (slope j) (offset j) j).
    - unfold portion. rewrite rel, Rminus_diag_eq, exp_0 by easy. lra.
    - apply over_member; [easy|]. intros. apply Rlt_le, exp_pos. }
  assert (slack : 2 * n * tiny <= 2 * n * tiny * portions)
    by (rewrite <- (Rmult_1_r (2 * n * tiny)) at 1; apply Rmult_le_compat_l; lra).
  set (there := attention keys slope offset value s).
  assert (size_there : Rabs there <= values_to) by exact attention_bounded.
  assert (present_is : present keys slope offset s tiny (slope j) (offset j) (fun _ => off)
    = (1 - off) * portions - 2 * n * tiny).
  { unfold present, portions, n. rewrite (over_ext keys _ (fun k => (1 - off) * portion slope offset s (slope j) (offset j) k
      + - (2 * tiny))) by (intros; ring). rewrite over_plus, over_scale, over_const. ring. }
  assert (enough : (1 - o) * portions <= present keys slope offset s tiny (slope j) (offset j) (fun _ => off)).
  { rewrite present_is. unfold off. lra. }
  assert (quarter : 1 / 4 <= present keys slope offset s tiny (slope j) (offset j) (fun _ => off)).
  { eapply Rle_trans; [|exact enough]. apply Rle_trans with (3 / 4 * 1); [lra|].
    apply Rmult_le_compat; lra. }
  assert (close := head_close rnd u eta u_small eta_nonneg rounds keys slope offset value s allowed kappa tiny z e q top
    mass result computed allowed_little kappa_small tiny_nonneg (slope j) (offset j) wrong_to
    ltac:(intros k Hk; pose proof (wrong_small k Hk); pose proof (rel_low k Hk); lra)
    ltac:(assert (0 <= u * (wrong_to + 2 * logits_to + wrong_to)) by (apply Rmult_le_pos; lra); lra)
    ltac:(intros k Hk; eapply Rle_trans; [exact (moved_k k Hk)|exact most_small])
    (fun _ => off)).
  eapply Rle_trans; [apply (close
    ltac:(intros k Hk; pose proof (moved_k k Hk); pose proof (moved_0 k Hk); unfold off;
      set (b := moved_by _ _ _ _ _ _ _ _ _) in *;
      assert (b * b <= most * most) by (apply Rmult_le_compat; lra);
      assert ((b + 2 * (b * b)) * (1 + kappa) <= (most + 2 * (most * most)) * (1 + kappa))
        by (apply Rmult_le_compat_r; lra); lra)
    there 0 ltac:(fold there; rewrite Rminus_diag_eq, Rabs_R0 by easy; lra) of_result of_terms underflow
    mass_error_small result_share terms_share underflow_share quarter)|].
  clear close. unfold head_error, anywhere. rewrite Rplus_0_r.
  assert (over_values : forall a b most_, (0 <= a) -> (0 <= b) -> forall f : nat -> R,
    (forall k, In k keys -> 0 <= f k <= most_) ->
    over keys (fun k => (portion slope offset s (slope j) (offset j) k * a + b) * f k) <= (a * portions + n * b) * most_).
  { intros a b most_ a_0 b_0 f f_small.
    apply Rle_trans with (over keys (fun k => most_ * (a * portion slope offset s (slope j) (offset j) k + b))).
    - apply over_le. intros k Hk. rewrite Rmult_comm, (Rmult_comm _ a). destruct (f_small k Hk).
      apply Rmult_le_compat_r; [|easy].
      assert (0 <= a * portion slope offset s (slope j) (offset j) k)
        by (apply Rmult_le_pos; [easy|apply Rlt_le, exp_pos]). lra.
    - rewrite over_scale, over_plus, over_scale, over_const. fold portions n. right. ring. }
  assert (shifted_small : shifted keys slope offset value s tiny (slope j) (offset j) (fun _ => off) there 0
    <= o * portions * (2 * values_to)).
  { unfold shifted. eapply Rle_trans; [apply (over_values off (2 * tiny) (2 * values_to)); [easy|lra|]|].
    - intros k Hk. unfold apart. destruct (sizes k Hk) as [_ [_ Hv]]. pose proof (Rabs_pos (value k - there)).
      pose proof (Rabs_triang (value k) (- there)) as T. rewrite Rabs_Ropp in T. unfold Rminus in *. lra.
    - apply Rmult_le_compat_r; [lra|]. unfold off. lra. }
  assert (large_small : large keys slope offset value s tiny (slope j) (offset j) (fun _ => off)
    <= (1 + o) * portions * values_to).
  { unfold large. eapply Rle_trans; [apply (over_values (1 + off) (2 * tiny) values_to); [lra|lra|]|].
    - intros k Hk. destruct (sizes k Hk) as [_ [_ Hv]]. split; [apply Rabs_pos|easy].
    - apply Rmult_le_compat_r; [easy|]. unfold off. lra. }
  rewrite errors_are.
  set (sh := shifted _ _ _ _ _ _ _ _ _ _ _) in *. set (la := large _ _ _ _ _ _ _ _ _) in *.
  set (pr := present _ _ _ _ _ _ _ _) in *. clearbody sh la pr.
  assert (step : (1 + of_result) * sh + of_terms * la
    <= values_to * ((1 + of_result) * 2 * o + of_terms * (1 + o)) * portions).
  { assert ((1 + of_result) * sh <= (1 + of_result) * (o * portions * (2 * values_to))) by (apply Rmult_le_compat_l; lra).
    assert (of_terms * la <= of_terms * ((1 + o) * portions * values_to)) by (apply Rmult_le_compat_l; lra).
    replace (values_to * ((1 + of_result) * 2 * o + of_terms * (1 + o)) * portions) with
      ((1 + of_result) * (o * portions * (2 * values_to)) + of_terms * ((1 + o) * portions * values_to)) by ring. lra. }
  assert (o_0 : 0 <= o) by (unfold off in off_0; lra).
  assert (X : 0 <= values_to * ((1 + of_result) * 2 * o + of_terms * (1 + o))).
  { apply Rmult_le_pos; [easy|]. apply Rplus_le_le_0_compat; repeat apply Rmult_le_pos; lra. }
  assert (quotient : ((1 + of_result) * sh + of_terms * la) / pr
    <= values_to * (((1 + of_result) * 2 * o + of_terms * (1 + o)) / (1 - o))).
  { apply Rmult_le_reg_r with pr; [lra|]. unfold Rdiv at 1. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
    eapply Rle_trans; [exact step|].
    apply Rle_trans with (values_to * (((1 + of_result) * 2 * o + of_terms * (1 + o)) / (1 - o)) * ((1 - o) * portions)).
    - right. field. lra.
    - apply Rmult_le_compat_l; [|easy].
      replace (values_to * (((1 + of_result) * 2 * o + of_terms * (1 + o)) / (1 - o)))
        with (values_to * ((1 + of_result) * 2 * o + of_terms * (1 + o)) * / (1 - o)) by (field; lra).
      apply Rmult_le_pos; [easy|]. apply Rlt_le, Rinv_0_lt_compat. lra. }
  assert (of_result * Rabs there <= of_result * values_to) by (apply Rmult_le_compat_l; lra).
  lra.
Qed.

End Anywhere.

(* For the anchors of a list, as floats of so many bits compute. *)
Section FloatsAnywhere.

Variables (emin prec : Z) (choice : Z -> bool).
Hypothesis some_bits : (0 < prec)%Z.
Variables (anchors : list anchor) (products_to logits_to values_to most o of_result of_terms underflow : R).

Definition sizes_hold (x : R) (a : anchor) : Prop :=
  Rabs (fst (fst a) * x) <= products_to /\ Rabs (fst (fst a) * x + snd (fst a)) <= logits_to /\
  Rabs (snd a) <= values_to.

Definition settings_hold : Prop :=
  (0 <= unit_of prec <= 1 / 100) /\
  (wrong_to (unit_of prec) (least_of emin) products_to logits_to
    + unit_of prec * (wrong_to (unit_of prec) (least_of emin) products_to logits_to + 2 * logits_to
      + wrong_to (unit_of prec) (least_of emin) products_to logits_to) + least_of emin <= most) /\
  most <= 1 / 2 /\
  (most + 2 * (most * most)) * (1 + 8 * unit_of prec) + 8 * unit_of prec
    + 2 * INR (length (keys_of anchors)) * (8 * least_of emin) <= o /\
  o <= 1 / 4 /\ (0 <= of_result /\ 0 <= of_terms).

Hypothesis settings : settings_hold.
Hypothesis shares : shares_hold emin prec anchors of_result of_terms underflow.
Variables (x : R) (z e q : nat -> R) (top mass result : R).
Hypothesis computed : evaluated (fl emin prec choice) (keys_of anchors) (slope_of anchors) (offset_of anchors)
  (value_of anchors) x (four_ulp emin prec) z e q top mass result.
Hypothesis sizes : List.Forall (sizes_hold x) anchors.

Lemma sizes_by_key : forall k, In k (keys_of anchors) -> Rabs (slope_of anchors k * x) <= products_to /\
  Rabs (slope_of anchors k * x + offset_of anchors k) <= logits_to /\ Rabs (value_of anchors k) <= values_to.
Proof. exact (all_keys anchors (sizes_hold x) sizes). Qed.

Lemma mean_bounded : Rabs (mean anchors x) <= values_to.
Proof. rewrite <- attention_is_mean. exact (attention_bounded _ _ _ _ _ _ _ _ _ _ _ _ _ computed _ _ _ sizes_by_key). Qed.

(* What is computed is near goal, if the mean is. *)
Theorem computed_anywhere goal eps : Rabs (mean anchors x - goal) <= eps ->
  Rabs (result - goal) <= eps + anywhere values_to o of_result of_terms underflow.
Proof.
  intros near. destruct settings as [small [moved [most_ [enough [o_small nonneg]]]]].
  destruct shares as [M [share [terms lost_]]].
  assert (0 < least_of emin) by (apply powerRZ_lt; lra).
  assert (close := head_anywhere (fl emin prec choice) (unit_of prec) (least_of emin) small ltac:(lra)
    (fl_rounds emin prec choice some_bits) (keys_of anchors) (slope_of anchors) (offset_of anchors) (value_of anchors) x
    (four_ulp emin prec) (8 * unit_of prec) (8 * least_of emin) z e q top mass result computed
    (four_ulp_little emin prec some_bits) ltac:(lra) ltac:(lra) products_to logits_to values_to most o sizes_by_key moved
    most_ enough o_small of_result of_terms underflow nonneg M share terms lost_).
  rewrite attention_is_mean in close.
  replace (result - goal) with ((result - mean anchors x) + (mean anchors x - goal)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. lra.
Qed.

(* With a bias, which rounds once more. *)
Theorem computed_anywhere_biased bias goal eps : Rabs (mean anchors x - (goal - bias)) <= eps ->
  Rabs (fl emin prec choice (result + bias) - goal) <=
    (1 + unit_of prec) * (eps + anywhere values_to o of_result of_terms underflow)
    + unit_of prec * (eps + values_to + Rabs bias) + least_of emin.
Proof.
  intros near. eapply Rle_trans; [exact (biased_close emin prec choice some_bits _ _ _ _ (computed_anywhere _ _ near))|].
  assert (size : Rabs goal <= eps + values_to + Rabs bias).
  { replace goal with ((- (mean anchors x - (goal - bias)) + mean anchors x) + bias) by ring.
    eapply Rle_trans; [apply Rabs_triang|].
    pose proof (Rabs_triang (- (mean anchors x - (goal - bias))) (mean anchors x)) as T. rewrite Rabs_Ropp in T.
    pose proof mean_bounded. lra. }
  assert (0 <= unit_of prec) by apply settings.
  assert (unit_of prec * Rabs goal <= unit_of prec * (eps + values_to + Rabs bias)) by (apply Rmult_le_compat_l; lra). lra.
Qed.

End FloatsAnywhere.

(* The same sizes for all of x's interval, by intervals. *)
Ltac all_sizes anchors :=
  unfold anchors; repeat (apply List.Forall_cons; [unfold sizes_hold; cbn [fst snd]; repeat split; interval with (i_prec 60)|]);
  apply List.Forall_nil.

Ltac settings_of anchors number whole :=
  unfold settings_hold, wrong_to, unit_of, least_of; change (length (keys_of anchors)) with number;
  rewrite ?INR_IZR_INZ; change (Z.of_nat number) with whole; repeat split; interval with (i_prec 150).
