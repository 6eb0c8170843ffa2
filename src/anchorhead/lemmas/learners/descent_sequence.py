"""The proof for gradient descent in the sequence layout (incontext.linked_sequence).

Register i holds w_i, all but the same in all registers, and reads p_i = phi(w_i . x_i) x_i, wrong by at most
|x_i| (error of the head + its rounding). Then w_j <- w_j - rate mean_i p_i. Against an exact step from w_j this errs by

    rate (mean |x_i| (error + rounding)  +  steepest mean |x_i|^2 D)  +  rounding of the mean and of the sums,

where steepest bounds |phi'| and D how far the registers' w are apart. All registers add the same exact number, so D
only grows by twice what rounding adds at a step. Errors of the steps add up as in lemmas.learners.loop where phi is a
straight line, else as in lemmas.learners.descent_varying.
"""

from __future__ import annotations

import math

import numpy as np
from flint import arb
from jaxtyping import Float

from anchorhead.errors import CertificateError
from anchorhead.lemmas.learners.descent_given import given_conditions
from anchorhead.lemmas.learners.descent_sequence_step import At, Curvature, Errors, LinkedStep, head_error
from anchorhead.lemmas.learners.descent_varying import most_rate
from anchorhead.lemmas.learners.grid_link import GridLink
from anchorhead.lemmas.learners.link_reading import HeadLink, outward
from anchorhead.lemmas.learners.loop import (
    DescentBound,
    contraction,
    eigenvalue_bound,
    length_of,
    lengths,
    require_safe_rate,
)
from anchorhead.lemmas.learners.sequence import read as read_step
from anchorhead.network import Network
from anchorhead.proof.arithmetic.arithmetic import FLOAT64, UP, Arithmetic
from anchorhead.targets.descent import Descent

METHOD = (
    "the link's head against the link on Bernstein ellipses with complex balls, or in closed form; softmax and sums in "
    "any order of rounding; errors of the steps add up, because a safe rate brings paths no further apart"
)
ROOMS = (2.0**-8, 2.0**-3, 2.0)
"""How much wider than the arguments of a path the range is on which a head is proven, relative to their size: the
first for which errors stay in it."""
NOTHING = DescentBound(np.inf, {})


def read(network: Network, target: Descent) -> LinkedStep:
    """The step, if the network is one of incontext.linked_sequence for this target; CertificateError otherwise."""
    step = read_step(network, target)
    low, high = target.scores or (-math.inf, math.inf)
    if target.loss.form == "g(s, y)":
        if len(step.pieces) != 1 or target.labels is None:
            raise CertificateError("the network's link is not one grid, for labels that are stated")
        atom = step.pieces[0].on_grid(network.dtype)  # type: ignore[arg-type]
        return LinkedStep(step, GridLink(target.loss.link, atom, low, high, target.labels))
    share = -1.0 if target.loss.form == "phi(s - y)" else 0.0
    link = [part for part in step.pieces if part.of_score.any()]
    label = [part for part in step.pieces if not part.of_score.any()]
    if not link or any((part.of_label != share * part.of_score).any() for part in link):
        raise CertificateError(f"the network's parts are not those of a link of the form {target.loss.form}")
    if bool(label) != (target.loss.form == "phi(s) - y"):
        raise CertificateError(f"the network's parts for labels are not those of the form {target.loss.form}")
    of_link, of_label = (tuple(part.on_argument() for part in parts) for parts in (link, label))
    return LinkedStep(step, HeadLink(target.loss.link, of_link, of_label, low, high))


def _straight(target: Descent) -> bool:
    """Whether the link is a line that does not fall: the second derivative is then the same everywhere, and not below
    0."""
    line = target.loss.link.affine() if target.loss.form != "g(s, y)" else None
    return line is not None and bool(line[0].get("x", arb(0)) >= 0)


