"""What the tokens of a learner hold: every feature as exact numbers times quantities of its own token, or of some size.

The first quantity of a token is 1. Those of a row of the prompt are its entries, its score and its link; those of a
token that carries w are the entries of w and of v. Rows of one kind, however many, are one token here: what all of them
have in common (their sign, their flags) is a constant. A feature that is not known exactly is *loose*: of bounded size,
or anything.

A logit is then a form in products of two quantities (`Logits`), and of what nobody can say more, an interval (`ends`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from anchorhead.network import Attention
from anchorhead.proof.arithmetic.affine_forms import Forms
from anchorhead.proof.arithmetic.arithmetic import Arithmetic
from anchorhead.proof.arithmetic.rounding import exact_factor
from anchorhead.proof.arithmetic.silence import rounding_of

SMALL = 2.0**20
"""Sums of quarters up to here are exact in float32, in every order."""
LEAST = 2.0**-100
"""Smaller products may vanish."""
LOOSER = 1 + 2.0**-8
"""More than what is rounded where sizes are added up."""


@dataclass(frozen=True, eq=False)
class Held:
    """number: how much of each quantity; loose: a bound on the size of features that are no such sums, else 0."""

    number: Float[np.ndarray, "tokens features quantities"]
    loose: Float[np.ndarray, "tokens features"]
    _maps: dict[tuple[bytes, bool], Held] = field(default_factory=dict, repr=False)

    @classmethod
    def constants(cls, values: Float[np.ndarray, "tokens features"] | None, width: int, quantities: int = 1) -> Held:
        """Tokens of nothing but constants, which may come to hold more quantities."""
        values = np.zeros((0, width)) if values is None else np.asarray(values, np.float64)
        number = np.zeros((*values.shape, quantities))
        number[:, :, 0] = values
        return cls(number, np.zeros(values.shape))

    def __len__(self) -> int:
        return len(self.number)

    def tokens(self, index: slice | Int[np.ndarray, " some"]) -> Held:
        return Held(self.number[index], self.loose[index])

    def holding(self, tokens: Any, feature: int, of: Float[np.ndarray, "*_ quantities"]) -> Held:
        """The same where a feature of some tokens is so much of each quantity."""
        number, loose = self.number.copy(), self.loose.copy()
        number[tokens, feature], loose[tokens, feature] = of, 0.0
        return Held(number, loose)

    def loosened(self, tokens: Any, feature: Any, size: Float[np.ndarray, " _"] | float) -> Held:
        """The same where all that is known of a feature of some tokens is its size."""
        number, loose = self.number.copy(), self.loose.copy()
        number[tokens, feature], loose[tokens, feature] = 0.0, size
        return Held(number, loose)

    def mapped(self, weight: Float[np.ndarray, "outputs features"], scaled: bool = False) -> Held:
        """What a linear map makes of it: exact where a single product is not 0, by a power of two, or where all are
        quarters of small whole numbers; loose otherwise. Quantities are taken once, or minus once, so that none
        vanishes by underflow and comes back; `scaled`: as often as one likes, in the last map before a product."""
        weight = np.asarray(weight, np.float64)
        key = (weight.tobytes(), scaled)  # heads share keys and values
        if key not in self._maps:
            self._maps[key] = self._mapped(weight, scaled)
        return self._maps[key]

    def _mapped(self, weight: Float[np.ndarray, "outputs features"], scaled: bool) -> Held:
        touches, there = (weight != 0).T.astype(float), (self.number != 0).any(axis=2).astype(float)
        single = (there @ touches <= 1) & (there @ ~exact_factor(weight).T < 1)
        constant, varies = self.number[:, :, 0], (self.number[:, :, 1:] != 0).any(axis=2)
        odd = varies | (constant * 2 % 1 != 0)
        halves = (weight * 2 % 1 == 0).all(axis=1) & (np.abs(constant) @ np.abs(weight).T <= SMALL)
        number = np.matmul(weight, self.number)
        once = scaled | ((number[:, :, 1:] == 0) | (np.abs(number[:, :, 1:]) == 1)).all(axis=2)
        picks = (np.abs(weight) % 1 == 0).all(axis=1) & (np.abs(weight) <= 1).all(axis=1)
        normal = picks | (np.where(number == 0, 1.0, np.abs(number)).min(axis=2, initial=1.0) >= LEAST)
        exact = (single & once & normal) | (halves & (odd @ touches < 1))
        finite = np.where(np.isfinite(self.loose), self.loose, 0.0)
        loose = LOOSER * finite @ np.abs(weight).T + np.where(
            np.isinf(self.loose).astype(float) @ touches > 0, np.inf, 0.0
        )
        beside = np.where((number[:, :, 1:] != 0).any(axis=2), np.inf, np.abs(number[:, :, 0]))
        loose = np.where(exact, np.where(loose > 0, loose + beside, 0.0), np.inf)
        return Held(np.where((loose > 0)[:, :, None], 0.0, number), loose)

    @property
    def constant(self) -> Float[np.ndarray, "tokens features"]:
        return self.number[:, :, 0]

    @property
    def size(self) -> Float[np.ndarray, "tokens features"]:
        """Bounds on absolute values."""
        return np.asarray(np.where(self.varies, np.inf, np.abs(self.constant) + self.loose))

    @property
    def varies(self) -> Bool[np.ndarray, "tokens features"]:
        return (self.number[:, :, 1:] != 0).any(axis=2)

    def forms(self) -> Forms:
        """The same as affine forms in the quantities but for 1; what is loose is marked as off by something."""
        off = (self.loose > 0).astype(float)
        return Forms(self.number[:, :, 1:], self.constant, off, np.zeros(off.shape))


@dataclass(frozen=True, eq=False)
class Logits:
    """Of one token that asks, for each of some keys: so much of every product of a quantity of the one that asks and
    one of the key; bounds on all that is not known so; and how many products are added up."""

    of: Float[np.ndarray, "keys asks quantities"]
    loose: Float[np.ndarray, " keys"]
    terms: Int[np.ndarray, " keys"]

    @classmethod
    def between(cls, asking: Held, keys: Held) -> Logits:
        """asking: the query of one token; keys: the keys of some."""
        there = (asking.size != 0) & (keys.size != 0)
        loose = there & ((asking.loose > 0) | (keys.loose > 0))
        with np.errstate(invalid="ignore"):
            sizes = np.where(loose, asking.size * keys.size, 0.0).sum(axis=1)
        of = np.einsum("eq,kep->kqp", asking.number[0], keys.number)
        return cls(of, sizes, there.sum(axis=1))


def ends(
    asking: Held, keys: Held, arithmetic: Arithmetic
) -> tuple[Float[np.ndarray, "asks keys"], Float[np.ndarray, "asks keys"]]:
    """Between what the logits of these queries and keys lie, as computed."""
    fixed = asking.constant @ keys.constant.T
    (q, loose_q), (k, loose_k) = (
        (np.abs(one.constant), np.where(one.varies, np.inf, one.loose)) for one in (asking, keys)
    )
    spread = _times(q, loose_k) + _times(loose_q, k) + _times(loose_q, loose_k)
    terms = (asking.size != 0).astype(float) @ (keys.size != 0).T.astype(float)
    size = np.where(np.isfinite(spread), spread, 0.0) + q @ k.T
    reach = spread + rounding_of(size, terms, arithmetic)
    return fixed - reach, fixed + reach


def _times(a: Float[np.ndarray, "asks size"], b: Float[np.ndarray, "keys size"]) -> Float[np.ndarray, "asks keys"]:
    """a b' where 0 times what is infinite is 0."""
    finite = np.where(np.isfinite(a), a, 0.0) @ np.where(np.isfinite(b), b, 0.0).T
    endless = np.isinf(a).astype(float) @ (b != 0).T.astype(float) + (a != 0).astype(float) @ np.isinf(b).T.astype(
        float
    )
    return np.where(endless > 0, np.inf, finite)


@dataclass(frozen=True, eq=False)
class Tokens:
    """Rows of the prompt, a token for each kind; registers; states."""

    rows: Held
    registers: Held
    states: Held

    @property
    def groups(self) -> tuple[Held, Held, Held]:
        return self.rows, self.registers, self.states

    def seen(self, layer: Attention, group: int) -> tuple[Held, Held, Held]:
        """What a token of a group sees, but for itself where it sees no others of its kind."""
        rows, registers, states = self.groups
        if layer.grid is not None:
            return rows.tokens(slice(0)), registers.tokens(slice(layer.points)), states.tokens(slice(0))
        if layer.mask is None:
            return rows, registers, states
        if layer.mask == "registers+states" and group != 1:
            return rows.tokens(slice(0)), registers, states
        return rows.tokens(slice(0)), registers, states.tokens(slice(0))
