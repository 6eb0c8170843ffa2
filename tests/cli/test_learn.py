"""`anchorhead learn`: a table in, coefficients beside scikit-learn's out; bad tables are refused by row and column."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import anchorhead as ah
from anchorhead.cli import app

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
    assert not isinstance(result.exception, AssertionError)
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", result.output).split())


def test_the_models_are_listed() -> None:
    output = _learn("--list")
    assert all(name in output for name in ("linear", "ridge", "lasso", "elastic-net", "logistic", "poisson", "huber"))


def test_coefficients_stand_beside_scikit_learns_and_picture_and_network_are_written(
    houses: Path, tmp_path: Path
) -> None:
    pytest.importorskip("sklearn")
    plot, net = tmp_path / "path.png", tmp_path / "fitted.safetensors"
    drop = ("--drop", "town", "--drop", "dear")
    output = _learn(houses, "--target", "price", "--model", "ridge", "--alpha", 1, *drop, "--plot", plot, "-o", net)
    for name in NAMES:
        line = next(line for line in output.splitlines() if line.startswith(name))
        ours, theirs = map(float, line.split()[-2:])
        assert ours == pytest.approx(theirs, rel=1e-5)
    found = re.search(r"largest difference: (\S+) of", output)
    assert found
    assert float(found[1]) <= 1e-4
    assert re.search(r"\d+ attention layers \(\d+ steps\)", output)
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert ah.load(net)(0.5 * np.array([[1.0, -1, 0, 2, 1], [-1, 1, 0, -2, -1]])).shape == (3,)


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("dear", ["--model", "logistic", "--C", "0.1", "--drop", "town", "--drop", "price", "--tol", "1e-4"]),
        ("price", ["--model", "huber", "--epsilon", "1.5", "--drop", "town", "--drop", "dear", "--tol", "1e-4"]),
    ],
)
def test_other_models_take_their_own_options(houses: Path, target: str, options: list[str]) -> None:
    pytest.importorskip("sklearn")
    assert "largest difference" in _learn(houses, "--target", target, *options)


def test_a_constant_column_is_named_in_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    path = _written(tmp_path / "t.csv", ["a", "flat", "y"], [[i, 5, 2 * i + (i % 3)] for i in range(12)])
    assert "coefficient 0: flat" in _learn(path, "--target", "y", "--model", "ridge")


def test_bad_tables_are_refused_by_row_and_column(tmp_path: Path, houses: Path) -> None:
    pytest.importorskip("sklearn")
    path = tmp_path / "bad.csv"

    def said(text: str, *options: object) -> str:
        path.write_text(text)
        return _refused(path, "--target", "y", *options)

    assert "is empty" in said("")
    assert "no rows" in said("x,y\n")
    assert "no such column. It has a, b" in said("a,b\n1,2\n")
    assert "line 3: 3 fields, but 2 names" in said("x,y\n1,2\n3,4,5\n")
    assert "line 3, column x: the value is missing" in said("x,y\n1,2\n,4\n")
    assert "line 2, column y: the value is missing ('NA')" in said("x,y\n1,NA\n")
    assert "line 2, column x: 'red, dark' is not a finite number. Leave the column out" in said('x,y\n"red, dark",1\n')
    assert "is not a finite number" in said("x,y\n1,2\ninf,2\n")
    assert "two columns of the name 'x'" in said("x,x,y\n1,2,3\n")
    assert "no column beside y" in said("y\n1\n2\n")
    assert "--drop z" in said("x,y\n1,2\n", "--drop", "z")
    assert "cannot be read" in _refused(tmp_path / "none.csv", "--target", "y")
    path.write_bytes(b"x,y\n\xff\xfe,1\n")
    assert "cannot be read" in _refused(path, "--target", "y")
    assert "'Springfield, West'" in _refused(houses, "--target", "price")


def test_bad_options_are_refused(houses: Path) -> None:
    assert "give a FILE.csv" in _refused()
    assert "one of linear, ridge" in _refused(houses, "--target", "price", "--model", "forest")
    assert "does not belong to --model linear" in _refused(houses, "--target", "y", "--model", "linear", "--alpha", 1)
