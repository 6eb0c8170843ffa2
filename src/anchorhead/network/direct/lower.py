"""A network's layers as affine maps of one vector and heads on its entries; refused where they are more than that.

Going through the layers, `Held` says what the features of every token are. Attention whose logits are constants with
one winner copies. Attention whose queries have one entry that varies, over keys and values that are constants, is a
head on that entry, the same for all that meet the same keys. Only what later layers read is looked at.

What this may do beside what the layers do as they are written is stated in anchorhead.verify.direct, as a model of
arithmetic of which this is an instance: the verifier bounds whatever keeps to it, and does not rebuild the steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float

from anchorhead.network.alike import first_alike
from anchorhead.network.attention import Attention
from anchorhead.network.direct.held import (
    CONSTANT,
    DENSE,
    UNKNOWN,
    Held,
    Image,
    Refused,
    image,
    read_group_logits,
)
from anchorhead.network.direct.keys import SILENT, Keys
from anchorhead.network.direct.plans import AffinePlan, HeadsPlan, Plan, in_torch, joined, require_normal
from anchorhead.network.direct.steps import DirectModule, Outputs
from anchorhead.network.direct.stored_series import Finder
from anchorhead.network.direct.weighed import Weighed
from anchorhead.network.embed import Embed
from anchorhead.network.linear import Linear
from anchorhead.network.liveness import Needed, askers, everything, seen, streams, through
from anchorhead.network.softmax import Softmax
from anchorhead.network.stream import KINDS, Kind

MAX_NUMBERS = 1 << 26
"""Numbers that a matrix, or a table of logits, may have: beyond, a network is not looked at."""


@dataclass(frozen=True, eq=False)
class Planned:
    """What computes the output of a chain of layers, before it is said what heads run by; held: what leaves the last
    vector, which has `width` entries."""

    steps: list[Plan]
    held: Held
    width: int
    dtype: str

    def module(self, device: torch.device, series: Finder) -> DirectModule:
        """series   finds that of a head: among those that are stored, or, where a network is built, anew"""
        outputs = Outputs(self.held.place, self.held.factor, self.width, self.dtype, device)
        return DirectModule(in_torch(self.steps, self.dtype, device, series), outputs)


def planned(layers: Sequence[Any], output: Kind, dtype: str) -> Planned:
    """What is computed for a chain of layers, by whatever heads run; raises Refused."""
    embed = layers[0]
    lowering = _Lowering(embed, tuple(layers[1:]), output, dtype)
    held = lowering.run()
    if (held.place == UNKNOWN).any():
        raise Refused("an output is not known")
    _require_moved(lowering.steps, embed.tokens * embed.inputs)
    plans = joined(lowering.steps)
    maps = [one for step in plans for one in ([step] if isinstance(step, AffinePlan) else [b for b, _ in step.groups])]
    for numbers in (*(one.weight for one in maps), np.where(held.place >= 0, held.factor, 0.0)):
        require_normal(numbers, dtype)
    return Planned(plans, held, lowering.width, dtype)


def _require_moved(steps: Sequence[Plan], inputs: int) -> None:
    """Refuses heads on a number that no input moves: what certificates say of them is about softmaxes."""
    moved = np.ones(inputs, bool)
    for step in steps:
        if isinstance(step, AffinePlan):
            moved = (step.weight[:, moved] != 0).any(axis=1)
            continue
        asks = [(before.weight[:, moved] != 0).any(axis=1) for before, _ in step.groups]
        if not all(one.all() for one in asks):
            raise Refused("a head on a number that no input moves")
        moved = np.concatenate(asks)


class _Lowering:
    def __init__(
        self,
        embed: Embed,
        layers: tuple[Any, ...],
        output: Kind,
        dtype: str,
    ) -> None:
        if embed.tokens is None:
            raise Refused("any number of tokens may enter")
        start = embed.start()
        self.dtype, self.layers = dtype, layers
        self.output: Kind = output
        self.streams = streams(layers, start)
        self.needed = through(layers, everything(self.streams[-1], (output,)), start)
        self.steps: list[Plan] = []
        self.width = embed.tokens * embed.inputs
        self.tokens: dict[Kind, Held] = {}
        self._embed(embed)

    def run(self) -> Held:
        left = list(zip(self.layers, self.needed[1:], self.streams, strict=False))
        while left:
            match [layer for layer, _, _ in left[:3]]:
                case [Linear() as before, Softmax() as softmax, Linear() as behind]:
                    self._softmaxes(before, softmax, behind, left[2][1])
                    left = left[3:]
                    continue
                case [Linear() as layer, *_]:
                    self._linear(layer, left[0][1])
                case [Attention() as layer, *_]:
                    self._attention(layer, *left[0][1:])
                case [layer, *_]:
                    raise Refused(f"a {type(layer).__name__} is no head on a scalar")
            left = left[1:]
        return self.tokens[self.output]

    def _softmaxes(self, before: Linear, softmax: Softmax, behind: Linear, after: Needed) -> None:
        """Neurons as groups of a Softmax: logits of one feature each, and a map that takes multiples of one head."""
        size = softmax.groups[0]
        if tuple(after) != ("input",) or set(softmax.groups) != {size} or before.across != behind.across:
            raise Refused("groups of a softmax that differ, or tokens of several kinds")
        source = self.tokens["input"] if not before.across else self._joined(KINDS).flat()
        asks, slopes, offsets = read_group_logits(before, source, size)
        place, factor = source.place[0, asks], source.factor[0, asks]
        weight, bias, shape = _behind(behind, source.tokens)
        if weight.size > MAX_NUMBERS:
            raise Refused(f"a map of {weight.shape} numbers")
        values = weight.reshape(len(weight), -1, size)
        tables, which = np.unique(np.concatenate([slopes, offsets], 1), axis=0, return_inverse=True)
        groups, found = [], list[Weighed]()
        for number, table in enumerate(tables):
            own = np.flatnonzero(which.reshape(-1) == number)
            picks = np.zeros((len(own), self.width))
            picks[np.arange(len(own)), place[own]] = factor[own]
            one = Weighed.of(table[:size], table[size:], values[:, own], self.dtype)
            groups.append((AffinePlan(picks, np.zeros(len(own))), one.keys.column(0)))
            found.append(one)
        takes = np.concatenate([one.takes for one in found], axis=1)
        self.steps += [HeadsPlan(tuple(groups), weighed=tuple(found)), AffinePlan(takes, bias)]
        self.width = len(bias)
        self.tokens = {"input": Held(np.arange(self.width).reshape(shape), np.ones(shape))}

    def _embed(self, embed: Embed) -> None:
        needed = self.needed[0]
        found: dict[Kind, Image | Held] = {}
        constants: tuple[tuple[Kind, Any], ...] = (("register", embed.registers), ("state", embed.states))
        for kind, numbers in constants:
            if kind in needed and numbers is not None:
                found[kind] = Held.constants(numbers)
        if "input" in needed:
            tokens = embed.tokens or 1
            entries = np.arange(self.width).reshape(tokens, embed.inputs)
            entries = entries if embed.source is None else entries[embed.source]
            source = Held(entries, np.ones(entries.shape))
            if (embed.weight.ndim == 3 or embed.bias.ndim == 2) and len(entries) > 1:
                raise Refused("positions have maps of their own")
            weight = embed.weight.reshape(embed.weight.shape[-2:])
            found["input"] = image(weight, embed.bias.reshape(-1), source, needed["input"])
        self._settle(found)

    def _linear(self, layer: Linear, after: Needed) -> None:
        if not layer.across:
            weight = _dense(layer)
            self._settle({kind: image(weight, layer.bias, self.tokens[kind], mask) for kind, mask in after.items()})
            return
        if layer.mix is not None:
            raise Refused("a map mixes tokens by a factor of its own")
        every = self._joined(KINDS).flat()
        outputs = layer.weight.shape[:2]
        weight = layer.weight.reshape(outputs[0] * outputs[1], -1)
        bias = None if layer.bias is None else np.broadcast_to(layer.bias, outputs).reshape(-1)
        needed = np.broadcast_to(after["input"], outputs).reshape(-1)
        self._settle({"input": image(weight, bias, every, needed)}, outputs)

    def _joined(self, kinds: Sequence[Kind]) -> Held:
        first, *more = [self.tokens[kind] for kind in kinds if kind in self.tokens]
        return first.below(*more)

    def _settle(self, found: Mapping[Kind, Image | Held], shape: tuple[int, ...] | None = None) -> None:
        """From images to what is held: one step for all sums, which hands on the entries that are still picked."""
        helds: dict[Kind, Held] = {kind: one.held if isinstance(one, Image) else one for kind, one in found.items()}
        sums: dict[Kind, np.ndarray] = {kind: np.argwhere(held.place == DENSE) for kind, held in helds.items()}
        total = sum(map(len, sums.values()))
        if total:
            kept = np.unique(np.concatenate([held.place[held.place >= 0] for held in helds.values()]))
            rows = total + len(kept)
            if rows * self.width > MAX_NUMBERS:
                raise Refused(f"a matrix of {rows} x {self.width} numbers")
            matrix, bias, start = np.zeros((rows, self.width)), np.zeros(rows), 0
            for kind, pairs in sums.items():
                one, held = found[kind], helds[kind]
                place = np.where(held.place >= 0, total + np.searchsorted(kept, held.place), held.place)
                if isinstance(one, Image) and len(pairs):
                    end = start + len(pairs)
                    matrix[start:end], bias[start:end] = one.rows(pairs[:, 0], pairs[:, 1], self.width)
                    place[tuple(pairs.T)] = np.arange(start, end)
                    start = end
                factor = np.where(held.place == DENSE, 1.0, held.factor)
                helds[kind] = Held(place, factor)
            matrix[np.arange(total, rows), kept] = 1.0
            self.steps.append(AffinePlan(matrix, bias))
            self.width = rows
        if shape is not None:
            helds = {k: Held(h.place.reshape(shape), h.factor.reshape(shape)) for k, h in helds.items()}
        self.tokens = helds

    def _attention(self, layer: Attention, after: Needed, stream: Any) -> None:
        asking = askers(layer, after)
        if layer.mask not in (None, "causal") or (layer.grid is not None and len(layer.grid) > 1):
            raise Refused("a mask or a grid of several axes")
        if layer.skip is not None and layer.skip.bias is not None:
            raise Refused("a skip that is a sum of its own")
        if len(asking) != 1:
            raise Refused(f"tokens of {len(asking)} kinds ask")
        kind = asking[0]
        visible = self._visible(layer, kind, seen(layer, asking, stream))
        heads, size, width = layer.query.shape
        own = self.tokens[kind]
        queries = image(layer.query.reshape(heads * size, width), None, own)
        if (queries.held.place == UNKNOWN).any():
            raise Refused("a query is not known")
        varies = (queries.held.place != CONSTANT).reshape(own.tokens, heads, size)
        entries = np.flatnonzero(varies.any(axis=(0, 1)))
        if len(entries) > 1:
            raise Refused("more than one entry of the queries depends on the input")
        if len(entries):
            if kind == "register" and self.output != "register":
                raise Refused("heads of registers, of which certificates know only between what they lie")
            reads = self._neurons(layer, queries, int(entries[0]), visible, after[kind])
        else:
            reads = self._copies(layer, queries.held.factor.reshape(own.tokens, heads, size), visible)
        self._settle(self._handed_on(layer, kind, reads, after, bool(len(entries))))
        if isinstance(self.steps[-1] if self.steps else None, HeadsPlan):  # it sums nothing of what its heads read
            self.steps[-1] = replace(self.steps[-1], folds=False)

    def _handed_on(
        self, layer: Attention, kind: Kind, reads: Held, after: Needed, anew: bool
    ) -> dict[Kind, Image | Held]:
        """The outputs of all kinds, from what is read at one of them and what the skip keeps."""
        outputs = layer.outputs
        skip = np.zeros((outputs, layer.width)) if layer.skip is None else _dense(layer.skip)
        bias = np.zeros(outputs) if layer.bias is None else layer.bias
        out = np.moveaxis(layer.output, 0, 1).reshape(outputs, -1)
        found: dict[Kind, Image | Held] = {}
        for one, mask in after.items():
            held = self.tokens[one]
            if anew:  # the vector is a new one: of the old entries nothing is left
                held = Held(np.where(held.place >= 0, UNKNOWN, held.place), held.factor)
            if one == kind:
                found[one] = image(np.concatenate([out, skip], 1), bias, reads.beside(held), mask)
            else:
                found[one] = image(skip, bias, held, mask)
        return found

    def _visible(self, layer: Attention, kind: Kind, kinds: Sequence[Kind]) -> tuple[Held, Bool[np.ndarray, "n m"]]:
        """The tokens that are seen at all, and by whom."""
        if layer.grid is not None:
            registers = self.tokens["register"]
            shown = Held(registers.place[: layer.points], registers.factor[: layer.points])
            return shown, np.ones((self.tokens[kind].tokens, layer.points), bool)
        shown = self._joined(kinds)
        mask = np.ones((self.tokens[kind].tokens, shown.tokens), bool)
        if layer.mask == "causal":
            if kind != "input":
                raise Refused("a causal mask on tokens that are no inputs")
            first = self.tokens["input"].tokens
            mask[:, :first] = np.tri(len(mask), first, dtype=bool)
        return shown, mask

    def _copies(
        self, layer: Attention, query: Float[np.ndarray, "n heads size"], visible: tuple[Held, np.ndarray]
    ) -> Held:
        """What each token reads, where every head has one winner."""
        shown, mask = visible
        heads, size, _ = layer.query.shape
        key = image(layer.key.reshape(-1, layer.width), None, shown).held.constant("keys")
        key = key.reshape(len(key), -1, size)
        if query.shape[0] * heads * len(key) > MAX_NUMBERS:
            raise Refused(f"{query.shape[0]} x {heads} x {len(key)} logits")
        key = np.broadcast_to(key, (len(key), heads, size))
        logits, sizes = np.einsum("nhs,mhs->nhm", query, key), np.einsum("nhs,mhs->nhm", abs(query), abs(key))
        logits = np.where(mask[:, None, :], logits, -np.inf)
        winner = logits.argmax(axis=2)
        lead = np.take_along_axis(logits, winner[..., None], 2) - logits
        others = np.arange(len(key)) != winner[..., None]
        if (lead - 1e-5 * sizes.max(axis=2, keepdims=True) < SILENT)[others].any():
            raise Refused("a head copies no single token")
        values = image(layer.value.reshape(-1, layer.width), None, shown).held
        count = layer.value.shape[1]
        place, factor = (array.reshape(len(key), -1, count) for array in (values.place, values.factor))
        which = np.arange(heads) if len(layer.value) > 1 else np.zeros(heads, int)
        picked = Held(*(array[winner, which].reshape(len(winner), -1) for array in (place, factor)))
        used = (layer.output != 0).any(axis=1).reshape(-1)
        if (picked.place[:, used] == DENSE).any():
            raise Refused("what is copied is a sum")
        return Held(np.where(picked.place == DENSE, UNKNOWN, picked.place), picked.factor)

    def _neurons(
        self, layer: Attention, queries: Image, entry: int, visible: tuple[Held, np.ndarray], needed: np.ndarray
    ) -> Held:
        """What each token reads from heads on scalars, as entries of a new vector."""
        shown, mask = visible
        heads, size, width = layer.query.shape
        count = len(mask)
        rest = [n for n in range(size) if n != entry]
        fixed = queries.held.factor.reshape(count, heads, size)[..., rest]
        key = image(layer.key.reshape(-1, width), None, shown).held.constant("keys").reshape(shown.tokens, -1, size)
        value = image(layer.value.reshape(-1, width), None, shown).held.constant("values")
        value = value.reshape(shown.tokens, -1, layer.value.shape[1])
        kinds = [first_alike(one, heads)[:, None] for one in (layer.key, layer.value)]
        seers = np.unique(mask, axis=0, return_inverse=True)[1].reshape(count)
        labels = np.concatenate(
            [fixed, *(np.broadcast_to(k, (count, heads, 1)) for k in kinds),
             np.broadcast_to(seers[:, None, None], (count, heads, 1))], axis=2,
        )  # fmt: skip
        unique, first, group = np.unique(
            labels.reshape(count * heads, -1), axis=0, return_index=True, return_inverse=True
        )
        group = group.reshape(count, heads)
        columns = layer.value.shape[1]
        used = (layer.output[:, needed] != 0).any(axis=1)
        place, factor = np.full((count, heads, columns), CONSTANT), np.zeros((count, heads, columns))
        groups, start = [], 0
        for number in range(len(unique)):
            row = unique[number]
            here = mask[first[number] // heads]
            own_key, own_value = key[here, int(row[-3])], value[here, int(row[-2])]
            live = Keys(own_key[:, entry], own_key[:, rest] @ row[:-3], own_value).live()
            members = np.argwhere(group == number)
            for column in range(columns):
                asks = members[used[members[:, 1], column]]
                if not len(asks) or not live.values[:, column].any():
                    continue
                if len(live.slopes) == 1:
                    factor[asks[:, 0], asks[:, 1], column] = live.values[0, column]
                    continue
                matrix, bias = queries.rows(asks[:, 0], asks[:, 1] * size + entry, self.width)
                groups.append((AffinePlan(matrix, bias), live.column(column)))
                place[asks[:, 0], asks[:, 1], column] = np.arange(start, start + len(asks))
                factor[asks[:, 0], asks[:, 1], column] = 1.0
                start += len(asks)
        if not start:
            raise Refused("heads that read constants alone")
        self.steps.append(HeadsPlan(tuple(groups)))
        self.width = start
        return Held(place.reshape(count, -1), factor.reshape(count, -1))


def _dense(layer: Linear) -> Float[np.ndarray, "outputs inputs"]:
    if layer.outputs * layer.inputs > MAX_NUMBERS:
        raise Refused(f"a map of {layer.outputs} x {layer.inputs} numbers")
    return layer.on_features()


def _behind(layer: Linear, tokens: int) -> tuple[np.ndarray, np.ndarray, tuple[int, int]]:
    """A map of the weights of all tokens as one matrix, its constants, and how many tokens and features leave it."""
    if layer.mix is not None:
        raise Refused("a map mixes tokens by a factor of its own")
    if layer.across:
        shape = layer.weight.shape[0], layer.weight.shape[1]
        weight = layer.weight.reshape(shape[0] * shape[1], -1)
    else:
        if tokens > 1:
            raise Refused("softmaxes of several tokens")
        shape, weight = (1, layer.outputs), _dense(layer)
    bias = np.zeros(shape) if layer.bias is None else np.broadcast_to(layer.bias, shape)
    return weight.astype(np.float64), bias.reshape(-1).astype(np.float64), shape
