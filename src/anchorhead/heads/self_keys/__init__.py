"""Heads in which the token's own key stands beside the registers, and gated pairs."""
