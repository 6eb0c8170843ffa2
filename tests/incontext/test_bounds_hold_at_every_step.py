"""Certificates bound all steps, not the last alone; prompts made for another loss and other outputs are refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import anchorhead as ah
from anchorhead import AnchorheadError, CertificateError, incontext
from anchorhead.language.targets.descent import Descent
from anchorhead.lemmas.learners.average import Average
from anchorhead.lemmas.learners.loop import Drift
from anchorhead.lemmas.learners.prompt import bound_for_prompt
from anchorhead.lemmas.learners.steps import squared_step
from anchorhead.proof.arithmetic.arithmetic import FLOAT32


def exact_path(rate: float, steps: int, x: float, y: float) -> list[Fraction]:
    """Descent on one example of one feature, without rounding."""
    path = [Fraction(0)]
    for _ in range(steps):
        path.append(path[-1] - Fraction(rate) * Fraction(x) * (path[-1] * Fraction(x) - Fraction(y)))
    return path


@pytest.mark.slow_for("0.5-direct", "9.0-transformer", "5.0-transformer", "0.5-transformer")
@pytest.mark.parametrize("layout", ["direct", "transformer", "sequence"])
@pytest.mark.parametrize("label", [0.5, 5.0, 9.0])
def test_errors_of_early_steps_are_bounded_though_later_steps_forget_them(layout: str, label: float) -> None:
    net = incontext.gradient_descent(
        steps=30,
        rate=0.9,
        features=1,
        layout=layout,  # type: ignore[arg-type]
        examples=1,
        labels=(-0.1, 0.1),
        scores=None if layout == "direct" else (-10, 10),
    )
    prompt = net.prompt(np.ones((1, 1)), np.array([label]))
    bound = Fraction(net.certify(prompt).bound)
    found = net(prompt, path=True, outside="ignore")[:, 0]
    exact = exact_path(0.9, 30, 1.0, label)
    assert all(abs(Fraction(float(w)) - e) <= bound for w, e in zip(found, exact, strict=True))


def test_a_drift_that_shrinks_remembers_its_largest_value() -> None:
    drift = Drift(growth=0.1)
    for error in (1.0, 0.0, 0.0):
        drift.step(error)
    assert drift.bound >= 1.0


def test_a_drift_keeps_what_is_not_a_number() -> None:
    drift = Drift(growth=0.0)
    for error in (np.inf, 0.0):
        drift.step(error)
    assert not np.isfinite(drift.bound)


def test_steps_so_small_that_they_vanish_are_within_the_bound() -> None:
    """Weights below the smallest normal number may be flushed to 0, whatever the rate."""
    target = Descent(incontext.named_loss("squared"), steps=1, rate=1e-23, features=1, examples=1)
    step = squared_step(Average.of(target, 2.0**-10, "float32"))
    A, y = np.full((1, 1), 2.0**-63), np.full(1, 4.0)
    moved = float(Fraction(target.rate) * Fraction(A[0, 0]) * Fraction(y[0]))
    assert moved < FLOAT32.tiny
    assert bound_for_prompt(step, target, A, y, FLOAT32).total >= moved


@pytest.mark.parametrize("threshold", [0.0, 0.1])
def test_a_learner_that_gives_out_an_example_in_place_of_its_state_is_not_accepted(threshold: float) -> None:
    net = incontext.gradient_descent(steps=2, rate=0.1, features=2, examples=4, threshold=threshold)
    with pytest.raises(CertificateError, match="does not put out w"):
        ah.check(net.with_(output="input"))


@pytest.mark.parametrize("loss", ["logistic", "hinge", "poisson"])
def test_prompts_made_for_another_loss_are_refused(loss: str) -> None:
    rng = np.random.default_rng(0)
    X, signs = rng.standard_normal((8, 2)), np.array([-1.0, 1.0] * 4)
    net = incontext.gradient_descent(loss, steps=2, rate=0.1, features=2, examples=8)
    wrong = incontext.prompt(X, signs)
    for use in (net, net.exact, net.certify):
        with pytest.raises(AnchorheadError, match="-1, which no prompt for the"):
            use(wrong)
    right = net.prompt(X, np.maximum(signs, 0.0) if loss == "poisson" else signs)
    assert np.abs(net(right, outside="ignore") - net.exact(right)).max() <= net.certify(right).bound


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_prompts_whose_copies_are_swapped_are_refused(loss):
    """The network would read the row with -1 as the negative copy, and exact descent as an example of intercept -1."""
    net = incontext.gradient_descent(loss, steps=3, rate=0.3, features=1, intercept=True)
    prompt = np.array(net.prompt([[0.3], [-0.2], [0.5]], [0, 1, 1]))
    prompt[[1, 4]] = prompt[[4, 1]]
    for call in (net, net.certify, net.exact):
        with pytest.raises(ah.AnchorheadError, match="no prompt for the"):
            call(prompt)
