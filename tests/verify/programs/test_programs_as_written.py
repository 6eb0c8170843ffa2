"""The program of a network is what was written, and files in which one of both was changed are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import anchorhead as ah
from anchorhead.language.entries import same
from anchorhead.language.expressions.parser import parse
from anchorhead.network import Network
from anchorhead.verify import verify
from tests.networks import network as built

from ..files import report

BOX = dict.fromkeys("xyzwu", (0.5, 2.0))
SIGNED = dict.fromkeys("xyzw", (-1.0, 1.0))
BUILT = {
    "exp(x*y)*abs(z) + w": (SIGNED, 1e-3),
    "abs(x)*y/(2 + z)": ({name: SIGNED[name] for name in "xyz"}, 1e-3),
    "x*y + abs(x - y)/3": ({name: SIGNED[name] for name in "xy"}, 1e-4),
    "sqrt((x*y)**2 + z*w*u) - x*y": (BOX, 1e-2),
}


@cache
def network(text: str) -> Network:
    on, within = BUILT[text]
    return ah.compile(ah.program(text, on=on), within, progress=False)


def saved(text: str, folder: Path, change: Callable[[dict[str, Any], dict[str, np.ndarray]], None]) -> Path:
    path = folder / "network.safetensors"
    network(text).save(path)
    with safe_open(path, framework="numpy") as file:
        header = json.loads(file.metadata()["anchorhead"])
        arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    change(header, arrays)
    save_file(arrays, path, {"anchorhead": json.dumps(header)})
    return path


@pytest.mark.parametrize(
    "text", [text if "sqrt" not in text else pytest.param(text, marks=pytest.mark.slow) for text in BUILT]
)
def test_the_program_is_what_was_written_and_the_report_says_so(text: str, tmp_path: Path) -> None:
    net = network(text)
    assert net.program is not None
    assert same(net.program, ah.program(text, on=BUILT[text][0]))
    path = saved(text, tmp_path, lambda header, arrays: None)
    again = ah.load(path)
    assert again.program is not None
    assert same(again.program, net.program)
    assert again.derivation is not None
    assert "taken apart into what the network was built of" in str(again.derivation)
    assert ah.check(again, progress=False).stated == net.certificate.bound  # type: ignore[union-attr]
    found = verify(path)
    assert found.verified, found.why
    assert found.steps[0].lemma == "equal forms"
    function = parse(text, tuple(BUILT[text][0]))
    printed = parse(found.why.split("(", 1)[1].split(")| <= ")[0], tuple(BUILT[text][0]))
    x = {name: np.linspace(a, b, 7) for name, (a, b) in BUILT[text][0].items()}
    assert np.allclose(np.asarray(function.values(x), float), np.asarray(printed.values(x), float))


def nodes_of(header: dict[str, Any]) -> list[Any]:
    return header["program"]["steps"][-1]["functions"][0]["nodes"]


def coefficient(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    nodes = nodes_of(header)
    nodes += [["number", 1.01], ["mul", len(nodes), len(nodes) - 1]]


def sign(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    nodes_of(header).append(["neg", len(nodes_of(header)) - 1])


def function(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    for node in nodes_of(header):
        if node[0] in ("exp", "abs", "sqrt"):
            node[0] = "sin"


def variable(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    weight = arrays["program.1.weight.0"]
    weight[:] = np.roll(weight, 1, axis=-1)


def as_built(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    last = max(int(name.split(".")[1]) for name in arrays if name.startswith("lowered."))
    arrays[f"lowered.{last}.weight.0"] *= 1.01


def not_there(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    del header["derivation"]["lowered"]


def rewritten(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    header["program"]["title"] = header["derivation"]["lowered"]["title"] = header["certificate"]["target"] = "x + y"


@pytest.mark.parametrize("change", [coefficient, sign, function, variable, as_built, not_there])
@pytest.mark.parametrize("text", list(BUILT)[:2])
def test_a_program_that_was_changed_is_refused(text: str, change: Callable[..., None], tmp_path: Path) -> None:
    path = saved(text, tmp_path, change)
    found = verify(path)
    assert not found.verified
    assert "could not make sense" not in found.why
    with pytest.raises(ah.AnchorheadError):
        ah.check(path, progress=False)


def test_words_that_were_rewritten_are_seen_in_no_report(tmp_path: Path) -> None:
    text = next(iter(BUILT))
    path = saved(text, tmp_path, rewritten)
    found = verify(path)
    assert found.verified
    assert f"|network - ({text})| <= " in found.why
    again = ah.load(path)
    assert again.certificate is not None
    assert again.certificate.target == text


def test_a_composition_keeps_its_steps(tmp_path: Path) -> None:
    inner = ah.program(["x*y", "abs(x) + y"], on={"x": (-1, 1), "y": (-1, 1)})
    outer = ah.program("exp(s)/3 - s*t", on={"s": (-1, 1), "t": (-1, 2)})
    both = outer @ inner
    net = ah.compile(both, 1e-2, progress=False)
    assert net.program is not None
    assert same(net.program, both)
    net.save(tmp_path / "net.safetensors")
    found = verify(tmp_path / "net.safetensors")
    assert found.verified, found.why
    assert "exp(x*y)/3" in found.why


def test_what_is_not_reached_is_of_the_same_program() -> None:
    program = ah.program("abs(x)*y", on={name: SIGNED[name] for name in "xy"})
    with pytest.raises(ah.NotReached) as error:
        ah.compile(program, 1e-6, dtype="float32", progress=False)
    assert same(error.value.network.program, program)


def test_tokens_that_cancel_stay_in_what_was_written(tmp_path: Path) -> None:
    rows = [["abs(x[0,0])*x[0,1] + x[1,0] - x[1,0]"], ["x[0,0]*x[1,0]"]]
    program = ah.program(rows, on=(-1, 1), tokens=2, features=2)
    net = ah.compile(program, 1e-2, causal=True, progress=False)
    assert net.program is not None
    assert same(net.program, program)
    net.save(tmp_path / "net.safetensors")
    found = verify(tmp_path / "net.safetensors")
    assert found.verified, found.why
    assert "x[1,0] - x[1,0]" in found.why
    assert ah.check(net, progress=False).stated == net.certificate.bound  # type: ignore[union-attr]


def in_other_units(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """The same program written with pre-activations twice as large, of which functions take half."""
    written = header["program"]
    header["derivation"]["lowered"] = json.loads(json.dumps(written))
    for name in [name for name in arrays if name.startswith("program.")]:
        arrays[f"lowered.{name.removeprefix('program.')}"] = arrays[name].copy()
        arrays[name] *= 2 if name.startswith("program.1.") else 1
    for function in written["steps"][2]["functions"]:
        rest = ([n + 2 if type(n) is int else n for n in node] for node in function["nodes"][1:])
        function["nodes"] = [["variable", "s"], ["number", 0.5], ["mul", 0, 1], *rest]


def test_a_condition_on_pre_activations_is_one_on_those_that_were_written(tmp_path: Path) -> None:
    assert report("truncated linear, one head (float64)", tmp_path, in_other_units).verified
    found = report("truncated linear, outputs (float32)", tmp_path, in_other_units)
    assert not found.verified
    assert "a condition" in found.why


def test_a_network_of_parts_holds_what_it_was_built_of(tmp_path: Path) -> None:
    net = built("parts (float32)")
    assert net.program is not None
    assert net.derivation is not None
    assert net.derivation.lowered is not None
    x = np.random.default_rng(0).uniform(0, 1, (50, 3))
    assert np.allclose(net.program(x), net.derivation.lowered(x), rtol=1e-12)
    found = report("parts (float32)", tmp_path, not_there)
    assert not found.verified
    assert "build it again" in found.why


def of_a_grid(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    steps = header["derivation"]["lowered"]["steps"]
    (nodes,) = (one["nodes"] for step in steps for one in step.get("functions", ()) if ["exp", 2] in one["nodes"])
    nodes[nodes.index(["exp", 2])] = ["expm1", 2]


@pytest.mark.parametrize("change", [of_a_grid, as_built])
def test_parts_that_were_changed_are_refused(change: Callable[..., None], tmp_path: Path) -> None:
    found = report("parts (float32)", tmp_path, change)
    assert not found.verified
    assert "not found to be the same" in found.why
