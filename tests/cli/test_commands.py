"""The commands: what they print and write, and how they refuse."""

from __future__ import annotations

import csv
import re
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from anchorhead.cli import app
from anchorhead.constructions.truncated_linear import truncated_linear
from anchorhead.network.files import load

runner = CliRunner()


@pytest.fixture
def saved(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "ramp.safetensors"
    truncated_linear(rng.normal(size=(3, 2)), rng.normal(size=3), -1, 1, anchors=6).save(path)
    return path


def ran(*arguments) -> str:
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize(
    ("arguments", "sizes"),
    [
        (["single-head", "--anchors", "8:32"], [8, 16, 32]),
        (["single-head", "--anchors", "8,20", "--tokens", "3", "--low", "5", "--high", "7"], [8, 20]),
        (["single-head", "--tokens", "4:8", "--dtype", "float32"], [4, 8]),
        (["multi-head", "--heads", "1:4"], [1, 2, 4]),
        (["multi-head", "--tokens", "6:12"], [6, 12]),
        (["multi-head", "--heads", "1,2", "--tokens", "6,8", "--features", "2"], [4, 6, 8, 12]),
    ],
)
def test_a_sweep_prints_a_line_a_size_and_the_rate_and_writes_its_files(arguments, sizes, tmp_path):
    plot, table = tmp_path / "rates.png", tmp_path / "rates.csv"
    output = ran("paper", *arguments, "--plot", plot, "--csv", table)
    lines = output.splitlines()
    assert max(len(line) for line in lines if str(tmp_path) not in line) <= 100
    body = lines[lines.index(next(line for line in lines if line.startswith("──"))) + 1 :][: len(sizes)]
    rate = re.search(r"\^(-[\d.]+); the theorem's is -1", output)
    assert rate
    assert float(rate[1]) == pytest.approx(-1, abs=0.03)
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["size"]) for row in rows] == sizes
    for line, row in zip(body, rows, strict=True):
        assert f"{float(row['measured']):#.3g}" in line
        assert float(row["measured"]) <= float(row["proven"])
    assert max(len(cell) for row in rows for cell in row.values()) > 12
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert f"Plot: {plot}" in output
    assert f"Table: {table}" in output


def test_numbers_are_aligned_to_the_right_without_noise_digits():
    lines = ran("paper", "single-head", "--anchors", "8,100").splitlines()
    rows = [line for line in lines if re.match(r"\s+8\s", line)]
    assert len({len(line) for line in rows}) == 1
    for cell in " ".join(rows).split():
        assert len(cell.replace(".", "").lstrip("0")) <= 3, cell


def test_one_size_is_printed_without_a_rate():
    assert "One size has no rate" in ran("paper", "single-head", "--anchors", "8")


@pytest.mark.slow
def test_the_heat_maps_are_drawn(tmp_path):
    assert str(tmp_path / "heat.svg") in ran("paper", "heatmap", "--plot", tmp_path / "heat.svg")
    assert (tmp_path / "heat.svg").stat().st_size > 10_000


def test_info_describes_a_saved_network(saved):
    assert ran("info", saved).strip() == load(saved).describe()


def test_info_draws_a_saved_network_as_a_circuit(saved, tmp_path):
    assert ran("info", saved, "--plot", tmp_path / "circuit.svg").endswith(f"Plot: {tmp_path / 'circuit.svg'}\n")
    assert (tmp_path / "circuit.svg").read_bytes().startswith(b"<?xml")


def test_check_establishes_a_certificate_again(saved):
    output = ran("check", saved)
    assert f"{saved}: verified: |network - (" in " ".join(output.split())
    for word in ("lemma", "scalar head", "Largest contribution", "Assumed: arithmetic", "Not verified"):
        assert word in output


def test_check_fails_for_a_bound_that_the_weights_do_not_keep(saved):
    from dataclasses import replace

    network = load(saved)
    network.with_(certificate=replace(network.certificate, bound=network.certificate.bound / 100)).save(saved)
    result = runner.invoke(app, ["check", str(saved)])
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert ": verified:" not in result.stdout


def test_cite_prints_both_entries():
    output = ran("cite")
    assert "@software{anchorhead" in output
    assert "{{The Anchorhead developers}}" in output
    assert "2504.15956" in output
    assert output.count("{") == output.count("}")


def test_the_version_is_printed():
    assert re.fullmatch(r"anchorhead \d+\.\d+\.\d+\n", ran("--version"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["paper", "single-head", "--plot", "missing/rates.png"],
        ["paper", "multi-head", "--csv", "missing/rates.csv"],
        ["paper", "heatmap", "--plot", "missing/heat.png"],
    ],
)
def test_a_missing_folder_is_named_before_any_work_is_done(arguments, monkeypatch):
    for name in ("single_head_sweep", "multi_head_sweep", "heat_maps"):
        monkeypatch.setattr(f"anchorhead.lab.{name}", lambda *_, **__: pytest.fail("work was done"))
    result = runner.invoke(app, arguments)
    assert result.exit_code == 1
    assert "no folder missing" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["paper", "single-head", "--anchors", "1"], "anchors=1 "),
        (["paper", "single-head", "--anchors", "8", "--low", "2"], "low must be below high"),
        (["paper", "multi-head", "--tokens", "2"], "at least 3"),
        (["paper", "single-head", "--plot", "rates.gif"], ".png, .svg or .pdf"),
        (["info", "missing.safetensors"], "is not a file"),
        (["check", "missing.safetensors"], "is not a file"),
    ],
)
def test_what_the_library_refuses_is_one_paragraph_and_exit_code_1(arguments, message):
    result = runner.invoke(app, arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["paper", "single-head", "--anchors", "8:x"],
        ["paper", "single-head", "--anchors", "8", "--tokens", "4:8"],
        ["paper", "single-head", "--features", "0"],
        ["paper", "single-head", "--dtype", "bfloat16"],
        ["paper", "heatmap"],
        ["dance"],
    ],
)
def test_usage_errors_have_exit_code_2(arguments):
    assert runner.invoke(app, arguments).exit_code == 2


def test_a_file_cannot_command_the_terminal(tmp_path):
    result = runner.invoke(app, ["info", str(tmp_path / "\x1b[2Jx")])
    assert result.exit_code == 1
    assert "\x1b[2J" not in result.stderr


@pytest.mark.parametrize("command", ["info", "check", "cite", "paper single-head", "paper multi-head", "paper heatmap"])
def test_every_command_has_an_example(command):
    assert f"Example: anchorhead {command}" in ran(*command.split(), "--help")


def test_the_command_line_starts_without_torch():
    code = "import sys, anchorhead.cli; sys.exit('torch' in sys.modules or 'matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_package_runs_as_a_module():
    result = subprocess.run([sys.executable, "-m", "anchorhead", "--version"], capture_output=True, text=True)
    assert result.stdout.startswith("anchorhead ")
