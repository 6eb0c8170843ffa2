"""Sums of activations whose heads err relatively: what is known of sum_r c_or a_r + d_o.

Neuron r has the pre-activation s_r; computed, s^_r, it is wrong by at most rho_r. Its heads err by at most
B max(1, |s^_r|), phi has the Lipschitz constant L, and |phi(s)| <= M max(1, |s|). So an output is wrong by at most the
sum of

    heads     B sum_r |c_or| max(1, |s^_r|)
    queries   L sum_r |c_or| rho_r
    output    gamma_n (sum_r |c_or| |what is read for r| + |d_o|), n terms

where the first sum is at most what each neuron's own range says, and at most |c_o|_2 (n + |s^|_2^2)^(1/2): no input
drives all neurons to the end of their ranges at once.

Gated, the neuron is phi(g_r) u_r, and its heads err by at most B max(1, |g^_r|) |u_r|:

    heads     B sum_r |c_or| max(1, |g^_r|) |u_r|
    queries   sum_r |c_or| (L rho(g_r) |u_r| + what u's own error adds)

and the first sum is also at most max_r |c_or| (n + |g^|_2^2)^(1/2) |u|_2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from jaxtyping import Float

from anchorhead.proof.arithmetic.affine_forms import Forms, Sources
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic

Vector = Float[np.ndarray, " neurons"]


@dataclass(frozen=True)
class Steepness:
    """What is known of the heads and of phi: B, L and M above."""

    heads: float
    lipschitz: float
    growth: float


@dataclass(frozen=True, eq=False)
class Numbers:
    """A number for each neuron, as computed: |s^_r| <= magnitude_r, |s^_r - s_r| <= error_r, |s^|_2 <= length."""

    magnitude: Vector
    error: Vector
    length: float

    @classmethod
    def of(cls, forms: Forms, sources: Sources, error: Vector | None = None) -> Numbers:
        """The features of one token, off by `error` from what is meant; by their own, where nothing else is said."""
        own = forms.error[0] if error is None else error
        return cls(forms.size(sources)[0] * UP, own, sources.length(forms))


@dataclass(frozen=True, eq=False)
class Together:
    """Numbers of at least 0, at most `each`, whose sum (order 1) or 2-norm (order 2) is at most `whole`."""

    each: Vector
    whole: float
    order: Literal[1, 2]

    def times(self, factor: float) -> Together:
        return replace(self, each=factor * self.each, whole=factor * self.whole)

    def weighed(self, size: Float[np.ndarray, "outputs neurons"]) -> Float[np.ndarray, " outputs"]:
        """A bound on the sum of these, each times a weight of such a size."""
        dual = size.max(axis=1) if self.order == 1 else np.linalg.norm(size, axis=1)
        return np.minimum(size @ self.each, dual * self.whole) * UP


@dataclass(frozen=True, eq=False)
class Activations:
    """What is known of neurons whose readings are added up.

    off     how far heads are from phi of what they are asked
    moved   what errors of that, and of the values that are carried, add
    reads   bounds on |what is read|, for each of the terms that a neuron is in a sum
    """

    off: Together
    moved: Vector
    reads: tuple[Together, ...]

    def rounding(
        self,
        size: Float[np.ndarray, "outputs neurons"],
        others: Float[np.ndarray, " outputs"] | float,
        terms: Float[np.ndarray, " outputs"] | float,
        arithmetic: Arithmetic,
    ) -> Float[np.ndarray, " outputs"]:
        """What sums round by, in any order, with `terms` others of such a size beside the neurons."""
        count = len(self.reads) * size.shape[1] + terms
        reach = sum((read.weighed(size) for read in self.reads), others)
        # products, and weights that may become 0
        lost = 4 * arithmetic.tiny * (count + sum(float(read.each.sum()) for read in self.reads))
        return (arithmetic.gamma(count) * reach + lost) * UP


def scale_of(s: Numbers, u: Numbers | None = None) -> Together:
    """max(1, |s^_r|), or, gated, max(1, |s^_r|) |u_r|."""
    most, together = np.maximum(s.magnitude, 1.0), (len(s.magnitude) + s.length**2) ** 0.5 * UP
    if u is None:
        return Together(most, together, 2)
    return Together(most * u.magnitude, together * u.length, 1)


def evaluated(s: Numbers, phi: Steepness) -> Activations:
    """Activations that are computed first and added up then: |a_r| <= (M + B) max(1, |s^_r|)."""
    scale = scale_of(s)
    return Activations(scale.times(phi.heads), phi.lipschitz * s.error, (scale.times(phi.growth + phi.heads),))


def evaluated_gated(g: Numbers, u: Numbers, phi: Steepness, underflow: float) -> Activations:
    """The same of phi(g^_r) u^_r; products with a tiny u may lose `underflow` besides."""
    scale, most = scale_of(g, u), np.maximum(g.magnitude, 1.0)
    moved = phi.lipschitz * g.error * u.magnitude + phi.growth * most * u.error + underflow
    return Activations(scale.times(phi.heads), moved, (scale.times(phi.growth + phi.heads),))
