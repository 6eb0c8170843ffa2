"""Every field of a certificate that a reader would rely on follows from what is checked, or is compared."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

import anchorhead as ah
from anchorhead.certificate import Certificate, Worst
from anchorhead.conditions import AtMostExamples, Excluded, NormImage
from anchorhead.network import Network
from anchorhead.proof.check import CHECKERS
from anchorhead.proof.check_callable import check_callable
from anchorhead.proof.statement import Statement
from tests.networks import names, quick, row_of, tags
from tests.networks import network as of_table


def certified(name: str) -> tuple[Network, Certificate]:
    network = of_table(name)
    assert network.certificate is not None
    return network, network.certificate


def edits(certificate: Certificate) -> Iterator[Certificate]:
    """One field at a time, changed to something that does not follow."""
    for word in ("target", "method", "arithmetic"):
        yield replace(certificate, **{word: getattr(certificate, word) + ", and more"})
        yield replace(certificate, **{word: ""})
    for term, value in certificate.terms.items():
        if value > 0:
            yield replace(certificate, terms={**certificate.terms, term: 0.5 * value})
        yield replace(certificate, terms={**certificate.terms, term: 1.1 * certificate.bound})
        yield replace(certificate, terms={name: v for name, v in certificate.terms.items() if name != term})
        yield replace(certificate, terms={f"not {name}": v for name, v in certificate.terms.items()})
    yield replace(certificate, terms={**certificate.terms, "luck": 0.0})
    yield replace(certificate, reference={**certificate.reference, "somebody's bound": 1.0})
    for name, value in certificate.reference.items():
        yield replace(certificate, reference={name: 1.5 * value})
        yield replace(certificate, reference={})
    yield replace(certificate, conditions=(*certificate.conditions, Excluded(((-0.1, 0.1),))))
    yield replace(certificate, conditions=(AtMostExamples(10**9), *certificate.conditions[1:]))
    yield replace(certificate, bound=0.9 * certificate.bound)
    if certificate.worst is None:
        yield replace(certificate, worst=Worst(0.5 * certificate.bound, (0.0,)))
    else:
        error, at = certificate.worst.error, certificate.worst.at
        yield replace(certificate, worst=None)
        if error > 1e-3 * certificate.bound:
            yield replace(certificate, worst=Worst(0.5 * error, at))
        yield replace(certificate, worst=Worst(error, (*at, 0.0)))
        yield replace(certificate, worst=Worst(error, tuple(1e3 + x for x in at)))


def what_follows(name: str) -> Statement:
    """What the check of a network's kind finds to follow from its weights and its target."""
    network, certificate = certified(name)
    assert network.target is not None
    if "opaque several" in tags(name):
        return check_callable(network, network.target, certificate, row_of(name).function)
    return CHECKERS[network.target.kind](network, network.target, certificate)


@pytest.mark.parametrize("name", quick(names("proven")))
def test_what_follows_is_accepted_and_what_does_not_is_refused(name: str, remembered: None) -> None:
    network, certificate = certified(name)
    assert ah.check(network, row_of(name).function) is certificate
    follows = what_follows(name)
    wrong = list(edits(certificate))
    assert len(wrong) >= 10
    for one in wrong:
        with pytest.raises(ah.CertificateError):
            follows.require(one)
    with pytest.raises(ah.CertificateError, match="more"):
        ah.check(network.with_(certificate=wrong[0]), row_of(name).function)


def test_a_largest_error_is_where_it_is_said_to_be() -> None:
    network, certificate = certified("function of one variable (float64)")
    assert certificate.worst is not None
    x = np.linspace(-1, 1, 1000)
    small = np.abs(network(x[:, None])[:, 0] - np.sin(2 * x)) < 0.1 * certificate.worst.error
    other = float(x[small.argmax()])
    with pytest.raises(ah.CertificateError, match="the error at"):
        ah.check(network.with_(certificate=replace(certificate, worst=Worst(certificate.worst.error, (other,)))))


@pytest.mark.parametrize("name", ["head (float32)", "learner, logistic (float64)"])
def test_certificates_come_back_from_json_as_they_were(name: str) -> None:
    certificate = certified(name)[1]
    assert Certificate.from_json(json.loads(json.dumps(certificate.to_json(), allow_nan=False))) == certificate


@pytest.mark.parametrize(
    "damage",
    [
        lambda condition: condition | {"kind": "something new"},
        lambda condition: {name: value for name, value in condition.items() if name != "intervals"},
        lambda condition: condition | {"intervals": []},
        lambda condition: condition | {"intervals": [[1.0, 0.0]]},
        lambda condition: condition | {"intervals": [[0.0, "x"]]},
        lambda condition: condition | {"more": 1},
    ],
)
def test_conditions_that_cannot_be_read_are_never_left_out(damage: Callable[[dict], dict]) -> None:
    data = certified("head (float32)")[1].to_json()
    data["conditions"] = [damage(Excluded(((0.0, 1.0),)).to_json())]
    with pytest.raises(ah.AnchorheadError, match="condition"):
        Certificate.from_json(data)


@pytest.mark.parametrize("norm", ["LayerNorm", "RMSNorm"])
def test_the_image_of_a_norm_holds_what_the_norm_puts_out_and_not_the_corners_of_its_box(norm: str) -> None:
    import torch

    rng = np.random.default_rng(0)
    scale, shift = rng.normal(size=8), rng.normal(size=8) if norm == "LayerNorm" else np.zeros(8)
    scale[3] = 0.0
    image = NormImage(norm, tuple(scale.tolist()), tuple(shift.tolist()), slack=1e-3, rounding=4 * 2.0**-24)
    x = torch.from_numpy(10.0 ** rng.uniform(-3, 3, (500, 1)) * rng.normal(size=(500, 8))).float()
    if norm == "LayerNorm":
        weights = (torch.from_numpy(array).float() for array in (scale, shift))
        z = torch.nn.functional.layer_norm(x, (8,), *weights, eps=1e-5).numpy()
    else:
        z = torch.nn.functional.rms_norm(x, (8,), torch.from_numpy(scale).float(), eps=1e-6).numpy()
    assert image.holds(z.astype(np.float64)).all()
    corner = shift + np.sqrt(8) * np.abs(scale)
    assert not image.holds(corner)
    assert not image.holds(z[0] + np.eye(8)[3])
