"""The layers of a network that runs many learners: all choices are features of its prompt.

Tokens are the rows of the prompt; two registers that carry w and -w; the anchors of all links as further registers; a
state that reads w at the end. Before the steps, w is copied from the prompt's start row. A step is three attentions:

    score     row i asks the registers of w and -w alone with h x_i and reads tanh(h s_i); two sharpnesses, weighted,
              make s_i = w . x_i, and the skip adds -a_i
    link      row i asks the anchors; those of other links than its flag's are out of reach. The skip adds -b_i
    collect   the register of w asks the rows: logits h g_i, values v_i, as in incontext.squared; that of -w with -h

Rows and registers that a layer does not mean are left out by `grid` (only the first registers are seen) or are out of
reach. So a step costs a multiple of the number of rows. The weights themselves stand in
proof.descent.descent_many_form.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anchorhead.incontext.link_heads import LinkHead
from anchorhead.network import Attention, Embed, Linear, Network, Repeat
from anchorhead.proof.descent.descent_many_form import (
    OUT_OF_REACH,
    Slots,
    Weights,
    collect_weights,
    last_weights,
    link_weights,
    score_weights,
    start_weights,
)
from anchorhead.targets.many_learners import ManyLearners

ROOM = 2.0**40
"""A score so large that anchors of other links come within reach."""
SHARES = ((1.0, 4 / 3), (2.0, -1 / 3))
"""Sharpnesses in units of h, and their weights: h^3 cancels."""


def many_network(target: ManyLearners, links: Sequence[LinkHead], sharpness: float, dtype: str) -> Network:
    """The network; sharpness: h of scores and of the collected gradient, a power of two."""
    slots = Slots(target, max(len(link.parts) for link in links))
    registers = _registers(slots, links)
    heads = tuple((scale * sharpness, share / (scale * sharpness)) for scale, share in SHARES)
    start, *step = (
        _attention(weights, slots.names(), does, dtype)
        for weights, does in (
            (start_weights(slots), "starts with w = 0"),
            (score_weights(slots, heads), "the score of each example"),
            (link_weights(slots, len(registers)), "the link that the prompt names"),
            (collect_weights(slots, tuple((h, -o) for h, o in heads)), "the gradient"),
        )
    )
    read = _attention(last_weights(slots), tuple(f"w{j}" for j in range(target.weights)), "reads w", dtype)
    layers = [_embed(slots, registers, dtype), start, Repeat(tuple(step), target.steps), read]
    return Network(layers, output="state").approximating(target.record())


def _attention(weights: Weights, names: tuple[str, ...], does: str, dtype: str) -> Attention:
    return Attention(
        weights.query.astype(dtype),
        weights.key.astype(dtype),
        weights.value.astype(dtype),
        weights.output.astype(dtype),
        skip=None if weights.skip is None else Linear(weights.skip.astype(dtype), features=names),
        grid=weights.grid,
        features=names,
        labels=(does,) * len(weights.query),
    )


def _registers(slots: Slots, links: Sequence[LinkHead]) -> np.ndarray:
    """w and -w, then the anchors of each link and of its mirror image -phi(-s); in the order of the flags."""
    first = np.zeros((2, slots.width))
    first[:, slots.sign] = 1, -1
    first[:, slots.offset] = -OUT_OF_REACH
    steepest = max(float(np.abs(part.slopes).max()) for link in links for part in link.parts)
    away = 2.0 ** np.ceil(np.log2(max(steepest, 1.0))) * ROOM
    rows = [first]
    for number, link in enumerate(links):
        for negative, sign in enumerate((1.0, -1.0)):
            block = np.zeros((max(len(part) for part in link.parts), slots.width))
            block[:, slots.gates] = -away
            block[:, slots.gates.start + 2 * number + negative] = 0
            for k, part in enumerate(link.parts):
                slopes, offsets, values = part.astype(np.float64)
                block[len(part) :, slots.offset[k]] = -OUT_OF_REACH
                block[: len(part), slots.slope[k]] = sign * slopes
                block[: len(part), slots.offset[k]] = offsets
                block[: len(part), slots.value[k]] = sign * values[:, 0]
            rows.append(block)
    registers = np.concatenate(rows)
    registers[:, [slots.register, slots.columns.no_example]] = 1
    return registers


def _embed(slots: Slots, registers: np.ndarray, dtype: str) -> Embed:
    c = slots.columns
    bias, state = np.zeros(slots.width), np.zeros((1, slots.width))
    bias[slots.one] = 1
    state[0, c.no_example] = 1
    return Embed(
        np.eye(slots.width, c.count, dtype=dtype),
        bias.astype(dtype),
        registers=registers.astype(dtype),
        states=state.astype(dtype),
        features=slots.names(),
    )
