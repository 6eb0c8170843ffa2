"""What must hold of an input, besides lying in the box of a certificate, for the certificate to cover it.

Conditions are data: a proof states them, the check derives them again, a call minds those that it can decide, and
people read `str(condition)`. Numbers in them are rounded to the safe side, so whoever keeps to them is covered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float, Shaped

from anchorhead.decimals import round_down
from anchorhead.errors import AnchorheadError
from anchorhead.given import checked_count, checked_number, checked_text


@dataclass(frozen=True)
class Condition:
    """One thing that must hold of an input."""

    kind: ClassVar[str]

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **{one.name: _plain(getattr(self, one.name)) for one in fields(self)}}


@dataclass(frozen=True)
class Excluded(Condition):
    """The pre-activation w·x + t of every token lies in none of these open intervals; w and t are the target's."""

    intervals: tuple[tuple[float, float], ...]

    kind: ClassVar[str] = "excluded"

    def __post_init__(self) -> None:
        if not self.intervals or not all(low < high for low, high in self.intervals):
            raise AnchorheadError(f"intervals={self.intervals!r} of a condition: at least one, each (lower, upper)")

    def holds(self, s: Shaped[np.ndarray, "..."]) -> Bool[np.ndarray, "..."]:
        """Which pre-activations are covered."""
        inside = np.zeros(np.shape(s), bool)
        for low, high in self.intervals:
            inside |= (s > low) & (s < high)
        return ~inside

    def __str__(self) -> str:
        low, high = self.intervals[0]
        count = len(self.intervals)
        which = "in none of" if count > 1 else "not in"
        more = f"{count} open intervals, the first " if count > 1 else ""
        return f"w·x + t is {which} {more}({low:.6g}, {high:.6g}), where the output changes"


@dataclass(frozen=True)
class NormImage(Condition):
    """x is what a normalisation puts out, whatever goes in: scale * (p + e) + shift + r with

        |p|_2 <= sqrt(d),  mean(p) = 0 for a LayerNorm,  |e|_2 <= slack sqrt(d),
        |r_i| <= rounding (|scale_i| sqrt(d) + |shift_i|).

    slack and rounding allow for the norm's own arithmetic.
    """

    norm: str
    scale: tuple[float, ...]
    shift: tuple[float, ...]
    slack: float
    rounding: float

    kind: ClassVar[str] = "image of a norm"

    def __post_init__(self) -> None:
        if self.norm not in ("LayerNorm", "RMSNorm") or len(self.scale) != len(self.shift) or not self.scale:
            raise AnchorheadError(
                f"a condition on what a {self.norm!r} of {len(self.scale)} scales and {len(self.shift)} shifts puts "
                'out: "LayerNorm" or "RMSNorm", with a scale and a shift for every feature'
            )

    def holds(self, x: Float[np.ndarray, "... d"]) -> Bool[np.ndarray, "..."]:
        """Which rows lie in the image, as far as float64 tells: up to 1e-9 of sqrt(d)."""
        scale, shift = np.array(self.scale), np.array(self.shift)
        radius = math.sqrt(len(scale))
        off = np.asarray(x, np.float64) - shift
        room = self.rounding * (np.abs(scale) * radius + np.abs(shift))
        nearest = np.sign(off) * np.maximum(np.abs(off) - room, 0.0)
        still = scale == 0
        p = np.divide(nearest, scale, out=np.zeros_like(nearest), where=~still)
        if self.norm == "LayerNorm" and still.any():  # of p nothing is seen there: what makes its mean 0
            p[..., still] = -p.sum(axis=-1, keepdims=True) / still.sum()
        along = p.mean(axis=-1) * radius if self.norm == "LayerNorm" else np.zeros(p.shape[:-1])
        across = np.sqrt(np.maximum((p**2).sum(axis=-1) - along**2, 0.0))
        beyond = np.hypot(np.maximum(across - radius, 0.0), along)
        inside = (beyond <= (self.slack + 1e-9) * radius) & (nearest[..., still] == 0).all(axis=-1)
        return np.asarray(inside)

    def __str__(self) -> str:
        return (
            f"x is in the image of the {self.norm} in front, of {len(self.scale)} features with its weights: scale * "
            f"zhat + shift, |zhat| <= sqrt({len(self.scale)}){', mean 0' if self.norm == 'LayerNorm' else ''}, itself "
            f"rounded by up to {self.slack:.1%} of sqrt({len(self.scale)})"
        )


