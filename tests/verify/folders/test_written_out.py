"""Layers of attention-only models written out as networks: what is stated follows, and nothing that is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from flint import arb

import anchorhead as ah
from anchorhead.verify import verify
from anchorhead.verify.balls import precision
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.files import read_file
from anchorhead.verify.folders.layer import Map, range_of
from anchorhead.verify.folders.written_out import _errors, fastest, norm_of, parts_of, target_of
from anchorhead.verify.grammar import read_network
from anchorhead.verify.programs.program import read_program
from anchorhead.verify.rounding import arithmetic_of
from anchorhead.verify.self_keys.gate import GatePart, Leaning, verify_gate
from tests.verify.folders.written_out_layers import KINDS, layer, tokens
from tests.verify.tampering.file import File, loaded, saved


def file_of(kind: str, dtype: str = "float32", within: float = 1e-5) -> File:
    text, arrays = saved(layer(kind, dtype, within))
    return File(json.loads(text), dict(arrays))


def holds(file: File) -> bool:
    return verify(file.content()).verified


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("dtype", "within"), [("float32", 1e-5), ("float64", 1e-5), ("float64", 1e-10)])
def test_layers_follow_for_any_number_of_tokens(kind: str, dtype: str, within: float) -> None:
    network = layer(kind, dtype, within)
    report = ah.check(network, progress=False)
    assert report.verified
    assert report.found <= report.stated == network.certificate.bound
    assert "for any number of tokens" in report.why
    z = tokens(network)
    assert np.abs(network(z, outside="ignore") - network.program(z.astype(float))).max() <= network.certificate.bound


def worst(network: Any, z: np.ndarray, exact: np.ndarray) -> float:
    """The largest error in float64, which is what the network is up to rounding; infinite where it is no number."""
    module = network.module().double()
    with torch.no_grad():
        found = module(torch.from_numpy(z.astype(np.float64))).numpy()
    return float(np.nan_to_num(np.abs(found - exact), nan=np.inf).max())


@pytest.mark.parametrize("kind", KINDS)
def test_less_than_the_largest_error_is_refused(kind: str) -> None:
    """In float64 next to nothing is rounded: what was seen is the error of the heads."""
    network, file = layer(kind, "float64"), file_of(kind, "float64")
    z = tokens(network)
    seen = worst(network, z, network.program(z))
    file.header["certificate"].update(bound=seen * 0.999, terms=[])
    assert not holds(file)


@pytest.mark.parametrize("kind", KINDS)
def test_a_smaller_bound_does_not_follow(kind: str) -> None:
    file = file_of(kind)
    file.header["certificate"].update(bound=0.7 * file.header["certificate"]["bound"], terms=[])
    assert not holds(file)


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.slow), 11])
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_number_is_changed_nothing_wrong_is_accepted(kind: str, every: int) -> None:
    """Entries of every weight, one at a time: it is refused, or the network errs by no more than is stated."""
    network, original = layer(kind), file_of(kind)
    z = tokens(network, 300)
    exact, bound = network.program(z.astype(float)), network.certificate.bound
    refused = accepted = 0
    for name in original.weights():
        for place in list(np.ndindex(original.arrays[name].shape))[::every]:
            for change in (lambda x: x + 1, lambda x: 1.5 * x, lambda x: 0 * x):
                file = file_of(kind)
                array = file.arrays[name].copy()
                array[place] = change(array[place])
                if array[place] == file.arrays[name][place]:
                    continue
                file.arrays[name] = array
                if holds(file):
                    accepted += 1
                    assert worst(loaded(file.content()), z, exact) <= bound, (name, place)
                else:
                    refused += 1
    assert refused > 4 * accepted
    assert refused > 200 / every


def another_mask(file: File) -> None:
    file.layers[1]["mask"] = None


def tokens_that_see_others(file: File) -> None:
    file.layers[1]["mask"] = "causal"


def a_skip(file: File) -> None:
    size = file.get(file.embed, "weight").shape[0]
    outputs = file.get(file.layers[1], "output").shape[1]
    file.layers[1]["skip"] = file.linear(np.eye(outputs, size))


def a_layer_more(file: File) -> None:
    width = file.get(file.layers[1], "output").shape[1]
    file.layers.append(file.linear(2 * np.eye(width)))


def registers_put_out(file: File) -> None:
    file.header["network"]["output"] = "register"


def states_besides(file: File) -> None:
    file.put(file.embed, "states", np.ones((1, file.get(file.embed, "weight").shape[0])))


def directly(file: File) -> None:
    file.header["certificate"]["evaluations"] = ["plain", "direct"]


def any_tokens_at_all(file: File) -> None:
    file.header["certificate"]["conditions"] = []


def of_a_larger_norm(file: File) -> None:
    (condition,) = file.header["certificate"]["conditions"]
    condition["scale"] = [2 * x for x in condition["scale"]]


def of_a_norm_that_is_off(file: File) -> None:
    file.header["certificate"]["conditions"][0].update(slack=0.5)


def of_a_norm_that_rounds(file: File) -> None:
    file.header["certificate"]["conditions"][0].update(rounding=0.1)


def less_than_no_rounding(file: File) -> None:
    file.header["certificate"]["conditions"][0].update(rounding=-1e-7)


def a_condition_more(file: File) -> None:
    file.header["certificate"]["conditions"].append({"kind": "excluded", "intervals": [[-1.0, 1.0]]})


def another_function(file: File) -> None:
    text = json.dumps(file.header["program"])
    for was, now in (("gelu", "relu"), ("silu", "gelu"), ("sigmoid", "tanh")):
        text = text.replace(f'"{was}"', f'"{now}"')
    file.header["program"] = json.loads(text)


def another_dtype(file: File) -> None:
    file.header["certificate"]["dtype"] = "float64"


def programs_weights(file: File) -> None:
    for name, array in file.arrays.items():
        if name.startswith("program.1.weight"):
            file.arrays[name] = 1.01 * array


FORGED: dict[str, Callable[[File], None]] = {
    one.__name__: one for one in (
    another_mask, tokens_that_see_others, a_skip, a_layer_more, registers_put_out, states_besides, directly,
    any_tokens_at_all, of_a_larger_norm, of_a_norm_that_is_off, of_a_norm_that_rounds,
    less_than_no_rounding, a_condition_more, another_function, another_dtype, programs_weights,
    )
}  # fmt: skip


@pytest.mark.parametrize("kind", ["gelu", "sigmoid", "gated silu"])
@pytest.mark.parametrize("forged", FORGED)
def test_what_is_another_claim_or_another_network_is_refused(forged: str, kind: str) -> None:
    file = file_of(kind)
    FORGED[forged](file)
    assert not holds(file)


def read(kind: str) -> tuple[Any, ...]:
    """What the verifier reads off a file: program, norm, pre-activations and parts."""
    file = read_file(file_of(kind).content())
    network, target = read_network(file), target_of(read_program(file))
    norm, model = norm_of(file.certificate["conditions"][0]), arithmetic_of("float32")  # type: ignore[index]
    s = range_of(target.asks, norm, model)
    return target, norm, s, parts_of(network, target, s, model), model


@pytest.mark.parametrize("kind", ["hardswish", "gated silu"])
def test_every_term_counts(kind: str) -> None:
    target, norm, s, parts, model = read(kind)
    steep, _ = target.activation.on(float(s.magnitude.max()))
    sizes, rho, gated = np.abs(target.down.weight), s.rounding, target.carries is not None
    meant = target.carries if gated else target.asks
    moved = steep * rho
    if gated:
        apart = [
            np.minimum(2 * rho * fastest(one.softmax(s.low, s.high, model), s.low, s.high), abs(one.factor))
            for one in (GatePart(part.slopes, part.offsets, part.factor) for part in parts)
        ]
        assert len(parts) == 2
        moved = (moved + min(apart, key=np.max)) * range_of(meant, norm, model).magnitude
    read_sizes = np.abs(target.down.bias)
    for part in parts:
        each, whole = np.full(len(rho), part.largest), part.largest * np.sqrt(len(rho))
        if part.own is not None:
            shown = range_of(part.value, norm, model)
            row = part.value.weight - part.factor * meant.weight
            off = range_of(Map(row, part.value.bias - part.factor * meant.bias - part.constant), norm, model)
            moved = moved + off.magnitude + shown.rounding * part.value.weight.any()
            moved = moved + (0.0 if gated else abs(part.factor) * rho)
            each, whole = np.maximum(each, shown.magnitude), whole + shown.length
        read_sizes = read_sizes + np.minimum(sizes @ each, np.linalg.norm(sizes, axis=1) * whole)
    expected = sizes @ moved + model.gamma(len(parts) * len(rho) + 1) * read_sizes
    _, rest = _errors(target, parts, s, norm, model)
    assert ((1 - 1e-9) * expected <= rest).all()
    assert (rest <= 1.0001 * expected).all()


def test_gates_that_are_asked_far_apart_are_refused() -> None:
    target, _, s, parts, model = read("gated silu")
    gates = [GatePart(part.slopes, part.offsets, part.factor) for part in parts]
    given = gates, target.activation.function, s.low, s.high, model.dtype, 1e-5
    assert verify_gate(*given) > 0
    assert verify_gate(*given, lean=1e-5) > 0
    with pytest.raises(NotVerified):
        verify_gate(*given, lean=30.0)


def test_an_own_value_of_which_nothing_is_heard_may_not_overflow() -> None:
    """A sigmoid's token is not heard: 0 times infinity would be no number."""
    file = file_of("sigmoid")
    (name,) = [one for one in file.weights() if one.endswith("value")]
    assert holds(file)
    for heads in (slice(0, 3), slice(None)):
        changed = file_of("sigmoid")
        changed.arrays[name] = file.arrays[name].copy()
        changed.arrays[name][heads, 0, 0] = 3e38
        assert not holds(changed)


