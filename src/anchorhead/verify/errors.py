"""The one error of the verifier: something that a file claims does not follow from what it holds."""

from __future__ import annotations

import numpy as np


class NotVerified(Exception):
    """What is not justified, in a sentence that also says where."""


class Unreadable(NotVerified):
    """The file is no network of this format: damaged, too large, or of an unknown kind."""


def require(holds: bool | np.bool_, why: str) -> None:
    """Refuses where something does not hold. What cannot be told (a comparison with NaN) does not hold."""
    if not holds:
        raise NotVerified(why)
