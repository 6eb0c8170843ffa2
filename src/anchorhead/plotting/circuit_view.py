"""What a picture of a network shows: its layers in order, who asks whom, what heads do, attention for an input."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from anchorhead.decimals import counted
from anchorhead.errors import AnchorheadError
from anchorhead.network import Attention, Embed, Linear, Network, Repeat, Softmax
from anchorhead.network.liveness import askers, everything, seen, steady_needs, streams, through
from anchorhead.network.stream import KINDS, Kind, Stream

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
class Stage:
    """One layer.

    number     its own, as in describe()           what     it is, in words
    kind       the class of the layer
    enters     what enters it                      leaves   what leaves it
    heads      what its heads do, line by line     repeats  how often it is run: of every Repeat around it
    asks, sees the kinds of token that ask, and that are seen by them
    keeps      whether a token's own features are added to what it reads
    patterns   attention weights for an input, of the last run; tokens that ask and are seen as in Network.attention
    """

    number: str
    what: str
    kind: type
    enters: Stream
    leaves: Stream
    repeats: tuple[tuple[str, int], ...] = ()
    heads: tuple[HeadLine, ...] = ()
    asks: tuple[Kind, ...] = ()
    sees: tuple[Kind, ...] = ()
    layer: Any = None
    keeps: bool = True
    patterns: Float[np.ndarray, "heads asking seen"] | None = None

    @property
    def name(self) -> str:
        return f"{self.number} {self.what}"


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
        layers: Any = network.layers[1:]
        needed = through(layers, everything(network.streams[-1], (network.output,)), network.streams[0])
        first = Stage("1", "Embed", Embed, network.streams[0], network.streams[0], layer=network.embed)
        stages = [first, *_stages(layers, needed, network.streams[0], "", 2, ())]
        if maps is not None:
            runs = _runs(layers, "", 2)
            last = dict(zip(runs, maps, strict=True))  # of several runs the last
            stages = [replace(stage, patterns=last.get(stage.number)) for stage in stages]
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


def _stages(
    layers: Sequence[Any], needed: Sequence[Any], stream: Stream, prefix: str, first: int, repeats: tuple
) -> Iterator[Stage]:
    entering = streams(tuple(layers), stream)
    for number, (layer, after, enters) in enumerate(zip(layers, needed[1:], entering, strict=False), start=first):
        name = f"{prefix}{number}"
        leaves = layer.follow(enters)
        match layer:
            case Repeat():
                inner = through(layer.layers, steady_needs(layer, after, enters), enters)
                yield from _stages(layer.layers, inner, enters, f"{name}.", 1, (*repeats, (name, layer.times)))
            case Attention():
                asks = askers(layer, after)
                yield Stage(
                    name, _attention_words(layer), Attention, enters, leaves, repeats, _heads(layer), asks,
                    seen(layer, asks, enters), layer, layer.skip is not None,
                )  # fmt: skip
            case Linear():
                where = "across tokens" if layer.across else "on each token"
                yield Stage(name, f"Linear, {where}", Linear, enters, leaves, repeats, layer=layer)
            case Softmax():
                groups = counted(len(layer.groups), "group")
                yield Stage(name, f"Softmax within a token, {groups}", Softmax, enters, leaves, repeats, layer=layer)


def _runs(layers: Sequence[Any], prefix: str, first: int) -> Iterator[str]:
    """The names of attention layers in the order in which they run, once for each run."""
    for number, layer in enumerate(layers, start=first):
        if isinstance(layer, Repeat):
            for _ in range(layer.times):
                yield from _runs(layer.layers, f"{prefix}{number}.", 1)
        elif isinstance(layer, Attention):
            yield f"{prefix}{number}"


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
    inputs = tokens if stream.inputs is None else stream.inputs
    found: dict[Kind, int | None] = {"input": inputs, "register": stream.registers, "state": stream.states}
    return {kind: found[kind] for kind in KINDS if found[kind] != 0}


def legend(circuit: Circuit, patterns: bool) -> str:
    there = {kind for stage in circuit.stages for kind in stage.leaves.kinds}
    words = ", ".join(f"{COLOUR_NAMES[kind]}: {name}s" for kind, name in NAMES.items() if kind in there)
    if any(stage.kind is Attention for stage in circuit.stages):
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
