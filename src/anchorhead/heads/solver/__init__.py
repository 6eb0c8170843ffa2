"""The solver: the fewest anchors for a function of one variable."""
