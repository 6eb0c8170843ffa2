"""Heads: as small as claimed, proven, checked again, and never beyond their bound."""

import dataclasses
import math
import re

import numpy as np
import pytest
import torch

import anchorhead as ah
from anchorhead.network import Network

SMALL = [
    ("sigmoid", (-10, 10), 1e-12, "float64", 2),
    ("tanh", (-5, 5), 1e-12, "float64", 2),
    ("relu", (-1, 1), 1e-9, "float64", 3),
    ("relu", (-1, 1), 1e-11, "float64", 5),
    ("hardtanh", (-2, 2), 1e-9, "float64", 4),
    ("silu", (-10, 10), 1e-6, "float64", 3),
    ("abs", (-1, 1), 1e-9, "float64", 6),
    ("square", (-1, 1), 1e-6, "float64", 3),
    ("gelu", (-10, 10), 2e-5, "float64", 7),
    ("gelu", (-10, 10), 1e-6, "float64", 8),
    ("sin", (-math.pi, math.pi), 1e-6, "float64", 6),
    ("sin(3*x)*exp(x)", (-1, 1), 1e-6, "float64", 6),
    pytest.param("exp(-x**2)", (-4, 4), 1e-6, "float64", 7, marks=pytest.mark.slow),
    ("relu", (-1, 1), 1e-4, "float32", 3),
    ("relu", (-1, 1), 1e-5, "float32", 5),
    ("hardtanh", (-2, 2), 1e-4, "float32", 4),
    ("gelu", (-10, 10), 2e-5, "float32", 16),
]


def points(head, count=20_000):
    """Inputs of the dtype, dense towards the kinks of the target and the crossings of the anchors."""
    rng = np.random.default_rng(0)
    low, high = head.on
    near = [low, high, 0.0, *head.target.kinks]
    for part in head.parts:
        slopes, offsets = part.slopes.astype(float), part.offsets.astype(float)
        near += list(head.atom.origin - np.diff(offsets) / np.diff(slopes))
    away = np.geomspace(1e-16, 1, 400) * (high - low)
    geometric = (place + sign * away for place in near for sign in (-1, 1))
    s = np.concatenate([rng.uniform(low, high, count), *geometric, near])
    s = s.astype(head.dtype)
    return np.unique(s[(s >= low) & (s <= high)])


def largest_error(head):
    s = points(head)
    exact = head.target.values(s.astype(np.float64))
    return float(np.abs(head(s).reshape(len(s), -1).astype(np.longdouble) - exact).max())


@pytest.mark.slow_for(
    "relu-on3-1e-11-float64-5",
    "relu-on2-1e-09-float64-3",
    "hardtanh-on4-1e-09-float64-4",
    "abs-on6-1e-09-float64-6",
    "sin(3*x)*exp(x)-on11-1e-06-float64-6",
)
@pytest.mark.parametrize(("function", "on", "within", "dtype", "anchors"), SMALL)
def test_heads_are_as_small_as_claimed(function, on, within, dtype, anchors):
    head = ah.head(function, on=on, within=within, dtype=dtype)
    assert head.anchors <= anchors
    assert head.certificate.kind == "proven"
    assert head.certificate.bound <= within
    if head.certificate.bound > 1e-14:  # below that, the verifier's own float64 is too coarse for linear maps
        assert ah.check(head).stated == head.certificate.bound
    target_noise = 4e-16 * max(1.0, *(abs(end) for end in on))
    assert largest_error(head) <= head.certificate.bound + (target_noise if dtype == "float64" else 0)


@pytest.mark.slow
def test_several_functions_share_their_keys():
    head = ah.head(["sin(x)", "cos(x)"], on=(-3.2, 3.2), within=1e-5)
    assert len(head.parts) == 1
    assert head.parts[0].values.shape == (head.anchors, 2)
    assert head(np.zeros((3, 4))).shape == (3, 4, 2)
    assert largest_error(head) <= head.certificate.bound <= 1e-5
    assert ah.check(head)


