(** A function that is continuous at every point of a box is uniformly continuous there (Heine), and so two
    attention layers approximate every continuous sequence-to-sequence function on a box.

    One coordinate after the other: what holds near a point in the coordinates from k on, whatever those before are,
    holds in those from k + 1 on, because an interval is compact. *)

From Coq Require Import Reals Lra Lia.
From Anchorhead Require Import Softmax Sums Lattice Slices Select Universal.
Open Scope R_scope.

(** ** Compactness of an interval, as induction along it. *)

Lemma along_interval (good : R -> R -> Prop) lo hi :
  lo <= hi ->
  (forall x, lo <= x <= hi -> exists d, 0 < d /\ forall u v, x - d <= u -> u <= v -> v <= x + d -> good u v) ->
  (forall u v w, good u v -> good v w -> good u w) ->
  good lo hi.
Proof.
  intros Hl Hlocal Hjoin.
  set (E y := lo <= y <= hi /\ good lo y).
  assert (Elo : E lo).
  { split; [lra|]. destruct (Hlocal lo ltac:(lra)) as [d [Hd H]]; apply H; lra. }
  destruct (completeness E) as [z [Hup Hleast]].
  - exists hi; intros y [Hy _]; lra.
  - now exists lo.
  - assert (Hz : lo <= z <= hi).
    { split; [now apply Hup|apply Hleast; intros y [Hy _]; lra]. }
    destruct (Hlocal z Hz) as [d [Hd H]].
    assert (exists y, E y /\ z - d < y) as [y [[Hy Gy] Hyz]].
    { apply Classical_Prop.NNPP; intros N. assert (z <= z - d); [|lra].
      apply Hleast; intros y Ey. apply Rnot_lt_le; intros C; apply N; exists y; split; [exact Ey|lra]. }
    assert (y <= z) by (apply Hup; split; assumption).
    assert (G : forall v, z <= v -> v <= z + d -> good lo v).
    { intros v Hv1 Hv2; apply (Hjoin lo y v Gy); apply H; lra. }
    destruct (Rle_or_lt hi (z + d)) as [C|C]; [apply G; lra|].
    assert (z + d <= z); [|lra]. apply Hup; split; [lra|apply G; lra].
Qed.

(** ** Heine. *)

