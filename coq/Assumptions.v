(** What the main theorems rest on. Compiling this file prints it. (One walk through the proofs for each group: it takes
    a few seconds.) *)

From Anchorhead Require Import Anchorhead StoredRelu.

(** The paper's theorems: nothing but the axioms of the real numbers (ClassicalDedekindReals, classic, functional
    extensionality). *)
Definition by_real_numbers_alone := 
  (single_head_theorem, single_head_outputs, multi_head_theorem, two_layers_theorem,
   universal_approximation, attention_then_softmax).
Print Assumptions by_real_numbers_alone.

(** Where [interval] computed: Coq's machine integers (PrimInt63, Uint63), too. *)
Definition with_machine_integers :=
  (kink, two_kinks, gated_line, relu_three_keys, truncated_four_keys, leaky_six_keys, abs_six_keys, stored_relu,
   single_head_sharp, single_head_064, single_head_063, multi_head_sharp, multi_head_one_cell,
   centred_multi_head_sharp, centred_multi_head_one_cell, relu_network_theorem).
Print Assumptions with_machine_integers.
