"""What a network of several parts approximates: expressions in several variables, as they were given."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from anchorhead.errors import AnchorheadError
from anchorhead.targets.analysis.summands import Parts, parts_of
from anchorhead.targets.several import SeveralVariables


@dataclass(frozen=True)
class Expressions(SeveralVariables):
    """Functions of any number of variables on a box, with the way in which they are taken apart.

    tokens  none, or the variables are the entries of so many tokens, and the functions their outputs, token by token
    join    see parts_of
    """

    tokens: int | None = None
    join: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tokens is not None:
            counts = (len(self.variables), len(self.expressions))
            if self.tokens < 1 or any(count % self.tokens for count in counts):
                raise AnchorheadError(
                    f"{counts[0]} variables and {counts[1]} functions for tokens={self.tokens}: a number that divides "
                    "both"
                )

    @cached_property
    def parts(self) -> Parts:
        return parts_of(self.expressions, self.variables, self.tokens, (self.low, self.high), self.join)

    @property
    def input_shape(self) -> tuple[int, ...]:
        count = len(self.variables)
        return (count,) if self.tokens is None else (self.tokens, count // self.tokens)

    @property
    def columns(self) -> int:
        """How many outputs a token has."""
        return self.outputs // (self.tokens or 1)
