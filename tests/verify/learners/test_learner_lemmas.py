"""The lemmas behind verified learners hold for what they speak of, and are close to tight where that can be told."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from anchorhead.verify.balls import above, precision
from anchorhead.verify.learners.average import Average, box_moments, prompt_moments
from anchorhead.verify.learners.growth import Drift, Varying, norm, safe_limit, weighted
from anchorhead.verify.learners.link import Link, between, slopes
from anchorhead.verify.learners.score import Score
from anchorhead.verify.programs.expressions import Expression
from anchorhead.verify.rounding import MODELS

X = ("variable", "x", ())
CLIP = Expression.of((X, ("number", -1.0, ()), ("number", 1.5, ()), ("clip", None, (0, 1, 2))))
TANH = Expression.of((X, ("tanh", None, (0,))))


def averages(A: np.ndarray, g: np.ndarray, h: float) -> np.ndarray:
    """(mean a sinh(h g)) / (mean cosh(h g)), to 30 digits, and mean a g."""
    with precision(200):
        sharp = [arb(float(x)) * arb(h) for x in g]
        below = sum(((x.exp() + (-x).exp()) / 2 for x in sharp), arb(0))
        rows = []
        for column in A.T:
            exact = [arb(float(a)) for a in column]
            read = sum((a * (x.exp() - (-x).exp()) / 2 for a, x in zip(exact, sharp, strict=True)), arb(0)) / below
            mean = sum((a * arb(float(x)) for a, x in zip(exact, g, strict=True)), arb(0)) / len(g)
            rows.append((read, mean))
    return np.array(rows, dtype=object)


def off(A: np.ndarray, g: np.ndarray, average: Average, rate: float) -> float:
    """|sum_a o_a q(h_a) + rate mean a g|."""
    with precision(200):
        total = [arb(0)] * A.shape[1]
        for h, o in zip(average.sharpness, average.outputs, strict=True):
            total = [one + arb(o) * row[0] for one, row in zip(total, averages(A, g, h), strict=True)]
        mean = averages(A, g, 1.0)[:, 1]
        return above(sum(((one + arb(rate) * m) ** 2 for one, m in zip(total, mean, strict=True)), arb(0)).sqrt())


@pytest.mark.parametrize(
    "heads", [((0.25,), (-4.0,)), ((0.125, 0.25), (-32 / 3, 4 / 3)), ((0.125, 0.25), (-10.5, 4 / 3))]
)
def test_signed_averages_read_the_gradient_up_to_their_error(heads: tuple) -> None:
    """Single heads, whose error is of second order, pairs, of fourth, and pairs that do not fit the rate."""
    average, model, closest = Average(*heads, terms=2), MODELS["float64"], 0.0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 6))
        A, g = rng.uniform(-1, 1, (n, 2)), rng.uniform(-1.5, 1.5, n)
        found = off(A, g, average, 1.0)
        L = float(np.linalg.eigvalsh(A.T @ A / n)[-1]) * (1 + 1e-9)
        length = float(np.sqrt((A**2).sum(axis=1)).max())
        one = prompt_moments(A, L, np.abs(g), 2.0, 1.0, np.zeros(n))
        rms, most = math.sqrt((g**2).mean()) * (1 + 1e-9), float(np.abs(g).max())
        box = box_moments(L, length * (1 + 1e-9), 1.0, 2, rms, most, 2.0, 1.0, n)
        bounds = [average.error(1.0, at, model)[0] for at in (one, box)]
        assert found <= min(bounds)
        closest = max(closest, found / min(bounds))
    assert closest >= 0.3


def test_the_pushes_of_examples_are_as_long_as_is_said() -> None:
    """Of one prompt, and of all with its moments: with links in proportion to examples of one feature, no less."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, size = int(rng.integers(1, 6)), int(rng.integers(1, 4))
        A = rng.uniform(-1, 1, (n, size))
        g = A[:, 0] if size == 1 else rng.uniform(-1.5, 1.5, n)
        L = float(np.linalg.eigvalsh(A.T @ A / n)[-1]) * (1 + 1e-9)
        rms, length = math.sqrt((g**2).mean()) * (1 + 1e-9), float(np.linalg.norm(A, axis=1).max()) * (1 + 1e-9)
        pushes = float(np.linalg.norm(np.abs(A * g[:, None]).mean(axis=0)))
        box = box_moments(L, length, 1.0, size, rms, float(np.abs(g).max()), 2.0, 1.0, n).pushes
        assert pushes * (1 - 1e-9) <= prompt_moments(A, L, np.abs(g), 2.0, 1.0, np.zeros(n)).pushes <= box
        assert size > 1 or box <= pushes * (1 + 1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rounding_of_signed_averages(dtype: str) -> None:
    average, model = Average((2.0**-6,), (-64.0,), terms=2), MODELS[dtype]
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 40))
        A = rng.uniform(-1, 1, (n, 1)).astype(dtype)
        y, w = rng.uniform(-1, 1, n).astype(dtype), rng.uniform(-1, 1, 1).astype(dtype)
        h = np.array(2.0**-6, dtype)
        logits = A[:, 0] * (h * w[0]) - h * y
        weights = np.exp(np.concatenate([logits, -logits]) - np.abs(logits).max())
        read = (weights / weights.sum()) @ np.concatenate([A[:, 0], -A[:, 0]])
        g = A[:, 0].astype(float) * float(w[0]) - y.astype(float)
        exact = averages(A.astype(float), g, 2.0**-6)[0, 0]
        terms = float((np.abs(A[:, 0]) * np.abs(w[0]) + np.abs(y)).max()) * (1 + 1e-6)
        at = prompt_moments(A.astype(float), 1.0, np.abs(g) * (1 + 1e-9), terms, 1.0, np.zeros(n))
        with precision(200):
            assert 64 * above(abs(arb(float(read)) - exact)) <= average.error(1.0, at, model)[1]


