"""A table from a CSV file: numbers in every column, or a message that names the row and the column."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anchorhead.errors import AnchorheadError

if TYPE_CHECKING:
    import numpy as np

MISSING = ("", "na", "n/a", "nan", "null", "none", "?", "-")
MOST_SHOWN = 12


@dataclass(frozen=True, eq=False)
class Table:
    """X (rows, columns) with the names of its columns, and the target's column y."""

    names: tuple[str, ...]
    X: np.ndarray
    y: np.ndarray


def read_table(path: Path, target: str, drop: Iterable[str] = (), classes: bool = False) -> Table:
    """Reads a CSV file with a line of names.

    drop      columns to leave out
    classes   whether the target may hold words
    """
    import numpy as np

    leave = set(drop)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            header, rows = _lines(path, csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise AnchorheadError(f"{path} cannot be read as a CSV file: {error}") from error
    _check_names(path, header, target, leave)
    place = header.index(target)
    chosen = [j for j, name in enumerate(header) if j != place and name not in leave]
    if not chosen:
        raise AnchorheadError(f"{path} has no column beside {target}: at least one is needed to learn from")
    X = np.empty((len(rows), len(chosen)))
    y: list[Any] = []
    for number, (line, row) in enumerate(rows):
        for column, j in enumerate(chosen):
            X[number, column] = _number(row[j], path, line, header[j], droppable=True)
        y.append(_word(row[place], path, line, target) if classes else _number(row[place], path, line, target))
    return Table(tuple(header[j] for j in chosen), X, np.array(y))


def _lines(path: Path, reader: Any) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The names, and for each row the line where it ends."""
    header: list[str] = []
    rows: list[tuple[int, list[str]]] = []
    for row in reader:
        if not any(field.strip() for field in row):
            continue
        if not header:
            header = [name.strip() for name in row]
            continue
        if len(row) != len(header):
            raise AnchorheadError(
                f"{path}, line {reader.line_num}: {len(row)} fields, but {len(header)} names in the first line. Text "
                "with commas must stand in quotes"
            )
        rows.append((reader.line_num, row))
    if not header:
        raise AnchorheadError(f"{path} is empty: a line of column names and rows of numbers are needed")
    if not rows:
        raise AnchorheadError(f"{path} has names ({_shown(header)}) but no rows")
    return header, rows


def _check_names(path: Path, header: list[str], target: str, leave: set[str]) -> None:
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise AnchorheadError(f"{path} has two columns of the name {twice[0]!r}: names must differ")
    for name, option in ((target, "--target"), *((name, "--drop") for name in sorted(leave))):
        if name not in header:
            raise AnchorheadError(f"{option} {name}: {path} has no such column. It has {_shown(header)}")
    if target in leave:
        raise AnchorheadError(f"--drop {target}: the target cannot be left out")


def _shown(names: list[str]) -> str:
    return ", ".join(names[:MOST_SHOWN]) + (f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else "")


def _number(text: str, path: Path, line: int, name: str, droppable: bool = False) -> float:
    given = _word(text, path, line, name)
    try:
        number = float(given)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        what = f" Leave the column out with --drop {name!r}" if droppable else ""
        raise AnchorheadError(f"{path}, line {line}, column {name}: {given[:40]!r} is not a finite number.{what}")
    return number


def _word(text: str, path: Path, line: int, name: str) -> str:
    given = text.strip()
    if given.lower() in MISSING:
        raise AnchorheadError(
            f"{path}, line {line}, column {name}: the value is missing ({text!r}). Fill it in, or take the row out"
        )
    return given