Definition continuous_on (n d d' : nat) (lo hi : R) (F : (nat -> nat -> R) -> nat -> nat -> R) : Prop :=
  forall X, in_box n d lo hi X -> forall eps, 0 < eps -> exists eta, 0 < eta /\
  forall Y, in_box n d lo hi Y -> within n d eta Y X -> within n d' eps (F Y) (F X).

Section Heine.

Variables (n d d' : nat) (lo hi eps : R) (F : (nat -> nat -> R) -> nat -> nat -> R).
Hypothesis lo_hi : lo <= hi.
Hypothesis eps_pos : 0 < eps.
Hypothesis F_continuous : continuous_on n d d' lo hi F.

Let N := (n * d)%nat.

Definition tame (eta : R) (X : nat -> nat -> R) : Prop :=
  forall Y, in_box n d lo hi Y -> within n d eta X Y -> within n d' eps (F X) (F Y).

(** Near [p] in the coordinates from k on, F varies by less than eps. *)
Definition tame_near (k : nat) (p : nat -> R) (eta : R) : Prop :=
  forall X, in_box n d lo hi X ->
  (forall e, (k <= e)%nat -> (e < N)%nat -> Rabs (flat d X e - p e) <= eta) -> tame eta X.

Definition stage (k : nat) : Prop :=
  forall p, (forall e, lo <= p e <= hi) -> exists eta, 0 < eta /\ tame_near k p eta.

Lemma tame_smaller eta eta' X : eta' <= eta -> tame eta X -> tame eta' X.
Proof.
  intros H HX Y HY W; apply HX; [exact HY|].
  intros i j Hi Hj; apply Rle_trans with eta'; [now apply W|exact H].
Qed.

Lemma stage_first : stage 0.
Proof.
  intros p Hp.
  assert (Bp : in_box n d lo hi (unflat d p)) by (intros i j _ _; apply Hp).
  destruct (F_continuous _ Bp (eps / 2) ltac:(lra)) as [eta [Heta H]].
  exists (eta / 2); split; [lra|]. intros X HX Hnear Y HY W.
  assert (WX : within n d (eta / 2) X (unflat d p)).
  { intros i j Hi Hj; unfold unflat; rewrite <- (flat_at d X i j Hj); apply Hnear; [lia|unfold N; nia]. }
  assert (WX' : within n d eta X (unflat d p)).
  { intros i j Hi Hj; pose proof (WX i j Hi Hj); lra. }
  assert (WY : within n d eta Y (unflat d p)).
  { intros i j Hi Hj. pose proof (WX i j Hi Hj) as A; pose proof (W i j Hi Hj) as B.
    rewrite Rabs_minus_sym in B.
    replace (Y i j - unflat d p i j) with ((Y i j - X i j) + (X i j - unflat d p i j)) by ring.
    eapply Rle_trans; [apply Rabs_triang|lra]. }
  intros i o Hi Ho; pose proof (H X HX WX' i o Hi Ho) as A; pose proof (H Y HY WY i o Hi Ho) as B.
  rewrite Rabs_minus_sym in B.
  replace (F X i o - F Y i o) with ((F X i o - F (unflat d p) i o) + (F (unflat d p) i o - F Y i o)) by ring.
  eapply Rle_trans; [apply Rabs_triang|lra].
Qed.

Lemma stage_next k : (k < N)%nat -> stage k -> stage (S k).
Proof.
  intros Hk Hstage p Hp.
  set (good u v := exists eta, 0 < eta /\
    forall X, in_box n d lo hi X -> u <= flat d X k <= v ->
    (forall e, (S k <= e)%nat -> (e < N)%nat -> Rabs (flat d X e - p e) <= eta) -> tame eta X).
  assert (G : good lo hi).
  { apply along_interval; [exact lo_hi| |].
    - intros x Hx.
      set (px e := if Nat.eqb e k then x else p e).
      assert (Hpx : forall e, lo <= px e <= hi).
      { intros e; unfold px; destruct (Nat.eqb e k); [exact Hx|apply Hp]. }
      destruct (Hstage px Hpx) as [eta [Heta H]].
      exists eta; split; [exact Heta|]. intros u v Hu Huv Hv; exists eta; split; [exact Heta|].
      intros X HX Hxk Hrest; apply H; [exact HX|].
      intros e He HeN; unfold px; destruct (Nat.eqb_spec e k) as [->|]; [apply Rabs_le; lra|apply Hrest; lia].
    - intros u v w [e1 [H1 G1]] [e2 [H2 G2]].
      exists (Rmin e1 e2); split; [now apply Rmin_glb_lt|].
      intros X HX Hxk Hrest.
      pose proof (Rmin_l e1 e2); pose proof (Rmin_r e1 e2).
      destruct (Rle_or_lt (flat d X k) v) as [Hv|Hv].
      + apply tame_smaller with e1; [lra|]. apply G1; [exact HX|lra|].
        intros e He HeN; apply Rle_trans with (Rmin e1 e2); [now apply Hrest|lra].
      + apply tame_smaller with e2; [lra|]. apply G2; [exact HX|lra|].
        intros e He HeN; apply Rle_trans with (Rmin e1 e2); [now apply Hrest|lra]. }
  destruct G as [eta [Heta H]]; exists eta; split; [exact Heta|].
  intros X HX Hrest; apply H; [exact HX| |exact Hrest].
  destruct (flat_index n d k Hk); now apply HX.
Qed.

Lemma stages k : (k <= N)%nat -> stage k.
Proof.
  induction k as [|k IH]; intros Hk; [exact stage_first|].
  apply stage_next; [lia|apply IH; lia].
Qed.

End Heine.

Theorem heine n d d' lo hi F :
  lo <= hi -> continuous_on n d d' lo hi F -> uniformly_continuous n d d' lo hi F.
Proof.
  intros Hl HF eps He.
  destruct (stages n d d' lo hi eps F Hl He HF (n * d) (le_n _) (fun _ => lo) ltac:(intros; lra)) as [eta [Heta H]].
  exists eta; split; [exact Heta|].
  intros X Y HX HY W; apply (H X HX); [intros; lia|exact HY|exact W].
Qed.

(** ** The theorem. *)

Theorem two_layers_theorem n d d' lo hi F eps :
  lo <= hi -> continuous_on n d d' lo hi F -> 0 < eps ->
  exists (C : R) (l : second_layer),
  forall X, in_box n d lo hi X -> within n d' eps (two_layers n d C l X) (F X).
Proof. intros Hl HF He; apply two_layers_uniform; [exact Hl|now apply heine|exact He]. Qed.
