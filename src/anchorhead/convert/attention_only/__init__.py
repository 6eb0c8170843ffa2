"""Transformers models without feed-forward layers: every feed-forward sublayer becomes attention heads."""
