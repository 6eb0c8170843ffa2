"""A network must be the one that is written from the free numbers in it: all else is refused, or keeps to its bound."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from anchorhead import incontext
from anchorhead.constructions.learners.learner import Learner
from anchorhead.constructions.learners.written import network_of, step_of
from anchorhead.errors import AnchorheadError, CertificateError
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.lemmas.learners.average import Average
from anchorhead.lemmas.learners.links import Anchors
from anchorhead.lemmas.learners.steps import (
    ScoreLinks,
    SequenceLinks,
    Step,
    linked_step,
    sequence_step,
    squared_step,
)
from anchorhead.network import Attention, Repeat
from anchorhead.verify.learners.target import read_descent
from anchorhead.verify.programs.program import read_program
from tests.verify.learners.learner_files import largest_error, loaded, tampered
from tests.verify.learners.test_learners import data, learner, stored

NAMES = ("squared, float32", "lasso", "logistic", "squared, sequence", "two variables", "momentum")


@pytest.mark.parametrize("count", [8, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", NAMES)
def test_what_is_accepted_keeps_to_its_bound(name: str, count: int) -> None:
    file, net, rng = stored(name), learner(name), np.random.default_rng(count)
    target, prompt = read_descent(read_program(file)), np.asarray(net.prompt(*data(name, 2)))
    refused = 0
    for _ in range(count):
        other = tampered(file, rng)
        try:
            changed = loaded(other)
            bound = changed.certify(prompt, progress=False).bound  # type: ignore[attr-defined]
        except AnchorheadError:
            refused += 1
            continue
        path = changed(prompt, path=True, outside="ignore")  # type: ignore[call-arg]
        assert largest_error(path, target, prompt) <= bound
    assert refused >= count // 3


@cache
def logistic() -> Learner:
    return incontext.gradient_descent(
        "logistic", steps=2, rate=0.05, features=2, intercept=True, on=(-1, 1), examples=3, progress=False
    )


def _with(number: int, **changes: Any) -> Learner:
    embed, repeat, last = logistic().layers
    assert isinstance(repeat, Repeat)
    layers = list(repeat.layers)
    layers[number] = replace(layers[number], **changes)  # type: ignore[type-var]
    return logistic().with_(layers=(embed, Repeat(tuple(layers), repeat.times), last))


def _layer(number: int) -> Attention:
    repeat = logistic().layers[1]
    assert isinstance(repeat, Repeat)
    layer = repeat.layers[number]
    assert isinstance(layer, Attention)
    return layer


def test_features_in_another_order_are_not_the_network_of_the_descent() -> None:
    """What it computes is the same: but of such a network nothing is proven here."""
    net = logistic()
    _, repeat, last = net.layers
    assert isinstance(repeat, Repeat)
    order = np.random.default_rng(0).permutation(len(net.embed.weight))
    layers = [
        replace(
            layer,
            **{name: getattr(layer, name)[..., order] for name in ("query", "key", "value")},
            output=layer.output[:, order],
            skip=replace(layer.skip, weight=layer.skip.weight[order][:, order]),
        )
        for layer in (_layer(number) for number in range(3))
        if layer.skip is not None
    ]
    assert net.embed.registers is not None
    assert net.embed.states is not None
    first = replace(
        net.embed,
        weight=net.embed.weight[order],
        bias=net.embed.bias[order],
        registers=net.embed.registers[:, order],
        states=net.embed.states[:, order],
    )
    moved = net.with_(layers=(first, Repeat(tuple(layers), repeat.times), replace(last, weight=last.weight[:, order])))  # type: ignore[union-attr, type-var]
    prompt = net.prompt(*(np.array([[0.5, -0.25], [0.1, 1.0]]), np.array([1.0, -1.0])))
    assert np.array_equal(moved(prompt), net(prompt))
    with pytest.raises(CertificateError, match="not the network of the learner that its derivation describes"):
        moved.certify(prompt)


def test_a_factor_that_vanishes_and_comes_back_is_refused() -> None:
    """Keys times 2^-600 and queries times 2^600 have the same logits, but keys may underflow."""
    layer = _layer(2)
    scaled = _with(2, query=2.0**600 * layer.query, key=2.0**-600 * layer.key)
    with pytest.raises(CertificateError):
        _ = scaled.step


def test_rows_that_are_seen_by_rows_are_refused() -> None:
    for number in (0, 1):
        with pytest.raises(CertificateError):
            _ = _with(number, mask=None).step


def test_a_skip_that_moves_a_flag_is_refused() -> None:
    skip = _layer(0).skip
    assert skip is not None
    weight = np.array(skip.weight)
    weight[4, 5] = 1.0
    with pytest.raises(CertificateError):
        _ = _with(0, skip=replace(skip, weight=weight)).step


@pytest.mark.parametrize("name", NAMES)
def test_the_step_of_a_saved_network_is_the_one_it_was_built_from(name: str) -> None:
    net, found = learner(name), loaded(stored(name))
    assert isinstance(found, Learner)
    prompt = net.prompt(*data(name, 2))
    assert found.certify(prompt, progress=False) == net.certify(prompt, progress=False)


def test_networks_of_other_layers_are_no_learners() -> None:
    net = logistic()
    embed, repeat, last = net.layers
    assert isinstance(repeat, Repeat)
    for layers in (
        (embed, last),
        (embed, *repeat.layers, last),
        (embed, Repeat(repeat.layers[1:], repeat.times), last),
    ):
        with pytest.raises(CertificateError, match="a step is not of 3 attentions"):
            _ = net.with_(layers=layers).step
    with pytest.raises(CertificateError, match="not all of its tokens have"):
        step_of(net, replace(net.descent, features=1))


def test_a_sharpness_that_is_no_power_of_two_is_refused() -> None:
    layer = _layer(2)
    with pytest.raises(CertificateError, match="no power of two"):
        _ = _with(2, query=np.where(np.abs(layer.query) < 1, 1.5 * layer.query, layer.query)).step


def test_anchors_that_are_lowered_too_little_are_refused() -> None:
    step = logistic().step
    assert isinstance(step, ScoreLinks)
    with pytest.raises(CertificateError, match="within reach of scores"):
        linked_step(logistic().descent, step.links[0].held, 2.0**4, step.scoring, step.collect, "float64")


def _louder(held: Anchors) -> Anchors:
    if isinstance(held, GridAtom):
        return replace(held, values=1.001 * held.values)
    return tuple(replace(part, values=1.001 * part.values) for part in held)


def _other(net: Learner) -> Step:
    """The step of a learner whose link is off by a thousandth, or with heads so blunt that it shows."""
    step, target = net.step, net.descent
    if isinstance(step, ScoreLinks):
        return linked_step(target, _louder(step.links[0].held), step.far, step.scoring, step.collect, net.dtype)
    if isinstance(step, SequenceLinks):
        return sequence_step(target, _louder(step.links[0].held), step.labels, step.collect.reach, net.dtype)
    assert isinstance(step.collect, Average)
    return squared_step(Average.of(target, 2.0**-4, net.dtype, step.collect.clip))


@pytest.mark.parametrize("name", ["squared", "logistic", "squared, sequence", "two variables, sequence", "momentum"])
def test_what_is_proven_is_proven_of_the_numbers_that_are_stored(name: str) -> None:
    net, (X, y) = learner(name), data(name, 2)
    prompt = net.prompt(X, y if name == "logistic" else y / 4)
    other = Learner.of(network_of(net.descent, _other(net), net.dtype))
    found = np.abs(other(prompt, path=True, outside="ignore") - net.exact(prompt, path=True)).max()
    bound = other.certify(prompt, progress=False).bound
    assert net.certify(prompt, progress=False).bound < found <= bound


@pytest.mark.parametrize("name", ["squared", "logistic", "squared, sequence", "two variables, sequence"])
def test_a_threshold_that_no_layer_computes_is_missed(name: str) -> None:
    net = learner(name)
    shrinking = replace(net.descent, threshold=0.1, momentum=0.0)
    with pytest.raises(CertificateError):
        step_of(net, shrinking)


def test_a_step_for_a_threshold_has_a_clip() -> None:
    shrinking = replace(learner("squared").descent, threshold=0.1)
    with pytest.raises(CertificateError, match="goes with a clip"):
        Average.of(shrinking, 2.0**-4, "float64")
