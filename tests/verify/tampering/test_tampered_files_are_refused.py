"""A file that was changed is refused, or what it claims is still true."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import anchorhead as ah
from anchorhead.verify import verify
from tests.networks import inputs

from ..files import Change, parts, report, written
from .changed_claims import CLAIMS
from .structural_changes import HARMLESS, STRUCTURE

pytestmark = pytest.mark.all_cases

HEAD, RAMP, TWO, DEEP = (
    "head, summed (float32)",
    "truncated linear, one head (float32)",
    "two-layer, transformer (float32)",
    "neurons, uniform (float32)",
)


def _array(key: str, scale: float = 1.0, more: float = 0.0, largest: bool = True) -> Change:
    """The largest entry of an array, scaled and shifted."""

    def change(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        array = arrays[key].reshape(-1)
        place = int(np.abs(array).argmax() if largest else np.abs(np.where(array == 0, np.inf, array)).argmin())
        array[place] = array[place] * scale + more

    return change


def _header(*path: Any, value: Any) -> Change:
    def change(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        place = header
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value(place[path[-1]]) if callable(value) else value

    return change


def _hidden_register(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    arrays["layers.0.registers"] = arrays["layers.0.registers"][:-1]


def _another_axis(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    header["network"]["layers"][1]["grid"] = [1]


def _box_moved(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    on = header["certificate"]["on"]
    on["high"] = (np.array(on["high"]) * 1.5).tolist()


def _everywhere(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """The program's own box grows with the certificate's."""
    _box_moved(header, arrays)
    arrays["program.0.high"] = arrays["program.0.high"] * 1.5


REFUSED: dict[str, tuple[str, Change]] = {
    "a value": (HEAD, _array("layers.0.registers", 1 + 1e-3)),
    "an output weight": (RAMP, _array("layers.1.output", 1 + 1e-2)),
    "an output bias": (RAMP, _array("layers.1.bias", 1, 1e-3)),
    "a query": (TWO, _array("layers.3.query", 1.5, largest=False)),
    "a weight of the last map": (TWO, _array("layers.4.weight", 1 + 1e-3)),
    "a bias of the first map": (DEEP, _array("layers.0.bias", 1, 0.1)),
    "an input's weight": (RAMP, _array("layers.0.weight", 1.1)),
    "an input's weight, a little": ("head (float64)", _array("layers.0.weight", 1 + 1e-9)),
    "what neurons give": (TWO, _array("layers.3.output", 1.05)),
    "a bias of the last map": (DEEP, _array("layers.4.bias", 1, 0.1)),
    "gathers another token": (TWO, _array("layers.1.key", -1.0)),
    "a mask": (HEAD, lambda header, arrays: header["network"]["layers"][1].update(mask="registers+states")),
    "a causal mask": (TWO, lambda header, arrays: header["network"]["layers"][1].update(mask="causal")),
    "fewer keys by a grid": (HEAD, _another_axis),
    "a register dropped": (HEAD, _hidden_register),
    "another output": (HEAD, _header("network", "output", value="register")),
    "a smaller bound": (RAMP, _header("certificate", "bound", value=lambda b: 0.9 * b)),
    "a smaller bound of neurons": (
        TWO,
        lambda header, arrays: header["certificate"].update(
            bound=0.5 * header["certificate"]["bound"], terms={}, worst=None
        ),
    ),
    "a smaller bound and terms": (
        HEAD,
        lambda header, arrays: header["certificate"].update(
            bound=0.7 * header["certificate"]["bound"],
            worst=None,
            terms=[{**term, "amount": 0.7 * term["amount"]} for term in header["certificate"]["terms"]],
        ),
    ),
    "a larger box": (HEAD, _box_moved),
    "a larger box in the program too": (HEAD, _everywhere),
    "another dtype": (HEAD, _header("certificate", "dtype", value="float64")),
    "terms": (HEAD, _header("certificate", "terms", value=lambda terms: [term | {"amount": 0.0} for term in terms])),
    "terms of files of before": (
        HEAD,
        _header("certificate", "terms", value=lambda terms: {str(n): 0.0 for n, _ in enumerate(terms)}),
    ),
    "terms without amounts": (HEAD, _header("certificate", "terms", value=[{"kind": "rounding", "of": ""}])),
    "another function": (HEAD, _header("program", "steps", 2, "functions", 0, "nodes", 1, 0, value="gelu")),
    "a weight of the program": (TWO, _array("program.1.weight.0", 1 + 1e-2)),
    "a bias of the program": (TWO, _array("program.3.bias", 1, 1e-2)),
    "another output of the program": (TWO, _header("program", "outputs", value=[2])),
    "something more": (HEAD, lambda header, arrays: header["network"]["layers"][1].update(temperature=2.0)),
    "a weight that is not finite": (HEAD, _array("layers.0.registers", np.nan)),
    "an unknown condition": (HEAD, _header("certificate", "conditions", value=[{"kind": "trust me"}])),
    "a value of a grid": ("grid, tokens (float32)", _array("layers.0.registers", 1.5)),
    "a sum of parts": ("parts, tokens (float32)", _array("layers.5.weight", 1.02)),
    "an offset of a kernel": ("kernel smoother (float32)", _array("layers.0.registers", 1 + 1e-3)),
    "no certificate": (HEAD, _header("certificate", value=None)),
    "no program": (HEAD, _header("program", value=None)),
    "another format": (HEAD, _header("format", value=2)),
    "a kind of certificate": (HEAD, _header("certificate", "kind", value="given")),
    "a larger box in the certificate alone": (
        "truncated linear, of nothing (float32)",
        _header("certificate", "on", value={"low": -2.5, "high": 2.5}),
    ),
    **STRUCTURE,
    **CLAIMS,
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_was_changed_is_refused(what: str, tmp_path: Path) -> None:
    name, change = REFUSED[what]
    found = report(name, tmp_path, change)
    assert not found.verified, f"{what}: {found.why}"
    assert "could not make sense" not in found.why


@pytest.mark.parametrize("what", HARMLESS)
def test_what_changes_nothing_is_accepted(what: str, tmp_path: Path) -> None:
    found = report(HARMLESS[what][0], tmp_path, HARMLESS[what][1])
    assert found.verified, f"{what}: {found.why}"


def test_a_pair_that_cancels_in_exact_arithmetic_alone_is_refused(tmp_path: Path) -> None:
    """2^30 on two offsets of every anchor's logit: float32 no longer tells them apart."""

    def drowned(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        for name in ("query", "key"):
            array = arrays[f"layers.1.{name}"]
            row = np.zeros((*array.shape[:1], 1, array.shape[2]), array.dtype)
            row[..., 1] = 2.0**15
            arrays[f"layers.1.{name}"] = np.concatenate([array, row], axis=1)

    assert not report(HEAD, tmp_path, drowned).verified


def test_hints_are_never_trusted(tmp_path: Path) -> None:
    """Whatever the derivation says, nothing that is false is verified: the network is the same."""

    def scrambled(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        for entry in header["derivation"]["entries"]:
            entry.update(what="nothing", heads=7, on=[0.0, 1e-9], error=0.0, rounding=0.0)
        header["derivation"]["data"]["kept"] = [True]

    def broken(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        scrambled(header, arrays)
        _array("layers.4.weight", 1.01)(header, arrays)

    assert not report(TWO, tmp_path, broken).verified
    plain, changed = report(TWO, tmp_path), report(TWO, tmp_path, scrambled)
    assert plain.verified
    assert changed.found == plain.found


@pytest.mark.parametrize("damage", ["cut", "empty", "not JSON", "header of a gigabyte", "deep JSON"])
def test_damaged_files_give_a_report(damage: str, tmp_path: Path) -> None:
    path = written(HEAD, tmp_path)
    content = path.read_bytes()
    if damage == "cut":
        content = content[: len(content) // 2]
    elif damage == "empty":
        content = b""
    elif damage == "header of a gigabyte":
        content = (2**30).to_bytes(8, "little") + content[8:]
    elif damage == "not JSON":
        content = content.replace(b'{\\"format\\"', b'[\\"format\\"')
    else:
        _, arrays = parts(HEAD)
        save_file(dict(arrays), path, {"anchorhead": "[" * 100_000 + "]" * 100_000})
        content = path.read_bytes()
    path.write_bytes(content)
    found = verify(path)
    assert not found.verified
    assert found.why


def _random_change(rng: np.random.Generator) -> Change:
    def change(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        keys = [key for key in sorted(arrays) if arrays[key].dtype.kind == "f" and arrays[key].size]
        keys = [key for key in keys if not key.startswith("derivation")]
        array = arrays[keys[rng.integers(len(keys))]].reshape(-1)
        place = rng.integers(array.size)
        kind = rng.integers(4)
        size = 10.0 ** rng.uniform(-9, 3)
        if kind == 0:
            array[place] *= 1 + size * rng.choice([-1, 1])
        elif kind == 1:
            array[place] += size * rng.choice([-1, 1])
        elif kind == 2:
            array[place] = -array[place]
        else:
            array[place] = array[rng.integers(array.size)]

    return change


def _violated(path: Path) -> float:
    """How far a network is from its program at some inputs, beyond its bound."""
    try:
        net = ah.load(path)
    except ah.AnchorheadError:  # what follows from it is no program that the library writes
        return 0.0
    x = np.concatenate([inputs(net, 300, seed) for seed in range(2)])
    low, high = net.certificate.on.low, net.certificate.on.high
    x[:100] = np.where(np.random.default_rng(0).random(x[:100].shape) < 0.5, low, high)
    error = np.abs(np.asarray(net(x, outside="ignore"), np.float64) - np.asarray(net.program(x), np.float64))
    return float(error.max()) - net.certificate.bound * (1 + 1e-9) - 1e-13


@pytest.mark.parametrize(
    ("name", "count"),
    [
        (HEAD, 8),
        (DEEP, 12),
        *(pytest.param(name, 150, marks=pytest.mark.slow) for name in (HEAD, RAMP, TWO, DEEP)),
    ],
)
def test_what_is_accepted_after_a_random_change_is_true(name: str, count: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(count)
    accepted = 0
    for _ in range(count):
        change = _random_change(rng)
        path = written(name, tmp_path, change)
        if verify(path).verified:
            accepted += 1
            assert _violated(path) <= 0
    assert accepted < count


def test_the_header_is_what_is_changed() -> None:
    text, arrays = parts(HEAD)
    assert json.loads(text)["format"] == 3
    assert "program.0.low" in arrays