@pytest.mark.parametrize("t", [-3.0, 0.1, 0.7, 2.0])
def test_the_largest_slope_is_no_less_than_any(t: float) -> None:
    part = GatePart([-3.0, 1.0, 4.0], [0.5, -1.0, -2.0], 2.5)
    softmax = part.softmax(-4.0, 4.0, arithmetic_of("float32"))
    found = fastest(softmax, -4.0, 4.0)
    with precision():
        assert float(abs(softmax.slope(arb(t), np.arange(4))).lower()) <= found
    grid = np.linspace(-4, 4, 20_001)
    weight = 2.5 / (1 + sum(np.exp(a * grid + b) for a, b in zip(part.slopes, part.offsets, strict=True)))
    steepest = np.abs(np.gradient(weight, grid)).max()
    assert steepest * (1 - 1e-5) <= found <= 1.01 * steepest


def test_heads_that_lean_round_as_those_do_that_are_asked_there() -> None:
    """What is read does not count as moved, but it rounds by no less than without leaning, and by more far away."""
    part = GatePart([-3.0, 1.0, 4.0], [0.5, -1.0, -2.0], 2.5).softmax(-4.0, 4.0, arithmetic_of("float32"))
    leaning = Leaning(replace(part.part, lean=2.0), part.model, part.terms)
    near, leak = [np.arange(4)], np.zeros(1)
    still, moved = (
        one.rounding(np.array([[0.3]]), np.array([[half]]), np.array([[5.0]]), near, leak)[0]
        for one, half in ((part, 0.0), (leaning, 2.0))
    )
    assert (moved >= still).all()
    assert not Leaning.moves
