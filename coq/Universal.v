(** Two attention layers approximate any continuous sequence-to-sequence function on a compact box.

    A sequence is n tokens with d features, [X i j]. Layer 1 gathers: head i asks with the query 1 against keys
    [C onehot_i(position)], so that every token holds all of X, up to [exp (- C)]. Layer 2: token i
    asks with what it holds, 1, and its position; keys are points V of a fine net of the box, one for each owner of
    an output,

        2 beta <G, V> - beta |V|^2 + B [i = owner],

    and softmax selects points near X. Values are F at these points. Scores are linear in the features of the token that asks. *)

From Coq Require Import Reals Lra Lia.
From Anchorhead Require Import Softmax Sums Lattice Slices Select.
Open Scope R_scope.

(** ** The two layers. *)

Definition gather (n : nat) (C : R) (X : nat -> nat -> R) (i j : nat) : R :=
  attention n (fun k => C * is i k) (fun k => X k j).

(** Feature e of the gathered sequence: token e / d, its feature e mod d. *)
Definition flat (d : nat) (X : nat -> nat -> R) (e : nat) : R := X (e / d)%nat (e mod d)%nat.

Record second_layer := {
  keys : nat;
  point : nat -> nat -> R;
  owner : nat -> nat;
  carries : nat -> nat -> R;
  sharpness : R;
  belonging : R
}.

Definition layer_score (N : nat) (l : second_layer) (g : nat -> R) (i k : nat) : R :=
  total N (fun e => g e * (2 * sharpness l * point l k e))
  + 1 * (- sharpness l * total N (fun e => point l k e ^ 2))
  + belonging l * is i (owner l k).

Definition respond (N : nat) (l : second_layer) (g : nat -> R) (i o : nat) : R :=
  attention (keys l) (layer_score N l g i) (fun k => carries l k o).

Definition two_layers (n d : nat) (C : R) (l : second_layer) (X : nat -> nat -> R) (i o : nat) : R :=
  respond (n * d) l (flat d (gather n C X)) i o.

(** ** Continuity. *)

Definition in_box (n d : nat) (lo hi : R) (X : nat -> nat -> R) : Prop :=
  forall i j, (i < n)%nat -> (j < d)%nat -> lo <= X i j <= hi.

Definition within (n d : nat) (eta : R) (X Y : nat -> nat -> R) : Prop :=
  forall i j, (i < n)%nat -> (j < d)%nat -> Rabs (X i j - Y i j) <= eta.

