"""The model of arithmetic holds on this machine."""

import pytest

from anchorhead.errors import AnchorheadError
from anchorhead.proof.arithmetic import EXP_ULPS, arithmetic_of, exp_ulps_here, require_model


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_softmax_keeps_to_the_model_here(dtype):
    assert 0.3 < exp_ulps_here(dtype) <= EXP_ULPS


def test_a_machine_that_does_not_keep_to_it_proves_nothing(monkeypatch):
    monkeypatch.setattr("anchorhead.proof.arithmetic.exp_ulps_here", lambda dtype: 20.0)
    with pytest.raises(AnchorheadError, match=r"20\.0 ulp"):
        require_model("float32")


def test_other_dtypes_are_not_certified():
    with pytest.raises(AnchorheadError, match="float32 and float64"):
        arithmetic_of("bfloat16")
