"""Certificates that are measured: where nothing is proven, random prompts of the box are run beside exact descent."""

from __future__ import annotations

import numpy as np
import torch

from anchorhead.certificate import Certificate
from anchorhead.constructions.learners.prompts import examples_of, prompt
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.language.targets.descent import Descent
from anchorhead.language.targets.losses import Loss
from anchorhead.lemmas.learners.given import conditions_for_box
from anchorhead.lemmas.learners.loop import most_curvature
from anchorhead.network import Network
from anchorhead.network.threads import threads_for
from anchorhead.proof.statement import Statement
from anchorhead.terms import Term

PROMPTS = 48
MAX_EXAMPLES = 256
SAFETY = 0.98
SEED = 0


def measured_certificate(network: Network, target: Descent, x: np.ndarray, y: float, why: str) -> Certificate:
    """The largest |w_t - exact w_t| found at any step t; `why` says why nothing is proven.

    Prompts for which the rate would be too large are scaled down.
    """
    module = network.module().requires_grad_(False)
    module.take_shortcuts()
    rng, slope = np.random.default_rng(SEED), _steepest_link(target, y)
    worst, sizes = 0.0, [1, 2, target.weights, min(target.examples, 64), min(target.examples, MAX_EXAMPLES)]
    for number in range(PROMPTS):
        n = min(sizes[number % len(sizes)], target.examples)
        made = _prompt(target, n, x, y, slope, rng).astype(network.dtype)
        one = examples_of(made, target.features, target.loss)[0]
        exact = target.path(one.design(target.intercept), one.y)
        tensor = torch.from_numpy(made)
        with threads_for(network._calls.numbers(tensor)):
            found = module.path(tensor)[:, 0].numpy().astype(np.float64)
        if np.isfinite(exact).all() and np.isfinite(found).all():
            worst = max(worst, float(np.abs(found - exact).max()))
        else:
            raise AnchorheadError(f"{target}: weights overflow on prompts of the box; give a smaller box or rate")
    ends = np.concatenate([x, [1.0, y]])
    found = Statement(
        total=worst,
        terms=(Term("found", worst, "path"),),
        method=f"{PROMPTS} random prompts of 1 to {max(sizes)} examples, seed {SEED}, for which the rate is safe. Not "
        f"proven: {why}",
        target=str(target),
        conditions=conditions_for_box(target),
    )
    return found.measured(Box.of((-ends, ends)), network.dtype)


def _prompt(target: Descent, n: int, x: np.ndarray, y: float, slope: float, rng: np.random.Generator) -> np.ndarray:
    """Uniform entries or corners of the box, scaled down until the rate is safe."""
    corners = rng.random() < 0.3
    X = x * (rng.choice([-1.0, 1.0], (n, len(x))) if corners else rng.uniform(-1, 1, (n, len(x))))
    A = np.column_stack([X, np.ones(n)]) if target.intercept else X
    steepest = slope * float(np.linalg.eigvalsh(A.T @ A / n)[-1])
    allowed = most_curvature(target) - target.decay
    X = X * min(1.0, np.sqrt(SAFETY * allowed / max(steepest, 1e-300)))
    return prompt(X, _labels(target.loss, n, y, rng), target.loss)


def _steepest_link(target: Descent, y: float) -> float:
    """The largest slope of the link that is seen on the stated range, or on a wide one."""
    low, high = target.scores or (-64.0, 64.0)
    s = np.linspace(low, high, 20_001)
    return max(float(target.loss.curvature(s, np.full_like(s, label)).max()) for label in (-y, 0.0, y))


def _labels(loss: Loss, n: int, y: float, rng: np.random.Generator) -> np.ndarray:
    match loss.labels:
        case "numbers":
            return rng.uniform(-y, y, n)
        case "numbers of at least 0":
            return rng.uniform(0, y, n)
        case _:
            return rng.choice([-1.0, 1.0], n)
