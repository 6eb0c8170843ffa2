"""Signed pair average: heads whose keys are examples and their negatives read averages of what examples push.

A head of sharpness h reads, from examples x_i with residuals r_i and their negatives,

    q(h) = (mean x_i sinh(h r_i)) / (mean cosh(h r_j)) = h (g + c_1 h^2 + c_2 h^4 + ...),    g = mean r_i x_i

    c_1 = mean(x r^3)/6 - g mean(r^2)/2
    c_2 = mean(x r^5)/120 - mean(x r^3) mean(r^2)/12 - g mean(r^4)/24 + g mean(r^2)^2/4

Beyond: with t = h^2 and |h| max|r| <= 1, complex h allowed, |sum cosh| >= n (2 - cosh 1) and
|sinh(h r)/h| <= |r| sinh 1, so |q(h)/h| <= M = 2.6 mean|x r| and |c_k| <= M max|r|^(2k) by Cauchy's estimate. The layer
adds sum_a o_a q(h_a) to w, which should be -rate g. With k_m = sum_a o_a h_a^(2m+1) it errs by at most

    |k_0 + rate| |g| + |k_1| |c_1| + |k_2| |c_2| + sum_a |o_a| h_a M rho_a^6 / (1 - rho_a^2),    rho_a = h_a max|r| < 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from jaxtyping import Float

from anchorhead.errors import CertificateError
from anchorhead.heads.atom import Part
from anchorhead.language.targets.descent import Descent
from anchorhead.lemmas.learners.loop import StepError
from anchorhead.lemmas.learners.norms import length_of
from anchorhead.lemmas.learners.threshold import clip_error, largest_clipped
from anchorhead.lemmas.learners.update import Update
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic
from anchorhead.proof.arithmetic.rounding import exact_factor

Weights = Float[np.ndarray, " weights"]
Examples = Float[np.ndarray, " n"]
CAUCHY = 2.6
"""sinh(1) / (2 - cosh(1)) is 2.572."""
SHARES = ((1.0, 4 / 3), (2.0, -1 / 3))
"""Sharpnesses in units of h, and their weights: h^3 cancels."""
LEAST_SHARPNESS = 2.0**-100
"""Of less than this products may vanish."""


def sharpnesses(h: float) -> tuple[float, ...]:
    """Those of a layer's heads, h and 2h: powers of two, products with which are exact."""
    if not (h >= LEAST_SHARPNESS and exact_factor(h)):
        raise CertificateError(f"a sharpness of {h:g} is no power of two of at least {LEAST_SHARPNESS:g}")
    return tuple(h * times for times, _ in SHARES)


@dataclass(frozen=True)
class Moments:
    """Bounds on averages over the examples of a prompt, at the weights where a step begins.

    x, xr, xr3, xr5   mean |x_j|, mean |x_j||r|, mean |x_j||r|^3, mean |x_j||r|^5, for each entry of w
    r2, r4, most      mean r^2, mean r^4, max |r|
    terms             max_i |w|.|x_i| + |y_i|
    w, v              |w_j| and |v_j|
    examples          how many there are
    e, most_e         mean e, max e, where r itself is known to the heads only up to e
    xe                mean |x_j| e, for each entry of w
    """

    x: Weights
    xr: Weights
    xr3: Weights
    xr5: Weights
    r2: float
    r4: float
    most: float
    terms: float
    w: Weights
    v: Weights
    examples: int
    e: float
    most_e: float
    xe: Weights

    @classmethod
    def of(
        cls,
        size: Float[np.ndarray, "n weights"],
        r: Examples,
        w: Weights,
        v: Weights,
        terms: float | None,
        e: Examples,
    ) -> Moments:
        """Of a prompt with |x_ij| <= size_ij and |r_i| <= r_i; terms as above, or max |r|."""
        n, r2 = len(size), r * r
        means = [UP * (size.T @ power) / n for power in (np.ones(n), r, r * r2, r * r2 * r2)]
        most = UP * float(r.max())
        return cls(
            *means,
            r2=UP * float(r2.mean()),
            r4=UP * float((r2 * r2).mean()),
            most=most,
            terms=most if terms is None else UP * terms,
            w=w,
            v=v,
            examples=n,
            e=UP * float(e.mean()),
            most_e=UP * float(e.max()),
            xe=UP * (size.T @ e) / n,
        )

    @classmethod
    def in_box(
        cls, x: Weights, rms: float, most: float, terms: float, w: float, v: float, examples: int, wrong: float
    ) -> Moments:
        """Of every prompt with |x_ij| <= x_j, mean r^2 <= rms^2 and |r_i| <= most, known up to `wrong`."""
        rms, most = np.float64(rms), np.float64(most)  # whose powers become infinite where Python's raise
        return cls(
            x=x,
            xr=x * rms,
            xr3=x * most * rms**2,
            xr5=x * most**3 * rms**2,
            r2=rms**2,
            r4=most**2 * rms**2,
            most=most,
            terms=terms,
            w=np.full_like(x, w),
            v=np.full_like(x, v),
            examples=examples,
            e=wrong,
            most_e=wrong,
            xe=x * wrong,
        )


