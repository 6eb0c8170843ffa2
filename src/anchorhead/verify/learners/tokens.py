"""The tokens of a learner: every feature of every token is one number times one quantity, or something of bounded size.

The quantities are 1, the entries of a row of the prompt, the score and the link of a row, the entries of w and v, and
what an example pushes w by. All are exact numbers of the dtype: a feature is computed without rounding, or it counts as
anything. Rows of one kind, any number of them, are one token here; their entries are quantities, but for those that are
the same in all rows of the kind (its sign, its flags). What a row shows, its score and its link are quantities of that
row alone: nobody reads them exactly, and in a logit of one row at another they are anything. So in every logit they
are those of the one row that takes part in it. Where w begins is a quantity of its own.

A logit is then a sum of products of two quantities, and of those that learners have (see Logits) one factor is 1, or it
is a term w_j x_j of the score.

*Underflow.* A feature is off by what vanished on its way: `tiny` an operation, in units of its number, which is LEAST
at the least, at most tiny / LEAST. A second round through the same layers loses nothing more: what lies on a grid of
multiples of a power of two, or is 0, stays there. With at most MAX_LAYERS layers, of which each has three operations on
the way of a feature, that is VANISHED tiny, times the number. So a product n w m x in a logit is off by at most |n m|
VANISHED tiny (|w| + |x| + 1), and tiny; constants are no smaller than LEAST^2, which is a normal number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.grammar import Attention, Embed, Network, Stream
from anchorhead.verify.readings import seen
from anchorhead.verify.rounding import SILENT, Arithmetic, power_of_two

ANY = -1
"""In the place of a quantity: anything whose size is at most the number beside it."""
ONE, LABEL, SCORE, LINK, SUM, W = range(6)
"""The columns of logits; w_j stands in column W + j."""
GRAIN, MOST = 2.0**-8, 2.0**14
"""Sums of multiples of the first up to the second are exact in float32, in every order."""
LEAST, MAX_LAYERS, VANISHED = 2.0**-40, 20, 2.0**46
"""Of factors of quantities, of layers, and of what underflows, in units of the smallest normal number."""
MAX_TERMS = 2**10
"""Products in a logit. gamma of so many roundings is below 2^-12 in float32."""


@dataclass(frozen=True)
class Rows:
    """What a prompt shows, of `columns` entries a row.

    x, values   the columns that w is multiplied by, and those that are averaged     label   that of y
    kinds       the entries that all rows of a kind have in common; kinds of sign 1 and -1 take turns, a pair a link
    residual    whether y is taken off scores as they are made
    taken       the columns that are taken off scores, and off links, afterwards; off: at most so much off scores
    start       those of the row that shows where w begins, and of its negative, if there are such rows
    """

    columns: int
    x: tuple[int, ...]
    values: tuple[int, ...]
    label: int
    kinds: tuple[Mapping[int, float], ...]
    residual: bool = False
    taken: tuple[int | None, int | None] = (None, None)
    off: float = 0.0
    start: tuple[Mapping[int, float], ...] = ()

    @property
    def score(self) -> int:
        return 1 + self.columns

    @property
    def link(self) -> int:
        return 2 + self.columns

    def w(self, which: int = 0) -> np.ndarray:
        """The numbers of the entries of w; 1: of v; 2: of what is pushed; 3: of where w begins. Quantities of rows have
        smaller numbers."""
        return 3 + self.columns + which * len(self.x) + np.arange(len(self.x))

    def entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Number and quantity of every entry, of rows of each kind, then of the start and of its negative."""
        every = [*self.kinds, *self.start]
        number, of = np.ones((len(every), self.columns)), np.tile(1 + np.arange(self.columns), (len(every), 1))
        number[len(self.kinds) + 1 :] = -1.0
        of[len(self.kinds) :, list(self.values)] = self.w(3)
        for row, same in enumerate(every):
            number[row, list(same)], of[row, list(same)] = list(same.values()), 0
        return number, of

    @cached_property
    def columns_of_logits(self) -> np.ndarray:
        """(2, quantities, quantities): in which column of logits a product stands; of rows entries of x may be
        constants. W + 2d: in none."""
        d = len(self.x)
        found = np.full((2, self.w(4)[0], self.w(4)[0]), W + 2 * d)
        _, of = self.entries()
        for rows in (0, 1):
            pairs = [(0, 0, ONE), (0, 1 + self.label, LABEL), (0, self.score, SCORE), (0, self.link, LINK)]
            for j, w in enumerate(self.w().tolist()):
                x = int(of[0, self.x[j]]) if rows else 1 + self.x[j]
                pairs += [(w, 0, W + j), (w, x, W + d + j)]
            for one, other, column in pairs:
                found[rows, one, other] = found[rows, other, one] = column
        return found


