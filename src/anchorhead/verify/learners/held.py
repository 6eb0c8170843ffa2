"""What the tokens of a learner hold, as the stored layers make it: in every feature one number times one symbol.

A symbol stands for a real number that is the same wherever it is met: 1, entries of an example, entries of w, or what
heads gave to a feature of a token. A product rounds nothing if one of its factors is a power of two, and a sum of
constants that are few multiples of 1/GRAIN rounds nothing, in any order. An entry of an example that is multiplied by
another number is rounded, and then a symbol that stands for this entry up to one rounding, each time another one. All
other sums are not known, and neither is what is made of them; but 0 times what is not known is 0, for nothing overflows
(finite.py).

Rows of a prompt are any number of tokens: one of each sort stands for all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from anchorhead.verify.errors import require
from anchorhead.verify.grammar import KINDS, Attention, Stream
from anchorhead.verify.readings import seen
from anchorhead.verify.rounding import SILENT, Arithmetic, own_error, power_of_two

ONE = 0
"""The symbol of 1."""
GRAIN = 2.0**10
MAX_TERMS = 2**10
"""Products in a logit, and heads of a layer: gamma of so many roundings is about 2^-14 in float32."""
FINE = 1e-3
"""More than sums of so many products round by, relatively."""
ROUNDED = 1 + 1e-4
"""More than what sums of so many numbers grow by where they are rounded; in float32 those of some rows more."""


@dataclass(frozen=True, eq=False)
class Held:
    """(tokens, features): numbers, NaN where nothing is known, and their symbols."""

    number: np.ndarray
    symbol: np.ndarray

    def at(self, *index: Any) -> Held:
        return Held(self.number[index], self.symbol[index])


@dataclass(frozen=True, eq=False)
class Keys:
    """Of all tokens: what they hold, their constants, 0 elsewhere, and bounds on their sizes."""

    held: Held
    constant: np.ndarray
    size: np.ndarray


@dataclass(frozen=True, eq=False)
class Read:
    """What a token reads by one head from those tokens that may weigh anything, `keys`: all others' logits are always
    SILENT below that of one of them. Logits are sums of products of `terms` (keys, size) with the symbols `asks`
    (size,) and `holds` (keys, size); values (keys, columns)."""

    keys: np.ndarray
    terms: np.ndarray
    asks: np.ndarray
    holds: np.ndarray
    values: Held


class Heard:
    """Logits and values of what is read, or of one key: a lemma takes from them what it knows, until nothing is left.
    It takes no two products as one, for these might cancel, and leave nothing but their rounding."""

    def __init__(self, read: Read, key: int | None = None) -> None:
        which = slice(None) if key is None else read.keys == key
        self.keys, self.rest, self.holds = read.keys[which], read.terms[which].copy(), read.holds[which]
        self.asks, self.values = read.asks, read.values.at(which)

    def take(self, asks: int, holds: int) -> np.ndarray:
        """The numbers of the products of these symbols, for each key."""
        here = (self.asks == asks) & (self.holds == holds) & (self.rest != 0)
        require(bool((here.sum(axis=1) <= 1).all()), "a logit in which products of the same numbers are added up")
        found = np.where(here, self.rest, 0.0).sum(axis=1)
        self.rest[here] = 0.0
        return found

    def constants(self) -> np.ndarray:
        """(keys, n): products of constants, those of one entry of a query in a column; the last ones that are taken."""
        here = np.where((self.asks == ONE) & (self.holds == ONE), self.rest, 0.0)
        self.rest -= here
        self.done()
        return here[:, here.any(axis=0)]

    def done(self) -> None:
        require(not self.rest.any(), "logits are made of other numbers than those that are meant")


@dataclass(frozen=True, eq=False)
class Made:
    """What heads make: the sum of skip[symbol] times each symbol, and of (number, read, column of what is read)."""

    skip: dict[int, float]
    reads: tuple[tuple[float, Read, int], ...]


@dataclass(eq=False)
class Symbols:
    """What is known of symbols.

    rows       how many a prompt has at most
    weight     a bound on the sum of |w_j| that a token carries
    sizes      bounds on all of them
    made       those that heads made
    rounded    of entries of examples: the symbols of these once they are rounded
    carried    of entries of w: the token that carries it
    """

    model: Arithmetic
    rows: int
    weight: float
    sizes: list[float] = field(default_factory=lambda: [1.0])
    made: dict[int, Made] = field(default_factory=dict)
    rounded: dict[int, int] = field(default_factory=dict)
    carried: dict[int, int] = field(default_factory=dict)
    _arrays: tuple[np.ndarray, np.ndarray, np.ndarray] = (np.zeros(0), np.zeros(0), np.zeros(0))

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of all symbols: sizes, whether they are entries of examples, and who carries them, or -1."""
        if len(self._arrays[0]) != len(self.sizes):
            entry, carrier = np.zeros(len(self.sizes), bool), np.full(len(self.sizes), -1)
            entry[[*self.rounded, *self.rounded.values()]] = True
            carrier[list(self.carried)] = list(self.carried.values())
            self._arrays = np.array(self.sizes), entry, carrier
        return self._arrays

    def new(self, size: float) -> int:
        self.sizes.append(size)
        return len(self.sizes) - 1

    def entry(self, size: float) -> int:
        """Of an example."""
        found = self.new(size)
        self.rounded[found] = self.new(size * ROUNDED)
        return found

    def make(self, made: Made) -> int:
        """No larger than the sum of all sizes, a mean being no larger than its largest value."""
        size = sum(abs(number) * self.sizes[one] for one, number in made.skip.items())
        for number, read, column in made.reads:
            values = zip(
                *(array[:, column].tolist() for array in (read.values.number, read.values.symbol)), strict=True
            )
            size += abs(number) * float(np.max([abs(value) * self.sizes[one] for value, one in values]))
        found = self.new(size * (ROUNDED + 4 * float(self.model.gamma(self.rows + MAX_TERMS))))
        self.made[found] = made
        return found

    def summed(self, weight: np.ndarray, x: Held) -> Held:
        """Sums of products along the last axis."""
        terms = np.where(weight == 0, 0.0, weight * x.number)
        filled, constant = terms != 0, x.symbol == ONE
        exact = (power_of_two(weight) | (constant & power_of_two(x.number))) & (np.abs(terms) >= self.model.tiny)
        rounds, count = (filled & ~exact).any(axis=-1), filled.sum(axis=-1)
        first = filled.argmax(axis=-1)[..., None]
        symbol = np.take_along_axis(np.where(filled, x.symbol, ONE), first, axis=-1)[..., 0]
        grains = np.abs(terms) * GRAIN
        fine = (~filled | constant).all(axis=-1) & (grains == np.rint(grains)).all(axis=-1)
        known = ~rounds & ((count <= 1) | (fine & (grains.sum(axis=-1) <= GRAIN**2)))
        again = np.zeros(len(self.sizes), int)
        again[list(self.rounded)] = list(self.rounded.values())
        once = rounds & (count == 1) & (again[symbol] != ONE)
        return Held(np.where(known | once, terms.sum(axis=-1), np.nan), np.where(once, again[symbol], symbol))

    def mapped(self, weight: np.ndarray, x: Held) -> Held:
        """W x, for every token; most rows of W pick one feature."""
        first, several = (weight != 0).argmax(axis=1), np.count_nonzero(weight, axis=1) > 1
        found = self.summed(weight[np.arange(len(weight)), first][:, None], x.at(slice(None), first[:, None]))
        for row in np.flatnonzero(several):
            used = np.flatnonzero(weight[row])
            more = self.summed(weight[row, used], x.at(slice(None), used))
            found.number[:, row], found.symbol[:, row] = more.number, more.symbol
        return found

    def between(self, terms: np.ndarray, asks: np.ndarray, holds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Between what logits stay, as computed: in any order, with entries that were rounded; underflow loses less
        than 1. Of products of entries of one w, each met once, with entries of examples the sum is at most the largest
        number times sum |w_j| times the largest entry; of other products nothing is known, nor where a term is NaN."""
        (sizes, entry, carrier), asks = self.arrays, np.broadcast_to(asks, holds.shape)
        fixed, mixed = (asks == ONE) & (holds == ONE), (terms != 0) & (asks != ONE) & (holds != ONE)
        size = np.where(terms == 0, 0.0, np.abs(terms) * sizes[asks] * sizes[holds])
        w, x = np.where(carrier[asks] >= 0, (asks, holds), (holds, asks))
        whose = np.where(mixed, carrier[w], carrier[w].max(axis=1, keepdims=True))
        one = (whose == whose[:, :1]).all(axis=1) & (np.where(mixed, (whose >= 0) & entry[x], True)).all(axis=1)
        one &= (np.diff(np.sort(np.where(mixed, w, -1 - np.arange(terms.shape[1])), axis=1), axis=1) != 0).all(axis=1)
        most = np.abs(np.where(mixed, terms, 0.0)).max(axis=1) * self.weight * sizes[entry].max(initial=0.0)
        spread = np.where(one | ~mixed.any(axis=1), most, np.inf) + np.where(fixed | mixed, 0.0, size).sum(axis=1)
        whole, middle = np.where(fixed, size, 0.0).sum(axis=1) + spread, np.where(fixed, terms, 0.0).sum(axis=1)
        off = spread + (float(self.model.gamma(terms.shape[1] + 4)) + own_error(terms.shape[1])) * whole + 1.0
        return middle - off, middle + off

    def near(self, query: Held, keys: Keys, visible: np.ndarray) -> np.ndarray:
        """Of the tokens that are seen, those that are not silent at a glance, by constants and sizes alone."""
        constant = np.where(query.symbol == ONE, query.number, 0.0)
        size = np.abs(query.number) * self.arrays[0][query.symbol]
        middle, whole = keys.constant[visible] @ constant, keys.size[visible] @ size
        spread = whole - np.abs(keys.constant[visible]) @ np.abs(constant) + FINE * whole + 1.0
        best = np.where(np.isnan(spread), -np.inf, middle - spread).max()
        return visible[~(middle + spread + SILENT <= best)]

    def read(self, query: Held, keys: Keys, values: Held, visible: np.ndarray) -> Read:
        """Of each product one factor is 1 or -1 times its symbol, so that no underflow is multiplied by much."""
        visible = self.near(query, keys, visible)
        held = keys.held.at(visible)
        plain = (np.abs(query.number) == 1) | (np.abs(held.number) == 1)
        nothing = (query.number == 0) | (held.number == 0)
        terms = np.where(nothing, 0.0, np.where(plain, query.number * held.number, np.nan))
        low, high = self.between(terms, query.symbol, held.symbol)
        best = np.where(np.isnan(low), -np.inf, low).max()
        loud = ~(high + SILENT <= best)
        return Read(visible[loud], terms[loud], query.symbol, held.symbol[loud], values.at(visible[loud]))


@dataclass(frozen=True, eq=False)
class Layers:
    """Attention among tokens of these numbers; several: which of the inputs stand for any number; asking: whether it is
    followed what inputs read."""

    symbols: Symbols
    stream: Stream
    several: frozenset[int]
    asking: bool

    def single(self, keys: np.ndarray) -> bool:
        """Whether each of these is one token."""
        return not self.several & set(keys.tolist())

    def places(self, kind: str) -> range:
        counts = self.stream.inputs or 0, self.stream.registers, self.stream.states
        first = sum(counts[: KINDS.index(kind)])
        return range(first, first + counts[KINDS.index(kind)])

    def after(self, layer: Attention, x: Held) -> Held:
        """What tokens hold after a layer."""
        heads, size, width = layer.query.shape
        few = max(heads, size) <= MAX_TERMS and layer.mask != "causal"
        require(few and layer.bias is None, f"a layer with a bias, a causal mask or over {MAX_TERMS:,} heads or terms")
        skip = np.zeros((layer.outputs, width)) if layer.skip is None else layer.skip.on_features()
        require(layer.skip is None or layer.skip.bias is None, "a skip with a bias")
        mapped = self.symbols.mapped
        asked, y = mapped(layer.query.reshape(-1, width), x), self._kept(skip, x)
        values = [mapped(one, x) for one in layer.value]
        keys = [self._keys(layer.grid or (), mapped(one, x)) for one in layer.key]
        touched = np.flatnonzero(layer.output.any(axis=(0, 2)))
        known: dict[tuple[bytes, ...], list[Read]] = {}
        every = [(kind, place) for kind in KINDS for place in range(len(self.places(kind)))]
        for t, (kind, place) in enumerate(every):
            if kind == "input" and not self.asking:
                y.number[t, touched] = np.nan
                continue
            visible, query = seen(layer, self.stream, kind, place), asked.at(t)
            name = query.number.tobytes(), query.symbol.tobytes(), visible.tobytes()
            if name not in known:
                parts = [query.at(slice(h * size, (h + 1) * size)) for h in range(heads)]
                known[name] = [
                    self.symbols.read(part, keys[min(h, len(keys) - 1)], values[min(h, len(values) - 1)], visible)
                    for h, part in enumerate(parts)
                ]
            for g in touched.tolist():
                y.number[t, g], y.symbol[t, g] = self._added(y, t, g, skip[g], x, layer.output[:, g], known[name])
        return y

    def _kept(self, skip: np.ndarray, x: Held) -> Held:
        """What a skip makes of features: known are those that it leaves as they are, and constants."""
        y = self.symbols.mapped(skip, x)
        y.number[(skip != np.eye(*skip.shape)).any(axis=1) & (y.symbol != ONE)] = np.nan
        return y

    def _keys(self, sides: tuple[int, ...], keys: Held) -> Keys:
        """Those of the points of a grid: their blocks, an axis each, are read where all other indices are 0."""
        size, first = keys.number.shape[1] // max(len(sides), 1), self.places("register").start
        for axis, side in enumerate(sides):
            stride, block = prod(sides[axis + 1 :]), slice(axis * size, (axis + 1) * size)
            points = np.arange(prod(sides))
            for array in (keys.number, keys.symbol):
                array[first + points, block] = array[first + points // stride % side * stride, block]
        size = np.abs(keys.number) * self.symbols.arrays[0][keys.symbol]
        return Keys(keys, np.where(keys.symbol == ONE, keys.number, 0.0), size)

    def _added(
        self, y: Held, t: int, g: int, skip: np.ndarray, x: Held, output: np.ndarray, reads: list[Read]
    ) -> tuple[float, int]:
        """Feature g of a token: what its skip carries, and what it reads. Where all values that are heard are exactly
        0, so is what is read; a single key that is heard is copied."""
        parts = [(float(output[h, c]), reads[h], int(c)) for h, c in np.argwhere(output)]
        parts = [(number, read, c) for number, read, c in parts if read.values.number[:, c].any()]
        if not parts:
            return float(y.number[t, g]), int(y.symbol[t, g])
        used = [f for f in np.flatnonzero(skip) if x.number[t, f] != 0]
        plain = all(abs(skip[f]) == 1 or abs(x.number[t, f]) == 1 for f in used)
        carried = {int(x.symbol[t, f]): float(skip[f] * x.number[t, f]) for f in used}
        number, read, c = parts[0]
        if len(parts) == len(read.keys) == abs(number) == 1 and not used and self.single(read.keys):
            return number * float(read.values.number[0, c]), int(read.values.symbol[0, c])
        numbers = [*carried.values(), *(np.abs(read.values.number[:, c]).max() for _, read, c in parts)]
        if not plain or len(carried) < len(used) or np.isnan(numbers).any():
            return np.nan, ONE
        return 1.0, self.symbols.make(Made(carried, tuple(parts)))
