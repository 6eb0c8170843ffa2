"""Links g(s, y) that are truly of two variables, by a grid, in both layouts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from anchorhead import incontext
from anchorhead.checking import check
from anchorhead.constructions.learners.learner import Learner
from anchorhead.constructions.learners.networks import linked_network
from anchorhead.errors import AnchorheadError, CertificateError
from anchorhead.language.targets.descent import Descent
from anchorhead.network import Attention, Repeat

from .data import regression
from .sequences import sequence_network

TEXT = "s + sin(s)/2 + s*y**2/4 - y"
LINK = incontext.link(TEXT, "g(s, y)")
FEW = {"rate": 0.2, "scores": (-2.0, 2.0), "labels": 1.0}


def learner(layout: str, examples: int = 8, steps: int = 50, dtype: str = "float64", **extras: object) -> Learner:
    chosen = {**FEW, **extras}
    target = Descent(LINK, steps, features=2, examples=examples, layout=layout, **chosen)
    if layout == "sequence":
        return Learner.of(sequence_network(target, dtype))
    return Learner.of(linked_network(target, dtype, *((2.0**-11, 2.0**-10) if dtype == "float64" else (0.125, 0.125))))


def data(n: int = 8) -> tuple[np.ndarray, np.ndarray]:
    X, y = regression(n, 2)
    return X / 2, y.clip(-1, 1)


@pytest.mark.parametrize("layout", ["sequence", "transformer"])
def test_fifty_steps_stay_within_a_millionth_of_exact_descent_and_within_the_proven_bound(layout):
    net = learner(layout)
    prompt = net.prompt(*data())
    deviation = np.abs(net(prompt, path=True) - net.exact(prompt, path=True)).max()
    assert deviation <= net.certify(prompt).bound <= 1e-6
    assert deviation <= 1e-6
    assert np.abs(net.exact(prompt)).max() > 0.1


@pytest.mark.parametrize("layout", ["sequence", "transformer"])
def test_prompts_of_all_kinds_keep_to_the_bound(layout):
    net = learner(layout, steps=5)
    rng = np.random.default_rng(0)
    for _ in range(12):
        X = rng.choice([-1.0, 1.0, 0.0, 1e-6], (8, 2)) if rng.random() < 0.5 else rng.uniform(-1, 1, (8, 2))
        y = rng.choice([-1.0, 1.0, 0.0], 8) if rng.random() < 0.5 else rng.uniform(-1, 1, 8)
        prompt = net.prompt(X, y)
        deviation = np.abs(net(prompt, outside="ignore", path=True) - net.exact(prompt, path=True)).max()
        assert deviation <= net.certify(prompt).bound


@pytest.mark.slow
def test_a_box_is_proven_and_checked_again():
    net = incontext.gradient_descent(
        LINK, steps=10, rate=0.2, features=2, scores=(-2, 2), on=(-1, 1), labels=(-1, 1), examples=8
    )
    assert net.certificate is not None
    assert net.certificate.kind == "proven"
    assert net.certificate.bound <= 1e-5
    assert "keeps s between" in str(net.certificate)
    check(net)
    prompt = net.prompt(*data())
    assert np.abs(net(prompt, outside="ignore") - net.exact(prompt)).max() <= net.certificate.bound


def test_copies_of_sign_minus_one_read_the_grid_by_their_own_head_alone():
    net = learner("transformer", steps=1)
    prompt = net.prompt(*data())
    _, grid, _ = net.attention(prompt)
    off = net.layers[1].layers[1].grid[1]  # type: ignore[union-attr]
    points = grid.shape[-1] - 1  # the reference of scores is no point
    on = grid[..., : points - off].sum(axis=-1)
    assert (on[0, 8:16] == 0).all()
    assert (on[1, :8] == 0).all()
    assert (on[:, 16:] == 0).all()
    assert np.allclose(on[0, :8], 1)
    assert np.allclose(on[1, 8:16], 1)


@pytest.mark.parametrize("layout", ["sequence", "transformer"])
def test_momentum_decay_and_an_intercept_are_bounded_too(layout):
    net = learner(layout, steps=6, momentum=0.3, decay=0.1, intercept=True)
    prompt = net.prompt(*data())
    deviation = np.abs(net(prompt, path=True) - net.exact(prompt, path=True)).max()
    assert deviation <= net.certify(prompt).bound <= 1e-6


def test_a_threshold_is_one_more_layer():
    net = learner("transformer", steps=6, threshold=0.05)
    prompt = net.prompt(*data())
    deviation = np.abs(net(prompt, path=True) - net.exact(prompt, path=True)).max()
    assert deviation <= net.certify(prompt).bound <= 1e-6


def test_labels_and_scores_beyond_what_was_stated_are_not_certified():
    X, y = data()
    for layout in ("sequence", "transformer"):
        net = learner(layout, steps=5)
        with pytest.raises(AnchorheadError, match="labels"):
            net.certify(net.prompt(X, 2 * y))
        with pytest.raises(AnchorheadError, match=r"serves from|leave the range"):
            net.certify(net.prompt(8 * X, y))


def test_changed_weights_are_not_certified():
    net = learner("transformer", steps=2)
    embed, repeat, last = net.layers
    assert isinstance(repeat, Repeat)
    score, grid, collect = repeat.layers
    assert isinstance(grid, Attention)
    heads = grid.output.copy()
    heads[1] *= -1
    wrong = Repeat((score, replace(grid, output=heads), collect), repeat.times)
    with pytest.raises(CertificateError, match="not the network of the learner that its derivation describes"):
        _ = net.with_(layers=(embed, wrong, last)).step
    registers = embed.registers.copy()  # type: ignore[union-attr]
    registers[3, -4] *= 1 + 1e-12
    with pytest.raises(CertificateError):
        _ = net.with_(layers=(replace(embed, registers=registers), repeat, last)).step


def test_a_kink_inside_the_box_is_refused_by_name():
    kinked = incontext.link("abs(s - y)", "g(s, y)")
    target = Descent(kinked, 2, 0.1, 2, examples=4, layout="sequence", scores=(-2.0, 2.0), labels=4.0)
    with pytest.raises(AnchorheadError, match="kink inside the box"):
        sequence_network(target, "float64")
