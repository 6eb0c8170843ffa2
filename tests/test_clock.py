"""No outcome depends on the clock: work is counted. Clocks serve those who wait, and nothing else."""

import ast
import itertools
import time
from pathlib import Path

import numpy as np
import pytest

import anchorhead as ah
from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.grids.grid import solved_grid
from anchorhead.language.expressions.parser import parse
from anchorhead.language.several import SeveralVariables

ROOT = Path(ah.__file__).parent
ROOMS = ("network", "language", "heads", "proof", "lemmas", "constructions", "convert", "incontext", "export")
CLOCKS = ("time", "datetime", "signal")
XY = ("x", "y")


def clocks_read(path):
    """The modules with clocks that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in CLOCKS)
        if isinstance(node, ast.ImportFrom) and node.module in CLOCKS:
            yield node.module


@pytest.mark.parametrize("room", ROOMS)
def test_no_room_that_decides_reads_a_clock(room):
    files = sorted((ROOT / room).rglob("*.py"))
    assert files
    assert not {str(path.relative_to(ROOT)) for path in files if any(clocks_read(path))}


@pytest.fixture
def leaping(monkeypatch):
    """Every look at a clock finds hours gone by."""

    def leap():
        hours = itertools.count(1e6, 1e4)
        for name in ("perf_counter", "monotonic", "process_time", "time"):
            monkeypatch.setattr(time, name, lambda: float(next(hours)))

    return leap


def outcomes():
    """What is proven, of a head that is solved for, of a callable and of a grid."""
    head = ah.head("sin(3*x)*exp(x)", on=(-1, 1), within=1e-4)
    opaque = ah.head(lambda x: np.sin(x), on=(-1, 1), within=0.05, lipschitz=1.0)
    grid = solved_grid(SeveralVariables((parse("exp(x*y)", XY),), XY, (-1, -1), (1, 1)), BuildRequest(1e-3)).network
    ah.check(head)
    return [(one.certificate.kind, one.certificate.bound, one.certificate.method) for one in (head, opaque, grid)]


def test_a_clock_that_leaps_changes_nothing(leaping, capsys):
    before = outcomes()
    leaping()
    assert outcomes() == before
