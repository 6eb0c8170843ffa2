"""Derivations say which layer computes which step of the program, by which lemma, and how far off."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

import anchorhead as ah
from anchorhead import incontext
from anchorhead.language.program import Program
from anchorhead.network import Attention, Linear, Network, Repeat, Softmax
from anchorhead.network.derivation import Entry, Lemma
from tests.networks import names, network

GOLDEN = Path(__file__).parents[1] / "golden"


def entries_of(net: Network) -> tuple[Entry, ...]:
    assert net.derivation is not None
    return net.derivation.entries


def step_at(program: Program | None, places: tuple[int, ...]) -> Any:
    """The step of a program, or of the body of one of its Repeats."""
    assert program is not None
    place, *rest = places
    step: Any = program.steps[place]
    return step_at(step.body, tuple(rest)) if rest else step


@pytest.mark.parametrize("name", names())
def test_every_network_names_the_step_of_every_entry(name: str) -> None:
    net = network(name)
    if net.derivation is None:
        return
    assert net.derivation.entries
    for entry in net.derivation.entries:
        assert entry.step
        assert step_at(net.lowered, entry.step) is not None
        assert entry.lemma in get_args(Lemma)
        line = str(entry)
        assert ".".join(f"q{place}" for place in entry.step) in line
        assert ("found to be off by" in line) == (entry.measured and entry.error is not None)
        layer: Any = None if entry.layer is None else net.layers[entry.layer]
        layer = layer if entry.body is None else layer.layers[entry.body]
        heads = isinstance(layer, Attention | Softmax | None)
        assert heads if entry.heads else entry.lemma in ("affine", "fit", "loop")
    if net.certificate is not None and net.certificate.kind == "proven":
        assert not any(entry.measured for entry in net.derivation.entries)


CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "direct": ({}, ["signed average", "loop"]),
    "threshold": ({"threshold": 0.1}, ["signed average", "threshold", "loop"]),
    "transformer": ({"loss": "logistic"}, ["score", "scalar head", "signed average", "loop"]),
    "sequence": (
        {"loss": "logistic", "layout": "sequence", "examples": 4},
        ["scalar head", "plain average", "loop"],
    ),
}


def learner(name: str) -> Any:
    return incontext.gradient_descent(steps=3, rate=0.3, features=2, **CASES[name][0])


@pytest.mark.parametrize("name", CASES)
def test_a_learner_says_of_every_layer_of_its_loop_what_it_computes_and_what_a_step_errs_by(name: str) -> None:
    net = learner(name)
    entries = entries_of(net)
    assert [entry.lemma for entry in entries] == CASES[name][1]
    (repeat,) = (layer for layer in net.layers if isinstance(layer, Repeat))
    assert {entry.body for entry in entries[:-1]} == set(range(len(repeat.layers)))
    assert all(entry.error is not None and entry.rounding is not None for entry in entries)
    computed = [entry.step for entry in entries[:-1]]
    assert computed == sorted(computed)
    assert all(step[:-1] == entries[-1].step for step in computed)
    path: Any = step_at(net.program, entries[-1].step)
    assert computed[-1][-1] == path.body.outputs[0]


@pytest.mark.parametrize("name", CASES)
def test_the_bound_of_a_learner_is_that_of_its_loop_and_no_less_than_that_of_a_step(name: str) -> None:
    net = learner(name)
    errors = {entry.lemma: (entry.error or 0.0) + (entry.rounding or 0.0) for entry in entries_of(net)}
    step = next(error for lemma, error in errors.items() if lemma.endswith("average"))
    assert 0 < step <= errors["loop"] <= net.certificate.bound <= 1.02 * errors["loop"]
    assert errors["loop"] <= 3.1 * step


def test_a_learner_of_other_steps_says_nothing_that_was_proven_of_the_first() -> None:
    net = learner("transformer")
    other = entries_of(net.with_steps(5))
    assert [entry.what for entry in other] == [entry.what for entry in entries_of(net)]
    assert all(entry.error is None and entry.rounding is None for entry in other)


def test_a_learner_of_which_nothing_is_proven_says_what_was_found_of_its_path() -> None:
    net = incontext.gradient_descent(steps=3, rate=0.1, features=2, threshold=0.1, momentum=0.5)
    *parts, loop = entries_of(net)
    assert loop.measured
    assert net.certificate is not None
    assert loop.error == net.certificate.bound
    assert all(entry.error is None for entry in parts)


def test_many_learners_say_which_link_each_head_is_and_how_far_off() -> None:
    net = incontext.many_learners(("squared", "huber"), steps=3, features=1)
    lemmas = [entry.lemma for entry in entries_of(net)]
    assert lemmas == ["copy", "score", "scalar head", "scalar head", "signed average", "loop", "copy"]
    links = [entry for entry in entries_of(net) if entry.lemma == "scalar head"]
    assert all(entry.error is not None and entry.on == (-16.0, 16.0) for entry in links)


def test_a_callable_says_what_was_measured_and_with_a_lipschitz_constant_what_is_proven() -> None:
    def f(x: Any) -> Any:
        return abs(x - 0.3)

    (found,) = entries_of(ah.head(f, on=(0, 1), within=1e-2).network)
    (proven,) = entries_of(ah.head(f, on=(0, 1), within=1e-2, lipschitz=1.0).network)
    assert found.measured
    assert not proven.measured
    assert found.step == proven.step


def test_an_affine_program_says_that_it_is_one_and_what_it_rounds_by() -> None:
    net = ah.approximate("2*x + y - 1", on={"x": (0, 1), "y": (0, 1)}, within=1e-2)
    (entry,) = entries_of(net)
    assert all(isinstance(layer, Linear) for layer in net.layers[1:])
    assert (entry.lemma, entry.heads) == ("affine", 0)
    assert entry.rounding is not None
    assert 0 < entry.rounding <= net.certificate.bound  # type: ignore[union-attr]
    assert entry.step == net.lowered.outputs  # type: ignore[union-attr]


@pytest.mark.parametrize("name", CASES)
def test_what_a_derivation_says_is_saved_and_a_verifier_takes_it(name: str, tmp_path: Path) -> None:
    net, path = learner(name), tmp_path / "net.safetensors"
    net.save(path)
    assert entries_of(ah.load(path)) == entries_of(net)
    assert ah.check(path).line.startswith("verified")


def test_files_whose_entries_name_no_step_are_read() -> None:
    net = ah.load(GOLDEN / "format-3" / "head-float64.safetensors")
    assert [entry.step for entry in entries_of(net)] == [()]
    assert "scalar head" in str(net.derivation)
