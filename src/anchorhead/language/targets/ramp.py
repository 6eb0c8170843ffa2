"""Truncated linear functions, one a token: the targets of the paper's two head theorems."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Shaped

from anchorhead.decimals import counted
from anchorhead.errors import AnchorheadError


@dataclass(frozen=True, eq=False)
class TruncatedLinear:
    """f(X)_i = Range(s_i) e_g(s_i),   s_i = w_i . x_i + t_i,   Range(s) = min(max(s, low), high).

    The output feature g(s) is `features[j]` for s between `switches[j-1]` and `switches[j]`: the paper's map G, seen
    from the pre-activation. Without switches there is one output.
    """

    w: Float[np.ndarray, "tokens inputs"]
    t: Float[np.ndarray, " tokens"]
    low: float
    high: float
    switches: Float[np.ndarray, " switches"]
    features: Int[np.ndarray, " switches+1"]

    def __post_init__(self) -> None:
        w, t, switches, features = (np.asarray(a) for a in (self.w, self.t, self.switches, self.features))
        fits = w.ndim == 2 and t.shape == w.shape[:1] and features.shape == (switches.size + 1,) and switches.ndim == 1
        if not fits or features.dtype.kind not in "iu" or not self.low < self.high:
            raise AnchorheadError(
                f"a truncated linear target with w {w.shape}, t {t.shape}, [{self.low}, {self.high}], "
                f"{switches.shape} switches and features {features.shape}: needed are (tokens, inputs), (tokens,), "
                "low < high, and one feature more than switches"
            )
        if (np.diff(switches) <= 0).any() or features.min() < 0:
            raise AnchorheadError("the switches of a truncated linear target must ascend, its features be 0 or more")

    @property
    def outputs(self) -> int:
        return int(self.features.max()) + 1

    def pre_activations(self, x: Float[np.ndarray, "... tokens inputs"]) -> Shaped[np.ndarray, "... tokens"]:
        """s_i, in extended precision where the machine has it."""
        wide = np.longdouble
        return np.einsum("...nd,nd->...n", x.astype(wide), self.w.astype(wide)) + self.t.astype(wide)

    def values(self, x: Float[np.ndarray, "... tokens inputs"]) -> Shaped[np.ndarray, "... tokens outputs"]:
        """f(x), in extended precision where the machine has it."""
        s = self.pre_activations(x)
        feature = self.features[np.searchsorted(self.switches, s)]
        chosen = feature[..., None] == np.arange(self.outputs)
        return np.clip(s, self.low, self.high)[..., None] * chosen

    def __str__(self) -> str:
        tokens, inputs = self.w.shape
        where = f", in {self.outputs} output features" if self.outputs > 1 else ""
        functions = counted(tokens, "truncated linear function")
        return f"{functions} of {counted(inputs, 'input')}, cut at [{self.low:g}, {self.high:g}]{where}"
