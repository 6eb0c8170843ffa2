"""The proof for gradient descent on the squared loss by heads of two or more sharpnesses (incontext.squared).

A head of sharpness h reads, from examples x_i with residuals r_i and their negatives,

    q(h) = (mean x_i sinh(h r_i)) / (mean cosh(h r_j)) = h (g + c_1 h^2 + c_2 h^4 + ...),    g = mean r_i x_i

    c_1 = mean(x r^3)/6 - g mean(r^2)/2
    c_2 = mean(x r^5)/120 - mean(x r^3) mean(r^2)/12 - g mean(r^4)/24 + g mean(r^2)^2/4

Beyond: with t = h^2 and |h| max|r| <= 1, complex h allowed, |sum cosh| >= n (2 - cosh 1) and
|sinh(h r)/h| <= |r| sinh 1, so |q(h)/h| <= M = 2.6 mean|x r| and |c_k| <= M max|r|^(2k) by Cauchy's estimate. The layer
adds sum_a o_a q(h_a) to w, which should be -rate g. With k_m = sum_a o_a h_a^(2m+1) it errs by at most

    |k_0 + rate| |g| + |k_1| |c_1| + |k_2| |c_2| + sum_a |o_a| h_a M rho_a^6 / (1 - rho_a^2),    rho_a = h_a max|r| < 1.

Everything is read from stored weights, in exact rational arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from jaxtyping import Float

from anchorhead.proof.arithmetic.arithmetic import FLOAT64, UP, Arithmetic
from anchorhead.proof.descent.descent import DescentBound, Drift, contraction, length_of, lengths, require_safe_rate
from anchorhead.proof.descent.descent_moments import Moments
from anchorhead.proof.descent.descent_squared_form import SquaredStep, read
from anchorhead.proof.descent.descent_threshold import require_proof
from anchorhead.targets.descent import Descent

__all__ = ["METHOD", "Moments", "StepError", "bound_for_box", "bound_for_prompt", "read", "step_error"]

CAUCHY = 2.6
"""sinh(1) / (2 - cosh(1)) is 2.572."""
METHOD = (
    "series of sinh and cosh with Cauchy's bound on the rest; softmax and sums in any order of rounding; errors of the "
    "steps add up, because a safe rate and a soft threshold bring paths no further apart"
)


@dataclass(frozen=True)
class StepError:
    """The lengths by which a step errs, in w and in v, and how much of that in w is rounding."""

    of_weights: float
    of_velocity: float
    rounding: float


def step_error(step: SquaredStep, target: Descent, at: Moments, model: Arithmetic) -> StepError:
    """How far a step, as the dtype computes it, is at most from the exact one from the same w and v."""
    h, o = np.array(step.sharpness), np.array(step.outputs)
    rho = h * at.most
    if not (rho < 0.5).all():
        return StepError(np.inf, np.inf, np.inf)
    k0, k1, k2 = step.powers
    c1 = at.xr3 / 6 + at.xr * at.r2 / 2
    c2 = at.xr5 / 120 + at.xr3 * at.r2 / 12 + at.xr * (at.r4 / 24 + at.r2**2 / 4)
    tail = float((np.abs(o) * h * rho**6 / (1 - rho**2)).sum()) * CAUCHY * at.xr
    method = float(abs(k0 + Fraction(target.rate))) * at.xr + float(abs(k1)) * c1 + float(abs(k2)) * c2 + tail
    read = np.stack([_read_error(sharp, r, at, model) for sharp, r in zip(h, rho, strict=True)])
    size = h[:, None] * at.xr * np.exp(2 * rho)[:, None] * 1.1 + read
    u, heads = model.unit, len(h)
    added = (np.abs(o)[:, None] * size).sum(axis=0)
    rounding = (np.abs(o)[:, None] * read).sum(axis=0) + float(model.gamma(heads + 1)) * added
    wrong_w, wrong_pull, wrong_v = step.wrongly_kept(target)
    sums = 3 * u * (1 + 4 * u)
    moving = step.momentum * at.v + added
    in_w = method + rounding + wrong_w * at.w + wrong_v * at.v + sums * (np.abs(step.kept) * at.w + moving)
    in_v = method + rounding + wrong_pull * at.w + wrong_v * at.v + sums * (np.abs(step.pulled) * at.w + moving)
    # entries of the prompt, products and sums below the smallest normal number may become 0: up to so many of them in
    # each logit, times w, and in what is read, times x
    tiny = 100 * at.examples * model.tiny * (1 + at.x.max()) * (1 + float(np.abs(o).sum()))
    tiny = tiny * (len(at.x) + 2) * (1 + at.w.sum()) * (1 + at.x.sum())
    before = StepError(
        length_of(in_w + tiny), length_of(in_v + tiny) if target.momentum else 0.0, length_of(in_w - method + tiny)
    )
    return _shrunk(before, step, target, np.abs(step.kept) * at.w + moving + in_w + tiny, model)


def _shrunk(
    before: StepError, step: SquaredStep, target: Descent, w: Float[np.ndarray, " weights"], model: Arithmetic
) -> StepError:
    """The errors once the soft threshold has been applied to a w of at most the given size."""
    if step.clip is None:
        return before
    if not w.max() <= step.clip.most:
        return StepError(np.inf, np.inf, np.inf)
    error = step.clip.error(target)
    every, rounding = (length_of(one.after(w, target, model)) for one in (error, replace(error, exact=0.0)))
    return replace(before, of_weights=before.of_weights + every, rounding=before.rounding + rounding)


def _read_error(h: float, rho: float, at: Moments, model: Arithmetic) -> Float[np.ndarray, " weights"]:
    """The rounding of what one head reads, for each entry: see heads.softmax_rounding for the steps.

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


