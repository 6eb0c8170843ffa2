"""What is known of a network's error, and how."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any, Literal

from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError

Kind = Literal["proven", "measured"]


@dataclass(frozen=True)
class Certificate:
    """A bound on |network as the dtype computes it - exact target|.

    kind        "proven": a proof covers every input of `on`, rounding included; "measured": a search found no more
    bound       the error is at most this, in `norm`
    norm        "sup": the largest absolute error of any output entry at any input
    on          the box of inputs
    dtype       the floating-point type in which the network is evaluated
    arithmetic  the model of that evaluation: which roundings the proof allows for
    terms       the parts that the bound adds up
    method      how the bound was obtained, in a sentence
    target      what the network approximates, in words
    reference   bounds of others to compare with, such as the theorem's own
    excluded    open intervals of the pre-activation w·x + t on which nothing is claimed
    """

    kind: Kind
    bound: float
    norm: str
    on: Box
    dtype: str
    arithmetic: str
    terms: Mapping[str, float]
    method: str
    target: str
    reference: Mapping[str, float] = field(default_factory=dict)
    excluded: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in ("proven", "measured"):
            raise AnchorheadError(f'kind={self.kind!r} of a certificate: "proven" or "measured", nothing between')
        if not (math.isfinite(self.bound) and self.bound >= 0):
            raise AnchorheadError(f"bound={self.bound!r} of a certificate: a finite number, 0 or more")
        for name in ("norm", "dtype", "arithmetic", "method", "target"):
            if not isinstance(getattr(self, name), str):
                raise AnchorheadError(f"{name}={getattr(self, name)!r} of a certificate: a text")
        for name in ("terms", "reference"):
            object.__setattr__(self, name, {str(key): float(value) for key, value in getattr(self, name).items()})

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "bound": self.bound,
            "norm": self.norm,
            "on": self.on.to_json(),
            "dtype": self.dtype,
            "arithmetic": self.arithmetic,
            "terms": dict(self.terms),
            "method": self.method,
            "target": self.target,
            "reference": dict(self.reference),
            "excluded": [list(interval) for interval in self.excluded],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Certificate:
        fields = {**data, "bound": float(data["bound"])}
        fields["on"] = Box.from_json(fields["on"])
        fields["excluded"] = tuple((float(low), float(high)) for low, high in fields["excluded"])
        return cls(**fields)

    def __str__(self) -> str:
        lines = [
            *_wrapped(
                f"{self.kind}:",
                f"error at most {self.bound:.3g} ({self.norm} norm) on {self.on}, in {self.dtype}",
            ),
            *_wrapped("target", self.target),
            *(line for name, value in self.terms.items() for line in _wrapped(f"{value:.3g}", name)),
            *(
                line
                for name, value in self.reference.items()
                for line in _wrapped(f"{value:.3g}", f"to compare: {name}")
            ),
            *_wrapped("method", self.method),
            *_wrapped("arithmetic", self.arithmetic),
        ]
        if self.excluded:
            low, high = self.excluded[0]
            count = len(self.excluded)
            where = f"{count} open intervals of w·x + t where the output changes, the first ({low:.6g}, {high:.6g})"
            lines += _wrapped("left out", where)
        return "\n".join(lines)


def _wrapped(label: str, text: str, width: int = 96) -> list[str]:
    """A label in a column of its own, and the text beside it."""
    return textwrap.wrap(text, width, initial_indent=f"{label:<12}", subsequent_indent=" " * 12) or [label]


def round_up(value: float, digits: int = 3) -> float:
    """The smallest number with so many decimal digits that is not below value, as a float not below it either."""
    if value == 0 or not math.isfinite(value):
        return value
    up = float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(value)))
    return up if up >= value else math.nextafter(up, math.inf)