def test_a_callable_is_measured_and_proven_with_a_lipschitz_constant():
    measured = ah.head(lambda x: np.tanh(x) ** 3, on=(-3, 3), within=1e-3)
    assert measured.certificate.kind == "measured"
    with pytest.raises(ah.CertificateError, match="measured"):
        ah.check(measured)
    proven = ah.head(lambda x: np.tanh(x) ** 3, on=(-3, 3), within=1e-2, lipschitz=1.0)
    assert proven.certificate.kind == "proven"
    assert largest_error(proven) <= proven.certificate.bound <= 1e-2


@pytest.mark.slow_for("solved")
@pytest.mark.parametrize("placement", ["solved", "uniform"])
def test_so_many_anchors_achieve_what_the_certificate_says(placement):
    head = ah.head("sin(5*x)*exp(-x**2)", on=(-2, 2), anchors=9, placement=placement)
    assert head.anchors <= 9
    assert largest_error(head) <= head.certificate.bound


@pytest.mark.parametrize(
    ("function", "dtype"), [("abs(x) + x/2", "float32"), pytest.param("exp(sin(x))", "float64", marks=pytest.mark.slow)]
)
def test_more_anchors_never_give_a_worse_bound(function, dtype):
    bounds = [ah.head(function, on=(-1, 2), anchors=anchors, dtype=dtype).certificate.bound for anchors in (2, 4, 5)]
    assert bounds == sorted(bounds, reverse=True)


@pytest.mark.slow
def test_solved_anchors_beat_uniform_ones_by_far():
    solved, uniform = (ah.head("sin", on=(-3, 3), anchors=6, placement=p) for p in ("solved", "uniform"))
    assert solved.certificate.bound < 1e-4 * uniform.certificate.bound


@pytest.mark.parametrize("dtype", [pytest.param("float64", marks=pytest.mark.slow), "float32"])
def test_far_from_zero_and_on_tiny_and_huge_domains(dtype):
    cases = [("sin", (1000, 1010), 1e-3), ("abs(x - 3)", (3 - 1e-6, 3 + 1e-6), 1e-8), ("relu", (-1e6, 1e6), 1e4)]
    for function, on, within in cases:
        head = ah.head(function, on=on, within=within, dtype=dtype)
        assert largest_error(head) <= head.certificate.bound <= within


@pytest.mark.slow
def test_several_kinks():
    head = ah.head("abs(x*x - 1/4)", on=(-1, 1), within=1e-2)
    assert largest_error(head) <= head.certificate.bound <= 1e-2


@pytest.mark.slow
def test_caps_on_the_weights_are_kept():
    head = ah.head("gelu", on=(-5, 5), within=1e-3, max_value=50.0, max_slope=20.0)
    assert head.atom.max_value <= 50
    assert head.atom.max_slope <= 20
    assert largest_error(head) <= head.certificate.bound


def test_a_head_is_a_network_that_is_saved_and_loaded(tmp_path):
    head = ah.head("abs", on=(-1, 1), within=1e-4, dtype="float32")
    assert len(head.parts) == 2
    head.save(tmp_path / "abs.safetensors")
    network = ah.load(tmp_path / "abs.safetensors")
    s = np.linspace(-1, 1, 101, dtype=np.float32)
    assert np.array_equal(network(s[:, None, None])[:, 0, 0], head(s))
    assert ah.check(tmp_path / "abs.safetensors").stated == head.certificate.bound
    assert torch.equal(head(torch.from_numpy(s)), torch.from_numpy(head(s)))


@pytest.mark.slow
def test_a_looser_error_is_never_harder():
    """The free softmax cannot follow a kink in float32; the parts that do must still be tried."""
    loose, tight = (ah.head("abs", on=(-1, 1.5), within=within, dtype="float32") for within in (2e-3, 3e-4))
    assert loose.anchors <= tight.anchors


@pytest.mark.slow
def test_results_are_the_same_every_time():
    one, two = (ah.head("exp(sin(x))", on=(-2, 2), within=1e-4) for _ in range(2))
    assert all(np.array_equal(a.values, b.values) for a, b in zip(one.parts, two.parts, strict=True))


