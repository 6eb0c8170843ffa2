"""What attention does to affine forms: tokens that are copied, and softmaxes that are the heads of neurons.

Constant logits with one winner (proof.silence) make a copy: the others' exponentials are 0 in the dtype. A query of one
entry that varies, against keys that are constants, is a head on that entry; which head, is told by the keys that are
not always out of reach. Anything else is refused: no bound is claimed for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Part
from anchorhead.network import Attention
from anchorhead.proof.affine_forms import NOTHING, UNKNOWN, Forms, Sources, mapped
from anchorhead.proof.arithmetic import Arithmetic
from anchorhead.proof.rounding import exact_factor
from anchorhead.proof.shape import Shape
from anchorhead.proof.silence import one_winner, out_of_reach, rounding_of


def unreadable(why: str) -> AnchorheadError:
    return AnchorheadError(f"the layers are not those of a converted network: {why}")


def constant_rows(
    weight: Float[np.ndarray, "rows features"], tokens: Forms, arithmetic: Arithmetic
) -> Float[np.ndarray, "tokens rows"]:
    """Rows that pick constants: at most one product a row that is not 0, and that one exact."""
    weight = np.asarray(weight, np.float64)
    touched = weight != 0
    if (touched @ tokens.varying.any(axis=0)).any():
        raise unreadable("keys or values depend on the input")
    present = tokens.constant != 0
    if ((present.astype(float) @ touched.T.astype(float)) > 1).any():
        raise unreadable("a key, value or constant of a query is a sum")
    simple = exact_factor(weight) | ~touched
    if not simple.all():
        entries = np.unique(np.abs(tokens.constant[:, (~simple).any(axis=0)]))
        if not exact_factor(entries).all():
            raise unreadable("a key, value or constant of a query is rounded")
    result = tokens.constant @ weight.T
    if underflows(result, arithmetic):
        raise unreadable("a key, value or constant of a query underflows")
    return result


def underflows(products: np.ndarray, arithmetic: Arithmetic) -> bool:
    """Whether one of them may be taken for 0, or held with fewer digits."""
    return bool(((products != 0) & (np.abs(products) < arithmetic.tiny)).any())


def after_copies(
    layer: Attention, inputs: Forms, registers: Forms, sources: Sources, arithmetic: Arithmetic
) -> tuple[Forms, Forms]:
    """Input tokens and registers after a layer in which every head of an input token copies one other token."""
    everyone = seen(inputs, registers)
    skip = np.zeros((layer.outputs, layer.width)) if layer.skip is None else layer.skip.on_features()
    if layer.skip is not None and layer.skip.bias is not None:
        raise unreadable("a skip has a bias")
    weight = np.concatenate([*(layer.output[h] for h in range(layer.heads)), skip], axis=1)
    tokens = len(inputs.constant)
    values = [mapped(value, None, inputs, sources, arithmetic) for value in layer.value]
    results = []
    for i in range(tokens):
        own = inputs.token(i)
        reads = []
        for h, winner in enumerate(_winners(layer, own, everyone, i, tokens, arithmetic)):
            value = min(h, len(values) - 1)
            if winner < tokens:
                reads.append(values[value].token(winner))
            else:
                fixed = mapped(layer.value[value], None, registers.token(winner - tokens), NOTHING, arithmetic)
                reads.append(Forms(np.zeros((*fixed.constant.shape, len(sources.low))), *fixed.arrays[1:]))
        results.append(mapped(weight, layer.bias, Forms.joined([*reads, own], axis=1), sources, arithmetic))
    return Forms.joined(results), carried(layer, registers, arithmetic)


def seen(inputs: Forms, registers: Forms) -> Forms:
    """All tokens, for what is constant in them alone."""
    constant = np.concatenate([inputs.constant, registers.constant])
    unknown = np.where(np.concatenate([inputs.varying, registers.varying]), UNKNOWN, 0.0)
    return Forms(np.zeros((*constant.shape, 0)), constant, np.zeros(constant.shape), unknown)


def carried(layer: Attention, registers: Forms, arithmetic: Arithmetic) -> Forms:
    """What registers keep through the skip; nothing is known of what they read."""
    skip = np.zeros((layer.outputs, layer.width)) if layer.skip is None else layer.skip.on_features()
    kept = mapped(skip, layer.bias, registers, NOTHING, arithmetic)
    written = (layer.output != 0).any(axis=(0, 2))
    return Forms(kept.coefficients, kept.constant, kept.approximation, np.where(written, UNKNOWN, kept.rounding))


def require_mask(layer: Attention) -> None:
    """Refuses a mask other than none and the causal one."""
    if layer.mask not in (None, "causal"):
        raise unreadable(f"an attention has the mask {layer.mask}")


def _winners(
    layer: Attention, own: Forms, everyone: Forms, place: int, inputs: int, arithmetic: Arithmetic
) -> list[int]:
    """For each head the token that it copies into the one at a place."""
    require_mask(layer)
    visible = np.ones(len(everyone.constant), bool)
    if layer.mask == "causal":
        visible[place + 1 : inputs] = False
    size = layer.query.shape[1]
    query = constant_rows(layer.query.reshape(-1, layer.width), own, arithmetic)[0].reshape(layer.heads, size)
    key = constant_rows(layer.key.reshape(-1, layer.width), everyone, arithmetic)
    key = key.reshape(len(everyone.constant), -1, size)
    products = query * np.broadcast_to(key, (len(key), layer.heads, size))
    logits, sizes, terms = products.sum(axis=2), np.abs(products).sum(axis=2), (products != 0).sum(axis=2)
    logits[~visible] = -np.inf
    found = [one_winner(logits[:, h], sizes[:, h], terms[:, h], arithmetic) for h in range(layer.heads)]
    winners = [winner for winner in found if winner is not None]
    if len(winners) < layer.heads:
        raise unreadable("a head copies no single token")
    return winners


@dataclass(frozen=True, eq=False)
class Keys:
    """What one kind of query meets: the logit slopes_k t + offsets_k and the values of every token that is seen.

    terms   of how many products each logit is the sum
    sizes   the sums of the absolute values of those that the offsets add up
    """

    slopes: Float[np.ndarray, " keys"]
    offsets: Float[np.ndarray, " keys"]
    values: Float[np.ndarray, "keys entries"]
    terms: Int[np.ndarray, " keys"]
    sizes: Float[np.ndarray, " keys"]
    arithmetic: Arithmetic

    @classmethod
    def of(cls, part: Part, arithmetic: Arithmetic) -> Keys:
        """The anchors of a part of a head: a product with t, and an offset."""
        slopes, offsets, values = part.astype(np.float64)
        return cls(slopes, offsets, values, np.full(len(part), 2), np.abs(offsets), arithmetic)

    def anchors(self, part: Part, queries: tuple[float, float]) -> tuple[np.ndarray, np.ndarray] | None:
        """The numbers of the keys within reach, and of the part's anchors that they are; None if they are not these."""
        own = Keys.of(part, self.arithmetic)
        here, there = (np.flatnonzero(keys.live(own, queries)) for keys in (self, own))
        if len(here) != len(there) or (self.terms[here] > 2).any():
            return None
        here = here[np.lexsort((self.offsets[here], self.slopes[here]))]
        there = there[np.lexsort((own.offsets[there], own.slopes[there]))]
        same = all(
            np.array_equal(getattr(self, name)[here], getattr(own, name)[there]) for name in ("slopes", "offsets")
        )
        return (here, there) if same else None

    def column(self, part: Part, queries: tuple[float, float]) -> int | None:
        """The entry of the value that this part of a shape is read into, if these are its keys; None if not."""
        pairs = self.anchors(part, queries)
        if pairs is None:
            return None
        values, wanted = self.values[pairs[0]], part.values[pairs[1], 0].astype(np.float64)
        entries = np.flatnonzero((values != 0).any(axis=0))
        if not len(entries):
            return None if wanted.any() else 0
        return int(entries[0]) if len(entries) == 1 and np.array_equal(values[:, entries[0]], wanted) else None

    def silent(self, queries: tuple[float, float]) -> bool:
        """Whether nothing but zeros can be read here."""
        return not (self.values[self.live(self, queries)] != 0).any()

    def live(self, beside: Keys, queries: tuple[float, float]) -> Bool[np.ndarray, " keys"]:
        """The keys that are somewhere within reach of the largest logit of some keys, these or others."""
        _, most = self.ends(queries)
        least, _ = beside.ends(queries)
        return ~out_of_reach(most, least.max())

    def ends(self, queries: tuple[float, float]) -> tuple[Float[np.ndarray, " keys"], Float[np.ndarray, " keys"]]:
        """Between what each logit stays as computed, for every t between two queries."""
        at = [self.slopes * t + self.offsets for t in queries]
        size = np.abs(self.slopes) * max(map(abs, queries)) + self.sizes
        rounded = rounding_of(size, self.terms, self.arithmetic)
        return np.minimum(*at) - rounded, np.maximum(*at) + rounded


