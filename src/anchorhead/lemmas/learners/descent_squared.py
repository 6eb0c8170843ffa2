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

import numpy as np
from jaxtyping import Float

from anchorhead.lemmas.learners.average import Average, Moments, step_error
from anchorhead.lemmas.learners.direct import read
from anchorhead.lemmas.learners.loop import DescentBound, Drift, contraction, length_of, lengths, require_safe_rate
from anchorhead.lemmas.learners.threshold import require_proof
from anchorhead.proof.arithmetic.arithmetic import FLOAT64, UP, Arithmetic
from anchorhead.targets.descent import Descent

__all__ = ["METHOD", "bound_for_box", "bound_for_prompt", "read"]

METHOD = (
    "series of sinh and cosh with Cauchy's bound on the rest; softmax and sums in any order of rounding; errors of the "
    "steps add up, because a safe rate and a soft threshold bring paths no further apart"
)


def bound_for_prompt(
    step: Average,
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
    step: Average,
    target: Descent,
    x: Float[np.ndarray, " weights"],
    y: float,
    model: Arithmetic,
) -> DescentBound:
    """For every prompt of at most target.examples with |x_ij| <= x_j and |y_i| <= y for which the rate is safe.

    In the eigenvectors of H every residual is multiplied by q_t = p_t - mu p_(t-1), |q_t| <= C = (1 + mu)/(1 - mu)
    (see lemmas.learners.loop; decay counts as examples of its own, with label 0), so mean r^2 <= C^2 mean y^2 and
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
