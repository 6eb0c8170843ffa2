"""Maxout layers as targets, rewritten as ReLUs without rounding a single weight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Shaped

from anchorhead.errors import AnchorheadError
from anchorhead.given import require_finite
from anchorhead.language.expressions.parser import parse
from anchorhead.language.targets.mlp import IDENTITY, Affine, Hidden, Mlp
from anchorhead.read_only import ReadOnly

MAX_PIECES = 4_096
"""How many affine pieces there may be in all: the layers of the tournament are dense matrices of their number."""


@dataclass(frozen=True, eq=False)
class Maxout(ReadOnly):
    """y_o = max_k (w_ok . x + t_ok)."""

    weight: Float[np.ndarray, "outputs pieces inputs"]
    bias: Float[np.ndarray, "outputs pieces"]

    def __post_init__(self) -> None:
        for name, dims, shape in (("weight", 3, "(outputs, pieces, inputs)"), ("bias", 2, "(outputs, pieces)")):
            try:
                array = np.array(getattr(self, name), dtype=np.float64)
            except (TypeError, ValueError) as error:
                raise AnchorheadError(f"the {name} of a Maxout is not an array of numbers: {error}") from error
            if array.ndim != dims or not array.size:
                raise AnchorheadError(f"the {name} of a Maxout has shape {array.shape}: needed is {shape}")
            require_finite(array, f"the {name} of a Maxout has")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if self.weight.shape[:2] != self.bias.shape:
            raise AnchorheadError(
                f"a Maxout with a weight {self.weight.shape} and a bias {self.bias.shape}: needed are "
                "(outputs, pieces, inputs) and (outputs, pieces)"
            )

    @property
    def outputs(self) -> int:
        return self.weight.shape[0]

    @property
    def pieces(self) -> int:
        return self.weight.shape[1]

    @property
    def inputs(self) -> int:
        return self.weight.shape[2]

    def values(self, x: Float[np.ndarray, "... inputs"]) -> Shaped[np.ndarray, "... outputs"]:
        """y, in extended precision where the machine has it."""
        wide = np.longdouble
        affine = np.einsum("...i,opi->...op", np.asarray(x).astype(wide), self.weight.astype(wide))
        return (affine + self.bias.astype(wide)).max(axis=-1)

    def __str__(self) -> str:
        return f"maxout of {self.pieces} pieces, {self.inputs} -> {self.outputs}"

    def mlp(self, tokens: int | None = None) -> Mlp:
        """The same function of x, in exact arithmetic, as a network of ReLUs.

        A tournament: max(a, b) = b + relu(a - b) with b = relu(b) - relu(-b); one that is left over passes as
        relu(c) - relu(-c). Its ceil(log2 pieces) layers have weights 0, 1 and -1 only. The first layer, without an
        activation, holds the affine pieces as given: their differences would be rounded.
        """
        pieces = Affine(self.weight.reshape(-1, self.inputs), self.bias.reshape(-1))
        if self.pieces == 1:
            return Mlp((), pieces, tokens)
        if self.outputs * self.pieces > MAX_PIECES:
            raise AnchorheadError(
                f"a Maxout with {self.outputs} outputs of {self.pieces} pieces: at most {MAX_PIECES:,} pieces in all "
                "become a network; convert its outputs one by one"
            )
        hidden = [Hidden.of(pieces.weight, pieces.bias, IDENTITY)]
        relu = parse("relu(x)")
        players, read = self.pieces, np.eye(self.pieces)
        while players > 1:
            ask, read, players = _round(players, read)
            hidden.append(Hidden.of(self._for_each_output(ask), np.zeros(self.outputs * len(ask)), relu))
        return Mlp(tuple(hidden), Affine(self._for_each_output(read), np.zeros(self.outputs)), tokens)

    def _for_each_output(self, block: Float[np.ndarray, "rows columns"]) -> Float[np.ndarray, "rows_ columns_"]:
        return np.kron(np.eye(self.outputs), block)


def _round(
    players: int, read: Float[np.ndarray, "players neurons"]
) -> tuple[Float[np.ndarray, "new neurons"], Float[np.ndarray, "winners new"], int]:
    """One round: the arguments of its ReLUs in terms of the neurons before, the winners in terms of its ReLUs.

    Player q is `read[q]` applied to the neurons before. Players of a pair share no neuron, so differences of rows of
    0, 1 and -1 are again such rows.
    """
    asks: list[np.ndarray] = []
    winners: list[list[tuple[int, float]]] = []
    for first in range(0, players, 2):
        kept = read[min(first + 1, players - 1)]
        place = len(asks)
        asks += [kept, -kept]
        winners.append([(place, 1.0), (place + 1, -1.0)])
        if first + 1 < players:
            winners[-1].append((len(asks), 1.0))
            asks.append(read[first] - kept)
    won = np.zeros((len(winners), len(asks)))
    for winner, terms in enumerate(winners):
        for neuron, sign in terms:
            won[winner, neuron] = sign
    return np.array(asks), won, len(winners)
