"""The tokens of a learner, any number of examples among them: what every feature of every token holds, as a form.

A prompt shows each example twice, as p and as -p; the copy's sign is one of its entries. So there are four kinds of
tokens: copies of sign 1, copies of sign -1, registers, and one state. A form is an array (features, 1 + variables):
a constant, and factors of what varies: entries of p, what layers have written (score and link) for a copy; for the
state one variable for each of its features.

Only *live* features are followed: those that reach the output, by way of the layers and however often they are
repeated. All others are only shown to stay finite (a product of 0 and infinity would not be 0).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod

import numpy as np

from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.grammar import Attention, Embed, Linear
from anchorhead.verify.rounding import Arithmetic, power_of_two

KINDS = ("input", "register", "state")
SEEN = {None: KINDS, "registers+states": KINDS[1:]}
"""By its mask, which kinds a layer shows to every token; "self+registers" shows registers and the token itself."""
Live = dict[str, np.ndarray]
GRAIN, MOST = 2.0**-8, 2.0**14
"""Sums of multiples of the first up to the second are exact in float32, in every order."""


def seen(layer: Attention, kind: str) -> tuple[str, ...]:
    if layer.grid is not None:
        return ("register",)
    return tuple(dict.fromkeys(("register", kind))) if layer.mask == "self+registers" else SEEN[layer.mask]


def live_features(body: Sequence[Attention], last: Linear) -> list[Live]:
    """What is live before each layer of a repeated body, and after the last; what is live at its end is also what is
    live at its beginning."""
    width = body[0].query.shape[2]
    end: Live = {kind: np.zeros(width, bool) for kind in KINDS}
    end["state"] |= (last.weight != 0).any(axis=0)
    while True:
        found = [end]
        for layer in reversed(body):
            found.append(_before(layer, found[-1]))
        merged = {kind: end[kind] | found[-1][kind] for kind in KINDS}
        if all((merged[kind] == end[kind]).all() for kind in KINDS):
            return found[::-1]
        end = merged


def _before(layer: Attention, after: Live) -> Live:
    skip = layer.skip.on_features() if layer.skip is not None else np.zeros((layer.outputs, layer.query.shape[2]))
    found = {kind: (skip[mask] != 0).any(axis=0) for kind, mask in after.items()}
    for kind in asking(layer, after):
        found[kind] |= (layer.query != 0).any(axis=(0, 1))
        for other in seen(layer, kind):
            found[other] |= (layer.key != 0).any(axis=(0, 1)) | (layer.value != 0).any(axis=(0, 1))
    return found


def asking(layer: Attention, after: Live) -> list[str]:
    """The kinds of which something that the heads write is live."""
    written = (layer.output != 0).any(axis=(0, 2))
    return [kind for kind, mask in after.items() if (mask & written).any()]


@dataclass(frozen=True, eq=False)
class Tokens:
    """Forms of tokens: plus and minus (width, 1 + variables), registers (count, width, 1), state (width, 1 + width).

    columns   how many entries a prompt has; variables of copies are these, then the score, then the link
    """

    plus: np.ndarray
    minus: np.ndarray
    registers: np.ndarray
    state: np.ndarray
    columns: int

    @property
    def score(self) -> int:
        return 1 + self.columns

    @property
    def link(self) -> int:
        return 2 + self.columns

    def every(self) -> list[tuple[str, str, np.ndarray]]:
        """(kind, name, forms) of every token."""
        copies = [("input", "a copy of sign 1", self.plus), ("input", "a copy of sign -1", self.minus)]
        registers = [("register", f"register {n}", forms) for n, forms in enumerate(self.registers)]
        return [*copies, *registers, ("state", "the state", self.state)]

    def shown(self, layer: Attention, kind: str) -> list[tuple[str, str, np.ndarray]]:
        """Those that a token of a kind sees; of a grid the first registers, its points."""
        count = len(self.registers) if layer.grid is None else prod(layer.grid)
        return [
            one for number, one in enumerate(self.every())
            if one[0] in seen(layer, kind) and (one[0] != "register" or number - 2 < count)
        ]  # fmt: skip

    def with_variable(self, feature: int, variable: int) -> Tokens:
        """A feature of the copies becomes a variable."""
        plus, minus = self.plus.copy(), self.minus.copy()
        for forms in (plus, minus):
            forms[feature] = 0.0
            forms[feature, variable] = 1.0
        return replace(self, plus=plus, minus=minus)


def embedded(embed: Embed, mark: int, moving: np.ndarray, live: Live) -> Tokens:
    """The tokens where a body begins. mark: the entry of p that is the copy's sign; moving: features of the state that
    steps change, which are then variables."""
    require(embed.source is None and embed.tokens is None, "a learner takes any number of tokens, each of them once")
    require(
        len(embed.weight) == len(embed.bias) == 1 and len(embed.states) == 1, "a learner has one state, and one Embed"
    )
    weight, bias = embed.weight[0], embed.bias[0]
    width, columns = weight.shape
    require(not (embed.states[0] != 0)[moving].any(), "w does not start at 0")
    forms = []
    for sign in (1.0, -1.0):
        entries = np.concatenate([np.zeros((columns, 1)), np.eye(columns), np.zeros((columns, 2))], axis=1)
        entries[mark] = 0.0
        entries[mark, 0] = sign
        made = np.zeros((width, 3 + columns))
        own = live["input"]
        constant = np.concatenate([[1.0], np.zeros(2 + columns)])
        rows = np.concatenate([weight, bias[:, None]], axis=1)[own]
        made[own] = exact_rows(rows, np.concatenate([entries, constant[None]]), "an example as it is embedded")
        forms.append(made)
    state = np.concatenate([embed.states[0][:, None], np.diag(moving.astype(np.float64))], axis=1)
    plus, minus = forms
    return Tokens(plus, minus, embed.registers[..., None], state, columns)


def exact_rows(rows: np.ndarray, forms: np.ndarray, what: str) -> np.ndarray:
    """rows @ forms, refused unless the dtype computes it without rounding: every row has one term, with a power of two
    as a factor, or is a sum of small constants."""
    held = (forms != 0).any(axis=-1)
    constant = ~(forms[:, 1:] != 0).any(axis=-1)
    for row in rows:
        used = np.flatnonzero((row != 0) & held)
        if len(used) > 1:
            products = row[used] * forms[used, 0]
            fine = constant[used].all() and (products % GRAIN == 0).all() and np.abs(products).sum() <= MOST
        else:
            factors = np.concatenate([row[used], forms[used, 0][constant[used]]])
            fine = len(used) == 0 or power_of_two(factors).any()
        require(bool(fine), f"{what}: a map of a learner that rounds, where none should")
    return rows @ forms


@dataclass(frozen=True, eq=False)
class Logit:
    """A logit as a form in the variables of who asks and of who is asked, (1 + variables, 1 + variables).

    terms   how many products are summed     size   the sum of their absolute values, where all are constants
    """

    form: np.ndarray
    terms: int
    size: float

    @property
    def constant(self) -> float | None:
        rest = self.form.copy()
        rest[0, 0] = 0.0
        return None if rest.any() else float(self.form[0, 0])

    @property
    def lost(self) -> float:
        """More than a constant logit is off by rounding, in every order: gamma of some hundred terms is below 2^-12."""
        return 0.0 if self.terms <= 1 else self.size * 2.0**-12


def logit(query: np.ndarray, key: np.ndarray, asker: np.ndarray, asked: np.ndarray, what: str) -> Logit:
    """Of one head, query and key (size, features), for two tokens."""
    q, k = exact_rows(query, asker, what), exact_rows(key, asked, what)
    total = np.zeros((q.shape[1], k.shape[1]))
    exact: dict[tuple[int, int], Fraction] = {}
    terms, size = 0, 0.0
    for one, other in zip(q, k, strict=True):
        left, right = np.flatnonzero(one).tolist(), np.flatnonzero(other).tolist()
        if not (len(left) and len(right)):
            continue
        terms += 1
        for i in left:
            for j in right:
                exact[i, j] = exact.get((i, j), Fraction(0)) + Fraction(float(one[i])) * Fraction(float(other[j]))
        size += abs(float(one[0] * other[0]))
    for place, value in exact.items():
        total[place] = float(value)
        # a constant of several terms is only compared, with room for its rounding
        require(Fraction(float(value)) == value or place == (0, 0), f"{what}: a logit's factor is no float64")
    require(terms <= 2**10, f"{what}: logits of more than 1,024 terms are not verified")
    return Logit(total, terms, size)


def require_finite(
    embed: Embed, bodies: Sequence[tuple[Sequence[Attention], int]], box: np.ndarray, tokens: int, model: Arithmetic
) -> None:
    """No number that is computed overflows: bounds on the features of every kind are followed through all steps, of
    layers that are repeated so many times, one group after the other.

    box: bounds on the entries of a prompt. What a head reads is at most the largest value that it may see, up to
    rounding: sums over so many tokens, and over features.
    """
    sizes = {
        "input": (np.abs(embed.weight) @ box + np.abs(embed.bias)).max(axis=0),
        "register": np.abs(embed.registers).max(axis=0, initial=0.0),
        "state": np.abs(embed.states).max(axis=0, initial=0.0),
    }
    limit = model.largest / 2.0**12
    more = 1 + float(model.gamma(4 * (tokens + len(box) + embed.weight.shape[1] + 16)))
    for layers, times in bodies:
        parts = [[np.abs(one) for one in (layer.query, layer.key, layer.value, layer.output)] for layer in layers]
        skips = [np.abs(layer.skip.on_features()) if layer.skip is not None else None for layer in layers]
        for _ in range(times):
            before = sizes
            for (query, key, value, output), skip in zip(parts, skips, strict=True):
                largest = np.max([sizes[kind] for kind in KINDS], axis=0)
                logits = np.einsum("hsf,f->hs", query, largest) * np.einsum("hsf,f->hs", key, largest)
                read = np.einsum("hof,f->ho", value, largest)
                wrote = np.einsum("hgo,ho->g", output, np.broadcast_to(read, (len(output), read.shape[1])))
                sizes = {kind: more * (wrote + (0.0 if skip is None else skip @ one)) for kind, one in sizes.items()}
                top = max(float(logits.sum(axis=1).max()), *(float(one.max()) for one in sizes.values()))
                if not top < limit:
                    raise NotVerified(f"numbers may overflow in {model.dtype}: up to {top:.3g}")
            if times > 1 and all((sizes[kind] <= before[kind]).all() for kind in KINDS):
                break
