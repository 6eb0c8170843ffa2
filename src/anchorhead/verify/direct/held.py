"""What features hold while layers become steps on one vector of entries: an entry times a power of two, a constant,
nothing known, or a sum that a step has still to compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.rounding import own_error, power_of_two

CONSTANT, UNKNOWN, SUM = -1, -2, -3


@dataclass(frozen=True, eq=False)
class Map:
    """v becomes weight v + bias; the stored bias is at most `wrong` away from the sum of constants that it stands for.

    No product of weights is rounded: a map follows another in one step only where one of them picks.
    """

    weight: np.ndarray
    bias: np.ndarray
    wrong: np.ndarray

    @property
    def picks(self) -> bool:
        """Whether every output is an entry times a power of two, or 0."""
        single = ((self.weight != 0).sum(axis=1) <= 1).all() and power_of_two(self.weight).all()
        return bool(single) and not self.bias.any()

    def after(self, first: Map) -> Map:
        wrong = np.abs(self.weight) @ first.wrong + self.wrong
        return Map(self.weight @ first.weight, self.weight @ first.bias + self.bias, wrong)


@dataclass(frozen=True, eq=False)
class Held:
    """place (tokens, features): the number of an entry, CONSTANT, UNKNOWN or SUM; factor: its own, or the constant."""

    place: np.ndarray
    factor: np.ndarray

    @classmethod
    def constants(cls, values: np.ndarray) -> Held:
        return cls(np.full(values.shape, CONSTANT), values)

    def reshaped(self, *shape: int) -> Held:
        return Held(self.place.reshape(shape), self.factor.reshape(shape))

    def tokens(self, index: np.ndarray) -> Held:
        return Held(self.place[index], self.factor[index])

    def required(self, what: str) -> np.ndarray:
        """The numbers, all being constants."""
        require(bool((self.place == CONSTANT).all()), f"direct: {what} depend on the input")
        return self.factor


def side_by_side(parts: Sequence[Held], axis: int) -> Held:
    return Held(*(np.concatenate([getattr(one, name) for one in parts], axis) for name in ("place", "factor")))


@dataclass(frozen=True, eq=False)
class Image:
    """What a map makes of the features of tokens, and the map."""

    held: Held
    weight: np.ndarray
    bias: np.ndarray
    source: Held

    def rows(self, tokens: np.ndarray, outputs: np.ndarray, width: int) -> Map:
        """The sums of pairs (token, output) over a vector of so many entries."""
        place, factor = self.source.place[tokens], self.source.factor[tokens]
        weight = self.weight[outputs]
        row, feature = np.nonzero((place >= 0) & (weight != 0))
        matrix = np.zeros((len(tokens), width))
        entries = place[row, feature]
        if len(np.unique(row * width + entries)) < len(row):
            raise NotVerified("direct: a sum has two products with one entry")
        matrix[row, entries] = weight[row, feature] * factor[row, feature]
        constants = np.where(place == CONSTANT, factor, 0.0) * weight
        addends = (constants != 0).sum(axis=1) + (self.bias[outputs] != 0)
        rounds = (constants != 0) & ~power_of_two(weight) & ~power_of_two(factor)
        size = np.abs(constants).sum(axis=1) + np.abs(self.bias[outputs])
        wrong = np.where((addends > 1) | rounds.any(axis=1), own_error(addends) * size, 0.0)
        return Map(matrix, constants.sum(axis=1) + self.bias[outputs], wrong)


def image(weight: np.ndarray, bias: np.ndarray | None, source: Held, needed: np.ndarray | None = None) -> Image:
    """The features weight x + bias of tokens x, where they are needed. An output is

    unknown      if it touches a feature of which nothing is known, or nobody needs it;
    a constant   if it touches no entry and has at most one addend, whose product rounds nothing;
    an entry     if it touches one, adds nothing to it, and multiplies it by a power of two;
    a sum        else.
    """
    bias = np.zeros(len(weight)) if bias is None else bias
    touched = (weight != 0).astype(np.float64)
    varying, present = source.place >= 0, (source.place == CONSTANT) & (source.factor != 0)
    entries, strangers = (mask.astype(np.float64) @ touched.T for mask in (varying, source.place == UNKNOWN))
    addends = present.astype(np.float64) @ touched.T + (bias != 0)
    odd = (present & ~power_of_two(source.factor)).astype(np.float64) @ (touched * ~power_of_two(weight)).T
    constants = np.where(source.place == CONSTANT, source.factor, 0.0) @ weight.T + bias
    only = ((varying * np.arange(varying.shape[1], dtype=np.float64)) @ touched.T).astype(int)  # of one: its number
    only = np.where(entries == 1, only, 0)
    row = np.arange(len(source.place))[:, None]
    factor = weight[np.arange(len(weight)), only] * source.factor[row, only]
    picked = (entries == 1) & (addends == 0) & power_of_two(factor)
    place = np.where(picked, source.place[row, only], SUM)
    place = np.where((entries == 0) & (addends <= 1) & (odd == 0), CONSTANT, place)
    place = np.where((strangers > 0) if needed is None else (strangers > 0) | ~needed, UNKNOWN, place)
    return Image(Held(place, np.where(picked, factor, constants)), weight, bias, source)
