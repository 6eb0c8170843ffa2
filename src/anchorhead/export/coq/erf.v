(* erf by its integral; on each of a few intervals it is close to a polynomial. *)
Definition gauss (t : R) : R := RInt (fun u => exp (- u ^ 2)) 0 t.
Definition erf (x : R) : R := 2 / sqrt PI * gauss x.
Definition erfc (x : R) : R := 1 - erf x.

Lemma gauss_derive : forall t, is_derive gauss t (exp (- t ^ 2)).
Proof.
  intros t. unfold gauss.
  assert (continuous_everywhere : forall u, continuous (fun u => exp (- u ^ 2)) u).
  { intros u. apply (ex_derive_continuous (fun u => exp (- u ^ 2))). auto_derive. exact I. }
  apply (is_derive_RInt (fun u => exp (- u ^ 2)) _ 0).
  - exists (mkposreal 1 Rlt_0_1). intros y _.
    apply (RInt_correct (V := R_CompleteNormedModule)), (ex_RInt_continuous (V := R_CompleteNormedModule)).
    intros u _. apply continuous_everywhere.
  - apply continuous_everywhere.
Qed.

Lemma gauss_0 : gauss 0 = 0.
Proof. unfold gauss. apply (RInt_point (V := R_CompleteNormedModule)). Qed.

Lemma gauss_odd : forall t, gauss t = - gauss (- t).
Proof.
  intros t. pose (sum := fun t => gauss t + gauss (- t)).
  assert (derived : forall u, is_derive sum u 0).
  { intros u. evar_last.
    - apply (is_derive_plus (V := R_NormedModule)); [apply gauss_derive|].
      apply (is_derive_comp gauss (fun v => - v) u); [apply gauss_derive|]. auto_derive; [exact I|reflexivity].
    - replace (exp (- (- u) ^ 2)) with (exp (- u ^ 2)) by (f_equal; ring).
      unfold plus, scal. simpl. unfold mult. simpl. ring. }
  assert (still : sum t = sum 0).
  { destruct (MVT_gen sum 0 t (fun _ => 0)) as [between [_ step]].
    - intros u _. apply derived.
    - intros u _. apply continuity_pt_filterlim, (ex_derive_continuous sum). eexists. apply derived.
    - lra. }
  unfold sum in still. rewrite Ropp_0, gauss_0 in still. lra.
Qed.

Fixpoint horner (coefficients : list R) (t : R) : R :=
  match coefficients with nil => 0 | c :: others => c + t * horner others t end.

Fixpoint horner_slope (coefficients : list R) (t : R) : R :=
  match coefficients with nil => 0 | c :: others => horner others t + t * horner_slope others t end.

Lemma horner_derive : forall coefficients middle t,
  is_derive (fun t => horner coefficients (t - middle)) t (horner_slope coefficients (t - middle)).
Proof.
  induction coefficients as [|c others IH]; intros middle t; simpl.
  - apply (is_derive_const (V := R_NormedModule)).
  - evar_last.
    + apply (is_derive_plus (V := R_NormedModule) (fun _ => c) (fun t => (t - middle) * horner others (t - middle))).
      * apply (is_derive_const (V := R_NormedModule)).
      * apply (is_derive_mult (fun t => t - middle) (fun t => horner others (t - middle)) t 1).
        -- auto_derive; [exact I|ring].
        -- apply IH.
        -- intros. apply Rmult_comm.
    + simpl. unfold plus, mult, zero. simpl. ring.
Qed.

(* The mean value theorem: what holds at one point, and of the slopes, holds nearby. *)
Lemma gauss_near : forall coefficients middle low high at_ error slope,
  low <= at_ <= high ->
  Rabs (gauss at_ - horner coefficients (at_ - middle)) <= error ->
  (forall t, low <= t <= high -> Rabs (exp (- t ^ 2) - horner_slope coefficients (t - middle)) <= slope) ->
  forall t, low <= t <= high -> Rabs (gauss t - horner coefficients (t - middle)) <= error + slope * (high - low).
Proof.
  intros coefficients middle low high at_ error slope inside here slopes t range.
  set (difference := fun t => gauss t - horner coefficients (t - middle)).
  assert (derived : forall u, is_derive difference u (exp (- u ^ 2) - horner_slope coefficients (u - middle))).
  { intros u. apply (is_derive_minus (V := R_NormedModule)); [apply gauss_derive|apply horner_derive]. }
  destruct (MVT_gen difference at_ t (fun u => exp (- u ^ 2) - horner_slope coefficients (u - middle)))
    as [between [place step]].
  - intros u _. apply derived.
  - intros u _. apply continuity_pt_filterlim. apply (ex_derive_continuous difference).
    eexists. apply derived.
  - assert (low <= between <= high).
    { revert place. unfold Rmin, Rmax. destruct (Rle_dec at_ t); lra. }
    assert (small : Rabs (difference t - difference at_) <= slope * (high - low)).
    { rewrite step, Rabs_mult. apply Rmult_le_compat; try apply Rabs_pos; [now apply slopes|].
      apply Rabs_le. lra. }
    change (Rabs (difference t) <= error + slope * (high - low)).
    change (Rabs (difference at_) <= error) in here.
    replace (difference t) with (difference at_ + (difference t - difference at_)) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. apply Rplus_le_compat; assumption.
Qed.

Lemma split_off : forall a b : R, a = b + (a - b).
Proof. intros. ring. Qed.

(* What is close to a polynomial becomes the polynomial and a variable that is as small as is known. *)
Ltac split_off close :=
  match type of close with
  | Rabs (?exact - ?polynomial) <= _ =>
      rewrite (split_off exact polynomial); revert close; generalize (exact - polynomial); intros ? close
  end.

Ltac by_polynomial near u x :=
  let close := fresh "close" in
  pose proof (near u ltac:(split; interval with (i_bisect x, i_prec 60))) as close; split_off close.
