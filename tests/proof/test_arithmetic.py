"""The model of arithmetic holds on this machine."""

import numpy as np
import pytest

from anchorhead.errors import AnchorheadError
from anchorhead.proof.arithmetic.arithmetic import (
    EXP_ULPS,
    FLOAT32,
    FLOAT64,
    arithmetic_of,
    exp_ulps_here,
    require_model,
)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_softmax_keeps_to_the_model_here(dtype):
    assert 0.3 < exp_ulps_here(dtype) <= EXP_ULPS


def test_a_machine_that_does_not_keep_to_it_proves_nothing(monkeypatch):
    monkeypatch.setattr("anchorhead.proof.arithmetic.arithmetic.exp_ulps_here", lambda dtype: 20.0)
    with pytest.raises(AnchorheadError, match=r"20\.0 ulp"):
        require_model("float32")


def test_other_dtypes_are_not_certified():
    with pytest.raises(AnchorheadError, match="float32 and float64"):
        arithmetic_of("bfloat16")


@pytest.mark.parametrize("model", [FLOAT32, FLOAT64])
def test_gamma_is_between_0_and_1_or_refused(model):
    edge = round(0.5 / model.unit)
    for n in (0, 1, 1000, edge - 1):
        assert n * model.unit <= model.gamma(n) < 1
    for n in (edge, 2 * edge, 2 * edge + 1, 100 * edge, np.array([3, 2 * edge]), float("nan")):
        with pytest.raises(AnchorheadError, match="no rounding bound"):
            model.gamma(n)


def test_gamma_of_an_array_is_entry_by_entry():
    counts = np.array([[0, 1], [7, 400]])
    np.testing.assert_array_equal(FLOAT32.gamma(counts), [[FLOAT32.gamma(int(n)) for n in row] for row in counts])
    assert FLOAT32.gamma(np.zeros(0)).shape == (0,)
