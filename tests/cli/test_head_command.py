"""`anchorhead head`: what it prints and writes, and how it refuses."""

from __future__ import annotations

import csv
import math

import pytest
import typer
from typer.testing import CliRunner

from anchorhead.checking import check
from anchorhead.cli import app
from anchorhead.cli.interval import Interval
from anchorhead.constructions.head import head
from anchorhead.language.targets import NAMED
from anchorhead.network.files import load

runner = CliRunner()


def ran(*arguments) -> str:
    result = runner.invoke(app, ["head", *(str(argument) for argument in arguments)])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_head_is_reported_drawn_and_saved(tmp_path):
    plot, file = tmp_path / "tanh.png", tmp_path / "tanh.safetensors"
    output = ran("tanh", "--on", "-1:2", "--anchors", "2", "--dtype", "float32", "--plot", plot, "-o", file)
    made = head("tanh", (-1, 2), anchors=2, dtype="float32")
    lines = output.splitlines()
    assert lines[0] == f"tanh on [-1, 2] in float32: {made.anchors} anchors"
    assert max(len(line) for line in lines if str(tmp_path) not in line) <= 100
    cells = [line.split() for line in lines if line.strip()[:1].isdigit()][: made.anchors]
    for row, slope, offset, value in zip(
        cells, made.parts[0].slopes, made.parts[0].offsets, made.parts[0].values, strict=True
    ):
        assert [float(cell) for cell in row[1:]] == pytest.approx([slope, offset, value[0]], rel=1e-4)
    assert f"error at most {made.certificate.bound:.3g}" in output
    for term in made.certificate.terms:
        assert f"{term.amount:.3g}" in output
        assert str(term) in output
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert check(file).stated == made.certificate.bound
    assert load(file).certificate.dtype == "float32"


def test_several_functions_share_their_keys_and_have_a_value_each():
    output = ran("sin", "cos", "--on", "-1:1", "--anchors", "2")
    assert "[sin, cos] on [-1, 1] in float64: 2 anchors" in output
    assert "value 0" in output
    assert "value 1" in output


def test_parts_are_told_apart():
    output = ran("abs", "--on", "-1:1", "--within", "1e-4", "--dtype", "float32")
    made = head("abs", (-1, 1), 1e-4, dtype="float32")
    assert f"{made.anchors} anchors in {len(made.parts)} parts that add up" in output
    rows = [line.split() for line in output.splitlines() if line.startswith(("   1 ", "   2 "))]
    assert [int(row[0]) for row in rows] == [n for n, part in enumerate(made.parts, 1) for _ in range(len(part))]


def test_the_origin_and_the_bias_are_part_of_the_formula():
    assert "slope (s - 1000.5)" in ran("sin", "--on", "1000:1001", "--anchors", "2")


def test_a_long_table_is_cut_short():
    output = ran("sin", "--on", "0:1", "--anchors", "22", "--placement", "uniform")
    assert "and 2 more anchors" in output
    assert len(output.splitlines()) < 45


def test_caps_are_passed_on():
    cells = ran("relu", "--on", "-1:1", "--anchors", "3", "--max-value", "30", "--max-slope", "1e5").splitlines()
    rows = [line.split() for line in cells if line.strip()[:1].isdigit()][:3]
    assert all(abs(float(row[3])) <= 30 and abs(float(row[1])) <= 1e5 for row in rows)


def test_the_list_holds_every_named_function():
    output = ran("--list")
    for named in NAMED.values():
        assert named.signature in output
        assert named.description in output
    assert max(len(line) for line in output.splitlines()) <= 100


