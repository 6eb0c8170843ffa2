"""Kernel smoothers are heads: right up to rounding, proven, checked again, and never beyond their bound."""

import dataclasses

import numpy as np
import pytest
import torch
from flint import arb, ctx

import anchorhead as ah
from anchorhead.conditions import Excluded
from anchorhead.language.forms import smoother_of
from anchorhead.language.of_targets import program_of
from anchorhead.language.targets.kernel_smoother import KernelSmoother
from anchorhead.network import Attention, Network


def smoother(p, d, m, bandwidth, seed=0, shift=0.0, amplitudes=True):
    rng = np.random.default_rng(seed)
    centres, responses = rng.uniform(-1, 1, (p, d)) + shift, rng.normal(size=(p, m)) + 3
    return KernelSmoother(centres, responses, bandwidth, rng.uniform(0.01, 5, p) if amplitudes else None)


CASES = {
    "one centre": (smoother(1, 2, 2, 0.5), (-1, 1)),
    "two centres": (smoother(2, 1, 1, 0.5), (-2, 2)),
    "a line": (smoother(12, 1, 1, 0.1), (-1.5, 1.5)),
    "sharp": (smoother(30, 2, 2, 0.02), (-1, 1)),
    "flat": (smoother(30, 2, 2, 50.0), (-1, 1)),
    "many": (smoother(300, 3, 2, 0.3, amplitudes=False), (-1.2, 1.2)),
    "a bandwidth for each feature": (smoother(20, 3, 1, [0.1, 1.0, 7.0]), ([-1, -1, -3], [1, 0.5, 3])),
    "far from the centres": (smoother(20, 2, 1, 0.5), (3, 4)),
    "far from zero": (smoother(20, 2, 1, 0.2, shift=1000.0), (999, 1001)),
    "one point": (smoother(8, 2, 1, 0.2), (0.25, 0.25)),
}
DTYPES = ("float32", "float64")


def inputs(target, on, count=2000, seed=1):
    """Float64 inputs of the box: anywhere, at its corners, at centres and between pairs of them."""
    rng = np.random.default_rng(seed)
    low, high = (np.broadcast_to(np.array(end, float), (target.inputs,)) for end in on)
    pairs = rng.integers(target.anchors, size=(2, count))
    corners = np.where(rng.random((64, target.inputs)) < 0.5, low, high)
    between = target.centres[pairs].mean(axis=0) + rng.normal(size=(count, target.inputs)) * 1e-3
    x = np.concatenate([rng.uniform(low, high, (count, target.inputs)), corners, target.centres, between])
    return np.clip(x, low, high)


def errors(network, target, x):
    return np.abs(network(x).astype(np.longdouble) - target.values(x)).max(axis=-1)


def exact_error(network, target, x):
    """The error at one input, in balls."""
    with ctx.workprec(200):
        z = [
            sum(
                (-((arb(t) - c) ** 2) / (2 * arb(b) ** 2) for t, c, b in zip(x, centre, target.bandwidth, strict=True)),
                arb(0),
            )
            for centre in target.centres
        ]
        a = np.ones(target.anchors) if target.amplitudes is None else target.amplitudes
        top = max(float(one) for one in z)
        w = [arb(float(one)) * (logit - top).exp() for one, logit in zip(a, z, strict=True)]
        total = sum(w, arb(0))
        found = network(x[None])[0].astype(float)
        return max(
            float(abs(sum((k * float(y) for k, y in zip(w, column, strict=True)), arb(0)) / total - float(f)).upper())
            for column, f in zip(target.responses.T, found, strict=True)
        )


