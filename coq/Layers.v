(** The two layers of Universal.v as attention heads in the usual sense: query, key and value are linear maps of the
    features of tokens, scores are dot products.

    Tokens of the first layer carry their own features, their position as a one-hot vector, and 1. Tokens of the second
    carry what the heads of the first gathered, 1 and their position; what they attend to are constant register tokens. *)

From Coq Require Import Reals Lra Lia.
From Anchorhead Require Import Softmax Sums SingleHead Slices Select Universal Heine.
Open Scope R_scope.

Definition linear (D : nat) (A : nat -> nat -> R) (x : nat -> R) (e : nat) : R := dot D (A e) x.

(** One output feature of one head: [x] asks, [p] tokens answer; D features a token, E a query and a key. *)
Definition attention_head (D E p : nat) (Q K : nat -> nat -> R) (V : nat -> R)
    (x : nat -> R) (tokens : nat -> nat -> R) : R :=
  attention p (fun k => dot E (linear D Q x) (linear D K (tokens k))) (fun k => dot D V (tokens k)).

Lemma dot_one_hot D j c x : (j < D)%nat -> dot D (fun f => c * is j f) x = c * x j.
Proof.
  intros Hj; unfold dot; replace D with (j + (1 + (D - 1 - j)))%nat by lia.
  rewrite !total_app; simpl (total 1 _); rewrite Nat.add_0_r.
  rewrite (total_ext j _ (fun _ => 0)).
  2: { intros f Hf; unfold is; destruct (Nat.eqb_spec j f); [lia|ring]. }
  rewrite (total_ext (D - 1 - j) _ (fun _ => 0)).
  2: { intros f Hf; unfold is; destruct (Nat.eqb_spec j (j + (1 + f))); [lia|ring]. }
  rewrite !total_zero; unfold is; rewrite Nat.eqb_refl; ring.
Qed.

(** ** Layer 1. *)

