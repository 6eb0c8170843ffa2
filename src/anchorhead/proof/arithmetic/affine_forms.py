"""What a network's features have to do with its target's: affine forms with errors, carried through linear maps.

A feature v of a token, as the dtype computes it, is compared with an affine function of `sources` (the exact inputs, or
the target's exact neurons of one layer), of which intervals are known:

    |v - (coefficients . source + constant)| <= approximation + rounding     for every input of the box.

`approximation` is what heads leave in exact arithmetic, `rounding` what floating point adds. A feature without
coefficients and errors is a constant of the token, and exact. One of which nothing but an interval is known has no
coefficients, the interval's middle as constant and its radius as approximation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.network import Embed, Linear
from anchorhead.proof.arithmetic.arithmetic import FLOAT64, UP, Arithmetic
from anchorhead.proof.arithmetic.rounding import exact_factor

OWN = 4.0
"""How many times the a priori bound of a float64 sum is allowed for the sums of this file itself."""


@dataclass(frozen=True, eq=False)
class Sources:
    """low <= source <= high for the exact quantities that forms refer to: the same for all tokens, (sources,), or for
    each token its own, (tokens, 1, sources)."""

    low: Float[np.ndarray, "*own sources"]
    high: Float[np.ndarray, "*own sources"]

    @staticmethod
    def in_box(box: Box) -> Sources:
        """The entries of an input of a box, one after the other."""
        return Sources(*(end.reshape(-1).astype(np.float64) for end in (box.low, box.high)))

    @property
    def middle(self) -> Float[np.ndarray, "*own sources"]:
        return self.low + (self.high - self.low) / 2

    @property
    def radius(self) -> Float[np.ndarray, "*own sources"]:
        middle = self.middle
        return np.maximum(self.high - middle, middle - self.low) * (1 + 4 * FLOAT64.unit)

    @property
    def size(self) -> Float[np.ndarray, "*own sources"]:
        return np.maximum(np.abs(self.low), np.abs(self.high))

    @property
    def count(self) -> int:
        return self.low.shape[-1]

    @property
    def own(self) -> bool:
        """Whether each token has sources of its own."""
        return self.low.ndim > 1

    def given_error(self, cast: bool, arithmetic: Arithmetic) -> Float[np.ndarray, "*own sources"]:
        """How far inputs that are given may be from these; cast: they may be of another type than the network's."""
        return arithmetic.unit * self.size + arithmetic.tiny if cast else np.zeros(self.low.shape)

    def reach(self, coefficients: Float[np.ndarray, "*_ sources"]) -> Float[np.ndarray, "*_"]:
        """A bound on |coefficients . (source - middle)|."""
        return along(np.abs(coefficients), self.radius)

    def sizes(self, amounts: Float[np.ndarray, "*_ sources"]) -> Float[np.ndarray, "*_"]:
        """A bound on sum_s amounts_s |source_s|, for amounts of at least 0."""
        return along(amounts, self.size)

    def products(
        self, absolute: Float[np.ndarray, "*tokens outputs inputs"], x: Forms | Diagonal
    ) -> Float[np.ndarray, "_ outputs"]:
        """A bound on sum_i |W_i| |v_i|, entry by entry of what W makes of features."""
        return times(absolute, x.size(self))

    def length(self, x: Forms) -> float:
        """A bound on the 2-norm of the features of one token, as computed."""
        return float(np.linalg.norm(x.size(self))) * (1 + own_error(x.constant.size))

    def apart(self) -> Sources:
        """Each as that of a token of its own."""
        return Sources(self.low[:, None, None], self.high[:, None, None])

    def last(self, count: int) -> Sources:
        """The last so many."""
        first = len(self.low) - count
        return Sources(self.low[first:], self.high[first:])

    def joined(self, others: Sources) -> Sources:
        """These, and then others."""
        return Sources(np.append(self.low, others.low), np.append(self.high, others.high))


NOTHING = Sources(np.zeros(0), np.zeros(0))
"""The sources of constants."""


