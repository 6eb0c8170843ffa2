"""Bounds on sums of scalar heads hold at every query, and are close to what is found."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anchorhead.proof.arithmetic.arithmetic import FLOAT32, FLOAT64
from anchorhead.proof.heads.cells import Piece, Readout
from anchorhead.proof.heads.scalar import sup_error
from anchorhead.proof.heads.whole_head import ScalarHead


def head_of(slopes, offsets, values, origin=0.0):
    zeros = np.zeros(len(slopes))
    return ScalarHead(slopes, offsets, np.asarray(values)[:, None], origin, zeros, zeros, zeros)


def uneven_head(rng, anchors, sharpness):
    """Random steps between slopes, random ascending crossings, ascending values."""
    steps = rng.uniform(0.3, 3, anchors - 1) * sharpness
    crossings = np.cumsum(rng.uniform(0.2, 2, anchors - 1))
    slopes = np.concatenate([[0], np.cumsum(steps)]) - steps.sum() / 2
    offsets = np.concatenate([[0], np.cumsum(-steps * crossings)])
    return head_of(slopes, offsets, np.cumsum(rng.uniform(0.2, 2, anchors))), crossings


def exact(head, q):
    logits = np.longdouble(head.slopes) * (np.longdouble(q)[:, None] - head.origin) + head.offsets
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return (weights * head.levels).sum(axis=1) / weights.sum(axis=1)


def dense(crossings, sharpness):
    near = np.concatenate([[0], np.geomspace(1e-6, 4, 400)]) / min(1.0, sharpness)
    return np.unique(np.concatenate([c + s * near for c in crossings for s in (-1, 1)]))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), anchors=st.integers(2, 12), sharpness=st.floats(0.05, 500))
def test_exact_part_holds_and_is_tight(seed, anchors, sharpness):
    rng = np.random.default_rng(seed)
    head, crossings = uneven_head(rng, anchors, sharpness)
    low, high = crossings[0] - 3, crossings[-1] + 3
    level, slope = rng.normal(size=2)
    pieces = [Piece(low, high, float(level), float(slope), 0)]
    found, _ = sup_error([head], pieces, Readout(0.0, 0), FLOAT64, (low, high))
    q = dense(crossings, sharpness)
    q = np.concatenate([q[(q >= low) & (q <= high)], [low, high]])
    worst = np.abs(exact(head, q) - level - slope * q).max()
    assert worst <= found
    assert found <= 1.01 * worst


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), anchors=st.integers(2, 40), sharpness=st.floats(0.05, 2000))
def test_float32_rounding_is_covered(seed, anchors, sharpness):
    rng = np.random.default_rng(seed)
    head, crossings = uneven_head(rng, anchors, sharpness)
    slopes, offsets, values = (np.float32(a) for a in (head.slopes, head.offsets, head.levels))
    head = head_of(*(a.astype(float) for a in (slopes, offsets, values)))
    if (np.diff(head.crossings) < 0).any():
        return
    low, high = crossings[0] - 3, crossings[-1] + 3
    pieces = [Piece(low, high, 0.0, 0.0, 0)]
    _, bound = sup_error([head], pieces, Readout(0.0, 0), FLOAT32, (low, high))
    q = np.float32(np.concatenate([dense(crossings, sharpness), rng.uniform(low, high, 500)]))
    q = q[(q >= low) & (q <= high)]
    logits = slopes * q[:, None] + offsets
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True, dtype=np.float32)
    computed = (weights * values).sum(axis=1, dtype=np.float32)
    assert np.abs(computed.astype(np.longdouble) - exact(head, q.astype(float))).max() <= bound


def test_pieces_that_reach_to_infinity_are_covered():
    slopes = np.array([-2.0, 2.0])
    head = head_of(slopes, np.zeros(2), np.array([-1.0, 1.5]))
    pieces = [Piece(-np.inf, 0.0, -1.0, 0.0, 0), Piece(0.0, np.inf, 1.0, 0.0, 0)]
    found, _ = sup_error([head], pieces, Readout(0.0, 0), FLOAT64, (-5.0, 5.0))
    assert found >= 1.25  # at 0 the head is 0.25, the left piece's target -1
    right, _ = sup_error([head], pieces[1:], Readout(0.0, 0), FLOAT64, (-5.0, 5.0))
    assert right == pytest.approx(0.75, rel=0.01)  # at 0; at infinity 0.5


def test_heads_add_up():
    rng = np.random.default_rng(3)
    one, crossings = uneven_head(rng, 6, 2.0)
    two, others = uneven_head(rng, 5, 30.0)
    pieces = [Piece(-2.0, 9.0, 1.0, 2.0, 0)]
    found, _ = sup_error([one, two], pieces, Readout(0.5, 0), FLOAT64, (-2.0, 9.0))
    q = np.concatenate([dense(crossings, 2.0), dense(others, 30.0)])
    q = q[(q >= -2) & (q <= 9)]
    worst = np.abs(exact(one, q) + exact(two, q) + 0.5 - 1 - 2 * q).max()
    assert worst <= found <= 1.01 * worst
