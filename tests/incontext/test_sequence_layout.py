"""The sequence layout: anchors for each example, and what is proven of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import anchorhead as ah
from anchorhead import incontext
from anchorhead.checking import check
from anchorhead.constructions.learners.learner import Learner
from anchorhead.errors import AnchorheadError, CertificateError
from anchorhead.language.targets.descent import Descent
from anchorhead.network import Attention, Embed, Repeat

from .data import AWKWARD, regression
from .sequences import sequence_network

N, D, STEPS = 24, 3, 50
OWN = incontext.link("x**3/3 + x/2", name="own")
RATES = {
    "squared": 0.3,
    "logistic": 1.0,
    "poisson": 0.05,
    "huber": 0.3,
    "absolute": 0.04,
    "quantile": 0.1,
    "hinge": 0.1,
}
SCORES = {"poisson": (-4.0, 3.0), "own": (-4.0, 4.0)}


def learner(name: str, examples: int = N, steps: int = STEPS, dtype: str = "float64", **extras: float) -> Learner:
    loss = OWN if name == "own" else incontext.named_loss(name)
    rate = extras.pop("rate", RATES.get(name, 0.05))
    target = Descent(loss, steps, rate, D, examples=examples, layout="sequence", scores=SCORES.get(name), **extras)
    return Learner.of(sequence_network(target, dtype, labels=4.0))


def labels_for(name: str, X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    match name:
        case "logistic":
            return (y > 0).astype(float)
        case "hinge":
            return np.where(y > 0, 1.0, -1.0)
        case "poisson":
            return rng.poisson(np.exp(np.clip(X[:, 0] / 2, -2, 1))).clip(0, 4).astype(float)
        case _:
            return y


@pytest.mark.slow_for("poisson", "own", "huber")
@pytest.mark.parametrize("name", [*RATES, "own"])
def test_fifty_steps_stay_within_a_millionth_of_exact_descent_and_within_the_proven_bound(name):
    X, y = regression(N, D)
    net = learner(name, decay=0.01)
    prompt = net.prompt(X, labels_for(name, X, y, np.random.default_rng(0)))
    deviation = np.abs(net(prompt, path=True) - net.exact(prompt, path=True)).max()
    bound = net.certify(prompt).bound
    assert deviation <= bound <= 1e-6
    assert np.abs(net.exact(prompt)).max() > 0.05


@pytest.mark.slow_for("logistic-float32", "squared-float64", "huber-float64")
@pytest.mark.parametrize(
    ("name", "dtype"), [("squared", "float64"), ("logistic", "float32"), ("hinge", "float64"), ("huber", "float64")]
)
def test_awkward_prompts_do_not_break_the_bound(name, dtype):
    rng = np.random.default_rng(3)
    certified = 0
    for make in AWKWARD.values():
        X, y = make(rng)
        net = learner(name, examples=len(X), steps=6, dtype=dtype)
        prompt = net.prompt(X[:, :D] / 4, labels_for(name, X, y, rng))
        try:
            bound = net.certify(prompt).bound
        except AnchorheadError:
            continue  # too large a rate, or arguments beyond the range
        certified += 1
        found = net(prompt, outside="ignore", path=True).astype(np.float64)
        assert np.abs(found - net.exact(prompt, path=True)).max() <= bound
    assert certified >= 4


@pytest.mark.parametrize("name", ["squared", "logistic", "huber"])
def test_momentum_decay_and_an_intercept_are_bounded_too(name):
    X, y = regression(N, D)
    net = learner(name, steps=20, momentum=0.5, decay=0.1, intercept=True, rate=0.2)
    prompt = net.prompt(X, labels_for(name, X, y, np.random.default_rng(0)))
    deviation = np.abs(net(prompt, path=True) - net.exact(prompt, path=True)).max()
    assert deviation <= net.certify(prompt).bound <= 1e-7


def test_links_at_their_kinks_keep_to_the_bound():
    """Huber's kinks at 1.35: labels at and next to them, for a first step whose residuals are minus the labels."""
    near = np.array([1.35, -1.35, 1.35 + 1e-11, 1.35 - 1e-11, -1.35 - 1e-12, 2.0])
    net = learner("huber", examples=6, steps=3)
    X = np.random.default_rng(0).uniform(-1, 1, (6, D))
    prompt = net.prompt(X, near)
    deviation = np.abs(net(prompt, path=True) - net.exact(prompt, path=True)).max()
    assert 0 < deviation <= net.certify(prompt).bound


