"""The heads that a model's activations need: one for each activation, shared by all layers that have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorhead.constructions.single.gate_head import gate_head
from anchorhead.constructions.single.self_key_head import self_key_head
from anchorhead.convert.attention_only.activations import Activation
from anchorhead.errors import AnchorheadError
from anchorhead.heads.self_keys.gate import GateHead
from anchorhead.heads.self_keys.self_key import SelfKeyHead
from anchorhead.heads.self_keys.self_key_powers import powers
from anchorhead.heads.tables.self_key_table import known_functions
from anchorhead.progress import Progress, Status

Heads = SelfKeyHead | GateHead
SHARES = (0.25, 0.5)
"""Of the error asked for: what is tried first."""


@dataclass(frozen=True)
class Need:
    """An activation, with or without a gate, and between what its pre-activations lie in a layer."""

    activation: Activation
    gated: bool
    low: float
    high: float


def heads_for(needs: list[Need], within: float, dtype: str, tell: Progress) -> list[Heads]:
    """A head for each need: those of one activation and kind share one, made for the widest range."""
    ranges: dict[tuple[Activation, bool], tuple[float, float]] = {}
    for need in needs:
        low, high = ranges.get((need.activation, need.gated), (need.low, need.high))
        ranges[need.activation, need.gated] = min(low, need.low), max(high, need.high)
    found: dict[tuple[Activation, bool], Heads] = {}
    for (activation, gated), (low, high) in ranges.items():
        tell(Status(f"solving for heads: {activation.name}{' with a gate' if gated else ''}"))
        if gated and activation.gate is not None:
            found[activation, gated] = gate_head(activation.gate, within, dtype, max(-low, high))
        else:
            found[activation, gated] = _own(activation.head, within, dtype, low, high)
    return [found[need.activation, need.gated] for need in needs]


def _own(name: str, within: float, dtype: str, low: float, high: float) -> SelfKeyHead:
    """A head with room: errors of thousands of neurons add up, and a register more costs little in a known head."""
    for share in SHARES if name in known_functions() else ():
        try:
            return self_key_head(name, share * within, dtype, low, high)
        except AnchorheadError:
            continue
    return self_key_head(name, within, dtype, low, high)


def numbers_of(head: Heads) -> dict[str, Any]:
    """The head as plain values, exactly: what a config stores and `attend.py` builds modules from."""
    if isinstance(head, GateHead):
        parts = [
            {"slopes": _floats(part.slopes), "offsets": _floats(part.offsets), "factor": float(part.factor)}
            for part in head.parts
        ]
        return {"kind": "gate", "function": head.function, "dtype": head.dtype, "parts": parts}
    own = None if head.own is None else {name: float(value) for name, value in vars(head.own).items()}
    return {
        "kind": "own",
        "function": head.function,
        "dtype": head.dtype,
        "slopes": _floats(head.slopes),
        "offsets": _floats(head.offsets),
        "values": _floats(head.values),
        "own": own,
        "skip": float(head.skip),
        "bias": float(head.bias),
        "step": float(head.step),
        "powers": _powers_of(head) if head.step else None,
    }


def evaluations_of(head: Heads) -> tuple[str, ...]:
    """The ways to compute it that its bound covers, paths of `attend.py`; last the one that "auto" takes."""
    return ("plain", "direct", "powers") if isinstance(head, SelfKeyHead) and head.step else ("plain", "direct")


def stored_numbers(head: Heads) -> int:
    """How many numbers a layer stores for the head: keys and values of registers, the token's own, skip and bias."""
    if isinstance(head, GateHead):
        return 2 * head.registers + len(head.parts)
    return 3 * head.registers + (0 if head.own is None else 3) + (head.skip != 0) + (head.bias != 0)


def anchors_of(head: Heads) -> int:
    """Registers, and the token itself, of a neuron's heads."""
    return head.registers + len(head.parts) if isinstance(head, GateHead) else head.anchors


def _powers_of(head: SelfKeyHead) -> dict[str, Any]:
    quotient = powers(head)
    numbers = {name: float(getattr(quotient, name)) for name in ("rate", "low", "high", "own")}
    lists = {"numerator": _floats(quotient.numerator), "denominator": _floats(quotient.denominator)}
    return {**numbers, **lists, "own_index": quotient.own_index}


def _floats(array: np.ndarray) -> list[float]:
    return [float(value) for value in array]
