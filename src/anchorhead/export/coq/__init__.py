"""Heads as theorems: files that Coq checks."""
