(** The library: steep heads for exported files, and the paper's theorems. *)

From Anchorhead Require Export Softmax Steep Kinks Truncated.
From Anchorhead Require Export Sums Lattice Tails SingleHead FourAnchors Sharpness.
From Anchorhead Require Export Slices Dummies Outputs FarHeads MultiHead MultiHeadTheorem.
From Anchorhead Require Export Select Universal Heine Layers ReluNetworks.
