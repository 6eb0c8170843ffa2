"""Networks of learners as they are laid out.

In every layout few numbers are free: sharpnesses, what heads write, the factors of w and v, anchors. The verifier reads
these where they stand, writes down the whole network from them, and the network of a file must be that one, weight by
weight. So there is nothing in it but what the lemmas of its layout speak of: which token holds what, who sees whom, and
that all others are out of reach, is shown once, where the layout is written down (direct.py, transformer.py,
sequence.py, many.py), and not for each file.

What all of them rest on: a product with 1, 0 or a power of two rounds nothing; a token whose logit is 2 SILENT below
that of another weighs exactly 0; and nothing overflows (finite.py), so that what is multiplied by 0 is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.grammar import Attention, Embed, Linear, Network, Repeat
from anchorhead.verify.learners.link import Link
from anchorhead.verify.learners.same import same
from anchorhead.verify.learners.target import Descent
from anchorhead.verify.rounding import Arithmetic, power_of_two

FAR = 2.0**20
"""What lowers logits of tokens that are not meant, where these are not those of anchors: more than 2 SILENT."""

MAX_TERMS = 2**10
"""Products in a logit, and heads of a layer: gamma of so many roundings is about 2^-14 in float32."""


class Features:
    """The features of tokens, one block after the other: `at` says where those of a name are; called with names, it
    gives rows that pick them."""

    def __init__(self, **counts: int) -> None:
        ends = np.cumsum([0, *counts.values()]).tolist()
        self.at = {name: list(range(a, b)) for name, (a, b) in zip(counts, pairwise(ends), strict=True)}
        self.width = int(ends[-1])

    def __call__(self, *names: str) -> np.ndarray:
        return np.eye(self.width)[[place for name in names for place in self.at[name]]]

    def anchors(self, tokens: np.ndarray) -> np.ndarray:
        """(parts, tokens, 3): slope, offset and value of every part."""
        return tokens[:, self.at["anchors"]].reshape(len(tokens), -1, 3).transpose(1, 0, 2)

    def token(self, **numbers: float) -> np.ndarray:
        """A token that holds these numbers, and 0 in all other features."""
        return sum((number * self(name).sum(axis=0) for name, number in numbers.items()), np.zeros(self.width))


@dataclass(frozen=True, eq=False)
class Given:
    """A network that is said to carry out a descent with links of some form. stated: the bound that is aimed at."""

    network: Network
    target: Descent
    links: tuple[Link, ...]
    stated: float
    model: Arithmetic

    def layers(self, count: int, features: Features, inputs: int) -> tuple[Attention, ...]:
        """The layers of a step, from which free numbers may be read: so many, with skips, between these features."""
        repeat = self.network.layers[-2] if len(self.network.layers) > 1 else None
        body = repeat.layers if isinstance(repeat, Repeat) else ()
        fits = len(body) == count and self.network.embed.weight.shape[1:] == (features.width, inputs)
        for one in body:
            fits = fits and isinstance(one, Attention) and one.skip is not None and one.outputs == features.width
        if not fits:
            raise NotVerified(f"a step of this learner is {count} attentions between {features.width} features")
        few = all(max(one.query.shape[:2]) <= MAX_TERMS for one in body)
        require(few, f"a layer of more than {MAX_TERMS:,} heads, or of logits of more terms")
        return body

    def require_written(
        self, embed: Embed, before: Sequence[Attention], body: Sequence[Attention], last: Any, output: str = "state"
    ) -> None:
        """The network is this one."""
        layers = (*before, Repeat(tuple(body), self.target.times), last)
        require(self.network.output == output, "the network does not put out w")
        require(same(self.network.embed, embed), "the tokens are not those of this learner")
        for number, (one, other) in enumerate(zip(self.network.layers[-2].layers, body, strict=True)):
            require(same(one, other), f"layer {number} of a step is not that of this learner")
        require(same(self.network.layers, layers), "the layers around a step are not those of this learner")


def attention(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, output: np.ndarray, skip: np.ndarray | None,
    mask: str | None = None, grid: tuple[int, ...] | None = None,
) -> Attention:  # fmt: skip
    """A layer; keys and values that all heads share are given once."""
    key, value = (one if one.ndim == 3 else one[None] for one in (key, value))
    return Attention(query, key, value, output, None, mask, None if skip is None else linear(skip), grid)


def link_layer(
    f: Features, asked: np.ndarray, gates: np.ndarray, skip: np.ndarray, mask: str | None, grid: tuple[int, ...] | None
) -> Attention:
    """Whoever asks with these rows, score and 1 first, reads the anchors of each part with a head of its own: slope,
    offset and gates are keys, and the sum of what is read is added to the link."""
    places, eye = np.array(f.at["anchors"]).reshape(-1, 3), np.eye(f.width)
    key = np.stack([np.concatenate([eye[place[:2]], gates]) for place in places])
    output = np.stack([f("link").T] * len(places))
    return attention(np.stack([asked] * len(places)), key, eye[places[:, 2:]], output, skip, mask, grid)


def without(f: Features, name: str, less: np.ndarray | float = 0.0) -> np.ndarray:
    """A skip that keeps all features but one, which becomes something else."""
    kept = np.eye(f.width)
    kept[f.at[name]] = less
    return kept


def powers(stored: np.ndarray) -> tuple[float, ...]:
    """Sharpnesses, which are powers of two."""
    require(bool((stored > 0).all() and power_of_two(stored).all()), "a sharpness that is no power of two")
    return tuple(stored.tolist())


def linear(weight: np.ndarray) -> Linear:
    return Linear(weight, None, None)
