"""In from other worlds: what exists elsewhere becomes an attention-only network."""

from anchorhead.convert.convert import convert
from anchorhead.convert.maxout import Maxout
from anchorhead.convert.plan import plan
from anchorhead.convert.sklearn_models import classes_of
from anchorhead.language.targets.kernel_smoother import KernelSmoother

__all__ = ["KernelSmoother", "Maxout", "classes_of", "convert", "plan"]
