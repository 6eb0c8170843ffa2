"""A call refuses what is not numbers of the right shape, and obeys `outside` beyond the certified box."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from anchorhead.errors import AnchorheadError, OutsideWarning
from anchorhead.network import Embed, Network
from tests import networks as table

from .certificates import certificate

INSIDE = np.linspace(-1, 1, 6).reshape(3, 2)
OUTSIDE = INSIDE * 1.5


def certified(on=(-1.0, 1.0), outside="warn", dtype="float64"):
    network = table.network(f"attention ({dtype})")
    return network.with_(certificate=certificate(on, dtype=dtype), outside=outside)


def test_inside_and_on_the_edge_nothing_is_said():
    for outside in ("warn", "raise", "clip", "ignore"):
        assert np.array_equal(certified(outside=outside)(INSIDE), table.network("attention (float64)")(INSIDE))


def test_warn_warns_once_and_computes_on():
    network = certified()
    with pytest.warns(OutsideWarning, match=r"2 of 6 input entries lie outside the box \[-1, 1\].*-1.5") as caught:
        y = network(OUTSIDE)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(network(OUTSIDE), y)
    assert np.array_equal(table.network("attention (float64)")(OUTSIDE), y)


def test_raise_raises_each_time():
    network = certified(outside="raise")
    for _ in range(2):
        with pytest.raises(AnchorheadError, match="outside the box"):
            network(OUTSIDE)


def test_clip_gives_the_value_at_the_clipped_input():
    network = certified(outside="clip")
    assert np.array_equal(network(OUTSIDE), network(np.clip(OUTSIDE, -1, 1)))
    for kind in (torch.float32, torch.float64):
        x = torch.from_numpy(OUTSIDE).to(kind)
        assert torch.equal(network(x), network(x.clamp(-1, 1)))


def test_ignore_says_nothing():
    assert np.array_equal(certified(outside="ignore")(OUTSIDE), table.network("attention (float64)")(OUTSIDE))


def test_a_call_can_choose_for_itself():
    network = certified(outside="raise")
    assert np.array_equal(network(OUTSIDE, outside="ignore"), table.network("attention (float64)")(OUTSIDE))
    assert np.array_equal(network(OUTSIDE, outside="clip"), network(np.clip(OUTSIDE, -1, 1)))
    for wrong in ("shrug", "", 0):
        with pytest.raises(AnchorheadError, match="one of 'warn', 'raise', 'clip', 'ignore'"):
            network(INSIDE, outside=wrong)


@pytest.mark.parametrize("shape", [(2,), (3, 2), (1, 2), (3, 1)])
def test_the_box_may_have_ends_for_each_feature_and_token(shape):
    high = np.full(shape, 1.0)
    network = certified((-high, high), outside="raise")
    network(np.stack([INSIDE, INSIDE]))
    with pytest.raises(AnchorheadError, match="2 of 6"):
        network(OUTSIDE)
    assert np.array_equal(network(OUTSIDE, outside="clip"), network(np.clip(OUTSIDE, -1, 1)))


@pytest.mark.parametrize("ends", [(-0.1, 0.1), (np.full(2, -0.1), np.full(2, 0.1))])
def test_the_box_is_compared_without_rounding(ends):
    """0.1 in float32 is above 0.1 in float64, whatever the shape of the box."""
    x = np.full((3, 2), 0.1, dtype=np.float32)
    assert float(x[0, 0]) > 0.1
    with pytest.raises(AnchorheadError, match="6 of 6"):
        certified(ends, outside="raise", dtype="float32")(x)
    certified(ends, outside="raise", dtype="float32")(np.nextafter(x, np.float32(0)))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("outside", ["warn", "raise", "clip", "ignore"])
def test_what_is_not_finite_is_refused(value, outside):
    x = INSIDE.copy()
    x[1, 0] = value
    network = certified(outside=outside)
    for given in (x, torch.from_numpy(x), x.tolist()):
        with pytest.raises(AnchorheadError, match=r"at \(1, 0\)"):
            network(given)
    with pytest.raises(AnchorheadError, match="finite"):
        network.attention(x)


def test_what_overflows_in_the_networks_dtype_is_refused():
    with pytest.raises(AnchorheadError, match="float32, has the entry inf"):
        table.network("attention (float32)")(np.full((3, 2), 1e300))


@pytest.mark.parametrize(
    "x",
    [
        INSIDE + 0j,
        torch.from_numpy(INSIDE + 0j),
        np.array([["a", "b"]] * 3),
        [[1.0, 2.0], [3.0]],
        None,
        [[None] * 2] * 3,
    ],
    ids=["complex", "complex tensor", "text", "ragged", "None", "objects"],
)
def test_what_is_not_real_numbers_is_refused(x):
    with pytest.raises(AnchorheadError):
        table.network("attention (float64)")(x)


@pytest.mark.parametrize("shape", [(), (2,), (6,), (3, 3), (2, 3), (4, 2), (0, 2), (3, 0), (5, 3, 1)])
def test_wrong_shapes_are_refused_with_the_shape_that_is_needed(shape):
    for x in (np.zeros(shape), torch.zeros(shape)):
        with pytest.raises(AnchorheadError) as caught:
            table.network("attention (float64)")(x)
        assert str(shape) in str(caught.value)
        assert "(..., 3, 2)" in str(caught.value)


def test_any_number_of_tokens_but_none():
    network = Network([Embed(np.ones((1, 2)), np.zeros(1))])
    assert network(np.ones((9, 2))).shape == (9, 1)
    with pytest.raises(AnchorheadError, match=r"\(\.\.\., tokens, 2\)"):
        network(np.ones((0, 2)))


@pytest.mark.parametrize("outside", ["raise", "clip"])
def test_rounding_an_input_of_the_box_does_not_leave_the_box(outside):
    ends = -0.1, np.nextafter(0.3, 1.0)  # float32 rounds both outwards
    assert float(np.float32(ends[0])) < ends[0]
    assert float(np.float32(ends[1])) > ends[1]
    network = certified(ends, outside, "float32")
    inner = [np.nextafter(np.float32(end), np.float32(0)) for end in ends]
    given = torch.full((3, 2), ends[0], dtype=torch.float64)
    given[1:] = ends[1]
    given.requires_grad_()
    kept = network._calls.guard.look(given, outside)[0]
    assert kept[0, 0].item() == inner[0]
    assert kept[1, 0].item() == inner[1]
    kept.sum().backward()
    assert given.grad is not None
    assert (given.grad == 1).all()


def test_numbers_of_other_types_are_converted():
    network = table.network("attention (float64)")
    whole = np.array([[1, 0], [0, 1], [1, 1]])
    expected = network(whole.astype(np.float64))
    for x in (whole, whole.tolist(), whole.astype(np.int8), whole.astype(bool), whole.astype(np.longdouble)):
        assert np.array_equal(network(x), expected)
    for kind in (np.float16, np.float32, ">f8", ">f4"):
        assert np.array_equal(network(whole.astype(kind)), expected)
    for kind in (torch.int64, torch.bool, torch.bfloat16, torch.float32):
        y = network(torch.from_numpy(whole).to(kind))
        assert y.dtype == torch.float64
        assert np.array_equal(y.numpy(), expected)
    assert np.array_equal(network(whole[::-1])[0], network(whole[::-1].copy())[0])
