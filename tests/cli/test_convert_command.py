"""`anchorhead convert`, `approximate` and `paper relu-network`: what they print and write, and how they refuse."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from safetensors.numpy import save_file
from typer.testing import CliRunner

from anchorhead.checking import check
from anchorhead.cli import app
from anchorhead.network.files import load

runner = CliRunner()


@pytest.fixture
def weights(tmp_path):
    rng = np.random.default_rng(0)
    file = tmp_path / "mlp.safetensors"
    names = {"0.weight": (5, 4), "0.bias": (5,), "2.weight": (2, 5), "2.bias": (2,)}
    save_file({name: rng.standard_normal(shape) for name, shape in names.items()}, file)
    return file


def ran(*arguments, code=0) -> str:
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_a_file_of_weights_is_converted_reported_saved_and_drawn(weights, tmp_path):
    file, plot = tmp_path / "net.safetensors", tmp_path / "net.png"
    output = ran(
        "convert", weights, "--activation", "relu", "--on", "0:1", "--within", "1e-6", "-o", file, "--plot", plot
    )
    network = load(file)
    assert f"error at most {network.certificate.bound:.3g}" in output
    assert "the bound is" in output
    assert f"{network.parameters:,} parameters" in output
    assert check(file).stated <= 1e-6
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert network(np.full((3, 4), 0.5)).shape == (3, 2)


def test_the_words_of_the_library_are_those_of_the_command(weights, tmp_path):
    file = tmp_path / "net.safetensors"
    options = ["--tokens", "2", "--form", "attention-softmax", "--layout", "sequence", "--dtype", "float32"]
    ran(
        "convert",
        weights,
        "--activation",
        "tanh",
        "--on",
        "-1:1",
        "--within",
        "1e-3",
        *options,
        "--no-search",
        "-o",
        file,
    )
    network = load(file)
    assert [type(layer).__name__ for layer in network.layers] == ["Embed", "Attention", "Linear", "Softmax", "Linear"]
    assert network.dtype == "float32"
    assert network(np.zeros((1, 2, 2), np.float32)).shape == (1, 2, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--activation", "relu", "--within", "1e-30"], "less than float64 can tell apart"),
        (["--activation", "nonsense", "--within", "1e-3"], "nonsense"),
        (["--activation", "relu", "--within", "1e-3", "--tokens", "3"], "do not divide"),
        (["--activation", "relu", "--within", "1e-3", "--tokens", "2", "--causal"], "depends on input token 1"),
        (["--activation", "relu", "--within", "1e-3", "-o", "nowhere/net.safetensors"], "no folder"),
    ],
)
def test_what_cannot_be_converted_is_refused_in_words(weights, options, message):
    output = ran("convert", weights, "--on", "0:1", *options, code=1)
    assert message in " ".join(output.split())
    assert "Traceback" not in output


def test_a_function_is_approximated_reported_and_saved(tmp_path):
    file = tmp_path / "f.safetensors"
    output = ran("approximate", "x*y + abs(y)", "--on", "x=-1:1", "--on", "y=0:2", "--within", "1e-4", "-o", file)
    assert "x*y + abs(y)" in output
    x = np.array([[0.5, 1.5], [-1.0, 2.0]])
    network = load(file)
    assert np.abs(network(x)[:, 0] - (x[:, 0] * x[:, 1] + x[:, 1])).max() <= network.certificate.bound <= 1e-4


@pytest.mark.parametrize("on", ["x", "x=1", "=0:1"])
def test_a_domain_that_is_none_is_refused(on):
    ran("approximate", "x", "--on", on, "--within", "1e-3", code=2)


def test_the_papers_task_is_a_table_with_proofs(tmp_path):
    file = tmp_path / "task.csv"
    output = ran("paper", "relu-network", "--tokens", "3", "--features", "2", "--neurons", "3", "--csv", file)
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert len(rows) == 8
    for row in rows:
        assert row["layout"] in output
        assert float(row["error"]) <= float(row["bound"]) <= float(row["within"])


@pytest.mark.slow
def test_learners_are_a_table_a_picture_and_a_file(tmp_path):
    plot, table = tmp_path / "descent.png", tmp_path / "rows.csv"
    words = ["--loss", "squared", "--loss", "logistic", "--examples", "10", "--steps", "5"]
    output = ran("paper", "in-context", *words, "--plot", plot, "--csv", table)
    assert "5 steps of gradient descent on 10 examples" in output
    assert output.count("proven") == 5
    assert plot.read_bytes().startswith(b"\x89PNG")
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert [row["loss"] for row in rows] == ["squared"] * 3 + ["logistic"] * 2
    assert all(float(row["deviation"]) <= float(row["bound"]) for row in rows)
    assert "Error" in ran("paper", "in-context", "--loss", "mean", code=1)
