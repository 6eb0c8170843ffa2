"""The plan of the evaluation "direct", walked through with forms: what is computed, and how far it is off.

Maps carry forms, as in every walk. What the plan's heads read is explained by the lemma of scalar heads, for those with
a series with the error of `series` in place of a softmax's rounding. What is summed behind heads is taken together with
that sum, so that parts of one function are explained as one.

Folded sums. fl(W scale) and fl(b + W shift) differ from W scale and b + W shift by at most 2u of themselves (float64,
then the dtype; the sum of shifts has twice float64's precision), products with q round once more, and there is one
addend more than reads and bias: 6u (|W| (|scale q| + |shift|) + |b|) is added. Where nothing is folded,
fl(fl(scale q) + shift), with both rounded to the dtype, errs by 4u (|scale q| + |shift|).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from anchorhead.verify.attention import head_hints, merged
from anchorhead.verify.claims import Unit
from anchorhead.verify.context import Context, Reads
from anchorhead.verify.direct.held import CONSTANT, Held, Map
from anchorhead.verify.direct.keys import Keys
from anchorhead.verify.direct.plan import Heads, Softmaxes, Step, plan_of
from anchorhead.verify.direct.series import Series, series_of
from anchorhead.verify.errors import require
from anchorhead.verify.forms import Forms
from anchorhead.verify.grammar import Network
from anchorhead.verify.groups import valued
from anchorhead.verify.readings import Reading, heard, reading
from anchorhead.verify.scalar import Part
from anchorhead.verify.walk import unrolled


def walk_directly(network: Network, context: Context) -> Forms:
    """What is known of what is put out."""
    plan = plan_of(network, unrolled(network.layers))
    inputs = context.exact.of(0)
    rounding = np.full(inputs.shape, context.model.tiny)  # an input below the smallest normal number may become 0
    vector = Forms(inputs.ids, *inputs.arrays[:3], rounding).reshaped(1, inputs.constant.size)
    behind = [*(_entering(step) for step in plan.steps), _leaving(plan.output, plan.steps, vector.shape[1])]
    forms = _mapped(context, behind[0], vector)
    for number, step in enumerate(plan.steps):
        where, taken = f"step {number + 1} of the evaluation 'direct'", behind[number + 1]
        if isinstance(step, Heads):
            folds = step.folds and number + 1 < len(plan.steps) and isinstance(plan.steps[number + 1], Map)
            last = number + 1 + folds == len(plan.steps)
            forms = _after_heads(context, step, forms, taken, folds, last, where)
            continue
        forms = _mapped(
            context, taken, _softmaxes(context, step, forms, where) if isinstance(step, Softmaxes) else forms
        )
    return forms.reshaped(*plan.output.place.shape)


def _entering(step: Step) -> Map:
    """All rows that a step takes of the vector before it."""
    if isinstance(step, Map):
        return step
    maps = [group[0] for group in step.groups]
    return Map(*(np.concatenate([getattr(one, name) for one in maps]) for name in ("weight", "bias", "wrong")))


def _width(step: Step) -> int:
    return len(step.bias) if isinstance(step, Map | Softmaxes) else len(_entering(step).bias)


def _leaving(output: Held, steps: tuple[Step, ...], inputs: int) -> Map:
    """What is put out: entries times powers of two, and constants."""
    place, factor = output.place.reshape(-1), output.factor.reshape(-1)
    weight = np.zeros((len(place), _width(steps[-1]) if steps else inputs))
    rows = np.flatnonzero(place >= 0)
    weight[rows, place[rows]] = factor[rows]
    return Map(weight, np.where(place == CONSTANT, factor, 0.0), np.zeros(len(place)))


def _mapped(context: Context, step: Map, vector: Forms) -> Forms:
    found = context.map(step.weight, step.bias, vector)
    return Forms(found.ids, *found.arrays[:3], found.rounding + _bias_off(context, step))


def _bias_off(context: Context, step: Map) -> np.ndarray:
    """A bias that is a sum of constants is rounded to the dtype; products with powers of two are numbers of it."""
    stored = step.bias.astype(context.model.dtype).astype(np.float64)
    weight = step.weight.astype(context.model.dtype)
    require(bool((weight == step.weight).all()), "direct: a weight that the dtype does not hold")
    return step.wrong + np.where(
        stored == step.bias, 0.0, 1.01 * context.model.unit * np.abs(step.bias) + context.model.tiny
    )


def _softmaxes(context: Context, step: Softmaxes, forms: Forms, where: str) -> Forms:
    pairs: list[Any] = []
    start = 0
    for before, slopes, offsets, values in step.groups:
        for i in range(len(before.bias)):
            pairs.append(
                (_reading(context, forms.features([start + i]), slopes, offsets, 0 * offsets), values[:, :, i].T)
            )
        start += len(before.bias)
    loud = heard([one for one, _ in pairs])
    return valued(
        context, [(one, values) for one, (_, values) in zip(loud, pairs, strict=True)], step.bias, where, None
    )


def _reading(context: Context, t: Forms, slopes: np.ndarray, offsets: np.ndarray, wrong: np.ndarray) -> Reading:
    """Logits fl(fl(slope t) + offset), offsets rounded to the dtype."""
    held = (offsets.astype(context.model.dtype) == offsets) & (wrong == 0)
    exactly = np.where(held, np.abs(offsets), 0.0)
    terms = (offsets != 0).astype(float)
    nothing = np.zeros(len(slopes))
    return reading(
        t, slopes, offsets, np.abs(offsets), exactly, terms, wrong, nothing, context.quantities, context.model
    )


def _after_heads(context: Context, step: Heads, forms: Forms, taken: Map, folds: bool, last: bool, where: str) -> Forms:
    """The rows behind heads, of forms (1, all t); last: they are what is put out."""
    groups: dict[tuple, list[tuple[Reading, np.ndarray, Part]]] = {}
    start = 0
    for before, keys, column in step.groups:
        heads = [forms.features([start + i]) for i in range(len(before.bias))]
        for one, part in _parts(context, heads, keys, column, folds):
            weight, t = taken.weight[:, start], one.t
            start += 1
            if weight.any():
                name = (t.ids.tobytes(), *(array.tobytes() for array in t.arrays), weight.tobytes())
                groups.setdefault(name, []).append((one, weight, part))
    units = []
    for group in groups.values():
        one, weight, _ = group[0]
        hints = head_hints(context, 0, one.t, weight, taken.bias) if last and len(groups) == 1 else {}
        units.append((0, weight, Unit(one, tuple(part for _, _, part in group), hints, np.inf, strict=True)))
    units = merged(context, units)
    reads, extra = [], np.zeros(len(taken.bias))
    for (_, weight, unit), one in zip(units, context.explained([unit for *_, unit in units], where), strict=True):
        series = any(part.direct is not None for part in unit.parts)
        if one is None:
            require(not series, "direct: a head with a series that is no function of the program")
            reads.append(context.between(weight, unit))
            continue
        reads.append(Reads(weight[:, None], one.form, np.array([one.reach]), np.array([float(len(unit.parts))])))
        if folds and series:
            extra = (
                extra
                + 6 * context.model.unit * (np.abs(weight) * one.reach + np.abs(taken.bias))
                + 8 * context.model.tiny
            )
    if not reads:
        return Forms.constants(taken.bias[None])
    found = context.added(reads, taken.bias, None, None)
    return Forms(found.ids, *found.arrays[:3], found.rounding + extra + _bias_off(context, taken))


def _parts(context: Context, heads: list[Forms], keys: Keys, column: int, folds: bool) -> list[tuple[Reading, Part]]:
    """For each t of a group the reading and the softmax; with the error of its series, where it has one."""
    readings = [_reading(context, t, keys.slopes, keys.offsets, keys.wrong) for t in heads]
    loud = [one for one in heard(readings) if one is not None]
    left_out = np.setdiff1d(loud[0].keys, keys.live)
    require(not len(left_out), "direct: a key that is left out may be heard")
    series = series_of(keys.slopes[keys.live], keys.offsets[keys.live], keys.values[keys.live, column], context.model)
    nothing = np.zeros(len(keys.slopes))
    whole = [replace(one.logits, values=keys.values[:, column], value_error=nothing) for one in readings]
    if series is None:
        return [(one, part.only(one.keys)) for one, part in zip(loud, whole, strict=True)]
    require(not keys.wrong.any(), "direct: a head with a series whose offsets are sums")
    ends = min(one.ends[0] for one in readings), max(one.ends[1] for one in readings)
    direct = _direct(series, *ends, folds)
    return [(one, replace(part.only(keys.live), direct=direct)) for one, part in zip(readings, whole, strict=True)]


def _direct(series: Series, low: float, high: float, folds: bool) -> tuple[float, float]:
    """How far the read of a series is off, and a bound on |scale q| + |shift| where these are summed as they are."""
    error, size = series.error(low, high), sum(series.magnitude(low, high))
    if folds:
        return error, size
    return error + 4 * series.model.unit * size + 4 * series.model.tiny, 0.0
