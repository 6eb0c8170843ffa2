"""The paper's single-head theorem: n truncated linear functions, one a token, by one softmax head over p anchors.

The first linear map stretches n tokens to p. With the anchors L_k = middle + spacing k, k = -(p-1)/2 ... (p-1)/2, and
the query q_i = (w_i . x_i + t_i - middle) / spacing, the logits are

    2c q_i k - c k^2 = -c (q_i - k)^2 + c q_i^2,

and the last term is common to all anchors: softmax selects the anchors nearest to q_i. The paper's sharpness is
beta = c / spacing^2; in units of the spacing, keys are whole or half numbers, which floating point holds exactly. The
value of an anchor is k, and the output map scales it back: middle + spacing sum_k w_k k. (The paper writes keys as
2 beta L_k and -beta L_k^2 and values as L_k: the same function, another scale and origin.)

With a map G from anchors to output features, the value of anchor k is L_k in feature G(k).
"""

from __future__ import annotations

import numpy as np

from anchorhead.constructions.layouts.feature_names import outputs_called
from anchorhead.language.targets.ramp import TruncatedLinear
from anchorhead.network import Attention, Embed, Network
from anchorhead.network.dtypes import stored
from anchorhead.proof.heads.ramp import Lattice

NAME = "single head"


def spacing(low: float, high: float, anchors: int) -> float:
    """Anchors at both ends of the range and evenly between."""
    return (high - low) / (anchors - 1)


def switches(low: float, high: float, outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the nearest anchor's output feature changes, and the features between: half-way between two anchors."""
    changes = np.flatnonzero(np.diff(outputs))
    return low + (high - low) * (changes + 0.5) / (len(outputs) - 1), outputs[np.append(changes, len(outputs) - 1)]


def network(target: TruncatedLinear, scale: Lattice, outputs: np.ndarray, sharpness: float, dtype: str) -> Network:
    """The theorem's network; `sharpness` is c, `outputs` the output feature of each anchor."""
    tokens, inputs = target.w.shape
    anchors = len(outputs)
    # where tokens outnumber anchors, every anchor stands on equally many tokens, which changes no softmax
    places = anchors * -(-tokens // anchors)
    k = np.arange(places) % anchors - (anchors - 1) / 2
    several = target.outputs > 1
    names = ["query", "one", "anchor (its place in spacings from the middle)", "minus anchor squared"]
    constants = [np.zeros(places), np.ones(places), k, -(k**2)]
    if several:
        names += [f"anchor's value in output {g}" for g in range(target.outputs)]
        values = np.linspace(target.low, target.high, anchors)[np.arange(places) % anchors]
        constants += [np.where(outputs[np.arange(places) % anchors] == g, values, 0.0) for g in range(target.outputs)]
    table = np.stack(constants, axis=1)
    weight = np.zeros((tokens, len(names), inputs))
    weight[:, 0] = target.w / scale.spacing
    table[:tokens, 0] = (target.t - scale.middle) / scale.spacing

    query, key = np.zeros((1, 2, len(names))), np.zeros((1, 2, len(names)))
    query[0, 0, 0] = query[0, 1, 1] = 1.0
    key[0, 0, 2], key[0, 1, 3] = 2 * sharpness, sharpness
    value = np.eye(len(names))[None, 4:] if several else np.eye(len(names))[None, 2:3]
    output = np.eye(target.outputs)[None] * (1.0 if several else scale.spacing)
    bias = None if several else np.array([scale.middle], dtype)
    features = outputs_called(target.outputs)
    labels = (f"clips to [{target.low:g}, {target.high:g}]",)
    return Network(
        [
            Embed(
                stored(weight, dtype),
                stored(table[:tokens], dtype),
                registers=stored(table[tokens:], dtype) if places > tokens else None,
                tokens=tokens,
                features=tuple(names),
            ),
            Attention(
                *(stored(a, dtype) for a in (query, key, value, output)), bias=bias, features=features, labels=labels
            ),
        ]
    )
