"""A step of a learner, read from stored weights: which heads read a gradient, and what becomes of w and v.

w are the features of the state that the last map of the network picks; v, with momentum, those that its skip adds to
them. Everything else that is live must be the same at the end of a step as at its beginning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from flint import arb

from anchorhead.verify.balls import above, precision
from anchorhead.verify.errors import require
from anchorhead.verify.grammar import Attention, Linear, Network, Repeat
from anchorhead.verify.learners.average import MANY, Average
from anchorhead.verify.learners.target import Descent
from anchorhead.verify.learners.tokens import Live, Tokens, embedded, exact_rows, live_features, logit, seen
from anchorhead.verify.rounding import SILENT, Arithmetic, power_of_two

Handled = Mapping[str, set[int]]


@dataclass(frozen=True, eq=False)
class Update:
    """w' = kept w + momentum v + what is read, v' = pulled w + momentum v + what is read; with the roundings of each.

    wrong, wrong_pull, wrong_speed   how far stored factors of w in w', of w in v', and of v are from the target's
    """

    kept: float
    pulled: float
    momentum: float
    wrong: float
    wrong_pull: float
    wrong_speed: float
    roundings: tuple[int, int, int]

    def error(self, w: float, v: float, size: float, model: Arithmetic) -> tuple[float, float]:
        """What w' and v' are off by the stored factors and by rounding, for |w|, |v| and what heads write."""
        of_w, of_v, of_read = (float(model.gamma(n)) for n in self.roundings)
        moving = of_v * self.momentum * v + of_read * size + MANY * 16 * model.tiny
        return (
            self.wrong * w + self.wrong_speed * v + of_w * self.kept * w + moving,
            self.wrong_pull * w + self.wrong_speed * v + of_w * self.pulled * w + moving,
        )


class Reading:
    """The parts of a learner's network that all layouts have in common."""

    def __init__(self, network: Network, target: Descent, mark: int) -> None:
        require(
            network.output == "state" and len(network.layers) == 2, "a learner is Embed, Repeat, Linear to its state"
        )
        repeat, last = network.layers
        require(isinstance(repeat, Repeat) and isinstance(last, Linear), "a learner is Embed, Repeat, Linear")
        require(repeat.times == target.times, f"it takes {repeat.times} steps, not {target.times}")
        self.body: list[Attention] = list(repeat.layers)
        for layer in self.body:
            plain = isinstance(layer, Attention) and layer.bias is None and layer.grid is None
            plain = plain and layer.skip is not None and layer.skip.bias is None
            require(plain, "a step of a learner is attention with a skip, without biases")
        require(not last.across and last.bias is None and last.weight.ndim == 2, "the last map of a learner picks w")
        self.network, self.target, self.embed, self.mark = network, target, network.embed, mark
        require(
            self.embed.weight.shape[2] == target.features + 2, "an example has other features than the program says"
        )
        self.w = [_picked(row) for row in last.weight]
        require(len(set(self.w)) == len(self.w) == target.size, "the last map does not pick the entries of w")
        self.v = self._speed(self.body[-1] if not target.shrinks else self.body[-2]) if target.momentum else []
        self.live = live_features(self.body, last)
        width = self.embed.weight.shape[1]
        moving = np.zeros(width, bool)
        moving[[*self.w, *self.v]] = True
        self.moving = moving
        self.tokens = self.start = embedded(self.embed, mark, moving, self.live[0])
        self.columns = [*range(target.features), *([target.features] if target.intercept else [])]

    def _speed(self, layer: Attention) -> list[int]:
        """The features that the skip adds to w."""
        skip = layer.skip.on_features()  # type: ignore[union-attr]
        found = [[int(f) for f in np.flatnonzero(skip[w]) if f not in self.w] for w in self.w]
        require(all(len(one) == 1 for one in found), "the skip does not add one speed to each entry of w")
        return [one[0] for one in found]

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
            for kind, name, forms in self.tokens.every():
                if kind in seen(layer, "state") and kind != "input":
                    away = logit(query, key, state, forms, name)
                    far = away.constant is not None and away.constant + away.lost <= -2 * SILENT
                    require(far, f"{name} is not out of the state's reach")
            require("input" in seen(layer, "state"), "the state does not see the examples")
        outputs = self._outputs(layer)
        self.passed(layer, after, {"state": {*self.w, *self.v}})
        return Average(tuple(sharpness), outputs, terms), self._update(layer)

    def _outputs(self, layer: Attention) -> tuple[float, ...]:
        """o_a: what head a reads of entry j goes to entry j of w and of v, times o_a."""
        found = []
        for output in layer.output:
            o = float(output[self.w[0], 0])
            for slots in (self.w, self.v) if self.v else (self.w,):
                same = output[slots].shape == (len(self.w),) * 2 and (output[slots] == o * np.eye(len(self.w))).all()
                require(bool(same), "what a head reads does not go to w and v alike")
            found.append(o)
        return tuple(found)

    def _update(self, layer: Attention) -> Update:
        skip, target = layer.skip.on_features(), self.target  # type: ignore[union-attr]
        size, momentum = len(self.w), 0.0
        rows = skip[[*self.w, *self.v]].copy()
        held = self.moving | (self.tokens.state[:, 0] != 0)
        kept, pulled = np.diagonal(skip[np.ix_(self.w, self.w)]), np.zeros(size)
        expected = np.zeros_like(rows)
        expected[np.arange(size), self.w] = kept
        if self.v:
            momentum, pulled = float(skip[self.w[0], self.v[0]]), np.diagonal(skip[np.ix_(self.v, self.w)])
            expected[np.arange(size), self.v] = momentum
            expected[size + np.arange(size), self.w] = pulled
            expected[size + np.arange(size), self.v] = momentum
        require(bool((rows == expected)[:, held].all()), "the skip mixes other features into w or v")
        with precision():
            pulls = [arb(target.rate) * decay for decay in target.decays]
            wrong = max(above(abs(arb(float(k)) - (1 - pull))) for k, pull in zip(kept, pulls, strict=True))
            wrong_pull = max(above(abs(arb(float(k)) + pull)) for k, pull in zip(pulled, pulls, strict=True))
            wrong_speed = above(abs(arb(momentum) - arb(target.momentum)))
        product = int(not power_of_two(np.concatenate([kept, pulled])).all())
        # a product, the sum of the skip, what the heads write, and the sum of both
        roundings = product + bool(self.v) + 1, 3, layer.heads + 1
        largest = float(np.abs(kept).max()), float(np.abs(pulled).max())
        return Update(*largest, abs(momentum), wrong, wrong_pull if self.v else 0.0, wrong_speed, roundings)

    def passed(self, layer: Attention, after: Live, handled: Handled) -> None:
        """Moves on to what leaves a layer. Every live feature that no lemma handles is exactly what the skip says, and
        heads add exactly 0 to it."""
        skip = layer.skip.on_features()  # type: ignore[union-attr]
        written = (layer.output != 0).any(axis=(0, 2))
        made = []
        for kind, name, forms in self.tokens.every():
            own = after[kind].copy()
            own[list(handled.get(kind, ()))] = False
            result = np.zeros_like(forms)
            result[own] = exact_rows(skip[own], forms, name)
            if (own & written).any():
                self._reads_nothing(layer, kind, name, forms, own)
            for feature in handled.get(kind, ()):
                result[feature] = forms[feature]
            made.append(result)
        count = len(self.tokens.registers)
        registers = np.array(made[2:-1]) if count else self.tokens.registers
        self.tokens = Tokens(made[0], made[1], registers, made[-1], self.tokens.columns)

    def _reads_nothing(self, layer: Attention, kind: str, name: str, forms: np.ndarray, own: np.ndarray) -> None:
        """A head of which a token of this kind would keep something: all values that weigh anything are exactly 0."""
        for head in range(layer.heads):
            if not (layer.output[head][own] != 0).any():
                continue
            query, key, value = (of_head(one, head) for one in (layer.query, layer.key, layer.value))
            silent, loud = [], -np.inf
            for other, its_name, its in self.tokens.every():
                if other not in seen(layer, kind):
                    continue
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


def _picked(row: np.ndarray) -> int:
    """The feature that a row of the last map picks."""
    (used,) = np.nonzero(row)
    require(len(used) == 1 and row[used[0]] == 1.0, "the last map does not pick the entries of w")
    return int(used[0])
