"""What every reader of a learner's layers asks of them: their shape, and which features they change, keep and write.

A step of a learner is attentions, each with a skip. Features that neither a head writes nor the skip changes stay as
they are in every token; of the others whoever reads the layer says what becomes of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from jaxtyping import Float

from anchorhead.errors import CertificateError
from anchorhead.heads.atom import Dtype
from anchorhead.network import Attention, Linear, Network, Repeat


@dataclass(frozen=True, eq=False)
class Shown:
    """What rows of a prompt show.

    common    for each kind of row the entries that all of them have in common; kinds of sign 1 and -1 take turns, a
              pair a link; then, if w does not begin with 0, the row that shows where it does, and its negative
    links     how many links there are
    x, values the columns that w is multiplied by, and those that are averaged; label, that of y
    taken     the columns that are taken off scores and off links after they are read
    residual  whether labels are taken off scores as they are read
    """

    columns: int
    common: tuple[dict[int, float], ...]
    links: int
    x: tuple[int, ...]
    values: tuple[int, ...]
    label: int
    taken: tuple[int | None, int | None] = (None, None)
    residual: bool = False

    @property
    def quantities(self) -> int:
        """1, the entries, the score and the link."""
        return self.columns + 3

    @property
    def score(self) -> int:
        return self.columns + 1

    @property
    def link(self) -> int:
        return self.columns + 2

    @property
    def examples(self) -> range:
        """The kinds that are examples."""
        return range(2 * self.links)

    @property
    def starts(self) -> range:
        """The kinds that show where w begins."""
        return range(2 * self.links, len(self.common))

    def entries(self) -> Float[np.ndarray, "kinds columns quantities"]:
        """Every entry as so much of each quantity; one more at the end, 1."""
        found = np.zeros((len(self.common), self.columns + 1, self.quantities))
        found[:, range(self.columns), range(1, self.columns + 1)] = 1.0
        for kind, same in enumerate(self.common):
            for column, number in same.items():
                found[kind, column] = 0.0
                found[kind, column, 0] = number
        found[:, -1, 0] = 1.0
        return found


def refuse(why: str) -> NoReturn:
    raise CertificateError(f"the network is none of this kind of learner: {why}")


def require(good: object, why: str) -> None:
    if not bool(good):
        refuse(why)


def attentions(network: Network, times: int) -> tuple[list[Attention], list[Attention], Linear | Attention]:
    """What comes before the one Repeat of a network, the layers of its body, and what reads w in the end."""
    *before, repeat, last = network.layers[1:] if len(network.layers) > 2 else (None, None)
    if not isinstance(repeat, Repeat) or repeat.times != times or not isinstance(last, Linear | Attention):
        refuse(f"it does not repeat a step {times} times, and then reads w")
    body = [layer for layer in repeat.layers if isinstance(layer, Attention)]
    first = [layer for layer in before if isinstance(layer, Attention)]
    require(len(body) == len(repeat.layers) and len(first) == len(before), "a step is not of attentions alone")
    width = network.embed.weight.shape[-2]
    for layer in (*first, *body):
        alike = layer.skip is not None and layer.skip.bias is None and layer.bias is None and layer.mask != "causal"
        require(alike and layer.width == layer.outputs == width, "an attention of a step has no skip, or more than one")
    return first, body, last


def dtype_of(network: Network) -> Dtype:
    return "float32" if network.dtype == "float32" else "float64"


def skip_of(layer: Attention) -> Float[np.ndarray, "width width"]:
    skip = layer.skip if layer.skip is not None else refuse("an attention has no skip")
    return np.asarray(skip.on_features(), np.float64)


def of_head(weight: np.ndarray, head: int) -> np.ndarray:
    """The rows of a head, where all may share them."""
    return weight[min(head, len(weight) - 1)]


def changed(layer: Attention) -> list[int]:
    """The features that a layer does not keep as they are."""
    kept = (skip_of(layer) == np.eye(layer.width)).all(axis=1) & ~(layer.output != 0).any(axis=(0, 2))
    return np.flatnonzero(~kept).tolist()


def picked(weight: Float[np.ndarray, "picks features"], what: str) -> list[int]:
    """The features that a map picks, each once and as it is."""
    found = np.asarray(weight).argmax(axis=1).tolist()
    good = np.array_equal(weight, np.eye(weight.shape[1])[found]) and len(set(found)) == len(found)
    require(good, f"{what} is not picked as it is")
    return found


def features_of_v(layer: Attention, w: Sequence[int], moves: bool) -> list[int]:
    """Those that, like w, take what the heads of a layer read; none without momentum."""
    others = [f for f in changed(layer) if f not in w]
    if not moves:
        require(not others, "a step changes more than w")
        return []
    places = np.abs(layer.output[0][others]).argmax(axis=0) if others else []
    found = [others[k] for k in places]
    require(sorted(found) == others and len(found) == len(w), "a step does not carry one speed for each entry of w")
    return found


def outputs_of(layer: Attention, w: Sequence[int], v: Sequence[int]) -> tuple[float, ...]:
    """o_a: entry j of what head a reads goes to entry j of w and of v, times o_a."""
    found = np.asarray(layer.output[:, w[0], 0], np.float64)
    every = found[:, None, None] * np.eye(len(w))
    same = layer.output.shape[2] == len(w) and all(np.array_equal(layer.output[:, to], every) for to in (w, v) if to)
    require(same, "what a head reads does not go to w and v alike")
    return tuple(map(float, found))
