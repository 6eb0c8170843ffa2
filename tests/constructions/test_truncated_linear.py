"""The two head theorems: bounds that hold, sizes as the theorems say, and bad input refused."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import anchorhead as ah
from anchorhead.domain import Box
from anchorhead.language.forms import ramp_of
from anchorhead.network import Attention, Embed


def functions(seed=0, tokens=6, inputs=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(tokens, inputs)), rng.normal(size=tokens)


def largest_error(network, seed=0, count=3000):
    """At random inputs of the box, and at inputs whose pre-activation is near an anchor, a border or a kink."""
    rng = np.random.default_rng(seed)
    target = ramp_of(network.program)
    box = network.certificate.on.broadcast_to(target.w.shape)
    x = [rng.uniform(box.low, box.high, (count, *target.w.shape))]
    # along the gradient of s_i, solve for a pre-activation on a grid of half anchors, a little off
    half_steps = np.linspace(target.low, target.high, 4 * 64 + 1)
    wanted = np.concatenate([half_steps + off for off in (0, 1e-7, -1e-7, 1e-3, -1e-3)])
    base = rng.uniform(box.low, box.high, (len(wanted), *target.w.shape))
    s = target.pre_activations(base).astype(float)
    norm = np.maximum((target.w**2).sum(axis=1), 1e-300)
    x.append(np.clip(base + ((wanted[:, None] - s) / norm)[..., None] * target.w, box.low, box.high))
    x = np.concatenate(x).astype(network.dtype)
    s = target.pre_activations(x)
    claimed = np.ones(s.shape, bool)
    for low, high in network.certificate.excluded:
        claimed &= (s <= low) | (s >= high)
    return float((np.abs(network(x, outside="ignore") - target.values(x)).max(axis=-1) * claimed).max())


@pytest.mark.parametrize(("anchors", "dtype"), list(product([3, 4, 8, 33, 128, 512], ["float64", "float32"])))
def test_single_head_is_ten_times_under_the_theorem(anchors, dtype):
    network = ah.truncated_linear(*functions(), -1, 1, anchors=anchors, on=(-3, 3), dtype=dtype)
    assert network.certificate.kind == "proven"
    assert network.certificate.bound <= 2 / anchors / 10
    assert largest_error(network) <= network.certificate.bound


def test_anchors_default_to_the_number_of_tokens():
    network = ah.truncated_linear(*functions(tokens=20), -1, 1)
    assert network.streams[0].tokens == 20
    assert network.certificate.bound <= 2 / 20 / 10


@pytest.mark.parametrize(
    ("heads", "dtype"),
    [
        (5, "float64"),
        (1, "float32"),
        pytest.param(5, "float32", marks=pytest.mark.slow),
        pytest.param(1, "float64", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(("low", "high"), [(-1, 1), (5, 7), (-300, -299.5), (0, 1e-3), (-1e4, 1e4)])
def test_multi_head_is_under_the_theorem_far_from_zero_too(heads, low, high, dtype):
    w, t = functions(tokens=10)
    scale = (high - low) / 2
    network = ah.truncated_linear(
        w * scale, t * scale + (low + high) / 2, low, high, heads=heads, on=(-1, 1), dtype=dtype
    )
    delta = (high - low) / (8 * heads)
    if not (dtype == "float32" and low == -300):  # w·x + t itself rounds by 0.2 cells there
        assert network.certificate.bound <= 0.3 * delta
    assert network.certificate.bound <= delta
    assert largest_error(network) <= network.certificate.bound


def test_multi_head_stretches_nothing_and_mixes_no_tokens():
    network = ah.truncated_linear(*functions(tokens=10), -1, 1, heads=4)
    embed, attention = network.layers
    assert isinstance(embed, Embed)
    assert isinstance(attention, Attention)
    assert network.streams[0].tokens == 10
    assert embed.weight.shape[0] == 10
    assert attention.heads == 4
    assert len(attention.key) == 1


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    tokens=st.integers(3, 9),
    low=st.floats(-10, 10),
    width=st.floats(0.01, 20),
    count=st.integers(2, 40),
    heads=st.booleans(),
    dtype=st.sampled_from(["float32", "float64"]),
    sharpness=st.none() | st.floats(0.05, 400),
)
def test_bounds_hold_whatever_is_built(seed, tokens, low, width, count, heads, dtype, sharpness):
    size = {"heads": 1 + count // 8} if heads else {"anchors": count}
    spacing = width / ((tokens - 2) * size["heads"] if heads else count - 1)
    beta = None if sharpness is None else sharpness / spacing**2
    w, t = functions(seed, tokens)
    network = ah.truncated_linear(w, t, low, low + width, on=(-4, 4), dtype=dtype, sharpness=beta, **size)
    assert largest_error(network, seed, 500) <= network.certificate.bound


def test_a_flat_sharpness_of_the_users_own_is_told_the_truth():
    network = ah.truncated_linear(*functions(), -1, 1, anchors=16, sharpness=0.1 / (2 / 15) ** 2)
    assert network.certificate.bound > 2 / 16
    assert largest_error(network) <= network.certificate.bound


@pytest.mark.slow_for("size1")
@pytest.mark.parametrize("size", [{"anchors": 12}, {"heads": 3}])
def test_an_output_map_leaves_out_the_places_where_it_switches(size):
    w, t = functions()
    features = [0, 0, 0, 1, 1, 1, 0, 0, 2, 2, 2, 2]
    network = ah.truncated_linear(w, t, -1, 1, outputs=features, on=(-3, 3), **size)
    spacing = 2 / 11 if "anchors" in size else 2 / 12
    assert len(network.certificate.excluded) == 3
    for low, high in network.certificate.excluded:
        assert high - low == pytest.approx(0.2 * spacing)
    assert network(np.zeros((1, 6, 3)), outside="ignore").shape == (1, 6, 3)
    assert network.certificate.bound <= spacing * 0.55
    assert largest_error(network) <= network.certificate.bound
    # nothing can hold at the switch itself: there both outputs are about half of s
    switch = np.mean(network.certificate.excluded[0])
    target = ramp_of(network.program)
    x = (switch - target.t)[:, None] * target.w / (target.w**2).sum(axis=1, keepdims=True)
    assert np.abs(network(x[None], outside="ignore") - target.values(x[None])).max() > network.certificate.bound
    for outside in ("raise", "clip"):
        with pytest.raises(ah.AnchorheadError, match="6 of 6 tokens are not covered"):
            network(x[None], outside=outside)
    with pytest.warns(ah.OutsideWarning, match="in none of 3 open intervals"):
        network(x[None])
    with pytest.warns(ah.OutsideWarning, match="lie outside the box"):
        network(x[None] + 100.0)
    # what counts is where the input is after it was clipped
    size = {**size, "sharpness": 3 / spacing**2}
    w_only = ah.truncated_linear([[1.0]] * 6, [0.0] * 6, -1, 1, outputs=features, on=(-3, switch), **size)
    with pytest.raises(ah.AnchorheadError, match="6 of 6 tokens are not covered"):
        w_only(np.full((1, 6, 1), 50.0), outside="clip")


def test_an_output_map_may_be_a_function():
    w, t = functions()
    one = ah.truncated_linear(w, t, -1, 1, anchors=6, outputs=lambda k: k // 3)
    two = ah.truncated_linear(w, t, -1, 1, anchors=6, outputs=[0, 0, 0, 1, 1, 1])
    x = np.random.default_rng(0).normal(size=(5, 6, 3))
    assert np.array_equal(one(x), two(x))


@pytest.mark.slow
def test_the_dtype_follows_w_unless_given():
    w, t = functions()
    assert ah.truncated_linear(w, t, -1, 1, anchors=8).dtype == "float64"
    assert ah.truncated_linear(w.astype(np.float32), t, -1, 1, anchors=8).dtype == "float32"
    assert ah.truncated_linear(torch.tensor(w).float(), torch.tensor(t), -1, 1, anchors=8).dtype == "float32"
    assert ah.truncated_linear(w.tolist(), t.tolist(), -1, 1, anchors=8).dtype == "float64"
    for dtype in ("float32", np.float32, torch.float32):
        assert ah.truncated_linear(w, t, -1, 1, anchors=8, dtype=dtype).dtype == "float32"


def test_a_constant_function_is_fine():
    network = ah.truncated_linear(np.zeros((4, 2)), np.array([-5.0, 0.1, 0.7, 9.0]), 0, 1, anchors=16)
    assert ah.check(network).stated == network.certificate.bound
    assert largest_error(network) <= network.certificate.bound


def test_the_description_names_every_feature():
    text = ah.truncated_linear(*functions(), -1, 1, heads=2).describe()
    for word in ("query", "position", "2 heads", "parameters", "logits", "proven"):
        assert word in text
    assert max(len(line) for line in text.splitlines()) <= 100


W, T = functions()
BAD = {
    "low above high": ({"low": 1, "high": -1}, "low must be below high"),
    "equal ends": ({"low": 1, "high": 1}, "low must be below high"),
    "infinite range": ({"high": np.inf}, "high=inf"),
    "one anchor": ({"anchors": 1}, "from 2 to"),
    "half an anchor": ({"anchors": 7.5}, "from 2 to"),
    "no heads": ({"heads": 0}, "at least 1"),
    "both": ({"heads": 2, "anchors": 8}, "one of the two"),
    "two tokens": ({"w": W[:2], "t": T[:2], "heads": 2}, "at least 3"),
    "NaN in w": ({"w": np.full_like(W, np.nan)}, r"nan at \(0, 0\)"),
    "infinity in t": ({"t": np.where(T > 0, np.inf, T)}, "inf at"),
    "w a vector": ({"w": T}, r"\(tokens, inputs\)"),
    "lengths differ": ({"t": T[:-1]}, r"w has shape \(6, 3\)"),
    "text": ({"w": "weights"}, "array of real numbers"),
    "bfloat16": ({"dtype": torch.bfloat16}, "bfloat16 is not certified"),
    "bfloat16 weights": ({"w": torch.tensor(W).bfloat16()}, "bfloat16 is not certified"),
    "float16": ({"dtype": "float16"}, "float16 is not certified"),
    "no dtype": ({"dtype": "quux"}, "float32 or float64"),
    "sharpness 0": ({"sharpness": 0}, "above 0"),
    "sharpness beyond use": ({"sharpness": 1e300}, "allowed"),
    "empty box": ({"on": (1, -1)}, "lower end above"),
    "infinite box": ({"on": (-np.inf, 1)}, "bounded box"),
    "no box": ({"on": 3}, "not a box"),
    "box of another shape": ({"on": (np.zeros(7), np.ones(7))}, r"shape \(7,\)"),
    "outputs too short": ({"anchors": 8, "outputs": [0, 1]}, "each of the 8 anchors"),
    "negative outputs": ({"anchors": 2, "outputs": [0, -1]}, "0 or more"),
    "huge outputs": ({"anchors": 2, "outputs": [0, 10**9]}, "at most 2 features"),
    "outside": ({"outside": "explode"}, "'warn', 'raise', 'clip', 'ignore'"),
    "finer than the dtype": ({"low": 1e8, "high": 1e8 + 16, "anchors": 64, "dtype": "float32"}, "tell apart"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_what_is_allowed(name):
    changes, message = BAD[name]
    arguments = {"w": W, "t": T, "low": -1.0, "high": 1.0, **changes}
    with pytest.raises(ah.AnchorheadError, match=message):
        ah.truncated_linear(**arguments)


@pytest.mark.parametrize("options", [{"anchors": 8}, {"heads": 2}])
def test_a_box_on_which_logits_overflow_is_refused_when_built_and_when_checked(options):
    with pytest.raises(ah.AnchorheadError, match="too near to the largest of float32"):
        ah.truncated_linear(*functions(), -1, 1, on=(-1e37, 1e37), dtype="float32", **options)
    network = ah.truncated_linear(*functions(), -1, 1, on=(-1e30, 1e30), dtype="float32", **options)
    assert network.certificate is not None
    wider = replace(network.certificate, on=Box.of((-1e37, 1e37)), bound=1e50, terms=())
    with pytest.raises(ah.CertificateError):
        ah.check(network.with_(certificate=wider))


@pytest.mark.slow
def test_a_certificate_whose_box_is_beyond_float64_is_refused_when_checked():
    network = ah.truncated_linear(np.full((4, 1), 1e100), np.zeros(4), -1, 1, anchors=8, on=(-1, 1))
    assert network.certificate is not None
    wider = replace(network.certificate, on=Box.of((-1e300, 1e300)))
    with pytest.raises(ah.CertificateError):
        ah.check(network.with_(certificate=wider))


@pytest.mark.parametrize(("low", "high"), [(-1e-300, 1e-300), (-1e300, 1e300), (-1.7e308, 1.7e308)])
def test_ranges_whose_sharpness_is_no_number_are_refused(low, high):
    with pytest.raises(ah.AnchorheadError, match="is allowed; scale w"):
        ah.truncated_linear(*functions(), low, high)


def test_complex_weights_are_refused():
    w, t = functions()
    with pytest.raises(ah.AnchorheadError, match="give an array of real numbers"):
        ah.truncated_linear(w + 1j, t, -1, 1)


def test_what_is_no_network_cannot_be_checked():
    with pytest.raises(ah.AnchorheadError, match="int cannot be checked"):
        ah.check(3)  # type: ignore[arg-type]


def test_the_check_agrees_where_t_is_far_outside_a_narrow_range():
    """The rounding of a stored weight, times a large t, must not be taken for a shift of the range."""
    w = np.array([5.230815980385289, -3.1328872960146676, 0.06803501234722302, 17.569771339969886, 12.008540177280322])
    t = np.array([648.9100200082746, 3.7353055838503497, 117.92765955817501, 1588.6097926499458, 56.582194818889384])
    ah.check(
        ah.truncated_linear(
            w[:, None], t, 6.423106759272709, 6.443106759272709, on=(-0.1, 0.1), dtype="float32", heads=2
        )
    )
