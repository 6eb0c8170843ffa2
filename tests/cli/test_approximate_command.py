"""`anchorhead approximate`: what it prints and keeps, functions of a file, interruptions, refusals."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from anchorhead.cli import app
from anchorhead.errors import NotReached
from anchorhead.network.files import load

runner = CliRunner()
GRID = ("sin(x*y) + y", "--on", "x=-1:1", "--on", "y=0:1")


def ran(*arguments, code=0) -> str:
    result = runner.invoke(app, ["approximate", *(str(argument) for argument in arguments)])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return " ".join(result.output.replace("│", " ").split())


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "import numpy as np\nfrom beside import k\nvalue = 3\ndef f(x):\n    return np.sin(k * x[:, 0]) * x[:, 1]\n"
    )
    (tmp_path / "beside.py").write_text("k = 2.0\n")
    return path


def test_what_was_found_the_certificate_and_the_size_are_printed(tmp_path):
    file = tmp_path / "net.safetensors"
    output = ran(*GRID, "--within", "1e-4", "-o", file)
    network = load(file)
    assert "found sin(x*y): a grid of x, y" in output
    assert f"error at most {network.certificate.bound:.3g}" in output
    assert f"{network.parameters:,} parameters" in output


def test_expressions_of_tokens(tmp_path):
    file = tmp_path / "net.safetensors"
    rows = ("x[0,0]*x[1,0]; 1 - x[0,0]", "max(x[0,0], x[1,0]); 0")
    ran(*rows, "--tokens", 2, "--features", 1, "--on", "0:1", "--within", "1e-2", "-o", file)
    x = np.random.default_rng(0).uniform(0, 1, (50, 2, 1))
    a, b = x[:, 0, 0], x[:, 1, 0]
    wanted = np.stack([np.stack([a * b, 1 - a], 1), np.stack([np.maximum(a, b), 0 * a], 1)], 1)
    assert np.abs(load(file)(x) - wanted).max() <= 1e-2


def test_a_function_of_a_file_is_run_and_nothing_is_written_beside_it(module, tmp_path):
    before, paths = sorted(tmp_path.iterdir()), list(sys.path)
    output = ran(f"{module}:f", "--on", "x=-1:1", "--on", "y=0:2", "--within", "1e-2")
    assert "no bound, largest error found" in output
    assert sorted(tmp_path.iterdir()) == before
    assert sys.path == paths


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("mine.py:g", None, "defines no 'g'"),
        ("mine.py:value", None, "of type int, not a function"),
        ("mine.py", None, "does not say which function"),
        ("mine.py:", None, "does not say which function"),
        ("other.py:f", None, "there is no file"),
        ("bad.py:f", "x = 1\n1 / 0\n", "ZeroDivisionError: division by zero (line 2)"),
        ("bad.py:f", "def (\n", "SyntaxError"),
        ("bad.py:f", "raise SystemExit(0)\n", "ended the program"),
    ],
)
def test_files_that_have_no_such_function_are_refused(module, name, text, message):
    if text is not None:
        (module.parent / "bad.py").write_text(text)
    output = ran(f"{module.parent}/{name}", "--on", "x=-1:1", "--within", "1e-2", code=1)
    assert message in output


def test_an_expression_with_a_colon_is_no_file():
    assert "':' is not allowed" in ran("x:y", "--on", "x=-1:1", "--within", "1e-2", code=1)


def test_a_proof_that_is_interrupted_leaves_a_network_that_is_saved(tmp_path, monkeypatch):
    def interrupted(*arguments, **words):
        raise KeyboardInterrupt

    monkeypatch.setattr("anchorhead.constructions.grids.grid.prove_grid", interrupted)
    file = tmp_path / "net.safetensors"
    output = ran(*GRID, "--within", "1e-3", "-o", file)
    assert "Warning: the proof was interrupted at 0%" in output
    assert load(file).certificate.kind == "measured"


def test_an_interruption_before_there_is_a_network_says_so(monkeypatch):
    def interrupted(*arguments, **words):
        raise KeyboardInterrupt

    monkeypatch.setattr("anchorhead.constructions.approximate.approximate", interrupted)
    assert "Stopped before there was a network." in ran(*GRID, "--within", "1e-3", code=130)


@pytest.mark.parametrize("saved", [True, False])
def test_what_was_reached_is_reported_and_kept(tmp_path, monkeypatch, saved):
    from anchorhead.constructions import approximate

    best = approximate.approximate("x*y", {"x": (0, 1), "y": (0, 1)}, 1e-2)

    def short_of_it(*arguments, **words):
        raise NotReached("within=1e-09 was not reached", best, best.certificate.bound, 1e-9)

    monkeypatch.setattr("anchorhead.constructions.approximate.approximate", short_of_it)
    file = tmp_path / "net.safetensors"
    output = ran(*GRID, "--within", "1e-9", *(("-o", file) if saved else ()), code=1)
    assert "1e-09 was asked for" in output
    assert "Error: within=1e-09 was not reached" in output
    assert file.exists() == saved
    assert ("give -o FILE to keep it" in output) != saved


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("x*y", "--on", "x=-1:1", "--within", "1e-2"), 1, "y is not known"),
        (("x", "--on", "x=-1:1", "--on", "y=0:1", "--within", "1e-2"), 1, "occurs in none of the expressions"),
        (("x", "--on", "x=-1:1", "--on", "x=0:1", "--within", "1e-2"), 2, "x has two intervals"),
        (("x*y", "--on", "0:1", "--within", "1e-2"), 1, "2 variables, x, y: give each its own"),
        (("x*y", "--on", "0:1", "--on", "y=0:1", "--within", "1e-2"), 2, "give a variable and its interval"),
        (("x", "--within", "1e-2"), 2, "Missing option '--on'"),
        ((*GRID, "--within", "0"), 1, "a number above 0"),
        ((*GRID, "--within", "-1"), 1, "a number above 0"),
        ((*GRID, "--within", "nan"), 1, "a number above 0"),
        ((*GRID, "--within", "inf"), 1, "a number above 0"),
        (("1/x", "--on", "x=-1:1", "--within", "1e-2"), 1, "not defined at x = 0"),
        (("x; y", "--on", "x=0:1", "--on", "y=0:1", "--within", "1e-2"), 2, "separates the outputs of a token"),
        (("x[0,0]", "--tokens", "2", "--features", "1", "--on", "x=0:1", "--within", "1"), 2, "one interval for all"),
        ((*GRID, "--within", "1e-2", "--lipschitz", "3"), 1, "lipschitz=3.0 is for callables"),
        ((*GRID, "--within", "1e-2", "-o", "nowhere/net.safetensors"), 1, "nowhere"),
        (("mine.py:f", "x", "--on", "x=0:1", "--within", "1e-2"), 2, "stands alone"),
    ],
)
def test_refusals(arguments, code, message):
    assert message in ran(*arguments, code=code)


def test_an_interval_without_a_name_is_for_the_only_variable():
    said = ran("sin(3*t)", "--on", "-1:1", "--within", "1e-2")
    assert "target sin(3*t) on [-1, 1]" in said
