"""What softmaxes are found to compute, noted down as lemmas explain them: the claims that a derivation names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Int

from anchorhead.lemmas.scalar_head import Reads
from anchorhead.network.claim_table import ClaimTable
from anchorhead.proof.heads.neurons import Layer

Softmax = tuple[int, int, tuple[float, ...]]
"""Head or group, column, and the values that those of a group are multiples of; none of a head."""


@dataclass(frozen=True)
class Note:
    """One unit: which entry of the program it is, scale, shift, alpha, beta and error, and its softmaxes in order."""

    entry: tuple[int, int, int]
    numbers: tuple[float, ...]
    softmaxes: tuple[Softmax, ...]


@dataclass(eq=False)
class Record:
    """Notes by layer and token; place: the layer that the walk is at."""

    place: int = 0
    notes: dict[int, dict[int, list[Note]]] = field(default_factory=dict)

    def add(self, token: int, notes: Sequence[Note]) -> None:
        """What a token reads; -1: every token does."""
        self.notes.setdefault(self.place, {}).setdefault(token, []).extend(notes)

    def table(self) -> ClaimTable:
        """All notes; what all tokens of a layer read alike is a row for all of them."""
        units, numbers, softmaxes, values = [], [], [], {}
        for place, tokens in self.notes.items():
            first = next(iter(tokens.values()))
            if len(tokens) > 1 and all(notes == first for notes in tokens.values()):
                tokens = {-1: first}
            for token, notes in tokens.items():
                for note in notes:
                    rows = [values.setdefault(own, len(values)) if own else -1 for _, _, own in note.softmaxes]
                    softmaxes += [(len(units), *one[:2], row) for one, row in zip(note.softmaxes, rows, strict=True)]
                    units.append((place, token, *note.entry))
                    numbers.append(note.numbers)
        if not units:
            return ClaimTable.empty()
        padded = np.zeros((len(values), max(map(len, values), default=0)))
        for own, row in values.items():
            padded[row, : len(own)] = own
        return ClaimTable(np.array(units), np.array(numbers, float), np.array(softmaxes), padded)


def neurons(
    claim: Layer,
    reads: Reads,
    columns: Int[np.ndarray, "neurons parts"] | None = None,
    places: Int[np.ndarray, "neurons parts anchors"] | None = None,
    size: int = 0,
    own_logits: bool = False,
) -> list[Note | None]:
    """A note for each neuron whose query stands for its pre-activation: softmax r parts + p is part p of neuron r, the
    steepest comes first, for to its t the others refer.

    columns   the entries of values that heads read
    places    which feature of its group, of so many (size), each anchor is
    """
    if claim.names is None:
        return [None] * claim.neurons
    steepest = [
        sorted(range(len(shape.parts)), key=lambda p: -float(np.abs(shape.parts[p].slopes).max()))
        for shape in claim.shapes
    ]
    scale = np.zeros(claim.neurons) if own_logits else reads.in_scale
    numbers = np.stack([scale, reads.in_shift, 1 / reads.scale, -reads.shift / reads.scale, 0 * scale], axis=1)
    known: dict[tuple, tuple[float, ...]] = {}
    found: list[Note | None] = []
    for r, (which, fits) in enumerate(zip(claim.which.tolist(), reads.fits.tolist(), strict=True)):
        softmaxes = []
        for p in steepest[which]:
            values: tuple[float, ...] = ()
            if places is not None:
                key = which, p, places[r, p].tobytes()
                if key not in known:
                    known[key] = _values(claim.shapes[which].parts[p].values[:, 0], places[r, p], size)
                values = known[key]
            softmaxes.append((r * claim.parts + p, 0 if columns is None else int(columns[r, p]), values))
        entry = tuple(claim.names[r].tolist())
        found.append(Note(entry, tuple(numbers[r].tolist()), tuple(softmaxes)) if fits else None)  # type: ignore[arg-type]
    return found


def _values(values: np.ndarray, places: np.ndarray, size: int) -> tuple[float, ...]:
    """The values of a part by the features of a group that its anchors are."""
    found = np.zeros(size)
    here = places[: len(values)] >= 0
    found[places[: len(values)][here]] = values[here]
    return tuple(found.tolist())


def as_tokens(notes: Sequence[Note | None], parts: int) -> list[tuple[int, Note]]:
    """The notes of neurons that are tokens: softmax p of token r is part p."""
    return [
        (r, replace(note, softmaxes=tuple((head % parts, *rest) for head, *rest in note.softmaxes)))  # type: ignore[misc]
        for r, note in enumerate(notes)
        if note is not None
    ]
