"""The first linear map of a network: tokens in, tokens with positions, registers and states out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from anchorhead.errors import AnchorheadError
from anchorhead.network.stream import Stream, is_count, names, weight
from anchorhead.read_only import ReadOnly


@dataclass(frozen=True, eq=False)
class Embed(ReadOnly):
    """The paper's map A. It mixes no tokens: output token i is `weight_i x_source(i) + bias_i`.

    weight     (features, inputs), the same at every position, or (positions, features, inputs)
    bias       (features,) or (positions, features): constants such as positions live here
    registers  (count, features) constant tokens that are appended
    states     (count, features) constant tokens, appended last, that later layers will change
    source     (positions,) which input token each output token reads; none: its own
    tokens     how many input tokens there are; none: any number (then nothing may depend on the position)
    """

    weight: Float[np.ndarray, "..."]
    bias: Float[np.ndarray, "..."]
    registers: Float[np.ndarray, "registers features"] | None = None
    states: Float[np.ndarray, "states features"] | None = None
    source: Int[np.ndarray, " positions"] | None = None
    tokens: int | None = None
    features: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "weight", weight(self.weight, "Embed's weight", (2, 3)))
        set_(self, "bias", weight(self.bias, "Embed's bias", (1, 2)))
        for name in ("registers", "states"):
            if getattr(self, name) is not None:
                set_(self, name, weight(getattr(self, name), f"Embed's {name}", (2,)))
        set_(self, "features", names(self.features, self.weight.shape[-2]))
        if self.tokens is not None:
            if not is_count(self.tokens):
                raise AnchorheadError(
                    f"Embed with tokens={self.tokens!r}: a whole number of at least 1, or None for any"
                )
            set_(self, "tokens", int(self.tokens))
        if self.source is not None:
            self._check_source()
        self._check_sizes()

    def _check_source(self) -> None:
        source = np.array(self.source)
        if self.tokens is None:
            raise AnchorheadError("Embed with a source needs tokens=, the number of input tokens")
        if source.ndim != 1 or source.dtype.kind not in "iu" or not len(source):
            raise AnchorheadError(
                f"Embed's source has shape {source.shape} and dtype {source.dtype}: a list of indices"
            )
        if source.min() < 0 or source.max() >= self.tokens:
            raise AnchorheadError(
                f"Embed's source reads token {source.max() if source.min() >= 0 else source.min()}, "
                f"but the input has tokens 0 to {self.tokens - 1}"
            )
        source = source.astype(np.int64)
        source.flags.writeable = False
        object.__setattr__(self, "source", source)

    def _check_sizes(self) -> None:
        width = self.weight.shape[-2]
        for name in ("bias", "registers", "states"):
            array = getattr(self, name)
            if array is not None and array.shape[-1] != width:
                raise AnchorheadError(f"Embed's weight makes {width} features, but its {name} has {array.shape[-1]}")
        for name, array, dim in (("weight", self.weight, 3), ("bias", self.bias, 2)):
            if array.ndim == dim and self.positions is None:
                raise AnchorheadError(f"Embed's {name} depends on the position: give tokens=, the number of tokens")
            if array.ndim == dim and len(array) != self.positions:
                raise AnchorheadError(f"Embed has {self.positions} positions, but its {name} is for {len(array)}")

    @property
    def inputs(self) -> int:
        """How many features an input token has."""
        return self.weight.shape[-1]

    @property
    def positions(self) -> int | None:
        """How many tokens the input tokens become."""
        return self.tokens if self.source is None else len(self.source)

    def start(self) -> Stream:
        """The stream that leaves this layer."""
        count = [0 if extra is None else len(extra) for extra in (self.registers, self.states)]
        return Stream(self.positions, count[0], count[1], self.features or ())
