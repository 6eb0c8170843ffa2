"""A network as readers of layouts look at it: they take the numbers that are free in a step from where these stand.

What else is in the network they do not ask: it must be the one that the layout writes from these numbers (written.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from anchorhead.errors import CertificateError
from anchorhead.heads.atom import Dtype, Part
from anchorhead.network import Attention, Embed, Network, Repeat


@dataclass(frozen=True, eq=False)
class Stored:
    """Its Embed, with registers and states that may be none, and the attentions of a step."""

    embed: Embed
    registers: Float[np.ndarray, "registers width"]
    states: Float[np.ndarray, "states width"]
    body: tuple[Attention, ...]
    dtype: Dtype

    @classmethod
    def of(cls, network: Network, attentions: int, states: int) -> Stored:
        """With so many attentions a step, and so many states."""
        embed, repeat = network.embed, network.layers[-2] if len(network.layers) > 2 else None
        layers = repeat.layers if isinstance(repeat, Repeat) else ()
        body = tuple(layer for layer in layers if isinstance(layer, Attention))
        none = np.zeros((0, embed.weight.shape[-2]))
        registers, held = (none if one is None else one for one in (embed.registers, embed.states))
        if not len(body) == len(layers) == attentions or len(held) != states:
            raise CertificateError(f"a step is not of {attentions} attentions, or there are not {states} states")
        return cls(embed, registers, held, body, "float32" if network.dtype == "float32" else "float64")

    def require_width(self, width: int) -> None:
        """That tokens have so many features, so that one can say where each stands."""
        if {self.embed.weight.shape[-2], *(layer.width for layer in self.body)} != {width}:
            raise CertificateError(f"not all of its tokens have {width} features")

    def part(self, rows: np.ndarray, places: tuple[int, int, int], hidden: float) -> Part:
        """What rows hold as slopes, offsets and values, but for those that are lowered so far."""
        slopes, offsets, values = rows[rows[:, places[1]] != -hidden][:, list(places)].T
        return Part.of(slopes, offsets, values, self.dtype)
