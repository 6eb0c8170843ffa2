"""What attention is lowered to: who sees whom as the grammar says, and logits that are within what is said of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from anchorhead.network import Attention as Layer
from anchorhead.verify.forms import EXACT, Forms, Quantities
from anchorhead.verify.grammar import MASKS, Attention, Stream
from anchorhead.verify.readings import lowered, mixed, seen
from tests.networks import inputs, names, network

from ..tampering.orders import KINDS, ORDERS, _Run, evaluate


@pytest.mark.parametrize("name", names("layer", "float64"))
def test_networks_in_numpy_are_those_of_the_library(name: str) -> None:
    """What the verifier and its hunt are compared with: another reading of the grammar, and the library's."""
    net = network(name)
    x = inputs(net, 5)
    y = net(x, outside="ignore")
    for order in (None, *ORDERS.values()):
        np.testing.assert_allclose(evaluate(net, x, order, "float64"), y, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("mask", [*MASKS, "grid"])
@pytest.mark.parametrize("counts", [(3, 2, 1), (1, 4, 0), (2, 3, 2)], ids=str)
def test_tokens_see_whom_the_grammar_lets_them(mask: str | None, counts: tuple[int, int, int]) -> None:
    grid = (2, 1) if mask == "grid" else None
    words = {"mask": None if grid else mask, "grid": grid, "bias": None, "skip": None}
    one = np.ones((1, 2, 2))
    theirs, mine = Layer(one, one, one, one, **words), Attention(one, one, one, one, **words)
    now = {kind: np.zeros((1, count, 2)) for kind, count in zip(KINDS, counts, strict=True)}
    for kind, count in zip(KINDS, counts, strict=True):
        hidden = _Run(None, np.float64).hidden(theirs, kind, now)
        for place in range(count):
            found = seen(mine, Stream(*counts, 2), kind, place)
            assert sorted(found.tolist()) == np.flatnonzero(~hidden[place]).tolist()


def features(quantities: Quantities, rng: np.random.Generator, shape: tuple[int, int], varying: list[int]) -> Forms:
    ids = np.arange(len(quantities.low))
    coefficients = np.zeros((*shape, len(ids)))
    coefficients[:, varying] = rng.normal(size=(shape[0], len(varying), len(ids)))
    return Forms(ids, coefficients, rng.normal(size=shape), 0.1 * rng.random(shape), 0.1 * rng.random(shape))


@pytest.mark.parametrize("seed", range(5))
def test_logits_of_one_varying_entry_are_off_by_no_more(seed: int) -> None:
    """Queries and keys at the ends of their errors, in exact arithmetic: t is the varying entry as computed."""
    rng, quantities = np.random.default_rng(seed), Quantities()
    quantities.add(np.array([-1.0]), np.array([2.0]))
    query, keys = features(quantities, rng, (1, 3), [1]), features(quantities, rng, (4, 3), [])
    found = lowered(query, keys, quantities, EXACT)
    assert found is not None
    part, largest = found.logits, np.zeros(4)
    for at, *signs in product((-1.0, 2.0), *[(-1, 1)] * 6):
        q = (query.coefficients[0] @ np.array([at]) + query.constant[0]) + np.array(signs[:3]) * query.error[0]
        k = keys.constant + np.array(signs[3:]) * keys.error
        assert found.ends[0] <= q[1] <= found.ends[1]
        off = np.abs(k @ q - part.slopes * q[1] - part.offsets)
        allowed = part.wrong + part.wrong_slope * abs(q[1])
        assert (off <= allowed * (1 + 1e-12)).all()
        largest = np.maximum(largest, off / allowed)
    assert largest.min() > 0.9


@pytest.mark.parametrize("off", [0.0, 1e-3])
def test_products_with_constants_that_are_off_round(off: float) -> None:
    """A query of 1 and 0, exactly or nearly: in the latter case products round, and 0 is a term."""
    nothing = np.zeros((1, 2))
    query = Forms(np.zeros(0, int), np.zeros((1, 2, 0)), np.array([[1.0, 0.0]]), nothing + off, nothing)
    found = lowered(query, Forms.constants(np.array([[3.0, 5.0]])), Quantities(), EXACT)
    assert found is not None
    assert found.logits.terms.tolist() == ([2] if off else [1])
    assert found.logits.exact_sizes.tolist() == ([0.0] if off else [pytest.approx(3.0)])
    assert float(found.logits.sizes[0]) >= 3.0 + 8 * off


def test_keys_that_vary_have_no_reading() -> None:
    rng, quantities = np.random.default_rng(0), Quantities()
    quantities.add(np.array([-1.0]), np.array([2.0]))
    query, keys = features(quantities, rng, (1, 3), []), features(quantities, rng, (4, 3), [2])
    assert lowered(query, keys, quantities, EXACT) is None


@pytest.mark.parametrize("seed", range(5))
def test_logits_along_one_direction_are_off_by_no_more(seed: int) -> None:
    """t is what makes the steepest logit right; all logits at the ends of their errors."""
    rng, quantities = np.random.default_rng(seed), Quantities()
    ids = quantities.add(np.array([-1.0, 0.0]), np.array([2.0, 3.0]))
    direction, slopes = rng.normal(size=2), rng.normal(size=4)
    coefficients = slopes[:, None] * direction
    logits = Forms(ids, coefficients[None], *(rng.random((1, 4)) for _ in range(3)))
    toward = Forms(ids, -3 * direction[None, None], np.full((1, 1), 0.7), *np.full((2, 1, 1), 0.2))
    found = mixed(logits, toward, quantities, EXACT)
    assert found is not None
    part, top = found.logits, int(np.abs(slopes).argmax())
    for *at, s0, s1, s2, s3 in product((-1.0, 2.0), (0.0, 3.0), *[(-1, 1)] * 4):
        z = coefficients @ np.array(at) + logits.constant[0] + np.array([s0, s1, s2, s3]) * logits.error[0]
        t = (z[top] - part.offsets[top]) / part.slopes[top]
        off = np.abs(z - part.slopes * t - part.offsets)
        assert (off <= part.wrong * (1 + 1e-9) + 1e-9).all()
        meant = float(toward.coefficients[0, 0] @ np.array(at)) + 0.7
        assert abs(t - meant) <= float(found.t.error[0, 0]) * (1 + 1e-9)
        assert found.ends[0] <= t <= found.ends[1]


def test_logits_along_two_directions_have_no_reading() -> None:
    quantities = Quantities()
    ids = quantities.add(np.array([-1.0, 0.0]), np.array([2.0, 3.0]))
    zero = np.zeros((1, 2))
    one = np.zeros((1, 1))
    toward = Forms(ids, np.array([[[1.0, 0.0]]]), one, one, one)
    assert mixed(Forms(ids, np.eye(2)[None], zero, zero, zero), toward, quantities, EXACT) is None
    across = Forms(ids, np.array([[[0.0, 1.0], [0.0, 2.0]]]), zero, zero, zero)
    assert mixed(across, toward, quantities, EXACT) is None


@pytest.mark.parametrize("seed", range(3))
def test_logits_of_queries_that_vary_together_are_off_by_no_more(seed: int) -> None:
    """Two entries of a query along one quantity, keys with errors: a sum of its own, in exact arithmetic."""
    rng, quantities = np.random.default_rng(seed), Quantities()
    quantities.add(np.array([-1.0]), np.array([2.0]))
    query, keys = features(quantities, rng, (1, 2), [0, 1]), features(quantities, rng, (3, 2), [])
    assert lowered(query, keys, quantities, EXACT) is None
    found = lowered(query, keys, quantities, EXACT, toward=features(quantities, rng, (1, 1), [0]))
    assert found is not None
    part = found.logits
    top = int(np.abs(part.slopes).argmax())
    for at, *signs in product((-1.0, 2.0), *[(-1, 1)] * 8):
        q = query.coefficients[0] @ np.array([at]) + query.constant[0] + np.array(signs[:2]) * query.error[0]
        z = ((keys.constant + np.array(signs[2:]).reshape(3, 2) * keys.error) * q).sum(axis=1)
        t = (z[top] - part.offsets[top]) / part.slopes[top]
        assert (np.abs(z - part.slopes * t - part.offsets) <= part.wrong * (1 + 1e-9) + 1e-12).all()
        assert found.ends[0] <= t <= found.ends[1]


def test_a_number_that_no_input_moves_is_told_from_a_stored_one() -> None:
    """Inputs that cancel leave a rounded constant, which the evaluation "direct" may compute as a head."""
    quantities = Quantities()
    quantities.add(np.array([-1.0]), np.array([2.0]))
    keys = Forms.constants(np.array([[1.0, 0.0], [-1.0, 0.5]]))
    stored = Forms.constants(np.array([[0.25, 1.0]]))
    rounded = Forms(stored.ids, *stored.arrays[:3], np.array([[1e-17, 0.0]]))
    for query, cancels in ((stored, False), (rounded, True)):
        found = lowered(query, keys, quantities, EXACT)
        assert found is not None
        assert found.constant
        assert found.cancels == cancels
        part, (low, high) = found.every
        assert part.slopes.tolist() == ([1.0, -1.0] if cancels else [0.0, 0.0])
        assert (low, high) == (0.0, 0.0) if not cancels else low < 0.25 < high
