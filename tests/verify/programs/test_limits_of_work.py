"""What a small file may ask of the verifier is limited, and what cannot be told is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from anchorhead.verify.errors import NotVerified
from anchorhead.verify.programs import entries
from anchorhead.verify.programs.program import Attend, Dot
from anchorhead.verify.rounding import MODELS
from anchorhead.verify.scalar import cells

from ..heads import adversary


@pytest.mark.parametrize("step", [Dot(0, 0), Attend(0, 0, 0, None)])
def test_tokens_that_meet_tokens_are_few(step: Dot | Attend) -> None:
    many = [[1.0]] * (int(entries.MAX_PAIRS**0.5) + 1)
    with pytest.raises(NotVerified, match="1,025 x 1,025 tokens meet"):
        entries._step(step, [many], {})


def test_a_head_of_which_nothing_can_be_told_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    part, claim, ends, _ = adversary.head("tanh, float32")
    rounded = cells._Proof._rounded
    monkeypatch.setattr(
        cells._Proof, "_rounded", lambda self, batch: [(one, np.nan, size) for one, _, size in rounded(self, batch)]
    )
    with pytest.raises(NotVerified, match="cannot be told"):
        cells.prove([replace(part)], claim, [ends], MODELS["float32"])
