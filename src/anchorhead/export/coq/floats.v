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

Definition unit_of : R := powerRZ 2 (- prec).
Definition least_of : R := powerRZ 2 (emin - 1).

Definition shares_hold (anchors : list anchor) (of_result of_terms underflow : R) : Prop :=
  mass_error unit_of least_of (keys_of anchors) (8 * least_of) <= 1 / 2 /\
  mass_error unit_of least_of (keys_of anchors) (8 * least_of)
    / (1 - mass_error unit_of least_of (keys_of anchors) (8 * least_of)) <= of_result /\
  growth unit_of (count (keys_of anchors) + 1)
    / (1 - mass_error unit_of least_of (keys_of anchors) (8 * least_of)) <= of_terms /\
  little unit_of least_of (keys_of anchors) (value_of anchors) <= underflow.

(* How far an exponential is off on a piece, where logits are off by at most a quarter of (scale / unit - 1) or so. *)
Definition wide (scales : list R) (anchors : list anchor) (x steep high beyond : R) (k : nat) : R :=
  nth k scales 0 * (Rabs (slope_of anchors k * x) + Rabs (slope_of anchors k * x + offset_of anchors k)
    + (beyond - ((slope_of anchors k - steep) * x + (offset_of anchors k - high))) + 8) + 3 * (8 * least_of).

Definition wrong_at (a : anchor) (x : R) : R :=
  unit_of * ((1 + unit_of) * Rabs (fst (fst a) * x) + Rabs (fst (fst a) * x + snd (fst a))) + 3 * least_of.

Definition moved_at (a : anchor) (x steep high beyond : R) : R :=
  wrong_at a x + unit_of * (beyond - ((fst (fst a) - steep) * x + (snd (fst a) - high)) + wrong_at a x) + least_of.

(* Of each anchor, with its scale: what has to hold on a piece. *)
Definition holds_at (x steep high beyond : R) (a : anchor) (scale : R) : Prop :=
  (fst (fst a) - steep) * x + (snd (fst a) - high) + wrong_at a x <= beyond /\
  exists most, moved_at a x steep high beyond <= most <= 1 / 2 /\
    (1 + 2 * most) * (1 + 8 * unit_of) * (1 + unit_of) ^ 2 * unit_of <= scale.

Fixpoint all_hold (x steep high beyond : R) (anchors : list anchor) (scales : list R) : Prop :=
  match anchors, scales with
  | a :: others, scale :: more => holds_at x steep high beyond a scale /\ all_hold x steep high beyond others more
  | nil, _ => True
  | _, nil => False
  end.

Lemma each_holds x steep high beyond : forall anchors scales, all_hold x steep high beyond anchors scales ->
  forall k, In k (keys_of anchors) -> holds_at x steep high beyond (nth k anchors (0, 0, 0)) (nth k scales 0).
Proof.
  induction anchors as [|a others IH]; intros [|scale more] all k inside; simpl in *; try easy.
  destruct all as [here there]. unfold keys_of in *. simpl in inside. destruct inside as [<-|inside]; [exact here|].
  rewrite <- seq_shift in inside. apply in_map_iff in inside. destruct inside as [j [<- inside]]. now apply IH.
Qed.

Lemma wide_enough a x steep high beyond scale : 0 <= unit_of <= 1 / 100 -> holds_at x steep high beyond a scale ->
  let moved := moved_at a x steep high beyond in
  (moved + 2 * (moved * moved)) * (1 + 8 * unit_of) + 8 * unit_of
  <= scale * (Rabs (fst (fst a) * x) + Rabs (fst (fst a) * x + snd (fst a))
       + (beyond - ((fst (fst a) - steep) * x + (snd (fst a) - high))) + 8) + 3 * (8 * least_of).
