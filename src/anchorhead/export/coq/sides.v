(* The larger of two, or the smaller, where it is the same one on all of a piece. *)
Ltac which_side x := apply Rminus_le; interval with (i_bisect x, i_prec 80, i_depth 60).

Ltac decide_sides x :=
  repeat match goal with
  | |- context [Rmax ?a ?b] =>
      first [rewrite (Rmax_left a b) by which_side x | rewrite (Rmax_right a b) by which_side x]
  | |- context [Rmin ?a ?b] =>
      first [rewrite (Rmin_left a b) by which_side x | rewrite (Rmin_right a b) by which_side x]
  end.