@pytest.mark.slow_for("many-float64", "many-float32")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CASES)
def test_the_error_never_exceeds_the_bound_and_the_check_agrees(name, dtype):
    target, on = CASES[name]
    network = ah.convert(target, on=on, dtype=dtype)
    assert network.certificate.kind == "proven"
    assert network.certificate.on == ah.Box.of(on)
    x = inputs(target, on)
    found = errors(network, target, x)
    assert found.max() <= network.certificate.bound
    assert exact_error(network, target, x[found.argmax()]) <= network.certificate.bound
    assert ah.check(network).stated == network.certificate.bound


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["two centres", "a line", "sharp", "far from zero"])
def test_a_search_that_climbs_finds_no_error_beyond_the_bound(name, dtype):
    target, on = CASES[name]
    network = ah.convert(target, on=on, dtype=dtype)
    rng = np.random.default_rng(3)
    best = inputs(target, on, 3000)
    width = np.asarray(on[1], float) - np.asarray(on[0], float)
    for step in np.geomspace(0.1, 1e-7, 15):
        best = best[np.argsort(errors(network, target, best))[-60:]]
        around = best[:, None] + rng.normal(size=(60, 20, target.inputs)) * step * width
        best = np.concatenate([best, np.clip(around.reshape(-1, target.inputs), *on)])
    worst = best[errors(network, target, best).argmax()]
    assert 0 < exact_error(network, target, worst) <= network.certificate.bound


def test_bounds_are_rounding_and_little_more():
    """Within a factor of 60 of what is found, at 1e-13 and 1e-5 of the responses' range."""
    target, on = CASES["a line"]
    for dtype, scale in (("float64", 1e-13), ("float32", 1e-4)):
        network = ah.convert(target, on=on, dtype=dtype)
        found = float(errors(network, target, inputs(target, on)).max())
        assert network.certificate.bound <= min(60 * found, scale * np.ptp(target.responses))


def test_the_formula_is_the_one_that_is_written():
    target = KernelSmoother([[0.0, 1.0], [2.0, -1.0]], [[1.0], [5.0]], [0.5, 2.0], [1.0, 3.0])
    x = np.array([0.7, 0.3])
    g = np.exp([-(0.7**2) / 0.5 - 0.7**2 / 8, -(1.3**2) / 0.5 - 1.3**2 / 8])
    expected = (g[0] + 15 * g[1]) / (g[0] + 3 * g[1])
    assert abs(float(target.values(x)[0]) - expected) <= 1e-15
    assert abs(float(ah.convert(target, on=(-2, 2))(x)[0]) - expected) <= 1e-14


def test_shapes_and_what_a_call_does_outside_the_box():
    target, on = CASES["sharp"]
    network = ah.convert(target, on=on, outside="raise")
    assert network(np.zeros((3, 4, 2))).shape == (3, 4, 2)
    assert network(torch.zeros(2)).shape == (2,)
    with pytest.raises(ah.AnchorheadError, match="outside"):
        network(np.full(2, 1.5))


@pytest.mark.parametrize("dtype", DTYPES)
def test_saved_and_loaded_it_is_the_same_and_is_checked_again(tmp_path, dtype):
    target, on = CASES["a bandwidth for each feature"]
    network = ah.convert(target, on=on, dtype=dtype)
    network.save(tmp_path / "smoother.safetensors")
    loaded = ah.load(tmp_path / "smoother.safetensors")
    x = inputs(target, on, 50)
    assert np.array_equal(loaded(x), network(x))
    again = smoother_of(loaded.program)
    assert np.array_equal(again.values(x), target.values(x))
    assert str(again) == str(target)
    assert ah.check(tmp_path / "smoother.safetensors").stated == network.certificate.bound