@dataclass(frozen=True, eq=False)
class Forms:
    """Features of tokens: coefficients (..., tokens, features, sources), the rest (..., tokens, features)."""

    coefficients: Float[np.ndarray, "*many tokens features sources"]
    constant: Float[np.ndarray, "*many tokens features"]
    approximation: Float[np.ndarray, "*many tokens features"]
    rounding: Float[np.ndarray, "*many tokens features"]

    @classmethod
    def constants(cls, values: Float[np.ndarray, "tokens features"]) -> Forms:
        """Forms of no source at all (see NOTHING): there may be many registers."""
        values = np.asarray(values, np.float64)
        return cls(np.zeros((*values.shape, 0)), values, np.zeros(values.shape), np.zeros(values.shape))

    @classmethod
    def between(cls, low: Float[np.ndarray, "tokens features"], high: Float[np.ndarray, "tokens features"]) -> Forms:
        """Nothing but intervals that hold the features as computed."""
        middle = low / 2 + high / 2
        radius = np.maximum(high - middle, middle - low) * (1 + 4 * FLOAT64.unit)
        return cls(np.zeros((*middle.shape, 0)), middle, radius, np.zeros(middle.shape))

    def over(self, sources: Sources, count: int) -> Forms:
        """The same as forms of `count` other sources: of what depends on these, intervals are left."""
        if self.coefficients.any():
            known = (self.coefficients == 0).all(axis=2)
            loose = Forms.between(*self.ends(sources))
            pairs = zip(self.arrays[1:], loose.arrays[1:], strict=True)
            arrays = tuple(np.where(known, mine, other) for mine, other in pairs)
        else:
            arrays = self.arrays[1:]
        return Forms(np.zeros((*self.constant.shape, count)), *arrays)

    def beside(self, count: int) -> Forms:
        """The same over so many sources more, which come last."""
        more = np.zeros((*self.constant.shape, count))
        return Forms(np.concatenate([self.coefficients, more], axis=-1), *self.arrays[1:])

    @property
    def varying(self) -> Bool[np.ndarray, "tokens features"]:
        """Which features are not exact constants."""
        return (self.coefficients != 0).any(axis=2) | (self.approximation > 0) | (self.rounding > 0)

    @property
    def picks(self) -> bool:
        """Whether each feature has at most one source, as it is, and no two share one."""
        c = self.coefficients
        return bool(((c == 0) | (c == 1)).all() and (c.sum(axis=-1) <= 1).all() and (c.sum(axis=-2) <= 1).all())

    @property
    def error(self) -> Float[np.ndarray, "tokens features"]:
        return self.approximation + self.rounding

    def unrounded(self) -> Forms:
        """With all that it is off by as approximation: the rounding of what a map makes of it is then the map's own."""
        return Forms(self.coefficients, self.constant, self.error, np.zeros(self.constant.shape))

    def size(self, sources: Sources) -> Float[np.ndarray, "tokens features"]:
        """A bound on |v| as computed."""
        low, high = self.ends(sources)
        return np.maximum(np.abs(low), np.abs(high))

    def ends(self, sources: Sources) -> tuple[Float[np.ndarray, "tokens features"], ...]:
        """An interval that holds v as computed."""
        if not self.coefficients.any():
            low, high = self.constant - self.error, self.constant + self.error
            return tuple(
                np.where(self.error > 0, np.nextafter(end, way), end) for end, way in ((low, -np.inf), (high, np.inf))
            )
        absolute = np.abs(self.coefficients)
        middle = along(self.coefficients, sources.middle) + self.constant
        reach = sources.reach(self.coefficients) + self.error
        slack = own_error(sources.count) * (sources.sizes(absolute) + np.abs(middle))
        return middle - reach - slack, middle + reach + slack

    def through(self, weight: Float[np.ndarray, "*tokens outputs inputs"]) -> Float[np.ndarray, "_ outputs sources"]:
        """The coefficients of what a map makes of the features."""
        if not self.coefficients.any():
            return np.zeros((len(self.constant), weight.shape[-2], self.coefficients.shape[2]))
        return np.matmul(weight, self.coefficients)

    def amounts(self, absolute: Float[np.ndarray, "*tokens outputs inputs"]) -> Float[np.ndarray, "_ outputs sources"]:
        """How much of each source is in the terms that a map adds up: |W| |coefficients|."""
        return np.matmul(absolute, np.abs(self.coefficients))

    def token(self, index: int) -> Forms:
        return self.tokens(slice(index, index + 1))

    def tokens(self, index: slice | Int[np.ndarray, " some"]) -> Forms:
        return Forms(*(array[index] for array in self.arrays))

    def features(self, index: slice | Int[np.ndarray, " some"]) -> Forms:
        return Forms(*(array[:, index] for array in self.arrays))

    def reshaped(self, tokens: int, features: int) -> Forms:
        return Forms(*(array.reshape(tokens, features, *array.shape[2:]) for array in self.arrays))

    def flat(self) -> Forms:
        """All tokens as one."""
        return self.reshaped(1, self.constant.size)

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.coefficients, self.constant, self.approximation, self.rounding

    @classmethod
    def joined(cls, parts: list[Forms], axis: int = 0) -> Forms:
        return cls(*(np.concatenate(arrays, axis) for arrays in zip(*(part.arrays for part in parts), strict=True)))


