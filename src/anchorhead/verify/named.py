"""The claims that a derivation names: which softmaxes compute which entry of the program together, and in which units.

Some softmaxes of one token are parts of a unit, in an order. Of the number t that the first of them asks with it says

    sum of what they read = alpha f(scale t + shift) + beta,

where f is the function of an entry (step, token, feature) of the program, an Apply. The arrays, a row for each:

    claims.units       layer, counted without the Embed and as often as it runs; the token that reads, -1: every one;
                       step, token (-1: the one that reads) and feature of the entry
    claims.numbers     scale, shift, alpha, beta, and about how far the unit may be off: of what a bound leaves for
                       grids each gets its share by that. scale 0: the unit is a group of logits, each of which is a sum
                       of its own, and t is the argument of f itself
    claims.softmaxes   unit; head, or group; column of the head's values, 0 of a group; a row of claims.values, or -1
    claims.values      values of which those of a group in every output are multiples

No number here is trusted: what is said is proven, or nothing is verified. A softmax that is not named is bounded by the
interval of its values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from anchorhead.verify.errors import require
from anchorhead.verify.files import Stored

MAX_SOFTMAXES = 2**22
FORMER = "the file was saved before derivations named their claims: build it again"


@dataclass(frozen=True, eq=False)
class Named:
    """One claim, of the softmaxes of one token. entry: step, token and feature."""

    entry: tuple[int, int, int]
    scale: float
    shift: float
    alpha: float
    beta: float
    error: float

    @property
    def own_logits(self) -> bool:
        return self.scale == 0


@dataclass(frozen=True, eq=False)
class Claimed:
    """What is claimed of a softmax: it is one of those of a claim, in their order, and a group's values are multiples
    of these."""

    of: Named
    order: int
    values: np.ndarray | None


Parts = dict[tuple[int, int], Claimed]
"""By head, or group, and column."""
Row = tuple[list[int], list[float], list[tuple[int, int, np.ndarray | None]]]
"""A unit: its row of claims.units and of claims.numbers, and head, column and values of each of its softmaxes."""


@dataclass(frozen=True, eq=False)
class Table:
    """All that a file names, by layer."""

    units: Mapping[int, Sequence[Row]] = field(default_factory=dict)

    def at(self, layer: int, tokens: int, heads: int, columns: int = 1) -> list[Parts]:
        """What is named in a layer of so many heads, for each of its tokens."""
        found: list[Parts] = [{} for _ in range(tokens)]
        for (_, reader, step, token, feature), numbers, softmaxes in self.units.get(layer, ()):
            require(reader < tokens, f"a claim for token {reader} of layer {layer + 1}, which has {tokens}")
            for i in range(tokens) if reader < 0 else (reader,):
                of = Named((step, i if token < 0 else token, feature), *numbers)
                for order, (head, column, values) in enumerate(softmaxes):
                    require(head < heads and column < columns, f"a claim for a softmax that layer {layer + 1} has not")
                    require((head, column) not in found[i], f"two claims for softmax {head} of layer {layer + 1}")
                    found[i][head, column] = Claimed(of, order, values)
        return found


def read_claims(stored: Stored) -> Table:
    """The claims of a file; none, where it has no derivation."""
    if "claims.units" not in stored.tensors:
        require(stored.derivation is None, FORMER)
        return Table()
    units, softmaxes = (_array(stored, name, "i", width) for name, width in (("units", 5), ("softmaxes", 4)))
    numbers, values = (_array(stored, name, "f", width) for name, width in (("numbers", 5), ("values", None)))
    many = len(softmaxes)
    require(many <= MAX_SOFTMAXES, f"claims for {many:,} softmaxes: at most {MAX_SOFTMAXES:,} are read")
    fits = len(units) == len(numbers) == len(np.unique(softmaxes[:, 0])) and (units >= [0, -1, 0, -1, 0]).all()
    inside = (softmaxes >= [0, 0, 0, -1]).all() and (softmaxes[:, [0, 3]] < [len(units), len(values)]).all()
    require(fits and inside, "the claims of the derivation name what is not there")
    rows: list[Row] = [(unit, own, []) for unit, own in zip(units.tolist(), numbers.tolist(), strict=True)]
    for unit, head, column, row in softmaxes.tolist():
        rows[unit][2].append((head, column, None if row < 0 else values[row]))
    layers: dict[int, list[Row]] = {}
    for row in rows:
        layers.setdefault(row[0][0], []).append(row)
    return Table(layers)


def _array(stored: Stored, name: str, kind: str, width: int | None) -> np.ndarray:
    array = stored.array(f"claims.{name}")
    fits = array.ndim == 2 and array.dtype.kind == kind and array.shape[1] == (width or array.shape[1])
    require(fits, f"the array claims.{name} has shape {array.shape}, or another type")
    require(np.isfinite(array).all(), f"the array claims.{name} is not finite")
    return array
