"""The independent check accepts what is proven, and refuses what is not."""

import dataclasses

import numpy as np
import pytest

import anchorhead as ah
from anchorhead.conditions import Excluded
from anchorhead.network import Attention, Embed, Network
from anchorhead.targets.ramp import TruncatedLinear

CASES = {
    "one head": {"anchors": 12},
    "two anchors": {"anchors": 2},
    "fewer anchors than tokens": {"anchors": 3},
    "as many anchors as tokens": {},
    "float32": {"anchors": 40, "dtype": "float32"},
    "many heads": {"heads": 3},
    "many heads, float32": {"heads": 3, "dtype": "float32"},
    "outputs": {"anchors": 8, "outputs": [0, 0, 1, 1, 0, 0, 2, 2]},
    "outputs of many heads": {"heads": 2, "outputs": [0] * 5 + [1] * 7},
    "flat": {"anchors": 8, "sharpness": 0.3},
    "steep": {"anchors": 8, "sharpness": 3000.0},
}


def functions(seed=0, tokens=8, inputs=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(tokens, inputs)), rng.normal(size=tokens)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        pytest.param(name, low, high, marks=[pytest.mark.slow] if (number + far) % 2 else [])
        for number, name in enumerate(CASES)
        for far, (low, high) in enumerate([(-1.0, 1.0), (5.0, 7.0)])
    ],
)
def test_accepts_what_is_built(name, low, high):
    network = ah.truncated_linear(*functions(), low, high, **CASES[name])
    assert ah.check(network) is network.certificate


@pytest.mark.parametrize("name", ["one head", "many heads", "float32", "outputs"])
def test_refuses_a_smaller_bound(name):
    """The bounds are within a few per cent of the true error, so four fifths of one is not true."""
    network = ah.truncated_linear(*functions(), -1, 1, **CASES[name])
    smaller = dataclasses.replace(network.certificate, bound=0.8 * network.certificate.bound)
    with pytest.raises(ah.CertificateError, match="not justified"):
        ah.check(network.with_(certificate=smaller))


def tampered(network, rng):
    """One weight changed, by a random amount."""
    layers = list(network.layers)
    place = int(rng.integers(2))
    layer = layers[place]
    name = rng.choice(
        ["weight", "bias", "registers"] if isinstance(layer, Embed) else ["query", "key", "value", "output"]
    )
    if getattr(layer, name) is None:
        return None
    array = np.array(getattr(layer, name))
    filled = np.argwhere(array != 0)
    entry = tuple(filled[rng.integers(len(filled))])
    array[entry] *= 1 + 10 ** rng.uniform(-4, 0) * rng.choice([-1, 1])
    layers[place] = dataclasses.replace(layer, **{name: array})
    return Network(
        layers,
        program=network.program,
        derivation=network.derivation,
        certificate=network.certificate,
        outside="ignore",
    )


@pytest.mark.parametrize("name", ["one head", "many heads", "float32", "outputs"])
def test_refuses_weights_whose_error_exceeds_the_bound(name):
    rng = np.random.default_rng(5)
    network = ah.truncated_linear(*functions(), -1, 1, on=(-2, 2), **CASES[name])
    target = TruncatedLinear.from_record(network.target)
    x = rng.uniform(-2, 2, (1000, *target.w.shape))
    s, exact = target.pre_activations(x), target.values(x)
    claimed = np.ones_like(s, bool)
    for low, high in network.certificate.excluded:
        claimed &= (s <= low) | (s >= high)
    refused = 0
    for _ in range(60):
        other = tampered(network, rng)
        if other is None:
            continue
        error = (np.abs(other(x) - exact).max(axis=-1) * claimed).max()
        if error > network.certificate.bound:
            refused += 1
            with pytest.raises(ah.CertificateError):
                ah.check(other)
    assert refused >= 10


def test_a_file_is_checked_like_the_network(tmp_path):
    network = ah.truncated_linear(*functions(), -1, 1, anchors=8)
    network.save(tmp_path / "ramp.safetensors")
    assert ah.check(tmp_path / "ramp.safetensors").to_json() == network.certificate.to_json()


def test_what_has_no_certificate_or_is_measured_is_refused():
    network = ah.truncated_linear(*functions(), -1, 1, anchors=8)
    with pytest.raises(ah.CertificateError, match="no certificate"):
        ah.check(Network(network.layers, program=network.program, derivation=network.derivation))
    measured = dataclasses.replace(network.certificate, kind="measured")
    with pytest.raises(ah.CertificateError, match="measured"):
        ah.check(network.with_(certificate=measured))


def test_leaving_out_more_than_the_switches_is_refused():
    network = ah.truncated_linear(*functions(), -1, 1, anchors=8, sharpness=0.3)
    hidden = dataclasses.replace(network.certificate, bound=1e-3, conditions=(Excluded(((-100.0, 100.0),)),))
    with pytest.raises(ah.CertificateError, match="nothing switches"):
        ah.check(network.with_(certificate=hidden))


def test_another_kind_of_network_is_refused():
    network = ah.truncated_linear(*functions(), -1, 1, anchors=8)
    embed, attention = network.layers
    masked = Attention(attention.query, attention.key, attention.value, attention.output, mask="self+registers")
    with pytest.raises(ah.CertificateError, match="layers"):
        ah.check(
            Network(
                [embed, masked], program=network.program, derivation=network.derivation, certificate=network.certificate
            )
        )
