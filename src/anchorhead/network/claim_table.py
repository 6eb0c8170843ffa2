"""The claims that a derivation names: which softmaxes compute which entry of the program together, and in which units.

Some softmaxes of one token are parts of a unit, in an order. Of the number t that the first of them asks with,

    sum of what they read = alpha f(scale t + shift) + beta,

where f is the function of an entry (step, token, feature) of the program in the form of which the network is built, an
Apply. A verifier reads these rows, and proves them: it searches for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from anchorhead.errors import AnchorheadError
from anchorhead.read_only import ReadOnly, read_only

WIDTHS = {"units": 5, "numbers": 5, "softmaxes": 4, "values": 0}


@dataclass(frozen=True, eq=False)
class ClaimTable(ReadOnly):
    """units       layer, counted without the Embed and as often as it runs; the token that reads, -1: every one; step,
                token (-1: the one that reads) and feature of the entry
    numbers     scale, shift, alpha, beta, and about how far the unit is off. scale 0: the unit is a group of logits,
                each of which is a sum of its own, and t is the argument of f itself
    softmaxes   unit; head, or group; column of the head's values, 0 of a group; a row of `values`, or -1
    values      values of which those of a group in every output are multiples, filled up with zeros
    """

    units: Int[np.ndarray, "units 5"]
    numbers: Float[np.ndarray, "units 5"]
    softmaxes: Int[np.ndarray, "softmaxes 4"]
    values: Float[np.ndarray, "rows keys"]

    def __post_init__(self) -> None:
        for name, width in WIDTHS.items():
            array = read_only(getattr(self, name))
            if array.ndim != 2 or width not in (0, array.shape[1]) or not np.isfinite(array).all():
                raise AnchorheadError(f"the {name} of a table of claims have shape {array.shape}, or are not finite")
            object.__setattr__(self, name, array)

    @classmethod
    def empty(cls) -> ClaimTable:
        """Nothing is claimed of any softmax."""
        whole = {name: np.int64 if name in ("units", "softmaxes") else np.float64 for name in WIDTHS}
        return cls(**{name: np.zeros((0, width), whole[name]) for name, width in WIDTHS.items()})

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """As files hold them."""
        return {f"claims.{name}": getattr(self, name) for name in WIDTHS}
