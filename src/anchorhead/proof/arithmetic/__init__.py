"""The arithmetic that proofs allow for: rounding, silence, room, and what is known of features."""
