"""`anchorhead plan`: what it prints and writes, and how it refuses."""

from __future__ import annotations

import csv

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save_file
from typer.testing import CliRunner

from anchorhead.cli import app

runner = CliRunner()


@pytest.fixture
def weights(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "mlp.safetensors"
    arrays = {"0.weight": (3, 4), "0.bias": (3,), "2.weight": (4, 3), "2.bias": (4,)}
    save_file({name: rng.normal(size=shape).astype(np.float32) for name, shape in arrays.items()}, path)
    return path


def run(*arguments):
    return runner.invoke(app, ["plan", *(str(argument) for argument in arguments)])


def test_a_plan_is_printed_written_and_drawn(weights, tmp_path):
    table, latex, picture = (tmp_path / name for name in ("plan.csv", "plan.tex", "plan.png"))
    files = ("--csv", table, "--latex", latex, "--plot", picture)
    asked = ("--activation", "relu", "--on", "0:1", "--within", "1e-1,1e-2", "--tokens", 2, "--dtype", "float64")
    result = run(weights, *asked, *files)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("network 4 -> 3 -> 4 (relu, 2 tokens) on [0, 1], in float64: sizes before building")
    assert max(len(line) for line in result.stdout.splitlines() if str(tmp_path) not in line) <= 100
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 24
    assert {row["within"] for row in rows} == {"0.1", "0.01"}
    assert all(f"{int(row['parameters']):,}" in result.stdout for row in rows if row["placement"] == "solved")
    assert latex.read_text().startswith("\\begin{tabular}")
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ({"--within": "1e-1,small"}, 2, "give an error such as"),
        ({"--within": "0.1,-1"}, 1, "a number above 0"),
        ({"--activation": "reluu"}, 1, "reluu"),
        ({"--on": "1:0"}, 1, "lower end above"),
        ({"--tokens": "3"}, 1, "do not divide into tokens=3"),
        ({"--plot": "plan.gif"}, 1, "a picture is written as"),
        ({"--csv": "nowhere/plan.csv"}, 1, "nowhere"),
        ({"--causal": None}, 1, "causal"),
    ],
)
def test_refusals(weights, change, code, message):
    options = {"--activation": "relu", "--on": "0:1", "--within": "0.1"} | change
    given = [word for option in options.items() for word in option if word is not None]
    result = run(weights, *given)
    assert result.exit_code == code
    assert message in " ".join(result.output.replace("│", " ").split())
    assert "Traceback" not in result.output


def test_expressions_are_planned_for(tmp_path):
    table = tmp_path / "plan.csv"
    result = run(
        "x*y + sin(z)", "--on", "x=-1:1", "--on", "y=0:2", "--on", "z=-3:3", "--within", "1e-2", "--csv", table
    )
    assert result.exit_code == 0, result.output
    assert "sin(z): a function of one variable" in result.stdout
    with table.open() as file:
        assert len(list(csv.DictReader(file))) == 12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mlp.safetensors", "x", "--activation", "relu", "--on", "0:1"), "give it alone"),
        (("mlp.safetensors", "--activation", "relu", "--on", "0:1"), "--within is missing"),
        (("mlp.safetensors", "--activation", "relu", "--on", "x=0:1"), "one interval for all inputs"),
        (("mine.py:f", "--on", "x=0:1"), "only approximate takes"),
        (("x",), "--on is missing"),
    ],
)
def test_files_and_expressions_are_told_apart(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.output.replace("│", " ").split())


def test_words_for_files_are_refused_for_expressions_and_missed_where_needed(weights):
    for arguments, message in (
        (("x", "--activation", "relu", "--on", "x=0:1"), "is for files, not for expressions"),
        ((weights, "--on", "0:1", "--within", "1e-2"), "--activation relu"),
        ((weights, "--activation", "relu", "--order", "2,1", "--on", "0:1", "--within", "1e-2"), "each layer"),
    ):
        result = run(*arguments)
        assert result.exit_code == 1
        assert message in result.output


def test_an_onnx_file_is_planned_for_up_to_a_value_of_it(tmp_path):
    path = tmp_path / "mlp.onnx"
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["a"])]
    nodes += [helper.make_node("Gemm", ["a", "w"], ["y"]), helper.make_node("Softmax", ["y"], ["p"])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3]) for name in ("x", "p")]
    weight = numpy_helper.from_array(np.eye(3, dtype=np.float32), "w")
    onnx.save(helper.make_model(helper.make_graph(nodes, "mlp", ends[:1], ends[1:], [weight])), path)
    result = run(path, "--until", "y", "--on", "0:1", "--within", "1e-2")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("network 3 -> 3 -> 3 (relu)")
