"""What tokens of a learner hold at the beginning and at the end of every step.

At the beginning of the first step tokens hold what the embed and the layers before the steps give them, and those that
carry w hold 0, or where w begins. A feature is known at the beginning of every step if it is known at that of the first
and a step leaves it as it is; entries of w and v are quantities of their own there. So features are followed through a
step, those that change are taken for unknown, and again, until none changes: by induction over the steps what is then
known at the beginning is so at the beginning of each, and after the last one.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from anchorhead.verify.errors import require
from anchorhead.verify.grammar import Attention, Linear, Network, Repeat, Stream
from anchorhead.verify.learners.held import ONE, Held, Layers, Symbols
from anchorhead.verify.learners.shown import Row, Shown
from anchorhead.verify.learners.target import Descent
from anchorhead.verify.rounding import Arithmetic

MAX_TOKENS = 2**20


class Body:
    """A step of a network, for prompts of at most so many rows; weight: a bound on the sum of |w_j| in a token.

    carriers     tokens that carry w: all alike; or two, w and its opposite, where rows say where it begins
    of_w, of_v   the symbols of its entries, those of either of the two
    end          what tokens hold after a step
    example      of every token, which example it shows; -1: none
    """

    def __init__(
        self, network: Network, target: Descent, shown: Shown, rows: int, weight: float, model: Arithmetic
    ) -> None:
        embed, self.shown, self.names = network.embed, shown, {"": ONE}
        tokens = (embed.positions or rows) + len(embed.registers) + len(embed.states)
        self.symbols = symbols = Symbols(model, tokens)
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
        outputs = list(self.layers.places(network.output))
        self.carriers = self._beginning(start) if shown.begin else outputs
        self.of_w, self.of_v = (
            [[symbols.new(size) for _ in places] for _ in shown.begin or [()]]
            for places, size in ((self.w, weight), (self.v, np.nan))
        )
        if shown.begin:
            symbols.everywhere |= {one for each in self.of_w for one in each}
        else:
            require(not start.number[np.ix_(outputs, self.w + self.v)].any(), "w does not begin with 0")
        self.end = self._settled(start, steps)
        put = self.layers.after(last, start) if isinstance(last, Attention) else symbols.mapped(last.weight, start)
        good = self.layers.single(outputs) and (isinstance(last, Attention) or last.bias is last.mix is None)
        good = good and (put.number[outputs] == 1).all() and (put.symbol[outputs] == self.of_w[0]).all()
        require(bool(good), "the network does not put out w")

    def entry(self, row: Row, column: int) -> tuple[float, int]:
        """The number and the symbol of a column."""
        number, name = row[column]
        if name not in self.names:
            self.names[name] = self.symbols.entry(float(self.shown.sizes[column]))
        return number, self.names[name]

    def entries(self, row: Row, columns: Iterable[int]) -> list[tuple[float, int]]:
        return [self.entry(row, column) for column in columns]

    def _embedded(self, network: Network) -> Held:
        """One token of each sort; or those of n examples, whose rows are first of the one sort, then of the other."""
        embed, shown = network.embed, self.shown
        rows, self.examples, several = [*(row for _, row in shown.rows), *shown.begin], 1, range(len(shown.rows))
        if embed.tokens is not None:
            require(embed.tokens % 2 == 0 and len(rows) == 2, "a token more or less than two for each example")
            self.examples, several = embed.tokens // 2, None
        columns = range(len(shown.sizes))
        require(embed.weight.shape[2] == len(columns), "the prompt has other columns")
        held = np.array([[*self.entries(row, columns), (1.0, ONE)] for row in rows])
        self.symbols.everywhere |= {one for row in shown.begin for _, one in self.entries(row, shown.values)}
        require((embed.positions or 0) <= MAX_TOKENS, f"over {MAX_TOKENS:,} tokens")
        source = np.arange(embed.tokens or len(rows)) if embed.source is None else embed.source
        weight, bias = (np.broadcast_to(one, (len(source), *one.shape[1:])) for one in (embed.weight, embed.bias))
        given = held[source // self.examples, None]
        given = Held(given[..., 0], given[..., 1].astype(int))
        inputs = self.symbols.summed(np.concatenate([weight, bias[:, :, None]], axis=2), given)
        others = np.concatenate([embed.registers, embed.states])
        stream = Stream(len(source), len(embed.registers), len(embed.states), others.shape[1])
        self.layers = Layers(self.symbols, stream, several)
        self.example = np.concatenate([source % self.examples, np.full(len(others), -1)])
        symbol = np.concatenate([inputs.symbol, np.full(others.shape, ONE)])
        return Held(np.concatenate([inputs.number, others]), symbol)

    def _speed(self, steps: tuple[Attention, ...], place: int) -> int:
        """The feature that is added to an entry of w."""
        rows = [one.skip.on_features()[place] for one in steps if one.skip is not None]
        found = {int(f) for row in rows for f in np.flatnonzero(row)} - {place}
        require(len(found) == 1, "with momentum, a speed is added to w")
        return found.pop()

    def _beginning(self, start: Held) -> list[int]:
        """The token that holds where w begins, and that of its opposite."""
        number, symbol = start.number[:, self.w], start.symbol[:, self.w]
        each = [self.entries(row, self.shown.values) for row in self.shown.begin]
        hold = [((number == [n for n, _ in one]) & (symbol == [s for _, s in one])).all(axis=1) for one in each]
        found = np.concatenate([np.flatnonzero(one) for one in hold])
        good = [one.sum() for one in hold] == [1, 1] and self.layers.single(found.tolist())
        require(good, "not one token holds where w begins, and one its opposite")
        return found.tolist()

    def _settled(self, start: Held, steps: tuple[Attention, ...]) -> Held:
        """What tokens hold after a step; before, start says it."""
        own, count = np.zeros(start.number.shape, bool), len(self.symbols.sizes)
        for k, t in enumerate(self.carriers):
            which, places = k if self.shown.begin else 0, self.w + self.v
            own[t, places] = True
            start.number[t, places], start.symbol[t, places] = 1.0, self.of_w[which] + self.of_v[which]
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
