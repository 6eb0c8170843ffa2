"""How large the numbers inside a network can become: |x| bounded, layer by layer, kind by kind.

A softmax average is at most as large as its largest value, so only |W| is needed. Bounds are in float64 and
meant for description and for error analysis that adds its own allowance for rounding. Where nothing tells the
input tokens apart, one row stands for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from anchorhead.network.attention import Attention
from anchorhead.network.embed import Embed
from anchorhead.network.linear import Linear
from anchorhead.network.liveness import Inner
from anchorhead.network.repeat import Repeat
from anchorhead.network.softmax import Softmax
from anchorhead.network.stream import KINDS, Kind

Magnitudes = dict[Kind, Float[np.ndarray, "_ _"]]
MAX_STEPS = 1000
"""How many steps of a Repeat are followed; if its numbers still grow then, nothing is known of them."""


@dataclass(frozen=True)
class Sizes:
    """The largest |logit| and |activation| that a network can meet on its box; infinite if unknown.

    asked   the largest entry of any query, key or value
    """

    logit: float
    activation: float
    asked: float = 0.0


def sizes(layers: tuple[Any, ...], largest_input: Float[np.ndarray, "tokens inputs"]) -> Sizes:
    """Bounds for all inputs with |x| <= largest_input, which has a row for each token, or one for all."""
    with np.errstate(over="ignore", invalid="ignore"):
        now = embedded(layers[0], largest_input)
        met = [Sizes(0.0, _largest(now.values()))]
        for layer in layers[1:]:
            now = after(layer, now, met)
    return Sizes(*(max(getattr(size, name) for size in met) for name in ("logit", "activation", "asked")))


def embedded(embed: Embed, largest_input: Float[np.ndarray, "tokens inputs"]) -> Magnitudes:
    one_for_all = embed.source is None or len(largest_input) == 1
    x = largest_input if one_for_all else largest_input[embed.source]
    tokens = np.einsum("...oi,...i->...o", np.abs(embed.weight.astype(np.float64)), x) + np.abs(embed.bias)
    result: Magnitudes = {"input": tokens}
    if embed.registers is not None:
        result["register"] = np.abs(embed.registers.astype(np.float64))
    if embed.states is not None:
        result["state"] = np.abs(embed.states.astype(np.float64))
    return result


def after(layer: Inner, now: Magnitudes, met: list[Sizes]) -> Magnitudes:
    """Magnitudes after a layer; the largest numbers that it forms are added to `met`."""
    if isinstance(layer, Repeat):
        return _after_repeat(layer, now, met)
    logit = asked = 0.0
    match layer:
        case Linear():
            result = _after_linear(layer.absolute(), now)
        case Softmax():
            logit = _largest(now.values())
            result: Magnitudes = {kind: np.ones_like(x) for kind, x in now.items()}
        case Attention():
            logit, asked, result = _after_attention(layer, now)
    met.append(Sizes(logit, _largest(result.values()), asked))
    return result


def _after_linear(absolute: Linear, now: Magnitudes) -> Magnitudes:
    if absolute.tokens_in is None:
        return {kind: absolute(x) for kind, x in now.items()}
    appended = [now[kind] for kind in KINDS if kind in now and kind != "input"]
    inputs = absolute.tokens_in - sum(len(x) for x in appended)
    x = np.broadcast_to(now["input"], (inputs, now["input"].shape[1]))
    return {"input": absolute(np.concatenate([x, *appended]))}


def _after_repeat(layer: Repeat, now: Magnitudes, met: list[Sizes]) -> Magnitudes:
    """Each step is monotone in the magnitudes: once none of them grows, none ever will."""
    for step in range(layer.times):
        if step == MAX_STEPS or not np.isfinite(_largest(now.values())):
            met.append(Sizes(np.inf, np.inf, np.inf))
            return {kind: np.full_like(x, np.inf) for kind, x in now.items()}
        before = now
        for inner in layer.layers:
            now = after(inner, now, met)
        if layer.times > 1 and all((now[kind] <= before[kind]).all() for kind in now):
            break
    return now


def _after_attention(layer: Attention, now: Magnitudes) -> tuple[float, float, Magnitudes]:
    """The largest logit, the largest entry of a query, key or value, and what leaves the layer."""
    everyone = np.concatenate([now[kind] for kind in KINDS if kind in now])
    largest = everyone.max(axis=0)
    query, key, value, output = (np.abs(getattr(layer, n)) for n in ("query", "key", "value", "output"))
    queries, keys, values = query @ largest, key @ largest, value @ largest
    logit = _largest([(queries * keys).sum(axis=1)])
    asked = _largest([queries, keys, values])
    values = np.broadcast_to(values, (layer.heads, value.shape[1]))
    read = np.einsum("hov,hv->o", output, values) + (0 if layer.bias is None else np.abs(layer.bias))
    skip = None if layer.skip is None else layer.skip.absolute()
    result: Magnitudes = {
        kind: np.broadcast_to(read, (len(x), len(read))) + (0 if skip is None else skip(x)) for kind, x in now.items()
    }
    return logit, asked, result


def _largest(arrays: Iterable[np.ndarray]) -> float:
    """The largest entry; what overflowed on the way (0 times infinity) counts as infinite."""
    largest = float(np.max([array.max() for array in arrays]))
    return np.inf if np.isnan(largest) else largest