def _of_the_residual(target: Descent) -> bool:
    """Whether the link is a positive multiple of the residual s - y: the squared loss."""
    line = target.loss.link.affine() if target.loss.form == "phi(s - y)" else None
    return line is not None and bool(line[0].get("x", arb(0)) > 0) and line[1] == 0


def bound_for_prompt(
    step: LinkedStep,
    target: Descent,
    A: Float[np.ndarray, "n weights"],
    y: Float[np.ndarray, " n"],
    model: Arithmetic,
) -> DescentBound:
    """For one prompt; raises RateTooLarge.

    Arguments are those of a path in float64, with the head in place of the link, whose own distance from the exact path
    is followed in the same way. The head is proven on a range a little wider than they need, and they must stay there.
    """
    if len(A) != target.examples:
        raise CertificateError(f"{len(A)} examples for a network that takes {target.examples}")
    path, arguments, terms = _reference(step, target, A, y)
    if not np.isfinite(arguments).all():
        return NOTHING
    found = NOTHING
    for share in ROOMS:
        room = share * (1 + float(np.abs(arguments).max()))
        found = _bound_within(step, target, A, y, (path, arguments, terms), room, model)
        if np.isfinite(found.total):
            break
    return found


Path = tuple[list[tuple[np.ndarray, np.ndarray]], np.ndarray, np.ndarray]
"""(w_t, v_t), the arguments of the link, and what their terms add up to in size."""


def _bound_within(
    step: LinkedStep, target: Descent, A: np.ndarray, y: np.ndarray, along: Path, room: float, model: Arithmetic
) -> DescentBound:
    path, arguments, terms = along
    most = float(np.abs(y).max())
    facts = step.link.facts(most)
    low, high = outward(float(arguments.min()) - room, float(arguments.max()) + room)
    low, high = max(low, facts.low), min(high, facts.high)
    if not low < high:
        return NOTHING
    least, slope = step.link.slopes(low, high, most)
    least, slope = max(least, facts.least), min(slope, facts.slope)
    reach = low, high, float(terms.max()) + room, most
    errors_of_heads = [head_error(step, target, *reach, kind) for kind in (model, FLOAT64)]
    if not all(np.isfinite(one.rounding) for one in errors_of_heads):
        return NOTHING
    head, self_key_head = errors_of_heads
    curvature = _ground(target, A, least, slope)
    errors, reference = Errors(step.step, target, head, curvature, model), curvature.drift(target.momentum)
    size, reaches = np.abs(A), lengths(A)
    x, squares = UP * size.mean(axis=0), UP * float((reaches**2).mean())
    for t in range(target.steps):
        w, v = path[t]
        drift = errors.ours.bound + reference.bound
        rounded = float(FLOAT64.gamma(target.weights + 2)) * terms[t]
        moved = reaches * drift + rounded
        inside = (arguments[t] - moved >= low) & (arguments[t] + moved <= high) & (size.sum(axis=1) * drift <= room)
        if not inside.all():
            return NOTHING
        lost = self_key_head.exact + self_key_head.rounding + curvature.steepest * rounded
        link = np.abs(step.link.values(arguments[t], y)) + lost + curvature.steepest * moved
        speed = np.abs(v) + errors.ours.velocity + reference.velocity
        errors.take(At(x, UP * (size.T @ link) / len(A), np.abs(w) + drift, speed, squares))
        own = target.rate * (size.T @ (lost + float(FLOAT64.gamma(len(A) + 8)) * link) / len(A))
        own = own + target.rate * target.decay * float(FLOAT64.gamma(4)) * np.abs(w)
        own = own + 8 * FLOAT64.unit * (np.abs(w) + np.abs(path[t + 1][1]) + target.momentum * np.abs(v))
        curvature.step(reference, length_of(own), length_of(own))
    return errors.summed()


