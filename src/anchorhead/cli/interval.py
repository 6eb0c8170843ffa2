"""A domain as a user writes it: -10:10, 1e-3:1e3 or -pi:pi."""

from __future__ import annotations

import typer

from anchorhead.errors import AnchorheadError

ALLOWED = "two ends such as -10:10, 1e-3:1e3 or -pi:2*pi"


class Interval(tuple[float, float]):
    """The two ends; that the lower one comes first is for the library to check."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Interval:
        """Each end is a number or an expression without variables."""
        from anchorhead.language.targets import parse

        ends = text.split(":")
        if len(ends) != 2:
            raise typer.BadParameter(f"{text!r}: give {ALLOWED}")
        try:
            return cls(float(parse(end, ()).values({})) for end in ends)
        except AnchorheadError as error:
            raise typer.BadParameter(f"{text!r}: give {ALLOWED} ({error})") from error