def test_scores_are_as_far_from_their_arguments_as_is_said() -> None:
    score = Score((0.25, 0.5), (32 / 3, -4 / 3), 3)
    assert score.grows
    for z in np.linspace(0.0, 3.0, 40):
        written = sum(o * math.tanh(h * z / 2) for h, o in zip(score.sharpness, score.outputs, strict=True))
        assert abs(written - z) <= score.distance(np.array([z]))[0] + 1e-14
    assert not Score((0.25, 0.5), (-32 / 3, 4 / 3), 3).grows


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("varying", [False, True])
def test_errors_grow_no_faster_than_is_said(momentum: float, varying: bool) -> None:
    """Second derivatives and errors of steps that are chosen against it: the one that moves the paths apart most."""
    limit = safe_limit(momentum) if varying else 2 * (1 + momentum)
    farthest = 0.0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        drift = Varying(momentum) if varying else Drift(momentum)
        E = D = 0.0
        fixed = limit * rng.choice([0.0, 1.0, rng.uniform()])
        for _ in range(25):
            f, apart = rng.choice([0.0, 1.0]), rng.choice([0.0, 0.5])
            signs = [-1.0, 1.0]
            moves = [(rate, s, t) for rate in ((0.0, limit) if varying else (fixed,)) for s in signs for t in signs]
            rate, s, t = max(moves, key=lambda one: abs(E + momentum * D - one[0] * E + one[1] * f))
            D, E = momentum * D - rate * E + s * f + t * apart, E + momentum * D - rate * E + s * f
            drift.step(f, apart, 0.0, limit)
            assert abs(E) <= drift.bound
            assert abs(D) <= drift.velocity or not momentum
            farthest = max(farthest, abs(E) / drift.bound if drift.bound else 0.0)
    assert farthest >= 0.3


def test_curvature_is_bounded_closely() -> None:
    rng = np.random.default_rng(0)
    A, by = rng.normal(size=(8, 3)), rng.uniform(0, 1, 8)
    decays = (Fraction(0.1), Fraction(0.1), Fraction(0))
    H = (A.T * by) @ A / 8 + np.diag([0.1, 0.1, 0.0])
    for rate, value in ((0.0, np.linalg.norm(H, 2)), (0.3, np.linalg.norm(np.eye(3) - 0.3 * H, 2))):
        assert value * (1 - 1e-12) <= norm(weighted(A, by, decays, rate)) <= value * (1 + 1e-3)
    assert norm(weighted(A, 0 * by, (Fraction(0),) * 3)) == 0.0


@pytest.mark.parametrize(("phi", "function"), [(CLIP, lambda x: np.clip(x, -1.0, 1.5)), (TANH, np.tanh)])
def test_slopes_and_ranges_of_links(phi: Expression, function) -> None:
    for low, high in ((-3.0, 3.0), (-0.5, 0.25), (0.9, 2.0), (1.75, 4.0)):
        x = np.linspace(low, high, 301)
        quotients = np.diff(function(x)) / np.diff(x)
        link = Link("labelled", phi, None)
        least, most = slopes(link, low, high)
        assert least <= quotients.min() + 1e-9
        assert quotients.max() - 1e-9 <= most <= quotients.max() + 0.02
        below, above_ = between(link, low, high)
        assert below <= function(x).min() + 1e-12
        assert function(x).max() - 1e-12 <= above_


def test_links_that_are_wrong_move_the_gradient_by_what_is_said() -> None:
    """Logits carry g' in the place of g, unevenly for the two signs or not."""
    average, model = Average((0.125, 0.25), (-32 / 3, 4 / 3), terms=1), MODELS["float64"]
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 5))
        A, g, e = rng.uniform(-1, 1, (n, 1)), rng.uniform(-1, 1, n), 0.05 * rng.uniform(size=n)
        carried = g + e * np.sign(A[:, 0])
        at = prompt_moments(A, float((A**2).mean()) * (1 + 1e-9), np.abs(g) + e, 2.0, 1.0, e)
        moved = off(A, carried, average, 1.0) + abs(float((A[:, 0] * (carried - g)).mean()))
        method, _, _ = average.error(1.0, at, model)
        assert abs(float((A[:, 0] * (carried - g)).mean())) <= method
        assert off(A, carried, average, 1.0) <= method <= moved + 0.1


def test_rounding_that_is_chosen_against_signed_averages() -> None:
    """Every logit and every term of the last sum is off by all that it may, in the direction that hurts."""
    model, h = MODELS["float32"], 2.0**-6
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 40))
        A, g = rng.uniform(0.5, 1, (n, 1)), rng.uniform(-0.1, 0.1, n)
        at = prompt_moments(A, 1.0, np.abs(g), 2.0, 1.0, np.zeros(n))
        signed, logits = np.concatenate([A[:, 0], -A[:, 0]]), h * np.concatenate([g, -g])
        wrong = float(model.gamma(2)) * h * 2.0 + model.exp_error
        exact, weights = np.exp(logits), np.exp(logits + wrong * np.sign(signed))
        read = (weights / weights.sum() * signed * (1 + float(model.gamma(2 * n + 1)) * np.sign(signed))).sum()
        bound = Average((h,), (-1.0,), terms=2).error(h, at, model)[1]
        assert 0.5 * bound <= abs(read - (exact / exact.sum()) @ signed) <= bound
