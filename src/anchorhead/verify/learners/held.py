"""What the tokens of a learner hold, as the stored layers make it: in every feature a number times a quantity.

**Quantities** are real numbers: 1; an entry of an example; an entry of w or of v; what heads gave to a feature. All but
those that are there once (`Symbols.everywhere`) are a token's own: "x0" in a token is the x0 of its own example, "w0"
the w0 that it carries itself. So a row of a prompt stands for all rows of its sort, and whatever is found for a token
that carries w holds for all that hold and hear the same.

**Invariant.** After every layer, for every prompt and every order of every sum: where a feature of a token is known,
the dtype holds number times quantity in it, exactly; but underflow may have lost a few tiny max(1, |number|).
Where nothing is known it holds a finite number, for nothing overflows (finite.py), so that 0 times it is 0. It follows
by induction, since

  - a product with a power of two rounds nothing, nor does one of constants of which one is a power of two. What was
    lost is multiplied by no more than 1, or as the number is, which is then at least 1 (`summed`, *calm*);
  - a sum with one term is that term; sums of constants that are multiples of 1/GRAIN, up to GRAIN in all, round nothing
    in any order; no other sum is known;
  - an entry of an example times another number is rounded once: that is a quantity of its own, which is not the same
    number wherever it is met ("rounded"), and is rounded no second time;
  - a token hears only keys whose logits come within SILENT of the largest that it meets: of a logit it is known between
    what it lies, for all quantities up to their sizes and with all rounding (`heard`). All others weigh exactly 0;
  - of one key that is heard the weight is exactly 1, so that what it holds is copied, if it is there once; means of
    zeros are 0; and anything else that heads add to a feature is a new quantity, of which it is kept what made it
    (`Made`): tokens that hold it made it by the same sum, each of what it holds and hears itself.

Who sees whom is what the grammar says (`readings.seen`). Rows of which a prompt has any number are one token for each
sort; what is read of them is taken for nothing but what a lemma says of all of them (`Layers.single`). What inputs of a
fixed number read is not followed: it is not known. Why what holds for one step holds for all is said in body.py; lemmas
(reading.py) take logits apart, product by product, until nothing is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from anchorhead.verify.errors import require
from anchorhead.verify.grammar import KINDS, Attention, Stream
from anchorhead.verify.readings import seen
from anchorhead.verify.rounding import SILENT, Arithmetic, own_error, power_of_two

ONE = 0
"""The symbol of the quantity 1."""
GRAIN = 2.0**10
LEAST = 2.0**-40
"""No size is taken for less, so that rounding is more than what underflow loses in a product."""
MAX_TERMS = 2**10
"""Products in a logit, heads of a layer, and what heads add to a feature: gamma of so many roundings is about 2^-14 in
float32."""
ROUNDED = 1 + 1e-4
"""More than what sums of so many numbers grow by where they are rounded."""
TOGETHER, MAX_PAIRS = 2**20, 2**32
"""How many pairs of tokens are compared at a time, and in a layer."""


@dataclass(frozen=True, eq=False)
class Held:
    """(tokens, features): numbers, NaN where nothing is known, and the symbols of their quantities."""

    number: np.ndarray
    symbol: np.ndarray

    def at(self, *index: Any) -> Held:
        return Held(self.number[index], self.symbol[index])


@dataclass(frozen=True, eq=False)
class Read:
    """What is read by one head from those tokens that are heard.

    keys     who is heard: the place of a token, of rows of any number that of their sort; -1: a token of an example
    terms    (keys, size) logits are sums of their products with the quantities `asks` (size,) and `holds` (keys, size)
    values   (keys, columns)
    tokens   of every token that reads so: the places of those that it hears
    """

    keys: np.ndarray
    terms: np.ndarray
    asks: np.ndarray
    holds: np.ndarray
    values: Held
    tokens: dict[int, np.ndarray] = field(default_factory=dict)


class Heard:
    """Logits and values of what is read, or of one key: a lemma takes from them what it knows, until nothing is left.
    It takes no two products as one, for these might cancel, and leave nothing but their rounding."""

    def __init__(self, read: Read, key: int | None = None) -> None:
        which = slice(None) if key is None else read.keys == key
        self.keys, self.rest, self.holds = read.keys[which], read.terms[which].copy(), read.holds[which]
        self.asks, self.values = read.asks, read.values.at(which)

    def take(self, asks: int, *holds: int) -> np.ndarray:
        """The numbers of the products of a quantity with another one, or with one of some, for each key."""
        here = (self.asks == asks) & np.isin(self.holds, holds) & (self.rest != 0)
        found = np.where(here, self.rest, 0.0).sum(axis=1)
        good = (here.sum(axis=1) <= 1).all() and not np.isnan(found).any()
        require(bool(good), "a logit in which products of the same numbers are added up, or not known")
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
    """What heads make: the sum of skip[symbol] times each quantity, and of (number, read, column of what is read)."""

    skip: dict[int, float]
    reads: tuple[tuple[float, Read, int], ...]


@dataclass(eq=False)
class Symbols:
    """What is known of quantities.

    tokens       how many there are at most
    sizes        bounds on all of them
    rounded      of entries of examples: the symbols of these once they are rounded
    everywhere   those that are no token's own
    made         those that heads made
    """

    model: Arithmetic
    tokens: int
    sizes: list[float] = field(default_factory=lambda: [1.0])
    rounded: dict[int, int] = field(default_factory=dict)
    everywhere: set[int] = field(default_factory=lambda: {ONE})
    made: dict[int, Made] = field(default_factory=dict)

    def new(self, size: float) -> int:
        self.sizes.append(max(size, LEAST))
        return len(self.sizes) - 1

    def entry(self, size: float) -> int:
        """Of an example."""
        found = self.new(size)
        self.rounded[found] = self.new(size * ROUNDED)
        return found

    def make(self, made: Made) -> int:
        """No larger than the sum of all sizes, a mean being no larger than its largest value."""
        size = sum(abs(number) * self.sizes[one] for one, number in made.skip.items())
        for number, read, c in made.reads:
            of, symbols = np.abs(read.values.number[:, c]), read.values.symbol[:, c]
            size += abs(number) * float(np.max([of[symbols == one].max() * self.sizes[one] for one in set(symbols)]))
        found = self.new(size * (ROUNDED + 4 * float(self.model.gamma(self.tokens + MAX_TERMS))))
        self.made[found] = made
        return found

    def summed(self, weight: np.ndarray, x: Held) -> Held:
        """Sums of products along the last axis."""
        terms = np.where(weight == 0, 0.0, weight * x.number)
        filled, constant = terms != 0, x.symbol == ONE
        calm = (np.abs(weight) <= 1) | (np.abs(x.number) >= 1) | constant
        once = (power_of_two(weight) | (constant & power_of_two(x.number))) & (np.abs(terms) >= self.model.tiny)
        rounds, count = (filled & ~once).any(axis=-1), filled.sum(axis=-1)
        first = filled.argmax(axis=-1)[..., None]
        symbol = np.take_along_axis(np.where(filled, x.symbol, ONE), first, axis=-1)[..., 0]
        grains = np.abs(terms) * GRAIN
        fine = (~filled | constant).all(axis=-1) & (grains == np.rint(grains)).all(axis=-1)
        known = ~rounds & ((count <= 1) | (fine & (grains.sum(axis=-1) <= GRAIN**2)))
        again = np.zeros(len(self.sizes), int)
        again[list(self.rounded)] = list(self.rounded.values())
        rounded = rounds & (count == 1) & (again[symbol] != ONE)
        known = (known | rounded) & (~filled | calm).all(axis=-1)
        return Held(np.where(known, terms.sum(axis=-1), np.nan), np.where(rounded, again[symbol], symbol))

    def mapped(self, weight: np.ndarray, x: Held) -> Held:
        """W x, for every token; most rows of W pick one feature."""
        first, several = (weight != 0).argmax(axis=1), np.count_nonzero(weight, axis=1) > 1
        found = self.summed(weight[np.arange(len(weight)), first][:, None], x.at(slice(None), first[:, None]))
        for row in np.flatnonzero(several):
            used = np.flatnonzero(weight[row])
            more = self.summed(weight[row, used], x.at(slice(None), used))
            found.number[:, row], found.symbol[:, row] = more.number, more.symbol
        return found

    def heard(self, query: Held, keys: Held) -> np.ndarray:
        """(queries, keys) which are heard: those whose logits may come within SILENT of the largest.

        Logits are sums of products of constants, and of others of which sizes are known; computed in any order, with
        entries that were rounded, they are off by gamma of all sizes; underflow loses less than 1, or than that. They
        may be anything where something is met that is not known, or a product of which neither factor is 1 or -1 times
        its quantity: then a number that vanished might be multiplied by a large one.
        """
        sizes, count = np.array(self.sizes), query.number.shape[1]

        def sides(x: Held) -> tuple[np.ndarray, ...]:
            filled = x.number != 0
            size = np.where(filled, np.abs(x.number) * sizes[x.symbol], 0.0)
            unknown, odd = np.isnan(size), filled & (np.abs(x.number) != 1)
            constant = np.where((x.symbol == ONE) & ~unknown, x.number, 0.0)
            return constant, np.where(unknown, 0.0, size), *(one.astype(float) for one in (filled, unknown, odd))

        (one, size, *asks), (other, sizes_of_keys, *holds) = sides(query), sides(keys)
        anything = sum(a @ b.T for a, b in zip(asks, (holds[1], holds[0], holds[2]), strict=True)) > 0
        whole = size @ sizes_of_keys.T
        off = whole - np.abs(one) @ np.abs(other).T + 1.0
        off += (float(self.model.gamma(count + 4)) + 4 * own_error(count)) * whole
        low, high = (one @ other.T + sign * np.where(anything, np.inf, off) for sign in (-1, 1))
        return ~(high + SILENT <= low.max(axis=1, keepdims=True))


class Layers:
    """Attention among tokens of these numbers; several: which of the inputs stand for any number of rows; None: inputs
    are so many tokens, and it is not followed what they read."""

    def __init__(self, symbols: Symbols, stream: Stream, several: Sequence[int] | None) -> None:
        self.symbols, self.stream, self.several = symbols, stream, frozenset(several or ())
        self.quiet = (stream.inputs or 0) if several is None else 0
        self.tokens = [(kind, place) for kind in KINDS for place in range(len(self.places(kind)))]
        self.label = np.where(np.arange(len(self.tokens)) < self.quiet, -1, np.arange(len(self.tokens)))

    def single(self, keys: Iterable[int]) -> bool:
        """Whether each of these is one token."""
        return self.several.isdisjoint(keys)

    def places(self, kind: str) -> range:
        counts = self.stream.inputs or 0, self.stream.registers, self.stream.states
        first = sum(counts[: KINDS.index(kind)])
        return range(first, first + counts[KINDS.index(kind)])

    def after(self, layer: Attention, x: Held) -> Held:
        """What tokens hold after a layer."""
        heads, size, width = layer.query.shape
        few = max(heads, size) <= MAX_TERMS and len(self.tokens) * (len(self.tokens) - self.quiet) <= MAX_PAIRS
        good = few and layer.bias is None and layer.mask != "causal"
        require(good, f"a layer with a bias, a causal mask, over {MAX_TERMS:,} heads or terms, or too many tokens")
        skip = np.zeros((layer.outputs, width)) if layer.skip is None else layer.skip.on_features()
        require(layer.skip is None or layer.skip.bias is None, "a skip with a bias")
        mapped = self.symbols.mapped
        asked, y = mapped(layer.query.reshape(-1, width), x), self._kept(skip, x)
        values = [mapped(one, x) for one in layer.value]
        keys = [self._keys(layer.grid or (), mapped(one, x)) for one in layer.key]
        touched = np.flatnonzero(layer.output.any(axis=(0, 2)))
        y.number[: self.quiet, touched] = np.nan
        groups: dict[bytes, tuple[np.ndarray, list[int]]] = {}
        for t in range(self.quiet, len(self.tokens)):
            visible = seen(layer, self.stream, *self.tokens[t])
            groups.setdefault(visible.tobytes(), (visible, []))[1].append(t)
        known: dict[tuple, Any] = {}
        for visible, every in groups.values():
            few = max(1, TOGETHER // len(visible))
            for askers in (every[k : k + few] for k in range(0, len(every), few)):
                reads = []
                for h in range(heads):
                    query = asked.at(askers, slice(h * size, (h + 1) * size))
                    key, value = (one[min(h, len(one) - 1)].at(visible) for one in (keys, values))
                    reads.append(self._reads(h, query, key, value, np.array(askers), visible, known))
                for t, own in zip(askers, zip(*reads, strict=True), strict=True):
                    for g in touched.tolist():
                        kept = float(y.number[t, g]), int(y.symbol[t, g])
                        found = self._added(kept, g, skip[g], x.at(t), layer.output[:, g], own, known)
                        y.number[t, g], y.symbol[t, g] = found
        return y

    def _reads(
        self, h: int, query: Held, keys: Held, values: Held, askers: np.ndarray, visible: np.ndarray,
        known: dict[tuple, Any],
    ) -> list[Read]:  # fmt: skip
        """What tokens read by head h from those that they see, by what they ask; NaN is what may be anything."""
        each = [number.tobytes() + symbol.tobytes() for number, symbol in zip(query.number, query.symbol, strict=True)]
        alike: dict[bytes, list[int]] = {}
        for i, name in enumerate(each):
            alike.setdefault(name, []).append(i)
        found: dict[bytes, Read] = {}
        every = self.symbols.heard(query.at([some[0] for some in alike.values()]), keys)
        for (name, some), heard in zip(alike.items(), every, strict=True):
            ask, key, value, places = query.at(some[0]), keys.at(heard), values.at(heard), visible[heard]
            nothing = (ask.number == 0) | (key.number == 0)
            plain = (np.abs(ask.number) == 1) | (np.abs(key.number) == 1)
            terms = np.where(nothing, 0.0, np.where(plain, ask.number * key.number, np.nan))
            asks, holds = np.where(nothing.all(axis=0), ONE, ask.symbol), np.where(nothing, ONE, key.symbol)
            read = Read(self.label[places], terms, asks, holds, value)
            content = (one.tobytes() for one in (read.keys, terms, asks, holds, value.number, value.symbol))
            found[name] = known.setdefault((h, *content), read)
            found[name].tokens.update(dict.fromkeys(askers[some].tolist(), places))
        return [found[name] for name in each]

    def _kept(self, skip: np.ndarray, x: Held) -> Held:
        """What a skip makes of features: known are those that it leaves as they are, and constants."""
        y = self.symbols.mapped(skip, x)
        y.number[(skip != np.eye(*skip.shape)).any(axis=1) & (y.symbol != ONE)] = np.nan
        return y

    def _keys(self, sides: tuple[int, ...], keys: Held) -> Held:
        """Those of the points of a grid: their blocks, an axis each, are read where all other indices are 0."""
        size, first = keys.number.shape[1] // max(len(sides), 1), self.places("register").start
        for axis, side in enumerate(sides):
            stride, block = prod(sides[axis + 1 :]), slice(axis * size, (axis + 1) * size)
            points = np.arange(prod(sides))
            for array in (keys.number, keys.symbol):
                array[first + points, block] = array[first + points // stride % side * stride, block]
        return keys

    def _added(
        self, kept: tuple[float, int], g: int, skip: np.ndarray, x: Held, output: np.ndarray, reads: Sequence[Read],
        known: dict[tuple, Any],
    ) -> tuple[float, int]:  # fmt: skip
        """Feature g of a token that holds x: what its skip carries, and what it reads. Where all values that are heard
        are exactly 0, so is what is read; a single key that is heard is copied."""
        parts = [(float(output[h, c]), reads[h], int(c)) for h, c in np.argwhere(output)]
        parts = [(number, read, c) for number, read, c in parts if read.values.number[:, c].any()]
        if not parts:
            return kept
        used = [f for f in np.flatnonzero(skip) if x.number[f] != 0]
        plain = all(abs(skip[f]) == 1 or abs(x.number[f]) == 1 for f in used) and len(parts) <= MAX_TERMS
        carried = {int(x.symbol[f]): float(skip[f] * x.number[f]) for f in used}
        number, read, c = parts[0]
        alone = len(parts) == len(read.keys) == abs(number) == 1 and not used and self.single(read.keys.tolist())
        if alone and int(read.values.symbol[0, c]) in self.symbols.everywhere:
            return number * float(read.values.number[0, c]), int(read.values.symbol[0, c])
        numbers = [*carried.values(), *(np.abs(read.values.number[:, c]).max() for _, read, c in parts)]
        if not plain or len(carried) < len(used) or np.isnan(numbers).any():
            return np.nan, ONE
        name = g, *carried.items(), *((number, id(read), c) for number, read, c in parts)
        if name not in known:
            known[name] = self.symbols.make(Made(carried, tuple(parts)))
        return 1.0, known[name]
