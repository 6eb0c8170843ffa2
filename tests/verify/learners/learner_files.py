"""Paths of exact descent to 60 digits, and files of learners with one weight changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from flint import arb
from safetensors.numpy import save_file

import anchorhead as ah
from anchorhead.network import Network
from anchorhead.verify.balls import above, precision
from anchorhead.verify.files import Stored
from anchorhead.verify.learners.target import Descent


def largest_error(path: np.ndarray, target: Descent, prompt: np.ndarray) -> float:
    """How far the rows of a path are from exact descent on a prompt."""
    half = np.asarray(prompt, np.float64)[: len(prompt) // 2]
    a, y = half[:, : target.size], half[:, -1]
    worst = 0.0
    with precision(200):
        A, labels = [[arb(float(x)) for x in row] for row in a], [arb(float(one)) for one in y]
        w = v = [arb(0)] * target.size
        for computed in path:
            worst = max([worst, *(above(abs(arb(float(one)) - exact)) for one, exact in zip(computed, w, strict=True))])
            scores = [sum((x * one for x, one in zip(row, w, strict=True)), arb(0)) for row in A]
            links = [target.link.ball({"s": s, "y": label}) for s, label in zip(scores, labels, strict=True)]
            after = []
            for j, (one, speed) in enumerate(zip(w, v, strict=True)):
                gradient = sum((row[j] * g for row, g in zip(A, links, strict=True)), arb(0)) / len(A)
                decay = arb(target.decays[j].numerator) / arb(target.decays[j].denominator)
                moved = one + arb(target.momentum) * speed - arb(target.rate) * (gradient + decay * one)
                after.append(_shrunk(moved, target, j))
            w, v = after, [new - old for new, old in zip(after, w, strict=True)]
    return worst


def _shrunk(x: arb, target: Descent, j: int) -> arb:
    by = target.thresholds[j]
    if by is None:
        return x
    tau = arb(by.numerator) / arb(by.denominator)
    up, down = x - tau, -x - tau
    return (up + abs(up)) / 2 - (down + abs(down)) / 2


def tampered(file: Stored, rng: np.random.Generator) -> Stored:
    """One stored weight of a layer changed: by a factor, in sign, or set to or from 0."""
    names = sorted(name for name in file.tensors if name.startswith("layers."))
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


def changed(file: Stored, name: str, change: Callable[[np.ndarray], np.ndarray]) -> Stored:
    """One array replaced."""
    return replace(file, tensors={**file.tensors, name: change(np.array(file.tensors[name]))})


def loaded(file: Stored) -> Network:
    """The network that the library makes of it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "learner.safetensors"
        header = {"format": 3, "network": file.network, "program": file.program}
        header |= {"derivation": file.derivation, "certificate": file.certificate}
        save_file(dict(file.tensors), path, {"anchorhead": json.dumps(header)})
        return ah.load(path)
