"""A step in the layout *sequence*, read from stored weights: anchors for each example, and a w for each, in a register.

link   register i asks with w and constants. Tokens are anchors, made by the Embed: an entry of the prompt times a
       number, or a number. Those of example i that are loud have logits slope (w . a_i) + slope_y y_i + offset, and
       values v_k a_i: what is read is a_i times a softmax on w . a_i and y_i. All others are out of reach.
mean   register i weighs all registers alike, and takes minus the rate times the mean of what they have read.

Tokens are otherwise left as they are. Registers may come to differ by rounding (growth.Apart): the link of example i is
then one at another w, off by its slope times |a_i| times how far they are apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.grammar import Attention, Network
from anchorhead.verify.grids.head import Grid
from anchorhead.verify.learners.average import Mean
from anchorhead.verify.learners.heads import Heads
from anchorhead.verify.learners.link import Link
from anchorhead.verify.learners.reading import of_head
from anchorhead.verify.learners.step import Step
from anchorhead.verify.learners.target import Descent
from anchorhead.verify.learners.update import read_body, read_update, speeds, written
from anchorhead.verify.rounding import Arithmetic, power_of_two
from anchorhead.verify.scalar import Part


@dataclass(frozen=True, eq=False)
class Anchors:
    """Of one head, for every example the same: slopes of s and of y, offsets in one or two columns, and values.

    far, steepest   by how much the logits of others are lowered at least, and how steep any logit is at most
    terms           how many products a logit sums
    """

    of_score: np.ndarray
    of_label: np.ndarray
    offsets: np.ndarray
    values: np.ndarray
    far: float
    steepest: float
    terms: int


def read_sequence_step(network: Network, target: Descent, link: Link, _stated: float, model: Arithmetic) -> Step:
    body, w = read_body(network, target, "register")
    require(len(body) == 2 and not target.shrinks, "a step in a sequence is link and mean, without a threshold")
    first, second = body
    v, push = speeds(second, w, target), _pushed(first, w)
    _require_kept(body, [*w, *v], push)
    require(not network.embed.registers[:, [*w, *v]].any(), "w does not start at 0")
    found = [_read_anchors(network, first, head, target, w, [*v, *push]) for head in range(first.heads)]
    plain = not (second.query.any() and second.key.any()) and second.mask == "self+registers" and second.heads == 1
    picks = second.value.shape[1] == target.size and bool(
        (second.value[0] == np.eye(second.value.shape[2])[push]).all()
    )
    require(plain and picks and second.grid is None, "registers do not weigh all registers alike")
    collect = Mean(written(second, w, v)[0], len(network.embed.registers))
    return Step(collect, read_update(second, w, v, target), None, None, (_heads(found, link, model),), carriers="each")


def _pushed(layer: Attention, w: list[int]) -> list[int]:
    """The features that take what registers read, entry by entry, once for every head, and keep nothing else."""
    (push,) = np.nonzero((layer.output != 0).any(axis=(0, 2)))
    fits = len(push) == len(w) == layer.output.shape[2] and bool((layer.output[:, push] == np.eye(len(w))).all())
    skip = layer.skip.on_features()  # type: ignore[union-attr]
    require(fits and not skip[push].any(), "what registers read is not kept apart")
    return push.tolist()


def _require_kept(body: list[Attention], moving: list[int], push: list[int]) -> None:
    """All that the first layer reads, and w and v before the second, stay as they are: layers write nothing to them,
    and skips hand them on."""
    used = np.any([(one != 0).any(axis=(0, 1)) for one in (body[0].query, body[0].key, body[0].value)], axis=0)
    require(not used[push].any(), "registers read what they have read")
    for layer, own in zip(body, (True, False), strict=True):
        skip, outputs = layer.skip.on_features(), (layer.output != 0).any(axis=(0, 2))  # type: ignore[union-attr]
        kept = used.copy()
        kept[moving] = own
        same = bool((skip[kept] == np.eye(len(skip))[kept]).all()) and not outputs[kept].any()
        require(same, "a step changes anchors, or what registers ask for")


def _read_anchors(
    network: Network, layer: Attention, head: int, target: Descent, w: list[int], others: list[int]
) -> Anchors:
    """Logits of register i and token t are sums over rows e of (asks_ie + moving_e . w)(fixed_te + varying_te . p)."""
    embed = network.embed
    require(layer.mask is None and layer.grid is None, "registers do not see all anchors")
    require(embed.source is not None and not len(embed.states), "anchors do not belong to examples")
    source, n = np.asarray(embed.source), len(embed.registers)
    require(embed.tokens == 2 * n and int(source.max()) < n, "there is not one register for each example")
    query, key, value = (of_head(one, head) for one in (layer.query, layer.key, layer.value))
    for rows, unknown in ((query, others), (key, [*w, *others]), (value, [*w, *others])):
        exact = ((rows != 0).sum(axis=1) <= 1).all() and power_of_two(rows).all() and not rows[:, unknown].any()
        require(bool(exact), "a map of a learner that rounds, or reads what is not known")
    read = (key != 0).any(axis=0) | (value != 0).any(axis=0)
    products = (embed.weight[:, read] != 0).sum(axis=2) + (embed.bias[:, read] != 0)
    require(int(products.max()) <= 1, "a feature of an anchor is more than one product")
    asks, moving = embed.registers @ query.T, query[:, w]
    fixed, varying = embed.bias @ key.T, np.einsum("tfj,ef->tej", embed.weight, key)
    held = np.einsum("tfj,cf->tcj", embed.weight, value)
    require(bool(((moving != 0).sum(axis=0) == 1).all()) and not (fixed @ moving).any(), "w is not asked with")
    columns, found, far = np.eye(target.size, embed.weight.shape[2]), [], np.inf
    for i in range(n):
        own, logits = source == i, fixed @ asks[i]
        away = np.concatenate([logits[~own], embed.registers @ key.T @ asks[i]])
        loud = own & (logits > away.max() / 2)
        far = min(far, -float(away.max()), -float(logits[own & ~loud].max(initial=-np.inf)))
        require(bool(loud.any()) and far > 0, "an example without anchors, or within reach of others")
        along = np.einsum("ec,tej->tcj", moving, varying[loud])
        beside = np.einsum("e,tej->tj", asks[i], varying[loud])
        constants = asks[i] * fixed[loud]
        single = ((asks[i][:, None] != 0) & (varying[loud] != 0)).sum(axis=1) <= 1
        score, label, values = along[:, 0, 0], beside[:, target.features + 1].copy(), held[loud][:, 0, 0]
        beside[:, target.features + 1] = 0.0
        fits = (along == score[:, None, None] * columns).all() and (held[loud] == values[:, None, None] * columns).all()
        fits = fits and single.all() and not beside.any() and not (embed.bias[loud] @ value.T).any()
        require(bool(fits), "the anchors of an example are not slopes, offsets and values times it")
        used = np.flatnonzero(constants.any(axis=0))
        found.append((score, label, constants[:, used] if len(used) else np.zeros((len(score), 1)), values))
    same = all(a.shape == b.shape and (a == b).all() for one in found for a, b in zip(one, found[0], strict=True))
    require(same, "examples have different anchors")
    asked = np.maximum(np.abs(asks).max(axis=0), np.abs(moving).max(axis=1))
    steepest = float((np.abs(varying).max(axis=(0, 2)) * asked).max())
    score, label, offsets, values = found[0]
    return Anchors(score, label, offsets, values, far, steepest, target.size + 1 + offsets.shape[1])


def _heads(found: list[Anchors], link: Link, model: Arithmetic) -> Heads:
    """The softmaxes as heads for a link of this form."""
    parts, of_label = [], []
    for one in found:
        share = -one.of_score if link.form == "residual" else 0 * one.of_score
        if link.form != "both" and (one.of_label == share).all():
            parts.append(_part(one.of_score, one, model))
        elif link.form == "labelled" and not one.of_score.any():
            of_label.append(_part(one.of_label, one, model))
        else:
            require(link.form == "both" and len(found) == 1, f"anchors are not those of a link of the form {link.form}")
    require(bool(of_label) == (link.form == "labelled"), "a label is not taken off its link")
    steepest = max(float(np.abs([one.of_score, one.of_label]).max()) for one in found)
    require(all(one.steepest <= steepest for one in found), "tokens that are out of reach are steeper than others")
    rest = {"roundings": max(one.terms for one in found) + 1, "far": min(one.far for one in found)}
    grid = _grid(found[0]) if link.form == "both" else None
    return Heads(tuple(parts), tuple(of_label), grid, **rest)


def _part(slopes: np.ndarray, one: Anchors, model: Arithmetic) -> Part:
    require(one.offsets.shape[1] == 1, "an anchor of a link of one variable has two offsets")
    offsets, nothing = one.offsets[:, 0], np.zeros(len(slopes))
    return Part(slopes, offsets, one.values, nothing, nothing, nothing, nothing, nothing, nothing, model)


def _grid(one: Anchors) -> Grid:
    """Anchors as the points of a grid, row by row: slopes and offsets along s, and along y."""
    p = len(np.unique(one.of_score))
    require(len(one.values) % p == 0 and one.offsets.shape[1] == 2, "the anchors of a link are no grid")
    for order in ((0, 1), (1, 0)):
        along, beside = (one.offsets[:, column].reshape(p, -1) for column in order)
        slopes, slopes_y = one.of_score.reshape(p, -1), one.of_label.reshape(p, -1)
        if all((a == a[:, :1]).all() for a in (slopes, along)) and all((b == b[:1]).all() for b in (slopes_y, beside)):
            axes = (slopes[:, 0], along[:, 0]), (slopes_y[0], beside[0])
            return Grid(axes, np.zeros(2), one.values.reshape(p, -1)[..., None], np.zeros(1))
    raise NotVerified("the anchors of a link are no grid")
