"""A certificate to hang on any network: nothing of it is true."""

from __future__ import annotations

from typing import Any

from anchorhead.certificate import Certificate
from anchorhead.conditions import Excluded
from anchorhead.domain import Box
from anchorhead.terms import Term


def certificate(on: Any = (-1.0, 1.0), **changes: Any) -> Certificate:
    fields: dict[str, Any] = {
        "kind": "measured",
        "bound": 0.1,
        "on": Box.of(on),
        "dtype": "float64",
        "arithmetic": "dot products in any order",
        "terms": (Term("approximation", 0.075), Term("rounding", 1e-12)),
        "method": "a search",
        "target": "nothing in particular",
        "reference": (Term("theorem", 1.0, "single head"),),
        "conditions": (Excluded(((-0.1, 0.1), (0.5, 0.6))),),
    }
    return Certificate(**(fields | changes))
