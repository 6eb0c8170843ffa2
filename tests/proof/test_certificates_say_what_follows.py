"""What certificates say follows from what they come with, and comes back from files as it was."""

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
from anchorhead.proof.statement import stated_bound
from tests.networks import names, row_of
from tests.networks import network as of_table


def certified(name: str) -> tuple[Network, Certificate]:
    network = of_table(name)
    assert network.certificate is not None
    return network, network.certificate


def edits(certificate: Certificate) -> Iterator[Certificate]:
    """One field at a time, changed to something that does not follow, or contradicts the rest."""
    for place, term in enumerate(certificate.terms):
        more = replace(term, amount=term.amount + 0.2 * certificate.bound)
        yield replace(certificate, terms=(*certificate.terms[:place], more, *certificate.terms[place + 1 :]))
    yield replace(certificate, conditions=(*certificate.conditions, AtMostExamples(10**9), AtMostExamples(10**9)))
    yield replace(certificate, bound=0.9 * certificate.bound)
    yield replace(certificate, worst=Worst(1.1 * certificate.bound, (0.0,)))


@pytest.mark.parametrize("name", names("proven"))
def test_what_follows_is_accepted_and_what_contradicts_itself_is_refused(name: str) -> None:
    network, certificate = certified(name)
    assert ah.check(network, row_of(name).function).stated == certificate.bound
    for one in edits(certificate):
        with pytest.raises(ah.CertificateError):
            ah.check(network.with_(certificate=one), row_of(name).function)


@pytest.mark.parametrize(
    ("proven", "within", "stated"),
    [
        (1e-3, None, 1.02e-3),
        (1.001e-3, None, 1.02e-3),
        (1e-3, 2e-3, 1.02e-3),
        (1e-3, 1.004e-3, 1.004e-3),
        (0.0, 1.0, 0.0),
    ],
)
def test_a_little_more_is_stated_than_was_proven_but_not_more_than_was_asked_for(
    proven: float, within: float | None, stated: float
) -> None:
    assert stated_bound(proven, within) == pytest.approx(stated, rel=1e-12)
    assert stated_bound(proven, within) >= proven


def test_a_bound_that_was_asked_for_and_not_reached_is_not_stated() -> None:
    assert stated_bound(1.01e-3, 1e-3) > 1.01e-3


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
