"""Expressions: the tree, its text, its values, its derivatives and its enclosures."""
