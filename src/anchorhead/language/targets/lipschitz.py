"""What a user vouches for about a function of several inputs: how fast it may change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from anchorhead.decimals import UP
from anchorhead.errors import AnchorheadError
from anchorhead.given import numbers, shown


@dataclass(frozen=True)
class Lipschitz:
    """In every output |f(x) - f(y)| <= L |x - y|_2, or, with a number for each input, sum_j L_j |x_j - y_j|.

    constants   (L,) or (L_1, …, L_d)      inputs   d
    """

    constants: tuple[float, ...]
    inputs: int

    @classmethod
    def of(cls, given: Any, inputs: int) -> Lipschitz:
        found = numbers(given)
        fits = found is not None and not isinstance(given, bool) and (found.ndim == 0 or found.shape == (inputs,))
        if found is None or not fits or not np.isfinite(found).all() or (found < 0).any():
            raise AnchorheadError(
                f"lipschitz={shown(given)}: give one number L with |f(x) - f(y)| <= L |x - y| (Euclidean), or one for "
                f"each of the {inputs} inputs, L_j with |f(x) - f(y)| <= sum of L_j |x_j - y_j|; finite, 0 or more"
            )
        return cls(tuple(found.reshape(-1).tolist()), inputs)

    @property
    def euclidean(self) -> bool:
        return len(self.constants) == 1 and self.inputs > 1

    @property
    def along(self) -> Float[np.ndarray, " d"]:
        """How fast f may change along each axis."""
        return np.broadcast_to(np.array(self.constants), (self.inputs,))

    def apart(self, step: Float[np.ndarray, "... d"]) -> Float[np.ndarray, "..."]:
        """How much f may change over a step, or within a box of these half widths from its middle; not rounded down."""
        if self.euclidean:
            return np.asarray(self.constants[0] * np.sqrt((np.square(step)).sum(axis=-1)) * UP)
        return np.asarray((np.abs(step) * self.along).sum(axis=-1) * UP)

    def mean(self, first: Float[np.ndarray, " d"], second: Float[np.ndarray, " d"]) -> float:
        """A bound on E|f(a) - f(x)| from E|a_j - x_j| <= first_j and E(a_j - x_j)^2 <= second_j: E|a - x|_2 is at most
        the root of E|a - x|_2^2."""
        if self.euclidean:
            return float(self.constants[0] * min(np.sqrt(second.sum()), first.sum()) * UP)
        return float((self.along * first).sum() * UP)

    def contradicted(self, x: Float[np.ndarray, " d"], y: Float[np.ndarray, " d"], gap: float) -> AnchorheadError:
        """The refusal of a constant, with two points that show it wrong."""
        return AnchorheadError(
            f"the function changes by {gap:.6g} from {x.tolist()} to {y.tolist()}, and lipschitz= allows "
            f"{float(self.apart(y - x)):.6g} ({self}): give a larger constant"
        )

    def __str__(self) -> str:
        shown = ", ".join(f"{constant:.6g}" for constant in self.constants)
        if self.euclidean:
            return f"|f(x) - f(y)| <= {shown} |x - y|_2"
        return f"|f(x) - f(y)| <= sum of L_j |x_j - y_j|, L = ({shown})"
