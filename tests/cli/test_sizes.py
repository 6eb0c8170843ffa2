"""Sizes as a user writes them."""

from __future__ import annotations

import pytest
import typer

from anchorhead.cli.sizes import Sizes


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("64", (64,)),
        ("8:512", (8, 16, 32, 64, 128, 256, 512)),
        ("8:100", (8, 16, 32, 64, 100)),
        ("3:3", (3,)),
        ("3:4", (3, 4)),
        ("1:32", (1, 2, 4, 8, 16, 32)),
        ("8,20,50", (8, 20, 50)),
        ("50,8,8", (8, 50)),
    ],
)
def test_numbers_lists_and_doubling_ranges(text, sizes):
    assert Sizes.parse(text) == sizes


@pytest.mark.parametrize(
    "text", ["", "x", "0", "-8", "8:", ":8", "8:4", "8:16:32", "8,", "1.5", "8;9", "1e3", "٣", "12345678"]
)
def test_nonsense_is_refused_with_what_is_allowed(text):
    with pytest.raises(typer.BadParameter, match="8:512"):
        Sizes.parse(text)