Proof.
  intros small [below [most [[moved_most most_half] enough]]]. unfold moved_at in *. unfold wrong_at in *.
  assert (eta_pos : 0 < least_of) by (apply powerRZ_lt; lra).
  set (A := Rabs (fst (fst a) * x)) in *. set (L := Rabs (fst (fst a) * x + snd (fst a))) in *.
  set (r := (fst (fst a) - steep) * x + (snd (fst a) - high)) in *. set (u := unit_of) in *. set (h := least_of) in *.
  assert (0 <= A) by apply Rabs_pos. assert (0 <= L) by apply Rabs_pos.
  assert (0 <= u * ((1 + u) * A + L)) by (apply Rmult_le_pos; [lra|]; assert (0 <= (1 + u) * A) by
    (apply Rmult_le_pos; lra); lra).
  set (w := u * ((1 + u) * A + L) + 3 * h) in *. set (m := w + u * (beyond - r + w) + h) in *.
  assert (G : 0 <= beyond - r) by (unfold w in *; lra). set (g := beyond - r) in *.
  assert (0 <= w) by (unfold w; lra).
  assert (M : 0 <= m) by (unfold m; assert (0 <= u * (g + w)) by (apply Rmult_le_pos; lra); lra).
  assert (size : m <= (1 + u) ^ 2 * u * (A + L + g) + 5 * h).
  { assert (w <= (1 + u) * u * (A + L) + 3 * h).
    { unfold w. assert (u * L <= (1 + u) * (u * L)) by (assert (0 <= u * L) by (apply Rmult_le_pos; lra);
      assert (0 <= u * (u * L)) by (apply Rmult_le_pos; lra); lra). lra. }
    assert ((1 + u) * w <= (1 + u) * ((1 + u) * u * (A + L) + 3 * h)) by (apply Rmult_le_compat_l; lra).
    assert (u * g <= (1 + u) ^ 2 * u * g).
    { assert (0 <= u * g) by (apply Rmult_le_pos; lra). assert (0 <= u * u) by (apply Rmult_le_pos; lra).
      assert (1 * (u * g) <= (1 + u) ^ 2 * (u * g)) by (apply Rmult_le_compat_r; lra). lra. }
    assert (u * h <= 1 / 100 * h) by (apply Rmult_le_compat_r; lra). unfold m. lra. }
  assert (factor : 0 <= (1 + 2 * most) * (1 + 8 * u) <= 3).
  { assert (0 <= most) by lra. split; [apply Rmult_le_pos; lra|].
    apply Rle_trans with (2 * (3 / 2)); [apply Rmult_le_compat; lra|lra]. }
  set (c := (1 + 2 * most) * (1 + 8 * u)) in *.
  assert (first : (m + 2 * (m * m)) * (1 + 8 * u) <= c * m).
  { unfold c. assert (m * m <= most * m) by (apply Rmult_le_compat_r; lra).
    assert (m + 2 * (m * m) <= (1 + 2 * most) * m) by lra.
    apply Rle_trans with ((1 + 2 * most) * m * (1 + 8 * u)); [apply Rmult_le_compat_r; lra|right; ring]. }
  assert (second : c * m <= c * ((1 + u) ^ 2 * u * (A + L + g) + 5 * h)) by (apply Rmult_le_compat_l; lra).
  assert (third : c * (1 + u) ^ 2 * u * (A + L + g) <= scale * (A + L + g)) by (apply Rmult_le_compat_r; lra).
  assert (c * h <= 3 * h) by (apply Rmult_le_compat_r; lra).
  assert (u <= scale).
  { eapply Rle_trans; [|exact enough]. assert (1 <= c).
    { unfold c. assert (0 <= most * u) by (apply Rmult_le_pos; lra). lra. }
    assert (0 <= u * u) by (apply Rmult_le_pos; lra). assert (1 <= (1 + u) ^ 2) by lra.
    assert (1 * 1 <= c * (1 + u) ^ 2) by (apply Rmult_le_compat; lra).
    assert (1 * u <= c * (1 + u) ^ 2 * u) by (apply Rmult_le_compat_r; lra). lra. }
  lra.
Qed.

(* What is computed of a list of anchors is near goal; errors are at most those of head_error. *)
Theorem computed_close anchors scales x z e q top mass result steep high beyond goal eps of_result of_terms underflow :
  evaluated fl (keys_of anchors) (slope_of anchors) (offset_of anchors) (value_of anchors) x
    four_ulp z e q top mass result ->
  Rabs (mean anchors x - goal) <= eps ->
  0 <= unit_of <= 1 / 100 ->
  shares_hold anchors of_result of_terms underflow ->
  beyond <= 1 / 2 ->
  all_hold x steep high beyond anchors scales ->
  1 / 4 <= present (keys_of anchors) (slope_of anchors) (offset_of anchors) x (8 * least_of) steep high
    (wide scales anchors x steep high beyond) ->
  Rabs (result - goal) <= eps + head_error (keys_of anchors) (slope_of anchors) (offset_of anchors)
    (value_of anchors) x (8 * least_of) steep high (wide scales anchors x steep high beyond)
    goal eps of_result of_terms underflow.
