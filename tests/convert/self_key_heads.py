"""Heads with their own key that tests of the modules share: small ones, with proven rounding."""

from functools import cache

import numpy as np

from anchorhead.heads.atom import Dtype
from anchorhead.heads.self_keys.gate import GateHead, GatePart
from anchorhead.heads.self_keys.self_key import Own, SelfKeyHead
from anchorhead.heads.self_keys.self_key_closed import closed
from anchorhead.language.expressions.parser import parse
from anchorhead.proof.self_key.self_key import proven

CLOSED = ("silu", "relu", "leaky_relu", "hardtanh", "tanh")
GELU = (  # registers of slopes 0, 1.375, …, the own key after them; about 7e-5 from gelu
    (1.17743, 4.07248, 5.11119, 3.91684, -1.21948),
    (0, 0.00902406, -0.604277, 1.95213, 5.54908),
)


@cache
def self_key_head(name: str, dtype: Dtype) -> SelfKeyHead:
    function = parse(f"{name}(x)")
    if name == "gelu":
        offsets, values = (np.array(column, dtype) for column in GELU)
        slopes = (1.375 * np.arange(5)).astype(dtype)
        own = Own(6.875, 0.0, 1.0)
        head = SelfKeyHead(name, slopes, offsets, values, own, 0.0, 0.0, 1.375, -np.inf, np.inf, dtype, np.inf, np.inf)
    else:
        head = closed(function, name, dtype)
        assert head is not None
    return proven(head, function)


def gate_head(dtype: Dtype) -> GateHead:
    """Two softmaxes, of three and two keys: no activation that has a name."""

    def part(slopes: list[float], offsets: list[float], factor: float) -> GatePart:
        return GatePart(np.array(slopes, dtype), np.array(offsets, dtype), factor)

    parts = (part([-1.0, -3.5], [0.25, -1.5], 2.0), part([1.5], [-0.125], -0.5))
    return GateHead("made", parts, -50.0, 50.0, dtype, np.inf, np.inf)
