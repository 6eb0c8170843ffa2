"""What a network's features have to do with its target's: affine forms with errors, carried through linear maps.

A feature v of a token, as the dtype computes it, is compared with an affine function of `sources` (the exact inputs, or
the target's exact neurons of one layer), of which intervals are known:

    |v - (coefficients . source + constant)| <= approximation + rounding     for every input of the box.

`approximation` is what heads leave in exact arithmetic, `rounding` what floating point adds. A feature without
coefficients and errors is a constant of the token, and exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from anchorhead.errors import AnchorheadError
from anchorhead.network import Embed, Linear
from anchorhead.proof.arithmetic import FLOAT64, Arithmetic

UNKNOWN = 1e200
"""The error of a feature of which nothing is known: it must not matter, see `spread`."""
OWN = 4.0
"""How many times the a priori bound of a float64 sum is allowed for the sums of this file itself."""


@dataclass(frozen=True, eq=False)
class Sources:
    """low <= source <= high for the exact quantities that forms refer to."""

    low: Float[np.ndarray, " sources"]
    high: Float[np.ndarray, " sources"]

    @property
    def middle(self) -> Float[np.ndarray, " sources"]:
        return self.low + (self.high - self.low) / 2

    @property
    def radius(self) -> Float[np.ndarray, " sources"]:
        middle = self.middle
        return np.maximum(self.high - middle, middle - self.low) * (1 + 4 * FLOAT64.unit)

    @property
    def size(self) -> Float[np.ndarray, " sources"]:
        return np.maximum(np.abs(self.low), np.abs(self.high))


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

    @property
    def varying(self) -> Bool[np.ndarray, "tokens features"]:
        """Which features are not exact constants."""
        return (self.coefficients != 0).any(axis=2) | (self.approximation > 0) | (self.rounding > 0)

    @property
    def error(self) -> Float[np.ndarray, "tokens features"]:
        return self.approximation + self.rounding

    def size(self, sources: Sources) -> Float[np.ndarray, "tokens features"]:
        """A bound on |v| as computed."""
        low, high = self.ends(sources)
        return np.maximum(np.abs(low), np.abs(high))

    def ends(self, sources: Sources) -> tuple[Float[np.ndarray, "tokens features"], ...]:
        """An interval that holds v as computed."""
        if not self.coefficients.any():
            return self.constant - self.error, self.constant + self.error
        middle = self.coefficients @ sources.middle + self.constant
        reach = np.abs(self.coefficients) @ sources.radius + self.error
        slack = own_error(self.coefficients.shape[2]) * (np.abs(self.coefficients) @ sources.size + np.abs(middle))
        return middle - reach - slack, middle + reach + slack

    def token(self, index: int) -> Forms:
        return Forms(*(array[index : index + 1] for array in self.arrays))

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.coefficients, self.constant, self.approximation, self.rounding

    @classmethod
    def joined(cls, parts: list[Forms], axis: int = 0) -> Forms:
        return cls(*(np.concatenate(arrays, axis) for arrays in zip(*(part.arrays for part in parts), strict=True)))


def own_error(terms: int) -> float:
    """The relative error of a sum of so many products in float64, generously."""
    return OWN * (terms + 2) * FLOAT64.unit


def spread(
    errors: Float[np.ndarray, "tokens inputs"], absolute: Float[np.ndarray, "outputs inputs"]
) -> Float[np.ndarray, "tokens outputs"]:
    """The errors after a map of these absolute values: unknown where it reads what is unknown, however little of it."""
    read = (errors >= UNKNOWN).astype(float) @ (absolute != 0).T.astype(float) > 0
    return np.maximum(errors @ absolute.T, np.where(read, UNKNOWN, 0.0))


def mapped(
    weight: Float[np.ndarray, "outputs inputs"],
    bias: Float[np.ndarray, "tokens outputs"] | Float[np.ndarray, " outputs"] | None,
    x: Forms,
    sources: Sources,
    arithmetic: Arithmetic,
) -> Forms:
    """W v + b on every token, in any order: gamma_n (|W| |v| + |b|) for n terms that are not 0.

    A row with one entry rounds nothing where that is 1 or -1, and only by underflow where it is a power of two.
    """
    weight = np.asarray(weight, np.float64)
    absolute = np.abs(weight)
    fixed = not x.coefficients.any()
    shape = (len(x.constant), len(weight), x.coefficients.shape[2])
    coefficients = np.zeros(shape) if fixed else np.matmul(weight, x.coefficients)
    constant = x.constant @ weight.T
    size = x.size(sources)
    reach = size @ absolute.T
    terms = (weight != 0).sum(axis=1).astype(float)[None]
    if bias is not None:
        bias = np.broadcast_to(np.asarray(bias, np.float64), constant.shape)
        constant, reach, terms = constant + bias, reach + np.abs(bias), terms + (bias != 0)
    exact = (terms <= 1) & ((absolute <= 1) & (absolute % 1 == 0)).all(axis=1)
    if bias is not None:
        exact = exact | ((terms <= 1) & (bias != 0))
    scaled = (terms <= 1) & _powers_of_two(weight)
    gamma = np.where(scaled, 0.0, arithmetic.gamma(terms))
    rounding = spread(x.rounding, absolute) + np.where(exact, 0.0, gamma * reach + terms * arithmetic.tiny)
    moved = 0.0 if fixed else np.abs(coefficients) @ sources.size
    slack = np.where(exact, 0.0, own_error(weight.shape[1]) * (moved + reach))
    return Forms(coefficients, constant, _up(x.approximation @ absolute.T), _up(rounding) + slack)


def embedded(embed: Embed, sources: Sources, arithmetic: Arithmetic) -> tuple[Forms, Forms]:
    """Input tokens and registers after the Embed; the sources are the entries of the input, token by token.

    An input of another type is rounded to the dtype first.
    """
    tokens, inputs = embed.tokens, embed.inputs
    if tokens is None or embed.states is not None:
        raise AnchorheadError("a network with states or any number of tokens has no affine forms")
    count = tokens * inputs
    eye = np.eye(count).reshape(tokens, inputs, count)
    size = sources.size.reshape(tokens, inputs)
    x = Forms(eye, np.zeros((tokens, inputs)), np.zeros((tokens, inputs)), arithmetic.unit * size + arithmetic.tiny)
    places = np.arange(tokens) if embed.source is None else embed.source
    weight = np.broadcast_to(embed.weight, (len(places), *embed.weight.shape[-2:]))
    bias = np.broadcast_to(embed.bias, (len(places), embed.bias.shape[-1]))
    if embed.weight.ndim == 2 and embed.source is None:
        result = mapped(embed.weight, bias, x, sources, arithmetic)
    else:
        rows = [mapped(weight[i], bias[i], x.token(int(p)), sources, arithmetic) for i, p in enumerate(places)]
        result = Forms.joined(rows)
    registers = np.zeros((0, weight.shape[1])) if embed.registers is None else embed.registers
    return result, Forms.constants(registers)


def after_linear(layer: Linear, inputs: Forms, registers: Forms, sources: Sources, arithmetic: Arithmetic):
    """Input tokens and registers after a Linear, on each token or across all of them."""
    if not layer.across:
        weight, pairs = layer.on_features(), ((inputs, sources), (registers, NOTHING))
        return tuple(mapped(weight, layer.bias, x, of, arithmetic) for x, of in pairs)
    if layer.weight.ndim != 4 or len(registers.constant):
        raise AnchorheadError("affine forms follow dense maps across a sequence without registers only")
    flat = Forms(*(a.reshape(1, -1, *a.shape[2:]) for a in inputs.arrays))
    tokens, outputs = layer.weight.shape[:2]
    bias = None if layer.bias is None else np.broadcast_to(layer.bias, (tokens, outputs)).reshape(-1)
    y = mapped(layer.dense(), bias, flat, sources, arithmetic)
    result = Forms(*(a.reshape(tokens, outputs, *a.shape[2:]) for a in y.arrays))
    return result, Forms.constants(np.zeros((0, outputs)))


def _powers_of_two(weight: Float[np.ndarray, "outputs inputs"]) -> Bool[np.ndarray, " outputs"]:
    """Rows whose entries are all 0 or powers of two."""
    mantissa, _ = np.frexp(weight)
    return ((weight == 0) | (np.abs(mantissa) == 0.5)).all(axis=1)


def _up(array: np.ndarray) -> np.ndarray:
    return array * (1 + 1e-12)