def bound_for_prompt(
    step: SquaredStep,
    target: Descent,
    A: Float[np.ndarray, "n weights"],
    y: Float[np.ndarray, " n"],
    model: Arithmetic,
) -> DescentBound:
    """For one prompt; raises RateTooLarge.

    Residuals are those of a path in float64, whose own distance from the exact one is followed in the same way.
    """
    require_safe_rate(A, target)
    require_proof(target)
    growth = contraction(A, target)
    ours, rounding, reference = (Drift(target.momentum, growth) for _ in range(3))
    size, labels = np.abs(A), np.abs(y)
    reaches = lengths(A)
    n, weights = A.shape
    w, v = np.zeros(weights), np.zeros(weights)
    for _ in range(target.steps):
        terms = size @ np.abs(w) + labels
        computed = A @ w - y
        drift = ours.bound + reference.bound
        r = np.abs(computed) + float(FLOAT64.gamma(weights + 2)) * terms + reaches * drift
        speed = np.abs(v) + ours.velocity + reference.velocity
        reach = float((terms + size.sum(axis=1) * drift).max())
        at = Moments.of(size, r, np.abs(w) + drift, speed, reach)
        found = step_error(step, target, at, model)
        next_v = target.momentum * v - target.rate * (A.T @ computed / n + target.decay * target.penalised * w)
        ours.step(found.of_weights, found.of_velocity)
        rounding.step(found.rounding, found.of_velocity and found.rounding)
        own = target.rate * (float(FLOAT64.gamma(n + weights + 8)) * (size.T @ terms / n + target.decay * np.abs(w)))
        own = own + 8 * FLOAT64.unit * (np.abs(w) + np.abs(next_v) + target.momentum * np.abs(v))
        own = own + 4 * FLOAT64.unit * target.rate * target.threshold
        reference.step(length_of(own), length_of(own))
        w, v = target.shrunk(w + next_v), next_v
    return _summed(ours, rounding)


def _summed(all_of_it: Drift, rounding: Drift) -> DescentBound:
    method = max(all_of_it.bound - rounding.bound, 0.0) if np.isfinite(all_of_it.bound) else np.inf
    terms = {"heads in place of the gradient and the threshold": method, "rounding": rounding.bound}
    return DescentBound(all_of_it.bound, terms)


def bound_for_box(
    step: SquaredStep,
    target: Descent,
    x: Float[np.ndarray, " weights"],
    y: float,
    model: Arithmetic,
) -> DescentBound:
    """For every prompt of at most target.examples with |x_ij| <= x_j and |y_i| <= y for which the rate is safe.

    In the eigenvectors of H every residual is multiplied by q_t = p_t - mu p_(t-1), |q_t| <= C = (1 + mu)/(1 - mu)
    (see proof.descent.descent; decay counts as examples of its own, with label 0), so mean r^2 <= C^2 mean y^2 and
    |r_i| <= C sqrt(n) y. The gradient's length is at most sqrt(L) C y, L the largest eigenvalue, and
    rate sqrt(L) <= sqrt(2 (1 + mu) rate): that bounds v and w.

    With a threshold (and no momentum) a step is w' = S(w - rate grad f(w)), f the mean loss and the decay, and the
    objective F = f + threshold |w|_1 never grows. For u = (w - w')/rate - grad f(w) is a subgradient of threshold |.|_1
    at w', so threshold |w|_1 >= threshold |w'|_1 + |w - w'|^2/rate - grad f(w).(w - w'), and
    f(w') <= f(w) + grad f(w).(w' - w) + L |w' - w|^2/2: together F(w') <= F(w) - (1/rate - L/2) |w' - w|^2 <= F(w). So
    mean r^2 + decay |w|^2 <= 2 F(w) <= 2 F(0) = mean y^2, as before with C = 1, and S, which takes 0 to 0, leaves the
    bound on w as it is.
    """
    require_proof(target)
    mu = target.momentum
    grown = (1 + mu) / (1 - mu)
    length = length_of(x)
    push = np.sqrt(2 * (1 + mu) * target.rate) * grown * y * UP
    ours, rounding = Drift(mu), Drift(mu)
    for t in range(target.steps):
        drift = ours.bound
        if not np.isfinite(drift):
            break
        rms = grown * y + length * drift
        most = grown * np.sqrt(target.examples) * y + length * drift
        v, w = push / (1 - mu) + ours.velocity, t * push / (1 - mu) + drift
        at = Moments.in_box(x, rms, most, w * length + y, w, v, target.examples)
        found = step_error(step, target, at, model)
        ours.step(found.of_weights, found.of_velocity)
        rounding.step(found.rounding, found.of_velocity and found.rounding)
    return _summed(ours, rounding)
