"""The layout *sequence*: any link, two attentions a step, tokens for every anchor of every example.

Token (i, k) is anchor k as it meets example i: slope_k a_i and slope'_k y_i, each a product that may round (heads.py),
an offset along the score and one along the label, the address of i, a 1 in the part of the link's head to which k
belongs, and value_k a_i. The register of example i carries w, and asks for i. Addresses are the bits of i and their
opposites, what is asked for has these halves exchanged: the product counts in how many bits two numbers differ.

*link*. The register of i asks with (w, 1, 1, 1, -reach its address, -reach at other parts, -reach): logits slope_k (w .
a_i) + slope'_k y_i + offset_k + offset'_k at its own anchors of the head's part, and all else is lower by reach: other
addresses and parts, and registers, whose last entry is 1. What it reads, phi of its argument times a_i, is its `push`.

*mean*. Registers see registers alone, all logits are exactly 0, and values are pushes: every register adds -rate times
their mean to its own w, and these round each on their own (growth.Apart).

Anchors ask too, and what they add to their own push, w and v nobody reads: keys and values of *link* are of features
that no layer changes.
"""

from __future__ import annotations

import numpy as np

from anchorhead.verify.errors import require
from anchorhead.verify.grammar import Embed
from anchorhead.verify.grids.head import Grid
from anchorhead.verify.learners.average import Mean
from anchorhead.verify.learners.heads import Heads, part_of
from anchorhead.verify.learners.step import Step
from anchorhead.verify.learners.update import read_update
from anchorhead.verify.learners.written import Features, Given, attention, linear


def read_sequence(given: Given) -> Step:
    target, embed = given.target, given.network.embed
    require(not target.shrinks, "a sequence has no threshold")
    size, n, inputs = target.size, len(embed.registers), target.features + 2
    columns, bits = np.eye(size, inputs), (n - 1).bit_length()
    speeds = size * (target.momentum > 0)
    parts = embed.weight.shape[1] - (4 * bits + 4 + 4 * size + speeds)
    require(n > 0 and parts > 0, "tokens have other features than those of this layout")
    f = Features(
        x=size, y=1, offset=1, offset_y=1, address=2 * bits, part=parts, one=1, value=size, asks=2 * bits, w=size,
        v=speeds, push=size,
    )  # fmt: skip
    link, mean = given.layers(2, f, inputs)
    each = len(embed.weight) // n
    fits = len(embed.weight) == len(embed.bias) == n * each > 0 and link.query.shape[1] > f.at["one"][0]
    require(fits, "examples do not have the same number of anchors")
    slopes, values = (embed.weight[:each, f.at[name][0], 0] for name in ("x", "value"))
    labels = embed.weight[:each, f.at["y"][0], -1]
    offsets = embed.bias[:each, f.at["offset"] + f.at["offset_y"]]
    which = embed.bias[:each, f.at["part"]].argmax(axis=1)
    require(set(which.tolist()) == set(range(parts)), "a head of the link has no anchors")
    weight, bias = np.zeros((each, f.width, inputs)), np.zeros((n, each, f.width))
    weight[:, f.at["x"]], weight[:, f.at["value"]] = (one[:, None, None] * columns for one in (slopes, values))
    weight[:, f.at["y"][0], -1] = labels
    bias[:, :, f.at["offset"] + f.at["offset_y"]], bias[:, :, f.at["part"]] = offsets, np.eye(parts)[which]
    code = (np.arange(n)[:, None] >> np.arange(bits)) & 1
    bias[:, :, f.at["address"]] = np.concatenate([code, 1 - code], axis=1)[:, None]
    registers = np.tile(f.token(one=1.0), (n, 1))
    registers[:, f.at["asks"]] = np.concatenate([1 - code, code], axis=1)

    reach = -float(link.query[0, f.at["one"][0], f.at["one"][0]])
    query = np.zeros((parts, f.at["one"][0] + 1, f.width))
    query[:, f.at["x"]] = f("w")
    query[:, f.at["y"] + f.at["offset"] + f.at["offset_y"]] = f("one")
    query[:, f.at["address"]], query[:, f.at["one"]] = -reach * f("asks"), -reach * f("one")
    for head, others in enumerate(~np.eye(parts, dtype=bool)):
        query[head, np.array(f.at["part"])[others]] = -reach * f("one")
    push = np.stack([f("push").T] * parts)
    keys, stays = np.eye(f.at["one"][0] + 1, f.width), np.eye(f.width)
    stays[f.at["push"]] = 0.0
    update, outputs, skip, output = read_update(target, mean, f)
    nothing = np.zeros((1, f.width))
    body = [
        attention(query, keys, f("value"), push, stays),
        attention(nothing[None], nothing, f("push"), output, skip, "self+registers"),
    ]
    rows = np.tile(weight, (n, 1, 1)), bias.reshape(n * each, -1)
    written = Embed(*rows, registers, np.zeros((0, f.width)), np.repeat(np.arange(n), each), 2 * n)
    given.require_written(written, [], body, linear(f("w")), "register")
    heads = _heads(given, slopes, labels, offsets, values, which, reach)
    return Step(Mean(float(outputs[0]), n), update, None, None, (heads,), "each")


def _heads(
    given: Given, slopes: np.ndarray, labels: np.ndarray, offsets: np.ndarray, values: np.ndarray, which: np.ndarray,
    reach: float,
) -> Heads:  # fmt: skip
    """The parts of a head as softmaxes of the link's argument, or of the label, or as a grid of both."""
    form, alone = given.links[0].form, np.count_nonzero(np.column_stack([labels, offsets]), axis=1)
    terms = (given.target.size * (slopes != 0) + alone).max()
    steep = float(np.abs(slopes).max()), float(np.abs(labels).max()), float(np.abs(offsets).sum(axis=1).max())
    more = {"roundings": int(terms) + 1, "apart": (*steep, reach)}  # with the product of slope and example
    if form == "both":
        p = len(np.unique(slopes))
        require(not which.any() and len(slopes) % p == 0, "the anchors of a link are no grid")
        along, beside = (np.stack(pair).reshape(2, p, -1) for pair in zip((slopes, labels), offsets.T, strict=True))
        grid = (along == along[:, :, :1]).all() and (beside == beside[:, :1]).all()
        require(bool(grid), "the anchors of a link are no grid")
        axes = (along[0, :, 0], along[1, :, 0]), (beside[0, 0], beside[1, 0])
        return Heads(grid=Grid(axes, np.zeros(2), values.reshape(p, -1)), **more)
    require(not offsets[:, 1].any(), "an anchor of a link has too many offsets")
    parts, of_label = [], []
    for one in range(int(which.max()) + 1):
        own = which == one
        s, y = slopes[own], labels[own]
        argument = (y == (-s if form == "residual" else 0.0)).all()
        require(bool(argument or (form == "labelled" and not s.any())), f"anchors of no link of the form {form}")
        anchors = np.stack([s if argument else y, offsets[own, 0], values[own]], axis=1)
        (parts if argument else of_label).append(part_of(anchors, given.model))
    require(bool(parts) and bool(of_label) == (form == "labelled"), "a label is not taken off its link")
    return Heads(tuple(parts), tuple(of_label), **more)
