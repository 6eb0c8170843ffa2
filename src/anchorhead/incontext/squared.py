"""Squared loss: one attention layer a step, its heads alike but for their sharpness h.

The state token carries w and asks; the examples are the keys, once with either sign. With r_i = w . x_i - y_i the
logits are h r_i and -h r_i and the values x_i and -x_i, so one head reads

    (sum_i x_i sinh(h r_i)) / (sum_i cosh(h r_i)) = h g + O(h^3),    g = mean of r_i x_i, the gradient.

Two sharpnesses, h and 2h, weighted 4/3 and -1/3, leave h^5. The state's own key is out of reach, and so are registers.
A threshold is one more layer.
"""

from __future__ import annotations

import numpy as np

from anchorhead.incontext.threshold import OUT_OF_REACH, with_threshold
from anchorhead.network import Attention, Embed, Linear, Network, Repeat
from anchorhead.targets.descent import Descent


def squared_network(target: Descent, sharpness: float, dtype: str) -> Network:
    """The network of a descent on the squared loss, certificate left out.

    sharpness   h, a power of two, so that queries are exact
    """
    d, weights = target.features, target.weights
    names = [*(f"x{j}" for j in range(d)), "sign", "label", "is no example", *entry_names(target)]
    sign, label, kind, w = d, d + 1, d + 2, d + 3
    v = w + weights
    width = len(names)
    pick = np.eye(width)
    state = pick[kind]
    columns = [*range(d), *([sign] if target.intercept else [])]
    slots = range(w, w + weights)

    one = np.stack([*pick[list(slots)], pick[kind]])
    query = np.stack([np.concatenate([h * one, pick[None, kind]]) for h in (sharpness, 2 * sharpness)])
    key = np.concatenate([pick[columns], -pick[None, label], -OUT_OF_REACH * pick[None, kind]])
    output = np.zeros((2, width, weights))
    for head, (h, share) in enumerate(((sharpness, 4 / 3), (2 * sharpness, -1 / 3))):
        for start in (w, v) if target.momentum else (w,):
            output[head, start : start + weights] = -target.rate * share / h * np.eye(weights)
    attention = Attention(
        query.astype(dtype),
        key[None].astype(dtype),
        pick[None, columns].astype(dtype),
        output.astype(dtype),
        skip=Linear(kept(target, width, w).astype(dtype), features=tuple(names)),
        features=tuple(names),
        labels=tuple(f"the gradient, at sharpness {h:g}" for h in (sharpness, 2 * sharpness)),
    )
    embed = Embed(
        np.eye(width, d + 2, dtype=dtype),
        np.zeros(width, dtype),
        states=state[None].astype(dtype),
        features=tuple(names),
    )
    read = Linear(pick[list(slots)].astype(dtype), features=tuple(weight_names(target, "w")))
    layers = [embed, Repeat((attention,), target.steps), read]
    network = Network(layers, output="state").approximating(target.record())
    return with_threshold(network, target, w, kind, state)


def balanced_sharpness(residual: float, dtype: str) -> float:
    """The power of two where 13 (h r)^4, what two sharpnesses leave, meets the rounding 8 u / h, 4 times over."""
    unit = float(np.finfo(dtype).eps) / 2
    return float(2.0 ** round(np.log2((8 * unit / (52 * residual**4)) ** 0.2)))


def weight_names(target: Descent, letter: str) -> list[str]:
    return [*(f"{letter}{j}" for j in range(target.features)), *([f"{letter} of the intercept"] * target.intercept)]


def entry_names(target: Descent) -> list[str]:
    """What the entries of w, and with momentum those of v, are called."""
    return [*weight_names(target, "w"), *(weight_names(target, "v") if target.momentum else [])]


def kept(target: Descent, width: int, w: int) -> np.ndarray:
    """The skip: w (1 - rate decay) + momentum v, and for v the same without w."""
    result = np.eye(width)
    slots = np.arange(w, w + target.weights)
    shrink = target.rate * target.decays
    result[slots, slots] = 1 - shrink
    if target.momentum:
        steps = slots + target.weights
        result[slots, steps] = target.momentum
        result[steps, steps] = target.momentum
        result[steps, slots] = -shrink
    return result
