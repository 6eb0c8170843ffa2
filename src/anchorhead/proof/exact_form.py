"""Heads on one scalar, read from a network's weights in exact rational arithmetic, for the check."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np

from anchorhead.errors import CertificateError
from anchorhead.network import Attention, Network
from anchorhead.proof.layers import only_attention


@dataclass(frozen=True)
class ExactAnchor:
    """logit = slope q + offset, value written to `output`; `key_error` bounds the dtype's error of (slope, offset)
    relative to a query of 1, `value_error` that of the value."""

    slope: Fraction
    offset: Fraction
    value: Fraction
    output: int
    slope_error: Fraction
    offset_error: Fraction
    value_error: Fraction


@dataclass(frozen=True)
class ExactHead:
    """Anchors in the order of their slopes, each carried by `copies` tokens; they see the query as q - origin."""

    anchors: tuple[ExactAnchor, ...]
    origin: Fraction
    copies: int

    @cached_property
    def crossings(self) -> list[Fraction]:
        """The queries at which neighbouring anchors weigh the same."""
        return [self.origin - (b.offset - a.offset) / (b.slope - a.slope) for a, b in pairwise(self.anchors)]

    def largest(self, name: str) -> Fraction:
        """The largest |slope|, |offset|, |value| or error of any anchor."""
        return self._largest[name]

    @cached_property
    def _largest(self) -> dict[str, Fraction]:
        names = ("slope", "offset", "value", "slope_error", "offset_error")
        return {name: max(abs(getattr(anchor, name)) for anchor in self.anchors) for name in names}


@dataclass(frozen=True)
class ExactForm:
    """query_i = weight_i . x_i + bias_i; the output is `bias` + the sum of the heads, each scaled with one rounding
    where `scaled`, by at most `loudest`."""

    weight: list[list[Fraction]]
    query_bias: list[Fraction]
    heads: tuple[ExactHead, ...]
    bias: Fraction
    outputs: int
    scaled: bool
    loudest: float


def exact_form(network: Network, unit: Fraction) -> ExactForm:
    """Raises CertificateError where the weights are not those of heads on one scalar."""
    embed, attention = network.embed, only_attention(network)
    if attention is None:
        raise CertificateError("the layers are not those of a network of heads on one scalar")
    tokens = embed.tokens or 0
    weight = np.broadcast_to(embed.weight, (tokens, *embed.weight.shape[-2:]))
    bias = np.broadcast_to(embed.bias, (tokens, weight.shape[1]))
    moving = (weight != 0).any(axis=(0, 2)) | (np.ptp(bias, axis=0) != 0)
    asked = (attention.query != 0).any(axis=(0, 1))
    scalar = [int(f) for f in np.flatnonzero(asked & moving)] or [int(f) for f in np.flatnonzero(asked)[:1]]
    if len(scalar) != 1:
        raise CertificateError(f"the queries follow {len(scalar)} features, not one")
    f = scalar[0]
    read = (attention.key != 0).any(axis=(0, 1)) | (attention.value != 0).any(axis=(0, 1))
    if (weight[:, read] != 0).any() or read[f]:
        raise CertificateError("keys or values depend on the input")
    places = bias if embed.registers is None else np.concatenate([bias, embed.registers])
    constants = np.where(asked & ~moving, bias[0], 0)
    constants[f] = 0  # counted as the scalar's own
    heads = tuple(_head(attention, h, f, constants, places, unit, network.dtype) for h in range(attention.heads))
    out_bias = np.zeros(attention.outputs) if attention.bias is None else attention.bias
    if attention.outputs > 1 and (out_bias != 0).any():
        raise CertificateError("a network with several outputs and a bias is not covered")
    scaled = not all(_power_of_two(float(o)) for o in attention.output.ravel())
    rows = [[Fraction(float(a)) for a in weight[i, f]] for i in range(tokens)]
    offsets = [Fraction(float(bias[i, f])) for i in range(tokens)]
    loudest = float(np.abs(attention.output).max())
    return ExactForm(rows, offsets, heads, Fraction(float(out_bias[0])), attention.outputs, scaled, loudest)


def _head(
    attention: Attention,
    h: int,
    f: int,
    constants: np.ndarray,
    places: np.ndarray,
    unit: Fraction,
    dtype: str,
) -> ExactHead:
    query = attention.query[h]
    scales = [Fraction(float(a)) for a in query[:, f]]
    fixed = [_dot(row, constants, unit, dtype) for row in query]
    turns = [s for s, a in enumerate(scales) if a]
    if len(query) != 2 or len(turns) != 1:
        raise CertificateError("a head's query is not (scalar, constant)")
    turn, still = turns[0], 1 - turns[0]
    if any(error for _, error in fixed) or not all(_power_of_two(float(x)) for x in (scales[turn], fixed[still][0])):
        raise CertificateError("a head's query is scaled by something other than a power of two")
    key, value = (
        attention.key[min(h, len(attention.key) - 1)],
        attention.value[min(h, len(attention.value) - 1)],
    )
    tiny = Fraction(float(np.finfo(dtype).tiny))
    cache: dict[bytes, ExactAnchor] = {}
    counts: dict[bytes, int] = {}
    for place in places:
        name = place[(key != 0).any(axis=0) | (value != 0).any(axis=0)].tobytes()
        counts[name] = counts.get(name, 0) + 1
        if name not in cache:
            keys = [_dot(row, place, unit, dtype) for row in key]
            written, output, error = _value(attention.output[h], [_dot(row, place, unit, dtype) for row in value])
            cache[name] = ExactAnchor(
                scales[turn] * keys[turn][0],
                fixed[still][0] * keys[still][0],
                written,
                output,
                abs(scales[turn]) * keys[turn][1],
                # a scaled query may underflow, and its product: what that takes off is multiplied by the key
                abs(fixed[still][0]) * keys[still][1] + 2 * tiny * (1 + abs(keys[turn][0])),
                error,
            )
    if len(set(counts.values())) != 1:
        raise CertificateError("some anchors stand on more tokens than others")
    anchors = sorted(cache.values(), key=lambda anchor: anchor.slope)
    if len(anchors) < 2 or any(a.slope == b.slope for a, b in pairwise(anchors)):
        raise CertificateError("a head has fewer than two anchors, or two with the same slope")
    origin = -fixed[turn][0] / scales[turn]
    return ExactHead(tuple(anchors), origin, next(iter(counts.values())))


def _value(output: np.ndarray, entries: list[tuple[Fraction, Fraction]]) -> tuple[Fraction, int, Fraction]:
    written = []
    for number, row in enumerate(output):
        parts = [(Fraction(float(o)), entry) for o, entry in zip(row, entries, strict=True) if o]
        if len(parts) > 1:
            raise CertificateError("an output adds up several entries of a value")
        for scale, (value, error) in parts:
            if value or error:
                written.append((scale * value, number, abs(scale) * error))
    if len(written) > 1:
        raise CertificateError("an anchor writes to several outputs")
    return written[0] if written else (Fraction(0), -1 if len(output) > 1 else 0, Fraction(0))


def _dot(left: np.ndarray, right: np.ndarray, unit: Fraction, dtype: str) -> tuple[Fraction, Fraction]:
    """A dot product of constants, and a bound on what rounding, in any order, makes of it."""
    terms = [Fraction(float(a)) * Fraction(float(b)) for a, b in zip(left, right, strict=True) if a and b]
    tiny = Fraction(float(np.finfo(dtype).tiny))
    products = sum((unit * abs(t) for t in terms if not _representable(t, dtype)), Fraction(0))
    products += sum((tiny for t in terms if abs(t) < 2 * tiny), Fraction(0))  # they may become 0, and so may sums
    if len(terms) <= 1:
        return sum(terms, Fraction(0)), products
    n = len(terms)
    gamma = n * unit / (1 - n * unit)
    return sum(terms, Fraction(0)), products + gamma * sum((abs(t) for t in terms), Fraction(0)) + n * tiny


def _representable(t: Fraction, dtype: str) -> bool:
    return Fraction(float(np.dtype(dtype).type(float(t)))) == t


def _power_of_two(x: float) -> bool:
    return x == 0 or bool(abs(np.frexp(x)[0]) == 0.5)
