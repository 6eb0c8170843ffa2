"""In from other worlds: what exists elsewhere becomes an attention-only network."""

from anchorhead.convert.convert import convert
from anchorhead.convert.maxout import Maxout
from anchorhead.convert.plan import plan
from anchorhead.targets.kernel_smoother import KernelSmoother

__all__ = ["KernelSmoother", "Maxout", "convert", "plan"]
