"""Squared loss, one attention a step: close to exact descent, within the certificate, for every prompt."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

import anchorhead as ah
from anchorhead import incontext
from anchorhead.constructions.learners.certified import certificate_for_prompt
from anchorhead.constructions.learners.learner import Learner
from anchorhead.constructions.learners.networks import squared_network
from anchorhead.constructions.learners.prompts import examples_of
from anchorhead.errors import AnchorheadError, CertificateError, OutsideWarning
from anchorhead.language.targets.descent import Descent
from anchorhead.language.targets.losses import named_loss
from anchorhead.network import Repeat

from .data import AWKWARD, regression, safe_rate


@pytest.fixture(scope="module")
def learner() -> Learner:
    return incontext.gradient_descent(loss="squared", steps=100, rate=0.3, features=5)


def _deviation(net: Learner, prompt: np.ndarray) -> float:
    return float(np.abs(net(prompt, path=True, outside="ignore") - net.exact(prompt, path=True)).max())


def test_the_path_stays_within_1e_9_over_100_steps_and_1e_8_is_proven(learner: Learner) -> None:
    prompt = incontext.prompt(*regression())
    assert _deviation(learner, prompt) <= 1e-9
    certificate = learner.certify(prompt)
    assert certificate.kind == "proven"
    assert certificate.bound <= 1e-8


EXTRAS = ({}, {"decay": 0.2, "intercept": True}, {"momentum": 0.3}, {"momentum": 0.3, "decay": 0.1})


@pytest.mark.parametrize(("name", "dtype", "extras"), list(product(AWKWARD, ("float64", "float32"), EXTRAS)))
def test_no_prompt_breaks_a_certificate(name: str, dtype: str, extras: dict[str, float]) -> None:
    sets = [AWKWARD[name](np.random.default_rng(seed)) for seed in range(2)]
    safe = min(safe_rate(X, "intercept" in extras, decay=extras.get("decay", 0)) for X, _ in sets)
    rate = min(1.0, (1 + extras.get("momentum", 0)) * 0.99 * safe)
    net = incontext.gradient_descent(steps=25, rate=rate, features=5, dtype=dtype, **extras)  # type: ignore[arg-type]
    for X, y in sets:
        prompt = net.prompt(X, y)
        found = _deviation(net, prompt)
        assert net.certificate is not None
        assert found <= net.certificate.bound
        assert found <= net.certify(prompt).bound


@pytest.mark.slow_for("0.0625", "0.03125")
@pytest.mark.parametrize("sharpness", [2.0**-3, 2.0**-4, 2.0**-5])
def test_blunt_heads_err_visibly_and_no_more_than_is_proven(sharpness: float) -> None:
    """The error of sinh and cosh, not hidden by rounding: the bound must hold, and not by more than a factor of 60."""
    target = Descent(named_loss("squared"), 20, 0.3, 3, examples=10)
    network = squared_network(target, sharpness, "float64")
    net = Learner.of(network)
    rng = np.random.default_rng(5)
    worst = 0.0
    for _ in range(40):
        X = rng.uniform(-1, 1, (10, 3))
        prompt = net.prompt(X, rng.uniform(-1, 1, 10))
        bound = certificate_for_prompt(net.step, target, examples_of(prompt, 3)[0], prompt, "float64").bound
        found = _deviation(net, prompt)
        assert found <= bound
        worst = max(worst, found / bound)
    assert worst > 1 / 60


def test_the_same_weights_serve_any_number_of_examples_and_many_at_once(learner: Learner) -> None:
    sets = [regression(32, 5, seed) for seed in range(4)]
    prompts = np.stack([incontext.prompt(X, y) for X, y in sets])
    together = learner(prompts)
    assert together.shape == (4, 5)
    assert np.allclose(together, [learner(prompt) for prompt in prompts], rtol=0, atol=1e-12)
    assert learner(incontext.prompt(*regression(7))).shape == (5,)
    assert learner(prompts, path=True).shape == (4, 101, 5)
    as_tensor = learner(torch.from_numpy(prompts), path=True)
    assert isinstance(as_tensor, torch.Tensor)
    assert np.array_equal(as_tensor[:, -1].numpy(), together)


def test_it_converges_to_the_least_squares_solution() -> None:
    X, y = regression(50, 3)
    net = incontext.gradient_descent(steps=300, rate=1.0, features=3, examples=50)
    assert np.allclose(net(net.prompt(X, y)), np.linalg.lstsq(X, y, rcond=None)[0], rtol=0, atol=1e-8)


def test_a_learner_is_saved_loaded_and_checked(learner: Learner, tmp_path: Path) -> None:
    learner.save(tmp_path / "net.safetensors")
    again = ah.load(tmp_path / "net.safetensors")
    assert isinstance(again, Learner)
    prompt = incontext.prompt(*regression())
    assert np.array_equal(again(prompt), learner(prompt))
    assert again.certify(prompt).bound == learner.certify(prompt).bound
    assert ah.check(tmp_path / "net.safetensors").stated == learner.certificate.bound  # type: ignore[union-attr]


@pytest.mark.slow_for("key", "output", "value")
@pytest.mark.parametrize("part", ["query", "key", "value", "output", "skip"])
def test_a_tampered_learner_is_refused(learner: Learner, part: str) -> None:
    from dataclasses import replace

    embed, repeat, last = learner.layers
    assert isinstance(repeat, Repeat)
    attention = repeat.layers[0]
    rng = np.random.default_rng(0)
    prompt, refused = learner.prompt(rng.uniform(-1, 1, (8, 5)), rng.uniform(-1, 1, 8)), 0
    for _ in range(5):
        holder = attention.skip if part == "skip" else attention  # type: ignore[union-attr]
        array = np.array(holder.weight if part == "skip" else getattr(holder, part))
        place = tuple(rng.integers(0, side) for side in array.shape)
        array[place] += 1e-3
        changed = (
            replace(attention, skip=replace(holder, weight=array))
            if part == "skip"
            else replace(attention, **{part: array})
        )
        broken = Learner.of(learner.with_(layers=(embed, Repeat((changed,), repeat.times), last)))
        if np.array_equal(broken(prompt, outside="ignore"), learner(prompt)):
            continue  # what is read there is 0
        refused += 1
        with pytest.raises(CertificateError):
            ah.check(broken)
    assert refused


def test_a_rate_that_diverges_is_named_with_the_largest_safe_one() -> None:
    X, y = regression()
    net = incontext.gradient_descent(steps=10, rate=3.0, features=5)
    with pytest.raises(AnchorheadError, match=r"rate=3 is too large .* largest safe rate is") as error:
        net(net.prompt(X, y))
    named = float(str(error.value).split("largest safe rate is ")[1].split(";")[0])
    assert named == pytest.approx(safe_rate(X), rel=1e-3)
    with pytest.raises(AnchorheadError, match="too large"):
        net.certify(net.prompt(X, y))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda X, y: incontext.prompt(X * np.nan, y), "X has the entry nan"),
        (lambda X, y: incontext.prompt(X, y[:-1]), "X of shape"),
        (lambda X, y: incontext.prompt(X, y, loss="logistic"), "it takes 0 and 1"),
        (lambda X, y: incontext.prompt(X, y, loss="poisson"), "at least 0"),
        (lambda X, y: incontext.prompt(np.ones_like(X), y, standardise=True), "column 0 of X is constant"),
        (lambda X, y: incontext.prompt(X, y, loss="mean"), "loss='mean'"),
        (lambda X, y: incontext.gradient_descent(steps=3, rate=0.1, features=4)(incontext.prompt(X, y)), "4 features"),
        (lambda X, y: incontext.gradient_descent(steps=3, rate=0.1, features=5)(np.ones((6, 7))), "no prompt"),
        (lambda X, y: incontext.gradient_descent(steps=0, rate=0.1, features=5), "steps=0"),
        (lambda X, y: incontext.gradient_descent(steps=3, rate=-1, features=5), "rate=-1"),
        (lambda X, y: incontext.gradient_descent(steps=3, rate=0.1, features=5, momentum=1.0), "momentum=1.0"),
    ],
)
def test_bad_input_is_named(given: object, message: str) -> None:
    with pytest.raises(AnchorheadError, match=message):
        given(*regression())  # type: ignore[operator]


def test_prompts_beyond_the_certified_box_follow_outside(learner: Learner) -> None:
    X, y = regression(100)
    with pytest.warns(OutsideWarning, match="100 examples"):
        incontext.gradient_descent(steps=3, rate=0.1, features=5)(incontext.prompt(X, y))
    with pytest.raises(AnchorheadError, match="certificate covers up to 64"):
        learner(incontext.prompt(X, y), outside="raise")
    with pytest.raises(AnchorheadError, match="outside the box"):
        learner(incontext.prompt(X[:50], 5 * y[:50]), outside="raise")


def test_standardised_prompts_have_columns_of_mean_0_and_variance_1() -> None:
    X, y = regression()
    made = incontext.prompt(X * [1, 2, 3, 4, 5] + 7, y, standardise=True)
    assert np.allclose(made[:64, :5], X, atol=1e-12)


@pytest.mark.slow
def test_where_no_bound_holds_for_the_box_it_is_measured_and_says_why() -> None:
    net = incontext.gradient_descent(steps=25, rate=1.0, momentum=0.6, features=5, dtype="float32")
    assert net.certificate is not None
    assert net.certificate.kind == "measured"
    assert "Not proven: bounds are known for" in net.certificate.method
    assert net.descent.steps == 25
    X, y = regression()
    rate = 0.9 * safe_rate(X)
    net = incontext.gradient_descent(steps=25, rate=rate, momentum=0.6, features=5, dtype="float32")
    assert _deviation(net, net.prompt(X, y)) < 1e-2
