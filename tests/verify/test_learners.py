"""Learners are verified for a box and for a prompt, and what is tampered with is refused, or its bound still holds."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

import anchorhead as ah
from anchorhead import incontext
from anchorhead.incontext.learner import Learner
from anchorhead.verify import verify
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.files import Stored, read_file
from anchorhead.verify.grammar import read_network
from anchorhead.verify.learners.learner import bound_for_learner, bound_for_one_prompt
from anchorhead.verify.program import read_program

SMALL = {"steps": 2, "rate": 0.05, "features": 2, "on": (-1, 1), "examples": 3}
QUICK = {
    "squared": {},
    "squared, float32": {"dtype": "float32"},
    "ridge with an intercept": {"decay": 0.3, "intercept": True, "steps": 20, "examples": 64},
    "momentum": {"momentum": 0.8, "decay": 0.1, "intercept": True, "steps": 20, "examples": 16},
    "lasso": {"threshold": 0.1, "dtype": "float32"},
    "logistic": {"loss": "logistic"},
    "logistic, float32": {"loss": "logistic", "dtype": "float32"},
    "hinge": {"loss": "hinge", "intercept": True},
    "squared, transformer": {"layout": "transformer"},
}
SLOW = {
    "huber": {"loss": "huber", "dtype": "float32"},
    "absolute": {"loss": "absolute", "decay": 0.1, "intercept": True},
    "quantile": {"loss": "quantile"},
    "poisson": {"loss": "poisson", "labels": (-2, 2)},
    "logistic with momentum": {"loss": "logistic", "momentum": 0.5, "decay": 0.1},
    "logistic lasso": {"loss": "logistic", "threshold": 0.1},
    "logistic, twenty steps": {"loss": "logistic", "steps": 20, "rate": 0.3, "on": (-4, 4), "examples": 64},
    "huber, twenty steps": {"loss": "huber", "steps": 20, "rate": 0.3, "on": (-4, 4), "examples": 64},
    "a hundred steps": {"steps": 100, "rate": 0.3, "features": 5, "on": (-4, 4), "examples": 64},
    "elastic net": {"threshold": 0.1, "decay": 0.1, "intercept": True, "steps": 10, "rate": 0.3},
}


@cache
def learner(name: str) -> Learner:
    return incontext.gradient_descent(progress=False, **SMALL | {**QUICK, **SLOW}[name])  # type: ignore[arg-type]


@cache
def stored(name: str) -> Stored:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "learner.safetensors"
        learner(name).save(path)
        return read_file(path)


def found_for_box(file: Stored, certificate: dict | None = None) -> float:
    stated = dict(file.certificate or {}) | (certificate or {})
    low, high = (np.array(stated["on"][end]) for end in ("low", "high"))
    return bound_for_learner(read_network(file), read_program(file), low, high, stated["conditions"], stated["bound"])


def data(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Examples in the box, labels of the loss."""
    net, rng = learner(name), np.random.default_rng(seed)
    n = int(rng.integers(1, net.descent.examples + 1)) if net.embed.tokens is None else net.descent.examples
    high = net.certificate.on.high
    X = rng.uniform(-1, 1, (n, net.descent.features)) * high[:-2] * rng.choice([0.1, 0.5, 1.0])
    if net.descent.loss.name in ("logistic", "hinge"):
        return X, rng.choice([-1.0, 1.0], n)
    return X, rng.uniform(0 if net.descent.loss.name == "poisson" else -1, 1, n) * high[-1]


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_the_stated_bound_follows_for_all_prompts_of_the_box(name: str) -> None:
    assert found_for_box(stored(name)) <= learner(name).certificate.bound


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_the_stated_bound_follows_for_one_prompt(name: str) -> None:
    net, file = learner(name), stored(name)
    prompt = np.asarray(net.prompt(*data(name, 1)))
    bound = net.certify(prompt, progress=False).bound
    assert bound_for_one_prompt(read_network(file), read_program(file), prompt, bound) <= bound


def file_of(name: str, folder: Path) -> Path:
    learner(name).save(folder / "learner.safetensors")
    return folder / "learner.safetensors"


@pytest.mark.parametrize("name", ["squared", "logistic"])
def test_files_of_learners_are_verified(name: str, tmp_path: Path) -> None:
    found = verify(file_of(name, tmp_path))
    assert found.verified, found.why
    assert 0 < found.found <= found.stated == learner(name).certificate.bound


