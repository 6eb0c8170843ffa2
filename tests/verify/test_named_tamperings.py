"""Tamperings that checks have once accepted: the verifier refuses each, and those that do no harm it may accept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from anchorhead.network import Network
from anchorhead.verify import verify
from tests.proof.test_tampering import NAMED

LATER = ("learner", "many learners")
"""Learners are verified by files of their own."""
CASES = [(change, name) for change, name in NAMED if not name.startswith(LATER)]


@pytest.mark.parametrize(("change", "name"), CASES, ids=[f"{change.__name__}, {name}" for change, name in CASES])
def test_what_was_once_accepted_is_refused(change: Callable[[str], Network], name: str, tmp_path: Path) -> None:
    change(name).save(tmp_path / "net.safetensors")
    found = verify(tmp_path / "net.safetensors")
    assert not found.verified, found.why
    assert "could not make sense" not in found.why
