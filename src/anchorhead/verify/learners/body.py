"""What tokens of a learner hold at the beginning and at the end of every step.

At the beginning of the first step tokens hold what the embed and the layers before the steps give them, and those that
carry w hold 0, or where w begins. A feature is known at the beginning of every step if it is known at that of the first
and a step leaves it as it is; entries of w and v are symbols there. So features are followed through a step, those that
change are taken for unknown, and again, until none changes.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.grammar import Attention, Linear, Network, Repeat, Stream
from anchorhead.verify.learners.held import ONE, Held, Layers, Symbols
from anchorhead.verify.learners.shown import Row, Shown
from anchorhead.verify.learners.target import Descent


class Body:
    """A step of a network.

    carriers     tokens that carry w; of_w, of_v: for each of them the symbols of its entries
    end          what tokens hold after a step
    """

    def __init__(self, network: Network, target: Descent, shown: Shown, symbols: Symbols) -> None:
        self.shown, self.symbols, self.names = shown, symbols, {("", 0): ONE}
        require(len(network.layers) > 1, "the layers are not the steps of a learner")
        *before, repeat, last = network.layers
        steps = repeat.layers if isinstance(repeat, Repeat) and repeat.times == target.times else ()
        fits = all(isinstance(one, Attention) for one in (*before, *steps)) and isinstance(last, Linear | Attention)
        require(bool(fits and steps), "the layers are not the steps of a learner")
        start = self._embedded(network)
        for layer in before:
            start = self.layers.after(layer, start)
        picks = last.value[0] if isinstance(last, Attention) else last.weight
        require(picks.ndim == 2 and len(picks) == target.size, "the network does not put out w")
        self.w = picks.argmax(axis=1).tolist()
        self.v = [self._speed(steps, place) for place in self.w] if target.momentum else []
        self.carriers = self._carriers(network, start)
        self.of_w, self.of_v = (
            [[symbols.new(size) for _ in places] for _ in self.carriers]
            for places, size in ((self.w, symbols.weight), (self.v, np.nan))
        )
        symbols.carried = {one: t for t, each in zip(self.carriers, self.of_w, strict=True) for one in each}
        self.end = self._settled(start, steps)
        put = self.layers.after(last, start) if isinstance(last, Attention) else symbols.mapped(last.weight, start)
        outputs = self.layers.places(network.output)
        good = isinstance(last, Attention) or (last.bias is None and last.mix is None)
        good = good and len(outputs) <= len(self.carriers) and (put.number[outputs] == 1).all()
        good = good and put.symbol[outputs].tolist() == self.of_w[: len(outputs)]
        require(bool(good), "the network does not put out w")

    def entry(self, row: Row, column: int, example: int = 0) -> tuple[float, int]:
        """The number and the symbol of a column."""
        number, name = row[column]
        example = example if name else 0
        if (name, example) not in self.names:
            self.names[name, example] = self.symbols.entry(float(self.shown.sizes[column]))
        return number, self.names[name, example]

    def entries(self, row: Row, columns: Iterable[int], example: int = 0) -> list[tuple[float, int]]:
        return [self.entry(row, column, example) for column in columns]

    def _embedded(self, network: Network) -> Held:
        """One token of each sort; or those of n examples, whose rows are first of the one sort, then of the other."""
        embed, shown = network.embed, self.shown
        rows, self.examples = [(row, 0) for row in (*(row for _, row in shown.rows), *shown.begin)], 1
        if embed.tokens is not None:
            require(embed.tokens % 2 == 0 and len(rows) == 2, "a token more or less than two for each example")
            self.examples = embed.tokens // 2
            rows = [(row, i) for row, _ in rows for i in range(self.examples)]
        columns = range(len(shown.sizes))
        require(embed.weight.shape[2] == len(columns), "the prompt has other columns")
        held = np.array([[*self.entries(row, columns, i), (1.0, ONE)] for row, i in rows])
        source = np.arange(len(rows)) if embed.source is None else embed.source
        weight, bias = (np.broadcast_to(one, (len(source), *one.shape[1:])) for one in (embed.weight, embed.bias))
        given = Held(held[source, None, :, 0], held[source, None, :, 1].astype(int))
        inputs = self.symbols.summed(np.concatenate([weight, bias[:, :, None]], axis=2), given)
        others = np.concatenate([embed.registers, embed.states])
        stream = Stream(len(source), len(embed.registers), len(embed.states), others.shape[1])
        several = frozenset(range(len(shown.rows)) if embed.tokens is None else ())
        self.layers, self.example = Layers(self.symbols, stream, several, embed.tokens is None), source % self.examples
        symbol = np.concatenate([inputs.symbol, np.full(others.shape, ONE)])
        return Held(np.concatenate([inputs.number, others]), symbol)

    def _speed(self, steps: tuple[Attention, ...], place: int) -> int:
        """The feature that is added to an entry of w."""
        rows = [one.skip.on_features()[place] for one in steps if one.skip is not None]
        found = {int(f) for row in rows for f in np.flatnonzero(row)} - {place}
        require(len(found) == 1, "with momentum, a speed is added to w")
        return found.pop()

    def _carriers(self, network: Network, start: Held) -> list[int]:
        """The tokens that are put out, which hold 0; or the one that holds where w begins, and that of its opposite."""
        if not self.shown.begin:
            found = list(self.layers.places(network.output))
            require(not start.number[np.ix_(found, self.w + self.v)].any(), "w does not begin with 0")
            return found
        number, symbol = start.number[:, self.w], start.symbol[:, self.w]
        each = [self.entries(row, self.shown.values) for row in self.shown.begin]
        hold = [((number == [n for n, _ in one]) & (symbol == [s for _, s in one])).all(axis=1) for one in each]
        if [one.sum() for one in hold] != [1, 1]:
            raise NotVerified("not one token holds where w begins, and one its opposite")
        return [int(one.argmax()) for one in hold]

    def _settled(self, start: Held, steps: tuple[Attention, ...]) -> Held:
        """What tokens hold after a step; before, start says it."""
        own, count = np.zeros(start.number.shape, bool), len(self.symbols.sizes)
        for t, w, v in zip(self.carriers, self.of_w, self.of_v, strict=True):
            own[t, self.w + self.v] = True
            start.number[t, self.w + self.v], start.symbol[t, self.w + self.v] = 1.0, w + v
        while True:
            end, self.symbols.sizes, self.symbols.made = start, self.symbols.sizes[:count], {}
            for layer in steps:
                end = self.layers.after(layer, end)
                require(end.number.shape == start.number.shape, "a step changes how many features there are")
            same = (end.number == start.number) & ((end.symbol == start.symbol) | (start.number == 0))
            changed = ~same & ~own & ~np.isnan(start.number)
            if not changed.any():
                return end
            start.number[changed] = np.nan