LINKS = {"logistic": lambda z, y: 1 / (1 + np.exp(-z)) - y, "hinge": lambda z, y: -1 / (1 + np.exp(-(1 - z) / 0.1))}


FEW, MANY = 3, pytest.param(40, marks=pytest.mark.slow)
"""Prompts that are tried."""


@pytest.mark.parametrize("count", [FEW, MANY])
@pytest.mark.parametrize("name", ["logistic", "logistic, float32", "hinge"])
def test_no_prompt_exceeds_what_was_found_for_curved_links(name: str, count: int) -> None:
    """Against descent in numpy's long doubles, whose own error is far below float64's bound."""
    net, file = learner(name), stored(name)
    bound = found_for_box(file)
    for seed in range(count):
        prompt = np.asarray(net.prompt(*data(name, seed)))
        own = bound_for_one_prompt(read_network(file), read_program(file), prompt, bound)
        A, y = (x.astype(np.longdouble) for x in (prompt[: len(prompt) // 2, : net.descent.weights], prompt[:, -1]))
        w = np.zeros(net.descent.weights, np.longdouble)
        for computed in net(prompt, path=True):
            assert np.abs(computed - w).max() <= min(bound, own)
            w = w - np.longdouble(net.descent.rate) * A.T @ LINKS[net.descent.loss.name](A @ w, y[: len(A)]) / len(A)


def exact_path(net: Learner, prompt: np.ndarray) -> list[list[Fraction]]:
    """Descent on the squared loss, without rounding."""
    target, n = net.descent, len(prompt) // 2
    A = [[Fraction(float(x)) for x in row[: target.weights]] for row in prompt[:n]]
    y = [Fraction(float(row[-1])) for row in prompt[:n]]
    rate, momentum, tau = (Fraction(x) for x in (target.rate, target.momentum, target.threshold))
    w = [Fraction(0)] * target.weights
    v, path = list(w), [list(w)]
    for _ in range(target.steps):
        r = [sum(a * b for a, b in zip(row, w, strict=True)) - label for row, label in zip(A, y, strict=True)]
        for j, penalised in enumerate(target.penalised):
            gradient = sum(row[j] * one for row, one in zip(A, r, strict=True)) / n
            v[j] = momentum * v[j] - rate * (gradient + Fraction(target.decay) * int(penalised) * w[j])
        w = [a + b for a, b in zip(w, v, strict=True)]
        if tau:
            w[: target.features] = [max(a - rate * tau, 0) + min(a + rate * tau, 0) for a in w[: target.features]]
        path.append(list(w))
    return path


@pytest.mark.parametrize("count", [FEW, MANY])
@pytest.mark.parametrize("name", ["squared", "squared, float32", "lasso", "squared, transformer"])
def test_no_prompt_exceeds_what_was_found(name: str, count: int) -> None:
    """What the verifier finds itself holds, not only what is stated."""
    net, file = learner(name), stored(name)
    bound = found_for_box(file)
    for seed in range(count):
        prompt = np.asarray(net.prompt(*data(name, seed)))
        own = bound_for_one_prompt(read_network(file), read_program(file), prompt, bound)
        computed = net(prompt, path=True)
        for w, exact in zip(computed, exact_path(net, prompt), strict=True):
            error = max(abs(Fraction(float(a)) - b) for a, b in zip(w, exact, strict=True))
            assert error <= min(bound, own)


def tampered(file: Stored, rng: np.random.Generator) -> Stored:
    """One stored weight of a layer changed: by a factor, in sign, or set to or from 0."""
    names = [name for name in file.tensors if name.startswith("layers.")]
    name = names[rng.integers(len(names))]
    array = np.array(file.tensors[name])
    place = tuple(int(rng.integers(side)) for side in array.shape)
    before = array[place]
    array[place] = (
        rng.choice([-before, 0.0, 1.25 * before, 2 * before, before + 1, 0.5]) if before else rng.choice([1, -1, 0.01])
    )
    if array[place] == before:
        array[place] = before + 1
    return replace(file, tensors={**file.tensors, name: array})


def accepted(file: Stored, certificate: dict | None = None) -> bool:
    stated = dict(file.certificate or {}) | (certificate or {})
    try:
        return found_for_box(file, certificate) <= stated["bound"]
    except NotVerified:
        return False


def count_accepted(name: str, tries: int) -> int:
    """How many of so many tamperings are accepted; those must do what the original does, up to the bound."""
    rng, file, net = np.random.default_rng(len(name)), stored(name), learner(name)
    prompts = [np.asarray(net.prompt(*data(name, seed))) for seed in range(4)]
    count = 0
    for _ in range(tries):
        other = tampered(file, rng)
        if not accepted(other):
            continue
        count += 1
        with TemporaryDirectory() as folder:
            path = Path(folder) / "tampered.safetensors"
            _save(other, path)
            network = ah.load(path)
        for prompt in prompts:
            w = network(prompt, outside="ignore")
            exact = [float(one) for one in exact_path(net, prompt)[-1]]
            assert np.abs(w - exact).max() <= file.certificate["bound"] * (1 + 1e-9)  # type: ignore[index]
    return count


def _save(file: Stored, path: Path) -> None:
    import json

    from safetensors.numpy import save_file

    header = {"format": 3, "network": file.network, "program": file.program}
    header |= {"derivation": file.derivation, "certificate": file.certificate}
    save_file(dict(file.tensors), path, {"anchorhead": json.dumps(header)})


@pytest.mark.parametrize("name", ["squared", "squared, float32"])
def test_tampered_weights_are_refused_or_do_no_harm(name: str) -> None:
    """Weights that nothing live reads may change; few do."""
    assert count_accepted(name, 60) <= 40


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ridge with an intercept", "momentum", "lasso", "squared, transformer"])
def test_many_tampered_weights_are_refused_or_do_no_harm(name: str) -> None:
    assert count_accepted(name, 300) <= 200


def _with_condition(name: str, kind: str, changes: dict) -> dict:
    conditions = [dict(one) for one in stored(name).certificate["conditions"]]  # type: ignore[index]
    for one in conditions:
        if one["kind"] == kind:
            one.update(changes)
    return {"conditions": conditions}


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("at most so many examples", {"most": 4}),
        ("at most so many examples", {"most": 10**6}),
        ("safe rate", {"rate": 0.04}),
        ("safe rate", {"limit": 2.1}),
        ("safe rate", {"limit": -1.0}),
        ("safe rate", {"kind": "excluded"}),
        ("at most so many examples", {"kind": "at most"}),
    ],
)
def test_conditions_that_say_less_are_refused(kind: str, changes: dict) -> None:
    with pytest.raises(NotVerified):
        found_for_box(stored("squared"), _with_condition("squared", kind, changes))


def test_a_larger_box_and_a_smaller_bound_do_not_follow() -> None:
    file = stored("squared")
    on = {end: [4 * x for x in file.certificate["on"][end]] for end in ("low", "high")}  # type: ignore[index]
    assert not accepted(file, {"on": on})
    assert not accepted(file, {"bound": 0.1 * file.certificate["bound"]})  # type: ignore[index]


@pytest.mark.parametrize("change", ["times", "rate", "decay", "start", "output"])
def test_another_program_or_structure_is_refused(change: str) -> None:
    file = stored("ridge with an intercept")
    network, program = dict(file.network), dict(file.program or {})
    tensors = dict(file.tensors)
    if change == "times":
        layers = [dict(row) for row in network["layers"]]
        layers[1]["times"] += 1
        network["layers"] = layers
    elif change == "output":
        network["output"] = "input"
    elif change == "rate":
        tensors["program.4/10.weight.1"] = 1.01 * tensors["program.4/10.weight.1"]
        tensors["program.4/10.weight.2"] = 1.01 * tensors["program.4/10.weight.2"]
    elif change == "decay":
        tensors["program.4/8.bias"] = 1.1 * tensors["program.4/8.bias"]
    else:
        tensors["program.3.bias"] = tensors["program.3.bias"] + 1e-3
    assert not accepted(replace(file, network=network, program=program, tensors=tensors))


def test_a_state_that_sees_itself_is_refused() -> None:
    file = stored("squared")
    name = "layers.1.0.key"
    key = np.array(file.tensors[name])
    assert (key <= -1600).sum() == 1
    key[key <= -1600] = -500.0
    with pytest.raises(NotVerified, match="reach"):
        found_for_box(replace(file, tensors={**file.tensors, name: key}))
