"""The steps of a lowered network before they are tensors: maps in one where that rounds nothing anew, then torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from anchorhead.network.direct.heads import SeriesHead, SoftmaxHead
from anchorhead.network.direct.held import Refused, power_of_two
from anchorhead.network.direct.series import Series
from anchorhead.network.direct.steps import Affine, Group, Head, Neurons, Picked, Step, affine
from anchorhead.network.direct.two_keys import SigmoidHead, TwoKeys
from anchorhead.network.direct.weighed import Weighed


@dataclass(frozen=True, eq=False)
class AffinePlan:
    weight: Float[np.ndarray, "outputs inputs"]
    bias: Float[np.ndarray, " outputs"]

    @property
    def picks(self) -> bool:
        """Whether every output is an entry times a power of two: before or after it, another map rounds as it did."""
        one = ((self.weight != 0).sum(axis=1) <= 1).all() and power_of_two(self.weight).all()
        return bool(one) and not self.bias.any()

    @property
    def picks_sums(self) -> bool:
        """Whether the same is so behind a sum: times less than 1, products that it adds up may underflow one by one."""
        return self.picks and bool((np.abs(self.weight[self.weight != 0]) >= 1).all())

    def after(self, first: AffinePlan) -> AffinePlan:
        """Both in one; one of them picks."""
        return AffinePlan(self.weight @ first.weight, self.weight @ first.bias + self.bias)


@dataclass(frozen=True, eq=False)
class HeadsPlan:
    """Groups of entries: the map to their queries, and the keys that they meet, one value each.

    folds   whether the map behind them is the sum of their own layer: its rounding is then bounded by what heads may
            read at most, and it can take scale q + shift in place of the reads, which may be much smaller than scale q
            and shift; the rounding of sums of later layers is bounded by the reads
    weighed where they are groups of a Softmax, what outputs take of them
    """

    groups: tuple[tuple[AffinePlan, tuple[np.ndarray, np.ndarray, np.ndarray]], ...]
    folds: bool = True
    weighed: tuple[Weighed, ...] = ()


Plan = AffinePlan | HeadsPlan


def joined(steps: Sequence[Plan]) -> list[Plan]:
    """The steps, with maps in one where that rounds nothing anew; what a map behind heads sums, no other map sums in
    its place: it would take q where the reads are that its rounding is bounded by."""
    found: list[Plan] = []
    for step in steps:
        first, behind = (found[-1] if found else None), len(found) > 1 and isinstance(found[-2], HeadsPlan)
        if isinstance(first, AffinePlan):
            if isinstance(step, AffinePlan) and ((first.picks and not behind) or step.picks_sums):
                found[-1] = step.after(first)
                continue
            if not isinstance(step, AffinePlan) and (
                first.picks or all(before.picks_sums for before, _ in step.groups)
            ):
                found[-1] = replace(step, groups=tuple((before.after(first), keys) for before, keys in step.groups))
                continue
        found.append(step)
    return found


def require_normal(factors: np.ndarray, dtype: str) -> None:
    """Refuses factors that the dtype has no normal numbers for: products of powers of two may leave its range."""
    sizes, limits = np.abs(factors[factors != 0]), np.finfo(dtype)
    if not ((sizes >= float(limits.tiny)) & (sizes <= float(limits.max))).all():
        raise Refused(f"a factor that is no normal number of {dtype}")


def in_torch(
    steps: Sequence[Plan], dtype: str, device: torch.device, series: Callable[..., Series | TwoKeys | None]
) -> tuple[Step, ...]:
    """The steps; the scale and the shift of what heads give go into the map behind them."""
    found: list[Step] = []
    rest = list(steps)
    while rest:
        step = rest.pop(0)
        if isinstance(step, AffinePlan):
            found.append(affine(step.weight, step.bias, dtype, device))
            continue
        ways = [series(*keys, dtype) for _, keys in step.groups]
        nothing = [isinstance(way, Series) and way.nothing for way in ways]
        heads = [_head(keys, dtype, device, way) for (_, keys), way in zip(step.groups, ways, strict=True)]
        widths = [len(before.bias) for before, _ in step.groups]
        whole: AffinePlan | None = None
        if step.folds and rest and isinstance(rest[0], AffinePlan):
            scale, shift = (np.repeat([getattr(head, name) for head in heads], widths) for name in ("scale", "shift"))
            whole = _scaled(rest.pop(0), scale, shift)
        kind = {"dtype": getattr(torch, dtype), "device": device}
        ends = np.cumsum([0, *widths])
        taken = [None if whole is None else torch.tensor(whole.weight[:, a:b].T, **kind) for a, b in pairwise(ends)]
        computed = [g for g in range(len(ways)) if whole is None or not nothing[g]]
        if not computed:
            raise Refused("heads of which none is computed")
        befores = [step.groups[g][0] for g in computed]
        shared, asked = _summed_once(befores, [not nothing[g] for g in computed], dtype, device)
        groups = [Group(before, heads[g], taken[g]) for g, before in zip(computed, asked, strict=True)]
        bias = None if whole is None else torch.tensor(whole.bias, **kind)
        unread = [way for g, way in enumerate(ways) if g not in computed and isinstance(way, Series)]
        found += [*shared, Neurons(tuple(groups), bias, tuple(unread))]
    return tuple(found)


def _summed_once(
    befores: Sequence[AffinePlan], heard: Sequence[bool], dtype: str, device: torch.device
) -> tuple[list[Affine], list[Affine | Picked]]:
    """The maps to the queries of groups of heads; where two that are heard ask with one sum, or with powers of two
    times it, a map that computes each sum once, the largest of these, and what picks them.

    Proofs take what several heads of a neuron ask with for one number where its layers compute it once: summed for each
    of them, in an order of its own, it may differ in its last digits, and by all that lies between two values where one
    of the heads is steep."""
    widths = [len(before.bias) for before in befores]
    rows = np.concatenate([np.column_stack([before.weight, before.bias]) for before in befores])
    mantissas, powers = np.frexp(rows)
    lead = np.arange(len(rows)), (rows != 0).argmax(axis=1)
    sign, power = np.where(rows[lead] < 0, -1.0, 1.0), powers[lead]
    mantissas, powers = mantissas * sign[:, None] + 0.0, np.where(rows != 0, powers - power[:, None], 0)
    first, known = np.arange(len(rows)), dict[tuple[bytes, bytes], int]()
    sums = np.repeat([one and not before.picks for one, before in zip(heard, befores, strict=True)], widths)
    summed = np.flatnonzero(sums)
    for number in summed[
        np.argsort(-power[summed], kind="stable")
    ].tolist():  # the largest first: no product underflows
        first[number] = known.setdefault((mantissas[number].tobytes(), powers[number].tobytes()), number)
    if len(known) == np.count_nonzero(sums):
        return [], [affine(before.weight, before.bias, dtype, device) for before in befores]
    times = np.ldexp(sign * sign[first], power - power[first])
    require_normal(np.where(times == 0, np.inf, times), dtype)  # 0 is what float64 has no number for
    each, place = np.unique(first, return_inverse=True)
    ends = np.cumsum([0, *widths])
    picks: list[Affine | Picked] = [Picked.of(place[a:b], times[a:b], dtype, device) for a, b in pairwise(ends)]
    return [affine(rows[each, :-1], rows[each, -1], dtype, device)], picks


def _scaled(behind: Any, scale: np.ndarray, shift: np.ndarray) -> AffinePlan:
    """The map of scale q + shift as one of q; its bias is rounded once, as a sum of twice float64's precision is."""
    total, rest = behind.bias, np.zeros(len(behind.bias))
    for column, one in zip(behind.weight.T, shift, strict=True):
        product, lost = _product(column, one)
        total, missed = _sum(total, product)
        rest = rest + (lost + missed)
    return AffinePlan(behind.weight * scale, total + rest)


def _sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a + b in float64, and what that has lost (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _product(a: np.ndarray, b: float) -> tuple[np.ndarray, np.ndarray]:
    """a b in float64, and what that has lost (Dekker): halves of 26 bits have products that float64 holds."""
    total = a * b
    (a1, a2), (b1, b2) = _halves(a), _halves(np.float64(b))
    return total, ((a1 * b1 - total) + a1 * b2 + a2 * b1) + a2 * b2


def _halves(a: Any) -> tuple[Any, Any]:
    mantissa, power = np.frexp(a)  # of which no product overflows
    scaled = mantissa * 134_217_729.0
    high = scaled - (scaled - mantissa)
    return np.ldexp(high, power), np.ldexp(mantissa - high, power)


def _head(
    keys: tuple[np.ndarray, np.ndarray, np.ndarray], dtype: str, device: torch.device, found: Series | TwoKeys | None
) -> Head:
    if found is None:
        return SoftmaxHead(*keys, dtype, str(device))
    if isinstance(found, TwoKeys):
        return SigmoidHead(found, dtype, str(device))
    return SeriesHead(found, dtype, str(device))
