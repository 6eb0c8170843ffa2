"""Sizes as a user writes them: 64, 8,20,50 or 8:512."""

from __future__ import annotations

import re

import typer

MAX_DIGITS = 7
ALLOWED = "a whole number such as 64, a list such as 8,20,50, or a range such as 8:512, which doubles"


class Sizes(tuple[int, ...]):
    """The numbers in ascending order, each once."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Sizes:
        """A range doubles from its first to its last number, the last included."""
        number = rf"[1-9][0-9]{{0,{MAX_DIGITS - 1}}}"
        if not re.fullmatch(rf"{number}(:{number}|(,{number})*)", text, re.ASCII):
            raise typer.BadParameter(f"{text!r}: give {ALLOWED}")
        if ":" not in text:
            return cls(sorted({int(size) for size in text.split(",")}))
        first, last = (int(end) for end in text.split(":"))
        if first > last:
            raise typer.BadParameter(f"{text!r} runs downwards: give {ALLOWED}")
        doubled = [first * 2**step for step in range(last.bit_length()) if first * 2**step < last]
        return cls((*doubled, last))
