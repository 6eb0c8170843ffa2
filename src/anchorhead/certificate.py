"""What is known of a network's error, and how."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from anchorhead.as_html import block, table
from anchorhead.conditions import Condition, Excluded, conditions_from_json
from anchorhead.decimals import round_up
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.given import checked_text
from anchorhead.terms import Term, find, terms_from_json

Kind = Literal["proven", "measured"]
C = TypeVar("C", bound=Condition)
EVALUATIONS = ("plain", "direct", "powers")
"""Ways to compute what leaves a network, or an attention-only layer: attention as it is written; heads on scalars
without an axis of keys; and, in attention-only layers, heads as quotients of polynomials in one exponential."""


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
    terms       the parts that the bound adds up: `term.amount` is how much, `str(term)` says of what
    method      how the bound was obtained, in a sentence
    target      what the network approximates, in words
    reference   bounds of others to compare with: what theorems state
    conditions  what else must hold of an input of the box
    worst       the largest error in exact arithmetic that a proof met, and where
    evaluations the ways to compute the network that the bound covers: "plain", or that and "direct"; of layers of
                attention-only models, which the paths of their heads are, "powers" too

        >>> certificate = ah.head("gelu", on=(-10, 10), within=1e-6).certificate
        >>> certificate.kind, certificate.dtype, bool(certificate.bound <= 1e-6)
        ('proven', 'float64', True)
        >>> for term in certificate.terms:
        ...     print(term, term.amount < certificate.bound)
        approximation, in exact arithmetic True
        rounding of the softmaxes and their sums True
        >>> certificate.term("rounding").kind
        'rounding'
    """

    kind: Kind
    bound: float
    on: Box
    dtype: str
    arithmetic: str
    terms: tuple[Term, ...]
    method: str
    target: str
    reference: tuple[Term, ...] = ()
    conditions: tuple[Condition, ...] = ()
    worst: Worst | None = None
    evaluations: tuple[str, ...] = ("plain",)

    def __post_init__(self) -> None:
        if self.kind not in ("proven", "measured"):
            raise AnchorheadError(f'kind={self.kind!r} of a certificate: "proven" or "measured", nothing between')
        if not (math.isfinite(self.bound) and self.bound >= 0):
            raise AnchorheadError(f"bound={self.bound!r} of a certificate: a finite number, 0 or more")
        for name in ("dtype", "arithmetic", "method", "target"):
            checked_text(f"the certificate's {name}", getattr(self, name))
        if not self.evaluations or self.evaluations != tuple(one for one in EVALUATIONS if one in self.evaluations):
            raise AnchorheadError(
                f"evaluations={self.evaluations!r} of a certificate: some of {EVALUATIONS!r}, in this order"
            )
        for name, to_compare in (("terms", False), ("reference", True)):
            found = getattr(self, name)
            if not isinstance(found, tuple) or not all(isinstance(one, Term) for one in found):
                raise AnchorheadError(f"{name}={found!r} of a certificate: a tuple of terms")
            if any(one.kind != "other" and (one.kind == "theorem") != to_compare for one in found):
                raise AnchorheadError(
                    f"{name} of a certificate: what theorems state is its reference, the rest its terms"
                )

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "bound": self.bound,
            "on": self.on.to_json(),
            "dtype": self.dtype,
            "arithmetic": self.arithmetic,
            "terms": [term.to_json() for term in self.terms],
            "method": self.method,
            "target": self.target,
            "reference": [term.to_json() for term in self.reference],
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
        fields |= {name: terms_from_json(fields[name]) for name in ("terms", "reference")}
        worst = fields["worst"]
        fields["worst"] = worst and Worst(float(worst["error"]), tuple(map(float, worst["at"])))
        return cls(**fields)

    def condition(self, kind: type[C]) -> C | None:
        """The condition of a kind, if there is one."""
        return next((one for one in self.conditions if isinstance(one, kind)), None)

    def term(self, kind: str, of: str | None = None) -> Term | None:
        """The first term of a kind, such as "rounding", and of something if that is given; None if there is none."""
        return find(self.terms, kind, of)

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
            *((f"{round_up(term.amount):.3g}", str(term)) for term in self.terms),
            *((f"{term.amount:.3g}", f"to compare: {term}") for term in self.reference),
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

    @property
    def headline(self) -> str:
        """The claim, as it is printed first."""
        return _wrapped(f"{self.kind}:", self._claim)

    @property
    def details(self) -> str:
        """What is printed below it."""
        return "\n".join(_wrapped(label, text) for label, text in self._rows())

    def __str__(self) -> str:
        return f"{self.headline}\n{self.details}"

    def _repr_html_(self) -> str:
        return block(f"{self.kind}: {self._claim}", table((), self._rows()), kind=self.kind)


def _wrapped(label: str, text: str, width: int = 96) -> str:
    """A label in a column of its own, and the text beside it."""
    lines = textwrap.wrap(text, width, initial_indent=f"{label:<12}", subsequent_indent=" " * 12)
    return "\n".join(lines) or label
