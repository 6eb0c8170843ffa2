"""The parts of the proof for any loss: what is written for a score, slopes of links, and norms that do not grow."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from anchorhead.constructions.learners.link_heads import link_head
from anchorhead.language.expressions.parser import parse
from anchorhead.language.targets.losses import named_loss
from anchorhead.lemmas.learners.loop import VaryingDrift, most_rate
from anchorhead.lemmas.learners.score import Arguments, Scoring, written
from anchorhead.proof.arithmetic.arithmetic import FLOAT32, FLOAT64
from anchorhead.proof.heads.link_heads import slopes_of


def _scoring(h: float) -> Scoring:
    return Scoring((h, 2 * h), (8 / 3 / h, -1 / 3 / h))


@settings(max_examples=200, deadline=None)
@given(st.integers(2, 16), st.floats(-1e4, 1e4), st.floats(0, 10))
def test_what_is_written_lies_where_it_is_said_to(power: int, low: float, wide: float) -> None:
    scoring = _scoring(2.0**-power)
    ends = np.array([low]), np.array([low + wide])
    found = written(scoring, Arguments(*ends, np.abs(ends[0]) + wide, np.ones(3)), FLOAT64)
    with ctx.workprec(200):
        for z in np.linspace(low, low + wide, 5):
            pairs = zip(scoring.outputs, scoring.sharpness, strict=True)
            exact = sum((arb(o) * (arb(h) * arb(float(z)) / 2).tanh() for o, h in pairs), arb(0))
            assert arb(float(found.low[0])) <= exact <= arb(float(found.high[0]))
            assert abs(exact - arb(float(z))) <= arb(float(found.wrong[0]))


@pytest.mark.parametrize("model", [FLOAT64, FLOAT32])
def test_the_rounding_of_a_score_is_more_than_is_seen(model: object) -> None:
    kind, rng = getattr(np, model.dtype), np.random.default_rng(0)  # type: ignore[attr-defined]
    for power in (3, 6, 10):
        scoring = _scoring(2.0**-power)
        x, w = rng.uniform(-4, 4, (400, 6)).astype(kind), rng.uniform(-2, 2, 6).astype(kind)
        total = np.zeros(400, kind)
        for h, o in zip(scoring.sharpness, scoring.outputs, strict=True):
            logits = np.stack([(kind(h) * x) @ w, np.zeros(400, kind)], axis=1)
            weights = np.exp(logits - logits.max(axis=1, keepdims=True))
            weights = weights / weights.sum(axis=1, keepdims=True)
            total = total + kind(o) * (weights[:, 0] - weights[:, 1])
        z = x.astype(np.longdouble) @ w.astype(np.longdouble)
        exact = sum(np.longdouble(kind(o)) * np.tanh(np.longdouble(h) * z / 2) for h, o in
                    zip(scoring.sharpness, scoring.outputs, strict=True))  # fmt: skip
        terms = np.abs(x).astype(float) @ np.abs(w).astype(float)
        stored = Scoring(scoring.sharpness, tuple(float(kind(o)) for o in scoring.outputs))
        at = Arguments(z.astype(float), z.astype(float), terms, np.abs(w).astype(float))
        found = written(stored, at, model)  # type: ignore[arg-type]
        assert (np.abs(total - exact) <= found.rounding).all()


@pytest.mark.parametrize("name", ["logistic", "huber", "absolute", "hinge", "poisson"])
def test_slopes_lie_between_their_bounds(name: str) -> None:
    loss, rng = named_loss(name), np.random.default_rng(0)
    facts = link_head(loss.link, (-6.0, 3.0), "float64").facts
    slopes = slopes_of(loss.link, facts)
    low = rng.uniform(-6, 3, 3000) if math.isfinite(facts.low) else rng.standard_cauchy(3000) * 3
    high = np.minimum(low + 10.0 ** rng.uniform(-8, 1, 3000), facts.high)
    least, most = slopes.between(low, high)
    for share in (0.0, 0.3, 1.0):
        seen = loss.link.derivative("x").values({"x": low + share * (high - low)})
        assert (least <= seen + 1e-12).all()
        assert (seen - 1e-12 <= most).all()


def test_slopes_are_cut_to_what_is_known_of_the_range() -> None:
    facts = link_head(named_loss("poisson").link, (-6.0, 3.0), "float64").facts
    least, most = slopes_of(parse("exp(x)"), facts).between(np.array([-100.0]), np.array([100.0]))
    assert least[0] <= math.exp(-6)
    assert most[0] >= math.exp(3)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from([0.0, 0.1, 0.5, 0.9]), st.booleans())
def test_no_path_leaves_its_bound_however_the_second_derivative_changes(seed: int, mu: float, beyond: bool) -> None:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 4))
    drift, E, D = VaryingDrift(mu), np.zeros(d), np.zeros(d)
    low, high = (-0.1, 1.1 * most_rate(mu)) if beyond else (0.0, most_rate(mu))
    for _ in range(40):
        Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
        H = (Q * rng.choice([low, high, rng.uniform(low, high)], d)) @ Q.T
        f_w, f_v = rng.standard_normal(d) * rng.choice([0, 1]), rng.standard_normal(d) * rng.choice([0, 1])
        pulled = mu * D - H @ E
        E, D = E + pulled + f_w, pulled + (f_v if mu else 0.0)
        drift.step(float(np.linalg.norm(f_w)), float(np.linalg.norm(f_v)), low, high)
        assert np.linalg.norm(E) <= drift.bound
        assert not mu or np.linalg.norm(D) <= drift.velocity
