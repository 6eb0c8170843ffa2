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
