"""What a small file may ask of the verifier is limited, and what cannot be told is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from anchorhead.verify import functions
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.files import Stored
from anchorhead.verify.forms import Forms, Quantities, joined, mapped
from anchorhead.verify.grammar import _Reader
from anchorhead.verify.programs import entries
from anchorhead.verify.programs.exact import Exact, _apart
from anchorhead.verify.programs.program import Affine, Apply, Attend, Dot, Input, Program
from anchorhead.verify.rounding import MODELS
from anchorhead.verify.scalar import cells

from ..heads import adversary


@pytest.mark.parametrize("step", [Dot(0, 0), Attend(0, 0, 0, None)])
def test_tokens_that_meet_tokens_are_few(step: Dot | Attend) -> None:
    many = [[1.0]] * (int(entries.MAX_PAIRS**0.5) + 1)
    with pytest.raises(NotVerified, match="1,025 x 1,025 tokens meet"):
        entries._step(step, [many], {})


@pytest.mark.parametrize(
    "step",
    [
        Affine((0,), (np.zeros((1000, 1)),), (None,), np.zeros((1, 1000)), None),
        Apply((adversary.expression("sin(x) + cos(x)"),), np.zeros(500, int), (0,), ("x",)),
        Dot(0, 0),
        Attend(0, 0, 0, None),
    ],
    ids=lambda step: type(step).__name__,
)
def test_entries_are_few(step: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 1,000 tokens: one step is few, four are too many."""
    rules = {name: lambda *args: 0.0 for name in ("add", "mul", "div", "exp", "sin", "cos", "number")}
    tokens, first = [[0.0]] * 1000, Input(("x",), 1000, None, None, None)
    monkeypatch.setattr(entries, "MAX_PARTS", 3_000_000)
    for count, few in ((1, True), (4, False)):
        program = Program((first, *[step] * count), ("x",) * (count + 1), (count,), (), True)
        if few:
            assert len(entries.entries(program, tokens, rules)) == 1000
        else:
            with pytest.raises(NotVerified, match="entry by entry"):
                entries.entries(program, tokens, rules)


def test_coefficients_are_few() -> None:
    """Of a token each, as many as inputs squared, and as tokens, outputs and inputs: an Input of a small file says how
    many there are."""
    tokens = 2**14 + 1
    box = np.zeros((tokens, 1))
    program = Program((Input(("x",), tokens, None, None, None),), ("x",), (0,), (), True)
    with pytest.raises(NotVerified, match="16385 x 16385"):
        Exact(program, box, box)
    x = Forms(np.arange(2**12), np.zeros((2**12, 1, 2**12)), *[np.zeros((2**12, 1))] * 3)
    with pytest.raises(NotVerified, match="4096 x 17 x 4096"):
        mapped(np.ones((17, 1)), None, x, Quantities(), MODELS["float32"])
    nothing = [np.zeros((1, 1))] * 3
    with pytest.raises(NotVerified, match="16385 x 16385"):
        joined([Forms(np.array([n]), np.ones((1, 1, 1)), *nothing) for n in range(tokens)])
    with pytest.raises(NotVerified, match="16385 x 1 x 1 x 16385"):
        _apart(np.ones((tokens, 1, 1)))


def test_blocks_are_few() -> None:
    """A map of 16,385 blocks of one number each has as many squared."""
    layer = {"layer": "Linear", "weight": {"tensor": "blocks"}}
    stored = Stored({}, None, None, None, {"blocks": np.ones((2**14 + 1, 1, 1))})
    with pytest.raises(NotVerified, match="16385 blocks"):
        _Reader(stored).layer(layer, 0)


def test_cells_of_long_functions_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wave that takes some hundred cells, in three nodes."""
    wave = adversary.expression("sin(100*x)")
    assert functions.behaviour(wave, 0.0, 1.25).low < -0.99
    monkeypatch.setattr(functions, "MAX_NODES", 100)
    with pytest.raises(NotVerified, match="not bounded within 25 cells"):
        functions.behaviour(wave, 0.0, 1.5)


def test_a_head_of_which_nothing_can_be_told_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    part, claim, ends, _ = adversary.head("tanh, float32")
    rounded = cells._Proof._rounded
    monkeypatch.setattr(
        cells._Proof, "_rounded", lambda self, batch: [(one, np.nan, size) for one, _, size in rounded(self, batch)]
    )
    with pytest.raises(NotVerified, match="cannot be told"):
        cells.prove([replace(part)], claim, [ends], MODELS["float32"])


@pytest.mark.parametrize("ends", [(np.nan, np.nan), (1.0, -1.0)])
def test_a_head_on_no_number_is_refused(ends: tuple[float, float]) -> None:
    """Nothing would be off on no number."""
    part, claim, *_ = adversary.head("tanh, float32")
    with pytest.raises(NotVerified, match="on no number"):
        cells.prove([part], claim, [ends], MODELS["float32"])
