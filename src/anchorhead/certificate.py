"""What is known of a network's error, and how."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from anchorhead.as_html import block, table
from anchorhead.conditions import Condition, Excluded, conditions_from_json
from anchorhead.decimals import round_up
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError

Kind = Literal["proven", "measured"]
C = TypeVar("C", bound=Condition)
EVALUATIONS = ("plain", "direct")
"""Ways to compute what leaves a network: attention as it is written, or heads on scalars without an axis of keys."""


@dataclass(frozen=True)
class Worst:
    """An input at which |network - target|, in exact arithmetic, is `error`."""

    error: float
    at: tuple[float, ...]

    def __str__(self) -> str:
        shown = ", ".join(f"{x:.8g}" for x in self.at)
        return f"({shown})" if len(self.at) > 1 else shown


@dataclass(frozen=True)
class Certificate:
    """A bound on |network as the dtype computes it - exact target|.

    kind        "proven": a proof covers every input of `on` for which the conditions hold, rounding included;
                "measured": a search found no more
    bound       no output entry, at any input, errs by more than this (the sup norm)
    on          the box of inputs, which are numbers of the dtype: a call rounds others to such, within the box, and the
                bound is for what they become
    dtype       the floating-point type in which the network is evaluated
    arithmetic  the model of that evaluation: which roundings the proof allows for
    terms       the parts that the bound adds up
    method      how the bound was obtained, in a sentence
    target      what the network approximates, in words
    reference   bounds of others to compare with, such as the theorem's own
    conditions  what else must hold of an input of the box
    worst       the largest error in exact arithmetic that a proof met, and where
    evaluations the ways to compute the network that the bound covers: "plain", or that and "direct"

        >>> certificate = ah.head("gelu", on=(-10, 10), within=1e-6).certificate
        >>> certificate.kind, certificate.dtype, bool(certificate.bound <= 1e-6)
        ('proven', 'float64', True)
    """

    kind: Kind
    bound: float
    on: Box
    dtype: str
    arithmetic: str
    terms: Mapping[str, float]
    method: str
    target: str
    reference: Mapping[str, float] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    worst: Worst | None = None
    evaluations: tuple[str, ...] = ("plain",)

    def __post_init__(self) -> None:
        if self.kind not in ("proven", "measured"):
            raise AnchorheadError(f'kind={self.kind!r} of a certificate: "proven" or "measured", nothing between')
        if not (math.isfinite(self.bound) and self.bound >= 0):
            raise AnchorheadError(f"bound={self.bound!r} of a certificate: a finite number, 0 or more")
        for name in ("dtype", "arithmetic", "method", "target"):
            if not isinstance(getattr(self, name), str):
                raise AnchorheadError(f"{name}={getattr(self, name)!r} of a certificate: a text")
        if self.evaluations not in (EVALUATIONS[:1], EVALUATIONS):
            raise AnchorheadError(
                f"evaluations={self.evaluations!r} of a certificate: {EVALUATIONS[:1]!r} or {EVALUATIONS!r}"
            )
        for name in ("terms", "reference"):
            object.__setattr__(self, name, {str(key): float(value) for key, value in getattr(self, name).items()})

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "bound": self.bound,
            "on": self.on.to_json(),
            "dtype": self.dtype,
            "arithmetic": self.arithmetic,
            "terms": dict(self.terms),
            "method": self.method,
            "target": self.target,
            "reference": dict(self.reference),
            "conditions": [condition.to_json() for condition in self.conditions],
            "worst": None if self.worst is None else {"error": self.worst.error, "at": list(self.worst.at)},
            "evaluations": list(self.evaluations),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Certificate:
        fields = {**data, "bound": float(data["bound"])}
        fields["evaluations"] = tuple(fields.get("evaluations", EVALUATIONS[:1]))  # older files do not say
        fields["on"] = Box.from_json(fields["on"])
        fields["conditions"] = conditions_from_json(fields["conditions"])
        worst = fields["worst"]
        fields["worst"] = worst and Worst(float(worst["error"]), tuple(map(float, worst["at"])))
        return cls(**fields)

    def condition(self, kind: type[C]) -> C | None:
        """The condition of a kind, if there is one."""
        return next((one for one in self.conditions if isinstance(one, kind)), None)

    @property
    def excluded(self) -> tuple[tuple[float, float], ...]:
        """Open intervals of the pre-activation w·x + t on which nothing is claimed."""
        found = self.condition(Excluded)
        return () if found is None else found.intervals

    def _rows(self) -> list[tuple[str, str]]:
        """All that is known, in words: a label and a text each."""
        return [
            ("target", self.target),
            *(("provided", str(condition)) for condition in self.conditions),
            *((f"{round_up(value):.3g}", name) for name, value in self.terms.items()),
            *((f"{value:.3g}", f"to compare: {name}") for name, value in self.reference.items()),
            *(((f"{self.worst.error:.3g}", f"largest error found, at {self.worst}"),) if self.worst else ()),
            ("method", self.method),
            *((("evaluations", ", ".join(self.evaluations)),) if len(self.evaluations) > 1 else ()),
            ("arithmetic", self.arithmetic),
        ]

    @property
    def error_in_words(self) -> str:
        """What is said of the error: a bound only where one is proven."""
        return f"{'error at most' if self.kind == 'proven' else 'no bound, largest error found'} {self.bound:.3g}"

    @property
    def _claim(self) -> str:
        return f"{self.error_in_words} (sup norm) on {self.on}, in {self.dtype}"

    def __str__(self) -> str:
        rows = [(f"{self.kind}:", self._claim), *self._rows()]
        return "\n".join(line for label, text in rows for line in _wrapped(label, text))

    def _repr_html_(self) -> str:
        return block(f"{self.kind}: {self._claim}", table((), self._rows()), kind=self.kind)


def _wrapped(label: str, text: str, width: int = 96) -> list[str]:
    """A label in a column of its own, and the text beside it."""
    return textwrap.wrap(text, width, initial_indent=f"{label:<12}", subsequent_indent=" " * 12) or [label]
