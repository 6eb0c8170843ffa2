"""Heads with a key of the own token: activations and gated pairs of attention-only models."""