@dataclass(frozen=True, eq=False)
class Diagonal:
    """One token whose feature i depends on source i alone: `each` is a token of one feature and one source."""

    each: Forms

    @classmethod
    def given(cls, size: int, arithmetic: Arithmetic) -> Diagonal:
        """Sources themselves, numbers of the dtype; those below the smallest normal one may become 0."""
        one, nothing = np.ones((size, 1)), np.zeros((size, 1))
        return cls(Forms(one[..., None], nothing, nothing, np.full((size, 1), arithmetic.tiny)))

    @property
    def picks(self) -> bool:
        return bool((self.each.coefficients == 1).all())

    @property
    def error(self) -> Float[np.ndarray, "1 features"]:
        return self.each.error.T

    @property
    def constant(self) -> Float[np.ndarray, "1 features"]:
        return self.each.constant.T

    @property
    def approximation(self) -> Float[np.ndarray, "1 features"]:
        return self.each.approximation.T

    @property
    def rounding(self) -> Float[np.ndarray, "1 features"]:
        return self.each.rounding.T

    def size(self, sources: Sources) -> Float[np.ndarray, "1 features"]:
        return self.each.size(sources.apart()).T

    def through(self, weight: Float[np.ndarray, "outputs features"]) -> Float[np.ndarray, "1 outputs features"]:
        return (weight * self.each.coefficients[:, 0, 0])[None]

    def amounts(self, absolute: Float[np.ndarray, "outputs features"]) -> Float[np.ndarray, "1 outputs features"]:
        return (absolute * np.abs(self.each.coefficients[:, 0, 0]))[None]


def along(
    coefficients: Float[np.ndarray, "*_ sources"], amounts: Float[np.ndarray, "*own sources"]
) -> Float[np.ndarray, "*_"]:
    """sum_s coefficients_s amounts_s, for amounts that all tokens share, or of their own."""
    return coefficients @ amounts if amounts.ndim == 1 else (coefficients * amounts).sum(axis=-1)


def distance(
    difference: Float[np.ndarray, "*shape sources"],
    constant: Float[np.ndarray, "*shape"],
    size: Float[np.ndarray, "*shape"],
    sources: Sources,
    units: Float[np.ndarray, "*shape"] | float = 0.0,
) -> Float[np.ndarray, "*shape"]:
    """How far apart two affine functions of the sources are at most, from what float64 says that they differ by.

    size    bounds on what their terms add up to
    units   by how many units of that numbers may differ that look the same here, because they were multiplied before
    """
    left = np.abs(along(difference, sources.middle) + constant) + sources.reach(difference)
    noise = own_error(sources.count) * (sources.sizes(np.abs(difference)) + np.abs(constant)) + own_error(2) * size
    same = (difference == 0).all(axis=-1) & (constant == 0)
    # of a size of which nothing is known no units are nothing, too
    unseen = np.where(np.equal(units, 0), 0.0, units * FLOAT64.unit * size)
    return np.where(same, unseen, left + noise)


def own_error(terms: int) -> float:
    """The relative error of a sum of so many products in float64, generously."""
    return OWN * (terms + 2) * FLOAT64.unit