Definition uniformly_continuous (n d d' : nat) (lo hi : R) (F : (nat -> nat -> R) -> nat -> nat -> R) : Prop :=
  forall eps, 0 < eps -> exists eta, 0 < eta /\
  forall X Y, in_box n d lo hi X -> in_box n d lo hi Y -> within n d eta X Y -> within n d' eps (F X) (F Y).

(** ** Layer 1. *)

Lemma gather_in_box n d lo hi C X : in_box n d lo hi X -> in_box n d lo hi (gather n C X).
Proof. intros H i j Hi Hj; apply attention_between; [lia|intros; now apply H]. Qed.

Lemma gather_near n d lo hi C X : lo <= hi -> in_box n d lo hi X ->
  within n d ((hi - lo) * (INR n * exp (- C))) (gather n C X) X.
Proof.
  intros Hl H i j Hi Hj.
  eapply Rle_trans; [apply (selection n _ _ (X i j) 0 (hi - lo) C i); try lra; try lia|lra].
  - intros k Hk; pose proof (H k j Hk Hj); pose proof (H i j Hi Hj); apply Rabs_le; lra.
  - intros k Hk; unfold is; rewrite Nat.eqb_refl; destruct (Nat.eqb_spec i k) as [->|].
    + left; rewrite Rminus_diag_eq, Rabs_R0 by reflexivity; lra.
    + right; lra.
Qed.

(** ** Layer 2. *)

Definition distance2 (N : nat) (x y : nat -> R) : R := total N (fun e => (x e - y e) ^ 2).

(** Scores are squared distances, but for what all keys share. *)
Lemma score_is_distance N l g i k :
  layer_score N l g i k
  = sharpness l * total N (fun e => g e ^ 2)
    + (- sharpness l * distance2 N g (point l k) + belonging l * is i (owner l k)).
Proof.
  unfold layer_score, distance2.
  rewrite (total_ext N (fun e => g e * (2 * sharpness l * point l k e))
             (fun e => sharpness l * (g e ^ 2 + (point l k e ^ 2 + -1 * (g e - point l k e) ^ 2))))
    by (intros; ring).
  rewrite total_scale, !total_plus, total_scale; ring.
Qed.

Lemma distance2_below N x y h : (forall e, (e < N)%nat -> Rabs (x e - y e) <= h) -> distance2 N x y <= INR N * h ^ 2.
Proof.
  intros H; unfold distance2; rewrite <- total_const; apply total_le; intros e He.
  rewrite <- (pow2_abs (x e - y e)); apply pow_incr; split; [apply Rabs_pos|now apply H].
Qed.

Lemma distance2_near N x y eta e : 0 <= eta -> distance2 N x y <= eta ^ 2 -> (e < N)%nat -> Rabs (x e - y e) <= eta.
Proof.
  intros He H HN.
  assert (T : (x e - y e) ^ 2 <= eta ^ 2).
  { apply Rle_trans with (2 := H); unfold distance2.
    apply (term_le_total N (fun e => (x e - y e) ^ 2)); [intros; apply pow2_ge_0|exact HN]. }
  rewrite <- (Rabs_pos_eq eta) by exact He; apply Rsqr_le_abs_0; unfold Rsqr; lra.
Qed.

Definition unflat (d : nat) (v : nat -> R) (i j : nat) : R := v (i * d + j)%nat.

Lemma flat_at d X i j : (j < d)%nat -> flat d X (i * d + j)%nat = X i j.
Proof.
  intros Hj; unfold flat; f_equal.
  - rewrite Nat.div_add_l by lia; rewrite Nat.div_small; lia.
  - rewrite Nat.add_comm, Nat.mod_add by lia; apply Nat.mod_small; lia.
Qed.

Lemma flat_index n d e : (e < n * d)%nat -> (e / d < n)%nat /\ (e mod d < d)%nat.
Proof.
  intros He; assert (d <> 0)%nat by lia; split; [|now apply Nat.mod_upper_bound].
  apply Nat.div_lt_upper_bound; lia.
Qed.

(** Layer 2 on its own, on the exact sequence. *)
Theorem second_layer_exists n d d' lo hi F eps :
  lo <= hi -> uniformly_continuous n d d' lo hi F -> 0 < eps ->
  exists l, forall X, in_box n d lo hi X -> within n d' eps (respond (n * d) l (flat d X)) (F X).
Proof.
  intros Hl HF He.
  destruct (HF (eps / 4) ltac:(lra)) as [eta [Heta Hcont]].
  set (N := (n * d)%nat); set (h := eta / (2 * (INR N + 1))).
  pose proof (pos_INR N) as PN.
  assert (Hh : 0 < h) by (unfold h; apply Rdiv_lt_0_compat; lra).
  assert (Hh1 : h <= eta).
  { unfold h; apply (Rmult_le_reg_r (2 * (INR N + 1))); [lra|].
    unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra. nra. }
  assert (Hh2 : INR N * h ^ 2 <= eta ^ 2 / 2).
  { assert (E : eta = 2 * (INR N + 1) * h) by (unfold h; field; lra).
    rewrite E. assert (0 < h ^ 2) by nra. nra. }
  destruct (net_of_box N lo hi h Hl Hh) as [P [V [HV Hnet]]].
  (* the largest value that a key carries *)
  set (A := total P (fun v => total n (fun i => total d' (fun o => Rabs (F (unflat d (V v)) i o))))).
  assert (HA : forall v i o, (v < P)%nat -> (i < n)%nat -> (o < d')%nat -> Rabs (F (unflat d (V v)) i o) <= A).
  { intros v i o Hv Hi Ho.
    eapply Rle_trans; [apply (term_le_total d' (fun o => Rabs (F (unflat d (V v)) i o)) o);
      [intros; apply Rabs_pos|exact Ho]|].
    eapply Rle_trans; [apply (term_le_total n (fun i => total d' (fun o => Rabs (F (unflat d (V v)) i o))) i);
      [intros; apply total_nonneg; intros; apply Rabs_pos|exact Hi]|].
    apply (term_le_total P (fun v => total n (fun i => total d' (fun o => Rabs (F (unflat d (V v)) i o)))) v);
      [intros; do 2 (apply total_nonneg; intros); apply Rabs_pos|exact Hv]. }
  assert (PA : 0 <= A) by (unfold A; do 3 (apply total_nonneg; intros); apply Rabs_pos).
  set (M := 2 * A + eps / 4).
  set (K := (P * n)%nat).
  set (leak := M * INR K); assert (PL : 0 <= leak) by (apply Rmult_le_pos; [unfold M; lra|apply pos_INR]).
  (* [beta eta^2 / 2] is sharp enough *)
  set (L := leak / (eps / 4)).
  assert (PL0 : 0 <= L) by (apply Rmult_le_pos; [exact PL|apply Rlt_le, Rinv_0_lt_compat; lra]).
  set (beta := L * 2 / eta ^ 2).
  assert (Hb : beta * eta ^ 2 = 2 * L) by (unfold beta; field; lra).
  assert (Pb : 0 <= beta) by (unfold beta; apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat; nra]).
  exists {| keys := K; point := fun k => V (k / n)%nat; owner := fun k => (k mod n)%nat;
            carries := fun k o => F (unflat d (V (k / n)%nat)) (k mod n)%nat o;
            sharpness := beta; belonging := 2 * L |}.
  intros X HX i o Hi Ho; unfold respond; cbn [keys carries].
  assert (BX : forall e, (e < N)%nat -> lo <= flat d X e <= hi).
  { intros e HeN; destruct (flat_index n d e HeN); now apply HX. }
  assert (BV : forall v, in_box n d lo hi (unflat d (V v))) by (intros v i' j' _ _; apply HV).
  destruct (Hnet (flat d X) BX) as [v [Hv Hvx]].
  assert (Near : forall v', (forall e, (e < N)%nat -> Rabs (flat d X e - V v' e) <= eta) ->
                 Rabs (F (unflat d (V v')) i o - F X i o) <= eps / 4).
  { intros v' H'; apply Hcont; [apply BV|exact HX| |exact Hi|exact Ho].
    intros i' j' Hi' Hj'; unfold unflat. rewrite <- (flat_at d X i' j' Hj'), Rabs_minus_sym. apply H'; unfold N; nia. }
  assert (FX : Rabs (F X i o) <= A + eps / 4).
  { pose proof (Near v ltac:(intros; apply Rle_trans with (2 := Hh1); now apply Hvx)) as H1.
    pose proof (HA v i o Hv Hi Ho) as H2. rewrite Rabs_minus_sym in H1.
    replace (F X i o) with ((F X i o - F (unflat d (V v)) i o) + F (unflat d (V v)) i o) by ring.
    eapply Rle_trans; [apply Rabs_triang|lra]. }
  assert (Hn : (0 < n)%nat) by lia.
  set (common := beta * total N (fun e => flat d X e ^ 2)).
  match goal with |- context [layer_score _ ?l' _ _] => set (l := l') end.
  assert (Best : common + L <= layer_score N l (flat d X) i (v * n + i)%nat).
  { rewrite score_is_distance; unfold l; cbn [sharpness belonging owner point]; fold N.
    replace ((v * n + i) / n)%nat with v by (rewrite Nat.div_add_l, Nat.div_small by lia; lia).
    replace ((v * n + i) mod n)%nat with i by (rewrite Nat.add_comm, Nat.mod_add, Nat.mod_small by lia; reflexivity).
    unfold is; rewrite Nat.eqb_refl.
    assert (D2 : distance2 N (flat d X) (V v) <= eta ^ 2 / 2)
      by (eapply Rle_trans; [apply distance2_below, Hvx|exact Hh2]).
    assert (beta * distance2 N (flat d X) (V v) <= beta * (eta ^ 2 / 2)) by (apply Rmult_le_compat_l; lra).
    unfold common; lra. }
  apply Rle_trans with (eps / 4 + M * (INR K * exp (- L))).
  - apply (selection K _ _ (F X i o) (eps / 4) M L (v * n + i)); try lra; try (unfold M; lra); try (unfold K; nia).
    + intros k Hk.
      pose proof (HA (k / n)%nat (k mod n)%nat o ltac:(apply Nat.div_lt_upper_bound; unfold K in Hk; lia)
                     ltac:(apply Nat.mod_upper_bound; lia) Ho) as H1.
      unfold Rminus; eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp; unfold M; lra.
    + intros k Hk.
      destruct (Rle_or_lt (distance2 N (flat d X) (V (k / n)%nat)) (eta ^ 2)) as [Hd|Hd];
        [destruct (Nat.eq_dec (k mod n)%nat i) as [Ho'|Ho']|].
      * left; rewrite Ho'; apply Near; intros e HeN; apply (distance2_near N (flat d X) (V (k / n)%nat)); lra || assumption.
      * right; apply Rle_trans with common; [|lra]. rewrite score_is_distance; unfold l; cbn [sharpness belonging owner point]; fold N.
        unfold is; destruct (Nat.eqb_spec i (k mod n)%nat); [lia|].
        assert (0 <= beta * distance2 N (flat d X) (V (k / n)%nat)).
        { apply Rmult_le_pos; [exact Pb|apply total_nonneg; intros; apply pow2_ge_0]. }
        unfold common; lra.
      * right; apply Rle_trans with common; [|lra]. rewrite score_is_distance; unfold l; cbn [sharpness belonging owner point]; fold N.
        assert (beta * eta ^ 2 <= beta * distance2 N (flat d X) (V (k / n)%nat)) by (apply Rmult_le_compat_l; lra).
        unfold is; destruct (Nat.eqb_spec i (k mod n)%nat); unfold common; lra.
  - replace (M * (INR K * exp (- L))) with (leak * exp (- L)) by (unfold leak; ring).
    pose proof (sharp_enough leak (eps / 4) PL ltac:(lra)) as S; fold L in S. lra.
Qed.

(** ** Both layers. *)

Theorem two_layers_uniform n d d' lo hi F eps :
  lo <= hi -> uniformly_continuous n d d' lo hi F -> 0 < eps ->
  exists C l, forall X, in_box n d lo hi X -> within n d' eps (two_layers n d C l X) (F X).
Proof.
  intros Hl HF He.
  destruct (second_layer_exists n d d' lo hi F (eps / 2) Hl HF ltac:(lra)) as [l Hlayer].
  destruct (HF (eps / 2) ltac:(lra)) as [eta [Heta Hcont]].
  assert (PA : 0 <= (hi - lo) * INR n) by (apply Rmult_le_pos; [lra|apply pos_INR]).
  exists ((hi - lo) * INR n / eta), l; intros X HX i o Hi Ho.
  set (C := (hi - lo) * INR n / eta); set (G := gather n C X).
  assert (HG : in_box n d lo hi G) by now apply gather_in_box.
  assert (Close : within n d eta G X).
  { intros i' j' Hi' Hj'; eapply Rle_trans; [apply (gather_near n d lo hi C X Hl HX); assumption|].
    rewrite <- Rmult_assoc; apply (sharp_enough ((hi - lo) * INR n) eta PA Heta). }
  pose proof (Hlayer G HG i o Hi Ho) as H1; pose proof (Hcont G X HG HX Close i o Hi Ho) as H2.
  unfold two_layers; fold G.
  replace (respond (n * d) l (flat d G) i o - F X i o)
    with ((respond (n * d) l (flat d G) i o - F G i o) + (F G i o - F X i o)) by ring.
  eapply Rle_trans; [apply Rabs_triang|lra].
Qed.

