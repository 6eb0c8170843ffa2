"""Tables to be changed: whole ones with odd fields, names, rows, quotes and ends of lines."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

CELLS = (
    *(
        "0",
        "1",
        "-0.0",
        "1e308",
        "1e-400",
        " 2 ",
        "+3",
        "00012",
        "1e3",
        ".5",
        "5.",
        "0x10",
        "1_0",
        "1e999",
        "nan",
        "-inf",
    ),
    *("", "?", "yes", "no", "1.0", "a,b", 'say ""a""', "two\nlines", "é", "٣", "\x00", "9" * 400, "-1"),
)
NAMES = ("y", "Y", " y", "a", "", "y\ty", "1", "n" * 200, "\x1b[31m", "c d")


def inside_csv(data: bytes, rng: random.Random) -> bytes:
    """A table with as many fields in every row: fields, rows and columns changed, quotes and ends of lines at will."""
    names = data.decode("utf-8-sig").splitlines()[0].replace('"', "").split(",")
    rows = [[f"{rng.gauss(0, 3):.3g}" for _ in names[1:]] + [rng.choice("01")] for _ in range(rng.randrange(7))]
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        column = rng.randrange(len(names))
        match rng.randrange(8):
            case 0 | 1 if rows:
                rng.choice(rows)[column] = rng.choice(CELLS[:12])
            case 2 if rows:
                rng.choice(rows)[column] = rng.choice(CELLS)
            case 3:
                names[column] = rng.choice(NAMES)
            case 4:
                rows += [row.copy() for _ in range(rng.choice((1, 1, 40))) for row in rows[:10]]
            case 5 if rows:
                del rows[rng.randrange(len(rows))]
            case 6 if len(names) > 1:
                for row in (names, *rows):
                    del row[column]
            case _:
                times = rng.choice((1, 1, 3, 300))
                names += [f"{names[column]}{place}" for place in range(times)]
                for row in rows:
                    row += [row[column]] * times
    quote = rng.choice(("", "", '"'))
    table = [",".join(f"{quote}{field}{quote}" for field in row) for row in (names, *rows)]
    end = rng.choice(("\n", "\n", "\r\n", "\n\n", "\r"))
    return (end.join(table) + rng.choice(("", end))).encode(rng.choice(("utf-8", "utf-8", "utf-8-sig")))


def csv_seeds() -> list[bytes]:
    rng = np.random.default_rng(0)
    rows = [",".join(f"{x:.3g}" for x in row) for row in rng.normal(size=(6, 3))]
    quoted = ['"a b","c ""d""",y', '1,"2",0', "3,,1", "NA,4,?"]
    return ["\n".join(["a,b,y", *rows]).encode(), "\r\n".join(quoted).encode("utf-8-sig"), b"a;b;y\n1;2;3\n"]


def read_csv(data: bytes, path: Path) -> None:
    from anchorhead.cli.learning.table import read_table

    path.write_bytes(data)
    read_table(path, "y", kind=("number", "class", "count")[len(data) % 3])  # type: ignore[arg-type]