(** Features 0, ..., d - 1 are the token's own, d, ..., d + n - 1 its position, the last is 1. *)
Definition embedded (n d : nat) (X : nat -> nat -> R) (k f : nat) : R :=
  if Nat.ltb f d then X k f else if Nat.ltb f (d + n) then is (f - d) k else 1.

Definition ask_one (n d : nat) (_ f : nat) : R := 1 * is (d + n) f.
Definition answer_position (d i : nat) (C : R) (_ f : nat) : R := C * is (d + i) f.
Definition carry_feature (j f : nat) : R := 1 * is j f.

(** The head that reads feature j of token i, at any token k. *)
Definition gather_head (n d : nat) (C : R) (X : nat -> nat -> R) (k i j : nat) : R :=
  attention_head (d + n + 1) 1 n (ask_one n d) (answer_position d i C) (carry_feature j)
    (embedded n d X k) (embedded n d X).

Theorem gather_is_attention n d C X k i j : (i < n)%nat -> (j < d)%nat ->
  gather_head n d C X k i j = gather n C X i j.
Proof.
  intros Hi Hj; unfold gather_head, attention_head, gather; apply attention_ext; intros k' Hk'.
  - unfold dot at 1; simpl (total 1 _); unfold linear, ask_one, answer_position.
    rewrite !dot_one_hot by lia; unfold embedded.
    destruct (Nat.ltb_spec (d + n) d); [lia|]. destruct (Nat.ltb_spec (d + n) (d + n)); [lia|].
    destruct (Nat.ltb_spec (d + i) d); [lia|]. destruct (Nat.ltb_spec (d + i) (d + n)); [|lia].
    replace (d + i - d)%nat with i by lia; ring.
  - unfold carry_feature; rewrite dot_one_hot by lia; unfold embedded.
    destruct (Nat.ltb_spec j d); [ring|lia].
Qed.

(** ** Layer 2. *)

(** Features 0, ..., N - 1 are what was gathered, then 1, then the position; the rest, where registers carry values, is 0. *)
Definition asking (N n : nat) (g : nat -> R) (i f : nat) : R :=
  if Nat.ltb f N then g f else if Nat.ltb f (N + 1) then 1 else if Nat.ltb f (N + 1 + n) then is (f - (N + 1)) i else 0.

Definition register (N n : nat) (l : second_layer) (k f : nat) : R :=
  if Nat.ltb f N then 2 * sharpness l * point l k f
  else if Nat.ltb f (N + 1) then - sharpness l * total N (fun e => point l k e ^ 2)
  else if Nat.ltb f (N + 1 + n) then belonging l * is (f - (N + 1)) (owner l k)
  else carries l k (f - (N + 1 + n)).

Definition same (e f : nat) : R := 1 * is e f.

Definition respond_head (N n d' : nat) (l : second_layer) (g : nat -> R) (i o : nat) : R :=
  attention_head (N + 1 + n + d') (N + 1 + n) (keys l) same same (same (N + 1 + n + o))
    (asking N n g i) (register N n l).

Lemma score_is_dot N n l g i k : (i < n)%nat ->
  dot (N + 1 + n) (register N n l k) (asking N n g i) = layer_score N l g i k.
Proof.
  intros Hi; unfold dot; rewrite !total_app; simpl (total 1 _); rewrite Nat.add_0_r; unfold layer_score.
  rewrite (total_ext N (fun f => register N n l k f * asking N n g i f)
             (fun e => g e * (2 * sharpness l * point l k e))).
  2: { intros f Hf; unfold asking, register; destruct (Nat.ltb_spec f N); [ring|lia]. }
  f_equal; [f_equal|].
  - unfold asking, register; destruct (Nat.ltb_spec N N); [lia|].
    destruct (Nat.ltb_spec N (N + 1)); [ring|lia].
  - rewrite (total_ext n _ (fun f => belonging l * is i f * is (owner l k) f)).
    + change (dot n (fun f => belonging l * is i f) (is (owner l k)) = belonging l * is i (owner l k)).
      rewrite dot_one_hot by exact Hi; unfold is; rewrite Nat.eqb_sym; reflexivity.
    + intros f Hf; unfold asking, register.
      destruct (Nat.ltb_spec (N + 1 + f) N); [lia|]. destruct (Nat.ltb_spec (N + 1 + f) (N + 1)); [lia|].
      destruct (Nat.ltb_spec (N + 1 + f) (N + 1 + n)); [|lia].
      replace (N + 1 + f - (N + 1))%nat with f by lia.
      unfold is; rewrite (Nat.eqb_sym f i), (Nat.eqb_sym f (owner l k)); ring.
Qed.

Theorem respond_is_attention N n d' l g i o : (i < n)%nat -> (o < d')%nat ->
  respond_head N n d' l g i o = respond N l g i o.
Proof.
  intros Hi Ho; unfold respond_head, attention_head, respond; apply attention_ext; intros k Hk.
  - rewrite <- (score_is_dot N n) by exact Hi; unfold dot at 1.
    apply (total_ext (N + 1 + n) _ (fun f => register N n l k f * asking N n g i f)); intros f Hf; unfold linear, same; rewrite !dot_one_hot by lia; ring.
  - unfold same; rewrite dot_one_hot by lia; unfold register.
    destruct (Nat.ltb_spec (N + 1 + n + o) N); [lia|].
    destruct (Nat.ltb_spec (N + 1 + n + o) (N + 1)); [lia|].
    destruct (Nat.ltb_spec (N + 1 + n + o) (N + 1 + n)); [lia|].
    replace (N + 1 + n + o - (N + 1 + n))%nat with o by lia; ring.
Qed.

(** ** Both. *)

(** Output feature o of token i of the network. *)
Definition network (n d d' : nat) (C : R) (l : second_layer) (X : nat -> nat -> R) (i o : nat) : R :=
  respond_head (n * d) n d' l (fun e => gather_head n d C X i (e / d) (e mod d)) i o.

Lemma respond_ext N l g g' i o : (forall e, (e < N)%nat -> g e = g' e) -> respond N l g i o = respond N l g' i o.
Proof.
  intros H; unfold respond; apply attention_ext; [|reflexivity].
  intros k _; unfold layer_score; do 2 f_equal; apply total_ext; intros e He; now rewrite H.
Qed.

(** Two layers of softmax attention, with linear maps only, approximate every continuous sequence-to-sequence
    function on a box, as closely as one likes. *)
Theorem universal_approximation n d d' lo hi F eps :
  lo <= hi -> continuous_on n d d' lo hi F -> 0 < eps ->
  exists (C : R) (l : second_layer),
  forall X, in_box n d lo hi X -> forall i o, (i < n)%nat -> (o < d')%nat ->
  Rabs (network n d d' C l X i o - F X i o) <= eps.
Proof.
  intros Hl HF He; destruct (two_layers_theorem n d d' lo hi F eps Hl HF He) as [C [l H]].
  exists C, l; intros X HX i o Hi Ho.
  unfold network; rewrite respond_is_attention by assumption.
  rewrite (respond_ext _ _ _ (flat d (gather n C X))); [now apply H|].
  intros e HeN; destruct (flat_index n d e HeN); unfold flat; now apply gather_is_attention.
Qed.

(** ** One attention layer and a softmax. *)

(** A linear map, a softmax over its K results, and a linear map of that. *)
Definition softmax_layer (D K : nat) (A : nat -> nat -> R) (v : nat -> R) (x : nat -> R) : R :=
  attention K (linear D A x) v.

(** Registers are constants, so the second layer is one. *)
Theorem attention_then_softmax n d d' lo hi F eps :
  lo <= hi -> continuous_on n d d' lo hi F -> 0 < eps ->
  exists (C : R) (K : nat) (A v : nat -> nat -> R),
  forall X, in_box n d lo hi X -> forall i o, (i < n)%nat -> (o < d')%nat ->
  let gathered := fun e => gather_head n d C X i (e / d) (e mod d) in
  Rabs (softmax_layer (n * d + 1 + n) K A (v o) (asking (n * d) n gathered i) - F X i o) <= eps.
Proof.
  intros Hl HF He; destruct (two_layers_theorem n d d' lo hi F eps Hl HF He) as [C [l H]].
  exists C, (keys l), (register (n * d) n l), (fun o k => carries l k o).
  intros X HX i o Hi Ho gathered.
  assert (E : softmax_layer (n * d + 1 + n) (keys l) (register (n * d) n l) (fun k => carries l k o)
                (asking (n * d) n gathered i) = respond (n * d) l gathered i o).
  { unfold softmax_layer, respond; apply attention_ext; [|reflexivity].
    intros k _; unfold linear; now apply score_is_dot. }
  rewrite E, (respond_ext _ _ _ (flat d (gather n C X))); [now apply H|].
  intros e HeN; destruct (flat_index n d e HeN); unfold flat, gathered; now apply gather_is_attention.
Qed.
