"""A table from a CSV file: numbers in every column, or a message that names the line and the column."""

from __future__ import annotations

import csv
import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

from anchorhead.cli.terminal import in_one_line
from anchorhead.decimals import shortened
from anchorhead.errors import AnchorheadError

if TYPE_CHECKING:
    import numpy as np

Target = Literal["number", "count", "class"]
MISSING = ("", "na", "n/a", "nan", "null", "none", "?", "-")
MAX_SHOWN = 12
MAX_COLUMNS = 2_000
"""The layers of a learner hold matrices of columns x columns."""
MAX_SIGNS = 200_000_000
LONGEST_LINE = 10_000_000
"""A device or a pipe may go on for ever, without an end of a line too."""
OTHER_SIGNS = {";": "semicolons", "\t": "tabs", "|": "bars"}


@dataclass(frozen=True, eq=False)
class Table:
    """X (rows, columns) with the names of its columns, and the target's column y (rows,).

    classes   if the target says which of two classes a row belongs to: the two, for y = 0 and for y = 1
    """

    names: tuple[str, ...]
    X: np.ndarray
    y: np.ndarray
    classes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """A row's fields, and where it is."""

    path: Path
    line: int
    names: list[str]
    fields: list[str]

    def word(self, j: int) -> str:
        given = self.fields[j].strip()
        if given.lower() in MISSING:
            raise AnchorheadError(
                f"{self._place(j)}: the value is missing ({given!r}). Fill it in, or take the row or the column out"
            )
        return given

    def number(self, j: int, otherwise: str, least: float = -math.inf) -> float:
        """The number in column j; `otherwise` is what to do if it is none."""
        given = self.word(j)
        number = _number(given)
        if number is None:
            comma = " Numbers are written without commas." if _number(given.replace(",", "")) is not None else ""
            raise AnchorheadError(f"{self._place(j)}: {given[:40]!r} is not a finite number.{comma} {otherwise}")
        if number < least:
            raise AnchorheadError(f"{self._place(j)}: {given[:40]} is below {least:g}. {otherwise}")
        return number

    def _place(self, j: int) -> str:
        return f"{self.path}, line {self.line}, column {self.names[j]}"


