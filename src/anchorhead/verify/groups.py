"""What is known after Linear, Softmax, Linear: every group of features is a head, whose values are the last weights.

The numbers w_k V_ok of all groups are added up in one sum. Values of one group in several outputs are multiples of one
another, up to rounding: V_ok = take_o v_k + off_ok, and sum_k w_k |off_ok| <= max_k |off_ok|. So a group is explained
once, for v. Where groups may be computed as heads (`direct`), off_o is also how far c_o b_k is from take_o v_k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from anchorhead.verify.claims import Unit
from anchorhead.verify.constant import constant_softmax
from anchorhead.verify.context import Context, Reads, Tokens, every
from anchorhead.verify.direct import NOTHING, Weighed
from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.forms import Forms, joined
from anchorhead.verify.grammar import Linear, Softmax
from anchorhead.verify.joint import Taken, in_motion, read
from anchorhead.verify.named import Claimed
from anchorhead.verify.readings import Reading, heard, lowered
from anchorhead.verify.rounding import FOLDED, OWN_UNIT, SLACK, Arithmetic

Groups = list[tuple[Reading | None, Claimed | None, slice]]
"""The reading of each group of a token, what is claimed of it, and which features the group is."""


def after_groups(
    context: Context, before: Linear, softmax: Softmax, after: Linear, tokens: Tokens, linear: Tokens, place: int
) -> Tokens:
    """Tokens after the three layers, the first at this place; linear: what is known between the first two. Where the
    last is across tokens, claims count groups one token after the other."""
    where, each = f"layer {place + 1} (Linear)", len(softmax.groups)
    count = linear["input"].shape[0]
    named = context.named.at(place, *((1, count * each) if after.across else (count, each)))
    parts = [
        [named[0].get((i * each + g, 0)) if after.across else named[i].get((g, 0)) for g in range(each)]
        for i in range(count)
    ]
    inputs = _readings(context, before, softmax, tokens, parts)
    loud = iter(heard([one for row in inputs for one, _, _ in row]))
    inputs = [[(next(loud), part, own) for _, part, own in row] for row in inputs]
    if after.across:
        require(after.mix is None and set(linear) == {"input"}, "a mix, or registers, after a Softmax are not modelled")
        out, outputs = after.weight.shape[:2]
        flat = after.weight.reshape(out * outputs, after.weight.shape[2], -1)
        read = [(one, part, flat[:, i, own]) for i, row in enumerate(inputs) for one, part, own in row]
        bias = None if after.bias is None else np.broadcast_to(after.bias, (out, outputs)).reshape(-1)
        return {"input": valued(context, read, bias, where).reshaped(out, outputs)}
    weight = after.on_features()
    result: Tokens = {}
    for kind, forms in linear.items():
        if kind == "input":
            rows = [[(one, part, weight[:, own]) for one, part, own in row] for row in inputs]
            found = [valued(context, row, after.bias, f"{where}, token {i}") for i, row in enumerate(rows)]
            result[kind] = joined(found)
        else:
            result[kind] = context.map(weight, after.bias, shares(forms))
    return result


def shares(forms: Forms) -> Forms:
    """Of what leaves a softmax: numbers from 0 to 1, up to rounding."""
    low = np.zeros(forms.shape)
    return Forms.between(low, low + 1 + 1e-3)


def _readings(
    context: Context, before: Linear, softmax: Softmax, tokens: Tokens, parts: list[list[Claimed | None]]
) -> list[Groups]:
    """The groups of every input token that leaves the first map."""
    if not before.across:
        dense, x = before.on_features(), tokens["input"]
        bias = np.zeros(len(dense)) if before.bias is None else before.bias
        every_one = [(x.tokens([i]), i, dense, bias) for i in range(x.shape[0])]
    else:
        require(before.mix is None, "a mix before a Softmax is not modelled")
        out, width = before.weight.shape[:2]
        x = every(tokens)
        x = x.reshaped(1, x.shape[0] * x.shape[1])
        rows = before.weight.reshape(out, width, -1)
        biases = np.zeros((out, width)) if before.bias is None else np.broadcast_to(before.bias, (out, width))
        every_one = [(x, 0, rows[i], biases[i]) for i in range(out)]
    return [_groups(context, *one, softmax.groups, own) for one, own in zip(every_one, parts, strict=True)]


def _groups(
    context: Context,
    x: Forms,
    token: int,
    weight: np.ndarray,
    bias: np.ndarray,
    groups: Sequence[int],
    parts: Sequence[Claimed | None],
) -> Groups:
    """Logits W x + b of one token, of so many: its features ask rows of W."""
    found: Groups = []
    first = 0
    for size, part in zip(groups, parts, strict=True):
        own = slice(first, first + size)
        first += size
        toward = context.exact.entry(*part.of.entry).argument if part is not None and part.of.own_logits else None
        given = x, Forms.constants(weight[own]), context.quantities, context.model, bias[own]
        alone = lowered(*given)
        one = alone if toward is None else lowered(*given, toward)
        if one is alone and one is not None and isinstance(one.number, int):
            one = replace(one, number=(token, one.number))
        elif alone is not None and context.model.direct:
            constant = not isinstance(alone.number, int) and weight[own].any()
            require(not constant, "direct: a group whose logits are multiples of a constant")
            if one is None:
                raise NotVerified("direct: a group whose logits are said to be of another number than they are")
            one = replace(one, every=alone.every)  # whatever is said of them, they may be computed as those of a head
        found.append((one, part, own))
    return found


def valued(context: Context, groups: list, bias: np.ndarray | None, where: str) -> Forms:
    """sum over groups of sum_k V_ok w_k + bias, (1, outputs), for readings, what is claimed of each, and V (outputs,
    features)."""
    outputs = len(groups[0][2])
    taken: list[Taken] = []
    reads: list[Reads] = []
    moving = in_motion((one, part) for one, part, _ in groups)
    heads = _as_heads(context, [(one, values) for one, _, values in groups])
    more = [
        (head.take != 0) * (_counted(v[:, one.keys]) - 1)
        for (one, _, v), head in zip(groups, heads, strict=True)
        if head
    ]
    few = sum(more, np.zeros(outputs)) < 2
    for (one, claimed, values), head in zip(groups, heads, strict=True):
        if one is None:
            between = context.anything(np.eye(outputs), Forms.constants(values.T), where)
            reads.append(replace(between, terms=np.full(outputs, float(values.shape[1]))))
            continue
        own = values[:, one.keys]
        if not own.any() and head is None:
            continue
        still = one.still and (claimed is None or claimed.of not in moving)
        if (still and not _follows(head, claimed)) or not own.any():
            form, size = constant_softmax(
                one.logits, one.far, Forms.constants(own.T), context.quantities, context.model
            )
            if head is not None:
                error, most, _ = head.read(softmax=True)
                apart = _apart(head, one, own, most, context.model, few) + np.abs(head.take) * error
                form = Forms(form.ids, *form.arrays[:3], form.rounding + apart * SLACK)
                size = np.maximum(size, np.abs(head.take) * most * SLACK)
            reads.append(Reads(np.eye(outputs), form, size, np.full(outputs, float(len(one.keys)))))
            continue
        base = own[np.abs(own).max(axis=1).argmax()]
        if claimed is not None and claimed.values is not None:
            require(values.shape[1] <= len(claimed.values), "fewer values are named than a group has")
            base = claimed.values[one.keys]
        require(base.any(), "a group whose values are said to be multiples of nothing")
        large = np.abs(base) > 1e-3 * np.abs(base).max()  # rounding of small values says nothing of how much is taken
        ratios = own[:, large] / base[large]
        take = ratios.min(axis=1) / 2 + ratios.max(axis=1) / 2
        wrong = np.abs(own - take[:, None] * base).max(axis=1) + 4 * OWN_UNIT * np.abs(own).max(axis=1)
        *direct, series = NOTHING
        if head is not None:
            whole = one.logits.whole  # logits of the number that heads ask with are off by as much as all of them
            error, size, series = head.read(softmax=whole)
            wrong = np.maximum(wrong, _apart(head, one, take[:, None] * base, size, context.model, few))
            require(bool((take != 0)[head.take != 0].all()), "direct: values of a group that are taken otherwise")
            ratios = np.divide(head.take, take, out=np.zeros(outputs), where=take != 0)
            most = float(np.abs(ratios).max()) * SLACK
            wrong = wrong + (np.abs(head.take) * error * SLACK if whole else 0.0)
            direct = [0.0 if whole else most * error, most * size]
            if series is not None:
                runs = head.base[one.keys]
                top = int(np.abs(runs).argmax())
                ratio = float(base[top] / runs[top]) if runs[top] else 0.0  # the same for all groups of one base
                apart = np.abs(head.take - ratio * take) + 4 * OWN_UNIT * np.abs(head.take)
                wrong, series = wrong + apart * size * SLACK, replace(series, alpha=series.alpha * ratio)
        part = replace(one.logits, values=base, value_error=np.zeros(len(base)), direct=tuple(direct), series=series)
        taken.append(Taken(take, wrong, Unit(one, (part,), claimed), _counted(own)))
    reads += read(context, [taken], where)[0]
    if not reads:
        return Forms.constants((np.zeros(outputs) if bias is None else bias)[None])
    return context.added(reads, bias, None, None)


def _as_heads(context: Context, pairs: list) -> list[Weighed | None]:
    """The heads as which groups may be computed, by the evaluation that they are in one sum for."""
    if not context.model.direct or len({values.shape[1] for _, values in pairs}) > 1:
        return [None] * len(pairs)
    every = [None if one is None or one.every[0].whole else one.every for one, _ in pairs]
    logits = [None if one is None else (one[0].slopes, one[0].offsets, one[1]) for one in every]
    return context.directly.weighed(logits, np.stack([values for _, values in pairs], axis=1))


def _counted(values: np.ndarray) -> int:
    """How many keys some output takes: products with 0 are 0, and sums with it round nothing."""
    return int(np.count_nonzero(values.any(axis=0)))


def _follows(head: Weighed | None, claimed: Claimed | None) -> bool:
    """Whether a group is computed by a series: that need not be constant where a single key is heard."""
    return head is not None and claimed is not None and head.read(softmax=False)[2] is not None


def _apart(
    head: Weighed, one: Reading, meant: np.ndarray, size: float, model: Arithmetic, few: np.ndarray
) -> np.ndarray:
    """How far what outputs take of a head, of this size, is from values (outputs, keys) that they are meant to take;
    few: which sums have no terms to spare for it."""
    live = head.live[one.keys]
    own = head.take[:, None] * head.base[one.keys]
    largest = np.abs(own).max(axis=1)
    apart = np.abs(own - meant)[:, live].max(axis=1, initial=0.0) + 4 * OWN_UNIT * largest
    return apart + 2 * few * model.unit * largest + FOLDED * model.tiny * (1 + size)
