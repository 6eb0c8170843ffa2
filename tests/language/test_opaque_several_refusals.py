"""What a callable of several variables must give: real, finite numbers, at least one for each input."""

import numpy as np
import pytest

from anchorhead.errors import AnchorheadError
from anchorhead.language.targets.opaque_several import CallableSeveral

LOW, HIGH = np.array([-1.0, -1.0]), np.array([1.0, 1.0])


def _taken(f):
    return CallableSeveral(f, LOW, HIGH, None, ("x", "y"))


def test_a_callable_without_outputs_is_refused():
    with pytest.raises(AnchorheadError, match="no outputs"):
        _taken(lambda x: x[:, :0])


def test_complex_values_are_refused_and_not_cut_to_their_real_part():
    with pytest.raises(AnchorheadError, match="complex"):
        _taken(lambda x: 1j * x)


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_a_pole_in_the_middle_of_the_box_is_found_before_any_work():
    with pytest.raises(AnchorheadError, match=r"inf at \[0.0, 0.0\]"):
        _taken(lambda x: 1 / x[:, 0])


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_a_function_that_is_infinite_at_a_corner_is_refused_at_once():
    with pytest.raises(AnchorheadError, match=r"inf at \[-1.0, -1.0\]"):
        _taken(lambda x: -np.log(x[:, 0] + 1))