def rebuilt(network, place, **changes):
    layers = list(network.layers)
    layers[place] = dataclasses.replace(layers[place], **changes)
    return Network(
        layers,
        program=network.program,
        derivation=network.derivation,
        certificate=network.certificate,
        outside="ignore",
        token_axis=network.token_axis,
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_changed_weights_fail_the_check_wherever_they_break_the_bound(dtype):
    target, on = CASES["a line"]
    network = ah.convert(target, on=on, dtype=dtype)
    x = inputs(target, on, 300)
    rng = np.random.default_rng(5)
    refused = 0
    for _ in range(80):
        place = int(rng.integers(2))
        name = str(rng.choice([["weight", "bias", "registers"], ["query", "key", "value", "output", "bias"]][place]))
        array = np.array(getattr(network.layers[place], name))
        filled = np.argwhere(array != 0)
        array[tuple(filled[rng.integers(len(filled))])] *= 1 + 10 ** rng.uniform(-5, 0) * rng.choice([-1, 1])
        changed = rebuilt(network, place, **{name: array})
        if errors(changed, target, x).max() > network.certificate.bound:
            refused += 1
            with pytest.raises(ah.CertificateError):
                ah.check(changed)
    assert refused >= 30


def test_a_bound_that_is_too_small_a_larger_box_and_other_claims_fail_the_check():
    target, on = CASES["a line"]
    network = ah.convert(target, on=on)
    certificate = network.certificate
    for change in (
        {"bound": 0.9 * certificate.bound},
        {"on": ah.Box.of((-150, 150))},
        {"conditions": (Excluded(((0.0, 1.0),)),)},
        {"on": ah.Box.of(([-1, -1], [1, 1]))},
    ):
        claimed = dataclasses.replace(certificate, **change)
        with pytest.raises(ah.AnchorheadError):
            ah.check(network.with_(certificate=claimed))


def test_other_targets_and_layers_fail_the_check():
    target, on = CASES["a line"]
    network = ah.convert(target, on=on)
    other = KernelSmoother(target.centres, target.responses, target.bandwidth * (1 + 1e-9), target.amplitudes)
    fewer = KernelSmoother(target.centres[1:], target.responses[1:], target.bandwidth)
    for wrong in (other, fewer):
        with pytest.raises(ah.CertificateError):
            ah.check(network.with_(program=program_of(wrong, network.certificate.on)))
    attention = network.layers[1]
    assert isinstance(attention, Attention)
    with pytest.raises(ah.CertificateError):
        ah.check(rebuilt(network, 1, mask="self+registers"))
    with pytest.raises(ah.CertificateError):
        ah.check(rebuilt(network, 1, value=2 * attention.value))


def test_an_error_that_is_out_of_reach_is_refused_with_what_is_reached():
    target, on = CASES["a line"]
    bound = ah.convert(target, on=on, dtype="float32").certificate.bound
    assert ah.convert(target, on=on, dtype="float32", within=bound).certificate.bound == bound
    with pytest.raises(ah.AnchorheadError, match=r"proven to stay within \S+\. What would help: float64"):
        ah.convert(target, on=on, dtype="float32", within=bound / 2)


ONE = np.ones((3, 2))
BAD = {
    "centres": (lambda: KernelSmoother(np.ones(3), np.ones(3), 1.0), "centres"),
    "counts": (lambda: KernelSmoother(ONE, np.ones(2), 1.0), "as many"),
    "no centres": (lambda: KernelSmoother(np.ones((0, 2)), np.ones((0, 1)), 1.0), "centres"),
    "bandwidth 0": (lambda: KernelSmoother(ONE, np.ones(3), 0.0), "above 0"),
    "bandwidths": (lambda: KernelSmoother(ONE, np.ones(3), [1.0, 1.0, 1.0]), "each of the 2"),
    "amplitude 0": (lambda: KernelSmoother(ONE, np.ones(3), 1.0, [1.0, 0.0, 1.0]), "above 0"),
    "NaN": (lambda: KernelSmoother(ONE, [1.0, np.nan, 1.0], 1.0), r"nan at \(1,\)"),
    "text": (lambda: KernelSmoother("abc", np.ones(3), 1.0), "not numbers"),
    "box": (lambda: ah.convert(smoother(3, 2, 1, 1.0), on=([0, 0, 0], [1, 1, 1])), "box"),
    "within": (lambda: ah.convert(smoother(3, 2, 1, 1.0), on=(0, 1), within=0), "above 0"),
    "dtype": (lambda: ah.convert(smoother(3, 2, 1, 1.0), on=(0, 1), dtype="float16"), "float16"),
    "tiny bandwidth": (lambda: ah.convert(smoother(3, 2, 1, 1e-30), on=(0, 1), dtype="float32"), "bandwidth|rescale"),
    "tinier bandwidth": (lambda: ah.convert(smoother(3, 2, 1, 1e-200), on=(0, 1)), "bandwidth"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_what_is_allowed(name):
    make, message = BAD[name]
    with pytest.raises(ah.AnchorheadError, match=message):
        make()
