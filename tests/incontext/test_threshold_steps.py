"""The soft threshold as a layer: within its bound on the whole line, and lasso's path within its certificate."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import anchorhead as ah
from anchorhead import incontext
from anchorhead.constructions.learners.certified import certificate_for_box
from anchorhead.constructions.learners.learner import Learner
from anchorhead.constructions.learners.networks import clip_of, squared_network
from anchorhead.constructions.learners.written import step_of
from anchorhead.errors import AnchorheadError, CertificateError
from anchorhead.language.targets.descent import Descent
from anchorhead.language.targets.losses import named_loss
from anchorhead.lemmas.learners.box import bound_for_box
from anchorhead.lemmas.learners.prompt import bound_for_prompt
from anchorhead.lemmas.learners.threshold import NotKnown, clip_error
from anchorhead.network import Attention, Linear, Network, Repeat
from anchorhead.proof.arithmetic.arithmetic import arithmetic_of

from .data import AWKWARD, regression, safe_rate

SHARPNESS = {"float64": 2.0**-9, "float32": 2.0**-7}


def _target(steps: int = 100, rate: float = 0.3, features: int = 5, **extras: Any) -> Descent:
    return Descent(named_loss("squared"), steps, rate, features, **extras)


def _learner(target: Descent, dtype: str = "float64") -> Learner:
    return Learner.of(squared_network(target, SHARPNESS[dtype], dtype))


def _thresholded(network: Network, w: np.ndarray) -> np.ndarray:
    """What the threshold's layer alone makes of w, an entry a state."""
    repeat = network.layers[1]
    assert isinstance(repeat, Repeat)
    assert network.embed.states is not None
    states = np.repeat(network.embed.states, len(w), axis=0)
    states[:, 4] = w
    embed = replace(network.embed, states=states)
    return Network([embed, Repeat(repeat.layers[-1:], 1), network.layers[2]], output="state")(np.zeros((2, 3)))[:, 0]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("rate", "threshold"), [(0.3, 0.1), (0.7, 1e-9)])
def test_the_threshold_keeps_to_its_bound_near_kinks_and_far_beyond(dtype: str, rate: float, threshold: float) -> None:
    target = _target(1, rate, 1, threshold=threshold)
    network = squared_network(target, 2.0**-8, dtype)
    clip = step_of(network, target).collect.clip  # type: ignore[union-attr]
    assert clip is not None
    tau = rate * threshold
    near = np.geomspace(1e-18, 10, 500)
    far = 10.0 ** np.random.default_rng(0).uniform(-20, 6, 500)
    sizes = np.concatenate([tau * (1 - near), tau * (1 + near), tau * near, tau * np.linspace(0, 3, 1000), far])
    w = np.concatenate([sizes, -sizes]).astype(dtype)
    found = _thresholded(network, w)
    kink = Fraction(rate) * Fraction(threshold)
    exact = [Fraction(float(one)) - max(min(Fraction(float(one)), kink), -kink) for one in w]
    error = np.array([abs(float(a - Fraction(float(b)))) for a, b in zip(exact, found, strict=True)])
    assert (
        error <= clip_error(clip, rate, threshold).after(np.abs(w.astype(np.float64)), target, arithmetic_of(dtype))
    ).all()
    assert error[np.abs(w) < 2 * tau].max() <= {"float64": 1e-12, "float32": 3e-6}[dtype] * tau


@pytest.mark.parametrize(("n", "d"), [(64, 5), (500, 8)])
@pytest.mark.parametrize("extras", [{}, {"decay": 0.1, "intercept": True}])
def test_lasso_and_elastic_net_stay_within_1e_9_and_1e_8_is_proven(n: int, d: int, extras: dict[str, Any]) -> None:
    X, y = regression(n, d)
    net = _learner(_target(rate=0.3, features=d, threshold=0.1, examples=n, **extras))
    prompt = net.prompt(X, y)
    found, exact = (one(prompt, path=True) for one in (net, net.exact))
    assert np.abs(found - exact).max() <= 1e-9
    assert np.abs(found - exact).max() <= net.certify(prompt).bound <= 2e-8
    assert (exact[-1] == 0).any()
    assert np.abs(found[-1][exact[-1] == 0]).max() <= 1e-12


@pytest.mark.slow_for(
    "float64-entries at the corners",
    "float64-fewer examples than features",
    "float32-fewer examples than features",
    "float32-the same column twice",
    "float64-one example",
    "float32-one example",
    "float64-one label far out",
    "float64-the same column twice",
    "float64-tiny entries",
)
@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_no_prompt_breaks_the_certificate_of_lasso(name: str, dtype: str) -> None:
    for threshold, decay in ((0.1, 0.0), (0.1, 0.3)):
        for seed in range(1):
            X, y = AWKWARD[name](np.random.default_rng(seed))
            X = X * np.sqrt(min(1.0, 0.95 * safe_rate(X, True, decay=decay) / 0.3)) if X.any() else X
            net = _learner(_target(25, 0.3, threshold=threshold, decay=decay), dtype)
            prompt = net.prompt(X, y)
            found = net(prompt, path=True, outside="ignore")
            distance = np.linalg.norm(found - net.exact(prompt, path=True), axis=1).max()
            assert distance <= net.certify(prompt).bound


