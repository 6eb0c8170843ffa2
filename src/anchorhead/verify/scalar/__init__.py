"""Heads on one number: softmaxes whose logits are affine in it, compared with a function on cells."""
