"""Learners with other numbers in one place of their files, or in two: whatever is accepted must keep its bound.

`place` number n is one of all places and numbers, in an order that is mixed but the same everywhere; `pair` number n is
two places, of one array or of two, whose changes may make up for one another. Every other time these are places of a
learner's own numbers, which the verifier takes as they are: neither 0 nor 1 nor what puts tokens out of reach.
`everywhere` number n is one of these numbers that becomes another one wherever it stands.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any
from unittest.mock import patch

import numpy as np

from anchorhead.verify import verify
from anchorhead.verify.learners import heads, threshold
from tests.networks import names
from tests.networks import network as of_table

from .file import File, Random, entry, large, loaded, pick, saved
from .hunt import Remembered, Tally, harm
from .search import Claim

TIMES = (0.0, -1.0, 2.0, 0.5, 1.001, 1 + 2.0**-20, 2.0**-40, 2.0**-100, 2.0**40)
"""What numbers that are not 0 are multiplied by."""
FACTORS = (0.0, -1.0, 0.5, 2.0, 0.25, 4.0, 1 + 1e-6, 1 - 1e-4, 1.001, 0.99, 1.1, 2.0**-8, 2.0**8, 2.0**-30, 2.0**30)
"""What a number is multiplied by wherever it stands."""
INSTEAD = (1.0, -1.0, 2.0**-20, 2.0**-60, 0.01, -1000.0, 2.0**20, -(2.0**20), 2.0**60)
"""What stands in the place of a number, too, and of 0."""
USUAL = (0.0, 1.0, -1.0, 2.0**20, -(2.0**20))
"""Numbers that say how a learner is laid out."""
TABLE = tuple(name for name in names("proven") if name.startswith("learner"))


@dataclass(frozen=True, eq=False)
class Subject:
    """A learner: its file, of which every call gives one of its own, its loss, and proofs of heads that were done."""

    name: str
    text: str
    arrays: dict[str, np.ndarray]
    loss: Any
    known: Remembered = field(default_factory=Remembered)

    def file(self) -> File:
        return File(json.loads(self.text), dict(self.arrays))

    @cached_property
    def places(self) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
        """Arrays and places in them: all, and those of numbers of its own."""
        every = [(name, place) for name in self.file().weights() for place in range(self.arrays[name].size)]
        return every, [(name, place) for name, place in every if self.arrays[name].flat[place] not in USUAL]


@cache
def subject(name: str) -> Subject:
    """A learner of the table, or of the tests of the verifier's learners."""
    from tests.verify.learners.test_learners import learner

    network: Any = of_table(name) if name in TABLE else learner(name)
    return Subject(name, *saved(network), network.descent.loss)


