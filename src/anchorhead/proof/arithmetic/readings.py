"""Attention and softmax groups lowered to readings: who asks, with which number t, and the logits of the keys it meets.

A reading is a softmax whose logits are slopes_k t + offsets_k in one number t of its own, as the dtype has it, up to
their own rounding. Many ask at once, in few ways: `keys` are what each kind of question meets. Masks, shared keys and
values, grids and softmax groups live here and nowhere else. Over a grid of several axes logits are sums over axes, and
the softmax is the product of those along each axis: a reading for each. What is no reading is refused, with the reason:
other lemmas may know of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np
from jaxtyping import Bool, Float, Int

from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Part
from anchorhead.network import Attention
from anchorhead.network.alike import first_alike
from anchorhead.proof.arithmetic.affine_forms import Forms, Sources, mapped
from anchorhead.proof.arithmetic.arithmetic import Arithmetic
from anchorhead.proof.arithmetic.rounding import constant_dot_error, exact_factor, product_error
from anchorhead.proof.arithmetic.silence import out_of_reach, rounding_of


class Refusal(AnchorheadError):
    """Why a lemma does not explain what a layer computes."""


@dataclass(frozen=True, eq=False)
class Constants:
    """What linear maps make of constant tokens: (tokens, rows) each, with a bound on what the dtype makes of it."""

    values: Float[np.ndarray, "tokens rows"]
    error: Float[np.ndarray, "tokens rows"]

    @property
    def exact(self) -> bool:
        return not self.error.any()


@dataclass(frozen=True, eq=False)
class Keys:
    """What one kind of question meets: the logit slopes_k t + offsets_k of every key that is seen.

    values   (keys, entries), where they are constants that are looked up, and not what a map makes of the weights
    terms    of how many products each logit is the sum
    sizes    the sums of the absolute values of those that the offsets add up
    *_error  how far the dtype's slopes and offsets, which it computes, may be from these
    """

    slopes: Float[np.ndarray, " keys"]
    offsets: Float[np.ndarray, " keys"]
    slope_error: Float[np.ndarray, " keys"]
    offset_error: Float[np.ndarray, " keys"]
    terms: Int[np.ndarray, " keys"]
    sizes: Float[np.ndarray, " keys"]
    values: Constants | None
    arithmetic: Arithmetic

    @classmethod
    def of(cls, part: Part, arithmetic: Arithmetic) -> Keys:
        """The anchors of a part of a head: a product with t, and an offset."""
        slopes, offsets, values = part.astype(np.float64)
        none, two = np.zeros(len(part)), np.full(len(part), 2)
        return cls(slopes, offsets, none, none, two, np.abs(offsets), Constants(values, 0 * values), arithmetic)

    @property
    def still(self) -> bool:
        """Whether the logits do not depend on t."""
        return not self.slopes.any()

    @property
    def plain(self) -> Bool[np.ndarray, " keys"]:
        """Which logits are a product with t and an offset, of numbers that the dtype has as they are."""
        return (self.slope_error == 0) & (self.offset_error == 0) & (self.terms <= 2)

    def live(self, beside: Keys, queries: tuple[float, float]) -> Bool[np.ndarray, " keys"]:
        """The keys that are somewhere within reach of the largest logit of some keys, these or others."""
        _, most = self.ends(queries)
        least, _ = beside.ends(queries)
        return ~out_of_reach(most, least.max())

    def ends(self, queries: tuple[float, float]) -> tuple[Float[np.ndarray, " keys"], Float[np.ndarray, " keys"]]:
        """Between what each logit stays as computed, for every t between two queries."""
        at = [self.slopes * t + self.offsets for t in queries]
        reach = max(map(abs, queries))
        rounded = rounding_of(np.abs(self.slopes) * reach + self.sizes, self.terms, self.arithmetic)
        rounded = rounded + (self.slope_error * reach + self.offset_error) * (1 + 1e-6)
        return np.minimum(*at) - rounded, np.maximum(*at) + rounded


@dataclass(frozen=True, eq=False)
class Readings:
    """Softmaxes in one number each.

    t      forms (1, asks) of the number, as the dtype has it
    kinds  (asks,) which of the `keys` each meets
    sums   (asks,) which sum t is: of equal ones the same products of the same numbers are added up, each time in an
           order of its own
    apart  (asks,) what t rounds by in that sum, so that two of them differ by at most twice that
    """

    t: Forms
    kinds: Int[np.ndarray, " asks"]
    keys: tuple[Keys, ...]
    sums: Int[np.ndarray, " asks"]
    apart: Float[np.ndarray, " asks"]

    def only(self, asks: slice) -> Readings:
        return Readings(self.t.features(asks), self.kinds[asks], self.keys, self.sums[asks], self.apart[asks])

    def heard(self, asks: Int[np.ndarray, " some"], sources: Sources) -> dict[int, Bool[np.ndarray, " keys"]]:
        """For each kind among some that ask, the keys that are within reach for one of them."""
        low, high = (end[0, asks] for end in self.t.ends(sources))
        found = {}
        for kind in np.unique(self.kinds[asks]).tolist():
            own = self.kinds[asks] == kind
            found[kind] = self.keys[kind].live(self.keys[kind], (float(low[own].min()), float(high[own].max())))
        return found


def constants(weight: Float[np.ndarray, "rows features"], tokens: Forms, arithmetic: Arithmetic) -> Constants:
    """Rows that read nothing but constants of these tokens."""
    weight = np.asarray(weight, np.float64)
    if ((weight != 0) @ tokens.varying.any(axis=0)).any():
        raise Refusal("keys, values or constants of a query depend on the input")
    return Constants(tokens.constant @ weight.T, constant_dot_error(weight, tokens.constant, arithmetic))


def visible(layer: Attention, inputs: Forms, others: Forms, states: int, token: int) -> tuple[Forms, Forms]:
    """The inputs that an input token sees, and those of the others: registers, and then so many states."""
    registers = others.tokens(slice(len(others.constant) - states)) if states else others
    if layer.grid is not None:
        return inputs.tokens(slice(0)), registers.tokens(slice(layer.points))
    match layer.mask:
        case None:
            return inputs, others
        case "causal":
            return inputs.tokens(slice(token + 1)), registers
        case "self+registers":
            return inputs.token(token), registers
    return inputs.tokens(slice(0)), others


def entry_that_asks(layer: Attention, asking: Forms) -> int:
    """The entry of the queries that depends on the input, the first where none does."""
    touches = ((layer.query != 0) @ asking.varying.any(axis=0)).any(axis=0)
    if touches.sum() > 1:
        raise Refusal("more than one entry of the queries depends on the input")
    return int(np.argmax(touches))


def of_attention(
    layer: Attention, asking: Forms, seen: tuple[Forms, Forms], sources: Sources, arithmetic: Arithmetic
) -> Readings:
    """The questions of all heads at the tokens `asking`, which see the same ones: token by token, head by head."""
    if layer.grid is not None and len(layer.grid) > 1:
        raise Refusal("an attention has a grid of several axes")
    heads, size, width = layer.query.shape
    tokens = len(asking.constant)
    entry = entry_that_asks(layer, asking)
    touches = ((layer.query[:, entry] != 0) @ asking.varying.any(axis=0)) > 0
    rest = [n for n in range(size) if n != entry]
    t = mapped(layer.query[:, entry], None, asking, sources, arithmetic)
    fixed_heads = np.flatnonzero(~touches)
    if len(fixed_heads):
        number = constants(layer.query[fixed_heads, entry], asking, arithmetic)
        t.constant[:, fixed_heads], t.rounding[:, fixed_heads] = number.values, number.error
    fixed = constants(layer.query[:, rest].reshape(-1, width), asking, arithmetic)
    if not fixed.exact:
        raise Refusal("a constant of a query is rounded")

    shown = Forms.joined([constant_part(one) for one in seen])
    depends = ((layer.value != 0) @ shown.varying.any(axis=0)).any(axis=1)
    values = np.where(np.broadcast_to(depends, heads), -1.0, first_alike(layer.value, heads))
    labels = np.concatenate(
        [
            fixed.values.reshape(tokens, heads, len(rest)),
            np.broadcast_to(np.stack([first_alike(layer.key, heads), values], 1), (tokens, heads, 2)),
        ],
        axis=2,
    )
    unique, kinds = np.unique(labels.reshape(tokens * heads, -1), axis=0, return_inverse=True)
    keys = tuple(_keys(layer, shown, entry, rest, row, arithmetic) for row in unique)
    sums, apart = _sums(layer.query[:, entry], asking, sources, arithmetic)
    return Readings(t.reshaped(1, tokens * heads), kinds.reshape(-1), keys, sums.reshape(-1), apart.reshape(-1))


def _sums(
    rows: Float[np.ndarray, "heads features"], asking: Forms, sources: Sources, arithmetic: Arithmetic
) -> tuple[Int[np.ndarray, "tokens heads"], Float[np.ndarray, "tokens heads"]]:
    """Of every token and head which sum its query is, and what that rounds by beside what features are off by."""
    unique, which = np.unique(rows, axis=0, return_inverse=True)
    tokens = len(asking.constant)
    sums = which.reshape(-1) + len(unique) * np.arange(tokens)[:, None]
    if len(unique) == len(rows):
        return sums, np.zeros(sums.shape)
    return sums, mapped(rows, None, asking.unrounded(), sources, arithmetic).rounding


def of_grid(
    layer: Attention, asking: Forms, registers: Forms, sources: Sources, arithmetic: Arithmetic
) -> tuple[Readings, ...]:
    """The questions along each axis of a grid: its block of query and key, asked of the registers along it.

    Their keys have no values: those belong to points of all axes.
    """
    sides = layer.grid or ()
    size = layer.query.shape[1] // max(len(sides), 1)
    found = []
    for axis, side in enumerate(sides):
        block, stride = slice(axis * size, (axis + 1) * size), prod(sides[axis + 1 :])
        along = replace(layer, query=layer.query[:, block], key=layer.key[:, block], grid=(side,))
        seen = asking.tokens(slice(0)), registers.tokens(slice(0, side * stride, stride))
        readings = of_attention(along, asking, seen, sources, arithmetic)
        found.append(replace(readings, keys=tuple(replace(keys, values=None) for keys in readings.keys)))
    return tuple(found)


def constant_part(tokens: Forms) -> Forms:
    """Tokens for what is constant in them; of other features, which may depend on many sources, just that they vary."""
    shape = tokens.constant.shape
    return Forms(np.zeros((*shape, 0)), tokens.constant, np.zeros(shape), tokens.varying.astype(np.float64))


def _keys(
    layer: Attention, seen: Forms, entry: int, rest: list[int], row: Float[np.ndarray, " label"], arithmetic: Arithmetic
) -> Keys:
    """The keys of one kind: a query's constants, and the heads whose keys and values it meets; -1 where values depend
    on the input."""
    fixed, key_head, value_head = row[:-2], int(row[-2]), int(row[-1])
    key = constants(layer.key[key_head], seen, arithmetic)
    values = None if value_head < 0 else constants(layer.value[value_head], seen, arithmetic)
    products = key.values[:, rest] * fixed
    wrong = key.error[:, rest] @ np.abs(fixed) + product_error(
        np.abs(products), exact_factor(key.values[:, rest]) | exact_factor(fixed), arithmetic
    )
    return Keys(
        key.values[:, entry],
        products.sum(axis=1),
        key.error[:, entry],
        wrong,
        (key.values[:, entry] != 0) + (products != 0).sum(axis=1),
        np.abs(products).sum(axis=1),
        values,
        arithmetic,
    )


def of_groups(
    weight: Float[np.ndarray, "groups size features"],
    bias: Float[np.ndarray, "groups size"],
    x: Forms,
    arithmetic: Arithmetic,
) -> Readings:
    """Groups of logits weight_gk . x + bias_gk, for x (1, features) that all groups read, or (groups, features).

    Where one of these varies it is t, else the first that a group reads at all.
    """
    groups, size, _ = weight.shape
    touched = (weight != 0).any(axis=1)
    varies = touched & x.varying
    if (varies.sum(axis=1) > 1).any():
        raise Refusal("a group of logits depends on more than one number")
    entry = np.where(varies.any(axis=1), varies.argmax(axis=1), touched.argmax(axis=1))
    here = np.arange(groups)
    t = Forms(*(array[here if len(array) > 1 else 0 * here, entry][None] for array in x.arrays))
    slopes = weight[here, :, entry]
    still = weight.copy()
    still[here, :, entry] = 0.0
    fixed = x.constant[:, None, :]
    products = still * fixed
    columns = (
        slopes,
        bias + products.sum(axis=2),
        product_error(np.abs(products), exact_factor(still) | exact_factor(fixed), arithmetic),
        (bias != 0) + (products != 0).sum(axis=2) + (slopes != 0),
        np.abs(bias) + np.abs(products).sum(axis=2),
    )
    unique, kinds = np.unique(np.concatenate(columns, axis=1), axis=0, return_inverse=True)
    none = np.zeros(size)
    keys = tuple(
        Keys(slope, offset, none, wrong, terms.astype(int), sizes, None, arithmetic)
        for slope, offset, wrong, terms, sizes in (row.reshape(5, size) for row in unique)
    )
    sums = entry + (x.constant.shape[1] * here if len(x.constant) > 1 else 0)
    return Readings(t, kinds.reshape(-1), keys, sums, np.zeros(groups))
