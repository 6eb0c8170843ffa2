"""What tokens hold while a network is lowered: a constant, an entry of the vector that steps compute, or nothing known.

Entries are held with a factor that is a power of two, and constants only where one product that rounds nothing makes
them. So a map that picks is no step, and whatever else is computed is computed from the same products as by the
network's own layers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from anchorhead.network.linear import Linear

CONSTANT, UNKNOWN, DENSE = -1, -2, -3


class Refused(Exception):
    """These layers are not affine maps and heads on scalars; they run as what they are."""


@dataclass(frozen=True, eq=False)
class Held:
    """place (tokens, features): an entry, CONSTANT, UNKNOWN, or DENSE: a sum that a step has still to compute.

    factor   what the entry is multiplied by, or the constant
    """

    place: Int[np.ndarray, "tokens features"]
    factor: Float[np.ndarray, "tokens features"]

    @classmethod
    def constants(cls, numbers: Float[np.ndarray, "tokens features"]) -> Held:
        return cls(np.full(numbers.shape, CONSTANT), numbers.astype(np.float64))

    @property
    def tokens(self) -> int:
        return len(self.place)

    def flat(self) -> Held:
        """The features of all tokens as those of one."""
        return Held(self.place.reshape(1, -1), self.factor.reshape(1, -1))

    def beside(self, *others: Held) -> Held:
        """With the features of others after its own."""
        every = (self, *others)
        return Held(np.concatenate([h.place for h in every], 1), np.concatenate([h.factor for h in every], 1))

    def below(self, *others: Held) -> Held:
        """With the tokens of others after its own."""
        every = (self, *others)
        return Held(np.concatenate([h.place for h in every]), np.concatenate([h.factor for h in every]))

    def constant(self, what: str) -> Float[np.ndarray, "tokens features"]:
        """The numbers, if all are constants."""
        if (self.place != CONSTANT).any():
            raise Refused(f"{what} depend on the input")
        return self.factor


@dataclass(frozen=True, eq=False)
class Image:
    """What a map makes of tokens: `held` may be DENSE, and then `row` gives the sum."""

    held: Held
    weight: Float[np.ndarray, "outputs features"]
    bias: Float[np.ndarray, " outputs"]
    source: Held

    def rows(
        self, tokens: Int[np.ndarray, " rows"], outputs: Int[np.ndarray, " rows"], width: int
    ) -> tuple[Float[np.ndarray, "rows width"], Float[np.ndarray, " rows"]]:
        """The matrix over the entries, and the constants, of outputs of tokens."""
        matrix = np.zeros((len(tokens), width))
        varying = np.where(self.source.place >= 0, self.source.factor, 0.0)
        fixed = np.where(self.source.place == CONSTANT, self.source.factor, 0.0)
        for token in np.unique(tokens):
            own = tokens == token
            used = np.flatnonzero((self.weight[outputs[own]] != 0).any(axis=0) & (self.source.place[token] >= 0))
            places = self.source.place[token, used]
            if len(np.unique(places)) < len(places):
                raise Refused("a sum has two products with one entry")
            part = self.weight[np.ix_(outputs[own], used)] * varying[token, used]
            matrix[np.ix_(np.flatnonzero(own), places)] = part
        constants = np.einsum("rf,rf->r", self.weight[outputs], fixed[tokens]) + self.bias[outputs]
        return matrix, constants


def image(
    weight: Float[np.ndarray, "outputs features"],
    bias: np.ndarray | None,
    source: Held,
    needed: np.ndarray | None = None,
) -> Image:
    """What each output of a map on the features of a token is, where it is needed."""
    weight = np.asarray(weight, np.float64)
    bias = np.zeros(len(weight)) if bias is None else np.asarray(bias, np.float64)
    touched = (weight != 0).astype(np.float64)
    varying, unknown = source.place >= 0, source.place == UNKNOWN
    present = (source.place == CONSTANT) & (source.factor != 0)
    entries, strangers = (counts.astype(np.float64) @ touched.T for counts in (varying, unknown))
    addends = present.astype(np.float64) @ touched.T + (bias != 0)
    rounded = (present & ~power_of_two(source.factor)).astype(float) @ ((weight != 0) & ~power_of_two(weight)).T
    constants = np.where(source.place == CONSTANT, source.factor, 0.0) @ weight.T + bias
    # of one entry its number is the sum
    feature = ((varying * np.arange(varying.shape[1])) @ touched.T).astype(np.int64)
    feature = np.where(entries == 1, feature, 0)
    token = np.arange(source.tokens)[:, None]
    factor = weight[np.arange(len(weight)), feature] * source.factor[token, feature]
    picked = (entries == 1) & (addends == 0) & power_of_two(factor)
    place = np.where(picked, source.place[token, feature], DENSE)
    alone = (entries == 0) & (addends <= 1) & (rounded == 0)
    place = np.where(alone, CONSTANT, place)
    place = np.where(strangers > 0, UNKNOWN, place)
    if needed is not None:
        place = np.where(needed, place, UNKNOWN)
    return Image(Held(place, np.where(picked, factor, constants)), weight, bias, source)


def read_group_logits(
    layer: Linear, source: Held, size: int
) -> tuple[Int[np.ndarray, " groups"], Float[np.ndarray, "groups size"], Float[np.ndarray, "groups size"]]:
    """For a map whose outputs, in groups, are multiples of one feature of a token each, plus constants: that feature,
    which is an entry, the factors and the constants."""
    weight = np.asarray(layer.weight, np.float64)
    weight = weight.reshape(-1, weight.shape[-1]) if weight.ndim == 3 else weight.reshape(-1, source.place.shape[1])
    used = weight != 0
    if source.tokens > 1 or (used.sum(axis=1) > 1).any():
        raise Refused("softmaxes of several tokens, or a logit that is a sum of several features")
    feature = used.argmax(axis=1)
    slopes = weight[np.arange(len(weight)), feature].reshape(-1, size)
    if layer.weight.ndim == 3:
        blocks, outputs, inputs = layer.weight.shape
        feature = feature + np.repeat(np.arange(blocks) * inputs, outputs)
    feature = np.where(slopes != 0, feature.reshape(-1, size), -1)
    asks = feature.max(axis=1)
    if ((feature != asks[:, None]) & (feature >= 0)).any() or (asks < 0).any() or (source.place[0, asks] < 0).any():
        raise Refused("a group of a softmax whose logits are not of one entry")
    bias = np.zeros(layer.outputs) if layer.bias is None else layer.bias.astype(np.float64)
    return asks, slopes, np.broadcast_to(bias, (len(weight) // layer.outputs, layer.outputs)).reshape(-1, size)


def power_of_two(a: np.ndarray) -> Bool[np.ndarray, "..."]:
    """Whether a product with this factor rounds nothing: powers of two, and 0."""
    return np.asarray((a == 0) | (np.abs(np.frexp(a)[0]) == 0.5))