def _ground(target: Descent, A: np.ndarray, least: float, slope: float) -> Curvature:
    """For links with slopes between these."""
    steepest = max(slope, -least)
    if _straight(target):
        require_safe_rate(A, target, slope)
        return Curvature(True, 0.0, 0.0, steepest, contraction(A, target) if slope == least == 1 else 1.0)
    widest = eigenvalue_bound(A)
    falls = -target.rate * max(-least, 0.0) * widest * UP
    return Curvature(False, falls, target.rate * (max(slope, 0.0) * widest + target.decay) * UP, steepest)


def _reference(step: LinkedStep, target: Descent, A: np.ndarray, y: np.ndarray) -> Path:
    """A path in float64, with the head in place of the link."""
    w, v = np.zeros(target.weights), np.zeros(target.weights)
    path, arguments, terms = [(w, v)], [], []
    labels = y if target.loss.form == "phi(s - y)" else np.zeros_like(y)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(target.steps):
            at = A @ w - labels
            arguments.append(at)
            terms.append(np.abs(A) @ np.abs(w) + np.abs(y))
            gradient = A.T @ step.link.values(at, y) / len(A) + target.decay * target.penalised * w
            v = target.momentum * v - target.rate * gradient
            w = w + v
            path.append((w, v))
    return path, np.array(arguments), np.array(terms)


def bound_for_box(
    step: LinkedStep, target: Descent, x: Float[np.ndarray, " weights"], y: float, model: Arithmetic
) -> DescentBound:
    """For every prompt of target.examples with |x_ij| <= x_j and |y_i| <= y for which the rate is safe.

    A straight link: residuals are bounded as in learners.descent_squared. Any other is bounded on the range of its
    head, so a step moves w by at most rate size |x|, and it is given that rate times slope times the largest eigenvalue
    of A'A/n is at most what lemmas.learners.descent_varying allows. Where the head does not serve on the whole line, it
    is given too that the exact path's arguments stay in the stated range.
    """
    facts, mu, n = step.link.facts(y), target.momentum, target.examples
    length = length_of(x)
    straight, safe = _straight(target), most_rate(mu)
    if _of_the_residual(target):
        grown = (1 + mu) / (1 - mu)
        link, reach = facts.slope * grown * y * UP, grown * math.sqrt(n) * y * UP
        fastest = math.sqrt(2 * (1 + mu) * target.rate * facts.slope) * grown * y / (1 - mu) * UP
    else:
        link = (facts.size + (y if target.loss.form == "phi(s) - y" else 0.0)) * UP
        fastest = target.rate * link * length / (1 - mu) * UP
        reach = math.inf
    farthest = [t * fastest for t in range(target.steps + 1)]
    widest = min(farthest[-1] * length + y, reach)
    falls = safe * max(-facts.least, 0.0) / max(facts.slope, 1e-300) * UP
    curvature = Curvature(straight, -falls, safe, facts.steepest)
    for share in ROOMS:
        room = share * (1 + widest)
        low, high = max(-widest - room, facts.low), min(widest + room, facts.high)
        if not low < high:
            continue
        head = head_error(step, target, low, high, farthest[-1] * length + y + room, y, model)
        errors = Errors(step.step, target, head, curvature, model)
        for t in range(target.steps if np.isfinite(head.rounding) else 0):
            drift = errors.ours.bound
            if not length * drift <= room:
                break
            speed = fastest * (2 * t + 1 if mu and target.decay else 1) + errors.ours.velocity
            push = x * (link + facts.steepest * length * drift)
            errors.take(At(x, push, np.full_like(x, farthest[t] + drift), np.full_like(x, speed), length**2))
        moved = length * errors.ours.bound
        if np.isfinite(head.rounding) and moved <= room:
            everywhere = widest + moved <= min(-facts.low, facts.high)
            if everywhere or (reach == math.inf and facts.low + moved < facts.high - moved):
                ends = None if everywhere else (facts.low, facts.high)
                return errors.summed(given_conditions(target, None if straight else facts.slope, safe, ends, moved))
    return NOTHING
