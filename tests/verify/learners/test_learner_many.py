"""Many learners in one network: verified for a prompt, whatever loss, penalty and start it names."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from flint import arb

from anchorhead import incontext
from anchorhead.constructions.learners.many import ManyLearner
from anchorhead.verify.balls import above, precision
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.files import Stored, read_file
from anchorhead.verify.grammar import read_network
from anchorhead.verify.learners.learner import bound_for_one_prompt
from anchorhead.verify.learners.link import read_links
from anchorhead.verify.learners.target import read_descent
from anchorhead.verify.programs.program import read_program

from .learner_files import changed, loaded, tampered

LOSSES = ("squared", "logistic", "huber")


@cache
def many(dtype: str) -> tuple[ManyLearner, Stored]:
    net = incontext.many_learners(LOSSES, steps=3, features=2, intercept=True, dtype=dtype)
    with TemporaryDirectory() as folder:
        net.save(Path(folder) / "many.safetensors")
        return net, read_file(Path(folder) / "many.safetensors")


def prompt_of(dtype: str, loss: str, penalty: float, start: list[float] | None) -> np.ndarray:
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (4, 2))
    y = rng.choice([-1.0, 1.0], 4) if loss == "logistic" else rng.uniform(-1, 1, 4)
    return np.asarray(many(dtype)[0].prompt(X, y, loss=loss, rate=0.2, penalty=penalty, start=start))


def bound_of(file: Stored, prompt: np.ndarray, bound: float | None = None) -> float:
    return bound_for_one_prompt(read_network(file), read_program(file), prompt, bound)


def largest_error(path: np.ndarray, file: Stored, prompt: np.ndarray) -> float:
    """How far a path is from what the rows say, to 60 digits."""
    target = read_descent(read_program(file))
    (links,) = read_links(target.link, 0.0, target.flags)
    size, worst = target.size, 0.0
    with precision(200):
        rows = [[arb(float(x)) for x in row] for row in prompt[: len(prompt) // 2 - 1]]
        which = prompt[: len(rows), 2 * size + 2 :].argmax(axis=1) // 2
        w = [arb(float(x)) for x in prompt[len(rows), size : 2 * size]]
        for computed in path:
            worst = max([worst, *(above(abs(arb(float(one)) - exact)) for one, exact in zip(computed, w, strict=True))])
            moves = [arb(0)] * size
            for row, k in zip(rows, which, strict=True):
                z = sum((x * one for x, one in zip(row[:size], w, strict=True)), -row[2 * size])
                g = links[k].phi.ball({"x": z}) - row[2 * size + 1]
                moves = [move + v * g / len(rows) for move, v in zip(moves, row[size : 2 * size], strict=True)]
            w = [one - move for one, move in zip(w, moves, strict=True)]
    return worst


CASES = [
    ("float64", "squared", 0.1, None),
    ("float32", "squared", 0.0, [0.3, -0.2, 0.1]),
    ("float32", "logistic", 0.1, None),
    ("float64", "huber", 0.1, [0.3, -0.2, 0.1]),
]


@pytest.mark.parametrize(("dtype", "loss", "penalty", "start"), CASES)
def test_the_stated_bound_follows_and_holds(dtype: str, loss: str, penalty: float, start: list[float] | None) -> None:
    net, file = many(dtype)
    prompt = prompt_of(dtype, loss, penalty, start)
    stated = net.certify(prompt).bound
    found = bound_of(file, prompt, stated)
    assert 0 < largest_error(net(prompt, path=True), file, prompt) <= found <= stated


def changes(prompt: np.ndarray) -> dict[str, np.ndarray]:
    """Prompts that are none."""
    made = {name: prompt.copy() for name in ("half", "flag", "two flags", "start", "no start", "short", "a start's x")}
    half, first = len(prompt) // 2, 2 * 3 + 2
    made["half"][half, 0] += 1
    made["flag"][0, first : first + 6] = 0
    made["two flags"][0, first + 2] = 1
    made["start"][0, -2:] = 1
    made["no start"][[half - 1, -1], -2:] = 0
    made["a start's x"][half - 1, 0], made["a start's x"][-1, 0] = 1, -1
    made["short"] = prompt[:, 1:]
    made["against"] = prompt.copy()
    made["against"][:, 3:6] *= -1
    return made


@pytest.mark.parametrize("name", list(changes(np.zeros((4, 16)))))
def test_other_prompts_are_refused(name: str) -> None:
    _, file = many("float64")
    with pytest.raises(NotVerified):
        bound_of(file, changes(prompt_of("float64", "squared", 0.1, None))[name], 1e-6)


def test_tampered_weights_are_refused_or_do_no_harm() -> None:
    (net, file), rng, accepted = many("float32"), np.random.default_rng(2), 0
    prompt = prompt_of("float32", "logistic", 0.1, None)
    stated = net.certify(prompt).bound
    for _ in range(30):
        other = tampered(file, rng)
        try:
            good = bound_of(other, prompt, stated) <= stated
        except NotVerified:
            continue
        accepted += good
        path = loaded(other)(prompt, path=True, outside="ignore") if good else np.zeros((0, 3))  # type: ignore[call-arg]
        assert largest_error(path, file, prompt) <= stated
    assert accepted <= 20


def test_anchors_within_reach_of_other_links_are_refused() -> None:
    _, file = many("float64")
    prompt = prompt_of("float64", "logistic", 0.0, None)
    registers = next(name for name in file.tensors if name.endswith("registers"))
    near = changed(file, registers, lambda array: np.where(array == array.min(), -1e4, array))
    with pytest.raises(NotVerified, match="mirror images"):
        bound_of(near, prompt, 1e-8)
