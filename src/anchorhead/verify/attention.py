"""What is known after an Attention: readings of every token that asks, explained by lemmas, and added up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from anchorhead.verify.claims import Unit
from anchorhead.verify.constant import constant_softmax
from anchorhead.verify.context import Context, Reads, Step, Tokens, every
from anchorhead.verify.direct import NOTHING, Otherwise
from anchorhead.verify.errors import require
from anchorhead.verify.forms import Forms, joined
from anchorhead.verify.grammar import KINDS, Attention, Stream
from anchorhead.verify.grids.tensor import GridReading, grid_reading
from anchorhead.verify.joint import Taken, in_motion, read
from anchorhead.verify.named import Claimed, Parts
from anchorhead.verify.readings import Reading, heard, lowered, seen

Heads = list[tuple[Reading | GridReading | None, np.ndarray]]
"""For each head the reading of one token, and the tokens that it sees."""


def after_attention(context: Context, layer: Attention, tokens: Tokens, asking: set[str], place: int) -> Tokens:
    """Tokens after the layer at this place; asking: the kinds whose answers are explained."""
    where = f"layer {place + 1} (Attention)"
    inputs, registers, states = (tokens[kind].shape[0] if kind in tokens else 0 for kind in KINDS)
    stream = Stream(inputs, registers, states, 0)
    shown = every(tokens)
    keys = [context.map(weight, None, shown) for weight in layer.key]
    values = [context.map(weight, None, shown) for weight in layer.value]
    bias = np.zeros(layer.outputs) if layer.bias is None else layer.bias
    result: Tokens = {}
    for kind, forms in tokens.items():
        kept, carry = _skipped(context, layer, forms)
        queries = context.map(layer.query.reshape(-1, layer.query.shape[2]), None, forms)
        _require_logits(context, layer, queries, keys)
        if kind not in asking:
            means = [context.mean(out, values[min(h, len(values) - 1)]) for h, out in enumerate(layer.output)]
            result[kind] = context.added(means, bias, kept, carry)
            continue
        apart = context.apart(layer.query.reshape(-1, layer.query.shape[2]), forms)
        named: list[Parts] = [{} for _ in range(forms.shape[0])]
        if kind == "input":
            named = context.named.at(place, len(named), layer.query.shape[0], layer.value.shape[1])
        asked = [
            _asked(context, layer, queries.tokens([i]), apart[i], seen(layer, stream, kind, i), keys, bool(named[i]))
            for i in range(forms.shape[0])
        ]
        loud = iter(heard([one for heads in asked for one, _ in heads if isinstance(one, Reading)]))
        asked = [
            [(next(loud) if isinstance(one, Reading) else one, visible) for one, visible in heads] for heads in asked
        ]
        reads = _reads(context, layer, asked, values, named, f"{where}, {kind} tokens")
        rows = [context.added(own, bias, kept.tokens([i]), carry) for i, own in enumerate(reads)]
        result[kind] = joined(rows)
    return result


def _skipped(context: Context, layer: Attention, forms: Forms) -> tuple[Forms, np.ndarray]:
    """What a skip is applied to, and its matrix. A bias of its own makes it a sum of its own."""
    if layer.skip is None:
        return forms, np.zeros((layer.outputs, forms.shape[1]))
    if layer.skip.bias is None:
        return forms, layer.skip.on_features()
    return context.map(layer.skip.on_features(), layer.skip.bias, forms), np.eye(layer.outputs)


def _require_logits(context: Context, layer: Attention, queries: Forms, keys: list[Forms]) -> None:
    """No logit overflows, nor does K^T q, by which q . K x may be computed as (K^T q) . x where K picks: infinities
    would be no numbers in the means."""
    heads, size, _ = layer.query.shape
    asked = context.size(queries).max(axis=0).reshape(heads, size)
    for h in range(heads):
        which = min(h, len(keys) - 1)
        back = float((asked[h] @ np.abs(layer.key[which])).max())
        largest = max(back, float(asked[h] @ context.size(keys[which]).max(axis=0)))
        require(largest < context.model.largest / 4, "a logit may overflow")


def _asked(
    context: Context,
    layer: Attention,
    queries: Forms,
    apart: np.ndarray,
    visible: np.ndarray,
    keys: list[Forms],
    named: bool,
) -> Heads:
    """The readings of one token that sees these, of its queries, each of which rounds by `apart`. Whatever is said to
    compute a function that is given is a grid, be it of one axis."""
    heads, size, _ = layer.query.shape
    shown: dict[int, Forms] = {}
    found: Heads = []
    for h in range(heads):
        which = min(h, len(keys) - 1)
        shown.setdefault(which, keys[which].tokens(visible))
        mine = slice(h * size, (h + 1) * size)
        query = queries.features(mine)
        sides = layer.grid or (len(visible),)
        if len(sides) > 1 or (named and context.exact.given is not None):
            one = grid_reading(query, shown[which], sides, context.exact, context.model)
        else:
            one = lowered(query, shown[which], context.quantities, context.model)
            if one is not None and isinstance(one.number, int):
                row = layer.query[h, one.number]
                one = replace(one, number=row.tobytes(), rounded=float(apart[mine][one.number]))
        found.append((one, visible))
    return found


def _reads(
    context: Context, layer: Attention, asked: list[Heads], values: list[Forms], named: list[Parts], where: str
) -> list[list[Reads]]:
    """What every token reads, of whose heads this is named."""
    taken: list[list[Taken]] = [[] for _ in asked]
    reads: list[list[Reads]] = [[] for _ in asked]
    copies = 0
    for i, heads in enumerate(asked):
        readings = [one if isinstance(one, Reading) else None for one, _ in heads]
        moving = in_motion((readings[h], one) for (h, _), one in named[i].items())
        for h, (one, visible) in enumerate(heads):
            value, output = values[min(h, len(values) - 1)], layer.output[h]
            claimed = [named[i].get((h, c)) for c in range(value.shape[1])]
            if isinstance(one, GridReading):
                reads[i] += _grids(context, one, output, value.tokens(visible), claimed, where)
                continue
            if one is None:
                reads[i].append(context.anything(output, value.tokens(visible), where))
                continue
            own = value.tokens(visible[one.keys])
            still = [c for c, of in enumerate(claimed) if one.still and (of is None or of.of not in moving)]
            if still:
                reads[i].append(_constant(context, one, output[:, still], value.tokens(visible).features(still)))
                copies += 1
            for c in sorted(set(range(own.shape[1])) - set(still)):
                column, weight = own.features([c]), output[:, c]
                shown = value.tokens(visible).features([c])
                if shown.zero.all() or not weight.any():
                    continue
                if not column.fixed.all():
                    reads[i].append(context.anything(weight, column, where))
                    continue
                require(not (one.cancels and context.model.direct), _CANCELS)
                *direct, series = _directly(context, one, shown, softmax=False)
                if column.zero.all() and direct == [0.0, 0.0]:
                    continue
                read_of, wrong = column.constant[:, 0], column.error[:, 0]
                part = replace(one.logits, values=read_of, value_error=wrong, direct=tuple(direct), series=series)
                unit = Unit(one, (part,), claimed[c])
                taken[i].append(Taken(weight, np.zeros(len(weight)), unit))
    if copies:
        context.steps.append(Step(where, "constant softmax", f"{copies} heads that copy or average", 0.0))
    nothing = Reads(np.zeros((layer.outputs, 1)), Forms.constants(np.zeros((1, 1))), np.zeros(1), np.ones(1))
    found = read(context, taken, where)
    return [[*mine, *more] or [nothing] for mine, more in zip(reads, found, strict=True)]


_CANCELS = "direct: a head on a number that no input moves, though it is rounded"


def _constant(context: Context, one: Reading, output: np.ndarray, values: Forms) -> Reads:
    """What is read of some columns of the values by a softmax whose weights no input moves. Where it asks with a number
    that is rounded, it is off by what that moves as a softmax, and otherwise by so much at most and by `_directly`."""
    own = values.tokens(one.keys)
    form, size = constant_softmax(one.logits, one.far, own, context.quantities, context.model)
    columns = [values.features([c]) for c in range(own.shape[1])]
    error, most = np.array([_directly(context, one, column, softmax=True)[:2] for column in columns]).T
    form, size = Forms(form.ids, *form.arrays[:3], form.rounding + error), np.maximum(size, most)
    return Reads(output, form, size, np.ones(len(size)))


def _directly(context: Context, one: Reading, column: Forms, softmax: bool) -> Otherwise:
    """How far a head on t may be off, of what size, where it is not computed as a softmax; column: all its values;
    softmax: whether it is held against that, or against the series that is given."""
    logits, ends = one.every
    if not context.model.direct:
        return NOTHING
    require(not one.cancels or bool(logits.slopes.any()), _CANCELS)
    if not logits.slopes.any():
        return NOTHING
    exactly = column.fixed.all() and not (column.error.any() or logits.wrong_slope.any())
    require(bool(exactly), "direct: a head whose keys or values depend on the input, or are rounded")
    offsets = logits.offsets  # as numbers of the dtype they are off by as much as logits where t is 0, or less
    off = np.where(logits.wrong > 0, 2 * logits.logit_error(np.zeros(1), np.abs(offsets)), 0.0)
    return context.directly.read(logits.slopes, offsets, column.constant[:, 0], ends, off, softmax)


def _grids(
    context: Context,
    one: GridReading,
    output: np.ndarray,
    values: Forms,
    claimed: list[Claimed | None],
    where: str,
) -> list[Reads]:
    """What is read of a grid, column by column."""
    found = []
    for c, of in enumerate(claimed):
        column, weight = values.features([c]), output[:, c]
        own = values.tokens(one.places.reshape(-1)).features([c])
        if own.zero.all() or not weight.any():
            continue
        exactly = own.fixed.all() and not own.error.any()
        if of is None or context.grids is None or not exactly:
            found.append(context.anything(weight, column, where))
            continue
        form, size, words = context.grids.explain(one, column.constant[:, 0], of.of)
        context.steps.append(Step(where, "grid head", words, float(form.approximation[0, 0])))
        found.append(Reads(weight[:, None], form, np.array([size]), np.ones(1)))
    return found