@pytest.mark.parametrize("name", ["slopes", "offsets", "values"])
def test_a_changed_weight_fails_the_check(name):
    head = ah.head("gelu", on=(-10, 10), within=1e-6)
    embed, attention = head.network.layers
    column = {"slopes": 2, "offsets": 3, "values": 4}[name]
    registers = np.array(embed.registers)
    row = int(np.abs(registers[:, column]).argmax())
    registers[row, column] *= 1 + 1e-3
    changed = Network(
        [dataclasses.replace(embed, registers=registers), attention],
        program=head.network.program,
        derivation=head.network.derivation,
        certificate=head.certificate,
        outside="ignore",
    )
    s = points(head)
    assert np.abs(changed(s[:, None, None])[:, 0] - head.target.values(s)).max() > head.certificate.bound
    with pytest.raises(ah.CertificateError):
        ah.check(changed)


BAD = {
    "neither size nor error": ({}, "within is missing"),
    "both": ({"within": 1e-3, "anchors": 3}, "one of the two"),
    "error 0": ({"within": 0}, "above 0"),
    "no anchors": ({"anchors": 0}, "from 1 to"),
    "empty domain": ({"on": (1, 1), "within": 1e-3}, "single point"),
    "infinite domain": ({"on": (0, np.inf), "within": 1e-3}, "not bounded"),
    "placement": ({"within": 1e-3, "placement": "random"}, "uniform"),
    "dtype": ({"within": 1e-3, "dtype": torch.bfloat16}, "not certified"),
    "pole": ({"function": "1/x", "within": 1e-3}, "x = "),
    "logarithm at 0": ({"function": "log(x)", "within": 1e-3}, "x = "),
    "step": ({"function": "where(x < 0, 0, 1)", "within": 1e-3}, "x = "),
    "overflow": ({"function": "exp(x)", "on": (0, 1000), "within": 1e-3}, "x = "),
    "unknown name": ({"function": "gelo", "within": 1e-3}, "gelo"),
    "code": ({"function": "__import__('os')", "within": 1e-3}, "column"),
    "tower": ({"function": "9**9**9", "within": 1e-3}, "column"),
    "NaN": ({"function": lambda x: np.where(x > 0.5, np.nan, x), "within": 1e-3}, "nan"),
    "beyond the dtype": ({"function": "relu", "within": 1e-9, "dtype": "float32"}, "float64"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_what_is_allowed(name):
    changes, message = BAD[name]
    arguments = {"function": "gelu", "on": (-1, 1), **changes}
    with pytest.raises(ah.AnchorheadError, match=message):
        ah.head(**arguments)


@pytest.mark.slow
def test_fits_whose_rounding_has_no_bound_do_not_stop_the_search():
    made = ah.head("where(x < 0.3, x, 0.6 - x)", (-1, 1), anchors=5, dtype="float32")
    assert made.certificate.kind == "proven"
    assert made.certificate.bound < 2e-4


def test_what_is_out_of_reach_is_refused_with_a_bound_that_is_proven_and_larger():
    with pytest.raises(ah.AnchorheadError, match=r"^within=0.00095 is out of reach on \[-1000, 1000\]") as refused:
        ah.head("relu", on=(-1000, 1000), within=9.5e-4, dtype="float32")
    proven = re.search(r"proven within (\S+) ", str(refused.value))
    assert proven
    assert float(proven.group(1)) > 9.5e-4


def test_an_interval_far_from_0_is_written_with_digits_that_tell_its_ends_apart():
    assert "[1000000, 1000001]" in ah.head("relu", on=(1e6, 1e6 + 1), within=1e-3).certificate.target


def test_even_anchors_beside_a_kink_are_not_foretold_to_be_far_too_many():
    """Its error falls by fits and starts: 21 anchors do."""
    made = ah.head("abs(x - 0.3)", on=(-1, 1), within=1e-2, placement="uniform")
    assert made.anchors <= 60
    assert made.certificate.bound <= 1e-2
