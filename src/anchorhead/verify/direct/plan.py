"""Which arithmetic the evaluation "direct" does from which stored weights: a function of the file's layers alone.

A call computes one vector after the other, beginning with the inputs, token by token. Going through the layers, every
feature of every token that a later layer reads is an entry of the vector times a power of two, a constant, or a sum
(`held.image` says which). The sums of a layer are the rows of one map, followed by the entries that are still picked.

  Attention   One kind of token asks, without a mask or with a causal one, not on a grid of several axes.
              If no query depends on the input, every head has one winner, by a logit SILENT larger than all others,
              and its values, which are no sums, are what is read.
              Else one entry of the queries does, t, and keys and values are constants: heads with the same constant
              queries, keys, values and visible tokens are a group, with logits a_k t + g_k. Keys that are nowhere on
              the line within SILENT of the largest are left out (`live`), the others ordered by a_k, then by g_k. Each
              column of values that is not 0 and is read is a head on t (`Heads`); what they read is the new vector.
  Linear, Softmax, Linear   Groups of one size whose logits are multiples of one entry plus constants: softmaxes on
              entries, and one sum of all their weights (`Softmaxes`).
  joined      Two maps in a row, or a map before heads or softmaxes, become one where one of them picks: nothing is
              rounded that was not before.

A head with a series (see `series`) is computed by it, any other as sum_k v_k softmax_k(a_k t + g_k). If a map follows
heads directly, and what they read went through an attention's output (`folds`), series hand on q of shift + scale q,
and the map takes fl(W scale) and fl(b + W shift); else they hand on fl(fl(scale q) + shift).
What leaves is picked from the last vector. A network that this does not describe is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from anchorhead.verify.direct.held import (
    CONSTANT,
    SUM,
    UNKNOWN,
    Held,
    Image,
    Map,
    image,
    side_by_side,
)
from anchorhead.verify.direct.keys import MOST, Keys, copies, first_alike, keys_of
from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.grammar import KINDS, Attention, Linear, Network, Softmax, Stream
from anchorhead.verify.needs import Needed, needs
from anchorhead.verify.readings import seen


@dataclass(frozen=True, eq=False)
class Heads:
    """Groups: the map to their t, their keys, and which column of the values they read. folds: see above."""

    groups: tuple[tuple[Map, Keys, int], ...]
    folds: bool = True


@dataclass(frozen=True, eq=False)
class Softmaxes:
    """Groups: the map to their t, slopes, offsets, and (keys, outputs, groups) of the sum; and its bias."""

    groups: tuple[tuple[Map, np.ndarray, np.ndarray, np.ndarray], ...]
    bias: np.ndarray


Step = Map | Heads | Softmaxes


@dataclass(frozen=True, eq=False)
class Plan:
    steps: tuple[Step, ...]
    output: Held


def plan_of(network: Network, layers: list[Any]) -> Plan:
    """The plan of a network with its Repeats unrolled; refused where there is none."""
    planner = _Planner(network, layers)
    output = planner.run()
    require(bool((output.place != UNKNOWN).all()), "direct: an output of which nothing is known")
    return Plan(tuple(_joined(planner.steps)), output)


def _joined(steps: list[Step]) -> list[Step]:
    found: list[Step] = []
    for step in steps:
        first = found[-1] if found else None
        if isinstance(first, Map):
            before = [step] if isinstance(step, Map) else [group[0] for group in step.groups]
            if first.picks or all(one.picks for one in before):
                if isinstance(step, Map):
                    found[-1] = step.after(first)
                else:
                    groups: Any = tuple((one.after(first), *rest) for one, *rest in step.groups)
                    found[-1] = replace(step, groups=groups)
                continue
        found.append(step)
    return found


class _Planner:
    def __init__(self, network: Network, layers: list[Any]) -> None:
        embed = network.embed
        require(embed.tokens is not None, "direct: any number of tokens may enter")
        require(len(embed.weight) == len(embed.bias) == 1, "direct: positions have maps of their own")
        self.layers, self.output = layers, network.output
        stream = Stream(embed.positions, len(embed.registers), len(embed.states), embed.weight.shape[1])
        self.needed = needs(layers, stream, network.output)
        self.steps: list[Step] = []
        self.width = embed.tokens * embed.weight.shape[2]  # type: ignore[operator]
        self.tokens: dict[str, Held] = {}
        entries = np.arange(self.width).reshape(embed.tokens, -1)  # type: ignore[arg-type]
        entries = entries if embed.source is None else entries[embed.source]
        needed, found = self.needed[0], {}
        for kind, rows in (("register", embed.registers), ("state", embed.states)):
            if kind in needed and len(rows):
                found[kind] = Held.constants(rows)
        if "input" in needed:
            source = Held(entries, np.ones(entries.shape))
            found["input"] = image(embed.weight[0], embed.bias[0], source, needed["input"])
        self._settle(found)

    def run(self) -> Held:
        place = 0
        while place < len(self.layers):
            after = self.needed[place + 1]
            match self.layers[place : place + 3]:
                case [Linear() as before, Softmax() as softmax, Linear() as behind]:
                    self._softmaxes(before, softmax, behind, self.needed[place + 3])
                    place += 3
                    continue
                case [Linear() as layer, *_]:
                    self._linear(layer, after)
                case [Attention() as layer, *_]:
                    self._attention(layer, after)
                case _:
                    raise NotVerified("direct: a Softmax that stands alone")
            place += 1
        return self.tokens[self.output]

    def _every(self, kinds: tuple[str, ...] = KINDS) -> Held:
        return side_by_side([self.tokens[kind] for kind in kinds if kind in self.tokens], 0)

    def _settle(self, found: Mapping[str, Image | Held], shape: tuple[int, int] | None = None) -> None:
        """One step for all sums, which hands on the entries that are picked."""
        helds = {kind: one.held if isinstance(one, Image) else one for kind, one in found.items()}
        sums = {kind: np.argwhere(held.place == SUM) for kind, held in helds.items()}
        total = sum(map(len, sums.values()))
        if total:
            kept = np.unique(np.concatenate([held.place[held.place >= 0] for held in helds.values()]))
            require((total + len(kept)) * self.width <= MOST, "direct: a matrix of too many numbers")
            eye = np.zeros((len(kept), self.width))
            eye[np.arange(len(kept)), kept] = 1.0
            maps, start = [], 0
            for kind, pairs in sums.items():
                held, one = helds[kind], found[kind]
                place = np.where(held.place >= 0, total + np.searchsorted(kept, held.place), held.place)
                if isinstance(one, Image) and len(pairs):
                    maps.append(one.rows(pairs[:, 0], pairs[:, 1], self.width))
                    place[tuple(pairs.T)] = np.arange(start, start + len(pairs))
                    start += len(pairs)
                helds[kind] = Held(place, np.where(held.place == SUM, 1.0, held.factor))
            maps.append(Map(eye, np.zeros(len(kept)), np.zeros(len(kept))))
            arrays = ([getattr(one, name) for one in maps] for name in ("weight", "bias", "wrong"))
            self.steps.append(Map(*(np.concatenate(several) for several in arrays)))
            self.width = total + len(kept)
        self.tokens = {kind: held if shape is None else held.reshaped(*shape) for kind, held in helds.items()}

    def _linear(self, layer: Linear, after: Needed) -> None:
        if not layer.across:
            if self.steps and isinstance(self.steps[-1], Heads):
                self.steps[-1] = replace(self.steps[-1], folds=False)
            weight = layer.on_features()
            self._settle({kind: image(weight, layer.bias, self.tokens[kind], mask) for kind, mask in after.items()})
            return
        require(layer.mix is None, "direct: a map mixes tokens by a factor of its own")
        out, outputs = layer.weight.shape[:2]
        bias = None if layer.bias is None else np.broadcast_to(layer.bias, (out, outputs)).reshape(-1)
        needed = np.broadcast_to(after["input"], (out, outputs)).reshape(-1)
        flat = self._every().reshaped(1, -1)
        found = image(layer.weight.reshape(out * outputs, -1), bias, flat, needed)
        self._settle({"input": found}, (out, outputs))

    def _softmaxes(self, before: Linear, softmax: Softmax, behind: Linear, after: Needed) -> None:
        """Logits of a group are multiples of one entry plus constants; one sum of all weights."""
        size = softmax.groups[0]
        fits = set(after) == {"input"} and set(softmax.groups) == {size} and before.across == behind.across
        require(
            fits and before.mix is None and behind.mix is None,
            "direct: groups of several sizes, or tokens of several kinds",
        )
        if before.across:
            weight, source = before.weight.reshape(-1, np.prod(before.weight.shape[2:])), self._every().reshaped(1, -1)
            shape = behind.weight.shape[:2]
            taken = behind.weight.reshape(shape[0] * shape[1], -1)
        else:
            weight, source = before.on_features(), self.tokens["input"]
            shape, taken = (1, behind.outputs), behind.on_features()
            require(len(source.place) == 1, "direct: softmaxes of several tokens")
        require(taken.size <= MOST and bool(((weight != 0).sum(axis=1) <= 1).all()), "direct: a logit is a sum")
        feature = (weight != 0).argmax(axis=1)
        factor = weight[np.arange(len(weight)), feature]
        place = np.where(factor != 0, source.place[0, feature], CONSTANT)
        require(bool(((place >= 0) | (factor == 0)).all()), "direct: a logit of a constant")
        slopes = np.where(place >= 0, factor * source.factor[0, feature], 0.0).reshape(-1, size)
        bias = np.zeros(before.outputs) if before.bias is None else before.bias
        offsets = np.broadcast_to(bias, (len(weight) // before.outputs, before.outputs)).reshape(-1, size)
        place = place.reshape(-1, size)
        asks = place.max(axis=1)
        one_each = ((place == asks[:, None]) | (place < 0)).all() and (asks >= 0).all()
        require(bool(one_each), "direct: a group whose logits are not of one entry")
        tables, which = np.unique(np.concatenate([slopes, offsets], 1), axis=0, return_inverse=True)
        groups = []
        for number, table in enumerate(tables):
            own = np.flatnonzero(which.reshape(-1) == number)
            picks = np.zeros((len(own), self.width))
            picks[np.arange(len(own)), asks[own]] = 1.0
            nothing = np.zeros(len(own))
            values = np.moveaxis(taken.reshape(len(taken), -1, size)[:, own], 2, 0)
            groups.append((Map(picks, nothing, nothing), table[:size], table[size:], values))
        behind_bias = np.zeros(shape) if behind.bias is None else np.broadcast_to(behind.bias, shape)
        self.steps.append(Softmaxes(tuple(groups), behind_bias.reshape(-1)))
        self.width = len(taken)
        self.tokens = {"input": Held(np.arange(self.width).reshape(shape), np.ones(shape))}

    def _attention(self, layer: Attention, after: Needed) -> None:
        written = (layer.output != 0).any(axis=(0, 2))
        asking = [kind for kind in KINDS if kind in after and (after[kind] & written).any()]
        plain = layer.mask in (None, "causal") and (layer.grid is None or len(layer.grid) == 1)
        require(
            plain and len(asking) == 1, "direct: a mask, a grid of several axes, or several kinds of tokens that ask"
        )
        kind, own = asking[0], self.tokens[asking[0]]
        require(layer.mask is None or kind == "input", "direct: a causal mask on tokens that are no inputs")
        present = {one: len(self.tokens[one].place) if one in self.tokens else 0 for one in KINDS}
        stream = Stream(present["input"], present["register"], present["state"], 0)
        visible = np.zeros((len(own.place), sum(present.values())), bool)
        for place in range(len(visible)):
            visible[place, seen(layer, stream, kind, place)] = True
        heads, size, width = layer.query.shape
        queries = image(layer.query.reshape(heads * size, width), None, own)
        require(bool((queries.held.place != UNKNOWN).all()), "direct: a query is not known")
        varies = np.flatnonzero((queries.held.place != CONSTANT).reshape(-1, heads, size).any(axis=(0, 1)))
        require(len(varies) <= 1, "direct: more than one entry of the queries depends on the input")
        shown = np.flatnonzero(visible.any(axis=0))
        seen_tokens, visible = self._every().tokens(shown), visible[:, shown]
        key = image(layer.key.reshape(-1, width), None, seen_tokens).held.required("keys")
        key = key.reshape(len(shown), -1, size)
        value = image(layer.value.reshape(-1, width), None, seen_tokens).held
        value = value.reshaped(len(shown), len(layer.value), -1)
        fixed = queries.held.factor.reshape(len(own.place), heads, size)
        if len(varies):
            reads = self._heads(
                layer, queries, int(varies[0]), fixed, key, value.required("values"), visible, after[kind]
            )
        else:
            reads = copies(layer, fixed, key, value, visible)
        self._handed_on(layer, kind, reads, after, bool(len(varies)))

    def _handed_on(self, layer: Attention, kind: str, reads: Held, after: Needed, anew: bool) -> None:
        """What is read at one kind, and what the skip keeps of all; anew: the vector is new, old entries are gone."""
        outputs = layer.outputs
        skip = np.zeros((outputs, layer.query.shape[2])) if layer.skip is None else layer.skip.on_features()
        bias = np.zeros(outputs) if layer.bias is None else layer.bias
        bias = bias if layer.skip is None or layer.skip.bias is None else bias + layer.skip.bias
        out = np.moveaxis(layer.output, 0, 1).reshape(outputs, -1)
        found: dict[str, Image | Held] = {}
        for one, mask in after.items():
            held = self.tokens[one]
            held = Held(np.where(held.place >= 0, UNKNOWN, held.place), held.factor) if anew else held
            if one == kind:
                found[one] = image(np.concatenate([out, skip], 1), bias, side_by_side([reads, held], 1), mask)
            else:
                found[one] = image(skip, bias, held, mask)
        self._settle(found)

    def _heads(
        self,
        layer: Attention,
        queries: Image,
        entry: int,
        fixed: np.ndarray,
        key: np.ndarray,
        value: np.ndarray,
        visible: np.ndarray,
        needed: np.ndarray,
    ) -> Held:
        """What each token reads from heads on t."""
        count, heads, size = fixed.shape
        rest = [e for e in range(size) if e != entry]
        seers = np.unique(visible, axis=0, return_inverse=True)[1].reshape(count, 1)
        alike = [np.broadcast_to(first_alike(one, heads), (count, heads)) for one in (layer.key, layer.value)]
        labels = np.stack([*np.moveaxis(fixed[..., rest], 2, 0), *alike, np.broadcast_to(seers, (count, heads))], 2)
        unique, first, group = np.unique(
            labels.reshape(count * heads, -1), axis=0, return_index=True, return_inverse=True
        )
        group = group.reshape(count, heads)
        used = (layer.output[:, needed] != 0).any(axis=1)
        place, factor = np.full((count, heads, value.shape[2]), CONSTANT), np.zeros((count, heads, value.shape[2]))
        groups: list[tuple[Map, Keys, int]] = []
        start = 0
        for number, row in enumerate(unique):
            here = visible[first[number] // heads]
            own = key[here, int(row[-3])]
            keys = keys_of(own[:, entry], own[:, rest], row[:-3], value[here, int(row[-2])])
            members = np.argwhere(group == number)
            for column in range(value.shape[2]):
                asks = members[used[members[:, 1], column]]
                read = keys.values[keys.live, column]
                if not len(asks) or not read.any():
                    continue
                index = asks[:, 0], asks[:, 1], np.full(len(asks), column)
                if len(keys.live) == 1:
                    factor[index] = read[0]
                    continue
                groups.append((queries.rows(asks[:, 0], asks[:, 1] * size + entry, self.width), keys, column))
                place[index], factor[index] = np.arange(start, start + len(asks)), 1.0
                start += len(asks)
        require(start > 0, "direct: heads that read constants alone")
        self.steps.append(Heads(tuple(groups)))
        self.width = start
        return Held(place, factor).reshaped(count, -1)
