"""Linear maps on a sequence, kept in the structure that they have."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from anchorhead.errors import AnchorheadError
from anchorhead.network.stream import Stream, names, weight
from anchorhead.read_only import ReadOnly


@dataclass(frozen=True, eq=False)
class Linear(ReadOnly):
    """An affine map. With X of shape (tokens, features), by the dimension of `weight`:

    2  dense on each token:           Y = X W^T + b,                  W (outputs, features)
    3  block diagonal on each token:  Y_g = X_g W_g^T + b_g,          W (blocks, outputs each, features each)
    2 or 3 with `mix` (Kronecker):    Y = mix (X W^T) + b,            mix (tokens out, tokens in)
    4  dense on the whole sequence:   Y_jo = sum W_jonf X_nf + b_jo,  W (tokens out, outputs, tokens in,
                                                                         features)

    `bias` is (outputs,), or (tokens out, outputs) where the map acts across tokens. A map across tokens takes
    all tokens, registers and states included; what leaves it are input tokens only.
    """

    weight: Float[np.ndarray, "..."]
    bias: Float[np.ndarray, "..."] | None = None
    mix: Float[np.ndarray, "out in"] | None = None
    features: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "weight", weight(self.weight, "Linear's weight", (2, 3, 4)))
        if self.mix is not None:
            set_(self, "mix", weight(self.mix, "Linear's mix", (2,)))
            if self.weight.ndim == 4:
                raise AnchorheadError("Linear with a weight on the whole sequence (dimension 4) takes no mix")
        if self.bias is not None:
            set_(self, "bias", weight(self.bias, "Linear's bias", (1, 2) if self.across else (1,)))
            if self.bias.shape[-1] != self.outputs:
                raise AnchorheadError(f"Linear makes {self.outputs} features, but its bias has {self.bias.shape[-1]}")
            if self.bias.ndim == 2 and len(self.bias) != self.tokens_out:
                raise AnchorheadError(f"Linear makes {self.tokens_out} tokens, but its bias is for {len(self.bias)}")
        set_(self, "features", names(self.features, self.outputs))

    @classmethod
    def identity(cls, features: tuple[str, ...], dtype: str) -> Linear:
        return cls(np.eye(len(features), dtype=dtype), features=features)

    @property
    def across(self) -> bool:
        """Whether the map mixes tokens."""
        return self.mix is not None or self.weight.ndim == 4

    @property
    def outputs(self) -> int:
        match self.weight.shape:
            case (outputs, _) | (_, outputs, _, _):
                return outputs
            case (blocks, outputs, _):
                return blocks * outputs
            case shape:
                raise AnchorheadError(f"Linear's weight has shape {shape}")

    @property
    def inputs(self) -> int:
        blocks = self.weight.shape[0] if self.weight.ndim == 3 else 1
        return blocks * self.weight.shape[-1]

    @property
    def tokens_in(self) -> int | None:
        return self.mix.shape[1] if self.mix is not None else self.weight.shape[2] if self.across else None

    @property
    def tokens_out(self) -> int | None:
        return self.mix.shape[0] if self.mix is not None else self.weight.shape[0] if self.across else None

    def follow(self, stream: Stream) -> Stream:
        """The stream that leaves this layer when `stream` enters it."""
        if stream.width != self.inputs:
            raise AnchorheadError(f"Linear takes {self.inputs} features, but what enters it has {stream.width}")
        if not self.across:
            return stream.with_features(self.features or ())
        if stream.tokens != self.tokens_in:
            count = "any number of" if stream.tokens is None else stream.tokens
            raise AnchorheadError(f"Linear mixes {self.tokens_in} tokens, but what enters it has {count} tokens")
        return Stream(self.tokens_out, 0, 0, self.features or ())

    def on_features(self) -> Float[np.ndarray, "outputs inputs"]:
        """The dense matrix that acts on the features of a token (of dimension 2 or 3 only)."""
        if self.weight.ndim == 2:
            return self.weight
        blocks, outputs, inputs = self.weight.shape
        dense = np.zeros((blocks, outputs, blocks, inputs), self.weight.dtype)
        dense[np.arange(blocks), :, np.arange(blocks), :] = self.weight
        return dense.reshape(blocks * outputs, blocks * inputs)

    def dense(self) -> Float[np.ndarray, "..."]:
        """The whole map as one matrix: (outputs, features), or both times the tokens if it mixes them."""
        if self.weight.ndim == 4:
            return self.weight.reshape(self.weight.shape[0] * self.weight.shape[1], -1)
        return self.on_features() if self.mix is None else np.kron(self.mix, self.on_features())

    def absolute(self) -> Linear:
        """The map with |W| and |b|: it carries bounds on |x| forward, without its bias bounds on errors."""
        arrays = {name: getattr(self, name) for name in ("weight", "bias", "mix")}
        return replace(self, **{name: None if a is None else np.abs(a) for name, a in arrays.items()})

    def __call__(self, x: np.ndarray, bias: bool = True) -> np.ndarray:
        """The map in numpy, on all tokens of a sequence in order: for analysis, not for speed."""
        if self.weight.ndim == 4:
            y = np.einsum("jonf,...nf->...jo", self.weight, x)
        else:
            y = self._on_each(x)
            y = y if self.mix is None else self.mix @ y
        return y if self.bias is None or not bias else y + self.bias

    def _on_each(self, x: np.ndarray) -> np.ndarray:
        if self.weight.ndim == 2:
            return x @ self.weight.T
        blocks, outputs, inputs = self.weight.shape
        y = np.einsum("goi,...gi->...go", self.weight, x.reshape(*x.shape[:-1], blocks, inputs))
        return y.reshape(*x.shape[:-1], blocks * outputs)
