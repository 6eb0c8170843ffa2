"""Heads on one number, read back from an Attention: softmaxes that add up, from nothing but the stored weights.

Every token asks with one feature of its own, the number v, in all heads, and keys and values are constants. Head h asks
with scale_h v - origin, rounded once, and a token gets

    bias + sum over heads of sum_k values_k softmax_k(slopes_k (v - origin_h) + offsets_k),

slopes and origins in the units of v. How far the dtype's own products may be from these numbers is kept with them.
Where v is an input of the network less a constant, the input itself is the number, and the constant is its origin.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Atom, Part
from anchorhead.network import Attention, Embed, Network
from anchorhead.proof.arithmetic.affine_forms import Forms, Sources, embedded
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic, arithmetic_of
from anchorhead.proof.arithmetic.readings import Keys, Refusal, constants, entry_that_asks, of_attention
from anchorhead.proof.arithmetic.rounding import exact_factor
from anchorhead.proof.arithmetic.silence import out_of_reach, rounding_of

NEGLIGIBLE = 60.0
"""Anchors whose logit lies this far below the largest are bounded together, not one by one: exp(-60) = 9e-27."""

COLUMNS = ("slopes", "offsets", "values", "slope_error", "offset_error", "value_error")


@dataclass(frozen=True, eq=False)
class ScalarHead:
    """One softmax, anchors in the order of their slopes, with what the dtype makes of its weights.

    values           what each anchor writes to the outputs
    *_error          how far the dtype's slopes, offsets and values (which it computes) may be from these
    copies           how many tokens carry each anchor
    scale            by which the number that is asked with is v - origin
    """

    slopes: Float[np.ndarray, " p"]
    offsets: Float[np.ndarray, " p"]
    values: Float[np.ndarray, "p outputs"]
    origin: float
    slope_error: Float[np.ndarray, " p"]
    offset_error: Float[np.ndarray, " p"]
    value_error: Float[np.ndarray, " p"]
    copies: int = 1
    scale: float = 1.0

    @classmethod
    def of(cls, part: Part, origin: float = 0.0) -> ScalarHead:
        """A softmax whose weights the dtype holds."""
        none = np.zeros(len(part))
        return cls(*part.astype(np.float64), origin, none, none, none)

    @property
    def exact(self) -> bool:
        """Whether the dtype has these very weights."""
        return not (self.slope_error.any() or self.offset_error.any() or self.value_error.any())

    def columns_equal(self, other: ScalarHead) -> bool:
        """Whether anchors and errors are the same."""
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in COLUMNS)

    def merged(self) -> ScalarHead:
        """Anchors that several tokens carry taken together."""
        columns = (self.slopes, self.offsets, self.slope_error, self.offset_error, self.value_error, *self.values.T)
        rows, counts = np.unique(np.stack(columns, axis=1), axis=0, return_counts=True)
        if len(set(counts)) != 1:
            raise Refusal("its anchors are carried by different numbers of tokens")
        slopes, offsets, slope_error, offset_error, value_error = rows[:, :5].T
        errors = slope_error, offset_error, value_error
        return ScalarHead(slopes, offsets, rows[:, 5:], self.origin, *errors, copies=int(counts[0]))

    @cached_property
    def groups(self) -> Int[np.ndarray, " p"]:
        """The one output that each anchor writes to, -1 for none where there are several outputs."""
        if ((self.values != 0).sum(axis=1) > 1).any():
            raise Refusal("an anchor writes to several outputs")
        written = np.abs(self.values).argmax(axis=1)
        return written if self.values.shape[1] == 1 else np.where((self.values != 0).any(axis=1), written, -1)

    @cached_property
    def levels(self) -> Float[np.ndarray, " p"]:
        """What each anchor writes there."""
        return self.values[np.arange(len(self.values)), np.maximum(self.groups, 0)]

    @cached_property
    def crossings(self) -> Float[np.ndarray, " gaps"]:
        """The numbers at which neighbouring anchors weigh the same."""
        return self.origin - np.diff(self.offsets) / np.diff(self.slopes)

    @cached_property
    def window(self) -> tuple[int, float]:
        """How many anchors to each side of the heaviest matter, and a bound on the weight of all the others.

        Where anchor j is the heaviest, q lies between its crossings x_(j-1) and x_j, so that
        z_j - z_(j+i) = sum_(m<i) step_(j+m) (x_(j+m) - q) >= sum_(m<i) step_(j+m) (x_(j+m) - x_j); likewise below.
        """
        x, step = self.crossings, np.diff(self.slopes)
        count = len(self.slopes)
        right, left = np.zeros(count), np.zeros(count)
        for reach in range(1, count):
            right = right[:-1] + step[reach - 1 :] * (x[reach - 1 :] - x[: len(x) - reach + 1])
            left = left[1:] + step[: len(x) - reach + 1] * (x[reach - 1 :] - x[: len(x) - reach + 1])
            if min(right.min(), left.min()) > NEGLIGIBLE:
                return reach - 1, self.unseen_weight
        return count - 1, 0.0

    @property
    def unseen_weight(self) -> float:
        """A bound on the weight of all anchors whose logit is NEGLIGIBLE below the largest."""
        return len(self.slopes) * float(np.exp(-NEGLIGIBLE))


@dataclass(frozen=True, eq=False)
class WholeHead:
    """All heads of an attention.

    number      forms (tokens, 1) of the number v of each token, as the dtype has it
    ends        between what all of these stay
    roundings   how often each head's output is rounded before it is added up
    """

    heads: tuple[ScalarHead, ...]
    bias: Float[np.ndarray, " outputs"]
    roundings: int
    number: Forms
    ends: tuple[float, float]

    def atom(self, dtype: str) -> Atom:
        """The same as the weights of a head, where they are nothing else."""
        (origin, *others) = {head.origin for head in self.heads}
        if others or self.roundings or not all(head.exact for head in self.heads):
            raise Refusal("its weights are not those of a head, copied entry by entry")
        parts = [Part.of(head.slopes, head.offsets, head.values, dtype) for head in self.heads]  # type: ignore[arg-type]
        return Atom.of(parts, origin, self.bias, dtype)  # type: ignore[arg-type]

    def computes(self, atom: Atom, arithmetic: Arithmetic) -> bool:
        """Whether these are the weights of an atom, number by number, but for anchors that weigh nothing."""
        reach = max(abs(end - atom.origin) for end in self.ends)
        theirs = [_present(ScalarHead.of(part, atom.origin), reach, arithmetic) for part in atom.parts]
        same = not self.roundings and len(theirs) == len(self.heads) and np.array_equal(self.bias, atom.bias)
        pairs = zip(self.heads, theirs, strict=same)
        return same and all(one.origin == two.origin and one.columns_equal(two) for one, two in pairs)


def read_network(network: Network, on: Box) -> WholeHead:
    """The heads of a network that is an Embed and one Attention, refused with a reason where it is not."""
    embed, last = network.embed, network.layers[-1]
    if len(network.layers) != 2 or not isinstance(last, Attention) or embed.tokens is None:
        raise AnchorheadError("the network cannot be read as heads on one number: it is not an Embed and one Attention")
    box, arithmetic = on.broadcast_to((embed.tokens, embed.inputs)), arithmetic_of(network.dtype)
    sources = Sources(*(end.astype(np.float64)[:, None] for end in (box.low, box.high)))
    inputs, others = embedded(embed, sources, arithmetic, cast=False)
    try:
        return read(last, inputs, others, sources, arithmetic, embed)
    except Refusal as refusal:
        raise AnchorheadError(f"the network cannot be read as heads on one number: {refusal}") from refusal


def read(
    layer: Attention, inputs: Forms, others: Forms, sources: Sources, arithmetic: Arithmetic, embed: Embed | None
) -> WholeHead:
    """The heads of an attention at all tokens alike.

    sources   each token's own
    embed     what made the inputs, where nothing else did
    """
    if not (layer.mask is layer.skip is layer.grid is None and sources.own):
        raise Refusal("an attention has a mask, a skip or a grid")
    readings = of_attention(layer, inputs, (inputs, others), sources, arithmetic)
    kinds = readings.kinds.reshape(-1, layer.heads)
    if (kinds != kinds[0]).any():
        raise Refusal("its tokens ask in different ways")
    feature, scales, origins = _numbers(layer, inputs, arithmetic)
    number = inputs.features(slice(feature, feature + 1))
    least, most = number.ends(sources)
    ends = float(least.min()), float(most.max())
    given = None if embed is None or origins.any() else _given(embed, feature, sources, inputs)
    if given is not None:
        number, ends, shift = given
        origins = shift * np.ones(layer.heads)
    heads = []
    for kind, scale, origin, output in zip(kinds[0], scales, origins, layer.output, strict=True):
        head = _head(readings.keys[kind], float(scale), float(origin), output.astype(np.float64))
        heads.append(_present(head, max(abs(end - origin) for end in ends), arithmetic))
    bias = np.zeros(layer.outputs) if layer.bias is None else np.asarray(layer.bias, np.float64)
    roundings = int(not exact_factor(layer.output.astype(np.float64)).all())
    return WholeHead(tuple(heads), bias, roundings, number, ends)


def _numbers(
    layer: Attention, inputs: Forms, arithmetic: Arithmetic
) -> tuple[int, Float[np.ndarray, " heads"], Float[np.ndarray, " heads"]]:
    """The feature that all heads ask with, and for each its scale and its origin, none of which rounds."""
    rows = layer.query[:, entry_that_asks(layer, inputs)].astype(np.float64)
    touched = (rows != 0).any(axis=0)
    moving = touched & inputs.varying.any(axis=0)
    if moving.sum() > 1 or not touched.any():
        raise Refusal("its queries follow no number, or several")
    feature = int(np.argmax(moving if moving.any() else touched))
    scales = rows[:, feature].copy()
    rows[:, feature] = 0.0
    fixed = constants(rows, inputs, arithmetic)
    if not (fixed.exact and scales.all() and exact_factor(scales).all()) or (fixed.values != fixed.values[0]).any():
        raise Refusal("its queries are scaled by something other than a power of two, or their constants round")
    return feature, scales, -fixed.values[0] / scales + 0.0


def _given(
    embed: Embed, feature: int, sources: Sources, inputs: Forms
) -> tuple[Forms, tuple[float, float], float] | None:
    """The input that a feature is, less a constant that all tokens share: its forms, its ends and the constant."""
    weight = np.broadcast_to(embed.weight, (len(inputs.constant), *embed.weight.shape[-2:]))[:, feature]
    bias = np.broadcast_to(embed.bias, inputs.constant.shape)[:, feature].astype(np.float64)
    entries = np.flatnonzero(weight.any(axis=0))
    if len(entries) != 1 or not ((weight[:, entries[0]] == 1).all() and (bias == bias[0]).all()):
        return None
    number = inputs.features(slice(feature, feature + 1))
    nothing = np.zeros(number.constant.shape)
    exact = Forms(number.coefficients, nothing, nothing, nothing)
    low, high = (end[:, 0, entries[0]] for end in (sources.low, sources.high))
    return exact, (float(low.min()), float(high.max())), float(-bias[0])


def _head(keys: Keys, scale: float, origin: float, output: Float[np.ndarray, "outputs entries"]) -> ScalarHead:
    """One head, and what its anchors write to the outputs."""
    values = keys.values
    if values is None:
        raise Refusal("its values depend on the input")
    if ((output != 0).sum(axis=1) > 1).any():
        raise Refusal("an output adds up several entries of a value")
    # what softmax and sums lose below the smallest normal number is multiplied, too
    loud = np.where(np.abs(output) > 1, np.abs(output), 0.0).sum(axis=1)
    lost = 4 * len(keys.slopes) * keys.arithmetic.tiny * loud
    error = values.error @ np.abs(output).T + lost
    if (keys.terms > 2).any():
        raise Refusal("a logit adds up more than a product and an offset")
    order = np.argsort(scale * keys.slopes, kind="stable")
    return ScalarHead(
        slopes=(scale * keys.slopes)[order],
        offsets=keys.offsets[order],
        values=(values.values @ output.T)[order],
        origin=origin,
        slope_error=(abs(scale) * keys.slope_error)[order],
        offset_error=keys.offset_error[order],
        value_error=error.max(axis=1)[order],
        scale=scale,
    )


def _present(head: ScalarHead, reach: float, arithmetic: Arithmetic) -> ScalarHead:
    """The head without anchors that have another's slope and so low an offset that their weight is 0 in the dtype."""
    size = np.abs(head.slopes) * reach * UP + np.abs(head.offsets)
    rounded = rounding_of(size, 2, arithmetic) + (head.slope_error * reach + head.offset_error) * (1 + 1e-6)
    _, which = np.unique(head.slopes, return_inverse=True)
    higher = np.full(which.max() + 1, -np.inf)
    np.maximum.at(higher, which, head.offsets - rounded)
    keep = ~out_of_reach(head.offsets + rounded, higher[which])
    if keep.all():
        return head
    return replace(head, **{name: getattr(head, name)[keep] for name in COLUMNS})
