"""What flows between layers: how many tokens of each kind, and what each feature of a token means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from anchorhead.decimals import counted
from anchorhead.errors import AnchorheadError
from anchorhead.network.dtypes import stored
from anchorhead.read_only import read_only

Kind = Literal["input", "register", "state"]
KINDS: tuple[Kind, ...] = ("input", "register", "state")


@dataclass(frozen=True)
class Stream:
    """A sequence of shape (..., tokens, features): first the input tokens, then registers, then states.

    `inputs` is None where any number of input tokens will do.
    """

    inputs: int | None
    registers: int
    states: int
    features: tuple[str, ...]

    @property
    def width(self) -> int:
        return len(self.features)

    @property
    def tokens(self) -> int | None:
        return None if self.inputs is None else self.inputs + self.registers + self.states

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of which there may be a token."""
        return tuple(kind for kind, count in self.count().items() if count != 0)

    @property
    def shape(self) -> tuple[int | None, int, int, int]:
        """All that layers after it can tell: the number of tokens of each kind, and of features."""
        return self.inputs, self.registers, self.states, self.width

    def count(self, tokens: int | None = None) -> dict[Kind, Any]:
        """How many tokens of each kind there are when `tokens` enter the network; None: any number."""
        inputs = tokens if self.inputs is None else self.inputs
        return {"input": inputs, "register": self.registers, "state": self.states}

    def with_features(self, features: tuple[str, ...]) -> Stream:
        return replace(self, features=features)

    def __str__(self) -> str:
        counts = [f"{'any number of' if self.inputs is None else self.inputs} input"]
        counts += [f"{self.registers} register"] if self.registers else []
        counts += [f"{self.states} state"] if self.states else []
        return f"{' + '.join(counts)} tokens of {counted(self.width, 'feature')}"


def weight(array: object, what: str, dims: tuple[int, ...]) -> Float[np.ndarray, "..."]:
    """A read-only float32 or float64 copy of weights, as they are stored, refused unless finite and of an allowed
    dimension."""
    try:
        given = np.asarray(array)
    except (TypeError, ValueError, RuntimeError) as error:
        raise AnchorheadError(f"{what} is not an array of numbers: {error}") from error
    if given.dtype.kind in "iub":
        given = given.astype(np.float64)
    if given.dtype not in (np.float32, np.float64):
        raise AnchorheadError(f"{what} has dtype {given.dtype}: weights are float32 or float64")
    if given.ndim not in dims:
        allowed = " or ".join(str(dim) for dim in dims)
        raise AnchorheadError(f"{what} has shape {given.shape}: an array of dimension {allowed} is needed")
    if not given.size:
        raise AnchorheadError(f"{what} has shape {given.shape}, with nothing in it: every side must be at least 1")
    if not np.isfinite(given).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(given))[0])
        raise AnchorheadError(f"{what} has the entry {given[place]} at {place}: all weights must be finite")
    return read_only(stored(given, given.dtype))


def names(given: Any, count: int, kind: str = "feature") -> tuple[str, ...]:
    """Names of features, or of another kind of thing, as given, or numbered ones."""
    if given is None:
        return tuple(f"{kind} {i}" for i in range(count))
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise AnchorheadError(f"{kind} names {given!r}: give a text for each of the {count} {kind}s")
    if len(given) != count or not all(isinstance(name, str) for name in given):
        raise AnchorheadError(f"{len(given)} {kind} names for {count} {kind}s: give a text for each {kind}")
    return tuple(given)


def is_count(given: Any) -> bool:
    """Whether it is a whole number, Python's or numpy's, of at least 1."""
    return isinstance(given, Integral) and int(given) >= 1


def counts(given: Any, what: str) -> tuple[int, ...]:
    """A list of one or more whole numbers of at least 1."""
    if not isinstance(given, Sequence | np.ndarray) or not len(given) or not all(map(is_count, given)):
        raise AnchorheadError(f"{what} is {given!r}: a list of whole numbers, each at least 1, is needed")
    return tuple(int(count) for count in given)
