"""Simplify: functions taken apart, and written as neurons in every form that is known, equal on the box.

Affine maps in a row are multiplied out, and neurons that are constants folded, in language.merge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from anchorhead.constructions.build_request import Placement
from anchorhead.constructions.passes.forms.layers import in_layers
from anchorhead.constructions.passes.forms.lowering import Lowering
from anchorhead.constructions.passes.forms.quantities import Combination, Quantities, total
from anchorhead.errors import AnchorheadError
from anchorhead.language.analysis.ridges import PRECISION, structure
from anchorhead.language.analysis.summands import MAX_IN_A_GRID
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.precision import precision
from anchorhead.language.expressions.text import name_of
from anchorhead.language.several import SeveralVariables
from anchorhead.language.targets.mlp import Mlp

Ends = tuple[Sequence[float], Sequence[float]]
Terms = Sequence[Sequence[Expression]]
"""For every output, what adds up to it."""


def ways_of(target: SeveralVariables, placement: Placement) -> list[SeveralVariables]:
    """The functions taken apart into neurons and grids, in all ways that differ; even anchors stand on grids."""
    return [replace(target, in_a_grid=MAX_IN_A_GRID)] if placement == "uniform" else target.ways


def forms_of(target: SeveralVariables) -> list[Mlp]:
    """All functions as neurons, in every form; those of one layer have one form."""
    if not target.needs_layers and target.parts.network is not None:
        return [target.parts.network]
    terms = [[term.expression for term in target.parts.terms if term.output == k] for k in range(target.outputs)]
    return lowered(terms, target.variables, (target.low, target.high), target.tokens, name_of(target.expressions))


def for_layout(target: Mlp, layout: str | None) -> Mlp:
    """Where linear maps act on a token alone, even a linear map of several tokens needs neurons: outputs differ by
    token."""
    return target.with_neurons() if layout == "transformer" and (target.tokens or 1) > 1 else target


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
