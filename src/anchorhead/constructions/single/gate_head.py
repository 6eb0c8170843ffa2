"""The fewest registers for a gated neuron phi(g) u: heads in which the token's own key carries u, proven."""

from __future__ import annotations

import math
from typing import Any

from anchorhead.errors import AnchorheadError
from anchorhead.given import checked_number, checked_within
from anchorhead.heads.self_keys.gate import GateHead
from anchorhead.heads.tables.gate_table import NAMES, gate_frontiers
from anchorhead.network.dtypes import dtype_name
from anchorhead.proof.arithmetic.arithmetic import require_model


def gate_head(activation: str, within: float, dtype: Any = "float32", reach: float = 64.0) -> GateHead:
    """The heads for phi(g) u with the fewest registers that are proven within an error, for every |g| <= reach.

        |phi(g) u - computed| <= within max(1, |g|) |u|   (and `underflow`, where products with u underflow)

    activation   silu, gelu, gelu_tanh, relu or sigmoid, or another name of these (`heads.tables.gate_table.NAMES`)
    reach        no |g| is larger
    """
    function = NAMES.get(activation) if isinstance(activation, str) else None
    if function is None:
        raise AnchorheadError(f"no gate is known for activation {activation!r}: {', '.join(NAMES)} are known")
    kind = dtype_name(dtype)
    within = checked_within(within)
    reach = checked_number("reach", reach, "a finite number that no |g| exceeds", least=0.0)
    known = gate_frontiers(function, kind, str(require_model(kind)))
    far = [frontier for frontier in known if frontier.reach >= reach]
    if not far:
        largest = max((frontier.reach for frontier in known), default=0.0)
        raise AnchorheadError(
            f"reach={reach:g} is beyond what gates of {function} in {kind} are proven for, |g| <= {largest:g}: "
            "scale the gates' inputs down, or prove a smaller bound on them"
        )
    found = [head for frontier in far if (head := frontier.within(within)) is not None]
    if not found:
        best = min((head.bound for frontier in far for head in frontier.heads), default=math.inf)
        other = "float64, " if kind == "float32" else ""
        raise AnchorheadError(
            f"within={within:g} is not reached by gates of {function} in {kind} for |g| <= {reach:g}: the best is "
            f"proven within {best:.3g}. What would help: {other}a larger error, a smaller reach"
        )
    return min(found, key=lambda head: (head.registers, head.high))