def read_table(path: Path, target: str, drop: Iterable[str] = (), kind: Target = "number") -> Table:
    """Reads a CSV file with a line of names.

    drop   columns to leave out
    kind   what the target holds: numbers, counts from 0 on, or two classes, which may be words
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            return _table(path, csv.reader(_lines(path, file)), target, set(drop), kind)
    except FileNotFoundError as error:
        raise AnchorheadError(f"there is no file {path}") from error
    except IsADirectoryError as error:
        raise AnchorheadError(f"{path} is a folder: give a CSV file") from error
    except UnicodeDecodeError as error:
        raise AnchorheadError(
            f"{path} cannot be read as text: byte {error.start} is not UTF-8. Save the table as a CSV file in UTF-8"
        ) from error
    except (OSError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise AnchorheadError(f"{path} cannot be read as a CSV file: {reason}. Is a quote left open?") from error


def _lines(path: Path, file: TextIO) -> Iterator[str]:
    """The lines of a file, as long as there are no more than a table may have."""
    signs = 0
    while line := file.readline(LONGEST_LINE):
        signs += len(line)
        if len(line) == LONGEST_LINE or signs > MAX_SIGNS:
            what = f"a line of more than {LONGEST_LINE:,}" if len(line) == LONGEST_LINE else f"more than {MAX_SIGNS:,}"
            raise AnchorheadError(f"{path} has {what} signs: give a table with fewer rows or columns")
        yield line


def _table(path: Path, reader: Any, target: str, leave: set[str], kind: Target) -> Table:
    import numpy as np

    names = _names(path, reader)
    chosen = _chosen(path, names, target, leave)
    place = names.index(target)
    X, y = array("d"), array("d")
    words: list[str] = []
    for row in _rows(path, reader, names):
        X.extend(row.number(j, f"Leave the column out with --drop {names[j]!r}") for j in chosen)
        if kind == "class":
            words.append(row.word(place))
        elif kind == "count":
            y.append(row.number(place, "--model poisson takes counts from 0 on", least=0.0))
        else:
            y.append(row.number(place, "Two classes need --model logistic"))
    rows = max(len(y), len(words))
    if rows < 2:
        count = "one row" if rows else "no rows"
        raise AnchorheadError(f"{path} has names ({_shown(names)}) but {count}: at least 2 are needed")
    numbers, classes = _classes(path, target, words) if kind == "class" else (np.array(y), ())
    return Table(tuple(names[j] for j in chosen), np.array(X).reshape(rows, len(chosen)), numbers, classes)


def _names(path: Path, reader: Any) -> list[str]:
    """The first line that is not empty."""
    for row in reader:
        if not any(field.strip() for field in row):
            continue
        other = next((word for sign, word in OTHER_SIGNS.items() if len(row) == 1 and sign in row[0]), None)
        if other is not None:
            raise AnchorheadError(
                f"{path} has one column, {_shown(row)}: it seems that {other} separate its columns. Needed are commas, "
                "and points in numbers"
            )
        return [in_one_line(name) for name in row]
    raise AnchorheadError(f"{path} is empty: a line of column names and rows of numbers are needed")


def _chosen(path: Path, names: list[str], target: str, leave: set[str]) -> list[int]:
    """The places of the columns to learn from."""
    for name, option in ((target, "--target"), *((name, "--drop") for name in sorted(leave))):
        if name not in names:
            raise AnchorheadError(f"{option} {name}: {path} has no such column. It has {_shown(names)}")
    if target in leave:
        raise AnchorheadError(f"--drop {target}: the target cannot be left out")
    kept = Counter(name for name in names if name not in leave)
    twice = next((name for name, times in kept.items() if times > 1 and name), None)
    if twice is not None:
        raise AnchorheadError(f"{path} has {kept[twice]} columns of the name {twice!r}: names must differ")
    if kept[""]:
        raise AnchorheadError(
            f"{path}: column {names.index('') + 1} has no name in the first line. Name it, or leave it out with "
            "--drop ''"
        )
    chosen = [j for j, name in enumerate(names) if name != target and name not in leave]
    if not chosen:
        raise AnchorheadError(f"{path} has no column beside {target}: at least one is needed to learn from")
    if len(chosen) > MAX_COLUMNS:
        raise AnchorheadError(f"{path} has {len(chosen):,} columns to learn from: at most {MAX_COLUMNS:,} are taken")
    return chosen


def _rows(path: Path, reader: Any, names: list[str]) -> Iterator[Row]:
    """All rows but empty ones, each with the line where it ends."""
    for fields in reader:
        if not any(field.strip() for field in fields):
            continue
        if len(fields) != len(names):
            raise AnchorheadError(
                f"{path}, line {reader.line_num}: {len(fields)} field{'s' * (len(fields) != 1)}, but {len(names)} "
                f"name{'s' * (len(names) != 1)} in the first line. Text with commas must stand in quotes"
            )
        yield Row(path, reader.line_num, names, fields)


def _classes(path: Path, target: str, words: list[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Which of two classes each row belongs to, 0 or 1, and the two; 1 and 1.0 are the same class."""
    import numpy as np

    numbers = {word: _number(word) for word in dict.fromkeys(words)}
    values: dict[str, Any] = {word: word for word in numbers} if None in numbers.values() else numbers
    classes = sorted(set(values.values()))
    shown = [one if isinstance(one, str) else f"{one:g}" for one in classes]
    if len(classes) != 2:
        found = f"one class, {shown[0]}" if len(classes) == 1 else f"{len(classes):,} classes, {_shown(shown)}"
        raise AnchorheadError(f"{path}, column {target} has {found}: --model logistic takes two")
    return np.array([float(values[word] == classes[1]) for word in words]), tuple(shown)


def _shown(names: list[str]) -> str:
    short = [shortened(name, 40) for name in names[:MAX_SHOWN]]
    return ", ".join(short) + (f" and {len(names) - MAX_SHOWN:,} more" if len(names) > MAX_SHOWN else "")


def _number(text: str) -> float | None:
    """The finite number that a text is; 1_000 is none, though Python takes it."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None
