"""What a plan says of a network is what is built: it runs the same passes, and stops before weights exist."""

from __future__ import annotations

import pytest

from anchorhead.constructions.build_request import FORMS, LAYOUTS
from anchorhead.constructions.planning.plan import Row
from anchorhead.constructions.planning.plan_expressions import ESTIMATED
from anchorhead.network import Attention, Softmax

from . import DTYPES, ROWS, network, row_of, tags

PLANNED = [f"{row.name} ({dtype})" for row in ROWS.values() if row.plan for dtype in DTYPES]


def estimated_bound(name: str) -> Row:
    """The plan's row for the form, the layout and the placement of the network; the first of several is the usual."""
    wanted = tags(name) & {*FORMS, *LAYOUTS}
    placement = "uniform" if "uniform" in tags(name) else "solved"
    plan = row_of(name).plan(name.removesuffix(")").rpartition("(")[2])
    return next(row for row in plan.rows if row.placement == placement and wanted <= {row.form, row.layout})


@pytest.mark.parametrize("name", [name for name in PLANNED if "uniform" not in tags(name) or "mlp" in tags(name)])
def test_sizes_are_those_that_are_built_and_the_bound_is_the_one_that_is_proven(name):
    row, made = estimated_bound(name), network(name)
    assert row.reachable
    assert row.layers == len(made.layers)
    assert row.parameters == made.parameters
    attention = sum(layer.heads for layer in made.layers if isinstance(layer, Attention))
    assert row.heads == attention + sum(len(layer.groups) for layer in made.layers if isinstance(layer, Softmax))
    # what is solved for and not proven may be a little less than a proof finds, and so may estimates of rounding
    assert 0.9 * made.certificate.bound <= row.bound <= 1.1 * made.certificate.bound


@pytest.mark.parametrize("name", [name for name in PLANNED if {"uniform", "grid"} <= tags(name)])
def test_even_grids_are_estimated_from_samples(name):
    row, made = estimated_bound(name), network(name)
    assert (row.note, row.layers) == (ESTIMATED, len(made.layers))
    assert 0.8 * made.parameters <= row.parameters <= 1.25 * made.parameters
    assert made.certificate.bound <= row.bound <= row.within
