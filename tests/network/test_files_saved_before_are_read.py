"""Files that earlier versions saved are read and give what they gave then; see tools/make_golden.py."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import anchorhead as ah
from tests.networks import ROWS
from tests.networks.accuracy import last_digits
from tools.make_golden import EXPECTED, GOLDEN, evaluated, file_name, from_hex, said, wanted

pytestmark = pytest.mark.all_cases

FOLDERS = sorted(GOLDEN.glob("format-*"))
KEPT: dict[tuple[str, str], dict[str, Any]] = {
    (folder.name, name): kept
    for folder in FOLDERS
    for name, kept in json.loads((folder / EXPECTED).read_text()).items()
}
PROVEN = [
    key for key, kept in KEPT.items() if kept["said"]["certificate"] and kept["said"]["certificate"]["kind"] == "proven"
]
FIRST = {(folder, KEPT[folder, name]["said"]["target"]): (folder, name) for folder, name in reversed(PROVEN)}
"""Of each format and kind of target one file, whose proof is run in the quick tests, too."""


CLAIM_NOTHING = ("kernel smoother", "descent", "many learners")


def path_of(folder: str, name: str) -> str:
    return str(GOLDEN / folder / file_name(name))


@pytest.mark.parametrize(("folder", "name"), KEPT)
def test_a_file_says_and_gives_what_it_did(folder: str, name: str) -> None:
    """The numbers as far as processors agree."""
    kept, net = KEPT[folder, name], ah.load(path_of(folder, name))
    assert said(net) == kept["said"]
    x, then = from_hex(kept["inputs"]), from_hex(kept["outputs"])
    now = evaluated(net, x)
    assert now.shape == then.shape
    assert np.abs(now - then).max() <= last_digits(net)


@pytest.mark.parametrize(
    ("folder", "name"), [key if key in FIRST.values() else pytest.param(*key, marks=pytest.mark.slow) for key in PROVEN]
)
def test_what_is_proven_of_a_file_is_proven_again(folder: str, name: str) -> None:
    """Unless it was saved before derivations named their claims, of which learners and smoothers have none."""
    row, known = ROWS.get(name.rpartition(" (")[0]), ah.load(path_of(folder, name)).derivation
    if known is not None and known.claims is None and known.kind not in CLAIM_NOTHING:
        with pytest.raises(ah.AnchorheadError, match="build it again"):
            ah.check(path_of(folder, name), row and row.function, progress=False)
        return
    report = ah.check(path_of(folder, name), row and row.function, progress=False)
    assert report.stated == float.fromhex(KEPT[folder, name]["said"]["certificate"]["bound"])


def test_every_file_is_listed_and_every_row_of_the_table_has_one() -> None:
    for folder in FOLDERS:
        listed = {file_name(name) for where, name in KEPT if where == folder.name}
        assert {path.name for path in folder.iterdir()} == {*listed, EXPECTED}
    missing = {*wanted()} - {name for _, name in KEPT}
    assert not missing, "run python -m tools.make_golden, and commit what it writes"