def test_the_frontier_is_printed_drawn_and_written(tmp_path):
    plot, table = tmp_path / "frontier.png", tmp_path / "frontier.csv"
    output = ran("sin(2*x)", "--on", "-1:1", "--frontier", "--anchors", "3", "--plot", plot, "--csv", table)
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["anchors"]) for row in rows] == [2, 3]
    body = [line.split() for line in output.splitlines() if line.strip()[:1].isdigit()]
    for line, row in zip(body, rows, strict=True):
        assert line[:4] == [
            row["anchors"],
            *(f"{float(row[name]):#.3g}" for name in ("uniform", "polynomial", "solved")),
        ]
    assert max(len(line) for line in output.splitlines() if str(tmp_path) not in line) <= 100
    assert plot.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("-10:10", (-10, 10)),
        ("1e-6:2.5E3", (1e-6, 2500)),
        ("-1e6:-1e-6", (-1e6, -1e-6)),
        ("-pi:2*pi", (-math.pi, 2 * math.pi)),
        (" 0 : 1/3", (0, 1 / 3)),
        ("0.1:sqrt(2)", (0.1, math.sqrt(2))),
    ],
)
def test_a_domain_is_two_numbers_or_constant_expressions(text, ends):
    assert Interval.parse(text) == ends


@pytest.mark.parametrize(
    "text", ["", "1", ":", "1:", "1:2:3", "a:b", "x:1", "inf:1", "1;2", "__import__('os'):1", "9**9**9:1"]
)
def test_nothing_else_is(text):
    with pytest.raises(typer.BadParameter):
        Interval.parse(text)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["gelu"],
        ["gelu", "--on", "-1:1"],
        ["gelu", "--within", "1e-3"],
        ["gelu", "--on", "-1:1", "--within", "1e-3", "--anchors", "3"],
        ["gelu", "--on", "1", "--within", "1e-3"],
        ["gelu", "--on", "-1:1", "--within", "small"],
        ["gelu", "--on", "-1:1", "--anchors", "3", "--csv", "table.csv"],
        ["gelu", "--on", "-1:1", "--frontier", "--within", "1e-3"],
        ["gelu", "--on", "-1:1", "--frontier", "-o", "gelu.safetensors"],
        ["gelu", "--on", "-1:1", "--frontier", "--placement", "uniform"],
        ["gelu", "--on", "-1:1", "--within", "1e-3", "--dtype", "float16"],
        ["gelu", "--on", "-1:1", "--within", "1e-3", "--placement", "random"],
    ],
)
def test_usage_errors_have_exit_code_2(arguments):
    assert runner.invoke(app, ["head", *arguments]).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gelu", "--on", "1:-1", "--within", "1e-3"], "lower end"),
        (["gelu", "--on", "-1:1", "--within", "0"], "above 0"),
        (["gelu", "--on", "-1:1", "--anchors", "0"], "anchors=0"),
        (["geluu", "--on", "-1:1", "--anchors", "3"], "gelu"),
        (["1/x", "--on", "-1:1", "--anchors", "3"], "0"),
        (["gelu", "--on", "-1:1", "--frontier", "--anchors", "1"], "most=1"),
    ],
)
def test_what_the_library_refuses_is_one_paragraph_and_exit_code_1(arguments, message):
    result = runner.invoke(app, ["head", *arguments])
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["--within", "1e-3", "--plot", "missing/gelu.png"],
        ["--within", "1e-3", "-o", "missing/gelu.safetensors"],
        ["--frontier", "--csv", "missing/gelu.csv"],
        ["--frontier", "--plot", "missing/gelu.png"],
    ],
)
def test_a_missing_folder_is_named_before_any_work_is_done(arguments, monkeypatch):
    for name in ("constructions.head.head", "lab.frontier"):
        monkeypatch.setattr(f"anchorhead.{name}", lambda *_, **__: pytest.fail("work was done"))
    result = runner.invoke(app, ["head", "gelu", "--on", "-1:1", *arguments])
    assert result.exit_code == 1
    assert "no folder missing" in result.stderr


def test_help_has_examples():
    result = runner.invoke(app, ["head", "--help"])
    assert "Example: anchorhead head gelu --on -10:10 --within 1e-6" in result.stdout