Proof.
  intros computed near small [M [share [terms lost_]]] B all enough. rewrite <- attention_is_mean in near.
  assert (0 < least_of) by (apply powerRZ_lt; lra).
  pose proof (each_holds _ _ _ _ _ _ all) as each.
  assert (below : forall k, In k (keys_of anchors) ->
    relative (slope_of anchors) (offset_of anchors) x steep high k
    + wrong unit_of least_of (slope_of anchors) (offset_of anchors) x k <= beyond) by (intros k Hk; apply (each k Hk)).
  assert (moved : forall k, In k (keys_of anchors) ->
    moved_by unit_of least_of (slope_of anchors) (offset_of anchors) x steep high beyond k <= 1 / 2).
  { intros k Hk. destruct (each k Hk) as [_ [most [bounds _]]]. eapply Rle_trans; apply bounds. }
  assert (off : forall k, In k (keys_of anchors) ->
    (moved_by unit_of least_of (slope_of anchors) (offset_of anchors) x steep high beyond k
     + 2 * (moved_by unit_of least_of (slope_of anchors) (offset_of anchors) x steep high beyond k
            * moved_by unit_of least_of (slope_of anchors) (offset_of anchors) x steep high beyond k))
    * (1 + 8 * unit_of) + 8 * unit_of <= wide scales anchors x steep high beyond k).
  { intros k Hk. exact (wide_enough _ _ _ _ _ _ small (each k Hk)). }
  assert (close := head_close fl unit_of least_of small (Rlt_le _ _ H) fl_rounds (keys_of anchors) (slope_of anchors)
    (offset_of anchors) (value_of anchors) x four_ulp (8 * unit_of) (8 * least_of) z e q top mass result computed
    four_ulp_little ltac:(lra) ltac:(lra) steep high beyond below B moved (wide scales anchors x steep high beyond) off
    goal eps near of_result of_terms underflow M share terms lost_ enough).
  replace (result - goal) with ((result - attention (keys_of anchors) (slope_of anchors) (offset_of anchors)
    (value_of anchors) x) + (attention (keys_of anchors) (slope_of anchors) (offset_of anchors) (value_of anchors) x
    - goal)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. lra.
Qed.

(* A bias is added, and rounds once more. *)
Lemma biased_close result bias goal error : Rabs (result - (goal - bias)) <= error ->
  Rabs (fl (result + bias) - goal) <= (1 + unit_of) * error + unit_of * Rabs goal + least_of.
Proof.
  intros close. pose proof (fl_rounds (result + bias)) as R. fold unit_of least_of in R.
  assert (size : Rabs (result + bias) <= Rabs (result - (goal - bias)) + Rabs goal).
  { replace (result + bias) with ((result - (goal - bias)) + goal) by ring. apply Rabs_triang. }
  replace (fl (result + bias) - goal)
    with ((fl (result + bias) - (result + bias)) + (result - (goal - bias))) by ring.
  eapply Rle_trans; [apply Rabs_triang|].
  assert (0 < unit_of) by (apply powerRZ_lt; lra).
  assert (unit_of * Rabs (result + bias) <= unit_of * (error + Rabs goal)) by (apply Rmult_le_compat_l; lra). lra.
Qed.

End Floats.

(* Conditions on every anchor of a list, by intervals; most: how far logits may be off, one number each. *)
Ltac by_intervals bits := unfold moved_at, wrong_at, unit_of, least_of; cbn [fst snd]; interval with (i_prec bits).

Ltac each_anchor mosts bits :=
  lazymatch mosts with
  | ?most :: ?others => split;
      [split; [by_intervals bits | exists most; split; [split; by_intervals bits | by_intervals bits]]
      | each_anchor others bits]
  | _ => exact I
  end.

(* The sums over a list of anchors, written out. *)
Ltac write_out anchors :=
  unfold anchors;
  cbv [head_error errors anchor_error shifted present large apart portion wide relative over total keys_of
       slope_of offset_of value_of length seq map nth fst snd fold_right unit_of least_of].

(* What sums and divisions lose, for so many anchors. *)
Ltac shares_of anchors number whole :=
  unfold shares_hold, mass_error, growth, lost, little, unit_of, least_of, count;
  change (length (keys_of anchors)) with number; rewrite ?INR_IZR_INZ; change (Z.of_nat number) with whole;
  cbn [Nat.sub Nat.add]; write_out anchors; repeat split; interval with (i_prec 150).
