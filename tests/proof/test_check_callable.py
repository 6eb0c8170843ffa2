"""Bounds that rest on a Lipschitz constant are established again once the callable is given again."""

from dataclasses import replace

import numpy as np
import pytest

import anchorhead as ah
from anchorhead.errors import CertificateError
from anchorhead.language.entries import Entries
from anchorhead.language.steps import Opaque

ON = {"x": (-1.0, 1.0), "y": (-1.0, 1.0)}


def smooth(x):
    return np.sin(x[:, 0] * x[:, 1])


def kinked(x):
    return np.abs(x[:, 0] - x[:, 1])


@pytest.mark.parametrize("f", [smooth, kinked])
def test_a_proven_network_of_a_callable_is_checked_from_its_file(f, tmp_path):
    net = ah.approximate(f, on=ON, within=0.1, lipschitz=1.5)
    net.save(tmp_path / "f.safetensors")
    assert ah.check(tmp_path / "f.safetensors", function=f).stated <= 0.1


def test_without_its_callable_or_with_another_it_is_refused():
    net = ah.approximate(smooth, on=ON, within=0.1, lipschitz=1.5)
    with pytest.raises(CertificateError, match=r"ah\.check\(net, function=f\)"):
        ah.check(net)
    with pytest.raises(CertificateError, match="its values differ"):
        ah.check(net, function=kinked)


@pytest.mark.parametrize("f", [smooth, kinked])
def test_a_bound_that_is_too_small_is_refused(f):
    net = ah.approximate(f, on=ON, within=0.1, lipschitz=1.5)
    certificate = net.certificate
    assert certificate is not None
    small = replace(certificate, bound=1e-3, terms=(), worst=None)
    with pytest.raises(CertificateError, match="does not follow"):
        ah.check(net.with_(certificate=small), function=f)


def test_a_constant_that_the_certificate_does_not_name_is_refused():
    net = ah.approximate(smooth, on=ON, within=0.1, lipschitz=1.5)
    assert net.program is not None
    found = Entries.of(net.program)
    functions = tuple(replace(one, lipschitz=(1.42,)) for one in found.functions if isinstance(one, Opaque))
    other = replace(found, functions=functions).program()
    with pytest.raises(CertificateError, match="another constant"):
        ah.check(net.with_(program=other), function=smooth)