def place(one: Subject, number: int) -> tuple[File, str] | None:
    """One number in one place; None where it stands there already, or there are no more places."""
    options, places = len(TIMES) + len(INSTEAD), one.places[number % 2]
    order = _order(len(places) * options)
    if number // 2 >= len(order):
        return None
    at, which = divmod(int(order[number // 2]), options)
    name, at = places[at]
    array = np.array(one.arrays[name])
    index = tuple(map(int, np.unravel_index(at, array.shape)))
    before = array[index]
    if which < len(TIMES) and not before:
        return None
    with np.errstate(all="ignore"):
        array[index] = before * TIMES[which] if which < len(TIMES) else INSTEAD[which - len(TIMES)]
    if array[index] == before:
        return None
    file = one.file()
    file.arrays[name] = array
    return file, f"{name}{list(index)} = {float(before)!r} -> {float(array[index])!r}"


@cache
def _order(count: int) -> np.ndarray:
    return np.random.default_rng(count).permutation(count)


def pair(one: Subject, number: int) -> tuple[File, str] | None:
    rng = np.random.default_rng([number, *one.name.encode()])
    file, said = one.file(), []
    names = [pick(rng, file.weights())] * 2 if rng.random() < 0.5 else [pick(rng, file.weights()) for _ in range(2)]
    by, places = _numbers(rng), []
    for n, name in enumerate(names):
        array = np.array(file.arrays[name])
        own = np.argwhere(~np.isin(array, USUAL)) if number % 2 else ()
        index = tuple(own[rng.integers(len(own))]) if len(own) else entry(array, rng, rng.random() < 0.6)
        if n and names[0] == name and rng.random() < 0.6:  # along one axis of the array
            axis = int(rng.integers(array.ndim))
            index = (*places[0][:axis], index[axis], *places[0][axis + 1 :])
        before = array[index]
        with np.errstate(all="ignore"):
            array[index] = by[n](before)
        file.arrays[name] = array
        places.append(index)
        said.append(f"{name}{list(map(int, index))} = {float(before)!r} -> {float(array[index])!r}")
    return file, " and ".join(said)


def _numbers(rng: Random) -> tuple[Any, Any]:
    """Two changes: the same added to both, or taken from the second; factors that make up for one another; any."""
    match int(rng.integers(4)):
        case 0:
            more, sign = large(rng) * 2.0 ** int(rng.integers(-10, 1)), float(rng.choice([-1, 1]))
            return lambda x: x + more, lambda x: x + sign * more
        case 1:
            factor = 2.0 ** int(rng.integers(-60, 61))
            return lambda x: (x or 1.0) * factor, lambda x: (x or 1.0) / factor
        case 2:
            return lambda x: 0.0 if x else 1.0, lambda x: 0.0 if x else float(rng.choice([1.0, -1.0]))
    return lambda x: x * (1 + 10 ** rng.uniform(-7, 1)) if x else 2.0**-8, lambda x: large(rng)


def prompted(name: str, kind: str, numbers: Iterable[int]) -> tuple[int, list[str]]:
    """For how many files of these numbers a bound follows for a prompt, whatever it is, and which err by more. It is
    sharper than that of a box, and follows from files too that do not do what they state."""
    one, count, problems = subject(name), 0, []
    with patch.object(heads, "prove", one.known), patch.object(threshold, "prove", one.known):
        for number in numbers:
            made = CHANGES[kind](one, number)
            network = None if made is None else loaded(made[0].content())
            if made is None or network is None:
                continue
            claim = Claim.of(network, one.loss)
            prompt = claim.prompts(1, np.random.default_rng(number))
            if not len(prompt):  # none meets the conditions
                continue
            report = verify(made[0].content(), prompt=prompt[0].astype(network.dtype))
            if not report.verified:
                continue
            count += 1
            error = max(claim.proven(prompt, way) for way in ("fast", "torch", "exp astray"))
            if error > report.found:
                problems.append(f"{name}, {kind} {number}, {made[1]}: {error:.3g} > {report.found:.3g} for a prompt")
    return count, problems


def everywhere(one: Subject, number: int) -> tuple[File, str] | None:
    """One of a learner's own numbers changed wherever it stands, with either sign: copies and mirror images agree."""
    rng, file = np.random.default_rng([number, *one.name.encode()]), one.file()
    name, at = one.places[1][rng.integers(len(one.places[1]))]
    before = abs(float(one.arrays[name].flat[at]))
    after = before * float(rng.choice(FACTORS)) + float(rng.choice([0.0, 0.0, 0.0, 2.0**-10, 1.0]))
    for array in file.weights():
        held = np.array(file.arrays[array])
        file.arrays[array] = np.where(np.abs(held) == before, np.sign(held) * after, held).astype(held.dtype)
    return (file, f"all {before!r} -> {after!r}") if after != before else None


CHANGES = {"place": place, "pair": pair, "everywhere": everywhere}


def hunt(name: str, kind: str, numbers: Iterable[int], tally: Tally | None = None) -> Tally:
    """Tries the places or pairs of these numbers."""
    one, found = subject(name), tally or Tally()
    with patch.object(heads, "prove", one.known), patch.object(threshold, "prove", one.known):
        for number in numbers:
            made = CHANGES[kind](one, number)
            if made is None:
                continue
            file, said = made
            content = file.content()
            found.tried += 1
            report = verify(content)
            if "could not make sense" in report.why:
                found.confused.append(f"{name}, {kind} {number}, {said}: {report.why}")
            if not report.verified:
                continue
            found.accepted += 1
            network = loaded(content)
            found.not_loaded += network is None
            error = harm(network, np.random.default_rng(number), one.loss, False)
            if error is not None and network is not None:
                bound = network.certificate.bound  # type: ignore[union-attr]
                found.harmful.append(f"{name}, {kind} {number}, {said}: {error:.3g} > {bound:.3g}")
    return found
