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
    "learner": style.BLUE,
}
DASHED = (0, (4.0, 2.2))
LATTICE = "uniform"
LONGEST = 110


def heading_of(plan: Plan) -> tuple[str, str]:
    """What is planned, and where; expressions keep their signs."""
    text = plan.target if plan.where else plan.target[:1].upper() + plan.target[1:].replace("->", "→")
    return (
        shortened(text, LONGEST),
        style.minus(shortened(f"{plan.place}{plan.place and ', '}in {plan.dtype}: sizes before building", LONGEST)),
    )
