"""Enclosures and suprema of functions of one variable: balls, ellipses, cells."""
