"""What a picture of a network shows: its layers in order, who asks whom, what heads do, attention for an input."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from anchorhead.decimals import counted
from anchorhead.errors import AnchorheadError
from anchorhead.network import Attention, Linear, Network, Repeat, Softmax
from anchorhead.network.chain import Placed, placed, runs
from anchorhead.network.liveness import Needed, askers, needed_after, seen
from anchorhead.network.network import Layer
from anchorhead.network.stream import Kind, Stream

MAX_LAYERS = 24
"""Of more layers than these, some in the middle are left out."""
MAX_HEADS, MAX_GROUPS = 12, 8
"""Heads of one layer that have a line of their own; and kinds of heads, or heads, that are named of more."""
MAX_FEATURES = 8
COLOUR_NAMES: dict[Kind, str] = {"input": "blue", "register": "orange", "state": "green"}
NAMES: dict[Kind, str] = {"input": "input token", "register": "register", "state": "state"}


@dataclass(frozen=True, eq=False)
class HeadLine:
    """One head, or several with labels of one form, and where the first of them stands among its layer's."""

    label: str
    number: int


@dataclass(frozen=True, eq=False)
class Stage(Placed):
    """One layer.

    heads      what its heads do, line by line
    asks, sees the kinds of token that ask, and that are seen by them
    patterns   attention weights for an input, of the last run; tokens that ask and are seen as in Network.attention
    """

    heads: tuple[HeadLine, ...] = ()
    asks: tuple[Kind, ...] = ()
    sees: tuple[Kind, ...] = ()
    patterns: Float[np.ndarray, "heads asking seen"] | None = None

    @property
    def name(self) -> str:
        """Its number, and what it is."""
        return f"{self.number} {_words(self.layer)}"


@dataclass(frozen=True, eq=False)
class Circuit:
    """tokens: how many enter, where an input says so or the network does."""

    network: Network
    stages: tuple[Stage, ...]
    left_out: int
    tokens: int | None

    @classmethod
    def of(cls, network: Network, x: Any = None) -> Circuit:
        maps, tokens = (None, network.embed.tokens) if x is None else _attention(network, x)
        patterns: dict[str, np.ndarray] = {}
        if maps is not None:
            asked = (number for number, _, layer in runs(network.layers) if isinstance(layer, Attention))
            patterns = dict(zip(asked, maps, strict=True))  # of several runs the last
        needed = needed_after(network.layers, network.output)
        stages = [
            _stage(one, needed.get(one.number, {}), patterns.get(one.number))
            for one in placed(network.layers)
            if not isinstance(one.layer, Repeat)
        ]
        cut = max(0, len(stages) - MAX_LAYERS)
        kept = [*stages[: MAX_LAYERS - 4], *stages[len(stages) - 4 :]] if cut else stages
        return cls(network, tuple(kept), cut, tokens)


def _attention(network: Network, x: Any) -> tuple[list[np.ndarray], int]:
    """The weights for one input, layer by layer and run by run, and its number of tokens."""
    maps = [np.asarray(one, dtype=np.float64) for one in network.attention(np.asarray(x))]
    axes = np.ndim(x) - (2 if network.token_axis else 1)
    batch = np.shape(x)[:axes]
    if np.prod(batch, initial=1) != 1:
        raise AnchorheadError(
            f"x of shape {np.shape(x)} holds {np.prod(batch):,} inputs: a circuit shows one; give x[0]"
        )
    return [one.reshape(one.shape[-3:]) for one in maps], np.shape(x)[-2] if network.token_axis else 1


def _stage(one: Placed, after: Needed, patterns: np.ndarray | None) -> Stage:
    stage = Stage(**vars(one), patterns=patterns)
    if not isinstance(one.layer, Attention):
        return stage
    asks = askers(one.layer, after)
    return replace(stage, heads=_heads(one.layer), asks=asks, sees=seen(one.layer, asks, one.enters))


def _words(layer: Layer) -> str:
    match layer:
        case Attention():
            return _attention_words(layer)
        case Linear():
            return f"Linear, {'across tokens' if layer.across else 'on each token'}"
        case Softmax():
            return f"Softmax within a token, {counted(len(layer.groups), 'group')}"
    return type(layer).__name__


def _attention_words(layer: Attention) -> str:
    words = f"Attention, {counted(layer.heads, 'head')}"
    words += f", mask {layer.mask}" if layer.mask else ""
    return words + (f", grid {' x '.join(map(str, layer.grid))}" if layer.grid else "")


def _heads(layer: Attention) -> tuple[HeadLine, ...]:
    """A line a head; of many, a line for those whose labels differ by numbers alone, and the rest counted."""
    labels = layer.labels or ()
    if len(labels) <= MAX_HEADS:
        return tuple(HeadLine(label, number) for number, label in enumerate(labels))
    for form in (r"-?\d[\d.e+-]*", r"(=|:).*"):  # alike but for numbers, or up to what they are at
        groups: dict[str, list[int]] = {}
        for number, label in enumerate(labels):
            groups.setdefault(re.sub(form, "#", label), []).append(number)
        if len(groups) <= MAX_GROUPS:
            break
    else:
        groups = {str(number): [number] for number in range(MAX_GROUPS)}
    lines = [
        HeadLine(labels[one[0]] if len(one) == 1 else f"{counted(len(one), 'head')} such as: {labels[one[0]]}", one[0])
        for one in groups.values()
    ]
    left = len(labels) - sum(map(len, groups.values()))
    return (*lines, *((HeadLine(f"and {counted(left, 'more head')}", -1),) if left else ()))


def counts_of(stream: Stream, tokens: int | None) -> dict[Kind, int | None]:
    """How many tokens of each kind there are; None: any number."""
    return {kind: count for kind, count in stream.count(tokens).items() if count != 0}


def legend(circuit: Circuit, patterns: bool) -> str:
    there = {kind for stage in circuit.stages for kind in stage.leaves.kinds}
    words = ", ".join(f"{COLOUR_NAMES[kind]}: {name}s" for kind, name in NAMES.items() if kind in there)
    if any(isinstance(stage.layer, Attention) for stage in circuit.stages):
        words += "; lines: who reads whom"
    if patterns:
        words += ", the bolder the more attention; strips: a row for each token that asks, a column for each it sees"
        if any(stage.repeats for stage in circuit.stages):
            words += ", at the last repetition"
    return words


def features_words(stream: Stream) -> str:
    names = list(stream.features[:MAX_FEATURES])
    more = stream.width - len(names)
    return f"leaves {', '.join(names)}" + (f" and {counted(more, 'more feature')}" if more else "")
