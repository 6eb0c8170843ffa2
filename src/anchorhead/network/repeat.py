"""The same layers, several times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from anchorhead.errors import AnchorheadError
from anchorhead.network.attention import Attention
from anchorhead.network.linear import Linear
from anchorhead.network.softmax import Softmax
from anchorhead.network.stream import Stream, is_count

MAX_STEPS = 1_000_000
"""How many layers a Repeat may run in all, those of a Repeat inside it counted each time."""
MAX_DEPTH = 8
"""How deep a Repeat may stand in others."""


@dataclass(frozen=True, eq=False)
class Repeat:
    """Weight-tied steps: `layers`, one after the other, `times` over. They are stored once."""

    layers: tuple[Attention | Linear | Softmax | Repeat, ...]
    times: int

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "layers", tuple(self.layers))
        if not self.layers:
            raise AnchorheadError("Repeat without layers: give at least one")
        for layer in self.layers:
            if type(layer) not in (Attention, Linear, Softmax, Repeat):
                raise AnchorheadError(
                    f"Repeat holds a {type(layer).__name__}: Attention, Linear, Softmax and Repeat can be repeated"
                )
        if not is_count(self.times):
            raise AnchorheadError(f"Repeat with times={self.times!r}: a whole number of at least 1")
        set_(self, "times", int(self.times))
        if self.steps > MAX_STEPS:
            raise AnchorheadError(f"Repeat with times={self.times!r} runs {self.steps:,} layers: at most {MAX_STEPS:,}")
        if self.depth > MAX_DEPTH:
            raise AnchorheadError(f"Repeat inside Repeat, {self.depth} deep: at most {MAX_DEPTH}")

    @property
    def steps(self) -> int:
        """How many layers run in all."""
        return self.times * ran(self.layers)

    @property
    def depth(self) -> int:
        """1 without a Repeat inside."""
        return 1 + max(layer.depth if isinstance(layer, Repeat) else 0 for layer in self.layers)

    def follow(self, stream: Stream) -> Stream:
        """The stream that leaves this layer when `stream` enters it."""
        after = stream
        for layer in self.layers:
            after = layer.follow(after)
        if self.times > 1 and after.shape != stream.shape:
            raise AnchorheadError(
                f"Repeat needs what leaves it to be shaped like what enters it: {stream} become {after}"
            )
        return after if self.times == 1 else stream


def ran(layers: Iterable[Any]) -> int:
    """How many layers run where these do, those of a Repeat counted each time."""
    return sum(layer.steps if isinstance(layer, Repeat) else 1 for layer in layers)
