"""Any loss by score, link and collect: close to exact descent, within the certificate, for every prompt."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import anchorhead as ah
from anchorhead import incontext
from anchorhead.constructions.learners.certified import certificate_for_box
from anchorhead.constructions.learners.learner import Learner
from anchorhead.constructions.learners.networks import linked_network
from anchorhead.constructions.learners.written import step_of
from anchorhead.errors import AnchorheadError, CertificateError, OutsideWarning
from anchorhead.language.targets.descent import Descent
from anchorhead.language.targets.losses import Loss
from anchorhead.lemmas.learners.loop import most_rate
from anchorhead.network import Attention, Embed, Network, Repeat

from .data import AWKWARD, regression

RATES = {
    "squared": 0.3,
    "logistic": 0.5,
    "poisson": 0.05,
    "huber": 0.3,
    "absolute": 0.05,
    "quantile": 0.2,
    "hinge": 0.2,
    "own": 0.3,
}
OWN = "1.5*tanh(2*x) - 0.25"
EXTRAS: list[dict[str, Any]] = [
    {},
    {"decay": 0.2, "intercept": True},
    {"momentum": 0.3, "decay": 0.1},
    {"threshold": 0.05, "intercept": True},
]


def _loss(name: str) -> Loss:
    return incontext.link(OWN) if name == "own" else incontext.named_loss(name)


SCORES = {"squared": (-40.0, 40.0), "poisson": (-6.0, 3.0)}
SHARPNESS = {"float64": 2.0**-10, "float32": 2.0**-6}
POISSON_COLLECTS = 2.0**-4
"""Links of 20 take a sharpness that is lower by as much."""


@cache
def _learner(name: str) -> Learner:
    return incontext.gradient_descent(_loss(name), steps=50, rate=RATES[name], features=5, layout="transformer")


@cache
def _with_given_sharpness(name: str, dtype: str = "float64", extras: tuple[tuple[str, Any], ...] = ()) -> Learner:
    """12 steps, with no search for the best sharpness."""
    options = {"layout": "transformer", "scores": SCORES.get(name, (-3.0, 3.0)), **dict(extras)}
    target, h = Descent(_loss(name), 12, RATES[name], 5, **options), SHARPNESS[dtype]
    network = linked_network(target, dtype, h, h * POISSON_COLLECTS if name == "poisson" else h)
    y = {"logistic": 1.0, "hinge": 1.0}.get(name, 4.0)
    certificate = certificate_for_box(step_of(network, target), target, np.full(5, 4.0), y, dtype)
    return Learner.of(network.with_(certificate=certificate))


def _labels(loss: Loss, y: np.ndarray) -> np.ndarray:
    """Labels that the loss takes, from numbers."""
    match loss.labels:
        case "numbers":
            return y
        case "numbers of at least 0":
            return np.floor(np.exp(np.clip(y, -3, 1.5)))
        case _:
            return np.where(y > 0, 1.0, -1.0)


def _deviation(net: Learner, prompt: np.ndarray) -> float:
    ours = net(prompt, path=True, outside="ignore").astype(np.float64)
    return float(np.linalg.norm(ours - net.exact(prompt, path=True), axis=-1).max())


@pytest.mark.slow_for("poisson", "huber", "absolute", "own", "quantile")
@pytest.mark.parametrize("name", RATES)
def test_50_steps_stay_within_1e_6_of_exact_descent_and_that_is_proven(name: str) -> None:
    net = _learner(name)
    X, y = regression(40)
    prompt = net.prompt(X, _labels(_loss(name), y))
    assert _deviation(net, prompt) <= 1e-9
    assert net.certify(prompt).bound <= 1e-6
    assert net.certificate is not None
    assert net.certificate.kind == "proven"
    assert net.certificate.bound <= 1e-6


@pytest.mark.parametrize(
    ("name", "dtype", "other"),
    [
        pytest.param(name, dtype, other, marks=[pytest.mark.slow] if other else [])
        for name, dtype in [*((name, "float64") for name in RATES), ("logistic", "float32"), ("squared", "float32")]
        for other in (False, True)
    ],
)
def test_no_prompt_breaks_a_certificate(name: str, dtype: str, other: bool) -> None:
    """Every other prompt, for one loss those of even places and for the next the others."""
    loss = _loss(name)
    for number, awkward in enumerate(AWKWARD):
        if (number + list(RATES).index(name)) % 2 != other:
            continue
        extras = EXTRAS[number % len(EXTRAS)]
        net = _with_given_sharpness(name, dtype, tuple(extras.items()))
        (link,) = net.step.links
        allowed = (2.0 if name == "squared" else most_rate(net.descent.momentum)) / net.descent.rate
        allowed = (allowed - net.descent.decay) / link.facts.slope
        X, y = AWKWARD[awkward](np.random.default_rng(number))
        A = np.column_stack([X, np.ones(len(X))]) if net.descent.intercept else X
        X = X * min(1.0, 0.7 * np.sqrt(allowed / np.linalg.eigvalsh(A.T @ A / len(A))[-1]))
        prompt = net.prompt(X, _labels(loss, y))
        found = _deviation(net, prompt)
        assert net.certificate is None or found <= net.certificate.bound
        assert net.certificate is not None or dtype == "float32"
        assert found <= net.certify(prompt).bound


@pytest.mark.parametrize("name", ["logistic", "hinge", "huber"])
def test_the_bare_module_and_batches_give_the_same(name: str) -> None:
    net = _with_given_sharpness(name)
    sets = [regression(20, seed=seed) for seed in range(3)]
    prompts = np.stack([net.prompt(X, _labels(_loss(name), y)) for X, y in sets])
    with torch.no_grad():
        bare = net.module()(torch.from_numpy(prompts))[:, 0].numpy()
    assert np.abs(bare - net.exact(prompts)).max() <= 1e-10
    assert np.abs(net(prompts) - net.exact(prompts)).max() <= 1e-10


def test_examples_see_no_other_examples() -> None:
    net = _with_given_sharpness("logistic")
    X, y = regression(20)
    score, link, collect = net.attention(net.prompt(X, _labels(_loss("logistic"), y)))[:3]
    registers = 5
    assert score.shape[-1] == link.shape[-1] == registers + 1
    assert score.shape[-2] == 40 + registers + 1
    own = link[0, :20, 1:3].sum(axis=-1)
    assert np.array_equal(link[0, :20, 3:], np.zeros((20, 3)))
    assert np.abs(own - 1).max() <= 1e-15
    assert np.array_equal(collect[:, -1, 40:], np.zeros((2, registers + 1)))


def test_a_rate_that_is_too_large_is_named_with_the_largest_safe_one() -> None:
    net = incontext.gradient_descent("logistic", steps=5, rate=30.0, features=5)
    X, y = regression()
    with pytest.raises(AnchorheadError, match=r"rate=30 is too large .* logistic loss diverges. The largest safe rate"):
        net(net.prompt(X, (y > 0).astype(float)))


@pytest.mark.parametrize(
    ("name", "labels", "message"),
    [
        ("logistic", [0.0, 1.0, 2.0], "0 and 1, or -1 and 1"),
        ("poisson", [0.0, -1.0, 2.0], "at least 0"),
        ("hinge", [0.0, 1.0, 1.0], "-1 and 1"),
    ],
)
def test_labels_that_a_loss_does_not_take_are_refused(name: str, labels: list[float], message: str) -> None:
    with pytest.raises(AnchorheadError, match=message):
        _learner(name).prompt(np.eye(3, 5), np.array(labels))


def test_scores_beyond_the_range_are_named() -> None:
    net = incontext.gradient_descent("poisson", steps=10, rate=0.05, features=2, scores=(-1, 1))
    prompt = net.prompt(np.array([[1.0, 0.5], [2.0, -1.0], [-1.0, 1.0]]), np.array([5.0, 9.0, 0.0]))
    with pytest.warns(OutsideWarning, match=r"the link's argument reaches from .* serves from -1 to 1"):
        net(prompt)
    with pytest.raises(CertificateError, match=r"the scores s of this prompt reach .* build with scores="):
        net.certify(prompt)


@pytest.mark.slow
def test_a_huber_loss_needs_no_range() -> None:
    net = incontext.gradient_descent("huber", steps=10, rate=0.1, features=2, delta=1.0, labels=(-1000, 1000))
    rng = np.random.default_rng(0)
    prompt = net.prompt(rng.uniform(-1, 1, (30, 2)), rng.uniform(-1000, 1000, 30))
    assert _deviation(net, prompt) <= net.certify(prompt).bound <= 1e-7


@pytest.mark.slow
def test_a_link_that_falls_is_proven_with_errors_that_grow() -> None:
    net = incontext.gradient_descent(
        incontext.link("sin(x)"), steps=15, rate=0.3, features=3, scores=(-3, 3), labels=(-2, 2)
    )
    X, y = regression(30, 3)
    prompt = net.prompt(X, np.clip(y, -2, 2))
    assert net.certificate is not None
    assert net.certificate.kind == "proven"
    assert _deviation(net, prompt) <= net.certify(prompt).bound <= 1e-6


@pytest.mark.slow
def test_momentum_and_a_threshold_at_once_are_measured() -> None:
    net = incontext.gradient_descent("logistic", steps=4, rate=0.3, features=2, momentum=0.5, threshold=0.1)
    assert net.certificate is not None
    assert net.certificate.kind == "measured"


def test_a_saved_learner_is_checked_and_a_changed_one_is_refused(tmp_path: Path) -> None:
    net = _with_given_sharpness("hinge")
    net.save(tmp_path / "net.safetensors")
    loaded = ah.load(tmp_path / "net.safetensors")
    assert isinstance(loaded, Learner)
    ah.check(loaded)
    repeat = net.layers[1]
    assert isinstance(repeat, Repeat)
    for place, layer in enumerate(repeat.layers):
        assert isinstance(layer, Attention)
        for name in (("query", "value"), ("key", "output"))[place % 2]:
            weights = np.array(getattr(layer, name))
            weights.ravel()[np.flatnonzero(weights)[0]] *= 1.5
            steps = [replace(one, **{name: weights}) if k == place else one for k, one in enumerate(repeat.layers)]
            with pytest.raises(CertificateError):
                ah.check(_rebuilt(net, Repeat(tuple(steps), repeat.times), net.embed))
    assert net.embed.registers is not None
    registers = np.array(net.embed.registers)
    registers[1, np.flatnonzero(registers[1])[-1]] *= 1.01
    with pytest.raises(CertificateError):
        ah.check(_rebuilt(net, repeat, replace(net.embed, registers=registers)))


def _rebuilt(net: Learner, repeat: Repeat, embed: Embed) -> Network:
    return Network([embed, repeat, net.layers[2]], net.output, net.program, net.certificate, derivation=net.derivation)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "huber", "delta": -1.0}, "delta=-1.0: the huber loss takes a number above 0"),
        ({"loss": "huber", "q": 0.5}, "does not take q"),
        ({"loss": incontext.link("x"), "q": 0.5}, "parameters go with the name"),
        ({"loss": "logistic", "layout": "direct"}, 'layout="direct" is for the squared loss'),
        ({"loss": "logistic", "scores": (3, 1)}, "lower end"),
    ],
)
def test_what_cannot_be_built_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(AnchorheadError, match=message):
        incontext.gradient_descent(steps=2, rate=0.1, features=2, **options)


def test_links_of_large_values_are_proven_and_verified() -> None:
    """exp(14) times the sharpness is not small beside what lowers those who are no examples: but their links are 0."""
    net = incontext.gradient_descent(
        "poisson", steps=2, rate=1e-9, features=2, on=(-1, 1), examples=3, scores=(-6, 14), progress=False
    )
    assert net.certificate is not None
    assert net.certificate.kind == "proven"
    ah.check(net)
    prompt = net.prompt(np.array([[0.5, -0.25], [1.0, 0.1], [-0.75, 1.0]]), np.array([1.0, 0.0, 3.0]))
    assert _deviation(net, prompt) <= net.certify(prompt).bound