@dataclass(frozen=True, eq=False)
class Asked:
    """The queries of an attention layer over constant keys.

    varying  forms (1, asks, sources) of the one entry of each query that varies
    groups   (asks,) which of the `keys` each query meets
    """

    varying: Forms
    groups: Int[np.ndarray, " asks"]
    keys: Sequence[Keys]


def asked(
    layer: Attention,
    asking: Forms,
    everyone: Forms,
    sources: Sources,
    arithmetic: Arithmetic,
) -> Asked:
    """The queries of all heads at the tokens `asking`, token by token, head by head."""
    heads, size, width = layer.query.shape
    tokens = len(asking.constant)
    flat = np.asarray(layer.query, np.float64).reshape(heads * size, width)
    touches = ((flat != 0) @ asking.varying.any(axis=0)).reshape(heads, size)
    entry = int(np.argmax(touches.any(axis=0)))
    if touches.any(axis=0).sum() > 1:
        raise unreadable("more than one entry of the queries depends on the input")
    rest = [n for n in range(size) if n != entry]
    varying = mapped(layer.query[:, entry], None, asking, sources, arithmetic)
    varying = Forms(*(a.reshape(1, tokens * heads, *a.shape[2:]) for a in varying.arrays))
    fixed = constant_rows(layer.query[:, rest].reshape(-1, width), asking, arithmetic)
    fixed = fixed.reshape(tokens, heads, len(rest))

    which_key = np.arange(heads) if len(layer.key) > 1 else np.zeros(heads, int)
    which_value = np.arange(heads) if len(layer.value) > 1 else np.zeros(heads, int)
    kinds = _kinds(layer.key, which_key), _kinds(layer.value, which_value)
    labels = np.concatenate([fixed, np.broadcast_to(np.stack(kinds, 1), (tokens, heads, 2))], axis=2)
    unique, groups = np.unique(labels.reshape(tokens * heads, -1), axis=0, return_inverse=True)
    keys = [_keys(layer, everyone, entry, rest, row, arithmetic) for row in unique]
    return Asked(varying, groups.reshape(-1), keys)


