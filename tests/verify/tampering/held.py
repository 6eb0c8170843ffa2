"""What the verifier says that the tokens of a learner hold, after every layer, is what they hold.

Whether a file is accepted or not, the reader has followed it up to some layer, with a number times a quantity, or
something of bounded size, in every feature of every token. Here a prompt goes through the network, layer by layer, and
every feature is compared: those of the first round with the first step, and where the whole was read, those of the last
round with all steps. What a lemma handles (scores, links, pushes, w and v) is what the features hold that it names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np

from anchorhead.network import Network, Repeat
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.files import read_file
from anchorhead.verify.grammar import read_network
from anchorhead.verify.learners import layers, learner
from anchorhead.verify.learners.target import read_descent
from anchorhead.verify.learners.tokens import ANY, Tokens, require_finite
from anchorhead.verify.programs.program import read_program
from anchorhead.verify.rounding import arithmetic_of

from .orders import KINDS, ORDERS, _Run

Named = tuple[Tokens, Mapping[int, int], Sequence[int], np.ndarray | None]
"""Tokens after a layer, and those that hold quantities in some features, by a lemma: which, or None for w and v."""


@dataclass
class Heard:
    """A reader, and for every round of its what tokens held at the beginning and after each layer."""

    reader: Any
    rounds: list[tuple[Tokens, list[Named]]] = field(default_factory=list)
    done: bool = False


def followed(content: bytes, prompt: np.ndarray) -> list[Heard]:
    """The readers of a file, each for one form of the link, that are for such prompts; none where numbers overflow."""
    stored = read_file(content)
    network, target = read_network(stored), read_descent(read_program(stored))
    model, margin = arithmetic_of(network.dtype), bool((prompt[: len(prompt) // 2, -2] != 1).any())
    try:
        with np.errstate(all="ignore"):
            require_finite(network, np.maximum(np.abs(prompt).max(axis=0), 1.0), len(prompt), model)
    except NotVerified:
        return []
    found: dict[int, Heard] = {}
    step, on, output = (getattr(layers._Reader, name) for name in ("step", "_on", "require_output"))

    def stepped(self: Any) -> Any:
        found.setdefault(id(self), Heard(self)).rounds.append((self.now, []))
        return step(self)

    def went_on(self: Any, layer: Any, tokens: Any, features: Any, of: Any = None) -> None:
        on(self, layer, tokens, features, of)
        found[id(self)].rounds[-1][1].append((self.now, tokens, features, of))

    def ended(self: Any, network: Any) -> None:
        found[id(self)].done = True
        output(self, network)

    patches = {"step": stepped, "_on": went_on, "require_output": ended}
    with patch.multiple(layers._Reader, **patches), np.errstate(all="ignore"), suppress(NotVerified):
        learner._first(network, target, 1.0, 0.0, 1e-3, model)
    return [one for one in found.values() if (one.reader.links[0].form == "margin") == margin]


def wrong(content: bytes, network: Network, prompt: np.ndarray) -> tuple[int, list[str]]:
    """How many features were compared on a prompt (tokens, features), and what is not as the verifier says."""
    count, problems = 0, []
    for heard in followed(content, prompt):
        checks = [(0, heard.rounds[0])] + [(None, heard.rounds[-1])] * heard.done
        for only, (start, named) in checks:
            held = _Held(heard.reader, prompt)
            for step, number, now in _concrete(network, prompt):
                if (only is not None and step > only) or number > len(named):
                    continue
                tokens, who, features, of = (start, {}, (), None) if number == 0 else named[number - 1]
                held.name(now, who, features, of, new=number == 0)
                count += tokens.of.size
                problems += [f"step {step}, after layer {number}: {one}" for one in held.compare(tokens, now)]
    return count, problems


def _concrete(network: Network, prompt: np.ndarray) -> Iterator[tuple[int, int, np.ndarray]]:
    """Steps, layers of them and features (tokens, features); after 0 layers, what a step begins with."""
    run = _Run(ORDERS["forwards"], np.dtype(network.dtype).type)
    with np.errstate(all="ignore"):
        now = run.embedded(network.embed, prompt[None].astype(network.dtype))
        for layer in network.layers[1:-1]:
            if not isinstance(layer, Repeat):
                now = run.after(layer, now)
                continue
            for step in range(layer.times):
                yield step, 0, _everyone(now)
                for number, one in enumerate(layer.layers, start=1):
                    now = run.after(one, now)
                    yield step, number, _everyone(now)


def _everyone(now: Mapping[str, np.ndarray]) -> np.ndarray:
    return np.concatenate([now[kind][0] for kind in KINDS]).astype(np.float64)


class _Held:
    """The quantities of a prompt's tokens: rows of tokens are kinds of rows in `Tokens`, or tokens of a sequence."""

    def __init__(self, reader: Any, prompt: np.ndarray) -> None:
        tokens: Tokens = reader.now
        self.reader, self.rows, half = reader, tokens.rows, len(prompt) // 2
        source = tokens.source[tokens.source >= 0]
        self.exactly = not len(source)
        shown = prompt if self.exactly else prompt[source]
        first = np.repeat([0, 1], half) if self.exactly else np.arange(len(shown))
        more = tokens.stream.registers + tokens.stream.states
        self.which = np.append(first, (tokens.stream.inputs or 0) + np.arange(more))
        self.shift, self.inputs = len(shown) - int(tokens.stream.inputs or 0), len(shown)
        size = self.rows.w(4)[0]
        self.known = np.full((len(self.which), size), np.nan)
        self.known[:, 0] = 1.0
        self.known[: self.inputs, 1 : 1 + prompt.shape[1]] = shown

    def own(self, token: int) -> np.ndarray:
        """The tokens of a prompt that are one of `Tokens`."""
        return np.flatnonzero(self.which == token)

    def name(
        self, now: np.ndarray, who: Mapping[int, int], features: Sequence[int], of: np.ndarray | None, new: bool
    ) -> None:
        """Quantities are what these features hold; w and v what they hold in those that carry them."""
        if of is not None:
            for token, sign in who.items():
                for one in self.own(token):
                    self.known[one, of] = sign * now[one, list(features)]
        if new or of is None:
            for token, sign in self.reader.carriers.items():
                (one,) = self.own(token)
                for which, own in ((0, self.reader.w), (1, self.reader.v)):
                    self.known[one, self.rows.w(which)[: len(own)]] = sign * now[one, own]

    def compare(self, tokens: Tokens, now: np.ndarray) -> Iterator[str]:
        number, of = tokens.number[self.which], tokens.of[self.which]
        known = np.take_along_axis(self.known, np.maximum(of, 0), axis=1)
        carried = (of >= self.rows.w()[0]) & (of < self.rows.w(2)[0])
        every = [self.known[self.own(token)[0]] for token in self.reader.carriers]
        said = [number * np.where(carried, one[np.maximum(of, 0)], known) for one in every]
        room = 0.0 if self.exactly else 2 * arithmetic_of(self.reader.model.dtype).unit
        same = np.any([np.abs(now - one) <= room * np.abs(one) for one in said], axis=0)
        good = np.where(of == ANY, np.abs(now) <= number, np.where(number == 0, now == 0, same))
        for token, feature in np.argwhere(~good):
            yield (
                f"feature {feature} of token {token} is {now[token, feature]!r}, not "
                f"{number[token, feature]!r} times quantity {of[token, feature]}"
            )
