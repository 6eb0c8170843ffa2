"""The keys of one softmax as free numbers: the logarithms of the slope steps, and the crossings.

With steps d_j = exp(l_j) and crossings m_j of neighbours j-1 and j, on the normalised domain x in [-1, 1]:

    z_k(x) = sum_{j<=k} d_j (x - m_j),   z_0 = 0,   w = softmax z,   r = sum_k w_k v_k
    dr/dl_j = C_j d_j (x - m_j),   dr/dm_j = -C_j d_j,   C_j = sum_{k>=j} w_k (v_k - r)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class Keys:
    """p - 1 log steps and p - 1 crossings, of one softmax or of many."""

    logs: Float[np.ndarray, "*many steps"]
    crossings: Float[np.ndarray, "*many steps"]

    @classmethod
    def of_vector(cls, theta: Float[np.ndarray, "*many keys"]) -> Keys:
        half = theta.shape[-1] // 2
        return cls(theta[..., :half], theta[..., half:])

    @classmethod
    def of_weights(cls, slopes: Float[np.ndarray, " p"], offsets: Float[np.ndarray, " p"]) -> Keys:
        steps = np.diff(slopes)
        return cls(np.log(steps), -np.diff(offsets) / steps)

    @property
    def vector(self) -> Float[np.ndarray, "*many keys"]:
        return np.concatenate([self.logs, self.crossings], axis=-1)

    @property
    def anchors(self) -> int:
        return self.logs.shape[-1] + 1

    @property
    def steps(self) -> Float[np.ndarray, "*many steps"]:
        return np.exp(self.logs)

    def weights(self, base: int = 0) -> tuple[Float[np.ndarray, " p"], Float[np.ndarray, " p"]]:
        """Slopes and offsets in the gauge in which the key `base` is (0, 0), exact for its neighbours."""
        steps = self.steps
        return _summed(steps, base), _summed(-steps * self.crossings, base)

    def mirrored(self) -> Keys:
        """The keys of r(-x)."""
        return Keys(self.logs[::-1], -self.crossings[::-1])

    def softmax(self, x: Float[np.ndarray, " n"]) -> Float[np.ndarray, "*many n p"]:
        """w, with the samples next to each other in memory: far quicker than rows of p."""
        lever = self._lever(x)
        z = np.zeros((*lever.shape[:-2], self.anchors, len(x)))
        np.cumsum(lever, axis=-2, out=z[..., 1:, :])
        z -= z.max(axis=-2, keepdims=True)
        w = np.exp(z, out=z)
        w /= w.sum(axis=-2, keepdims=True)
        return w.swapaxes(-1, -2)

    def jacobian(
        self, x: Float[np.ndarray, " n"], w: Float[np.ndarray, "*many n p"], values: Float[np.ndarray, "*many p m"]
    ) -> Float[np.ndarray, "*many n m keys"]:
        """dr / d(logs, crossings) with the values held."""
        result = (w @ values).swapaxes(-1, -2)[..., None, :, :]
        pull = w.swapaxes(-1, -2)[..., None, :] * (values[..., None] - result)
        tails = np.cumsum(pull[..., :0:-1, :, :], axis=-3)[..., ::-1, :, :]
        by_log, by_crossing = tails * self._lever(x)[..., None, :], tails * -self.steps[..., None, None]
        return np.concatenate([by_log, by_crossing], axis=-3).swapaxes(-1, -3)

    def _lever(self, x: Float[np.ndarray, " n"]) -> Float[np.ndarray, "*many steps n"]:
        """d_j (x - m_j)"""
        return self.steps[..., None] * (x - self.crossings[..., None])


def _summed(steps: np.ndarray, base: int) -> np.ndarray:
    return np.concatenate([-np.cumsum(steps[:base][::-1])[::-1], [0.0], np.cumsum(steps[base:])])
