"""`anchorhead learn`: a table in, coefficients beside scikit-learn's out; bad tables are refused by row and column."""

from __future__ import annotations

import csv
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import anchorhead as ah
from anchorhead import incontext
from anchorhead.cli import app
from anchorhead.cli.learning.models import MODELS

runner = CliRunner()
NAMES = ["area, m2", "rooms", "age"]


@pytest.fixture
def houses(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3)) * [40, 1.5, 20] + [100, 4, 50]
    price = X @ [2000, 5000, -300] + 10_000 * rng.standard_normal(60)
    return _written(tmp_path / "houses.csv", [*NAMES, "town", "dear", "price"], [
        [*row, "Springfield, West", "yes" if one > 200_000 else "no", one] for row, one in zip(X, price, strict=True)
    ])  # fmt: skip


def _written(path: Path, header: list[str], rows: list[list[object]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def _learn(*arguments: object) -> str:
    result = runner.invoke(app, ["learn", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


def _refused(*arguments: object) -> str:
    result = runner.invoke(app, ["learn", *map(str, arguments)])
    assert result.exit_code in (1, 2)
    assert isinstance(result.exception, SystemExit), "a traceback"
    # frames and colours, which a terminal may ask for, would stand between the words
    plain = re.sub(r"\x1b\[[\d;]*m", "", result.output)
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", plain).split())


def test_the_models_are_listed() -> None:
    output = _learn("--list")
    assert all(name in output for name in MODELS)


def test_the_list_says_what_options_are_if_not_given() -> None:
    pytest.importorskip("sklearn")
    for model in MODELS.values():
        parameters = inspect.signature(getattr(incontext, model.estimator)).parameters
        assert {name: parameters[name].default for name in model.options} == model.options


def test_coefficients_stand_beside_scikit_learns_and_picture_and_network_are_written(
    houses: Path, tmp_path: Path
) -> None:
    pytest.importorskip("sklearn")
    plot, net = tmp_path / "path.png", tmp_path / "fitted.safetensors"
    drop = ("--drop", "town", "--drop", "dear")
    output = _learn(houses, "--target", "price", "--model", "ridge", "--alpha", 1, *drop, "--plot", plot, "-o", net)
    for name in NAMES:
        line = next(line for line in output.splitlines() if line.startswith(name))
        ours, theirs, apart = map(float, line.split()[-3:])
        assert ours == pytest.approx(theirs, rel=1e-5)
        assert abs(apart) <= 1e-5 * abs(theirs)
    found = re.search(r"largest difference: (\S+) of", output)
    assert found
    assert float(found[1]) <= 1e-4
    assert re.search(r"\d+ attention layers \(\d+ steps\)", output)
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert ah.load(net)(0.5 * np.array([[1.0, -1, 0, 2, 1], [-1, 1, 0, -2, -1]])).shape == (4,)


@pytest.mark.slow
def test_classes_may_be_words_and_it_is_said_which_is_which(houses: Path, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    drop = ("--drop", "town", "--drop", "price")
    plot = tmp_path / "path.svg"
    output = _learn(houses, "--target", "dear", "--model", "logistic", "--C", 0.1, *drop, "--tol", 1e-3, "--plot", plot)
    assert "above 0 speaks for yes, below 0 for no" in output
    assert plot.stat().st_size > 0


def test_where_objectives_differ_both_values_are_given(houses: Path) -> None:
    pytest.importorskip("sklearn")
    options = ("--epsilon", 1.5, "--scale", 9_000, "--drop", "town", "--drop", "dear", "--tol", 1e-4)
    output = _learn(houses, "--target", "price", "--model", "huber", *options)
    found = re.search(r"is (\S+) in context, (\S+) at scikit-learn's", output)
    assert found
    assert float(found[1]) <= float(found[2])


def test_a_constant_column_is_named_in_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    path = _written(tmp_path / "t.csv", ["a", "flat", "y"], [[i, 5, 2 * i + (i % 3)] for i in range(12)])
    assert "coefficient 0: flat" in _learn(path, "--target", "y", "--model", "ridge")


def test_a_constant_target_is_said_and_drawn(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    path = _written(tmp_path / "t.csv", ["a", "y"], [[i, 4] for i in range(12)])
    output = _learn(path, "--target", "y", "--plot", tmp_path / "path.png")
    assert "y is the same in every row" in output
    assert (tmp_path / "path.png").exists()


def test_names_of_columns_reach_neither_the_terminal_nor_the_picture_as_orders(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    names = ["cost $\\frac$ in $", "_hidden\x1b[31m", "long name " * 30, "y"]
    rows: list[list[object]] = [[i, i % 5, i % 7, 3 * i + i % 3] for i in range(20)]
    path = _written(tmp_path / "t.csv", names, rows)
    output = _learn(path, "--target", "y", "--plot", tmp_path / "path.svg")
    assert "\x1b" not in output
    assert "_hidden\ufffd[31m" in output


@pytest.mark.parametrize("written", [b"\xef\xbb\xbfx,y\n1,2\n2,4\n4,7\n", b"x,y\r\n1,2\r\n2,4\r\n4,7\r\n\r\n"])
def test_marks_and_line_ends_of_other_programs_are_read(tmp_path: Path, written: bytes) -> None:
    pytest.importorskip("sklearn")
    path = tmp_path / "t.csv"
    path.write_bytes(written)
    assert re.search(r"^x +1\.", _learn(path, "--target", "y"), re.MULTILINE)


def test_columns_without_a_name_can_be_dropped(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    path = tmp_path / "t.csv"
    path.write_text(",x,y,\n0,1,2,\n1,2,4,\n2,4,7,\n")
    assert "column 1 has no name in the first line" in _refused(path, "--target", "y")
    assert "scikit-learn" in _learn(path, "--target", "y", "--drop", "")


def test_what_scikit_learns_own_solver_refuses_leaves_our_fit(houses: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")

    def refuses(*_: object) -> None:
        raise ValueError("no convergence")

    monkeypatch.setattr(linear_model.Ridge, "fit", refuses)
    output = _learn(houses, "--target", "price", "--drop", "town", "--drop", "dear")
    assert "scikit-learn's own solver failed: no convergence" in output
    assert re.search(r"^rooms +\S+$", output, re.MULTILINE)


def test_tables_without_end_are_refused(houses: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    assert "/dev/zero has a line of more than 10,000,000 signs" in _refused("/dev/zero", "--target", "price")
    monkeypatch.setattr("anchorhead.cli.learning.table.MAX_SIGNS", 1000)
    assert "has more than 1,000 signs" in _refused(houses, "--target", "price", "--drop", "town", "--drop", "dear")


def test_bad_tables_are_refused_by_row_and_column(tmp_path: Path, houses: Path) -> None:
    pytest.importorskip("sklearn")
    path = tmp_path / "bad.csv"

    def said(text: str, *options: object) -> str:
        path.write_text(text)
        return _refused(path, "--target", "y", *options)

    assert "is empty" in said("")
    assert "no rows" in said("x,y\n")
    assert "one row: at least 2 are needed" in said("x,y\n1,2\n")
    assert "no such column. It has a, b" in said("a,b\n1,2\n")
    assert "line 3: 3 fields, but 2 names" in said("x,y\n1,2\n3,4,5\n")
    assert "line 3, column x: the value is missing" in said("x,y\n1,2\n,4\n")
    assert "line 2, column y: the value is missing ('NA')" in said("x,y\n1,NA\n")
    assert "line 2, column x: 'red, dark' is not a finite number. Leave the column out" in said('x,y\n"red, dark",1\n')
    assert "'1,5' is not a finite number. Numbers are written without commas" in said('x,y\n"1,5",1\n')
    assert "'1_000' is not a finite number" in said("x,y\n1_000,1\n")
    assert "line 2, column y: 'cheap' is not a finite number. Two classes need" in said("x,y\n1,cheap\n")
    assert "semicolons separate its columns" in said("x;y\n1,5;2\n")
    assert "tabs separate its columns" in said("x\ty\n1\t2\n")
    assert "Is a quote left open?" in said("x,y\n" + "1" * 200_000 + ",2\n")
    assert "3,000 columns to learn from: at most 2,000" in said(",".join(f"x{i}" for i in range(3_000)) + ",y\n")
    assert "line 3, column y: -1 is below 0" in said("x,y\n1,0\n2,-1\n", "--model", "poisson")
    assert "column y has one class, a: --model logistic takes two" in said("x,y\n1,a\n2,a\n", "--model", "logistic")
    assert "has 3 classes, a, b, c" in said("x,y\n1,a\n2,b\n3,c\n", "--model", "logistic")
    assert "is not a finite number" in said("x,y\n1,2\ninf,2\n")
    assert "2 columns of the name 'x'" in said("x,x,y\n1,2,3\n")
    assert "no column beside y" in said("y\n1\n2\n")
    assert "--drop z" in said("x,y\n1,2\n", "--drop", "z")
    assert "there is no file" in _refused(tmp_path / "none.csv", "--target", "y")
    assert "is a folder" in _refused(tmp_path, "--target", "y")
    path.write_bytes(b"x,y\n\xff\xfe,1\n")
    assert "byte 4 is not UTF-8" in _refused(path, "--target", "y")
    assert "'Springfield, West'" in _refused(houses, "--target", "price")


def test_bad_options_are_refused(houses: Path) -> None:
    assert "give a FILE.csv" in _refused()
    assert "one of linear, ridge" in _refused(houses, "--target", "price", "--model", "forest")
    assert "does not belong to --model linear" in _refused(houses, "--target", "y", "--model", "linear", "--alpha", 1)
    pytest.importorskip("sklearn")
    drop = ("--drop", "town", "--drop", "dear")
    assert "alpha=-1.0" in _refused(houses, "--target", "price", "--alpha", -1, *drop)
    assert "max_iter=0" in _refused(houses, "--target", "price", "--max-iter", 0, *drop)


def test_nothing_is_written_over_the_table_or_after_a_refusal(houses: Path, tmp_path: Path) -> None:
    before = houses.read_bytes()
    assert "is named twice" in _refused(houses, "--target", "price", "-o", houses)
    assert houses.read_bytes() == before
    _refused(houses, "--target", "price", "-o", tmp_path / "net.safetensors", "--plot", tmp_path / "p.png")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["houses.csv"]
