"""Networks in numpy, every sum taken term by term in an order of one's own, in any floating-point type, exponentials
off by as much as the model of arithmetic allows.

What is proven holds for sums in any order and for such exponentials, so a network that errs by more than its bound in
one of them is a violation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from anchorhead.network import Attention, Linear, Network, Repeat, Softmax

Order = Callable[[int], np.ndarray]
Tokens = dict[str, np.ndarray]
KINDS = ("input", "register", "state")

ORDERS: dict[str, Order] = {
    "forwards": lambda n: np.arange(n),
    "backwards": lambda n: np.arange(n)[::-1],
    "at random": lambda n: np.random.default_rng(n).permutation(n),
}


def evaluate(network: Network, x: np.ndarray, order: Order | None, dtype: Any, astray: bool = False) -> np.ndarray:
    """The output for inputs x (batch, tokens, inputs), all numbers held in the dtype; order None: as numpy likes.

    astray   whether exponentials are off by 3 ulp, up or down at random, beside what numpy's are off already
    """
    with np.errstate(all="ignore"):
        return _Run(order, np.dtype(dtype).type, astray).network(network, x)


class _Run:
    def __init__(self, order: Order | None, kind: Any, astray: bool = False) -> None:
        self.order, self.kind, self.astray = order, kind, astray
        self.rng = np.random.default_rng(0)

    def network(self, network: Network, x: np.ndarray) -> np.ndarray:
        now = self.embedded(network.embed, x.astype(network.dtype).astype(self.kind))
        for layer in network.layers[1:]:
            now = self.after(layer, now)
        return now[network.output]

    def sum(self, terms: np.ndarray) -> np.ndarray:
        """Of the last axis, one after the other."""
        if self.order is None:
            return terms.sum(axis=-1)
        terms = terms[..., self.order(terms.shape[-1])]
        return np.add.accumulate(terms, axis=-1, dtype=self.kind)[..., -1]

    def dot(self, x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
        """x (..., features) by weight (..., outputs, features), the bias being a term like others."""
        weight = weight.astype(self.kind)
        if self.order is None:
            found = (weight @ x[..., None])[..., 0] if weight.ndim > 2 else x @ weight.T
            return found if bias is None else found + bias.astype(self.kind)
        terms = x[..., None, :] * weight
        if bias is not None:
            last = np.broadcast_to(bias.astype(self.kind), terms.shape[:-1])[..., None]
            terms = np.concatenate([terms, last], axis=-1)
        return self.sum(terms)

    def embedded(self, embed: Any, x: np.ndarray) -> Tokens:
        x = x if embed.source is None else x[:, embed.source]
        now: Tokens = {"input": self.dot(x, embed.weight, embed.bias)}
        for kind, rows in (("register", embed.registers), ("state", embed.states)):
            count = 0 if rows is None else len(rows)
            rows = np.zeros((0, embed.weight.shape[-2])) if rows is None else rows
            now[kind] = np.broadcast_to(rows.astype(self.kind), (len(x), count, rows.shape[1]))
        return now

    def after(self, layer: Any, now: Tokens) -> Tokens:
        match layer:
            case Repeat():
                for _ in range(layer.times):
                    for step in layer.layers:
                        now = self.after(step, now)
                return now
            case Softmax():
                return {kind: self.softmaxes(x, layer.groups) for kind, x in now.items()}
            case Linear() if layer.across:
                everyone = np.concatenate([now[kind] for kind in KINDS], axis=1)
                mapped = self.across(layer, everyone)
                nothing = mapped[:, :0]
                return {"input": mapped, "register": nothing, "state": nothing}
            case Linear():
                return {kind: self.dot(x, layer.on_features(), layer.bias) for kind, x in now.items()}
            case Attention():
                return {kind: self.attended(layer, kind, now) for kind in KINDS}
        raise TypeError(layer)

    def across(self, layer: Linear, x: np.ndarray) -> np.ndarray:
        if layer.mix is None:
            flat = x.reshape(len(x), 1, 1, -1)
            weight = layer.weight.reshape(*layer.weight.shape[:2], -1).astype(self.kind)
            terms = flat * weight
        else:
            mix = layer.mix[:, None].astype(self.kind)
            terms = np.swapaxes(self.dot(x, layer.on_features()), 1, 2)[:, None] * mix
        if layer.bias is not None:
            last = np.broadcast_to(layer.bias.astype(self.kind), terms.shape[:-1])[..., None]
            terms = np.concatenate([terms, last], axis=-1)
        return self.sum(terms)

    def softmaxes(self, x: np.ndarray, groups: tuple[int, ...]) -> np.ndarray:
        ends = np.cumsum(groups)[:-1]
        return np.concatenate([self.softmax(part) for part in np.split(x, ends, axis=-1)], axis=-1)

    def softmax(self, z: np.ndarray) -> np.ndarray:
        powers = np.exp(z - z.max(axis=-1, keepdims=True, initial=-np.inf))
        if self.astray:
            ulp = np.spacing(powers)
            astray = powers + 3 * ulp * self.rng.choice(np.array([-1, 1]), z.shape)
            powers = np.maximum(astray, 0).astype(self.kind)
        return powers / self.sum(powers)[..., None]

    def attended(self, layer: Attention, kind: str, now: Tokens) -> np.ndarray:
        x = now[kind]
        everyone = np.concatenate([now[one] for one in KINDS], axis=1)
        hidden = self.hidden(layer, kind, now)
        reads = []
        for h in range(layer.heads):
            key, value = (array[min(h, len(array) - 1)] for array in (layer.key, layer.value))
            query, keys = self.dot(x, layer.query[h]), self.dot(everyone, key)
            keys = keys if layer.grid is None else self.on_grid(layer, keys, now["input"].shape[1])
            terms = query[:, :, None, :] * keys[:, None, :, :]
            weights = self.softmax(np.where(hidden, self.kind(-np.inf), self.sum(terms)))
            values = self.dot(everyone, value)
            read = self.sum(weights[:, :, None, :] * np.swapaxes(values, 1, 2)[:, None])
            reads.append(read[:, :, None, :] * layer.output[h].astype(self.kind))
        terms = np.concatenate(reads, axis=-1)
        if layer.skip is not None:
            kept = x[:, :, None, :] * layer.skip.on_features().astype(self.kind)
            terms = np.concatenate([terms, kept], axis=-1)
        for bias in (layer.bias, None if layer.skip is None else layer.skip.bias):
            if bias is not None:
                last = np.broadcast_to(bias.astype(self.kind), terms.shape[:-1])[..., None]
                terms = np.concatenate([terms, last], axis=-1)
        return self.sum(terms)

    def hidden(self, layer: Attention, kind: str, now: Tokens) -> np.ndarray:
        """(asking, seen): which tokens are not seen."""
        kinds = np.repeat(KINDS, [now[one].shape[1] for one in KINDS])
        asking = now[kind].shape[1]
        register, state = kinds == "register", kinds == "state"
        first = {one: int((kinds == one).argmax()) for one in KINDS}[kind]
        own = np.arange(len(kinds)) == (first + np.arange(asking))[:, None]
        if layer.grid is not None:
            seen = register & (np.cumsum(register) <= layer.points)
        elif layer.mask is None:
            seen = np.ones(len(kinds), bool)
        elif kind == "register":
            seen = register
        elif layer.mask == "self+registers":
            seen = own | register
        elif layer.mask == "registers+states":
            seen = register | state
        else:
            before = np.arange(len(kinds)) <= np.arange(asking)[:, None]
            seen = np.ones(len(kinds), bool) if kind == "state" else register | ((kinds == "input") & before)
        return ~np.broadcast_to(seen, (asking, len(kinds)))

    def on_grid(self, layer: Attention, keys: np.ndarray, inputs: int) -> np.ndarray:
        """Keys of registers as the grid joins them from those on its axes."""
        sides = layer.grid or ()
        size, keys = keys.shape[-1] // len(sides), keys.copy()
        places = np.arange(layer.points).reshape(sides)
        for axis in range(len(sides)):
            alone = places
            for other in range(len(sides)):
                alone = alone if other == axis else np.take(alone, [0], axis=other)
            block = slice(axis * size, (axis + 1) * size)
            source = np.broadcast_to(alone, sides).reshape(-1)
            keys[:, inputs : inputs + layer.points, block] = keys[:, inputs + source, block]
        return keys
