"""No network of the table errs by more than its bound, in whatever order it is computed: zero tolerance."""

from __future__ import annotations

import numpy as np
import pytest

from tests.networks import names, network
from tests.verify.tampering.hunt import given_of
from tests.verify.tampering.search import breaks


@pytest.mark.parametrize("name", names("proven"))
def test_no_input_exceeds_what_is_proven(name):
    assert breaks(network(name), np.random.default_rng(0), given_of(name)) is None
