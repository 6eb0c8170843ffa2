"""ah.check is the verifier: what is proven follows, from a network, a head, a file; what is not is refused."""

import dataclasses

import numpy as np
import pytest

import anchorhead as ah
from anchorhead.conditions import Excluded
from anchorhead.network import Attention, Network
from anchorhead.terms import Term
from tests.networks import network as of_table

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
    assert ah.check(network).stated == network.certificate.bound


@pytest.mark.parametrize("name", ["one head", "many heads", "float32", "outputs"])
def test_refuses_a_smaller_bound(name):
    """The bounds are within a few per cent of the true error, so four fifths of one is not true."""
    network = ah.truncated_linear(*functions(), -1, 1, **CASES[name])
    smaller = dataclasses.replace(network.certificate, bound=0.8 * network.certificate.bound)
    with pytest.raises(ah.CertificateError, match=r"add up|does not follow"):
        ah.check(network.with_(certificate=smaller))


def test_a_file_is_checked_like_the_network(tmp_path):
    network = ah.truncated_linear(*functions(), -1, 1, anchors=8)
    network.save(tmp_path / "ramp.safetensors")
    reports = [
        ah.check(thing) for thing in (network, tmp_path / "ramp.safetensors", str(tmp_path / "ramp.safetensors"))
    ]
    assert len({(one.stated, one.found, one.steps, one.line) for one in reports}) == 1
    assert reports[0].stated == network.certificate.bound >= reports[0].found > 0


def test_what_has_no_certificate_or_is_measured_is_refused():
    network = ah.truncated_linear(*functions(), -1, 1, anchors=8)
    with pytest.raises(ah.CertificateError, match="no certificate"):
        ah.check(Network(network.layers, program=network.program, derivation=network.derivation))
    measured = dataclasses.replace(network.certificate, kind="measured")
    with pytest.raises(ah.CertificateError, match="measured"):
        ah.check(network.with_(certificate=measured))
    with pytest.raises(ah.CertificateError, match="program"):
        ah.check(network.with_(program=None, derivation=None))


def test_an_error_is_the_one_line_and_holds_the_report():
    network = of_table("two-layer, causal (float64)")
    certificate = network.certificate
    less = dataclasses.replace(
        certificate, bound=0.96 * certificate.bound, terms=(Term("error", 0.95 * certificate.bound, "heads"),)
    )
    with pytest.raises(ah.CertificateError, match="does not follow at output") as caught:
        ah.check(network.with_(certificate=less))
    report = caught.value.report
    assert not report.verified
    assert report.why == str(caught.value)
    assert report.steps
    assert report.stated == less.bound
    assert not report.found <= report.stated
    assert str(report).endswith(f"NOT VERIFIED: {caught.value}")


def test_what_cannot_be_checked_is_said(tmp_path):
    network = ah.head("relu", (-1, 1), within=1e-3).network
    with pytest.raises(ah.CertificateError, match="function= is for callables"):
        ah.check(network, function=np.sin)
    with pytest.raises(ah.AnchorheadError, match="is not a file: give the path of a saved network, or of the folder"):
        ah.check(tmp_path / "nothing.safetensors")
    with pytest.raises(ah.CertificateError, match=r"config\.json cannot be read"):
        ah.check(tmp_path)
    with pytest.raises(ah.AnchorheadError, match="int cannot be checked: give a network, a head, or the path"):
        ah.check(3)
    (tmp_path / "text.safetensors").write_text("no network")
    with pytest.raises(ah.AnchorheadError, match="cannot be read"):
        ah.check(tmp_path / "text.safetensors")


def test_progress_is_told_layer_by_layer():
    told = []
    ah.check(ah.approximate("x*y", {"x": (-1, 1), "y": (-1, 1)}, within=1e-2), progress=told.append)
    assert any("layer 1" in one.doing for one in told)
    assert all(0 <= one.share < 1 for one in told)


def test_leaving_out_more_than_the_switches_is_refused():
    network = ah.truncated_linear(*functions(), -1, 1, anchors=8, sharpness=0.3)
    hidden = dataclasses.replace(network.certificate, bound=1e-3, conditions=(Excluded(((-100.0, 100.0),)),))
    with pytest.raises(ah.CertificateError, match=r"does not follow|add up"):
        ah.check(network.with_(certificate=hidden))


def test_another_kind_of_network_is_refused():
    network = ah.truncated_linear(*functions(), -1, 1, anchors=8)
    embed, attention = network.layers
    masked = Attention(attention.query, attention.key, attention.value, attention.output, mask="self+registers")
    with pytest.raises(ah.CertificateError):
        ah.check(
            Network(
                [embed, masked], program=network.program, derivation=network.derivation, certificate=network.certificate
            )
        )
