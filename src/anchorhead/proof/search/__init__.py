"""Searches for the largest error: they find what proofs must not exclude."""
