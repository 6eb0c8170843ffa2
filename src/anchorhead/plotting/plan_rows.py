"""What pictures of plans share: colours, and the words of their heading."""

from __future__ import annotations

from anchorhead.constructions.planning.plan import Plan
from anchorhead.decimals import shortened
from anchorhead.plotting import style

COLOURS = {
    "two-layer": style.BLUE,
    "attention-softmax": style.VERMILLION,
    "deep": style.GREEN,
    "head": style.BLUE,
}
DASHED = (0, (4.0, 2.2))
LATTICE = "uniform"
LONGEST = 110


def heading_of(plan: Plan) -> tuple[str, str]:
    """What is planned, and where; expressions keep their signs."""
    text = plan.target if plan.where else plan.target[:1].upper() + plan.target[1:].replace("->", "→")
    where = f"for {plan.where}" if plan.where else f"on {plan.on}"
    return (
        shortened(text, LONGEST),
        style.minus(shortened(f"{where}, in {plan.dtype}: sizes before building", LONGEST)),
    )