def mapped(
    weight: Float[np.ndarray, "*tokens outputs inputs"],
    bias: Float[np.ndarray, "tokens outputs"] | Float[np.ndarray, " outputs"] | None,
    x: Forms | Diagonal,
    sources: Sources,
    arithmetic: Arithmetic,
) -> Forms:
    """W v + b on every token, in any order: gamma_n (|W| |v| + |b|) for n terms that are not 0.

    W may be each token's own.
    A row with one entry rounds nothing where that is 1 or -1, and only by underflow where it is a power of two; two
    terms of which no product rounds err by u |sum|.
    """
    weight = np.asarray(weight, np.float64)
    absolute = np.abs(weight)
    coefficients = x.through(weight)
    carried = constant = times(weight, x.constant)
    reach = sources.products(absolute, x)
    entries = np.atleast_2d((weight != 0).sum(axis=-1))
    terms = entries.astype(float)
    if bias is not None:
        bias = np.broadcast_to(np.asarray(bias, np.float64), constant.shape)
        constant, reach, terms = constant + bias, reach + np.abs(bias), terms + (bias != 0)
    exact = (terms <= 1) & ((absolute <= 1) & (absolute % 1 == 0)).all(axis=-1)
    if bias is not None:
        exact = exact | ((terms <= 1) & (bias != 0))
    whole = exact_factor(weight).all(axis=-1)
    before, approximation = times(absolute, x.rounding), times(absolute, x.approximation) * UP
    if (lost := (absolute > 0) & (absolute < arithmetic.tiny)).any():  # weights that may become 0
        before = before + times(absolute * lost, x.size(sources))
    rounding = arithmetic.gamma(terms) * reach
    if whole.any():
        sums = Forms(coefficients, constant, approximation, before * UP).size(sources)
        rounding = np.where(whole & (terms <= 2), arithmetic.unit * np.where(terms > 1, sums, 0.0), rounding)
    rounding = before + np.where(exact, 0.0, rounding + terms * arithmetic.tiny)
    moved = sources.sizes(np.abs(coefficients)) if coefficients.any() else 0.0
    # a single entry that is a power of two makes coefficients that are exact here; a constant and a bias round once
    own = own_error(weight.shape[-1]) * (moved + reach)
    if x.picks:
        # coefficients are entries of W, and so is a constant, up to a power of two, to which nothing is added
        touched = (weight != 0).astype(float)
        summed = times(touched, (x.constant != 0).astype(float)) + (0 if bias is None else bias != 0)
        rounded = times(touched, (~exact_factor(x.constant)).astype(float)) > 0
        own = np.where((summed <= 1) & ~rounded, own_error(weight.shape[-1]) * rounding, own)
    own = np.where(whole & (entries <= 1), 2 * FLOAT64.unit * np.abs(constant) * (carried != 0), own)
    return Forms(coefficients, constant, approximation, rounding * UP + np.where(exact, 0.0, own))


def times(
    weight: Float[np.ndarray, "*tokens outputs inputs"], x: Float[np.ndarray, "tokens inputs"]
) -> Float[np.ndarray, "tokens outputs"]:
    """W x on every token."""
    return x @ weight.T if weight.ndim == 2 else np.einsum("toi,ti->to", weight, x)


def embedded(embed: Embed, sources: Sources, arithmetic: Arithmetic, cast: bool = True) -> tuple[Forms, Forms]:
    """Input tokens, and registers with states behind them, after the Embed.

    The sources are the entries of the input, token by token.

    cast   inputs may be of another type, and are rounded to the dtype first

    Of any number of tokens, this is one.
    """
    tokens, inputs = embed.tokens or 1, embed.inputs
    if sources.own:
        eye = np.broadcast_to(np.eye(inputs), (tokens, inputs, inputs))
    else:
        eye = np.eye(tokens * inputs).reshape(tokens, inputs, tokens * inputs)
    rounding = sources.given_error(cast, arithmetic).reshape(tokens, inputs)
    x = Forms(eye, np.zeros((tokens, inputs)), np.zeros((tokens, inputs)), rounding)
    if embed.source is not None:
        if sources.own:
            raise AnchorheadError("a network that copies its tokens has no forms in each token's own input")
        x = x.tokens(embed.source)
    others = [one for one in (embed.registers, embed.states) if one is not None]
    rows = np.concatenate([np.zeros((0, embed.weight.shape[-2])), *others])
    return mapped(embed.weight, embed.bias, x, sources, arithmetic), Forms.constants(rows)


def after_linear(
    layer: Linear, inputs: Forms, others: Forms, sources: Sources, arithmetic: Arithmetic
) -> tuple[Forms, Forms]:
    """Input tokens and others after a Linear, on each token or across all of them; a mix is a sum of its own."""
    if not layer.across:
        weight = layer.on_features()
        y = mapped(weight, layer.bias, inputs, sources, arithmetic)
        return y, mapped(weight, layer.bias, others, NOTHING, arithmetic)
    x = inputs
    if len(others.constant):
        x = Forms.joined([inputs, others.over(NOTHING, len(sources.low))])
    if layer.mix is None:
        tokens, outputs = layer.weight.shape[:2]
        bias = None if layer.bias is None else np.broadcast_to(layer.bias, (tokens, outputs)).reshape(-1)
        y = mapped(layer.dense(), bias, x.flat(), sources, arithmetic).reshaped(tokens, outputs)
    else:
        each = mapped(layer.on_features(), None, x, sources, arithmetic)
        y = _turned(mapped(layer.mix, None, _turned(each), sources, arithmetic))
        if layer.bias is not None:
            y = mapped(np.eye(layer.outputs), layer.bias, y, sources, arithmetic)
    return y, Forms.constants(np.zeros((0, layer.outputs)))


def _turned(forms: Forms) -> Forms:
    """Tokens and features exchanged."""
    return Forms(*(np.swapaxes(array, 0, 1) for array in forms.arrays))
