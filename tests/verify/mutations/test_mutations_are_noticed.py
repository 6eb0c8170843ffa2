"""The verifier broken in one place: some claim about it then fails. What nobody would notice, nobody has tested.

The tables say for each file which text becomes which, and which test notices; learners have tables of their own.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import pytest

import anchorhead.verify

from .claims_of_tests import holds
from .mutations import Mutation
from .mutations_of_direct import DIRECT
from .mutations_of_equality import EQUALITY, NUMBERS
from .mutations_of_lemmas import LEMMAS
from .mutations_of_rooms import ROOMS
from .mutations_of_the_walk import WALK

MUTATIONS = (*LEMMAS, *WALK, *DIRECT, *ROOMS, *EQUALITY, *NUMBERS)
ELSEWHERE = {
    "__init__.py", "__main__.py", "errors.py", "balls.py", "files.py", "programs/program.py",
    "programs/text.py", "folders/activations.py", "folders/folder.py",
    "grids/callables.py",
}  # fmt: skip
"""What holds no lemma, or what suites of their own break: values of functions, files, programs, their text."""


@cache
def unbroken(claim: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        return holds(claim, Path(folder))


@pytest.mark.parametrize(
    "mutation", [pytest.param(one, marks=pytest.mark.slow) if one.slow else one for one in MUTATIONS], ids=str
)
def test_a_broken_verifier_is_noticed(mutation: Mutation, tmp_path: Path) -> None:
    assert unbroken(mutation.notices), "nothing is broken yet"
    before = mutation.stands()
    with mutation.applied():
        assert mutation.stands() is not before
        assert not holds(mutation.notices, tmp_path)
    assert mutation.stands() is before, "nothing is broken any more"


def test_every_file_is_broken_somewhere() -> None:
    room = Path(anchorhead.verify.__file__).parent
    files = {path.relative_to(room).as_posix() for path in room.rglob("*.py")}
    files = {file for file in files if not file.startswith("learners/") and not file.endswith("/__init__.py")}
    assert files - ELSEWHERE == {one.file for one in MUTATIONS}
