"""Expressions as feed-forward networks of functions of one variable: in every form that is known, equal on the box."""

from __future__ import annotations

from collections.abc import Sequence

from anchorhead.compiler.forms import Lowering
from anchorhead.compiler.layers import in_layers
from anchorhead.compiler.quantities import Combination, Quantities, total
from anchorhead.errors import AnchorheadError
from anchorhead.language.analysis.ridges import PRECISION, structure
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.precision import precision
from anchorhead.language.targets.mlp import Mlp

Ends = tuple[Sequence[float], Sequence[float]]
Terms = Sequence[Sequence[Expression]]
"""For every output, what adds up to it."""


def lowered(terms: Terms, variables: Sequence[str], ends: Ends, tokens: int | None = None, name: str = "") -> list[Mlp]:
    """The networks of all forms that are defined on the box, each once; raises where there is none."""
    written: dict[tuple[object, ...], Mlp] = {}
    refused: AnchorheadError | None = None
    for logarithms in (False, True):
        quantities = Quantities(variables, *ends)
        try:
            with precision(PRECISION):
                outputs = [_output(Lowering(quantities, logarithms), own) for own in terms]
                for one in outputs:
                    quantities.range(one)
                key = (*((*step.of.key, step.function) for step in quantities.steps), *(one.key for one in outputs))
                if key not in written:
                    written[key] = in_layers(quantities, outputs, tokens, name)
        except AnchorheadError as error:
            refused = refused or error
    if not written:
        raise refused or AnchorheadError(f"{name}: no form is known")
    return list(written.values())


def _output(lowering: Lowering, terms: Sequence[Expression]) -> Combination:
    """The sum; functions of the same linear combination are one."""
    ridges = [term for term in terms if not structure(term, lowering.quantities.variables).left_over]
    others = [term for term in terms if term not in ridges]
    return total([*lowering.ridges(ridges), *map(lowering.plain, others)])
