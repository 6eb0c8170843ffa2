"""Softmaxes of groups of features: logits, values and shares are within what is said of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from anchorhead.verify import rounding
from anchorhead.verify.context import Context
from anchorhead.verify.forms import EXACT, Forms
from anchorhead.verify.grammar import Linear, Softmax
from anchorhead.verify.groups import _counted, _groups, after_groups, shares, valued
from anchorhead.verify.named import Table

from ..heads.test_claims import claims
from ..naming import TANH

MODEL = rounding.MODELS["float32"]


@pytest.mark.parametrize("seed", range(5))
def test_logits_of_a_group_are_off_by_no_more(seed: int) -> None:
    """One feature varies, two are constants with errors; all at the ends of these, in exact arithmetic."""
    rng, exact = np.random.default_rng(seed), claims()[0].exact
    coefficients = np.zeros((1, 3, 1))
    coefficients[0, 1, 0] = rng.normal()
    x = Forms(exact.inputs, coefficients, *(rng.random((1, 3)) for _ in range(3)))
    weight, bias = rng.normal(size=(4, 3)), rng.normal(size=4)
    ((found, _, own),) = _groups(Context(exact, EXACT, Table()), x, 0, weight, bias, [4], [None])
    assert found is not None
    assert own == slice(0, 4)
    part = found.logits
    for at, *signs in product((-2.0, 2.0), *[(-1, 1)] * 3):
        features = x.coefficients[0, :, 0] * at + x.constant[0] + np.array(signs) * x.error[0]
        z = weight @ features + bias
        assert found.ends[0] <= features[1] <= found.ends[1]
        assert (np.abs(z - part.slopes * features[1] - part.offsets) <= part.wrong * (1 + 1e-12) + 1e-12).all()


@pytest.mark.parametrize("off", [0.0, 1e-3])
def test_products_with_features_that_are_off_round(off: float) -> None:
    """Features of 1 and 0, exactly or nearly: in the latter case products round, and 0 is a term."""
    exact, nothing = claims()[0].exact, np.zeros((1, 2))
    x = Forms(np.zeros(0, int), np.zeros((1, 2, 0)), np.array([[1.0, 0.0]]), nothing + off, nothing)
    ((found, _, _),) = _groups(Context(exact, EXACT, Table()), x, 0, np.array([[3.0, 5.0]]), np.zeros(1), [1], [None])
    assert found is not None
    assert found.logits.terms.tolist() == ([2] if off else [1])
    assert found.logits.exact_sizes.tolist() == ([0.0] if off else [pytest.approx(3.0)])
    assert float(found.logits.sizes[0]) >= 3.0 + 8 * off


def test_outputs_whose_values_are_not_parallel_are_off_by_no_more() -> None:
    """The second output takes half of the first, but for a little in one value."""
    own, unit = claims()
    context = Context(own.exact, MODEL, Table())
    values = np.array([[-1.0, 1.0], [-0.5, 0.5 + 1e-3]])
    group = replace(unit.reading, logits=unit.parts[0]), TANH, values
    found = valued(context, [group], np.array([0.25, 0.0]), "here")
    assert found.ids.tolist() == context.exact.of(2).ids.tolist()
    for t in np.linspace(-2, 2, 41):
        weights = np.exp(np.array([-t, t]))
        read = values @ (weights / weights.sum()) + np.array([0.25, 0.0])
        held = found.coefficients[0, :, 0] * np.tanh(t) + found.constant[0]
        assert (np.abs(read - held) <= found.error[0]).all()


def test_sums_of_groups_count_the_keys_that_some_output_takes() -> None:
    """Three groups of two keys, of which all weigh about 1 at an end: six terms round five times."""
    own, unit = claims()
    group = replace(unit.reading, logits=unit.parts[0]), TANH, np.array([[-1.0, 1.0]])
    found = valued(Context(own.exact, MODEL, Table()), [group] * 3, None, "here")
    assert 14 * MODEL.unit <= float(found.rounding[0, 0]) <= 25 * MODEL.unit
    assert _counted(np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 2.0]])) == 2


def test_groups_that_nobody_explains_lie_between_their_values() -> None:
    context = Context(claims()[0].exact, MODEL, Table())
    found = valued(context, [(None, None, np.array([[-3.0, 2.0], [1.0, 4.0]]))], None, "here")
    low, high = found.ends(context.quantities)
    assert (low[0] <= [-3.0, 1.0]).all()
    assert (high[0] >= [2.0, 4.0]).all()


def test_registers_become_shares() -> None:
    context = Context(claims()[0].exact, MODEL, Table())
    before, after = Linear(np.eye(2), None, None), Linear(np.array([[1.0, -1.0]]), None, None)
    tokens = {"input": Forms.constants(np.zeros((1, 2))), "register": Forms.constants(np.array([[100.0, 0.0]]))}
    found = after_groups(context, before, Softmax((2,)), after, tokens, tokens, 0)
    low, high = found["register"].ends(context.quantities)
    assert float(low[0, 0]) <= 1.0 <= float(high[0, 0]) <= 1.01
    low, high = shares(tokens["register"]).ends(context.quantities)
    assert low.max() <= 0.0
    assert high.min() >= 1.0