@dataclass(frozen=True)
class AtMostExamples(Condition):
    """The prompt has at most so many examples."""

    most: int

    kind: ClassVar[str] = "at most so many examples"

    def __str__(self) -> str:
        return f"prompts of at most {self.most:,} example{'s' if self.most != 1 else ''}"


@dataclass(frozen=True)
class SafeRate(Condition):
    """rate times the largest second derivative that exact descent meets is at most limit: it does not diverge."""

    rate: float
    limit: float

    kind: ClassVar[str] = "safe rate"

    def __str__(self) -> str:
        limit = round_down(self.limit, 6)
        return f"the rate is safe: {self.rate:g} times the largest second derivative is at most {limit:g}"


@dataclass(frozen=True)
class SafeCurvature(Condition):
    """rate (slope times the largest eigenvalue of the mean of x x' + decay) is at most limit."""

    rate: float
    slope: float
    decay: float
    limit: float

    kind: ClassVar[str] = "safe curvature"

    def found(self, eigenvalue: float) -> float:
        """What is to be at most the limit, for a prompt with this eigenvalue."""
        return self.rate * (self.slope * eigenvalue + self.decay)

    def __str__(self) -> str:
        steep = f"{self.slope:g} times " if self.slope != 1 else ""
        eigenvalue = f"{steep}the largest eigenvalue of the mean of x x'"
        curved = f"({eigenvalue}, plus the decay {self.decay:g})" if self.decay else eigenvalue
        return f"the rate {self.rate:g} times {curved} is at most {self.limit:g}"


@dataclass(frozen=True)
class KeepsWithin(Condition):
    """Exact descent keeps a quantity, such as s - y, between low and high, for every example."""

    quantity: str
    low: float
    high: float

    kind: ClassVar[str] = "keeps within"

    def __str__(self) -> str:
        return f"exact descent keeps {self.quantity} between {self.low:g} and {self.high:g}"


@dataclass(frozen=True)
class AssumedLipschitz(Condition):
    """Of the function: |f(x) - f(y)| <= L |x - y|_2, or sum_j L_j |x_j - y_j|, and its values are right to 2 ulp."""

    constants: tuple[float, ...]

    kind: ClassVar[str] = "assumed Lipschitz constant"

    def __str__(self) -> str:
        single = len(self.constants) == 1
        numbers = ", ".join(f"{constant:g}" for constant in self.constants)
        slope = f"{numbers} |x - y|" if single else f"sum of L_j |x_j - y_j| for L = ({numbers})"
        return f"|f(x) - f(y)| <= {slope}, and values of f right to 2 ulp of float64, as was vouched for"


KINDS: dict[str, type[Condition]] = {
    one.kind: one
    for one in (Excluded, NormImage, AtMostExamples, SafeRate, SafeCurvature, KeepsWithin, AssumedLipschitz)
}


def conditions_from_json(data: Iterable[Mapping[str, Any]]) -> tuple[Condition, ...]:
    """Stored conditions; a kind that is not known is refused, never left out."""
    found = []
    for one in data:
        given = dict(one)
        kind = given.pop("kind", None)
        if kind not in KINDS:
            raise AnchorheadError(f"a condition of the kind {kind!r}: this version knows {', '.join(KINDS)}")
        expected = {field.name for field in fields(KINDS[kind])}
        if set(given) != expected:
            raise AnchorheadError(f"a condition {kind!r} with {sorted(given)}: needed are {sorted(expected)}")
        read = {
            field.name: _READERS[str(field.type)](f"the condition's {field.name}", given[field.name])
            for field in fields(KINDS[kind])
        }
        found.append(KINDS[kind](**read))
    return tuple(found)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, float) and math.isinf(value) else value


def _number(name: str, value: Any) -> float:
    """JSON has no infinities: they are stored as texts."""
    return float(value) if value in ("inf", "-inf") else checked_number(name, value, "a finite number")


_READERS: dict[str, Callable[[str, Any], Any]] = {
    "float": _number,
    "int": partial(checked_count, least=0),
    "str": checked_text,
    "tuple[float, ...]": lambda name, value: tuple(_number(name, one) for one in value),
    "tuple[tuple[float, float], ...]": lambda name, value: tuple(
        (_number(name, low), _number(name, high)) for low, high in value
    ),
}
"""By the type of a field, how it is read from a file."""
