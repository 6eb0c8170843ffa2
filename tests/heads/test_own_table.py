"""The table of heads with their own key: what is written is what is read, and what is kept is worth keeping."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from anchorhead.errors import AnchorheadError
from anchorhead.heads.self_keys.self_key import SelfKeyHead
from anchorhead.heads.tables.self_key_table import (
    PATH,
    SelfKeyFrontier,
    known_functions,
    self_key_frontier,
    self_key_frontiers,
)
from anchorhead.heads.tables.table import read, write
from anchorhead.proof.arithmetic.arithmetic import arithmetic_of
from tools.make_self_key_table import better


def test_every_function_has_heads_in_both_dtypes() -> None:
    keys = {one.key for one in self_key_frontiers()}
    assert {"gelu", "gelu_tanh", "relu", "silu", "mish", "softplus", "elu", "hardswish"} <= set(known_functions())
    for name in known_functions():
        for dtype in ("float32", "float64"):
            assert (name, dtype) in keys


@pytest.mark.parametrize("one", self_key_frontiers(), ids=lambda one: "-".join(one.key))
def test_more_registers_come_with_smaller_bounds(one: SelfKeyFrontier) -> None:
    assert one.heads
    for fewer, more in pairwise(one.heads):
        assert fewer.registers < more.registers
        assert fewer.bound > more.bound
    for head in one.heads:
        assert 0 < head.bound < 0.1
        assert head.low <= -1e30
        assert head.high >= 1e30
        assert one.within(head.bound) is head
    assert one.within(one.heads[-1].bound / 2) is None


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    known = self_key_frontiers()
    write(tmp_path / "again.jsonl", read(PATH)[0], known)
    again = self_key_frontiers(tmp_path / "again.jsonl")
    for one, other in zip(known, again, strict=True):
        assert one.key == other.key
        for head, same in zip(one.heads, other.heads, strict=True):
            for name in ("slopes", "offsets", "values"):
                assert (getattr(head, name) == getattr(same, name)).all()
                assert getattr(head, name).dtype == np.dtype(head.dtype)
            assert vars(head.own) == vars(same.own) if head.own and same.own else head.own is same.own
            assert (head.skip, head.bias, head.step, head.exact, head.rounding) == (
                same.skip, same.bias, same.step, same.exact, same.rounding,
            )  # fmt: skip


def test_a_head_that_is_no_better_is_left_out() -> None:
    known = self_key_frontier("gelu", "float32", str(arithmetic_of("float32")))
    assert known is not None
    worse: SelfKeyHead = replace(known.heads[1], exact=1.0)
    closer: SelfKeyHead = replace(known.heads[2], exact=0.0, rounding=1e-9)
    assert better((*known.heads, worse)) == known.heads
    assert better((*known.heads, closer)) == (*known.heads[:2], closer)


def test_another_model_of_arithmetic_finds_nothing() -> None:
    assert self_key_frontier("gelu", "float32", "another") is None
    assert self_key_frontier("no such function", "float32", str(arithmetic_of("float32"))) is None


def test_a_damaged_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "damaged.jsonl"
    path.write_bytes(PATH.read_bytes().replace(b"gelu", b"gelo", 1))
    with pytest.raises(AnchorheadError, match="damaged"):
        self_key_frontiers(path)
