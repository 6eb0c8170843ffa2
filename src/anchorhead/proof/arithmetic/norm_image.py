"""What a normalisation can put out, and so what a linear map behind it can: bounds that hold for every input.

LayerNorm's output is z = scale * zhat + shift with mean(zhat) = 0 and |zhat|_2 <= sqrt(d), whatever comes in; RMSNorm's
has no shift and any mean. Its own rounding is allowed for: all that is assumed is (conditions.NormImage)

    z = scale * (p + e) + shift + r,    |p|_2 <= sqrt(d), p perpendicular to (1, ..., 1) if centred,
                                        |e|_2 <= slack sqrt(d),    |r_i| <= rounding (|scale_i| sqrt(d) + |shift_i|)

so that for a row w of a linear map, with a = w * scale and its part a' perpendicular to (1, ..., 1) (or a itself),

    |w.z + b - (w.shift + b)| <= sqrt(d) (|a'|_2 + slack |a|_2) + |w|.|r|,

and for all rows together |W z + b - (W shift + b)|_2 <= sqrt(d) (sigma(A') + slack sigma(A)) + the same of r, sigma the
largest singular value. No box of z says as much: it allows all entries to be at their ends at once.

The numbers here are float64 sums of at most 1e5 terms, wrong by less than 1e-10 of what they add up: bounds are
enlarged by ROOM of themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from anchorhead.conditions import NormImage
from anchorhead.proof.arithmetic.affine_forms import Diagonal, Forms, Sources, times
from anchorhead.proof.arithmetic.arithmetic import Arithmetic

ROOM = 1e-9


@dataclass(frozen=True, eq=False)
class NormSources(Sources):
    """Quantities that are what a norm puts out; low and high are the box around that."""

    scale: Float[np.ndarray, " sources"]
    shift: Float[np.ndarray, " sources"]
    wrong: Float[np.ndarray, " sources"]
    slack: float
    centred: bool

    @classmethod
    def of(cls, image: NormImage) -> NormSources:
        scale, shift = np.array(image.scale), np.array(image.shift)
        root = len(scale) ** 0.5
        wrong = image.rounding * (np.abs(scale) * root + np.abs(shift))
        reach = (np.abs(scale) * root * (1 + image.slack) + wrong) * (1 + ROOM)
        return cls(shift - reach, shift + reach, scale, shift, wrong, image.slack, image.norm == "LayerNorm")

    @property
    def middle(self) -> Float[np.ndarray, " sources"]:
        return self.shift

    @property
    def root(self) -> float:
        return len(self.scale) ** 0.5

    def given_error(self, cast: bool, arithmetic: Arithmetic) -> Float[np.ndarray, " sources"]:
        """A norm puts out numbers of the dtype: those below the smallest normal one may become 0."""
        return np.full(len(self.scale), arithmetic.tiny)

    def reach(self, coefficients: Float[np.ndarray, "*_ sources"]) -> Float[np.ndarray, "*_"]:
        absolute, scaled = np.abs(coefficients), coefficients * self.scale
        wide = np.linalg.norm(scaled, axis=-1)
        within = self.root * (np.linalg.norm(self._seen(scaled), axis=-1) + (self.slack + ROOM) * wide)
        within = (within + absolute @ self.wrong) * (1 + ROOM) + ROOM * self.sizes(absolute)
        return np.minimum(within, absolute @ self.radius)

    def sizes(self, amounts: Float[np.ndarray, "*_ sources"]) -> Float[np.ndarray, "*_"]:
        wide = np.linalg.norm(amounts * self.scale, axis=-1)
        together = self.root * (1 + self.slack) * wide + amounts @ (np.abs(self.shift) + self.wrong)
        return np.minimum(together * (1 + ROOM), amounts @ self.size)

    def products(
        self, absolute: Float[np.ndarray, "*tokens outputs inputs"], x: Forms | Diagonal
    ) -> Float[np.ndarray, "_ outputs"]:
        together = self.sizes(x.amounts(absolute)) + times(absolute, np.abs(x.constant) + x.error)
        return np.minimum(super().products(absolute, x), together * (1 + ROOM))

    def length(self, x: Forms) -> float:
        most = self.lengths([x.coefficients[0]], x.constant[0]) + float(np.linalg.norm(x.error))
        return min(most * (1 + ROOM), super().length(x))

    def lengths(self, rows: Iterable[Float[np.ndarray, "some sources"]], constant: Float[np.ndarray, " all"]) -> float:
        """A bound on |W z + constant|_2, from some rows of W after others."""
        d = len(self.scale)
        gram, centres, sizes, wrong, sums = np.zeros((d, d)), [], [np.abs(constant)], 0.0, 0.0
        for weight in rows:
            scaled = weight * self.scale
            seen = self._seen(scaled)
            gram += seen.T @ seen
            centres.append(weight @ self.shift)
            sizes.append(np.abs(weight) @ np.abs(self.shift))
            wrong += float(np.square(np.abs(weight) @ self.wrong).sum())
            sums += float(np.square(scaled.sum(axis=1)).sum())
        spectral = largest_singular_value(gram)
        # A is A' and its mean along (1, ..., 1), which are perpendicular
        whole = (spectral**2 + sums / d) ** 0.5 if self.centred else spectral
        away = self.root * (spectral + (self.slack + ROOM) * whole) + wrong**0.5
        centre = np.linalg.norm(np.concatenate(centres) + constant) + ROOM * np.linalg.norm(np.concatenate(sizes))
        return float(centre + away) * (1 + ROOM)

    def _seen(self, scaled: Float[np.ndarray, "*_ sources"]) -> Float[np.ndarray, "*_ sources"]:
        return scaled - scaled.mean(axis=-1, keepdims=True) if self.centred else scaled


def largest_singular_value(gram: Float[np.ndarray, "d d"]) -> float:
    """A number that is not below the largest singular value of A, from its Gram matrix A'A.

    An estimate by power iteration is raised until lambda I - A'A has a Cholesky decomposition, which proves it positive
    semidefinite up to (d + 2) u of its trace (Rump): with room 1e-6 for that and for the rounding of A'A itself.
    """
    trace = float(np.trace(gram))
    if not trace > 0:
        return 0.0
    vector = np.ones(len(gram)) + np.arange(len(gram)) / len(gram)
    for _ in range(30):
        vector = gram @ (vector / np.linalg.norm(vector))
        if not float(np.linalg.norm(vector)) > 0:
            return trace**0.5 * (1 + ROOM)
    estimate = float(np.linalg.norm(vector))
    for above in (1.02, 1.1, 1.5, 2.5):
        if estimate * above < trace and _is_positive(estimate * above * np.eye(len(gram)) - gram):
            return (estimate * above * (1 + 1e-6)) ** 0.5
    return trace**0.5 * (1 + 1e-6)


def _is_positive(matrix: Float[np.ndarray, "d d"]) -> bool:
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True
