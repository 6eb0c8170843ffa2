"""What softmaxes are found to compute, noted down as lemmas explain them: the claims that a derivation names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np
from jaxtyping import Float, Int

from anchorhead.lemmas.scalar_head import Reads
from anchorhead.network.claim_table import ClaimTable
from anchorhead.proof.heads.neurons import Layer


@dataclass(frozen=True, eq=False)
class Notes:
    """Some units of one token: which entry of the program each is, its scale, shift, alpha, beta and error, and its
    softmaxes in order, as rows of a table of claims (network.claim_table)."""

    entries: Int[np.ndarray, "units 3"]
    numbers: Float[np.ndarray, "units 5"]
    softmaxes: Int[np.ndarray, "softmaxes 4"]
    values: Float[np.ndarray, "rows keys"] = field(default_factory=lambda: np.zeros((0, 0)))

    @classmethod
    def of_unit(
        cls, entry: tuple[int, int, int], numbers: Sequence[float], softmaxes: Sequence[tuple[int, int]]
    ) -> Notes:
        """One unit of heads, each by its number and the column of its values."""
        rows = np.array([(0, head, column, -1) for head, column in softmaxes])
        return cls(np.array([entry]), np.array([numbers], float), rows)

    def same(self, other: Notes) -> bool:
        return all(np.array_equal(getattr(self, one.name), getattr(other, one.name)) for one in fields(self))

    def units(self, which: Int[np.ndarray, " some"]) -> Notes:
        """Some of the units, in their order."""
        number = np.full(len(self.entries), -1)
        number[which] = np.arange(len(which))
        softmaxes = self.softmaxes[number[self.softmaxes[:, 0]] >= 0]
        softmaxes = np.concatenate([number[softmaxes[:, :1]], softmaxes[:, 1:]], axis=1)
        return replace(self, entries=self.entries[which], numbers=self.numbers[which], softmaxes=softmaxes)


@dataclass(eq=False)
class Record:
    """Notes by layer and token; place, tokens: the layer that the walk is at, and how many tokens ask there."""

    place: int = 0
    tokens: int = 0
    notes: dict[int, dict[int, list[Notes]]] = field(default_factory=dict)

    def add(self, token: int, notes: Notes) -> None:
        """What a token reads; -1: every token does."""
        self.notes.setdefault(self.place, {}).setdefault(token, []).append(notes)

    def passed(self, layers: int) -> None:
        """The walk goes on; what all tokens of a layer read alike is noted once."""
        first, *others = self.notes.get(self.place, {-1: []}).values()
        if len(others) + 1 == self.tokens > 1 and all(_same(first, one) for one in others):
            self.notes[self.place] = {-1: first}
        self.place += layers

    def table(self) -> ClaimTable:
        """All notes."""
        found, rows, count = ClaimTable.empty(), dict[tuple[float, ...], int](), 0
        units, numbers, softmaxes = [found.units], [found.numbers], [found.softmaxes]
        for place, tokens in self.notes.items():
            for token, notes in ((token, one) for token, several in tokens.items() for one in several):
                units.append(np.insert(notes.entries, [0, 0], (place, token), axis=1))
                numbers.append(notes.numbers)
                own = [rows.setdefault(tuple(row.tolist()), len(rows)) for row in notes.values]
                unit, head, column, row = notes.softmaxes.T
                softmaxes.append(np.stack([unit + count, head, column, np.array([*own, -1])[row]], axis=1))
                count += len(notes.entries)
        values = np.zeros((len(rows), max(map(len, rows), default=0)))
        for row, number in rows.items():
            values[number, : len(row)] = row
        return ClaimTable(np.concatenate(units), np.concatenate(numbers), np.concatenate(softmaxes), values)


def _same(one: Sequence[Notes], other: Sequence[Notes]) -> bool:
    return len(one) == len(other) and all(mine.same(theirs) for mine, theirs in zip(one, other, strict=True))


def neurons(
    claim: Layer,
    reads: Reads,
    columns: Int[np.ndarray, "neurons parts"] | None = None,
    places: Int[np.ndarray, "neurons parts anchors"] | None = None,
    size: int = 0,
    own_logits: bool = False,
) -> Notes:
    """A unit for each neuron whose query stands for its pre-activation: softmax r parts + p is part p of neuron r, and
    the steepest comes first, for to its t the others refer.

    columns      the entries of values that heads read
    places       which feature of its group, of so many (size), each anchor is
    own_logits   each logit of a group is a sum of its own
    """
    fits = np.flatnonzero(reads.fits) if claim.names is not None else np.zeros(0, int)
    names = np.zeros((claim.neurons, 3), int) if claim.names is None else claim.names
    scale = 0 * reads.in_scale if own_logits else reads.in_scale
    numbers = np.stack([scale, reads.in_shift, 1 / reads.scale, -reads.shift / reads.scale, 0 * scale], axis=1)
    softmaxes, values = [np.zeros((0, 4), int)], [np.zeros((0, size))]
    for k, shape in enumerate(claim.shapes):
        own = fits[claim.which[fits] == k]
        for p in sorted(range(len(shape.parts)), key=lambda p: -float(np.abs(shape.parts[p].slopes).max())):
            row = np.full(len(own), -1)
            if places is not None:
                unique, which = np.unique(places[own, p, : len(shape.parts[p])], axis=0, return_inverse=True)
                row = sum(map(len, values)) + which.reshape(-1)
                values.append(
                    np.array([_spread(shape.parts[p].values[:, 0], at, size) for at in unique]).reshape(-1, size)
                )
            column = np.zeros(len(own), int) if columns is None else columns[own, p]
            softmaxes.append(np.stack([own, own * claim.parts + p, column, row], axis=1))
    every = np.concatenate(softmaxes)
    ordered = every[np.argsort(every[:, 0], kind="stable")]
    return Notes(names, numbers, ordered, np.concatenate(values)).units(fits)


def _spread(values: np.ndarray, places: np.ndarray, size: int) -> np.ndarray:
    """The values of a part by the features of a group that its anchors are."""
    found = np.zeros(size)
    found[places[places >= 0]] = values[places >= 0]
    return found