def test_a_falling_line_is_not_taken_for_a_convex_loss():
    loss = incontext.link("-x")
    target = Descent(loss, 12, 0.5, D, examples=4, layout="sequence", scores=(-64.0, 64.0))
    net = Learner.of(sequence_network(target, "float32"))
    X = np.random.default_rng(1).uniform(-1, 1, (4, D))
    prompt = net.prompt(X, np.array([1.0, -1.0, 0.5, 0.25]))
    found = net(prompt, outside="ignore", path=True).astype(np.float64)
    assert np.abs(found - net.exact(prompt, path=True)).max() <= net.certify(prompt).bound


def test_the_certificate_of_a_box_holds_and_is_checked_from_a_file(tmp_path):
    net = incontext.gradient_descent(
        "logistic", layout="sequence", steps=10, rate=0.5, features=D, on=(-1, 1), examples=8
    )
    assert net.certificate is not None
    assert net.certificate.kind == "proven"
    assert net.certificate.bound <= 1e-10
    check(net)
    net.save(tmp_path / "learner.safetensors")
    loaded = ah.load(tmp_path / "learner.safetensors")
    check(loaded)
    rng = np.random.default_rng(0)
    for _ in range(20):
        X = rng.choice([-1.0, 1.0, 0.3], (8, D))
        prompt = net.prompt(X, rng.integers(0, 2, 8).astype(float))
        assert np.abs(loaded(prompt) - net.exact(prompt)).max() <= net.certificate.bound


def test_a_register_sees_the_anchors_of_its_own_example_and_nothing_else():
    net = learner("logistic", examples=5, steps=1)
    X, y = regression(5, D)
    link, mean = net.attention(net.prompt(X, (y > 0).astype(float)))
    anchors = link.shape[-1] // 5 - 1
    for head in link:
        own = np.zeros((5, 5, anchors), bool)
        own[np.arange(5), np.arange(5)] = True
        assert (head[:, : 5 * anchors].reshape(5, 5, anchors)[~own] == 0).all()
        assert (head[:, 5 * anchors :] == 0).all()
        assert np.allclose(head.sum(axis=1), 1)
    assert np.allclose(mean, 1 / 5)


def test_changed_weights_are_not_certified():
    net = learner("huber", examples=4, steps=2)
    embed, repeat, last = net.layers
    assert isinstance(embed, Embed)
    assert isinstance(repeat, Repeat)
    wrong = embed.weight.copy()
    wrong[5, 0, 0] *= 1 + 1e-9
    with pytest.raises(CertificateError, match="not the network of the learner that its derivation describes"):
        _ = net.with_(layers=(replace(embed, weight=wrong), repeat, last)).step
    link = repeat.layers[0]
    assert isinstance(link, Attention)
    query = link.query.copy()
    query[query < 0] /= 2**30
    nearer = Repeat((replace(link, query=query), repeat.layers[1]), repeat.times)
    X, y = regression(4, D)
    with pytest.raises(AnchorheadError, match="nothing can be said"):
        net.with_(layers=(embed, nearer, last)).certify(net.prompt(X, y))


def test_what_is_too_large_or_not_known_is_refused_with_its_size():
    with pytest.raises(AnchorheadError, match=r"100,000 examples with 2 anchors each .* weights: at most"):
        learner("hinge", examples=100_000)
    with pytest.raises(AnchorheadError, match="no threshold"):
        learner("squared", threshold=0.1)
    with pytest.raises(AnchorheadError, match="of 4 examples: this layout was built for 5"):
        learner("hinge", examples=5)(learner("hinge", examples=4).prompt(np.eye(4, D), np.ones(4)), outside="ignore")
