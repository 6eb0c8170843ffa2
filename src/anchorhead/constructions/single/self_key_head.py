"""The smallest proven head for an activation, on the whole line where it has one: the token's own key beside registers.

Smooth activations come from the table that ships with the package, those made of lines and exponentials are built and
proven on the spot, whatever their parameters. Others are heads of registers alone, on an interval: one softmax that the
solver of `ah.head` finds. There max(1, |s|) >= 1 makes an absolute bound a relative one.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from anchorhead.errors import AnchorheadError
from anchorhead.given import checked_within
from anchorhead.heads.atom import Atom, Dtype
from anchorhead.heads.self_keys.self_key import SelfKeyHead
from anchorhead.heads.self_keys.self_key_closed import closed
from anchorhead.heads.solver.problem import Problem
from anchorhead.heads.solver.search import Search
from anchorhead.heads.solver.single import Solution
from anchorhead.heads.solver.summed import Sums
from anchorhead.heads.tables.self_key_table import SelfKeyFrontier, known_functions, self_key_frontier
from anchorhead.heads.tables.table import lookup
from anchorhead.language.expressions.activation_names import NEARLY, activation_of
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.targets import ScalarTarget
from anchorhead.network.dtypes import dtype_name
from anchorhead.proof.arithmetic.arithmetic import require_model
from anchorhead.proof.self_key.self_key import proven
from anchorhead.proof.self_key.self_key_rounding import REACH

MAX_REGISTERS = 40
_AIM = 0.8  # of the error asked for: what an estimate leaves for the proof


def self_key_head(
    activation: str | Expression,
    within: float,
    dtype: Any = "float64",
    low: float = -math.inf,
    high: float = math.inf,
) -> SelfKeyHead:
    """The head with the fewest registers whose proven bound is at most `within`, relative to max(1, |s|).

    activation  a name of torch's or transformers' ("gelu", "gelu_new"), an expression in x, or an Expression
    low, high   where it is needed. Heads for gelu, relu and their like hold for every s up to 1e30 in float32 and 1e290
                in float64, beyond which logits overflow; others need a finite interval
    """
    kind = dtype_name(dtype)
    within = checked_within(within)
    if not low < high:
        raise AnchorheadError(f"low={low!r}, high={high!r}: give low < high")
    if isinstance(activation, str) and activation in NEARLY:
        near, apart = NEARLY[activation]
        if within <= apart:
            raise AnchorheadError(
                f"within={within:g}: {activation} is {near} up to {apart:g}, and can be had up to that"
            )
        found = self_key_head(near, within - apart, kind, low, high)
        return replace(found, exact=math.nextafter(found.exact + apart, math.inf))
    name, function = activation_of(activation)
    known = _known(name, function, kind)
    if known is not None:
        found = known.within(within)
        if found is None:
            raise _out_of_reach(name, within, kind, known.heads[-1].bound)
        return _on(found, low, high)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise AnchorheadError(
            f"{name} has no head for the whole line: give low and high, between which it is needed. On the whole line "
            f"{', '.join(known_functions())} have one"
        )
    return _registers_alone(name, function, within, kind, float(low), float(high))


@lru_cache(maxsize=64)
def _known(name: str, function: Expression, dtype: Dtype) -> SelfKeyFrontier | None:
    """From the table; else in closed form, proven on the spot."""
    shipped = self_key_frontier(name, dtype, str(require_model(dtype)))
    if shipped is not None and shipped.heads:
        return shipped
    head = closed(function, name, dtype)
    return None if head is None else SelfKeyFrontier(name, dtype, (proven(head, function),))


def _on(head: SelfKeyHead, low: float, high: float) -> SelfKeyHead:
    """The head, if it holds where it is needed."""
    reach = REACH[head.dtype]
    for end in (low, high):
        if math.isfinite(end) and not head.low <= end <= head.high:
            raise AnchorheadError(
                f"{end:g} is beyond {reach:g}, where the logits of a head for {head.function} overflow in {head.dtype}"
            )
    return head


def _registers_alone(
    name: str, function: Expression, within: float, dtype: Dtype, low: float, high: float
) -> SelfKeyHead:
    """One softmax on [low, high]: from the table of heads, else solved for."""
    best = math.inf
    for atom in _atoms(name, function, within, dtype, low, high):
        head = _of_atom(atom, name, low, high)
        head = proven(head, function)
        if head.bound <= within:
            return head
        best = min(best, head.bound)
    raise _out_of_reach(name, within, dtype, best, f" on [{low:g}, {high:g}]")


def _atoms(name: str, function: Expression, within: float, dtype: Dtype, low: float, high: float) -> list[Atom]:
    """Heads of one part that may do, the smallest first."""
    known = lookup(name, low, high, dtype, str(require_model(dtype)))
    shipped = [entry for entry in known.heads if len(entry.atom.parts) == 1] if known is not None else []
    if any(entry.bound <= within for entry in shipped):
        return [entry.atom for entry in shipped if entry.bound <= within][:2]
    target = ScalarTarget((function,), low, high)
    search = Search(Problem.of(target.values, target.kinks, low, high), dtype, aim=_AIM * within)
    found: list[Solution] = []
    top = MAX_REGISTERS
    for way in search.ways:
        if isinstance(way, Sums):
            continue
        for solution in search.climb(way, top):
            found += [solution] if len(solution.atom.parts) == 1 else []
            if solution.total <= _AIM * within:
                top = solution.atom.anchors - 1
    # the smallest of those that reach the aim, else the one that comes closest
    found.sort(key=lambda solution: (max(solution.total, _AIM * within), solution.atom.anchors))
    return [solution.atom for solution in found[:1]]


def _of_atom(atom: Atom, name: str, low: float, high: float) -> SelfKeyHead:
    """The atom with its origin moved to 0."""
    part = atom.parts[0]
    offsets = part.offsets.astype(np.float64) - part.slopes.astype(np.float64) * atom.origin
    columns = (part.slopes, offsets.astype(atom.dtype), part.values[:, 0])
    bias = float(atom.bias[0])
    return SelfKeyHead(name, *columns, None, 0.0, bias, 0.0, low, high, atom.dtype, math.inf, math.inf)


def _out_of_reach(name: str, within: float, dtype: Dtype, best: float, where: str = "") -> AnchorheadError:
    wider = ", or float64" if dtype == "float32" else ""
    can = f"{best:.3g} can be reached" if math.isfinite(best) else "nothing can be proven"
    return AnchorheadError(
        f"within={within:g} is out of reach for {name}{where} in {dtype}: {can}. Ask for more{wider}"
    )
