"""What a bound adds up, and what it is compared with: terms.

Terms are data: a proof states them, files keep them, code asks for them by what they are, and people read `str(term)`.
All words for them are in WORDS, and nothing reads those back but the one place that meets files of before, which held
words and numbers and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from anchorhead.errors import AnchorheadError
from anchorhead.given import checked_count, checked_number, checked_text

FINITE = "a finite number"

WORDS: Mapping[str, Mapping[str, str]] = {
    "approximation": {
        "": "approximation, in exact arithmetic",
        "every real input": "approximation, in exact arithmetic, for every real input",
        "activations": "anchors: heads in place of activations, in exact arithmetic",
        "neurons": "neurons: approximation, in exact arithmetic",
        "grid": "a grid of {variables}: approximation, in exact arithmetic",
        "modulus": "modulus of continuity between anchors",
        "tail": "softmax tail, anchors farther away",
        "centres": "largest difference at the centres of cells",
        "cells": "what function and head may change within a cell",
        "gradient and threshold": "heads in place of the gradient and the threshold",
        "score, link and gradient": "heads in place of score, link and gradient",
        "link": "head in place of the link",
        "scores, links and sums": "heads in place of scores, links and sums",
    },
    "rounding": {
        "": "rounding",
        "softmaxes": "rounding of the softmaxes and their sums",
        "softmax": "rounding of the softmax and its sums",
        "query and softmax": "rounding of w·x + t, of the softmax and its sums",
        "network": "rounding, weights as stored included",
        "stored weights": "rounding of the stored weights",
        "inputs and softmax": "rounding of the inputs, the logits, the softmax and its sums",
        "pre-activations": "rounding of the pre-activations",
        "output map": "rounding of the output map",
    },
    "error": {
        "heads": "the heads, at the neurons' largest pre-activations",
        "conversion": "conversion: proven for every input, rounding included",
    },
    "found": {
        "": "largest error found, as the dtype computes it",
        "fitting": "fitting: the largest error found",
        "path": "largest distance found at any step",
    },
    "theorem": {
        "single head": "the single-head theorem's (b - a)/p, without its softmax term",
        "multi head": "the multi-head theorem's (b - a)/((n - 2) H), without its softmax term",
        "neurons": "the single-head theorem's (b - a)/p, summed over the neurons",
    },
    "other": {"": "{label}"},
}
"""The kinds of terms, what each may be of, and the words for it.

    approximation   what exact arithmetic would leave
    rounding        what the dtype adds
    error           both together
    found           what a search found, which proves nothing
    theorem         what a theorem states, to compare a bound with
    other           what a file of before says in words that are not known here, kept as its label
"""


@dataclass(frozen=True)
class EvenAnchors:
    """Even anchors as the paper counts them: p along each axis, beta = c / spacing^2 along each, and H heads."""

    sides: tuple[int, ...]
    betas: tuple[float, ...]
    heads: int | None = None

    def __str__(self) -> str:
        heads = "" if self.heads is None else f"H = {self.heads}, "
        betas = ", ".join(f"{beta:.4g}" for beta in self.betas)
        return f"p = {' x '.join(map(str, self.sides))}, {heads}beta = {betas}"

    def to_json(self) -> dict[str, Any]:
        return {"sides": list(self.sides), "betas": list(self.betas), "heads": self.heads}

    @classmethod
    def from_json(cls, data: Any) -> EvenAnchors:
        if not isinstance(data, dict) or set(data) != {"sides", "betas", "heads"}:
            raise AnchorheadError(f"even anchors of a term: sides, betas and heads, not {str(data)[:80]}")
        heads = None if data["heads"] is None else checked_count("heads of a term", data["heads"])
        sides, betas = (_listed(data[name], name) for name in ("sides", "betas"))
        return cls(
            tuple(checked_count("a side of a term", side) for side in sides),
            tuple(checked_number("a beta of a term", beta, FINITE) for beta in betas),
            heads,
        )


@dataclass(frozen=True)
class Term:
    """One part of what a bound adds up, or a number to compare a bound with; `str(term)` says in words what it is.

    kind        "approximation", "rounding", "error", "found", "theorem" or "other": see WORDS
    amount      how much it is
    of          of what, for example "softmaxes"; empty where there is nothing to add
    variables   of a grid among other parts: those that it is over
    anchors     where they are the paper's even ones: their numbers
    label       of what is of the kind "other"
    """

    kind: str
    amount: float
    of: str = ""
    variables: tuple[str, ...] = ()
    anchors: tuple[EvenAnchors, ...] = ()
    label: str = ""

    def __post_init__(self) -> None:
        if self.kind not in WORDS:
            raise AnchorheadError(f"a term of the kind {self.kind!r}: {', '.join(WORDS)} are known")
        if self.of not in WORDS[self.kind]:
            known = ", ".join(map(repr, WORDS[self.kind]))
            raise AnchorheadError(f"a term of the kind {self.kind!r} of {self.of!r}: of {known} are known")
        if not self.amount >= 0:
            raise AnchorheadError(f"amount={self.amount!r} of a term: a number of 0 or more")
        object.__setattr__(self, "amount", float(self.amount))

    def __str__(self) -> str:
        words = WORDS[self.kind][self.of].format(variables=", ".join(self.variables), label=self.label)
        return f"{words} ({'; '.join(map(str, self.anchors))})" if self.anchors else words

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {"kind": self.kind, "of": self.of, "amount": self.amount}
        if self.variables:
            data["variables"] = list(self.variables)
        if self.anchors:
            data["anchors"] = [one.to_json() for one in self.anchors]
        return data | ({"label": self.label} if self.label else {})

    @classmethod
    def from_json(cls, data: Any) -> Term:
        needed = {"kind", "of", "amount"}
        if not isinstance(data, dict) or not needed <= set(data) <= needed | {"variables", "anchors", "label"}:
            raise AnchorheadError(f"a term has a kind, an amount and what it is of, not {str(data)[:80]}")
        variables, anchors = (_listed(data.get(name, []), name) for name in ("variables", "anchors"))
        return cls(
            kind=checked_text("kind of a term", data["kind"]),
            amount=checked_number("amount of a term", data["amount"], FINITE),
            of=checked_text("what a term is of", data["of"]),
            variables=tuple(checked_text("a variable of a term", one) for one in variables),
            anchors=tuple(map(EvenAnchors.from_json, anchors)),
            label=checked_text("label of a term", data.get("label", "")),
        )


def added_up(terms: Iterable[Term]) -> float:
    """What terms add up to, in float64."""
    return sum(term.amount for term in terms)


def find(terms: Iterable[Term], kind: str, of: str | None = None) -> Term | None:
    """The first term of a kind, and of something if that is given; None if there is none."""
    return next((term for term in terms if term.kind == kind and of in (None, term.of)), None)


def terms_from_json(data: Any) -> tuple[Term, ...]:
    """Stored terms; files of before hold a mapping from words to numbers."""
    if isinstance(data, dict):
        return tuple(_of_before(words, checked_number(words, amount, FINITE)) for words, amount in data.items())
    return tuple(map(Term.from_json, _listed(data, "terms")))


def _of_before(words: str, amount: float) -> Term:
    kind, of = _PLAIN.get(words, ("other", ""))
    return Term(kind, amount, of, label=words if kind == "other" else "")


_PLAIN = {words: (kind, of) for kind, some in WORDS.items() for of, words in some.items() if "{" not in words}


def _listed(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise AnchorheadError(f"{name} of a certificate: a list, not {str(value)[:80]}")
    return value
