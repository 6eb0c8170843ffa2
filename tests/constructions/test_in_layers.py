"""Functions of many variables by which surrogates are compared: proven, within a thousandth of how much they vary."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import anchorhead as ah
from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.passes.functions import forms_in_order
from anchorhead.constructions.passes.run import proven_mlp
from anchorhead.constructions.request import requested
from anchorhead.language.expressions.parser import parse
from benchmarks.figures_cases import DEEP

SLOW = ("borehole", "piston", "Ishigami")


def attacked(network, expression, on, rows=4_000):
    """The largest error at random inputs, at all corners, and upwards from the worst of them."""
    names, rng = tuple(on), np.random.default_rng(1)
    low, high = (np.array([float(ends[side]) for ends in on.values()]) for side in (0, 1))
    function = parse(expression, names)

    def error(x):
        return np.abs(network(x)[:, 0] - function.values(dict(zip(names, x.T, strict=True))))

    inside = rng.uniform(low, high, (rows, len(names)))
    edges = np.where(rng.random(inside.shape) < 0.5, np.where(rng.random(inside.shape) < 0.5, low, high), inside)
    x = np.concatenate([inside, edges, np.array(list(product(*zip(low, high, strict=True))))])
    found = error(x)
    best = np.argsort(-found)[:20]
    x, found = x[best], found[best]
    for step in np.geomspace(0.1, 1e-6, 40):
        moved = x + step * (high - low) * rng.normal(size=x.shape) * (rng.random(x.shape) < 0.4)
        moved = np.clip(moved, low, high)
        after = error(moved)
        better = after > found
        x[better], found[better] = moved[better], after[better]
    return found.max()


@pytest.mark.parametrize("name", [pytest.param(one, marks=pytest.mark.slow) if one in SLOW else one for one in DEEP])
def test_known_functions_are_proven_and_no_input_exceeds_the_bound(name):
    expression, on, within = DEEP[name]
    network = ah.approximate(expression, on=on, within=within, progress=False)
    assert network.certificate.kind == "proven"
    assert network.certificate.bound <= within
    assert attacked(network, expression, on) <= network.certificate.bound
    assert ah.check(network).stated == network.certificate.bound


def test_a_thousandth_is_of_how_much_the_functions_vary():
    rng = np.random.default_rng(0)
    for name, (expression, on, within) in DEEP.items():
        quarters = {one: a + (b - a) * rng.integers(0, 5, 20_000) / 4 for one, (a, b) in on.items()}
        assert within <= 1.05e-3 * np.ptp(parse(expression, tuple(on)).values(quarters)), name


def test_plans_are_of_the_form_that_is_built():
    expression, on, within = "a*b*c/(d*f + a)", dict.fromkeys("abcdf", (1, 2)), 1e-6
    row = ah.plan(expression, on=on, within=[within]).rows[0]
    network = ah.approximate(expression, on=on, within=within, progress=False)
    assert (row.form, row.layout, row.reachable) == ("deep", "transformer", True)
    assert row.parameters is not None
    assert network.parameters <= row.parameters
    assert row.heads == sum(getattr(layer, "heads", 0) for layer in network.layers)


@pytest.mark.slow
def test_the_form_that_is_estimated_smaller_is_tried_first():
    on = dict.fromkeys("abcdfg", (1, 2))
    quotients, products = (requested(text, on, None, None) for text in ("a*b*c*d/(f + g)", "a*b + c*d*f + g*g"))
    for request in (quotients, products):
        first, *others = forms_in_order(request, 1e-6, "float64")
        sizes = [size(target, request) for target in (first, *others)]
        assert len(sizes) == 2
        assert sizes[0] <= 1.25 * min(sizes)


def size(target, request):
    return proven_mlp(target, request.on, BuildRequest(1e-6)).network.parameters


@pytest.mark.slow
def test_what_is_out_of_reach_names_the_head_and_brings_a_network():
    expression, on = "a*b*c*d/(f + 2)", dict.fromkeys("abcdf", (1, 2))
    with pytest.raises(ah.NotReached, match=r"for a head that it takes: exp\(x\) on \[.*\] within") as refused:
        ah.approximate(expression, on=on, within=1e-6, dtype="float32", progress=False)
    error = refused.value
    assert error.within == 1e-6
    assert error.network.certificate.bound == error.bound > 1e-6
    assert attacked(error.network, expression, on, 500) <= error.bound


def test_an_error_that_rounding_rules_out_brings_the_best_network():
    with pytest.raises(ah.NotReached, match="the best bound found is") as refused:
        ah.approximate("max(a, b) + abs(c - d)", on=dict.fromkeys("abcd", (1, 2)), within=1e-6, dtype="float32")
    assert refused.value.network.certificate.bound == refused.value.bound > 1e-6
