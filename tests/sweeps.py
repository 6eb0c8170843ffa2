"""Sweeps over several axes of which `make test` runs half the cases, and `make slow` the rest."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest


def every_other(*axes: Iterable[Any]) -> list[Any]:
    """The cases of a product; those whose places on the axes have an odd sum are slow tests.

    Each value of each axis is in a quick case; of three axes or more, so are any two values of two of them.
    """
    cases = product(*(list(enumerate(axis)) for axis in axes))
    return [
        pytest.param(*(value for _, value in case), marks=[pytest.mark.slow] if sum(n for n, _ in case) % 2 else [])
        for case in cases
    ]
