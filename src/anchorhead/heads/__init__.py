"""The atom: softmax heads on a scalar. The solver, one placement a file, and what rounding does to them."""

from anchorhead.heads.atom import Atom, Dtype, Part
from anchorhead.heads.rounding_estimate import rounding
from anchorhead.heads.solver.measure import Estimate, estimate
from anchorhead.heads.solver.problem import Problem
from anchorhead.heads.solver.single import Solution
from anchorhead.heads.solver.solve import SAFETY, smallest
from anchorhead.heads.uniform import uniform

__all__ = [
    "SAFETY",
    "Atom",
    "Dtype",
    "Estimate",
    "Part",
    "Problem",
    "Solution",
    "estimate",
    "rounding",
    "smallest",
    "uniform",
]
