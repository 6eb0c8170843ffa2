"""Softmax self-attention: queries, keys and values are linear maps of the one sequence."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from anchorhead.errors import AnchorheadError
from anchorhead.network.linear import Linear
from anchorhead.network.stream import Kind, Stream, counts, names, weight
from anchorhead.read_only import ReadOnly

Mask = Literal["causal", "self+registers", "registers+states"]
MASKS: tuple[Mask, ...] = ("causal", "self+registers", "registers+states")


@dataclass(frozen=True, eq=False)
class Attention(ReadOnly):
    """For a token i that asks, over the tokens k that it sees:

        y_i = skip(x_i) + bias + sum_h O_h sum_k softmax_k((Q_h x_i) . (K_h x_k)) V_h x_k

    query   Q (heads, size, features)
    key     K (heads, size, features), or (1, size, features) where the heads share their keys
    value   V (heads, value size, features), or (1, value size, features) where they share their values
    output  O (heads, outputs, value size)
    bias    (outputs,)
    mask    none: a token sees all tokens. "causal": an input sees the registers, itself and the inputs before
            it; a register sees registers; a state sees all. "self+registers": a token sees itself and the
            registers. "registers+states": a token sees the registers and the states, a register sees registers
    skip    none, or a Linear on each token that is added
    grid    none, or the sides of a tensor grid: the first registers are its points, row by row, and nothing else
            is seen. The key size splits into one block an axis; block j of a register's key depends on its index
            along axis j alone (it is read at the register whose other indices are 0), so logits are sums over
            axes. A grid of one axis sees the first so many registers
    labels  what each head does, in words
    """

    query: Float[np.ndarray, "heads size features"]
    key: Float[np.ndarray, "key_heads size features"]
    value: Float[np.ndarray, "value_heads value_size features"]
    output: Float[np.ndarray, "heads outputs value_size"]
    bias: Float[np.ndarray, " outputs"] | None = None
    mask: Mask | None = None
    skip: Linear | None = None
    grid: tuple[int, ...] | None = None
    features: tuple[str, ...] | None = None
    labels: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        for name in ("query", "key", "value", "output"):
            set_(self, name, weight(getattr(self, name), f"Attention's {name}", (3,)))
        if self.bias is not None:
            set_(self, "bias", weight(self.bias, "Attention's bias", (1,)))
            if len(self.bias) != self.outputs:
                raise AnchorheadError(f"Attention makes {self.outputs} features, but its bias has {len(self.bias)}")
        self._check_sizes()
        if self.mask is not None and not (isinstance(self.mask, str) and self.mask in MASKS):
            allowed = ", ".join(f'"{mask}"' for mask in MASKS)
            raise AnchorheadError(f"mask={self.mask!r} of an Attention: None or one of {allowed}")
        if self.skip is not None:
            self._check_skip(self.skip)
        if self.grid is not None:
            set_(self, "grid", self._checked_grid())
        set_(self, "features", names(self.features, self.outputs))
        set_(self, "labels", names(self.labels, self.heads, "head"))

    def _check_sizes(self) -> None:
        shapes = {name: getattr(self, name).shape for name in ("query", "key", "value", "output")}
        (heads, size, width), key, value, output = shapes.values()
        fits = (
            key in ((heads, size, width), (1, size, width))
            and value[0] in (1, heads)
            and value[2] == width
            and output[0] == heads
            and output[2] == value[1]
        )
        if not fits:
            listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            raise AnchorheadError(
                f"Attention's weights do not fit together: {listed}. Needed: query (heads, size, features), "
                "key (heads or 1, size, features), value (heads or 1, value size, features), "
                "output (heads, outputs, value size)"
            )

    def _check_skip(self, skip: Any) -> None:
        if type(skip) is not Linear or skip.across:
            raise AnchorheadError(f"the skip of an Attention is {type(skip).__name__}: a Linear on each token, or None")
        if (skip.inputs, skip.outputs) != (self.width, self.outputs):
            raise AnchorheadError(
                f"Attention maps {self.width} features to {self.outputs}, but its skip {skip.inputs} to {skip.outputs}"
            )

    def _checked_grid(self) -> tuple[int, ...]:
        sides = counts(self.grid, "grid of an Attention, the number of anchors along each axis,")
        if self.query.shape[1] % len(sides):
            raise AnchorheadError(
                f"a grid of {len(sides)} axes needs a key size that {len(sides)} divides, not {self.query.shape[1]}"
            )
        if self.mask is not None:
            raise AnchorheadError(f"an Attention over a grid sees registers alone: leave out mask={self.mask!r}")
        return sides

    @property
    def heads(self) -> int:
        return len(self.query)

    @property
    def width(self) -> int:
        """How many features a token that enters has."""
        return self.query.shape[2]

    @property
    def outputs(self) -> int:
        return self.output.shape[1]

    @property
    def points(self) -> int:
        """How many registers are points of the grid."""
        return 0 if self.grid is None else prod(self.grid)

    def sees(self, asking: Kind, seen: Kind) -> bool:
        """Whether a token of one kind sees any of another."""
        if self.grid is not None or (self.mask is not None and asking == "register"):
            return seen == "register"
        match self.mask:
            case "causal":
                return asking == "state" or seen != "state"
            case "self+registers":
                return seen in (asking, "register")
            case "registers+states":
                return seen != "input"
        return True

    def sees_token(self, asking: Kind, i: Any, seen: Kind, j: Any) -> Any:
        """Whether token i of one kind sees token j of another, each counted among its own: numbers, or arrays of them
        that broadcast."""
        if not self.sees(asking, seen):
            return False
        if self.grid is not None:
            return j < self.points
        if self.mask == "causal" and asking == seen == "input":
            return j <= i
        if self.mask == "self+registers" and seen != "register":
            return i == j
        return True

    def follow(self, stream: Stream) -> Stream:
        """The stream that leaves this layer when `stream` enters it."""
        if stream.width != self.width:
            raise AnchorheadError(f"Attention takes {self.width} features, but what enters it has {stream.width}")
        if self.mask == "registers+states" and not stream.registers + stream.states:
            raise AnchorheadError(
                'an Attention with mask="registers+states" sees nothing in a sequence of inputs alone'
            )
        if self.points > stream.registers:
            sides = " x ".join(str(side) for side in self.grid or ())
            raise AnchorheadError(
                f"Attention over a grid of {sides} needs {self.points} registers; there are {stream.registers}"
            )
        return stream.with_features(self.features or ())
