"""The signed average: softmax over copies of either sign reads a gradient.

    q(h) = (mean a_i sinh(h g_i)) / (mean cosh(h g_i)),    logits h g_i and -h g_i, values a_i and -a_i

Lemma. With G = max |g_i|, rho = h G < 1/2 and means over the examples,

    q(h)/h = g + c_1 h^2 + c_2 h^4 + R,    g = mean a g,    |R| <= M rho^6 / (1 - rho^2),    M = 2.6 sup |mean a s g|
    c_1 = mean(a g^3)/6 - g m_2/2,
    c_2 = mean(a g^5)/120 - mean(a g^3) m_2/12 - g m_4/24 + g m_2^2/4,    m_k = mean g^k, sup over |s_i| <= 1.

Proof. N(t) = mean a g S(t g^2) with S(x) = sinh(sqrt x)/sqrt x, and D(t) = mean cosh(sqrt t g) are entire in t =
h^2. For |t| G^2 <= 1, |S| <= sinh 1 and |D| >= 2 - cosh 1, so N/D is analytic there and at most M, sinh(1)/(2 - cosh
1) < 2.6. Its Taylor coefficients are at most M G^(2k) (Cauchy); from the third on they add up to R. The first come
from division.

A layer adds sum_a o_a q(h_a) to w, which is -rate g up to |K_0 + rate||g| + |K_1||c_1| + |K_2||c_2| + sum |o_a| h_a
|R_a|, K_m = sum_a o_a h_a^(2m+1). All lengths are Euclidean. For every phi (n numbers), |mean a phi| <= sqrt(L)
rms(phi), L the largest eigenvalue of mean a a', and |mean a phi| <= max|a| mean|phi|.

*Rounding.* Computed weights are those of the softmax of z + lambda, |lambda_i| <= Lambda, for which (see
rounding.py)

    |r~ - r| <= e^Lambda (e^Lambda - 1) sum_k w_k |v_k - r|,    w_k <= e^(2 rho)/(2n),

entry by entry, so its length is at most that factor times (e^(2 rho) S + |r|), S the length of (mean |a_j|)_j. Other
tokens weigh exactly 0 and change no sum: what is left are sums of 2n terms.

*Where logits carry g only up to e_i*, say g' + c_i and -(g' - c_i) with |g' - g| <= e and |c| <= e, q(h) has g' in
the place of g, and factors exp(h c_i) of both sums: |mean a (g' - g)| is added, and e^(2 h e) - 1 of mean |a sinh(h
g')| and of |q|.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anchorhead.verify.learners.score import VANISHED
from anchorhead.verify.rounding import SLACK, Arithmetic, softmax_log_error

CAUCHY = 2.6
LARGEST_RHO = 0.5
MANY = 1_000
"""The length of a vector of a million entries of 1, more than any w here has."""


@dataclass(frozen=True)
class Moments:
    """Bounds on what a step averages, at the w where it begins; lengths are Euclidean.

    pull, pull3, pull5   |mean a s g|, |mean a s g^3|, |mean a s g^5| for all |s_i| <= 1
    m2, m4, most         mean g^2, mean g^4, max |g|
    spread, entry        |(mean |a_j|)_j|, and the largest |a_ij|
    pushes               |(mean |a_j g|)_j|
    terms                max_i of the absolute values that a logit over h sums up
    wrong, wrong_pull    where logits carry g up to e: max e, and |mean a s e| for all |s_i| <= 1; g above is then what
                         they carry
    weight               a bound on the sum of |w_j|, and on the entries of rows
    examples             how many at most
    """

    pull: float
    pull3: float
    pull5: float
    m2: float
    m4: float
    most: float
    spread: float
    entry: float
    pushes: float
    terms: float
    weight: float
    examples: int
    wrong: float = 0.0
    wrong_pull: float = 0.0


def box_moments(
    eigenvalue: float, length: float, entry: float, size: int, rms: float, most: float, terms: float, weight: float,
    examples: int, wrong: float = 0.0,
) -> Moments:  # fmt: skip
    """For every prompt with |a_i| <= length, mean a a' <= eigenvalue, rms(g) <= rms and |g_i| <= most.

    mean |a_j phi| <= sqrt(mean a_j^2) rms(phi), so these are of the length sqrt(tr mean a a') rms(phi) at most, the
    trace being a mean of |a_i|^2, and a sum of as many eigenvalues as there are features."""
    root = min(length, eigenvalue**0.5)
    pull3, pull5 = (min(length * most ** (k - 2) * rms**2, root * most ** (k - 1) * rms) * SLACK for k in (3, 5))
    spread = min(length, (size * eigenvalue) ** 0.5) * SLACK
    m2 = rms**2 * SLACK
    return Moments(
        root * rms * SLACK, pull3, pull5, m2, m2 * most**2 * SLACK, most, spread, entry, spread * rms * SLACK, terms,
        weight, examples, wrong, root * wrong * SLACK,
    )  # fmt: skip


def prompt_moments(
    A: np.ndarray, eigenvalue: float, g: np.ndarray, terms: float, weight: float, wrong: np.ndarray
) -> Moments:
    """For one prompt, of which |g_i| <= g_i, known up to wrong_i."""
    size, n, each = np.abs(A), len(A), (g, g**3, g**5, wrong)
    spread, *lengths = (float(np.linalg.norm(size.T @ one)) / n * SLACK for one in (np.ones(n), *each))
    squares = [math.sqrt(eigenvalue * float((one**2).mean())) * SLACK for one in each]
    pull, pull3, pull5, off = map(min, lengths, squares)
    m2, m4 = (float((g**k).mean()) * SLACK for k in (2, 4))
    return Moments(
        pull, pull3, pull5, m2, m4, float(g.max()), spread, float(size.max()), lengths[0], terms, weight, n,
        float(wrong.max()), off,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Average:
    """Heads that read a signed average: sharpness h_a, o_a by which they write it, how many products a logit sums."""

    sharpness: tuple[float, ...]
    outputs: tuple[float, ...]
    terms: int

    def powers(self) -> list[Fraction]:
        """K_0, K_1, K_2."""
        pairs = list(zip(map(Fraction, self.outputs), map(Fraction, self.sharpness), strict=True))
        return [sum((o * h ** (2 * m + 1) for o, h in pairs), Fraction(0)) for m in range(3)]

    def error(self, rate: float, at: Moments, model: Arithmetic) -> tuple[float, float, float]:
        """Lengths: of sum_a o_a q(h_a) + rate g in exact arithmetic; of what rounding, and e, change in what is written
        (the sums of the heads not yet rounded); and of sum_a |o_a q~(h_a)|."""
        k0, k1, k2 = self.powers()
        if not max(self.sharpness) * at.most < LARGEST_RHO:
            return np.inf, np.inf, np.inf
        c1 = at.pull3 / 6 + at.pull * at.m2 / 2
        c2 = at.pull5 / 120 + at.pull3 * at.m2 / 12 + at.pull * (at.m4 / 24 + at.m2**2 / 4)
        method = float(abs(k0 + Fraction(rate))) * at.pull + float(abs(k1)) * c1 + float(abs(k2)) * c2
        method += rate * at.wrong_pull
        rounding = size = 0.0
        for h, o in zip(self.sharpness, self.outputs, strict=True):
            rho = h * at.most
            rest = CAUCHY * at.pull * rho**6 / (1 - rho**2)
            read = h * (at.pull + h**2 * c1 + h**4 * c2 + rest)
            wrong = self._rounding(h, rho, read, at, model)
            method += abs(o) * h * rest
            rounding += abs(o) * wrong
            size += abs(o) * (read + wrong)
        return method * SLACK, rounding * SLACK, size * SLACK

    def _rounding(self, h: float, rho: float, read: float, at: Moments, model: Arithmetic) -> float:
        """The length of what a head reads wrongly; e moves weights by factors of up to e^(2 h e)."""
        vanished = 2 * (self.terms + 2) * VANISHED * model.tiny * (1 + h) * (1 + at.weight)
        logits = float(model.gamma(self.terms)) * h * at.terms + vanished
        if not h * at.wrong < 0.05:
            return np.inf
        uneven = float(np.expm1(2 * h * at.wrong)) * (1.1 * h * at.pull + read)  # sinh x <= 1.1 x up to 1/2
        spread = float(np.exp(2 * rho + 2 * h * at.wrong)) * at.spread
        return uneven + rounding_of_mean(2 * at.examples, logits, 2 * rho, spread, read + uneven, at.entry, model)


def rounding_of_mean(
    count: int, logits: float, gap: float, spread: float, read: float, entry: float, model: Arithmetic
) -> float:
    """The length of what rounding changes in what a softmax over so many keys reads: see the top of this file.

    logits, gap   how far logits may be off, and apart      entry   the largest value
    spread        the length of sum_k w_k |v_k|             read    that of what is read
    """
    moved = float(softmax_log_error(np.array([logits]), np.array([gap]), model)[0])
    if not moved < 0.1:
        return np.inf
    up = float(np.exp(2 * moved))
    shifted = up * moved * (spread + read)
    gamma = float(model.gamma(count + 1)), float(model.gamma(count - 1))
    summed = (gamma[0] * up * spread + gamma[1] * (read + shifted)) / (1 - float(model.gamma(count)))
    return (shifted + summed + MANY * 8 * count * model.tiny * (entry + 1)) * SLACK


@dataclass(frozen=True, eq=False)
class Mean:
    """A plain mean of what n tokens hold, times `output`: all logits are exactly 0, and weights 1/n up to rounding. The
    values are pushes a_i g_i, and the length of their mean |a_i g_i| is `pushes`. Every entry of a push rounds on its
    own, so that g_i is off by up to e in each, with a sign of its own: their mean by e mean |a_j|, of length e
    `spread`."""

    output: float
    count: int

    def error(self, rate: float, at: Moments, model: Arithmetic) -> tuple[float, float, float]:
        """As that of an Average."""
        method = float(abs(Fraction(self.output) + Fraction(rate))) * at.pull + rate * at.spread * at.wrong
        rounding = rounding_of_mean(self.count, 0.0, 0.0, at.pushes, at.pushes, at.entry * at.most, model)
        return method * SLACK, abs(self.output) * rounding * SLACK, abs(self.output) * (at.pushes + rounding) * SLACK
