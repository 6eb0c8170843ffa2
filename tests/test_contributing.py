"""CONTRIBUTING's walk through a construction, block by block, in a scratch copy: what it says to write is enough."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(python|diff|sh) ?(\S*)\n(.*?)^```$", re.M | re.S)
PARTS = ("src", "tests", "benchmarks", "tools", "pyproject.toml")


def blocks() -> list[tuple[str, str, str]]:
    """Kind, path and text of what is fenced in the section, in order."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    start = text.index("## How to add a construction")
    return BLOCK.findall(text[start : text.index("\n## ", start)])


def applied(change: str, text: str) -> str:
    """The text with one change: what stands behind "-" and " " stands in it once, and gives way to "+" and " "."""
    before, after = ("\n".join(line[1:] for line in change.splitlines() if line[0] in kinds) for kinds in ("- ", "+ "))
    assert text.count(before) == 1, before
    return text.replace(before, after)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project with all that is written in the section."""
    place = tmp_path_factory.mktemp("scratch")
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, place / part)  # with bytecode, which is as good there: files keep their times
        else:
            shutil.copy(ROOT / part, place / part)
    for kind, path, text in blocks():
        if kind == "python":
            assert not (place / path).exists()
            (place / path).write_text(text)
        elif kind == "diff":
            (place / path).write_text(applied(text, (place / path).read_text()))
    return place


def run(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(place / "src")}
    return subprocess.run(words, cwd=place, env=env, capture_output=True, text=True, check=False)


WITHOUT = """
import pytest
from anchorhead.constructions.theorems.running_mean import running_mean
from anchorhead.lemmas import attention, copy

def test_without_its_lemma_the_bound_of_a_running_mean_is_that_of_an_interval(monkeypatch):
    assert running_mean(3, 2, (-1, 1)).certificate.bound < 1e-12
    monkeypatch.setattr(attention, "LEMMAS", (copy,))
    assert running_mean(3, 2, (-1, 1)).certificate.bound > 1
"""
"""What the lemma is for: the walk that does not know it states the width of the box."""


def test_every_suite_accepts_the_example(copy: Path) -> None:
    """The command of the section, as it is written, in both dtypes: bounds, check, files, exporters; and one more."""
    (command,) = [text.strip() for kind, _, text in blocks() if kind == "sh"]
    python, module, *words = re.findall(r'"[^"]*"|[^\s\\]+', command)
    assert (python, module) == ("python", "-m")
    (copy / "tests" / "test_without.py").write_text(WITHOUT)
    words = [*(word.strip('"') for word in words), "tests/test_without.py", "-p", "no:cacheprovider", "-rA"]
    found = run(copy, sys.executable, "-m", *words)
    assert found.returncode == 0, found.stdout + found.stderr
    passed = re.findall(r"^PASSED (\S+)::", found.stdout, re.M)
    assert len(passed) >= 9
    assert "tests/test_without.py" in passed


def test_the_example_is_in_its_room_and_in_style(copy: Path) -> None:
    binaries = Path(sys.executable).parent
    new = [path for kind, path, _ in blocks() if kind == "python"]
    for words in (("ruff", "check", *new), ("ruff", "format", "--check", *new), ("lint-imports",)):
        found = run(copy, str(binaries / words[0]), *words[1:])
        assert found.returncode == 0, found.stdout + found.stderr
