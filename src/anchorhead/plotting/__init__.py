"""Pictures of networks and experiments."""

from anchorhead.plotting.frontier import Frontier, FrontierRow
from anchorhead.plotting.heat_maps import HeatMap, HeatMaps
from anchorhead.plotting.picture import plot
from anchorhead.plotting.sweep import Row, Sweep, Theorem

__all__ = ["Frontier", "FrontierRow", "HeatMap", "HeatMaps", "Row", "Sweep", "Theorem", "plot"]
