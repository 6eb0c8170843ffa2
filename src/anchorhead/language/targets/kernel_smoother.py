"""Kernel smoothers as targets: averages of responses with Gaussian weights, alias normalised radial basis networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped

from anchorhead.decimals import counted
from anchorhead.errors import AnchorheadError
from anchorhead.given import require_finite
from anchorhead.read_only import ReadOnly


@dataclass(frozen=True, eq=False)
class KernelSmoother(ReadOnly):
    """f(x) = sum_k a_k y_k g_k(x) / sum_k a_k g_k(x),   g_k(x) = exp(-sum_j (x_j - c_kj)^2 / (2 b_j^2)).

    centres     c (p, d): where the kernels stand
    responses   y (p, m): what is averaged; (p,) for one output
    bandwidth   b, a number above 0, or one for each feature (d,)
    amplitudes  a (p,), numbers above 0; none: 1 for all

    All in float64, meant exactly.
    """

    centres: Float[np.ndarray, "p d"]
    responses: Float[np.ndarray, "p m"]
    bandwidth: Float[np.ndarray, " d"]
    amplitudes: Float[np.ndarray, " p"] | None = None

    def __post_init__(self) -> None:
        centres, responses = _array(self.centres, "centres"), _array(self.responses, "responses")
        responses = responses[:, None] if responses.ndim == 1 else responses
        if centres.ndim != 2 or responses.ndim != 2 or len(centres) != len(responses) or not responses.size:
            raise AnchorheadError(
                f"a kernel smoother with centres {centres.shape} and responses {responses.shape}: needed are (p, d) "
                "and (p, m), as many of one as of the other"
            )
        bandwidth = _array(self.bandwidth, "bandwidth")
        if bandwidth.shape not in ((), (1,), centres.shape[1:]) or not (bandwidth > 0).all():
            raise AnchorheadError(
                f"bandwidth={self.bandwidth!r} of a kernel smoother: a number above 0, or one for each of the "
                f"{centres.shape[1]} features"
            )
        amplitudes = None if self.amplitudes is None else _array(self.amplitudes, "amplitudes")
        if amplitudes is not None and (amplitudes.shape != centres.shape[:1] or not (amplitudes > 0).all()):
            raise AnchorheadError(
                f"amplitudes of shape {amplitudes.shape} of a kernel smoother: a number above 0 for each of the "
                f"{len(centres)} centres (leave out centres that do not count)"
            )
        arrays = (centres, responses, np.broadcast_to(bandwidth, centres.shape[1:]).copy(), amplitudes)
        for name, array in zip(("centres", "responses", "bandwidth", "amplitudes"), arrays, strict=True):
            if array is not None:
                array.flags.writeable = False
            object.__setattr__(self, name, array)

    @property
    def anchors(self) -> int:
        return self.centres.shape[0]

    @property
    def inputs(self) -> int:
        return self.centres.shape[1]

    @property
    def outputs(self) -> int:
        return self.responses.shape[1]

    def values(self, x: Any) -> Shaped[np.ndarray, "... m"]:
        """f(x) for x (..., d), in extended precision where the machine has it."""
        wide = np.longdouble
        away = (np.asarray(x).astype(wide)[..., None, :] - self.centres.astype(wide)) / self.bandwidth.astype(wide)
        z = -(away**2).sum(axis=-1) / 2
        z = z if self.amplitudes is None else z + np.log(self.amplitudes.astype(wide))
        weights = np.exp(z - z.max(axis=-1, keepdims=True))
        return (weights / weights.sum(axis=-1, keepdims=True)) @ self.responses.astype(wide)

    def __str__(self) -> str:
        widths = np.unique(self.bandwidth)
        width = f"{widths[0]:g}" if len(widths) == 1 else f"{widths[0]:g} to {widths[-1]:g}"
        return (
            f"kernel smoother of {counted(self.anchors, 'centre')}, {self.inputs} -> {self.outputs}, bandwidth {width}"
        )


def _array(given: Any, name: str) -> np.ndarray:
    try:
        array = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise AnchorheadError(f"the {name} of a kernel smoother are not numbers: {error}") from error
    require_finite(array, f"the {name} of a kernel smoother have")
    return array