def test_the_certificate_of_a_box_covers_its_prompts_and_is_checked_again() -> None:
    net = incontext.gradient_descent(steps=30, rate=0.3, features=2, threshold=0.1, on=(-1, 1), labels=(-1, 1))
    assert net.certificate is not None
    assert net.certificate.kind == "proven"
    rng = np.random.default_rng(0)
    for _ in range(20):
        n = int(rng.integers(1, 64))
        prompt = net.prompt(rng.uniform(-1, 1, (n, 2)), rng.uniform(-1, 1, n))
        assert np.abs(net(prompt) - net.exact(prompt)).max() <= net.certificate.bound
    ah.check(net)


def test_a_bound_holds_at_every_step_and_not_at_the_last_alone() -> None:
    """Labels that are fitted at once: the errors of the first steps are the largest, and later steps forget them."""
    X = np.array([[1.0, 1, 1], [1, -1, 1], [1, 1, -1], [1, -1, -1]])
    net = _learner(_target(40, 0.7, 3, threshold=1e-9))
    prompt = net.prompt(X, X @ [2.0, -1, 1])
    found = np.linalg.norm(net(prompt, path=True) - net.exact(prompt, path=True), axis=1)
    assert found.max() <= net.certify(prompt).bound
    assert found.max() > 100 * found[-1]


def test_momentum_with_a_threshold_follows_exact_steps_but_is_only_measured() -> None:
    target = _target(60, 0.1, threshold=0.2, momentum=0.8, decay=0.05, intercept=True)
    net = _learner(target)
    prompt = net.prompt(*regression())
    assert np.abs(net(prompt, path=True) - net.exact(prompt, path=True)).max() <= 1e-9
    step, model = net.step, arithmetic_of("float64")
    with pytest.raises(NotKnown, match="no bound is known"):
        bound_for_box(step, target, np.ones(6), 1.0, model)
    with pytest.raises(NotKnown, match="no bound is known"):
        bound_for_prompt(step, target, np.ones((1, 6)), np.ones(1), model)


def test_the_thresholds_cost_does_not_depend_on_the_examples() -> None:
    net = _learner(_target(3, threshold=0.1))
    threshold = list(net.module().attentions())[-1]
    assert threshold.logits(10) == threshold.logits(10_000)


def _changed(net: Learner, change: str) -> Network:
    embed, repeat, read = net.layers
    assert isinstance(repeat, Repeat)
    first, last = repeat.layers
    assert isinstance(first, Attention)
    assert isinstance(last, Attention)
    assert first.skip is not None
    registers, states = net.embed.registers.copy(), net.embed.states.copy()  # type: ignore[union-attr]
    match change:
        case "a state sees itself":
            states[:, -2] = 0
        case "a register is an example":
            registers[0, 7] = 0
        case "an anchor takes over too late":
            registers[:, -3] = np.where(np.abs(registers[:, -3]) > 1e9, 1e-10 * registers[:, -3], registers[:, -3])
            registers[:, -2] = np.where(np.abs(registers[:, -2]) > 1e9, 1e-10 * registers[:, -2], registers[:, -2])
        case "the intercept is shrunk":
            query = last.query.copy()
            query[0, 0] = np.roll(query[0, 0], 1)
            last = replace(last, query=query)
        case "anchors change on the way":
            skip = first.skip.weight.copy()
            skip[-1, -1] = 0.5
            first = replace(first, skip=Linear(skip, features=first.features))
        case "no mask":
            last = replace(last, mask=None)
    embed = replace(net.embed, registers=registers, states=states)
    return Network(
        [embed, Repeat((first, last), repeat.times), read],
        output="state",
        program=net.program,
        derivation=net.derivation,
    )


@pytest.mark.parametrize(
    "change",
    [
        "a state sees itself",
        "a register is an example",
        "an anchor takes over too late",
        "the intercept is shrunk",
        "anchors change on the way",
        "no mask",
    ],
)
def test_a_network_with_another_threshold_has_no_proof(change: str) -> None:
    target = _target(3, threshold=0.1)
    net = _learner(target)
    network = _changed(net, change)
    with pytest.raises(CertificateError):
        certificate_for_box(step_of(network, target), target, np.ones(5), 1.0, "float64")


def test_a_smaller_value_of_an_anchor_is_seen_in_the_bound() -> None:
    target = _target(3, threshold=0.1)
    net = _learner(target)
    registers = net.embed.registers.copy()  # type: ignore[union-attr]
    registers[:, -1] *= 0.999
    network = Network(
        [replace(net.embed, registers=registers), *net.layers[1:]],
        output="state",
        program=net.program,
        derivation=net.derivation,
    )
    clip = step_of(network, target).collect.clip  # type: ignore[union-attr]
    assert clip is not None
    assert clip_error(clip, target.rate, target.threshold).exact >= 0.000999 * 0.03


def test_a_clip_whose_anchors_all_rise_has_no_proof() -> None:
    """Far below 0 all of its logits would be lower than that of the state, which holds no anchor."""
    target = _target(3, threshold=0.1)
    clip = clip_of(target, "float64")
    assert clip is not None
    wrong = replace(clip, slopes=clip.slopes - clip.slopes[0] + 1)
    with pytest.raises(CertificateError, match="no anchor on one side"):
        clip_error(wrong, target.rate, target.threshold)


def test_a_threshold_too_small_for_the_dtype_is_named() -> None:
    with pytest.raises(AnchorheadError, match="threshold=1e-25"):
        squared_network(_target(threshold=1e-25), 2.0**-5, "float32")


def test_a_prompt_of_some_of_the_examples_is_a_minibatch() -> None:
    X, y = regression()
    net = _learner(_target(10, threshold=0.1))
    assert np.array_equal(net(net.prompt(X[:20], y[:20])), net(net.prompt(X, y)[[*range(20), *range(64, 84)]]))