@dataclass(frozen=True)
class Average:
    """What a layer does to the state: numbers as they are stored.

    sharpness     h_a of each head, powers of two
    outputs       o_a, with which what is read is added to w (and to v)
    update        what is kept of w and v
    clip          the anchors of what the soft threshold takes off, if there is one
    """

    sharpness: tuple[float, ...]
    outputs: tuple[float, ...]
    update: Update
    clip: Part | None = None

    @classmethod
    def of(cls, target: Descent, sharpness: float, dtype: str, clip: Part | None = None) -> Average:
        """With sharpnesses h and 2h, and all else as the dtype stores it."""
        if bool(target.threshold) != (clip is not None):
            raise CertificateError("a descent with a threshold goes with a clip, and no other does")
        number, sharp = np.dtype(dtype).type, sharpnesses(sharpness)
        outputs = (float(number(-target.rate * share / h)) for h, (_, share) in zip(sharp, SHARES, strict=True))
        return cls(sharp, tuple(outputs), Update.of(target, dtype), clip)

    @cached_property
    def powers(self) -> tuple[Fraction, ...]:
        """k_0, k_1 and k_2."""
        heads = [(Fraction(o), Fraction(h)) for o, h in zip(self.outputs, self.sharpness, strict=True)]
        return tuple(sum((o * h**m for o, h in heads), Fraction(0)) for m in (1, 3, 5))

    def error(self, target: Descent, at: Moments, model: Arithmetic) -> StepError:
        """How far a step, as the dtype computes it, is at most from the exact one from the same w and v."""
        h, o = np.array(self.sharpness), np.array(self.outputs)
        rho = h * at.most
        if not (rho < 0.5).all():
            return StepError(np.inf, np.inf, np.inf)
        k0, k1, k2 = self.powers
        c1 = at.xr3 / 6 + at.xr * at.r2 / 2
        c2 = at.xr5 / 120 + at.xr3 * at.r2 / 12 + at.xr * (at.r4 / 24 + at.r2**2 / 4)
        tail = float((np.abs(o) * h * rho**6 / (1 - rho**2)).sum()) * CAUCHY * at.xr
        method = float(abs(k0 + Fraction(target.rate))) * at.xr + float(abs(k1)) * c1 + float(abs(k2)) * c2 + tail
        read = np.stack([_read_error(sharp, r, at, model) for sharp, r in zip(h, rho, strict=True)])
        size = h[:, None] * at.xr * np.exp(2 * rho)[:, None] * 1.1 + read
        added = (np.abs(o)[:, None] * size).sum(axis=0)
        rounding = (np.abs(o)[:, None] * read).sum(axis=0) + float(model.gamma(len(h) + 1)) * added
        wrong_w, wrong_v = self.update.wrong(target, at.w, at.v)
        sums_w, sums_v, size_of_w = self.update.summed(added, len(h), at.w, at.v, model)
        in_w, in_v = method + rounding + wrong_w + sums_w, method + rounding + wrong_v + sums_v
        # entries of the prompt, products and sums below the smallest normal number may become 0: up to so many of them
        # in each logit, times w, and in what is read, times x
        tiny = 100 * at.examples * model.tiny * (1 + at.x.max()) * (1 + float(np.abs(o).sum()))
        tiny = tiny * (len(at.x) + 2) * (1 + at.w.sum()) * (1 + at.x.sum())
        before = StepError(
            length_of(in_w + tiny), length_of(in_v + tiny) if target.momentum else 0.0, length_of(in_w - method + tiny)
        )
        return self._shrunk(before, target, size_of_w + in_w + tiny, model)

    def _shrunk(
        self, before: StepError, target: Descent, w: Float[np.ndarray, " weights"], model: Arithmetic
    ) -> StepError:
        """The errors once the soft threshold has been applied to a w of at most the given size."""
        if self.clip is None:
            return before
        if not w.max() <= largest_clipped(self.clip):
            return StepError(np.inf, np.inf, np.inf)
        error = clip_error(self.clip, target.rate, target.threshold)
        every, rounding = (length_of(one.after(w, target, model)) for one in (error, replace(error, exact=0.0)))
        return replace(before, of_weights=before.of_weights + every, rounding=before.rounding + rounding)


def _read_error(h: float, rho: float, at: Moments, model: Arithmetic) -> Float[np.ndarray, " weights"]:
    """The rounding of what one head reads, for each entry.

    All logits lie within rho of 0, so no weight is above exp(2 rho)/(2n), and mean |x_j| bounds what they weigh. Where
    r is known up to e, logits are wrong by h e beyond their rounding.
    """
    u, tokens = model.unit, 2 * at.examples + 1
    logit = float(model.gamma(len(at.x) + 2)) * h * (at.terms + at.most_e)
    moved = logit + u * (2 * rho + 2 * (logit + h * at.most_e)) + model.exp_error
    most = moved + h * at.most_e
    if not most < 0.1:
        return np.full_like(at.x, np.inf)
    size = np.exp(2 * rho + 2 * most) * at.x
    result = h * at.xr * np.exp(2 * rho) * 1.1
    weights = np.exp(2 * most) * moved * (size + result)
    weights = weights + np.exp(2 * most + 2 * rho) * h * (at.xe + at.e * result)
    sums = float(model.gamma(tokens + 1)) * size + float(model.gamma(tokens - 1)) * (result + weights)
    return (weights + sums / (1 - float(model.gamma(tokens)))) * UP