def _kinds(weight: np.ndarray, which: np.ndarray) -> np.ndarray:
    """For each head the first head with the same weights."""
    flat = weight.reshape(len(weight), -1)
    if len(flat) == 1:
        return np.zeros(len(which))
    _, first, inverse = np.unique(flat, axis=0, return_index=True, return_inverse=True)
    return first[inverse.reshape(-1)][which].astype(float)


def _keys(
    layer: Attention, everyone: Forms, entry: int, rest: list[int], row: np.ndarray, arithmetic: Arithmetic
) -> Keys:
    fixed, key_head, value_head = row[:-2], int(row[-2]), int(row[-1])
    key = constant_rows(layer.key[key_head], everyone, arithmetic)
    products = key[:, rest] * fixed
    terms = (key[:, entry] != 0) + (products != 0).sum(axis=1)
    values = constant_rows(layer.value[value_head], everyone, arithmetic)
    return Keys(key[:, entry], products.sum(axis=1), values, terms, np.abs(products).sum(axis=1), arithmetic)


def matched(
    found: Asked,
    shapes: Sequence[Shape],
    assigned: Int[np.ndarray, " neurons"],
    parts: int,
) -> Int[np.ndarray, "neurons parts"]:
    """For neuron r and part p, whose query is number r parts + p, the entry of the value that is read.

    Raises where the keys are not those of the neuron's shape.
    """
    entries = np.zeros((len(assigned), parts), int)
    groups = found.groups.reshape(len(assigned), parts)
    for part in range(parts):
        for group, number in {(int(g), int(s)) for g, s in zip(groups[:, part], assigned, strict=True)}:
            shape, keys = shapes[number], found.keys[group]
            if part < len(shape.parts):
                entry = keys.column(shape.parts[part], shape.queries)
            else:
                entry = 0 if keys.silent(shape.queries) else None
            if entry is None:
                raise unreadable("the keys of a head are not those of the shape that it is said to have")
            entries[(groups[:, part] == group) & (assigned == number), part] = entry
    return entries