def grained(a: np.ndarray) -> np.ndarray:
    """Which are multiples of GRAIN, up to MOST."""
    small = np.abs(a) <= MOST
    return small & (np.where(small, a, 0.0) % GRAIN == 0)


def exact_products(weight: np.ndarray, number: np.ndarray, of: np.ndarray) -> np.ndarray:
    """Where weight times (number times quantity) rounds nothing: a power of two, or constants of few digits."""
    few = grained(weight) & grained(number) & grained(np.where(grained(number), number, 0.0) * weight)
    return power_of_two(weight) | ((of == 0) & (power_of_two(number) | few))


def one_term(number: np.ndarray, of: np.ndarray, exact: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sums over the last axis of products number times quantity, `exact` where the product rounds nothing: a single
    one, or small constants; else anything of the size of the sum, without a bound where it has quantities. (A product
    that rounds to a small constant is none: in a sum it need not be rounded.)"""
    there = number != 0
    first = there.argmax(axis=-1)[..., None]
    own, its, good = (np.take_along_axis(one, first, axis=-1)[..., 0] for one in (number, of, exact))
    size = np.where(there, np.where(of > 0, np.inf, np.abs(number)), 0.0).sum(axis=-1) * (1 + 1e-3)
    small = ((grained(number) & (of == 0) & exact) | ~there).all(axis=-1) & (size <= MOST)
    normal = np.abs(own) >= np.where(its > 0, LEAST, LEAST**2)
    single = (there.sum(axis=-1) == 1) & good & (its >= 0) & normal
    total = np.where(small, np.where(of == 0, number, 0.0).sum(axis=-1), size)
    return np.where(single, own, total), np.where(single, its, np.where(small, 0, ANY))


@dataclass(frozen=True, eq=False)
class Logits:
    """Of one token that asks, for each of the tokens that it sees.

    seen     their numbers           of      (tokens, columns) of each quantity so much; SUM: of w . x
    terms    how many products       fixed   (tokens, products) those that are constants
    rest     bounds on all that is none of these quantities
    sure     which of the tokens are there for certain, and once
    """

    seen: np.ndarray
    of: np.ndarray
    fixed: np.ndarray
    terms: np.ndarray
    rest: np.ndarray
    sure: np.ndarray

    @property
    def size(self) -> np.ndarray:
        return np.abs(self.fixed).sum(axis=1)

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Between what they lie, as they are computed; without end where they are no constants."""
        lost = np.where(self.of[:, 1:].any(axis=1), np.inf, self.lost)
        return self.of[:, ONE] - lost, self.of[:, ONE] + lost

    @property
    def lost(self) -> np.ndarray:
        """How far the constants may be off, with all that is none of these quantities."""
        return np.where(self.terms > 1, self.size * 2.0**-12, 0.0) + self.rest

    @property
    def far(self) -> np.ndarray:
        """Which are out of reach of logits around 0."""
        return self.ends()[1] <= -2 * SILENT


@dataclass(frozen=True, eq=False)
class Tokens:
    """number, of (tokens, features): number times quantity; tokens are numbered input, register, state.

    x        (tokens, size) of rows the numbers of x, of others 1
    sure     which tokens are there for certain, and once
    source   (tokens,) in a sequence the row that a token is made of; -1 where there is none, and of kinds of rows
    """

    number: np.ndarray
    of: np.ndarray
    stream: Stream
    rows: Rows
    x: np.ndarray
    sure: np.ndarray
    source: np.ndarray
    _known: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    @classmethod
    def embedded(cls, embed: Embed, rows: Rows, sequence: bool) -> Tokens:
        """Tokens are kinds of rows; those of a sequence are each a product of its own with a row of sign 1, which may
        round (heads.py)."""
        require(sequence == (embed.source is not None), "anchors are tokens of a sequence, and of nothing else")
        require(embed.weight.shape[2] == rows.columns, "an example has other entries than the program says")
        number, of = rows.entries()
        if embed.source is None:
            require(len(embed.weight) == len(embed.bias) == 1 and embed.tokens is None, "a row becomes a token")
            sure = np.arange(len(number)) >= len(rows.kinds)
        else:
            examples = np.unique(embed.source)
            every = np.array_equal(examples, np.arange(len(examples))) and embed.tokens == 2 * len(examples)
            require(every, "anchors are not those of all rows of sign 1")
            number, of = (np.repeat(one[:1], len(embed.source), axis=0) for one in (number, of))
            sure = np.ones(len(number), bool)
        bias = np.broadcast_to(embed.bias, (len(number), embed.bias.shape[1]))[..., None]
        products = np.concatenate([embed.weight * number[:, None], bias], axis=2)
        what = np.append(of, np.zeros((len(of), 1), int), axis=1)[:, None]
        exact = power_of_two(products) | (what == 0) | (embed.source is not None)
        made, its = one_term(products, np.broadcast_to(what, products.shape), exact)
        extra = np.concatenate([embed.registers, embed.states])
        x = number[:, list(rows.x)]
        return cls(
            np.concatenate([made, extra]), np.concatenate([its, np.zeros(extra.shape, int)]),
            Stream(len(made), len(embed.registers), len(embed.states), made.shape[1]), rows,
            np.concatenate([np.where(x == 0, 1.0, x), np.ones((len(extra), len(rows.x)))]),
            np.append(sure, np.ones(len(extra), bool)),
            np.append(np.full(len(made), -1) if embed.source is None else embed.source, np.full(len(extra), -1)),
        )  # fmt: skip

    def kind(self, token: int) -> tuple[str, int]:
        """Of a token, and its number among those."""
        inputs, registers = self.stream.inputs or 0, self.stream.registers
        firsts = (("state", inputs + registers), ("register", inputs), ("input", 0))
        return next((kind, token - first) for kind, first in firsts if token >= first)

    def holding(self, token: int, features: Sequence[int], number: float, of: np.ndarray) -> Tokens:
        """The same, but for some features of a token."""
        numbers, quantities = self.number.copy(), self.of.copy()
        numbers[token, features], quantities[token, features] = number, of
        return replace(self, number=numbers, of=quantities, _known={})

    def renewed(self, tokens: Sequence[int], features: Sequence[int]) -> Tokens:
        """The same, w and v having changed in these features of these tokens: copies of what they were are anything."""
        old = np.isin(self.of, [self.rows.w(), self.rows.w(1)])
        old[np.ix_(tokens, features)] = False
        return replace(self, number=np.where(old, np.inf, self.number), of=np.where(old, ANY, self.of), _known={})

    def mapped(self, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows (outputs, features) of all tokens."""
        found = []
        for row in weight:
            used = np.flatnonzero(row)
            number, of = self.number[:, used], self.of[:, used]
            exact = exact_products(row[used], number, of)
            none = np.zeros(len(of)), np.zeros(len(of), int)
            found.append(one_term(number * row[used], of, exact) if len(used) else none)
        number, of = (np.stack(one, axis=1) for one in zip(*found, strict=True))
        return number, of

    def of_head(self, what: str, layer: Attention, head: int) -> tuple[np.ndarray, np.ndarray]:
        """Queries, keys or values of all tokens."""
        weight = getattr(layer, what)
        name = id(layer), what, head if len(weight) > 1 else 0
        if name not in self._known:
            self._known[name] = self.mapped(weight[name[2]])
        return self._known[name]

    def logits(self, layer: Attention, head: int, asker: int) -> Logits:
        """What a token finds. What is multiplied by 0 is 0: nothing overflows (require_finite)."""
        require(layer.mask != "causal", "a learner does not see its prompt in an order")
        kind, place = self.kind(asker)
        them = np.unique(seen(layer, self.stream, kind, place))
        (q, q_of), (k, k_of) = (self.of_head(one, layer, head) for one in ("query", "key"))
        q, q_of, k, k_of = q[asker], q_of[asker], k[them], k_of[them]
        if layer.grid is not None:  # a block of rows an axis, read where all other indices are 0
            places = np.arange(len(k)).reshape(layer.grid)
            blocks = np.repeat(np.arange(len(layer.grid)), k.shape[1] // len(layer.grid))
            index = np.indices(layer.grid)
            firsts = [places[tuple(index[i] * (i == axis) for i in range(len(index)))].ravel() for axis in blocks]
            own = np.stack(firsts, axis=1), np.arange(k.shape[1])
            k, k_of = k[own], k_of[own]
        there = (q != 0) & (k != 0)
        product = np.where(there, q, 0.0) * np.where(there, k, 0.0)
        d = len(self.rows.x)
        rows = ((them < (self.stream.inputs or 0)) | (kind == "input")).astype(int)[:, None]
        exact = (q_of >= 0) & (k_of >= 0) & (power_of_two(q) | power_of_two(k)) & there
        if kind == "input":
            exact &= (them >= (self.stream.inputs or 0))[:, None] | ~(self.of_rows(q_of) | self.of_rows(k_of))
        at = np.where(exact, self.rows.columns_of_logits[rows, q_of, k_of], W + 2 * d)
        of, count = np.zeros((2, len(them), W + 2 * d + 1))
        places = np.broadcast_to(np.arange(len(them))[:, None], at.shape), at
        np.add.at(of, places, np.where(at < W + 2 * d, product, 0.0))
        np.add.at(count, places, there)
        sums = of[:, W + d : -1] / (self.x[asker] if kind == "input" else self.x[them])
        sizes = np.where(there & (at == W + 2 * d), np.where((q_of > 0) | (k_of > 0), np.inf, np.abs(product)), 0.0)
        once = (sums == sums[:, :1]).all(axis=1) & (count[:, 1:-1] <= 1).all(axis=1)
        of[:, SUM] = sums[:, 0]
        require(int(there.sum(axis=1).max()) <= MAX_TERMS, f"a logit of more than {MAX_TERMS:,} terms")
        rest = np.where(once, sizes.sum(axis=1) * (1 + 1e-3), np.inf)
        sure = self.sure[them] | ((them == asker) & (layer.mask == "self+registers"))
        return Logits(them, of[:, : W + d], np.where(at == ONE, product, 0.0), there.sum(axis=1), rest, sure)

    def of_rows(self, of: np.ndarray) -> np.ndarray:
        """Which are quantities of a row."""
        return (of > 0) & (of < self.rows.w()[0])

    def read(self, layer: Attention, head: int, asker: int) -> tuple[np.ndarray, np.ndarray]:
        """What a token reads, whoever it is. Tokens whose logits are 2 SILENT below that of one that is there weigh
        exactly 0. One that is left weighs exactly 1, but its quantities of a row are anything to others; of several
        only what is 0 in all of them is known exactly. Computed weights add up to less than 4 (gamma_n is defined)."""
        found = self.logits(layer, head, asker)
        number, of = (one[found.seen] for one in self.of_head("value", layer, head))
        low, high = found.ends()
        heard = ~(high <= np.where(found.sure, low, -np.inf).max() - 2 * SILENT)
        require(bool(heard.any()), "a logit of a learner is no finite number")
        if heard.sum() == 1 and found.sure[heard].all():
            number, of = number[heard][0], of[heard][0]
            own = (number != 0) & self.of_rows(of)
            return np.where(own, np.inf, number), np.where(own, ANY, of)
        size = 4 * np.where(of > 0, np.where(number == 0, 0.0, np.inf), np.abs(number))[heard].max(axis=0)
        return size, np.where(size == 0, 0, ANY)

    def after(self, layer: Attention, handled: Mapping[int, Sequence[int]]) -> Tokens:
        """What leaves a layer, but for the features of tokens that a lemma handles, which stay as they are."""
        require(
            layer.bias is None and (layer.skip is None or layer.skip.bias is None), "a layer of a learner has a bias"
        )
        outputs, width = layer.outputs, self.of.shape[1]
        skip = np.zeros((outputs, width)) if layer.skip is None else layer.skip.on_features()
        number, of = self.mapped(skip)
        asked: dict[tuple[bytes, ...], list[tuple[np.ndarray, np.ndarray]]] = {}
        anything = np.full(layer.output.shape[2], np.inf), np.full(layer.output.shape[2], ANY)
        queries = [self.of_head("query", layer, head) for head in range(layer.heads)]
        for token in range(len(number)):
            mine = handled.get(token, ())
            free = (layer.output != 0).any(axis=(0, 2))
            free[list(mine)] = False
            kind, place = self.kind(token)
            if free.any():
                few = self.source[token] < 0
                name = (kind.encode(), *(one[token].tobytes() for query in queries for one in query)) if few else ()
                name += (seen(layer, self.stream, kind, place).tobytes(),) if few else ()
                if name not in asked:
                    asked[name] = [self.read(layer, head, token) if few else anything for head in range(layer.heads)]
                weights = np.concatenate(list(layer.output[:, free]), axis=1)
                numbers, its = (np.concatenate(one) for one in zip(*asked[name], strict=True))
                own = number[token, free][:, None], of[token, free][:, None]
                there = (weights != 0) & (numbers != 0)
                products = np.where(there, weights, 0.0) * np.where(there, numbers, 0.0)
                exact = exact_products(weights, numbers, its)
                number[token, free], of[token, free] = one_term(
                    np.append(own[0], products, axis=1),
                    np.append(own[1], np.broadcast_to(its, products.shape), axis=1),
                    np.append(np.ones_like(own[0], bool), exact, axis=1),
                )
            number[token, list(mine)], of[token, list(mine)] = (
                self.number[token, list(mine)],
                self.of[token, list(mine)],
            )
        return replace(self, number=number, of=of, _known={})

    def merged(self, other: Tokens) -> Tokens:
        """Anything, where they are not the same."""
        same = (self.number == other.number) & (self.of == other.of)
        return replace(self, number=np.where(same, self.number, np.inf), of=np.where(same, self.of, ANY), _known={})


def require_finite(network: Network, box: np.ndarray, rows: int, model: Arithmetic) -> None:
    """No number that is computed overflows, not even one that is then multiplied by 0, queries, keys and values of all
    tokens: bounds on the features of every kind are followed through all steps.

    box: bounds on the entries of a prompt of at most so many rows. What a head reads is at most the largest value that
    it may see, up to rounding: sums over all tokens, and over features.
    """
    embed = network.embed
    sizes = {
        "input": (np.abs(embed.weight) @ box + np.abs(embed.bias)).max(axis=0),
        "register": np.abs(embed.registers).max(axis=0, initial=0.0),
        "state": np.abs(embed.states).max(axis=0, initial=0.0),
    }
    tokens = (embed.positions or rows) + len(embed.registers) + len(embed.states)
    limit = model.largest / 2.0**12
    more = 1 + float(model.gamma(4 * (tokens + len(box) + embed.weight.shape[1] + 16)))
    for group in network.layers:
        layers = [one for one in getattr(group, "layers", (group,)) if isinstance(one, Attention)]
        parts = [[np.abs(one) for one in (layer.query, layer.key, layer.value, layer.output)] for layer in layers]
        skips = [np.abs(layer.skip.on_features()) if layer.skip is not None else None for layer in layers]
        for _ in range(getattr(group, "times", 1)):
            before = sizes
            for (query, key, value, output), skip in zip(parts, skips, strict=True):
                largest = np.max(list(sizes.values()), axis=0)
                asked, held, read = (np.einsum("hsf,f->hs", one, largest) for one in (query, key, value))
                wrote = np.einsum("hgo,ho->g", output, np.broadcast_to(read, (len(output), read.shape[1])))
                sizes = {kind: more * (wrote + (0.0 if skip is None else skip @ one)) for kind, one in sizes.items()}
                every = largest, asked, held, read, (asked * held).sum(axis=1), *sizes.values()
                top = max(float(one.max()) for one in every)
                if not top < limit:
                    raise NotVerified(f"numbers may overflow in {model.dtype}: up to {top:.3g}")
            if all(sizes[kind].shape == one.shape and (sizes[kind] <= one).all() for kind, one in before.items()):
                break
