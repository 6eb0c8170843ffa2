"""The paper's experiments, with the weights that its proofs construct; and the frontier of solved heads."""

from anchorhead.lab.converted import Looseness, TaskRow, looseness, paper_task
from anchorhead.lab.frontier import frontier
from anchorhead.lab.heat_maps import heat_maps
from anchorhead.lab.sweeps import fitted_rate, multi_head_sweep, single_head_sweep

__all__ = [
    "Looseness",
    "TaskRow",
    "fitted_rate",
    "frontier",
    "heat_maps",
    "looseness",
    "multi_head_sweep",
    "paper_task",
    "single_head_sweep",
]
