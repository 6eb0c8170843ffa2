"""What the tokens of learners hold, and what nobody reads; and what the verifier says of it.

Prompts go through networks layer by layer. What lemmas speak of are the scores and links of examples, pushes, and w and
v in tokens that carry them; all other features stay as they are, are exactly 0, or may be anything. The verifier reads
this from the layers, wherever features stand.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from anchorhead.network import Network, Repeat
from anchorhead.verify.files import Stored
from anchorhead.verify.learners.held import ONE

from ..tampering.orders import KINDS, ORDERS, Tokens, _Run
from . import forged_learners as forged
from . import test_learner_many as of_many
from .test_forged_learners import reading_of
from .test_learners import data, found_for_box, learner, stored

W = r"[wv](\d+| of the intercept)"
NAMES = ("squared, float32", "momentum", "lasso", "logistic", "hinge", "logistic lasso", "two variables")
SEQUENCES = ("squared, sequence", "logistic, sequence, float32", "two variables, sequence")
MANY = "many learners"


def given(name: str) -> tuple[Network, np.ndarray]:
    if name == MANY:
        return of_many.many("float32")[0], of_many.prompt_of("float32", "logistic", 0.1, [0.3, -0.2, 0.1])
    return learner(name), np.asarray(learner(name).prompt(*data(name, 1)))


def called(network: Network, pattern: str) -> list[int]:
    """Features by their names."""
    return [k for k, name in enumerate(network.embed.features or ()) if re.fullmatch(pattern, name)]


def followed(name: str, change: Callable[[Network, Tokens], None]) -> np.ndarray:
    """What a network puts out; `change` sees all tokens after the embed and after every layer but the last."""
    network, prompt = given(name)
    run = _Run(ORDERS["forwards"], np.dtype(network.dtype).type)
    now = run.embedded(network.embed, prompt[None].astype(network.dtype))
    flat = [one for layer in network.layers[1:-1] for one in _flat(layer)]
    for layer in [None, *flat]:
        now = now if layer is None else run.after(layer, now)
        now = {kind: np.array(now[kind]) for kind in KINDS}
        change(network, now)
    return run.after(network.layers[-1], now)[network.output]


def _flat(layer: object) -> list[object]:
    return [*layer.layers] * layer.times if isinstance(layer, Repeat) else [layer]


def unread(name: str, network: Network) -> list[tuple[str, slice, list[int]]]:
    """Kinds of tokens, which of them, and their features that nobody reads."""
    if name == MANY:
        w = called(network, r"w\d+")
        return [("input", slice(None), w), ("state", slice(None), w), ("register", slice(2, None), w)]
    own = called(network, W + r"|push.*")
    direct = name in ("squared, float32", "momentum", "lasso")
    return [("input", slice(None), own)] + [("register", slice(None), own)] * direct


@pytest.mark.all_cases
@pytest.mark.parametrize("name", [*NAMES, *SEQUENCES, MANY])
def test_nobody_reads_what_others_hold(name: str) -> None:
    rng = np.random.default_rng(0)

    def junk(network: Network, now: Tokens) -> None:
        for kind, which, features in unread(name, network):
            held = now[kind][:, which, features]
            now[kind][:, which, features] = 10 * rng.normal(size=held.shape)

    assert (followed(name, lambda *of: None) == followed(name, junk)).all()


@pytest.mark.all_cases
@pytest.mark.parametrize("name", [*NAMES, *SEQUENCES, MANY])
def test_all_else_stays_as_it_is(name: str) -> None:
    first: Tokens = {}

    def compare(network: Network, now: Tokens) -> None:
        changing = called(network, r"score|link|push.*|" + (r"w\d+" if name == MANY else W))
        stays = np.delete(np.arange(len(network.embed.features or ())), changing)
        for kind in KINDS:
            assert (now[kind][..., stays] == first.setdefault(kind, now[kind])[..., stays]).all()

    followed(name, compare)


@pytest.mark.all_cases
@pytest.mark.parametrize("name", ["logistic", "hinge", "logistic lasso", "two variables"])
def test_registers_of_a_transformer_stay_0(name: str) -> None:
    def compare(network: Network, now: Tokens) -> None:
        assert not now["register"][..., called(network, W + "|score|link")].any()
        assert not now["state"][..., called(network, "score|link")].any()

    followed(name, compare)


def test_what_is_read_does_change() -> None:
    """The same with something that is read: w of the state."""

    def junk(network: Network, now: Tokens) -> None:
        now["state"][..., called(network, W)] += 0.1

    assert (followed("logistic", lambda *of: None) != followed("logistic", junk)).any()


@pytest.mark.all_cases
@pytest.mark.parametrize("name", ["squared, float32", "momentum", "lasso", "logistic", "squared, sequence"])
def test_what_the_verifier_knows_is_what_tokens_hold(name: str) -> None:
    """After every step: constants are what they are said to be, entries of w and v are what they are followed as."""
    body = reading_of(name).body
    seen: list[Tokens] = []
    followed(name, lambda network, now: seen.append(now))
    steps = len(next(one for one in learner(name).layers if isinstance(one, Repeat)).layers)
    count = {kind: len(body.layers.places(kind)) for kind in KINDS}
    compared = 0
    for now in seen[::steps]:
        held = [now[kind][0] if kind in now else np.zeros((0, 0)) for kind in KINDS]
        if count["input"] == 2:  # one row of each sort
            held[0] = held[0][[0, -1]]
        for t, features in enumerate(np.concatenate([one for one in held if len(one)])):
            known = (body.end.symbol[t] == ONE) & ~np.isnan(body.end.number[t])
            assert (features[known] == body.end.number[t, known]).all()
            compared += int(known.sum())
    assert compared > 20


def permuted(file: Stored, seed: int) -> Stored:
    """The same network with its features in another order."""
    last = f"layers.{len(file.network['layers']) - 1}."
    order = np.random.default_rng(seed).permutation(file.tensors["layers.0.bias"].shape[-1])
    axes = {"query": [-1], "key": [-1], "value": [-1], "output": [-2], "bias": [-1], "registers": [-1], "states": [-1]}
    tensors = dict(file.tensors)
    for name, array in file.tensors.items():
        what = name.rpartition(".")[2]
        if name.startswith("layers.") and what != "source":
            along = [-2] if name == "layers.0.weight" else axes.get(what, [-1] if name.startswith(last) else [-1, -2])
            for axis in along:
                array = np.take(array, order, axis=axis)
            tensors[name] = array
    return forged.structure(replace(file, tensors=tensors), lambda layers: None)


@pytest.mark.parametrize("name", ["momentum", "lasso", "logistic", "squared, sequence", "two variables, sequence"])
def test_it_does_not_matter_where_features_stand(name: str) -> None:
    """The bound of a network is that of the same one with its features in another order."""
    assert found_for_box(permuted(stored(name), 1)) == found_for_box(stored(name))
