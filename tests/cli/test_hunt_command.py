"""`anchorhead hunt`: what it prints, its exit codes, and how it goes on after Ctrl-C."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from anchorhead.cli import app
from anchorhead.constructions.head import head
from anchorhead.network.files import load

runner = CliRunner()
RELU = ["relu", "--on", "-1:1", "--within", "1e-4", "--dtype", "float32", "--inputs", "20000"]


def invoke(*arguments):
    return runner.invoke(app, ["hunt", *(str(argument) for argument in arguments)])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "relu.safetensors"
    head("relu", on=(-1, 1), within=1e-4, dtype="float32").save(path)
    return path


def test_the_result_is_one_line_and_no_file_is_left(folder):
    result = invoke(*RELU)
    assert result.exit_code == 0, result.output
    assert "relu on [-1, 1] within" in result.stdout
    line = re.search(
        r"20,000 inputs: worst error (\S+) at x = (\S+), bound (\S+), ratio (\S+)\nNo violation", result.stdout
    )
    assert line
    worst, at, bound, ratio = map(float, line.groups())
    assert worst / bound == pytest.approx(ratio, abs=1e-3)
    assert ratio <= 1
    assert -1 <= at <= 1
    assert list(folder.iterdir()) == []


def test_a_saved_head_is_hunted(saved):
    result = invoke(saved, "--inputs", 5000, "--seed", 3)
    assert result.exit_code == 0, result.output
    assert "5,000 inputs" in result.stdout


def test_a_violation_has_exit_code_1_and_can_be_computed_again(saved):
    network = load(saved)
    bound = network.certificate.bound / 10
    network.with_(certificate=replace(network.certificate, bound=bound)).save(saved)
    result = invoke(saved, "--inputs", 5000)
    assert result.exit_code == 1
    assert "violated" in result.stdout
    at, error = re.findall(r"x = (\S+)  error (\S+)  torch \S+  numpy \S+", result.stdout)[0]
    assert float(error) > bound
    again = network([[[float(at)]]]).item()
    assert abs(again - max(float(at), 0.0)) > bound


def untimed(result):
    """What it says, less its last line: how long it took."""
    *lines, last = result.stdout.splitlines()
    assert last.startswith("Time: ")
    return lines


@pytest.mark.parametrize("named", [True, False])
def test_a_hunt_that_is_stopped_says_how_to_go_on_and_does(named, folder, monkeypatch):
    state = ["--state", "state.json"] if named else []
    whole = untimed(invoke(*RELU))
    from anchorhead.proof.search import hunt as module

    chunk, chunks = module._Search.chunk, []

    def interrupted(self):
        if len(chunks) == 2:
            raise KeyboardInterrupt
        chunks.append(self)
        chunk(self)

    monkeypatch.setattr(module._Search, "chunk", interrupted)
    stopped = invoke(*RELU, *state)
    assert stopped.exit_code == 130
    (kept,) = folder.iterdir()
    assert f"The state is in {kept.name}: give the same command again" in stopped.stderr
    monkeypatch.setattr(module._Search, "chunk", chunk)
    assert untimed(invoke(*RELU, *state)) == whole
    assert kept.exists() == named


@pytest.mark.slow
def test_the_state_of_another_head_is_refused(folder):
    assert invoke(*RELU, "--state", "state.json").exit_code == 0
    result = invoke("tanh", "--on", "-2:2", "--within", "1e-4", "--inputs", "20000", "--state", "state.json")
    assert result.exit_code == 1
    assert "state of another hunt" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["relu", "--within", "1e-4"],
        ["relu", "--on", "-1:1"],
        ["relu", "--on", "-1", "--within", "1e-4"],
        ["relu", "--on", "a:b", "--within", "1e-4"],
        ["relu.safetensors", "--within", "1e-4"],
        ["relu", "--on", "-1:1", "--within", "1e-4", "--inputs", "0"],
    ],
)
def test_usage_errors_have_exit_code_2(arguments):
    assert invoke(*arguments).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.safetensors"], "is not a file"),
        (["no_such_function(x)", "--on", "-1:1", "--within", "1e-4"], "no_such_function"),
        ([*RELU, "--state", "missing/state.json"], "no folder missing"),
    ],
)
def test_what_cannot_be_hunted_is_said_in_one_line(arguments, message):
    result = invoke(*arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.startswith("Error: ")
