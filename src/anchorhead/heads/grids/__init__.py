"""Heads over tensor grids of anchors, for functions of a few variables."""
