"""A first axis that is fixed to a batch: the samples that a file treats alike become one sample.

Exporters that leave no axis free write the batch of their example into the file: (2, 6) for two samples of six numbers.
Read as one vector, a network of 6 inputs would become one of 12. Whether the first axis is a batch shows in the maps,
once the graph is followed with all of it. Let row r of the input be sample r. The axis is a batch if

    every neuron, and every output, reads neurons of one sample only,
    the weights, biases and functions of each sample are those of the first,
    and the outputs are those of the first sample, then those of the second, and so on.

Then the first sample's share of the maps is the network. Otherwise samples mix, or differ, and the input is one vector.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from anchorhead.convert.onnx_maps import Map, Matrix
from anchorhead.convert.onnx_values import Source


@dataclass(frozen=True, eq=False)
class _Split:
    """To which sample each entry belongs, and its place among the entries of that sample."""

    sample: Int[np.ndarray, " entries"]
    place: Int[np.ndarray, " entries"]

    @classmethod
    def of(cls, sample: Int[np.ndarray, " entries"], samples: int) -> _Split | None:
        """None where samples have different numbers of entries."""
        counts = np.bincount(sample, minlength=samples)
        if len(counts) != samples or (counts != counts[0]).any():
            return None
        place = np.empty(len(sample), int)
        place[np.argsort(sample, kind="stable")] = np.tile(np.arange(counts[0]), samples)
        return cls(sample, place)

    @property
    def first(self) -> Int[np.ndarray, " own"]:
        """The entries of the first sample, in order."""
        return np.flatnonzero(self.sample == 0)

    def alike(self, values: np.ndarray) -> bool:
        """Whether each sample has the values of the first."""
        return bool((values == values[self.first][self.place]).all())


def one_sample(sources: list[Source], needed: list[int], readout: Map, samples: int) -> tuple[list[Source], Map] | None:
    """The sources and the readout of one sample, if the input is a batch of so many; None if it is not.

    needed   the sources on which the readout depends, the input first; the others are left as they are
    """
    own, splits = list(sources), {0: _in_order(sources[0].size, samples)}
    own[0] = Source(sources[0].size // samples, 0)
    for number in needed[1:]:
        source = sources[number]
        if source.affine is None or source.which is None:
            return None
        split = _split(source.affine, splits, samples)
        shared = None if split is None else _share(source.affine, split, splits, samples)
        if split is None or shared is None or not split.alike(source.which):
            return None
        splits[number] = split
        own[number] = Source(shared.size, source.depth, shared, source.activations, source.which[split.first])
    split = _split(readout, splits, samples)
    if split is None or (np.diff(split.sample) < 0).any():
        return None
    shared = _share(readout, split, splits, samples)
    return None if shared is None else (own, shared)


def _in_order(size: int, samples: int) -> _Split:
    return _Split(np.arange(size) // (size // samples), np.arange(size) % (size // samples))


def _split(affine: Map, splits: dict[int, _Split], samples: int) -> _Split | None:
    """The sample that each row reads; a row that reads nothing belongs where it stands. None where a row reads two."""
    least, most = np.full(affine.size, samples), np.full(affine.size, -1)
    for number, matrix in (*affine.terms.items(), *affine.errors.items()):
        row = np.repeat(np.arange(affine.size), np.diff(matrix.indptr))
        np.minimum.at(least, row, splits[number].sample[matrix.indices])
        np.maximum.at(most, row, splits[number].sample[matrix.indices])
    free = most < 0
    if affine.size % samples or (least != most)[~free].any():
        return None
    return _Split.of(np.where(free, np.arange(affine.size) // (affine.size // samples), most), samples)


def _share(affine: Map, split: _Split, splits: dict[int, _Split], samples: int) -> Map | None:
    """The map of the first sample; None where that of another differs."""
    if not split.alike(affine.bias) or not split.alike(affine.of_bias()):
        return None
    parts: list[dict[int, Matrix]] = []
    for matrices in (affine.terms, affine.errors):
        blocks = {number: _block(matrix, split, splits[number], samples) for number, matrix in matrices.items()}
        found = {number: block for number, block in blocks.items() if block is not None}
        if len(found) < len(blocks):
            return None
        parts.append(found)
    error = None if affine.bias_error is None else affine.bias_error[split.first]
    return Map(parts[0], affine.bias[split.first], parts[1], error)


def _block(matrix: Matrix, rows: _Split, columns: _Split, samples: int) -> Matrix | None:
    """The first sample's block of a matrix without entries between samples; None where the blocks differ."""
    row = np.repeat(np.arange(len(rows.sample)), np.diff(matrix.indptr))
    order = np.lexsort((columns.place[matrix.indices], rows.place[row], rows.sample[row]))
    row, column, data = row[order], matrix.indices[order], matrix.data[order]
    if (np.bincount(rows.sample[row], minlength=samples) * samples != len(row)).any():
        return None
    entries = [part.reshape(samples, -1) for part in (rows.place[row], columns.place[column], data)]
    if any((part != part[0]).any() for part in entries):
        return None
    sides = len(rows.sample) // samples, len(columns.sample) // samples
    return Matrix((entries[2][0], (entries[0][0], entries[1][0])), shape=sides)
