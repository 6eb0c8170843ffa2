"""The tokens of a learner with one state, followed through the layers of a step: which heads read a gradient.

Everything live but w and v must be the same at the end of a step as at its beginning.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from anchorhead.verify.errors import require
from anchorhead.verify.grammar import Attention, Network
from anchorhead.verify.learners.average import Average
from anchorhead.verify.learners.target import Descent
from anchorhead.verify.learners.tokens import Live, Tokens, embedded, exact_rows, live_features, logit, seen
from anchorhead.verify.learners.update import Update, read_body, read_update, speeds, written
from anchorhead.verify.rounding import SILENT, Arithmetic, power_of_two
from anchorhead.verify.scalar import Part, silent

Handled = Mapping[str, set[int]]


class Reading:
    """The parts of a learner's network that all layouts have in common."""

    def __init__(self, network: Network, target: Descent, mark: int) -> None:
        self.body, self.w = read_body(network, target, "state")
        self.network, self.target, self.embed, self.mark = network, target, network.embed, mark
        self.v = speeds(self.body[-1] if not target.shrinks else self.body[-2], self.w, target)
        self.live = live_features(self.body, network.layers[1])
        moving = np.zeros(self.embed.weight.shape[1], bool)
        moving[[*self.w, *self.v]] = True
        self.tokens = self.start = embedded(self.embed, mark, moving, self.live[0])
        self.columns = [*range(target.features), *([target.features] if target.intercept else [])]

    def entry(self, column: int, sign: float) -> np.ndarray:
        """The form of an entry of a prompt, in a copy of this sign."""
        form = np.zeros(self.tokens.plus.shape[1])
        form[0 if column == self.mark else 1 + column] = sign if column == self.mark else 1.0
        return form

    def average(self, layer: Attention, after: Live, carries: Mapping[float, np.ndarray]) -> tuple[Average, Update]:
        """The layer as a signed average: its logits are h times the form that a copy of either sign carries, (variables
        of the state, variables of the copy)."""
        state, heads = self.tokens.state, range(layer.heads)
        sharpness: list[float] = []
        terms = 0
        for head in heads:
            query, key, value = (of_head(one, head) for one in (layer.query, layer.key, layer.value))
            for sign, copy in ((1.0, self.tokens.plus), (-1.0, self.tokens.minus)):
                found = logit(query, key, state, copy, "the state asks an example")
                form = carries[sign]
                place = np.unravel_index(np.abs(form).argmax(), form.shape)
                h = float(found.form[place] / form[place])
                require(h > 0 and bool(power_of_two(np.array(h))), "a sharpness is no power of two")
                require(bool((found.form == h * form).all()), "logits of examples are not the residuals, or links")
                if sign > 0:
                    sharpness.append(h)
                require(h == sharpness[-1], "copies of either sign are asked with different sharpness")
                terms = max(terms, found.terms)
                read = exact_rows(value, copy, "values of examples")
                expected = np.array([self.entry(column, sign) for column in self.columns])
                require(read.shape == expected.shape and bool((read == expected).all()), "values are not the examples")
            for kind, name, forms in self.tokens.shown(layer, "state"):
                if kind != "input":
                    away = logit(query, key, state, forms, name)
                    far = away.constant is not None and away.constant + away.lost <= -2 * SILENT
                    require(far, f"{name} is not out of the state's reach")
            require("input" in seen(layer, "state"), "the state does not see the examples")
        self.passed(layer, after, {"state": {*self.w, *self.v}})
        found = Average(tuple(sharpness), written(layer, self.w, self.v), terms)
        return found, read_update(layer, self.w, self.v, self.target)

    def passed(self, layer: Attention, after: Live, handled: Handled) -> None:
        """Moves on to what leaves a layer. Every live feature that no lemma handles is exactly what the skip says, and
        heads add exactly 0 to it."""
        skip = layer.skip.on_features()  # type: ignore[union-attr]
        output = (layer.output != 0).any(axis=(0, 2))
        made = []
        asked: set[tuple[str, bytes]] = set()
        for kind, name, forms in self.tokens.every():
            own = after[kind].copy()
            own[list(handled.get(kind, ()))] = False
            result = np.zeros_like(forms)
            result[own] = exact_rows(skip[own], forms, name)
            for head in range(layer.heads):
                asks = of_head(layer.query, head) @ forms
                known = kind, head.to_bytes(2) + asks.tobytes()
                if (own & output).any() and (layer.output[head][own] != 0).any() and known not in asked:
                    self._reads_nothing(layer, head, kind, name, forms)
                    asked.add(known)
            for feature in handled.get(kind, ()):
                result[feature] = forms[feature]
            made.append(result)
        count = len(self.tokens.registers)
        registers = np.array(made[2:-1]) if count else self.tokens.registers
        self.tokens = Tokens(made[0], made[1], registers, made[-1], self.tokens.columns)

    def _reads_nothing(self, layer: Attention, head: int, kind: str, name: str, forms: np.ndarray) -> None:
        """A head of which a token would keep something: all values that weigh anything are exactly 0."""
        query, key, value = (of_head(one, head) for one in (layer.query, layer.key, layer.value))
        silent, loud = [], -np.inf
        for other, its_name, its in self.tokens.shown(layer, kind):
            found = logit(query, key, forms, its, f"{name} asks {its_name}")
            if exact_rows(value, its, its_name).any():
                silent.append(np.inf if found.constant is None else found.constant + found.lost)
            elif found.constant is not None and other != "input":
                loud = max(loud, found.constant - found.lost)
        require(all(one + 2 * SILENT <= loud for one in silent), f"{name} reads what it should not")

    def require_same(self) -> None:
        """What is live at the end of a step is what it was at the beginning, but for w and v."""
        for (kind, name, now), (_, _, then) in zip(self.tokens.every(), self.start.every(), strict=True):
            own = self.live[0][kind]
            require(bool((now[own] == then[own]).all()), f"a step changes {name}")


def of_head(array: np.ndarray, head: int) -> np.ndarray:
    return array[head if len(array) > 1 else 0]


def read_part(
    reading: Reading, layer: Attention, head: int, asker: tuple[str, np.ndarray, int], what: str, model: Arithmetic,
    most: float = math.inf,
) -> Part:  # fmt: skip
    """A head as a softmax on one number: what a token (kind, forms, the number's column) finds of tokens that hold
    constants; of numbers up to `most`, only the anchors that are then heard. Offsets are products with 1."""
    kind, forms, column = asker
    query, key, value = (of_head(one, head) for one in (layer.query, layer.key, layer.value))
    rows = []
    for other, name, its in reading.tokens.shown(layer, kind):
        found, held = logit(query, key, forms, its, name), exact_rows(value, its, name)
        rest = found.form.copy()
        rest[0, 0] = rest[column, 0] = 0.0
        constant = other != "input" and not rest.any() and not held[:, 1:].any()
        require(constant, f"{what} reads {name}, which is not constant")
        rows.append((found.form[column, 0], found.form[0, 0], held[0, 0], found.size, found.terms))
    slopes, offsets, values, sizes, terms = np.array(rows).T
    nothing = np.zeros_like(slopes)
    part = Part(slopes, offsets, values, sizes, sizes, (sizes != 0) + 0.0, nothing, nothing, nothing, model)
    near = ~silent(part, [(-most, most)], model) if most < math.inf else np.ones(len(slopes), bool)
    require(bool((terms[near] <= 2).all()), f"logits of {what} are not a slope and an offset")
    return part.only(np.flatnonzero(near))
